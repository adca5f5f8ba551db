"""Which items of a channel a task means, and in which files they are: the one lookup of plan and verification.

The interface shows neither what a channel looks like nor what a file's name has to do with a guid: an item is found by
its guid, by the guid that we learned, or by its file's name (field notes, «what identifies an RSS item»).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msauto.diffing.builder import refuse
from msauto.diffing.comparison import item_matches, plain
from msauto.errors import PlanningError
from msauto.interface.rss_files import default_file, ending_of, file_key, form_of, is_file_name, stem_of
from msauto.model.desired import ABSENT, DesiredRssItem, Sourced
from msauto.model.live import RssChannel, RssItem
from msauto.model.plan import Json
from msauto.model.server import ServerSpec

_SET_DIALECT = "set `rss_guid` in the server's dialect (msauto probe may show it)"


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """One channel as this aspect sees it."""

    server: ServerSpec
    channel: RssChannel
    memory: Mapping[str, Json] = field(default_factory=dict)
    still: Mapping[str, Json] = field(default_factory=dict)  # what an item must still say to be touched (undo)

    def written(self, guid: str) -> Mapping[str, Json]:
        """Return what we last wrote of an item: content, file, and whether the channel showed it afterwards."""
        kept = self.memory.get(f"rss_item:{guid}")
        return kept if isinstance(kept, dict) else {}

    def is_document(self, desired: DesiredRssItem) -> bool:
        """Tell whether an item goes as an ``item`` document, not as a text."""
        return self.server.dialect.sends_document(file_of(desired))


def file_of(desired: DesiredRssItem) -> str:
    """Return the file that an item is put as."""
    return desired.file or default_file(desired.guid, text=desired.item is ABSENT)


def shown_as(items: Iterable[RssItem], guids: Iterable[str]) -> tuple[RssItem, ...]:
    """Return all items that show under one of the guids; an item without a guid is never one of them."""
    known = {plain(guid) for guid in guids} - {""}
    return tuple(item for item in items if plain(item.guid) in known)


@dataclass(frozen=True, slots=True)
class MatchedItem:
    """A desired item with the live items that are it, the guids that it may show under, and who else it may be."""

    sourced: Sourced[DesiredRssItem]
    items: tuple[RssItem, ...]
    guids: tuple[str, ...]
    doubtful: tuple[str, ...]


def find_items(context: ChannelContext, desired: Sequence[Sourced[DesiredRssItem]]) -> list[MatchedItem]:
    """Return what each desired item is in the channel. No guid counts for two of them: the more certain one has it."""
    names = [_names(context, sourced.value) for sourced in desired]
    owners: dict[str, int] = {}
    for rank in range(3):  # the own guid before a learned one, and that before a file's name
        for number, (certain, likely) in enumerate(names):
            for name in (certain[:1], certain[1:], likely)[rank]:
                owners.setdefault(plain(name), number)
    mine = [
        tuple([n for n in group if owners[plain(n)] == number] for group in both) for number, both in enumerate(names)
    ]
    return [_meant(context, sourced, *groups) for sourced, groups in zip(desired, mine, strict=True)]


def _meant(
    context: ChannelContext, sourced: Sourced[DesiredRssItem], certain: Sequence[str], likely: Sequence[str]
) -> MatchedItem:
    live = context.channel.items
    groups = [shown_as(live, certain), *(shown_as(live, [name]) for name in likely)]
    items = next((group for group in groups if group), ())
    own = {plain(item.guid) for item in items}
    doubtful = tuple(dict.fromkeys(item.guid for item in shown_as(live, likely) if plain(item.guid) not in own))
    strange = set(map(plain, doubtful))
    guids = tuple(dict.fromkeys(name for name in (*certain, *likely) if plain(name) not in strange))
    return MatchedItem(sourced, items, guids, doubtful)


def _names(context: ChannelContext, desired: DesiredRssItem) -> tuple[list[str], list[str]]:
    """Return the guids under which an item is certainly meant, and those that its file's name would give it."""
    guid, kept = desired.guid, context.written(desired.guid).get("file")
    given = [file_of(desired)] if desired.present or desired.file else []
    files = given or [default_file(guid, text=True), default_file(guid, text=False)]
    stems = [stem_of(file) for file in files]
    known = [guid, *([str(kept)] if kept else [])]
    match context.server.dialect.rss_guid:
        case "item":
            return [guid], [] if desired.present and context.is_document(desired) else stems
        case "file":
            return (given, []) if given else (known, files)
        case "stem":
            return (stems, []) if given else ([stem_of(name) if name != guid else name for name in known], stems)
    learned = context.memory.get(f"rss-guid:{guid}")
    return [guid, *([str(learned)] if learned else [])], [*files, *stems]


# Files ---------------------------------------------------------------------------------------------------------


def is_in_file(context: ChannelContext, desired: DesiredRssItem, live: RssItem) -> bool:
    """Tell whether a PUT of the desired file replaces a live item, as far as can be known."""
    file = file_of(desired)
    if context.server.dialect.rss_guid == "file" or _is_named(context, live, file):
        return plain(live.guid) == plain(file)
    kept = context.written(desired.guid)
    content = kept.get("content")
    if kept.get("seen") and (_has_form(context, live, str(kept.get("file", file))) or _says(live, content)):
        return bool(kept.get("file", file) == file)
    return is_file_name(live.guid) and plain(stem_of(file)) == plain(live.guid) and _has_form(context, live, file)


def _is_named(context: ChannelContext, live: RssItem, file: str) -> bool:
    return context.server.dialect.rss_guid == "auto" and plain(live.guid) == plain(file)


def _says(live: RssItem, content: Json) -> bool:
    return isinstance(content, dict) and item_matches(content, live, content)


def _has_form(context: ChannelContext, live: RssItem, file: str) -> bool:
    """Tell whether what a live item shows may come of a file with this name's ending."""
    form = form_of(live)
    if not context.server.dialect.ending_decides or form is None:
        return True
    return ending_of(file).lower() == ".xml" if form == "item" else ending_of(file).lower() == ".txt"


def check_room(context: ChannelContext, meant: MatchedItem, going: bool) -> None:
    """Refuse a PUT whose file may be that of an item that is not meant; ``going``: what is not meant is removed."""
    if context.server.dialect.rss_guid in {"file", "stem"}:
        return
    file, own = file_of(meant.sourced.value), {id(item) for item in meant.items}
    for other in context.channel.items:
        if id(other) in own or not other.guid:
            continue
        kept = context.written(other.guid).get("file")
        named = _is_named(context, other, file) or (
            plain(other.guid) == plain(stem_of(file)) and _has_form(context, other, file) and kept in {None, file}
        )
        if named or (kept == file and not going):
            raise refuse(
                f"item {meant.sourced.value.guid} is put as {file}, which may be the file of the live item {other.guid}",
                meant.sourced.source,
                f"give the item another `file:`, or {_SET_DIALECT}",
            )


def check_certain(meant: MatchedItem) -> None:
    """Refuse to delete an item where another one may be meant as well."""
    if meant.doubtful:
        shown = " or ".join(dict.fromkeys([*(item.guid for item in meant.items), *meant.doubtful]))
        raise refuse(
            f"item {meant.sourced.value.guid} may be any of the live items {shown}",
            meant.sourced.source,
            f"{_SET_DIALECT}, or write the guid of the one that is meant as the channel shows it",
        )


def check_names(context: ChannelContext, desired: Sequence[Sourced[DesiredRssItem]]) -> None:
    """Refuse two items that would be one file, or that the channel may show under one guid."""
    seen: dict[str, Sourced[DesiredRssItem]] = {}
    for sourced in sorted(desired, key=lambda sourced: not sourced.value.present):
        for name in _shown_names(context, sourced.value):
            first = seen.setdefault(name, sourced)
            if first is not sourced and first.value.present:
                raise _clash(first, sourced, name)


def _shown_names(context: ChannelContext, desired: DesiredRssItem) -> Iterator[str]:
    file = file_of(desired)
    if not desired.present:
        yield file_key(desired.guid)
        return
    yield f"file {file_key(file)}"
    dialect = context.server.dialect.rss_guid
    if dialect == "auto" or (dialect == "item" and context.is_document(desired)):
        yield file_key(desired.guid)
    if dialect in {"auto", "file"}:
        yield file_key(file)
    if dialect in {"auto", "stem"} or (dialect == "item" and not context.is_document(desired)):
        yield file_key(stem_of(file))


def _clash(one: Sourced[DesiredRssItem], other: Sourced[DesiredRssItem], name: str) -> PlanningError:
    guids = (
        f"item {one.value.guid} of {one.source.description} and item {other.value.guid} of {other.source.description}"
    )
    if name.startswith("file "):
        return refuse(f"{guids} have one file: {file_of(other.value)}", other.source, "give each a `file:` of its own")
    return refuse(
        f"{guids} may show under one guid, for the file of one is {file_of(one.value)}",
        other.source,
        f"give the item another `file:`, or {_SET_DIALECT}",
    )
