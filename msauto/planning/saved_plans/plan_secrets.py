"""Secrets in plan files: a token replaces each, with a reference to where it is read when the plan is applied.

From each secret, scrypt with a salt derives two halves. The ``check`` is stored and shows whether the secret is the
same. The key is not stored: it seals the whole document, and the fingerprints of the targets that are sent the secret.
So only someone who knows the secret can have it sent by another request, and each guess is slow.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets as random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final
from xml.sax.saxutils import escape

from msgspec import UNSET, Meta, Struct, structs

from msauto.errors import InputError, PlanningError, Problem
from msauto.interface.address import encode
from msauto.model.codec import to_key
from msauto.model.plan import Body, Change, Expectation, Json, Plan, Request, Settlement, Target
from msauto.planning.fingerprint import KEYED, SLOW, keyed
from msauto.secrets.redaction import Secrets, can_redact
from msauto.secrets.redactor import Redactor, map_texts
from msauto.secrets.secret_sources import SecretReference

_Hex32 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$(?!\n)")]
_Encode = Callable[[str], str]
_MapText = Callable[[str, _Encode], str]
ReadSecret = Callable[[SecretReference], str]
"""Reads a secret again; raises ``InputError`` if it is missing."""

TOKEN_PATTERN: Final = re.compile(r"\*\*\*\{[0-9a-f]{32}\}")
STALE: Final = "stale: "
"""The beginning of the error of a target that has changed since the plan was made."""


class SavedSecret(Struct, frozen=True, forbid_unknown_fields=True):
    """A secret that the plan sends. It is not in the file."""

    token: Annotated[str, Meta(pattern=r"^\*\*\*\{[0-9a-f]{32}\}$(?!\n)", description="what stands for it")]
    sources: Annotated[
        tuple[SecretReference, ...],
        Meta(min_length=1, description="where it is read when the plan is applied; all of them have the same text"),
    ]
    salt: Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$(?!\n)", description="the salt of its scrypt hash, in hex")]
    check: Annotated[_Hex32, Meta(description="one half of the hash, in hex: shows whether the secret is the same")]
    seal: Annotated[
        str, Meta(pattern=r"^([0-9a-f]{64})?$(?!\n)", description="HMAC of the plan by the other half, in hex")
    ]


def _derive(text: str, salt: str) -> tuple[bytes, bytes]:
    """Return the check and the key of a secret: about 0.1 seconds and 16 MB for each guess."""
    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.scrypt(data, salt=bytes.fromhex(salt), n=2**14, r=8, p=1, dklen=64)
    return digest[:32], digest[32:]


def _seal(key: bytes, token: str, digest: str) -> str:
    return hmac.new(key, f"{token} {digest}".encode(), hashlib.sha256).hexdigest()


def _tokens_of(target: Target) -> list[str]:
    return sorted(set(TOKEN_PATTERN.findall(to_key((target.changes, target.requests)).decode())))


def _joint_key(keys: Iterable[bytes]) -> bytes:
    return hashlib.sha256(b"".join(keys)).digest()


def map_target(target: Target, text: Callable[[str, Callable[[str], str]], str]) -> Target:
    """Return a target with its values and requests changed by ``text(text, encoding)``.

    The encoding is how a secret is written in the text: percent-encoded in a path, escaped in XML.
    """
    return structs.replace(
        target,
        changes=tuple(_map_change(each, text) for each in target.changes),
        requests=tuple(_map_request(each, text) for each in target.requests),
        holding=tuple(_map_expectation(each, text) for each in target.holding or ()) or UNSET,
    )


def _map_change(change: Change, text: _MapText) -> Change:
    return structs.replace(change, key=text(change.key, str), after=_map_value(change.after, text))


def _map_request(request: Request, text: _MapText) -> Request:
    body = request.body
    if body is not None and body.text is not None:
        content = text(body.text, escape if "xml" in body.media_type else str)
        body = body if content == body.text else Body.of(content.encode(), body.media_type)
    expect = tuple(_map_expectation(each, text) for each in request.expect)
    return structs.replace(request, path=text(request.path, encode), body=body, expect=expect)


def _map_expectation(expect: Expectation, text: _MapText) -> Expectation:
    preserved = {name: text(value, str) for name, value in expect.preserved.items()}
    return structs.replace(
        expect, key=text(expect.key, str), desired=_map_value(expect.desired, text), preserved=preserved
    )


def _map_settlement(settlement: Settlement, text: _MapText) -> Settlement:
    return structs.replace(settlement, item=text(settlement.item, str), value=_map_value(settlement.value, text))


def _map_value(value: Json, text: _MapText) -> Json:
    return map_texts(value, lambda each: text(each, str), lambda each: text(each, str))


# Write ---------------------------------------------------------------------------------------------------------


class _NotSaved(Exception):  # noqa: N818 - it becomes a PlanningError with a place
    """A value that references cannot replace; the message is the reason."""


_COMPUTED: Final = "is sent a text computed from a secret, and a plan file names only where secrets come from"
_EARLIER: Final = "has an earlier value that may be secret and is only in the ledger"
_REMEDY: Final = (
    'write the secret as it is, also in a text ("Bearer {{ token }}"), and take it from env, a file or a !secret text; '
    "or apply the playbooks themselves: msauto apply PLAYBOOK"
)


class PlanConcealer:
    """Replaces the secrets of a plan by tokens; :meth:`saved` returns what the file holds for them."""

    def __init__(self, known: Secrets) -> None:
        self._known = known
        self._sourced = Secrets(text for text in known.texts if known.sources.of(text) and _is_valid(text))
        self._computed = Secrets(
            text for text in known.texts - self._sourced.texts if text not in known.sources.composed
        )
        self._tokens: dict[str, str] = {}
        self._keys: dict[str, bytes] = {}
        self._entries: dict[str, SavedSecret] = {}
        self._patterns: dict[_Encode, tuple[re.Pattern[str], Mapping[str, str]]] = {}

    def plan(self, plan: Plan) -> Plan:
        """Return the plan with tokens. Raises ``PlanningError`` for a value that cannot be saved."""
        shown = Redactor(self._known)(plan)
        both = zip(plan.targets, shown.targets, strict=True)
        return structs.replace(
            shown,
            targets=tuple(self._target(real, masked) for real, masked in both),
            settlements=tuple(map(self._settlement, plan.settlements)),
        )

    def saved(self) -> tuple[SavedSecret, ...]:
        """Return the secrets that the plan sends, without their seals."""
        return tuple(self._entries.values())

    def sealed(self, digest: str) -> tuple[SavedSecret, ...]:
        """Return the secrets that the plan sends; ``digest`` is that of the document with empty seals."""
        return tuple(
            structs.replace(entry, seal=_seal(self._keys[token], token, digest))
            for token, entry in self._entries.items()
        )

    def _target(self, real: Target, masked: Target) -> Target:
        if KEYED.fullmatch(real.fingerprint):
            remedy = "copy the plan file, or make the plan again from the playbooks"
            raise PlanningError("a plan with secrets that was read from a file cannot be saved again", remedy=remedy)
        changes, requests = [], []
        for change, shown in zip(real.changes, masked.changes, strict=True):
            with self._named(real, change):
                changes.append(change if shown == change else self._change(change, shown))
        for request, redacted in zip(real.requests, masked.requests, strict=True):
            with self._named(real, real.changes[request.changes[0]]):
                requests.append(request if redacted == request else self._request(request, redacted))
        target = structs.replace(masked, changes=tuple(changes), requests=tuple(requests), fingerprint=real.fingerprint)
        tokens = _tokens_of(target)
        if not tokens or real.fingerprint.startswith(SLOW):
            return target
        key = _joint_key(self._keys[token] for token in tokens)
        return structs.replace(target, fingerprint=f"hmac::{keyed(key, real.fingerprint)}")

    @contextmanager
    def _named(self, target: Target, change: Change) -> Iterator[None]:
        """Turn :class:`_NotSaved` into an error that names the change."""
        try:
            yield
        except _NotSaved as why:
            shown = f"{target.name!r} ({change.aspect} {self._known.redact(change.key)})"
            message = f"the plan cannot be saved: {shown} {why}"
            raise PlanningError(message, place=change.source.place, remedy=_REMEDY) from None

    def _change(self, real: Change, masked: Change) -> Change:
        if real.basis == "ledger" and masked.before != real.before:
            raise _NotSaved(_EARLIER)
        return structs.replace(
            _map_change(real, self._text), before=masked.before, secret=masked.secret, reversible=masked.reversible
        )

    def _request(self, real: Request, masked: Request) -> Request:
        if real.body is not None and real.body.text is None and masked.body != real.body:
            raise _NotSaved(_COMPUTED)
        request = _map_request(real, self._text)
        both = zip(request.expect, masked.expect, strict=True)
        expect = tuple(structs.replace(each, secret=shown.secret) for each, shown in both)
        return structs.replace(request, expect=expect, secret=masked.secret)

    def _settlement(self, settlement: Settlement) -> Settlement:
        try:
            return _map_settlement(settlement, self._text)
        except _NotSaved as why:
            raise PlanningError(f"the plan cannot be saved: {settlement.target.name!r} {why}", remedy=_REMEDY) from None

    def _text(self, text: str, encoding: _Encode) -> str:
        """Return a text with tokens. Raises :class:`_NotSaved` if anything secret would remain."""
        if self._computed.occurs_in(text):
            raise _NotSaved(_COMPUTED)
        if not self._sourced.occurs_in(text):
            return text
        pattern, secret_of = self._search(encoding)
        found = pattern.sub(lambda match: self._token(secret_of[match[0]]), text)
        if self._sourced.occurs_in(TOKEN_PATTERN.sub("\0", found)):
            raise _NotSaved(_COMPUTED)  # in another encoding
        return found

    def _search(self, encoding: _Encode) -> tuple[re.Pattern[str], Mapping[str, str]]:
        """Return a pattern for the encoded secrets, the longest first, and the secret of each."""
        if encoding not in self._patterns:
            secret_of = {encoding(secret): secret for secret in self._sourced.texts}
            forms = sorted(secret_of, key=len, reverse=True)
            self._patterns[encoding] = re.compile("|".join(map(re.escape, forms))), secret_of
        return self._patterns[encoding]

    def _token(self, secret: str) -> str:
        if secret not in self._tokens:
            token, salt = f"***{{{random.token_hex(16)}}}", random.token_hex(16)
            check, self._keys[token] = _derive(secret, salt)
            self._tokens[secret] = token
            self._entries[token] = SavedSecret(token, self._known.sources.of(secret), salt, check.hex(), "")
        return self._tokens[secret]


def _is_valid(text: str) -> bool:
    """Return whether a text is valid Unicode: others cannot be sent."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


# Read ----------------------------------------------------------------------------------------------------------


def _identity(source: SecretReference) -> tuple[str, str, tuple[str | int, ...]]:
    name = source.name if source.kind == "env" else os.path.realpath(source.name)
    return source.kind, name, source.place


@dataclass(slots=True)
class PlanRevealer:
    """Replaces the tokens of a plan by secrets. ``values`` are all texts that were read: to redact, never to show."""

    values: set[str] = field(default_factory=set)
    _texts: dict[str, str] = field(default_factory=dict)
    _keys: dict[str, bytes] = field(default_factory=dict)
    _changed: dict[str, SecretReference] = field(default_factory=dict)

    @classmethod
    def open(cls, entries: Sequence[SavedSecret], read: ReadSecret) -> PlanRevealer:
        """Read the secrets again; raises ``InputError`` with all that are missing, ``ValueError`` for a duplicate."""
        revealer = cls()
        problems: list[Problem] = []
        sources = Counter(_identity(source) for entry in entries for source in entry.sources)
        if len(sources) < sources.total() or len({entry.token for entry in entries}) < len(entries):
            raise ValueError("`secrets` names a source or a token twice")  # each would be a guess at its value
        for entry in entries:
            for source in entry.sources:
                try:
                    revealer._check(entry, source, read(source))
                except InputError as error:
                    problems += error.problems
        if problems:
            raise InputError(problems)
        return revealer

    def _check(self, entry: SavedSecret, source: SecretReference, text: str) -> None:
        self.values.add(text)
        check, key = _derive(text, entry.salt)
        if can_redact(text) and hmac.compare_digest(check, bytes.fromhex(entry.check)):
            self._texts[entry.token], self._keys[entry.token] = text, key
        else:
            self._changed[entry.token] = source

    def is_sealed(self, entries: Sequence[SavedSecret], digest: str) -> bool:
        """Return whether the plan is as it was saved, as far as the secrets that have not changed can show it."""
        return all(
            hmac.compare_digest(_seal(self._keys[entry.token], entry.token, digest), entry.seal)
            for entry in entries
            if entry.token in self._keys
        )

    def plan(self, plan: Plan) -> Plan:
        """Return the plan with its secrets; a target is stale if one that it is sent has changed."""
        settlements = [each for each in plan.settlements if not self._has_changed(to_key(each).decode())]
        return structs.replace(
            plan,
            targets=tuple(map(self._target, plan.targets)),
            settlements=tuple(_map_settlement(each, self._text) for each in settlements),
            secrets=Secrets(self.values, partly=True),
        )

    def _has_changed(self, text: str) -> bool:
        return not self._changed.keys().isdisjoint(TOKEN_PATTERN.findall(text))

    def _target(self, target: Target) -> Target:
        tokens = _tokens_of(target)
        changed = [str(source) for token, source in self._changed.items() if token in tokens]
        if changed:
            error = f"{STALE}changed since the plan was made: {', '.join(changed)}"
            return structs.replace(target, changes=(), requests=(), error=error)
        if not tokens or not all(token in self._keys for token in tokens):
            return target
        fingerprint = target.fingerprint
        if fingerprint.startswith("hmac::"):
            key = _joint_key(self._keys[token] for token in tokens)
            fingerprint = f"hmac:{key.hex()}:{fingerprint.removeprefix('hmac::')}"
        return structs.replace(
            target,
            changes=tuple(_map_change(each, self._text) for each in target.changes),
            requests=tuple(map(self._request, target.requests)),
            fingerprint=fingerprint,
        )

    def _request(self, request: Request) -> Request:
        found = _map_request(request, self._text)
        both = zip(found.expect, request.expect, strict=True)
        expect = tuple(
            structs.replace(each, secret=each.secret and each.desired == saved.desired) for each, saved in both
        )
        secret = request.secret and (found.path, found.body) == (request.path, request.body)
        return structs.replace(found, expect=expect, secret=secret)

    def _text(self, text: str, encoding: _Encode) -> str:
        return TOKEN_PATTERN.sub(lambda match: encoding(self._texts.get(match[0], match[0])), text)
