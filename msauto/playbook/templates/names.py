"""Secrets in templates: what is made with a secret is secret.

The use of secrets is noted for each template. If its evaluation touches one, its whole result is secret, whatever was
done with it. A value is marked by its class, :class:`MarkedText`. For values that cannot be marked (true, false,
null), :attr:`SecretTracker.lost` notes the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, Protocol

from msgspec import Struct, field

from msauto.documents.document import SourceNode
from msauto.errors import ProblemKind
from msauto.file_writing import safe_name
from msauto.model.facts import Facts, XmpByName
from msauto.secrets.redaction import HIDDEN, Secrets, can_redact
from msauto.secrets.sources import MarkedText, leaves, why_too_short


class TemplateFunctionError(Exception):
    """A filter or lookup that fails for a known reason; ``remedy`` is what to do. The message shows no secret."""

    def __init__(self, message: str, remedy: str = "", kind: ProblemKind = "template") -> None:
        super().__init__(message)
        self.remedy = remedy
        self.kind = kind


class SecretTracker(Struct, eq=False):
    """The secrets of one run, and whether the template that is being evaluated touches one."""

    secrets: Secrets = field(default_factory=Secrets)
    lost: list[SourceNode] = []
    """Places of values that were made with a secret and cannot be marked; the reader removes them."""
    touched: bool = False
    unknown: bool = False
    """Whether ``***`` stands for secrets in all of this run: what a template makes of them is not known."""

    def add(self, value: object) -> MarkedText:
        """Return a text marked as secret; raises :class:`TemplateFunctionError` for other values and short texts."""
        if value == HIDDEN:
            # Redacted already: `msauto vars` does not know the environment.
            return MarkedText(HIDDEN)
        is_list = hasattr(value, "__iter__") and not isinstance(value, str)
        if is_list or isinstance(value, bool | None):
            raise TemplateFunctionError(
                "only a text can be secret", "mark each text separately: | map('secret')"
            )
        text = str(value)
        if not can_redact(text):
            raise TemplateFunctionError(*why_too_short(text))
        self.secrets.add(text)
        return MarkedText(text)

    def add_tagged(self, data: Any) -> None:
        """Add the texts of a file that are tagged as secret; what a template makes is added when it is rendered."""
        for _, text in leaves(data, MarkedText):
            self.secrets.add(text)

    def marked(self, value: Any, node: SourceNode) -> Any:
        """Return the result of a template that touched a secret, marked; note in ``lost`` what cannot be marked."""
        if isinstance(value, list):
            return [self.marked(item, node) for item in value]
        if isinstance(value, dict):
            if any(map(self.secrets.occurs_in, value)):
                self.lost.append(node)
            return {key: self.marked(item, node) for key, item in value.items()}
        if isinstance(value, bool | None):
            self.lost.append(node)
            return value
        text = value.isoformat() if isinstance(value, datetime | date) else str(value)
        if text != HIDDEN:
            self.secrets.add(text)
        return MarkedText(text)


class TemplateNames(Protocol):
    """The names that a template can use: a mapping that computes values on demand."""

    def __contains__(self, name: object, /) -> bool:
        """Return whether a name is defined."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of a name."""

    def known(self) -> Iterable[str]:
        """Return all names."""

    @property
    def where_to_set(self) -> str:
        """Where a name can be set if the server is of no file: it is data, or the URL of ``--server``."""

    def with_given(self, *, asset: AssetView) -> TemplateNames:
        """Return the same names for another asset."""

    @property
    def tracker(self) -> SecretTracker:
        """The tracker of the secrets of the run."""

    def headers_of(self, row: object) -> str:
        """Return the places of the headers of CSV files whose columns a row has; empty without one."""


class NoText:
    """Not a text: templates read its attributes alone."""

    __slots__ = ()

    def __str__(self) -> str:
        raise TemplateFunctionError(
            "a value with attributes is not a text", "use one of its attributes"
        )

    __repr__ = __format__ = __str__  # type: ignore[assignment]


class Omit(NoText):
    """``omit`` in templates removes its key: ``"{{ comment | default(omit) }}"``."""

    __slots__ = ()

    def __str__(self) -> str:
        raise TemplateFunctionError(
            "omit removes a key, so it must be the whole value", "write nothing beside it"
        )

    __repr__ = __format__ = __str__

    def __reduce__(self) -> str:
        return "OMIT"


OMIT = Omit()


class UsesAssetError(Exception):
    """A template uses the asset, or something else that is not known yet."""


class AssetView(NoText):
    """``asset`` in templates: a view of :class:`Facts`. ``Need`` and ``NoAssetError`` pass through."""

    __slots__ = ("_facts",)

    def __init__(self, facts: Facts | None) -> None:
        self._facts = facts

    def look(self, name: str) -> Any:
        """Return a fact; raises ``AttributeError`` if the server does not report it."""
        if self._facts is None:
            raise UsesAssetError(name)
        return self._facts.get(name)

    def why_not(self, name: str) -> str:
        """Return why a fact that follows from others is not known; empty where the server does not report it."""
        try:
            self.look(name)
        except AttributeError as error:
            return str(error).partition(": ")[2]
        return ""

    def names(self) -> Iterable[str]:
        """Return the names of the facts read so far."""
        return self._facts.names() if self._facts is not None else ()


class PathPartView(AssetView):
    """``asset`` in the template of a path: each text of the server is one part of it, as ``export`` names files."""

    __slots__ = ()

    def look(self, name: str) -> Any:
        """Return a fact, whose texts cannot lead to another folder."""
        return as_path_parts(super().look(name))


def as_path_parts(value: Any) -> Any:
    """Return a value whose texts are safe names; also the keys of mappings, unless they are safe as they are.

    >>> as_path_parts(["AC/DC", ""]), as_path_parts({"dc:subject": "..", "../x": 1})
    (['AC_DC~5a5abe39', ''], {'dc:subject': '_~5ec1f7e7', '_.._x~d6b96a97': 1})
    """
    if isinstance(value, XmpByName):
        return value.shown_by(_safe_text)
    if isinstance(value, str):
        return _safe_text(value)
    if isinstance(value, Mapping):
        return {_safe_key(key): as_path_parts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_path_parts(item) for item in value]
    return value


def _safe_text(text: str) -> str:
    return text and safe_name(text)


def _safe_key(key: Any) -> Any:
    is_safe = not isinstance(key, str) or re.fullmatch(r"\w[\w:-]*", key)
    return key if is_safe else safe_name(key)


class EnvView(NoText):
    """``env`` in templates: the environment. ``lenient``: a variable that is not set counts as not known yet."""

    __slots__ = ("_lenient", "values")

    def __init__(self, values: Mapping[str, str], *, lenient: bool = False) -> None:
        self.values = values
        self._lenient = lenient

    def look(self, name: str) -> str:
        """Return a variable of the environment; raises ``AttributeError`` if it is not set."""
        try:
            return self.values[name]
        except KeyError as error:
            if self._lenient:
                raise UsesAssetError(name) from error
            raise AttributeError(name) from error

    def names(self) -> Iterable[str]:
        """Return the names of all variables."""
        return self.values


def mark_text(value: Any, tracker: SecretTracker, node: SourceNode) -> MarkedText:
    """Mark a rendered text as secret; raises :class:`InputError` for a value that cannot be redacted."""
    try:
        return tracker.add(value)
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy, kind="secret") from None
