"""What other users do to the content: the changes that the faults `before` and `after` make.

A title that no clip has changes nothing. `%3A` and `%40` in a text stand for a colon and an at sign.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from urllib.parse import unquote

from msauto.simulator.state.state import ServerState, SimDatabase, SimEntry

Change = Callable[[ServerState], object]
_Found = tuple[SimDatabase, SimEntry]


def parse_change(text: str) -> Change:
    """`rename:OLD:NEW` → what makes this change; ValueError for another text."""
    name, *texts = map(unquote, text.split(":"))
    known = "; ".join((make.__doc__ or "").split("`")[1] for make in CHANGES.values())
    if name not in CHANGES or len(texts) != len(inspect.signature(CHANGES[name]).parameters) - 1:
        raise ValueError(f"unknown change {text!r}; known: {known}")
    return partial(_change, name, texts)


def _change(name: str, texts: list[str], state: ServerState) -> None:
    CHANGES[name](state, *texts)


def _find(state: ServerState, title: str) -> _Found | None:
    """Return the entry with a title, and its database; the first database that has it."""
    found = ((database, database.find(title)) for database in state.databases.values())
    return next(((database, entry) for database, entry in found if entry is not None), None)


def _rename(state: ServerState, old: str, new: str) -> None:
    """`rename:OLD:NEW`: give an entry another title."""
    if found := _find(state, old):
        found[0].change_entry(found[1], title=new)


def _swap(state: ServerState, one: str, other: str) -> None:
    """`swap:ONE:OTHER`: exchange the titles of two entries."""
    if (first := _find(state, one)) and (second := _find(state, other)):
        first[0].change_entry(first[1], title=other)
        second[0].change_entry(second[1], title=one)


def _delete(state: ServerState, title: str) -> None:
    """`delete:TITLE`: remove a clip with all its entries."""
    if found := _find(state, title):
        found[0].remove_clip(found[1].clip)


def _rerecord(state: ServerState, title: str) -> None:
    """`rerecord:TITLE`: put another recording, a day younger and with nothing written on it, in the place of a clip."""
    if found := _find(state, title):
        database, clip = found[0], found[1].clip
        database.remove_clip(clip)
        taken = datetime.fromisoformat(clip.create_time) + timedelta(days=1)
        again = replace(clip, file="", create_time=taken.isoformat(), entries=[], markers=[], segments=[], xmp={})
        database.put_clip(again, clip.home.folder, title)


def _edit(state: ServerState, title: str, field: str, value: str) -> None:
    """`edit:TITLE:FIELD:VALUE`: set a link field."""
    if found := _find(state, title):
        found[1].fields[field] = value


_MAKERS: tuple[Callable[..., None], ...] = (_rename, _swap, _delete, _rerecord, _edit)
CHANGES = {make.__name__.removeprefix("_"): make for make in _MAKERS}
