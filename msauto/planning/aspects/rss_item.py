"""Items of an RSS channel: PUT a file, DELETE a guid (interface, «RSS add data», «RSS delete data»).

The interface shows neither what a channel looks like nor what a file's name has to do with a guid: an item is
recognised by its guid, by the one that we learned, or by its file's name (field notes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from xml.sax.saxutils import escape

from msauto.model.live import RssChannel, RssItem
from msauto.model.plan import Body, Expect, Json
from msauto.model.spec import ServerSpec
from msauto.model.wanted import ABSENT, RssItemWanted, Said, Source
from msauto.planning.compare import instant, item_field, item_matches
from msauto.planning.draft import Draft, left_alone, refuse
from msauto.planning.order import Phase
from msauto.server import requests

_ORDER = ("title", "link", "description", "pubDate", "guid")


@dataclass(frozen=True, slots=True)
class RssScene:
    """One channel as this aspect sees it."""

    server: ServerSpec
    channel: RssChannel
    memory: Mapping[str, Json] = field(default_factory=dict)
    still: Mapping[str, Json] = field(default_factory=dict)  # what an item must still say to be touched (undo)


def plan_items(scene: RssScene, wanted: Sequence[Said[RssItemWanted]], exactly: Source | None, draft: Draft) -> None:
    """Bring the channel's items to what is wanted; with ``exactly`` nothing else stays."""
    draft.look("items")
    kept: set[str] = set()
    new: list[str] = []
    unrecognised: list[str] = []
    for said in wanted:
        live = _recognise(scene, said.value)
        if _is_left(scene, said.value, live, draft):
            kept |= {live.guid} if live else set()
            continue
        if said.value.present:
            kept |= {live.guid} if live else set()
            if live is None:
                new.append(said.value.guid)
            if live is None and _unseen(scene, said.value.guid):
                unrecognised.append(said.value.guid)
            _put_if_needed(scene, said, live, draft)
        elif live is not None:
            _delete(scene, live, said.source, draft)
            kept.add(live.guid)
    if exactly:
        _remove_others(scene, kept, unrecognised, exactly, draft, guarded=bool(new))


def _is_left(scene: RssScene, wanted: RssItemWanted, live: RssItem | None, draft: Draft) -> bool:
    """Tell whether an item is left alone, for it does not say any more what the run wrote (undo)."""
    if wanted.guid not in scene.still:
        return False
    still = scene.still[wanted.guid]
    is_as_wanted = live is not None and wanted.present and item_matches(_content(scene, wanted), live)
    if is_as_wanted or (live is None and (not wanted.present or still is None)):
        return False
    if live is not None and isinstance(still, dict) and item_matches(still, live, still):
        return False
    shown: Json = _shown(live, {}) if live else None
    draft.warnings.append(left_alone(f"channel {scene.channel.name}: item {wanted.guid}", shown, still))
    return True


def _recognise(scene: RssScene, wanted: RssItemWanted) -> RssItem | None:
    by_guid = {item.guid: item for item in scene.channel.items}
    return next((by_guid[guid] for guid in _guids(scene, wanted) if guid in by_guid), None)


def _guids(scene: RssScene, wanted: RssItemWanted) -> tuple[str, ...]:
    """Return the guids that the item may show under, the most certain first."""
    files = [_file(wanted)] if wanted.present or wanted.file else [f"{wanted.guid}.txt", f"{wanted.guid}.xml"]
    stems = [file.rpartition(".")[0] or file for file in files]
    fixed = {"item": [wanted.guid], "file": files, "stem": stems}.get(scene.server.dialect.rss_guid)
    learned = scene.memory.get(f"rss-guid:{wanted.guid}")
    named = [wanted.guid, *([str(learned)] if learned else []), *files, *stems] if fixed is None else fixed
    return tuple(dict.fromkeys(named))


def _file(wanted: RssItemWanted) -> str:
    ending = "txt" if wanted.item is ABSENT else "xml"
    return wanted.file or f"{wanted.guid}.{ending}"


def _written(scene: RssScene, guid: str) -> dict[str, Json]:
    """Return what we last wrote of an item: its content, and whether the channel showed it afterwards."""
    kept = scene.memory.get(f"rss_item:{guid}")
    return kept if isinstance(kept, dict) else {}


def _unseen(scene: RssScene, guid: str) -> bool:
    """Tell whether we wrote the item before and could not recognise it in the channel then."""
    return _written(scene, guid).get("seen") is False


def _content(scene: RssScene, wanted: RssItemWanted) -> dict[str, Json]:
    """Return what the file says, as it is compared: what is sent as a text is compared as a text."""
    if wanted.item is not ABSENT and _is_document(scene, wanted):
        return {"item": dict(wanted.item)}
    return {"text": _as_text(wanted)}


# Changes -------------------------------------------------------------------------------------------------------


def _put_if_needed(scene: RssScene, said: Said[RssItemWanted], live: RssItem | None, draft: Draft) -> None:
    wanted, content = said.value, _content(scene, said.value)
    if wanted.text is ABSENT and wanted.item is ABSENT and live is not None:
        return
    earlier = _written(scene, wanted.guid)
    earlier_content = earlier.get("content")
    remembered = earlier_content if isinstance(earlier_content, dict) else None
    if live is not None and item_matches(content, live, remembered) and _carries(scene, wanted, live):
        return
    if live is None and _unseen(scene, wanted.guid) and remembered == content:
        return  # the channel never showed it under a name that we know, and it is as we wrote it
    _check_fits(scene, said)
    before: Json = _shown(live, content) if live is not None else None
    after: Json = content.get("item", content)
    number = draft.change(
        "change" if live else "add", "rss_item", wanted.guid, before=before, after=after, source=said.source
    )
    if live is not None and scene.server.dialect.rss_update == "delete_put":
        request = requests.delete_rss(scene.channel.name, live.guid)
        draft.send(Phase.RSS_PUT, request, [number], Expect("rss_item", live.guid, None))
    body = _body(scene, wanted)
    request = requests.put_rss(scene.channel.name, _file(wanted), body)
    draft.send(Phase.RSS_PUT, request, [number], _expect(scene, wanted, content))


def _expect(scene: RssScene, wanted: RssItemWanted, content: Mapping[str, Json]) -> Expect:
    guids: Json = list(_guids(scene, wanted))
    others: Json = [item.guid for item in scene.channel.items]
    learn = scene.server.dialect.rss_guid == "auto"
    return Expect("rss_item", wanted.guid, {**content, "guids": guids, "others": others, "learn": learn})


def _shown(item: RssItem, content: Mapping[str, Json]) -> Json:
    fields = content.get("item")
    names = fields if isinstance(fields, dict) else ("title", "description")
    return {name: item_field(item, name) for name in names}


def _delete(
    scene: RssScene, live: RssItem, source: Source, draft: Draft, *, exactly: bool = False, guarded: bool = False
) -> None:
    shown: Json = {
        name: text for name in ("title", "description", "link", "pubDate") if (text := item_field(live, name))
    }
    number = draft.change("delete", "rss_item", live.guid, before=shown, after=None, source=source, exactly=exactly)
    request = replace(requests.delete_rss(scene.channel.name, live.guid), guarded=guarded)
    draft.send(Phase.RSS_DELETE, request, [number], Expect("rss_item", live.guid, None))


def _remove_others(
    scene: RssScene,
    kept: set[str],
    unrecognised: Sequence[str],
    exactly: Source,
    draft: Draft,
    *,
    guarded: bool,
) -> None:
    """Delete what the list does not name.

    ``guarded``: what is new to us may be one of the others under a guid that we cannot know, and our PUT may have
    replaced it: so nothing goes before everything new was recognised in the channel (field notes).
    """
    others = [item for item in scene.channel.items if item.guid not in kept]
    if others and unrecognised:
        draft.warnings.append(
            f"channel {scene.channel.name}: nothing is removed, for {', '.join(unrecognised)} was written before and "
            "cannot be recognised: it may be one of the others"
        )
        return
    for item in others:
        _delete(scene, item, exactly, draft, exactly=True, guarded=guarded)
    if others and not kept and not any(change.action == "add" for change in draft.changes):
        draft.emptied.append(("rss_item", len(others)))


# Bodies --------------------------------------------------------------------------------------------------------


def _body(scene: RssScene, wanted: RssItemWanted) -> Body:
    """Return the file's content: the text for a ``.txt``, an RSS ``item`` document for an ``.xml`` (field notes)."""
    if _is_document(scene, wanted):
        return Body(_document(wanted).encode(), "application/xml; charset=utf-8")
    return Body(_as_text(wanted).encode())


def _is_document(scene: RssScene, wanted: RssItemWanted) -> bool:
    return scene.server.dialect.sends_document(_file(wanted))


def _lost(scene: RssScene, wanted: RssItemWanted) -> dict[str, str]:
    """Return what is wanted of an item that would be sent as a text, and that no text can carry."""
    if wanted.item is ABSENT or _is_document(scene, wanted):
        return {}
    return {name: value for name, value in wanted.item.items() if value and name not in {"title", "description"}}


def _carries(scene: RssScene, wanted: RssItemWanted, live: RssItem) -> bool:
    """Tell whether a live item has what no text could give it."""
    lost: dict[str, Json] = dict(_lost(scene, wanted))
    return not lost or item_matches({"item": lost}, live)


def _check_fits(scene: RssScene, said: Said[RssItemWanted]) -> None:
    """Refuse an item that would be sent as a text and holds what no text can carry."""
    lost = _lost(scene, said.value)
    if lost:
        raise refuse(
            f"item {said.value.guid} is sent as a text (rss_body: {scene.server.dialect.rss_body}), which cannot carry "
            f"its {' and '.join(lost)}",
            said.source,
            "leave that out; or set `rss_body: item` in the server's dialect if the server takes item documents",
        )


def _as_text(wanted: RssItemWanted) -> str:
    if wanted.item is ABSENT:
        return "" if wanted.text is ABSENT else wanted.text
    lines = [wanted.item.get("title"), wanted.item.get("description")]
    return "\n".join(line for line in lines if line)


def _document(wanted: RssItemWanted) -> str:
    if wanted.item is ABSENT:
        title, _, description = ("" if wanted.text is ABSENT else wanted.text).partition("\n")
        fields = {"title": title} | ({"description": description} if description else {})
    else:
        fields = dict(wanted.item)
    fields["guid"] = wanted.guid
    ordered = [*(name for name in _ORDER if name in fields), *(name for name in fields if name not in _ORDER)]
    lines = [f"  <{name}>{escape(_value(name, fields[name]))}</{name}>" for name in ordered]
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', "<item>", *lines, "</item>", ""])


def _value(name: str, text: str) -> str:
    """Return a value as RSS spells it: a date as RFC 2822, whatever the playbook's form."""
    time = instant(text) if name == "pubDate" else None
    return format_datetime(time) if time else text
