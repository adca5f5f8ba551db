"""Named texts: ``<Attr name="…">…</Attr>``, and the ways in which servers bend that."""

from __future__ import annotations

from msauto.interface.fields import NAMES
from msauto.model.live import whole
from msauto.server.parsers.xml import Element, attributes, children, local, text_of, unreadable

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
_KNOWN = {name: name for name in NAMES}
"""The names of the interface, each held once: of thousands of assets that are kept they would be nearly a half."""


def read_attrs(element: Element, *, skip: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the named texts of an element: ``Attr`` children, and plain children by their own name.

    ``skip`` are names of children to leave out, in lower case.
    """
    found: dict[str, str] = {}
    for child in children(element):
        if child.tag == "Attr" and not len(child) and (name := child.get("name")) is not None:
            # As the interface has it: nearly always, and fast.
            found[_KNOWN.get(name, name)] = child.text or child.get("value") or ""
            continue
        kind = local(child)
        if kind.lower() in skip:
            continue
        own = attributes(child)
        if kind.lower() == "attr" and "name" in own:
            found[own["name"]] = text_of(child) or own.get("value", "")
        elif not len(child):
            found.setdefault(kind, text_of(child) or own.get("value", ""))
    return found


def read_flag(text: str | None) -> bool | None:
    """Read a boolean as text; only ``true`` is known from the interface («States and transitions»)."""
    word = (text or "").strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def read_integer(text: str | None) -> int | None:
    """Read a whole number; ``None`` where there is none."""
    return whole(text)


def need_integer(text: str | None, what: str) -> int:
    """Read a whole number without which the thing cannot be told from another; raise if it is none."""
    number = read_integer(text)
    if number is None:
        shown = "is missing" if text is None else f"is {text[:40]!r}, no whole number"
        raise unreadable(f"{what} {shown}")
    return number
