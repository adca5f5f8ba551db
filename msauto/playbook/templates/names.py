"""The names that templates can use, and what some of them stand for; without Jinja2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msauto.documents.document import SourceNode
from msauto.model.facts import Facts
from msauto.playbook.templates.secret_tracking import TaintTracker, TemplateFunctionError
from msauto.secrets.marked_text import MarkedText


class TemplateNames(Protocol):
    """The names that a template can use: a mapping that computes values on demand."""

    def __contains__(self, name: object, /) -> bool:
        """Return whether a name is defined."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of a name."""

    def known(self) -> Iterable[str]:
        """Return all names."""

    @property
    def taint(self) -> TaintTracker:
        """The tracker of the secrets of the run."""


class Omit:
    """``omit`` in templates removes its key: ``"{{ comment | default(omit) }}"``."""

    __slots__ = ()

    def __str__(self) -> str:
        from jinja2.exceptions import SecurityError

        raise SecurityError("omit removes a key, so it must be the whole value")

    __repr__ = __format__ = __str__  # type: ignore[assignment]

    def __reduce__(self) -> str:
        return "OMIT"


OMIT = Omit()


class UsesAssetError(Exception):
    """A template uses the asset, or something else that is not known yet."""


class AssetView:
    """``asset`` in templates: a view of :class:`Facts`. ``Need`` and ``NoAssetError`` pass through."""

    __slots__ = ("_facts",)

    def __init__(self, facts: Facts | None) -> None:
        self._facts = facts

    def look(self, name: str) -> Any:
        """Return a fact; raises ``AttributeError`` if the server does not report it."""
        if self._facts is None:
            raise UsesAssetError(name)
        return self._facts.get(name)

    def names(self) -> Iterable[str]:
        """Return the names of the facts read so far."""
        return self._facts.names() if self._facts is not None else ()


class EnvView:
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


def mark_text(value: Any, tracker: TaintTracker, node: SourceNode) -> MarkedText:
    """Mark a rendered text as secret; raises :class:`InputError` for a value that cannot be redacted."""
    try:
        return tracker.add(value)
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy, kind="secret") from None
