"""Which ``dialect:`` of the inventory fits a server: from the simulator's switches to our keys, as a table.

Where several values fit, the first is the careful one: the default where that works (``auto`` for what the server
shows). The last saves requests or trusts the server more. In a row, our keys have the prefix ``our_``;
:func:`possible` returns whether values go together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product
from typing import get_args, get_type_hints
from zlib import crc32

from msauto.model.server import Dialect
from msauto.plugins.simulator.embedded import SimDialect
from tests import tables
from tests.dialects.pairwise import Row, pairwise

SEPARATORS = (",", ";", "|")
Fit = Callable[[SimDialect], tuple[str, ...]]


def _by(switch: str, table: Mapping[str, tuple[str, ...]]) -> Fit:
    return lambda server: table[getattr(server, switch)]


def _titles(server: SimDialect) -> tuple[str, ...]:
    if server.ns_id == "no":
        return ("plain",)  # a colon means nothing there
    return ("ns",) if server.title_address == "ns" else ("plain", "ns")


def _guids(server: SimDialect) -> tuple[str, ...]:
    # A server that takes texts only never sees the guid of an item document: it names the item by its file.
    return (
        ("stem",) if server.rss_guid == "item" and server.rss_body == "text" else (server.rss_guid,)
    )


FITTING: Mapping[str, Fit] = {
    "not_found": _by(
        "not_found",
        {
            "404_text": ("auto", "status"),
            "404_empty": ("auto", "status"),
            "200_text": ("auto", "text"),
            "200_xml": ("auto", "text"),
            "500_text": ("auto", "text"),
        },
    ),
    "xmp_read": lambda _: ("auto", "never"),
    "list_separator": lambda server: (server.list_separator,),
    "segment_update": lambda server: (
        ("recreate", "overwrite") if server.segment_update == "overwrite" else ("recreate",)
    ),
    "segment_numbers": lambda server: (server.segment_numbers,),
    "marker_update": _by("marker_update", {"clear": ("full",), "keep": ("full", "changed")}),
    "folder_missing": _by(
        "folder_missing", {"refuse": ("refuse",), "create": ("refuse", "create")}
    ),
    "link_delete": lambda server: (
        ("refuse", "by_title")
        if (server.link_delete, server.link_titles) == ("by_title", "found")
        else ("refuse",)
    ),
    "link_title": lambda server: (
        ("address",) if server.link_titles == "found" else ("none", "unknown")
    ),
    "rss_update": _by(
        "rss_update",
        {"replace": ("put", "delete_put"), "duplicate": ("delete_put",), "refuse": ("delete_put",)},
    ),
    "rss_guid": _guids,
    "rss_body": _by("rss_body", {"any": ("auto",), "text": ("text",), "item": ("item",)}),
    "position_origin": lambda server: (server.position_origin,),
    "title_address": _titles,
}


LOOKS_AT: Mapping[str, tuple[str, ...]] = {
    "xmp_read": (),
    "title_address": ("ns_id", "title_address"),
    "rss_guid": ("rss_guid", "rss_body"),
    "link_delete": ("link_delete", "link_titles"),
    "link_title": ("link_titles",),
}
"""The switches that a fit depends on, where these are not just the one of its name."""


APART = frozenset({"marker_uid", "xmp_update"})
"""Switches that the pairwise set does not have: the generated worlds turn them on one by one."""


@cache
def parameters() -> dict[str, tuple[str, ...]]:
    """Return every switch of the simulator with its values, and every key of ours with its own.

    Most stories do not know titles of links that find their clip, or another one: link_titles.yml has them.
    """
    switches = {
        name: values
        for name, values in SimDialect.choices().items()
        if values and name not in APART
    }
    return (
        switches
        | {"list_separator": SEPARATORS, "link_titles": ("found", "nowhere")}
        | {f"our_{key}": values for key, values in _our_values().items()}
    )


@cache
def rows(seed: int = 0) -> tuple[Row, ...]:
    """Return servers with fitting keys, in which every two values that can meet do so in one of them."""
    return tuple(pairwise(parameters(), seed, possible))


def some_rows(name: str, count: int = 3) -> list[tuple[int, Row]]:
    """Return some rows for a story by its name, with their numbers: it keeps them, and other stories get others.

    They are for slow tests: none is returned where none of these runs.
    """
    if tables.only_fast:
        return []
    known = rows()
    first, step = crc32(name.encode()) % len(known), len(known) // count
    numbers = [(first + turn * step) % len(known) for turn in range(count)]
    return [(number, known[number]) for number in numbers]


def _our_values() -> dict[str, tuple[str, ...]]:
    hints = get_type_hints(Dialect)
    return {key: get_args(hints[key]) or SEPARATORS for key in FITTING}


def possible(row: Mapping[str, str]) -> bool:
    """Whether a row, or the part of one that is given, can be a server with a ``dialect:`` that fits it."""
    return all(_possible(group, tuple(row.get(name) for name in group)) for group in _groups())


@cache
def _groups() -> tuple[tuple[str, ...], ...]:
    """Parameters that depend on each other."""
    groups: list[set[str]] = []
    for key in FITTING:
        group = {f"our_{key}", *LOOKS_AT.get(key, (key,))}
        for other in [each for each in groups if each & group]:
            groups.remove(other)
            group |= other
        groups.append(group)
    return tuple(tuple(sorted(group)) for group in groups)


@cache
def _possible(group: tuple[str, ...], given: tuple[str | None, ...]) -> bool:
    known = parameters()
    choices = [
        known[name] if value is None else (value,) for name, value in zip(group, given, strict=True)
    ]
    return any(_fits(dict(zip(group, values, strict=True))) for values in product(*choices))


def _fits(row: Row) -> bool:
    server = server_of(row)
    ours = {
        name.removeprefix("our_"): value for name, value in row.items() if name.startswith("our_")
    }
    return all(value in FITTING[key](server) for key, value in ours.items())


def server_of(row: Row) -> SimDialect:
    """Return the simulator's side of a row."""
    return SimDialect().with_values(
        {name: value for name, value in row.items() if not name.startswith("our_")}
    )


def ours_of(row: Row) -> dict[str, str]:
    """Return the inventory's side of a row; where a row was bent and the two do not fit any more, what does."""
    server = server_of(row)
    sourced = {key: row.get(f"our_{key}", "") for key in FITTING}
    return {
        key: sourced[key] if sourced[key] in fit(server) else fit(server)[0]
        for key, fit in FITTING.items()
    }


def auth_of(server: SimDialect) -> dict[str, object]:
    """Return the ``auth:`` that the server wants."""
    kinds: dict[str, dict[str, object]] = {
        "none": {},
        "basic": {"basic": {"username": "ops", "password": server.auth_secret}},
        "bearer": {"bearer": server.auth_secret},
        "header": {"headers": {"X-Auth-Token": server.auth_secret}},
    }
    return kinds[server.auth]
