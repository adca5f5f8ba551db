"""Which ``dialect:`` of the inventory fits a server: from the simulator's switches to our keys, as a table.

Where several values fit, the first is the careful one (the default where that works) and the last the one that saves
requests or trusts the server more; a pairwise parameter of the key's name with ``our_`` before it takes its pick.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msauto.simulator import SimDialect
from tests.dialects.pairwise import Row

PICKS = ("careful", "bold")
Fit = Callable[[SimDialect], tuple[str, ...]]


def _by(switch: str, table: Mapping[str, tuple[str, ...]]) -> Fit:
    return lambda server: table[getattr(server, switch)]


def _titles(server: SimDialect) -> tuple[str, ...]:
    if server.ns_id == "no":
        return ("plain",)  # a colon means nothing there
    return ("ns",) if server.title_address == "ns" else ("plain", "ns")


def _guids(server: SimDialect) -> tuple[str, ...]:
    # A server that takes texts only never sees the guid of an item document: it names the item by its file.
    if server.rss_guid == "item" and server.rss_body == "text":
        return ("auto", "stem")
    return ("auto", server.rss_guid)


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
    "marker_update": _by("marker_update", {"clear": ("full",), "keep": ("full", "changed")}),
    "folder_missing": _by("folder_missing", {"refuse": ("refuse",), "create": ("refuse", "create")}),
    "link_delete": _by("link_delete", {"refuse": ("refuse",), "clip": ("refuse",), "by_title": ("refuse", "by_title")}),
    "link_title": lambda server: (server.link_title,),
    "rss_update": _by(
        "rss_update", {"replace": ("put", "delete_put"), "duplicate": ("delete_put",), "refuse": ("delete_put",)}
    ),
    "rss_guid": _guids,
    "rss_body": _by("rss_body", {"any": ("auto",), "text": ("text",), "item": ("item",)}),
    "position_origin": lambda server: (server.position_origin,),
    "title_address": _titles,
    "listing_depth": _by("listing_depth", {"deep": ("auto", "deep"), "shallow": ("auto", "shallow")}),
}


def parameters() -> dict[str, tuple[str, ...]]:
    """Return every switch of the simulator with its values, and a pick for each of our keys."""
    switches = {name: values for name, values in SimDialect.choices().items() if values}
    return switches | {"list_separator": (",", ";", "|")} | {f"our_{key}": PICKS for key in FITTING}


def server_of(row: Row) -> SimDialect:
    """Return the simulator's side of a row."""
    return SimDialect().with_values({name: value for name, value in row.items() if not name.startswith("our_")})


def ours_of(row: Row) -> dict[str, str]:
    """Return the inventory's side of a row: the ``dialect:`` that fits."""
    server = server_of(row)
    return {key: fit(server)[PICKS.index(row[f"our_{key}"]) and -1] for key, fit in FITTING.items()}


def auth_of(server: SimDialect) -> dict[str, object]:
    """Return the ``auth:`` that the server wants."""
    kinds: dict[str, dict[str, object]] = {
        "none": {},
        "basic": {"basic": {"username": server.auth_user, "password": server.auth_password}},
        "bearer": {"bearer": server.auth_token},
        "header": {"headers": {server.auth_header: server.auth_token}},
    }
    return kinds[server.auth]
