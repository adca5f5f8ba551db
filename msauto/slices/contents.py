"""How intents and servers are pickled for workers: secrets as references, documents once, no environment, no files.

A secret travels as a reference where it has one (an environment variable, a file, a tagged text), with a salted check.
If a worker has no such secret, or another one, the value itself is sent.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial, reduce
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar
from xml.sax.saxutils import escape

from msgspec import UNSET, structs

from msauto.interface.address import encode
from msauto.model.codec import to_key
from msauto.model.plan import Body, Change, Expectation, Json, Request, Target
from msauto.model.server import Secret
from msauto.playbook.input_files import Files
from msauto.playbook.templates.lookup_context import LookupContext
from msauto.playbook.templates.names import EnvView
from msauto.playbook.templates.secret_tracking import TaintTracker
from msauto.playbook.variables.variables import Variable, Variables
from msauto.playbook.yaml.document import Document
from msauto.playbook.yaml.loader import load_yaml
from msauto.running.parcels import Shared, UnresolvedError
from msauto.secrets.marked_text import MarkedText
from msauto.secrets.redaction import Secrets
from msauto.secrets.redactor import map_texts
from msauto.secrets.secret_sources import SecretReference, SecretSources
from msauto.slices.remote_server import CoordinatorNeeded

T = TypeVar("T")
TOKEN_PATTERN: Final = re.compile(r"\*\*\*\{[0-9a-f]{32}\}")
_WORK: Final = 2**14
"""Cost of scrypt, as for the tokens of the ledger: a check must not help to guess a short secret."""
References = tuple[SecretReference, ...]


class RunContents:
    """Implements ``Contents`` for one run, with the secrets that are found."""

    def __init__(self, found: Secrets) -> None:
        self._found = found
        self._env: Mapping[str, str] = {}
        self._salt = secrets.token_bytes(16)
        self._checks: dict[str, bytes] = {}
        self._sent: set[References] = set()
        self._tokens: dict[str, str] = {}
        self._env_used: dict[str, str | None] = {}
        self._shared: dict[int, tuple[object, Shared[Any]]] = {}
        self._reducers: Mapping[type, Callable[[Any], Any]] = {
            MarkedText: lambda text: self._secret(str(text), MarkedText),
            Secret: lambda secret: self._secret(secret.reveal(), Secret),
            _EnvText: lambda text: self._referred(text.text, (SecretReference("env", text.name),), str),
            Target: self._target,
            Secrets: lambda known: (_known, (list(map(MarkedText, known.texts)), known.sources)),
            SecretSources: self._sources,
            EnvView: lambda view: (EnvView, (self._environment(view.values), view.sources)),
            LookupContext: lambda context: (
                _slice_lookups,
                (self._environment(context.env), _SliceFiles(context.files.taint)),
            ),
            MappingProxyType: lambda proxy: (_proxy, (dict(proxy),)),
            Document: lambda document: (_document, (self._once(document, _fields(document)),)),
            Variables: lambda variables: (_variables, (self._once(variables, variables.every()),)),
        }

    def __call__(self, value: object) -> Any:
        """Return how an object is pickled; ``NotImplemented``: as usual."""
        reducer = self._reducers.get(type(value))
        return NotImplemented if reducer is None else reducer(value)

    def supply(self, key: object) -> bool:
        """Send from now on what a worker lacks: the value of a reference, or a variable of the environment."""
        match key:
            case ("env", str() as name):
                self._env_used[name] = self._env.get(name)
            case tuple() if key not in self._sent:
                self._sent.add(key)
                return True
        return False

    # Secrets ---------------------------------------------------------------------------------------------------

    def _secret(self, text: str, kind: Callable[[str], T]) -> Any:
        return self._referred(text, self._found.sources.of(text), kind)

    def _referred(self, text: str, references: References, kind: Callable[[str], T]) -> Any:
        if not references or references in self._sent:
            return kind, (text,)
        if text not in self._checks:
            self._checks[text] = _check(text, self._salt)
        return _resolved, (kind, references, self._salt, self._checks[text])

    def _target(self, target: Target) -> Any:
        """Replace the secrets in the requests of a target by tokens, unless one is written in another encoding."""
        known = self._found
        if not known.occurs_in(to_key((target.changes, target.requests, target.holding or ())).decode()):
            return NotImplemented
        for text in sorted(known.texts, key=len, reverse=True):
            self._tokens.setdefault(text, f"***{{{secrets.token_hex(16)}}}")
        concealed = map_target(target, partial(_replaced, self._tokens))
        written = to_key((concealed.changes, concealed.requests, concealed.holding or ())).decode()
        if known.occurs_in(TOKEN_PATTERN.sub("", written)):
            return NotImplemented
        used = {token: MarkedText(text) for text, token in self._tokens.items() if token in written}
        return _revealed, (structs.asdict(concealed), used)

    def _sources(self, sources: SecretSources) -> Any:
        secret = self._found.texts  # other texts are noted as well, in case that they become secret
        noted = [(MarkedText(text), references) for text, references in sources.noted() if text in secret]
        return _noted_sources, (noted,)

    # What travels once -----------------------------------------------------------------------------------------

    def _once(self, value: object, contents: Any) -> Shared[Any]:
        if id(value) not in self._shared:
            self._shared[id(value)] = value, Shared(contents)
        return self._shared[id(value)][1]

    def _environment(self, env: Mapping[str, str]) -> _SliceEnvironment:
        self._env = env
        used = self._env_used.items()
        return _SliceEnvironment({name: None if text is None else _EnvText(name, text) for name, text in used})


# On the worker ----------------------------------------------------------------------------------------------------


def _check(text: str, salt: bytes) -> bytes:
    return hashlib.scrypt(text.encode("utf-8", "surrogatepass"), salt=salt, n=_WORK, r=8, p=1, dklen=16)


def _resolved(kind: Callable[[str], T], references: References, salt: bytes, check: bytes) -> T:
    """Return the secret that one of the references leads to; raises :class:`UnresolvedError` if none does."""
    text = _read_one(references, salt, check)
    if text is None:
        raise UnresolvedError(references)
    return kind(text)


@lru_cache(maxsize=1000)
def _read_one(references: References, salt: bytes, check: bytes) -> str | None:
    texts = (text for text in map(_read, references) if text is not None)
    return next((text for text in texts if hmac.compare_digest(_check(text, salt), check)), None)


def _read(reference: SecretReference) -> str | None:
    try:
        if reference.kind == "env":
            return os.environ.get(reference.name)
        content = Path(reference.name).read_bytes()
        if reference.kind == "file":
            return content.decode("utf-8-sig").rstrip("\n")
        return str(reduce(lambda data, key: data[key], reference.place, load_yaml(content, reference.name).data))
    except Exception:  # noqa: BLE001 - whatever it is, the coordinator sends the value
        return None


def _replaced(texts: Mapping[str, str], text: str, encoding: Callable[[str], str]) -> str:
    for old, new in texts.items():
        text = text.replace(encoding(old), new)
    return text


def _revealed(concealed: dict[str, Any], used: Mapping[str, str]) -> Target:
    def reveal(text: str, encoding: Callable[[str], str]) -> str:
        return TOKEN_PATTERN.sub(lambda found: encoding(str(used[found[0]])) if found[0] in used else found[0], text)

    return map_target(Target(**concealed), reveal)


def _known(texts: list[str], sources: SecretSources) -> Secrets:
    return Secrets(map(str, texts), sources=sources)


def _noted_sources(noted: list[tuple[str, References]]) -> SecretSources:
    sources = SecretSources()
    for text, references in noted:
        for reference in references:
            sources.note(str(text), reference)
    return sources


class _EnvText:
    """A variable of the environment that a template uses."""

    __slots__ = ("name", "text")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text


class _SliceEnvironment(Mapping[str, str]):
    """The environment of the coordinator, as far as templates have used it."""

    __slots__ = ("_used",)

    def __init__(self, used: Mapping[str, Any]) -> None:
        self._used = used

    def __getitem__(self, name: str) -> str:
        if name not in self._used:
            raise CoordinatorNeeded(("env", name))
        text = self._used[name]
        if text is None:
            raise KeyError(name)
        return str(text)

    def __iter__(self) -> Iterator[str]:
        raise CoordinatorNeeded(("environment",))

    def __len__(self) -> int:
        raise CoordinatorNeeded(("environment",))


class _SliceFiles(Files):
    """The files of the run, which are on the coordinator."""

    def __init__(self, taint: TaintTracker) -> None:
        super().__init__()
        self.taint = taint

    def read(self, path: str) -> NoReturn:
        """Leave the item to the coordinator."""
        raise CoordinatorNeeded(("file", path))


class _NowhereFolder:
    """A folder of the coordinator: an item that asks for anything in it is done there."""

    def __getattr__(self, name: str) -> NoReturn:
        raise CoordinatorNeeded(("folder", name))

    def __truediv__(self, name: str) -> NoReturn:
        raise CoordinatorNeeded(("folder", name))


def _slice_lookups(env: Mapping[str, str], files: _SliceFiles) -> LookupContext:
    return LookupContext(env, files, _NOWHERE, _NOWHERE)


_NOWHERE: Any = _NowhereFolder()


def _fields(document: Document) -> tuple[Any, ...]:
    """Return what makes a document, with stars in place of its secrets."""
    lines = list(document.lines)
    for first, left, last, right in document.hidden:
        for number in range(first, min(last, len(lines)) + 1):
            line = lines[number - 1]
            begin, end = (left - 1 if number == first else 0), (right - 1 if number == last else len(line))
            lines[number - 1] = f"{line[:begin]}{'*' * (min(end, len(line)) - begin)}{line[end:]}"
    return (
        document.file, document.data, document.places, document.key_places, tuple(lines), document.hidden,
        document.flaws, document.broken,
    )  # fmt: skip


def _proxy(data: dict[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(data)


def _document(fields: Shared[tuple[Any, ...]]) -> Document:
    return Document(*fields.value)


def _variables(every: Shared[tuple[Variable, ...]]) -> Variables:
    return Variables(every.value)


_MapText = Callable[[str, Callable[[str], str]], str]


def map_target(target: Target, text: _MapText) -> Target:
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


def _map_value(value: Json, text: _MapText) -> Json:
    return map_texts(value, lambda each: text(each, str), lambda each: text(each, str))
