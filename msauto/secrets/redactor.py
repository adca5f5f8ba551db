"""Turn a plan or result into the form that is shown and kept: the same, with ``***`` in place of its secrets.

The executor gets the plan. Reports, progress, the ledger and plan files get what :class:`Redactor` makes of it. Each
change and request that contained a secret is flagged (``secret``).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET, structs

from msauto.model.plan import Body, Change, Expectation, Json, Plan, Request, Settlement, Target, TargetContext
from msauto.model.result import Difference, RequestResult, Result, TargetResult
from msauto.secrets.redaction import HIDDEN, Secrets

RedactKey = Callable[[str], str]
"""Returns the key of a change without the secrets in it."""


def redact_plan(plan: Plan) -> Plan:
    """Return a plan as it may be shown: without secrets in values, requests, errors and warnings."""
    return Redactor(plan.secrets).plan(plan)


class Redactor:
    """Redacts one plan and its results. ``redact_key`` lets the ledger write keys that it can recognize again."""

    def __init__(self, secrets: Secrets, redact_key: RedactKey | None = None) -> None:
        self._secrets = secrets
        self._redact_key = redact_key or secrets.redact
        self._shown: dict[int, tuple[Target, Target]] = {}

    def plan(self, plan: Plan) -> Plan:
        """Return a plan as it may be shown."""
        if not self._secrets:
            return plan
        return structs.replace(
            plan,
            targets=tuple(map(self.target, plan.targets)),
            warnings=tuple(map(self._secrets.redact_message, plan.warnings)),
            settlements=tuple(map(self._settlement, plan.settlements)),
            servers=tuple(structs.replace(each, url=self._secrets.redact(each.url)) for each in plan.servers),
            secrets=Secrets(),
        )

    def target(self, target: Target) -> Target:
        """Return a target as it may be shown; for the same target, the same object."""
        known = self._shown.get(id(target))
        if known is None:
            known = self._shown[id(target)] = (target, self._target(target))
        return known[1]

    def result(self, result: Result) -> Result:
        """Return the result of a run as it may be shown."""
        return structs.replace(
            result, plan=self.plan(result.plan), targets=tuple(map(self.target_result, result.targets))
        )

    def target_result(self, result: TargetResult) -> TargetResult:
        """Return the result of a target as it may be shown; a server may repeat what it was sent."""
        return structs.replace(
            result,
            target=self.target(result.target),
            message=self._secrets.redact_message(result.message),
            requests=tuple(map(self.request_result, result.requests)),
            differences=tuple(map(self._difference, result.differences)),
            learned={self._redact_key(item): self._mask(value) for item, value in result.learned.items()},
        )

    def message(self, text: str) -> str:
        """Return a message as it may be shown; a server may repeat what it was sent."""
        return self._secrets.redact_message(text)

    def request_result(self, result: RequestResult) -> RequestResult:
        """Return the result of a request as it may be shown."""
        return structs.replace(result, message=self._secrets.redact_message(result.message))

    def _settlement(self, settlement: Settlement) -> Settlement:
        return structs.replace(settlement, item=self._redact_key(settlement.item), value=self._mask(settlement.value))

    def _target(self, target: Target) -> Target:
        changes = tuple(map(self._change, target.changes))
        requests = tuple(map(self._request, target.requests))
        secret = any(each.secret for each in changes) or any(each.secret for each in requests)
        return structs.replace(
            target,
            changes=changes,
            requests=requests,
            error=None if target.error is None else self._secrets.redact_message(target.error),
            fingerprint="" if secret else target.fingerprint,  # a hash of live state: it would reveal a short secret
            context=None if target.context is None else self._context(target.context),
            holding=UNSET,
        )

    def _context(self, context: TargetContext) -> TargetContext:
        redact = self._secrets.redact
        return TargetContext(
            context.frames,
            tuple(structs.replace(each, title=redact(each.title)) for each in context.segments),
            tuple(
                structs.replace(each, title=redact(each.title), track=redact(each.track)) for each in context.markers
            ),
        )

    def _change(self, change: Change) -> Change:
        if not any(map(self._holds, (change.key, change.before, change.after))):
            return change
        return structs.replace(
            change,
            key=self._redact_key(change.key),
            before=self._mask_earlier(change.before, change.after),
            after=self._mask(change.after),
            reversible=False,
            secret=True,
        )

    def _request(self, request: Request) -> Request:
        path, body = self._secrets.redact_path(request.path), request.body
        if body is not None and self._secrets.occurs_in(body.content.decode("utf-8", "replace")):
            shown = self._secrets.redact(body.text or "").encode()
            body = Body.of(shown, body.media_type) if self._secrets.partly else Body(body.media_type)
        expect = tuple(map(self._expect, request.expect))
        secret = request.secret or path != request.path or body is not request.body
        return structs.replace(request, path=path, body=body, expect=expect, secret=secret)

    def _expect(self, expect: Expectation) -> Expectation:
        # A secret attribute that a marker had and no task names is not compared, so it is not kept.
        preserved = {name: text for name, text in expect.preserved.items() if not self._holds({name: text})}
        secret = self._holds(expect.desired)
        if not secret and not self._holds(expect.key) and preserved == expect.preserved:
            return expect
        return structs.replace(
            expect,
            key=self._redact_key(expect.key),
            desired=self._mask(expect.desired),
            secret=secret,
            preserved=preserved,
        )

    def _difference(self, difference: Difference) -> Difference:
        if not any(map(self._holds, (difference.key, difference.desired, difference.live))):
            return difference
        return structs.replace(
            difference,
            key=self._secrets.redact(difference.key),
            desired=self._mask(difference.desired),
            live=self._mask_earlier(difference.live, difference.desired),
        )

    def _holds(self, value: Json) -> bool:
        if isinstance(value, str):
            return self._secrets.occurs_in(value)
        if isinstance(value, dict):
            return any(map(self._holds, (*value, *value.values())))
        return isinstance(value, list) and any(map(self._holds, value))

    def _mask(self, value: Json) -> Json:
        """Return a value with ``***`` in place of each text that contains a secret."""
        return map_texts(value, self._secrets.mask, self._secrets.redact)

    def _mask_earlier(self, before: Json, after: Json) -> Json:
        """Return the earlier value of a change: where the new one is secret, the earlier one was, too."""
        if isinstance(before, dict):
            desired = after if isinstance(after, dict) else {}
            kept = {name for name, value in desired.items() if not self._holds(value)}
            return {name: self._mask(each) if name in kept else _mask_all(each) for name, each in before.items()}
        return _mask_all(before) if after is None or self._holds(after) else self._mask(before)


def _mask_all(value: Json) -> Json:
    return map_texts(value, lambda text: text and HIDDEN)


def map_texts(value: Json, change: Callable[[str], str], rename: Callable[[str], str] = str) -> Json:
    """Return plain data with each text changed, and each name of a mapping renamed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {rename(name): map_texts(each, change, rename) for name, each in value.items()}
    return [map_texts(each, change, rename) for each in value] if isinstance(value, list) else value
