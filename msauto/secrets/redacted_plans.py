"""A plan, its results and its events as they may be shown and kept: the same, with ``***`` in place of the secrets.

The executor gets the plan. Reports, progress, the journal and plan files get what :class:`Redactor` makes of it. A text
that contains a secret is hidden as a whole; each change and request that contained one is flagged (``secret``).
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar, cast

from msgspec import UNSET, Struct, structs

from msauto.model.plan import Body, Change, Plan, Request, Target, TargetId
from msauto.model.ports import Journal, Memory, Remembered
from msauto.model.result import Difference
from msauto.model.snapshot import Effect, Json, Seen
from msauto.secrets.redaction import HIDDEN, Secrets

T = TypeVar("T")


def redact_plan(plan: Plan) -> Plan:
    """Return a plan as it may be shown: without secrets in values, requests, errors and warnings."""
    return Redactor(plan.secrets)(plan)


class Redactor:
    """Redacts plans, results and what they are made of."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._targets: dict[int, tuple[Target, Target]] = {}

    def __call__(self, value: T) -> T:
        """Return a value as it may be shown; for the same target, the same object."""
        return cast("T", self._redacted(value)) if self._secrets.texts else value

    def _redacted(self, value: Any) -> Any:
        match value:
            case list() | tuple():
                return type(value)(map(self._redacted, value))
            case dict():
                return {name: self._redacted(part) for name, part in value.items()}
            case Target():
                if id(value) not in self._targets:
                    self._targets[id(value)] = value, self._target(value)
                return self._targets[id(value)][1]
            case (
                Change(key=key, before=before, after=after)
                | Difference(key=key, live=before, desired=after)
            ):
                return self._change(value, key, before, after)
            case Request():
                return self._request(value)
            case Effect():
                return self._effect(value)
            case Seen():
                return value.without_private()
            case Struct():
                parts = structs.asdict(value)
                shown = {name: self._part(name, part) for name, part in parts.items()}
                return structs.replace(value, **shown)
        return value

    def _part(self, name: str, part: Any) -> Any:
        """Return a part of a plan, a result or an event; a server may have sent its messages and names."""
        match name:
            case "message" | "reason" | "error":
                return part and self._secrets.redact_message(part)
            case "warnings" | "notes":
                return tuple(map(self._secrets.redact_message, part))
            case "item" | "title" | "lane" | "url":
                return self._secrets.redact(part)
            case "value" | "left":
                if isinstance(part, Mapping):
                    part = dict(part)
                return self._mask(part)
            case "secrets":
                return Secrets()
        return self._redacted(part)

    def _target(self, target: Target) -> Target:
        changes = self._redacted(target.changes)
        hidden = {number for number, change in enumerate(changes) if change.secret}
        requests = []
        for request in target.requests:
            is_plain = hidden.isdisjoint(request.changes)
            requests.append(self._request(request, plain=is_plain))
        fingerprint = target.fingerprint
        is_private = target.depends_on.private or target.others.private
        is_secret = is_private or any(part.secret for part in (*changes, *requests))
        if is_secret or not fingerprint.startswith("sha256:"):
            fingerprint = ""  # a hash of live state: it would reveal a short secret
        return structs.replace(
            target,
            changes=changes,
            requests=tuple(requests),
            error=self._part("error", target.error),
            fingerprint=fingerprint,
            depends_on=target.depends_on.without_private(),
            others=target.others.without_private(),
            unwanted=tuple((aspect, self._mask(named)) for aspect, named in target.unwanted),
            context=self._redacted(target.context),
            holding=UNSET,
        )

    def _change(
        self, value: Change | Difference, key: str, before: Json, after: Json
    ) -> Change | Difference:
        outside = value.outside if isinstance(value, Change) else None
        left = None if outside is None else outside.left
        if not any(map(self._holds, (key, before, after, left))):
            return value
        key, before = self._secrets.redact(key), self._mask_earlier(before, after)
        if outside is not None:
            outside = structs.replace(outside, left=self._mask_earlier(left, after))
        after = self._mask(after)
        if isinstance(value, Difference):
            return structs.replace(value, key=key, desired=after, live=before)
        return structs.replace(
            value,
            key=key,
            before=before,
            after=after,
            reversible=False,
            secret=True,
            outside=outside,
        )

    def _request(self, request: Request, *, plain: bool = False) -> Request:
        """Return a request as it may be shown; ``plain``: none of its changes holds a secret."""
        path, body = self._secrets.redact_path(request.path), request.body
        if body is not None and self._secrets.occurs_in(body.content.decode("utf-8", "replace")):
            body = Body(body.media_type)
        is_same = path == request.path and body is request.body
        return structs.replace(
            request,
            path=path,
            body=body,
            effects=tuple(self._effect(effect, plain=plain) for effect in request.effects),
            secret=request.secret or not is_same,
        )

    def _effect(self, effect: Effect, *, plain: bool = False) -> Effect:
        """Return an effect as it may be shown; a secret that no request sends is not compared.

        Undo writes what was there before, so the effect of a ``plain`` request stays whole if it holds no secret.
        """
        if plain and not any(map(self._holds, (effect.key, effect.before, effect.after))):
            return effect
        after = self._mask(effect.after)
        return structs.replace(
            effect,
            key=self._secrets.redact(effect.key),
            before=self._mask_earlier(effect.before, effect.after),
            after=after,
            secret=effect.secret or after != effect.after or self._holds(effect.before),
        )

    def _holds(self, value: Json) -> bool:
        return self._mask(value) != value

    def _mask(self, value: Json) -> Json:
        """Return a value with ``***`` in place of each text that contains a secret."""
        return map_texts(value, self._secrets.mask, self._secrets.redact)

    def _mask_earlier(self, before: Json, after: Json) -> Json:
        """Return the earlier value of a change: where the new one is secret, the earlier one was, too."""
        if isinstance(before, dict):
            desired = after if isinstance(after, dict) else {}
            masked = {}
            for name, value in before.items():
                is_shown = name in desired and not self._holds(desired[name])
                masked[name] = self._mask(value) if is_shown else _mask_all(value)
            return masked
        is_secret = after is None or self._holds(after)
        return _mask_all(before) if is_secret else self._mask(before)


def _mask_all(value: Json) -> Json:
    return map_texts(value, lambda text: text and HIDDEN)


def map_texts(
    value: Json, change: Callable[[str], str], rename: Callable[[str], str] = str
) -> Json:
    """Return plain data with each text changed, and each name of a mapping renamed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        changed: dict[str, Json] = {}
        for name, part in value.items():
            if isinstance(part, str):
                changed[rename(name)] = change(part)
            else:
                changed[rename(name)] = map_texts(part, change, rename)
        return changed
    if isinstance(value, list):
        return [map_texts(part, change, rename) for part in value]
    return value


# Where a run records and reports ----------------------------------------------------------------------------------


class _Redacted:
    """Calls the methods of a journal with redacted arguments."""

    def __init__(self, receiver: object, redactor: Redactor) -> None:
        self._receiver, self._redactor = receiver, redactor

    def __getattr__(self, name: str) -> Callable[..., object]:
        method = getattr(self._receiver, name)
        return lambda *values: method(*map(self._redactor, values))


def redacted(receiver: T, redactor: Redactor) -> T:
    """Return a journal that receives no secret."""
    return cast("T", _Redacted(receiver, redactor))


SALT: Final = TargetId("", "", "database", "")
"""The target under which the salt is stored; no server has it."""
_HASH: Final = re.compile(r"\*\*\*\{[0-9a-f]{32}\}")
_WORK: Final = 2**14
"""Cost of scrypt: about 0.1 seconds and 16 MB for each guess."""


class SecretMemory:
    """A memory that stores hashes of secret texts. ``known`` are the secrets found so far; items name no secret."""

    def __init__(self, memory: Memory, known: Secrets) -> None:
        self._memory = memory
        self._known = known
        self._hashes: dict[str, str] = {}
        # What holds no text of an item passes as it is; in what clips_of returns, secrets stay hashes.
        self.keep_clip = memory.keep_clip
        self.forget_clip = memory.forget_clip
        self.forget_assets = memory.forget_assets
        self.pending = memory.pending
        self.clips_of = memory.clips_of

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the stored items; those with a secret that is not known any more are left out."""
        return self._revealed(self._memory.recall(target))

    def records(self, target: TargetId, titles: Iterable[str] = ()) -> Sequence[Remembered]:
        """Return what may be remembered of a target, as :meth:`recall` returns the items."""
        records = self._memory.records(target, titles)
        return [structs.replace(record, items=self._revealed(record.items)) for record in records]

    def _revealed(self, items: Mapping[str, Json]) -> Mapping[str, Json]:
        if not items or not _has_hash(items):
            return items
        texts = {self._hash(text): text for text in self._known.texts}
        revealed = {}
        for item, value in items.items():
            value = map_texts(value, lambda text: texts.get(text, text))
            if not _has_hash(value):
                revealed[item] = value
        return revealed

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Store items, with hashes of secret texts."""
        if not self._known.texts:
            self._memory.remember(target, items)
            return
        stored = {item: map_texts(value, self._without_secret) for item, value in items.items()}
        self._memory.remember(target, stored)

    def settle_salt(self, journal: Journal) -> None:
        """Store the salt before anything else; of two first runs at once, the later one takes that of the earlier."""
        with journal.together(alone=True):
            if "salt" not in self._memory.recall(SALT):
                self._memory.remember(SALT, {"salt": secrets.token_hex(16)})

    def _without_secret(self, text: str) -> str:
        return self._hash(text) if self._known.occurs_in(text) else text

    def _hash(self, text: str) -> str:
        if text not in self._hashes:
            salt = bytes.fromhex(str(self._memory.recall(SALT)["salt"]))
            digest = hashlib.scrypt(
                text.encode("utf-8", "surrogatepass"), salt=salt, n=_WORK, r=8, p=1, dklen=16
            )
            self._hashes[text] = f"***{{{digest.hex()}}}"
        return self._hashes[text]


def _has_hash(value: object) -> bool:
    return _HASH.search(json.dumps(value)) is not None
