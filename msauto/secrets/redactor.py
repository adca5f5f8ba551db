"""From a plan to the plan that is shown and kept: the same in all but its secrets, which are ``***``.

The executor gets the plan, everybody else what :func:`hide_plan` makes of it: reports, progress, the ledger, plan
files. One function draws both from one value, so what is shown is still what is sent; only the texts that nobody may
read are left out, and each place where one was says so (``secret``).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from msauto.model.plan import Body, Change, Expectation, Json, Plan, Request, Settlement, Target
from msauto.model.result import Difference, RequestResult, Result, TargetResult
from msauto.secrets.taint import HIDDEN, NO_SECRETS, Secrets

Name = Callable[[str], str]
"""Writes the key of a change, without the secrets in it."""


def redact_plan(plan: Plan) -> Plan:
    """Return a plan as it may be shown: secrets hidden in values, requests, errors and warnings."""
    if not plan.secrets:
        return plan
    hider = Redactor(plan.secrets)
    return structs.replace(
        plan,
        targets=tuple(map(hider.target, plan.targets)),
        warnings=tuple(map(plan.secrets.hide_cut, plan.warnings)),
        settlements=tuple(map(hider.settlement, plan.settlements)),
        servers=tuple(structs.replace(each, url=plan.secrets.hide(each.url)) for each in plan.servers),
        secrets=NO_SECRETS,
    )


def sends_secret(plan: Plan) -> Target | None:
    """Return the first target of which a request sends a secret, as it may be shown; ``None`` where none does."""
    return next((each for each in redact_plan(plan).targets if any(request.secret for request in each.requests)), None)


class Redactor:
    """Hides the secrets of one plan, target by target; ``name`` writes keys, which the ledger must know again."""

    def __init__(self, secrets: Secrets, name: Name | None = None) -> None:
        self._secrets = secrets
        self._name = name or secrets.hide
        self._shown: dict[int, tuple[Target, Target]] = {}

    def target(self, target: Target) -> Target:
        """Return a target as it may be shown; the same target is always the same value."""
        known = self._shown.get(id(target))
        if known is None:
            known = self._shown[id(target)] = (target, self._target(target))
        return known[1]

    def result(self, result: Result) -> Result:
        """Return what came of a run as it may be shown."""
        return structs.replace(
            result, plan=redact_plan(result.plan), targets=tuple(map(self.target_result, result.targets))
        )

    def target_result(self, result: TargetResult) -> TargetResult:
        """Return what came of a target as it may be shown; a server may repeat what it was sent."""
        return structs.replace(
            result,
            target=self.target(result.target),
            message=self._secrets.hide_cut(result.message),
            requests=tuple(map(self.request_result, result.requests)),
            differences=tuple(map(self._difference, result.differences)),
        )

    def request_result(self, result: RequestResult) -> RequestResult:
        """Return what came of a request as it may be shown."""
        return structs.replace(result, message=self._secrets.hide_cut(result.message))

    def settlement(self, settlement: Settlement) -> Settlement:
        """Return what the ledger learns as it may be shown."""
        return structs.replace(settlement, item=self._name(settlement.item), value=self._mask(settlement.value))

    def _target(self, target: Target) -> Target:
        changes = tuple(map(self._change, target.changes))
        requests = tuple(map(self._request, target.requests))
        hidden = any(each.secret for each in changes) or any(each.secret for each in requests)
        return structs.replace(
            target,
            changes=changes,
            requests=requests,
            error=None if target.error is None else self._secrets.hide_cut(target.error),
            fingerprint="" if hidden else target.fingerprint,  # over what is there: it would tell a short secret
        )

    def _change(self, change: Change) -> Change:
        if not any(map(self._holds, (change.key, change.before, change.after))):
            return change
        return structs.replace(
            change,
            key=self._name(change.key),
            before=self._earlier(change.before, change.after),
            after=self._mask(change.after),
            reversible=False,
            secret=True,
        )

    def _request(self, request: Request) -> Request:
        path, body = self._secrets.hide_path(request.path), request.body
        spoken = body is not None and self._secrets.in_(body.content.decode("utf-8", "replace"))
        if body is not None and spoken:
            body = Body(body.media_type)
        return structs.replace(
            request,
            path=path,
            body=body,
            expect=tuple(map(self._expect, request.expect)),
            secret=spoken or path != request.path,
        )

    def _expect(self, expect: Expectation) -> Expectation:
        # What a marker had and nobody names is not compared where it is secret: it need not be kept.
        kept = {name: text for name, text in expect.preserved.items() if not self._holds({name: text})}
        if not self._holds(expect.desired) and not self._holds(expect.key) and kept == expect.preserved:
            return expect
        hidden = self._holds(expect.desired)
        return structs.replace(
            expect, key=self._name(expect.key), desired=self._mask(expect.desired), secret=hidden, preserved=kept
        )

    def _difference(self, difference: Difference) -> Difference:
        if not any(map(self._holds, (difference.key, difference.desired, difference.live))):
            return difference
        desired, live = self._mask(difference.desired), self._earlier(difference.live, difference.desired)
        return structs.replace(difference, key=self._secrets.hide(difference.key), desired=desired, live=live)

    def _holds(self, value: Json) -> bool:
        if isinstance(value, str):
            return self._secrets.in_(value)
        if isinstance(value, dict):
            return any(map(self._holds, value.values())) or any(map(self._secrets.in_, value))
        return isinstance(value, list) and any(map(self._holds, value))

    def _mask(self, value: Json) -> Json:
        """Return a value with each text that holds a secret as ``***``."""
        if isinstance(value, str):
            return HIDDEN if self._secrets.in_(value) else value
        if isinstance(value, dict):
            return {self._secrets.hide(name): self._mask(each) for name, each in value.items()}
        return [self._mask(each) for each in value] if isinstance(value, list) else value

    def _earlier(self, before: Json, after: Json) -> Json:
        """Return what stands where a secret goes: the secret of yesterday, so no text of it is shown."""
        if isinstance(before, dict):
            desired = after if isinstance(after, dict) else {}
            kept = {name for name, value in desired.items() if not self._holds(value)}
            return {name: self._mask(each) if name in kept else _no_text(each) for name, each in before.items()}
        return _no_text(before) if after is None or self._holds(after) else self._mask(before)


def _no_text(value: Json) -> Json:
    if isinstance(value, list):
        return [_no_text(each) for each in value]
    if isinstance(value, dict):
        return {name: _no_text(each) for name, each in value.items()}
    return HIDDEN if isinstance(value, str) and value else value
