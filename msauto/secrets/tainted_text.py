"""What ``secret`` marks, and what comes of it: a text that a marked one took part in is secret as well.

Taint goes by leaf: if a secret was touched while one template was evaluated, all that comes out of that template is
secret, whatever was done with it. A value carries its mark by its class, :class:`Marked`; of what cannot carry one
(true, false, nothing) the variable is remembered instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from jinja2 import pass_context
from jinja2.runtime import Context, Undefined

from msauto.interface.fields import LINK_FIELDS, MARKER_ATTRIBUTES, SEGMENT_ATTRIBUTES
from msauto.model.facts import XmpByName
from msauto.playbook.yaml.document import SourceNode
from msauto.secrets.encodings import SHORTEST, can_hide
from msauto.secrets.taint import HIDDEN, SecretsFound

TAG = "!secret"
_TOO_SHORT = f"a secret of fewer than {SHORTEST} signs cannot be hidden"
_LONGER = "give it a longer one: what short texts hide, their absence tells"


class TaintedText(str):
    """A text that is secret, or that was made with one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(HIDDEN)


class TaintError(Exception):
    """A text that cannot be marked; the message never shows it. ``remedy`` says what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def why_unmarkable(text: str) -> tuple[str, str]:
    """Say why a text cannot be hidden, without showing it; returns message and remedy."""
    return _TOO_SHORT if text.strip() else "the secret is empty", _LONGER if text.strip() else "give it its value"


class TaintTracker:
    """The secrets of one run while templates are evaluated: which there are, and whether one was just touched."""

    __slots__ = ("_touched", "found", "lost")

    def __init__(self) -> None:
        self.found = SecretsFound()
        self.lost: list[SourceNode] = []
        """Where values stand that were made with a secret and cannot carry a mark; who asks takes them away."""
        self._touched: list[bool] = []

    def watch(self) -> None:
        """Begin to evaluate one template; :meth:`seen` ends it."""
        self._touched.append(False)

    def seen(self) -> bool:
        """End it, and tell whether a secret was touched meanwhile."""
        return self._touched.pop()

    @property
    def touched(self) -> bool:
        """Whether the template that is evaluated has touched a secret so far."""
        return bool(self._touched) and self._touched[-1]

    def touch(self) -> None:
        """Note that a secret takes part in the template that is evaluated."""
        if self._touched:
            self._touched[-1] = True

    def add(self, value: object) -> TaintedText:
        """Mark what somebody calls secret; raises :class:`MarkError` for what is no text, or too short a one."""
        if value == HIDDEN:
            return TaintedText(HIDDEN)  # hidden already: `msauto vars` does not know the environment
        if isinstance(value, bool | Mapping | None) or (not isinstance(value, str) and hasattr(value, "__iter__")):
            raise TaintError("only a text can be secret", "mark each text by itself: | map('secret')")
        text = str(value)
        if not can_hide(text):
            raise TaintError(*why_unmarkable(text))
        self.found.add(text)
        return TaintedText(text)

    def note(self, data: Any, *, templates: bool = False) -> None:
        """Take up what a text from outside tags as secret; ``templates``: also those, for they will not be rendered."""
        for _, text in marked_ways(data):
            if templates or ("{{" not in text and "{%" not in text):
                self.found.add(str(text))

    def taint(self, value: Any, node: SourceNode) -> Any:
        """Return what came of a secret at ``spot``, marked. What cannot carry a mark is noted under ``lost``."""
        if isinstance(value, str):
            return self._carry(value)
        if isinstance(value, list):
            return [self.taint(each, node) for each in value]
        if isinstance(value, dict):
            if any(map(self.found.known().in_, value)):
                self.lost.append(node)
            return {key: self.taint(each, node) for key, each in value.items()}
        if isinstance(value, bool | None):
            self.lost.append(node)
            return value
        return self._carry(value.isoformat() if isinstance(value, datetime | date) else str(value))

    def _carry(self, text: str) -> TaintedText:
        if can_hide(text) and text != HIDDEN:
            self.found.add(str(text))
        return TaintedText(text)


def holds_mark(value: Any) -> bool:
    """Tell whether a value is marked, or holds what is."""
    if isinstance(value, TaintedText):
        return True
    if isinstance(value, XmpByName):
        return False  # all of it comes from the server, and looking at it would ask for it
    if isinstance(value, dict):
        return any(map(holds_mark, value.values())) or any(isinstance(key, TaintedText) for key in value)
    views = list | tuple | set | frozenset | type({}.values()) | type({}.items())
    return isinstance(value, views) and any(map(holds_mark, value))


@pass_context
def touched(context: Context, value: Any) -> Any:
    """Return a value that a template uses, and note if a secret is in it: what each name in a template goes through."""
    marks = marks_of(context)
    if marks is not None and marks.found and not isinstance(value, Undefined):
        owner = getattr(value, "__self__", None)  # of a method, what it is called on
        if holds_mark(value) or (owner is not None and holds_mark(owner)):
            marks.touch()
    return value


@pass_context
def opened(context: Context, value: Any) -> Any:
    """Return a value that something is looked up in, and note if it is a secret itself: ``token[0]``."""
    if isinstance(value, TaintedText):
        marks = marks_of(context)
        if marks is not None:
            marks.touch()
    return value


@pass_context
def secret(context: Context, value: Any) -> str:
    """Mark a text as secret: it is sent, and never shown or kept."""
    marks = marks_of(context)
    if marks is None:
        raise TaintError("nothing can be marked as secret here")
    marked = marks.add(value if isinstance(value, str) else _plain(value))
    marks.touch()
    return marked


def _plain(value: Any) -> Any:
    if isinstance(value, Undefined):
        str(value)  # raises: it is not there
    return value


def marks_of(context: Context) -> TaintTracker | None:
    """Return the marks of the run that a template is evaluated in."""
    return marks_in(context.parent.get("__scope__"))


def marks_in(names: Any) -> TaintTracker | None:
    """Return the marks of the run that names belong to; ``None`` where they belong to none."""
    surroundings = getattr(names, "surroundings", None)
    files = getattr(surroundings, "files", None)
    found = getattr(files, "marks", None)
    return found if isinstance(found, TaintTracker) else None


# Where a secret may stand -----------------------------------------------------------------------------------------

Way = tuple[str | int, ...]


def marked_ways(data: Any, way: Way = ()) -> Iterator[tuple[Way, TaintedText]]:
    """Yield what is marked in plain data, and the way to it."""
    if isinstance(data, TaintedText):
        yield way, data
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from marked_ways(value, (*way, name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from marked_ways(value, (*way, index))


def unfit(data: Any, is_allowed: Callable[[Way], bool]) -> Iterable[tuple[Way, str, str]]:
    """Yield the ways to secrets that cannot be hidden where they stand, with message and remedy."""
    for way, text in marked_ways(data):
        if not is_allowed(way):
            yield way, NOT_HERE, MAY_STAND
        elif not can_hide(text) and text != HIDDEN:
            yield way, f"what comes of the secret here has fewer than {SHORTEST} signs, and cannot be hidden", _SEND


NOT_HERE = "a secret cannot stand here: this is shown in plans, logs and the ledger"
MAY_STAND = "secrets may stand in the texts that are written: fields, xmp, titles of segments, rss text, params"
_SEND = "send the secret itself, or a longer text"

_FREE: Mapping[str, frozenset[tuple[str, ...]]] = {
    "asset": frozenset(
        {
            *(("fields", each.name) for each in LINK_FIELDS if each.may_be_secret),
            ("xmp", "*"),
            ("xmp", "*", "#"),
            ("segmentation", "title"),
            *(("segments", "#", each.name) for each in SEGMENT_ATTRIBUTES if each.may_be_secret),
            *(("markers", "#", each.name) for each in MARKER_ATTRIBUTES if each.may_be_secret),
        }
    ),
    "rss": frozenset({("items", "#", "text"), *(("items", "#", "item", n) for n in ("title", "description", "link"))}),
    "command": frozenset({("params", "*")}),
    "thumbnail": frozenset({("params", "*")}),
}
"""The values of each module that are written and nothing else: ``*`` is any name, ``#`` any number in a list."""


def may_be_secret(module: str, way: Way) -> bool:
    """Tell whether a value of a task may be secret: what names a target or decides over it would have to be shown."""
    return any(_fits(way, allowed) for allowed in _FREE.get(module, ()))


def _fits(way: Way, allowed: tuple[str, ...]) -> bool:
    if len(way) != len(allowed):
        return False
    return all(
        isinstance(part, int) if sign == "#" else isinstance(part, str) and sign in {"*", part}
        for part, sign in zip(way, allowed, strict=True)
    )
