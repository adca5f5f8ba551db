"""What the second media server shows: listings, clips, XMP fields, channels (interface, «Resources»)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from tests.acceptance.other_world import LINK_FIELDS, MARKER_FIELDS, Clip, Folder, Habits, World, not_found, origin

Answer = tuple[int, str, bytes]
_NAMESPACES = 'xmlns:rdf="urn:rdf" xmlns:dc="urn:dc" xmlns:ext="urn:ext"'
_FALSE = {"true": "false", "True": "False", "1": "0", "yes": "no"}


def document(habits: Habits, text: str) -> Answer:
    """Wrap a root element as the server likes it."""
    form, declaration = habits.envelope, '<?xml version="1.0" encoding="utf-8"?>\n'
    if form == "cp1251":
        text = f'<?xml version="1.0" encoding="windows-1251"?>{text}'
        return 200, "text/xml", text.encode("cp1251", "xmlcharrefreplace")
    if form == "wrapped":
        text = f"<xml>{text}</xml>"
    elif form == "stray":
        text = f"{text}\n</xml>"
    elif form == "crlf":
        text = text.replace("><", ">\r\n<")
    elif form == "namespace":
        text = re.sub(r"^<(\w+)", r'<\1 xmlns="http://example.org/media"', text)
    elif form == "prefixed":
        text = re.sub(r"<(/?)(\w+)(?=[\s/>])", r"<\1m:\2", text)
        text = re.sub(r"^<([\w:]+)", r'<\1 xmlns:m="http://example.org/media"', text)
    elif form == "comment":
        text = f"<!-- made by a server --><?style none?>\n{text}"
    start = b"\xef\xbb\xbf" if form == "bom" else b""
    return 200, "text/xml; charset=utf-8", start + ("" if form == "nodecl" else declaration).encode() + text.encode()


def _number(habits: Habits, value: int) -> str:
    return {"zeros": f"{value:08d}", "dot": f"{value}.0"}.get(habits.numbers, str(value))


def _text(habits: Habits, value: str) -> str:
    return unicodedata.normalize("NFD", value) if habits.nfd else value


def _attrs(habits: Habits, attrs: Mapping[str, str]) -> str:
    pairs = sorted(attrs.items(), reverse=True) if habits.reverse else attrs.items()
    return "".join(f"<Attr name={quoteattr(name)}>{escape(value)}</Attr>" for name, value in pairs)


# Clips ---------------------------------------------------------------------------------------------------------


def show_clip(habits: Habits, clip: Clip) -> Answer:
    """Describe one asset («Detailed asset shape»)."""
    flag = habits.flag if clip["finalized"] else _FALSE[habits.flag]
    own = {
        "hires": clip["hires"], "archive": clip["archive"], "link_id": _number(habits, clip["link_id"]),
        "folder": _folder(habits, clip["folder"]),
    }  # fmt: skip
    own = {"finalized": flag} | ({} if habits.attrs == "sparse" else own)
    inner = [_marker(habits, clip, uid) for uid in clip["markers"]]
    inner += [_segment(habits, clip, number) for number in clip["segments"]]
    inner.append(_attrs(habits, _clip_attrs(habits, clip, clip["title"])))
    shown = "".join(f" {name}={quoteattr(value)}" for name, value in own.items())
    return document(habits, f"<Clip{shown}>{''.join(reversed(inner) if habits.reverse else inner)}</Clip>")


def _folder(habits: Habits, folder: Folder) -> str:
    plain = "/".join(name.replace("\\", "\\\\").replace("/", "\\/") for name in folder)
    forms = {
        "slash": f"/{plain}",
        "trailing": f"{plain}/",
        "database": f"NEWS/{plain}",
        "backslashes": "\\".join(folder),
    }
    return forms.get(habits.folder_attr, plain)


def _clip_attrs(habits: Habits, clip: Clip, title: str) -> dict[str, str]:
    fields, time = clip["fields"], clip["create_time"] + (".347" if habits.times == "fraction" else "")
    found = {
        "title": _text(habits, title), "frames": _number(habits, clip["frames"]),
        "frame_time": clip["frame_time"][: habits.frame_time + 2],
    }  # fmt: skip
    if habits.attrs == "sparse":
        return found
    found |= {
        "bps": "16", "channels": "2", "width": "1920", "height": "1080", "orig_name": "orig.mxf", "orig_type": "mxf",
        "first_frame": _number(habits, int(fields.get("first_frame") or 0)),
        "last_frame": _number(habits, int(fields.get("last_frame") or clip["frames"] - 1)),
        "create_time": time, "rec_time": time,
    }  # fmt: skip
    if habits.attrs == "full":
        found |= {name: str(fields.get(name, "")) for name in LINK_FIELDS if name not in found}
    if habits.attrs == "untitled":
        del found["title"]
    return found


def _marker(habits: Habits, clip: Clip, uid: int) -> str:
    marker, shown = clip["markers"][uid], {}
    for name in MARKER_FIELDS:
        value = marker.get(name, "")
        if name == "track":
            value = {"lower": value.lower(), "joined": value.replace(" ", "")}.get(habits.track_case, value)
        if name == "rating":
            value = value or habits.rating_default
        if value or habits.marker_attrs == "all":
            shown[name] = _text(habits, value)
    place = _number(habits, marker["pos"] - origin(habits, clip))
    return f'<Marker uid="{_number(habits, uid)}" pos="{place}">{_attrs(habits, shown)}</Marker>'


def _segment(habits: Habits, clip: Clip, number: int) -> str:
    segment = clip["segments"][number]
    title = segment.get("title", "")
    name = {"child": "", "auto": f"Segment {number}"}.get(habits.seg_title, title)
    children = f"<title>{escape(_text(habits, title))}</title>" if title and habits.seg_title != "name" else ""
    track = segment.get("track") or habits.seg_track
    children += f"<track>{escape(track)}</track>" if track else ""
    children += f"<rating>{segment['rating']}</rating>" if segment.get("rating") else ""
    if habits.keywords and segment.get("keywords"):
        children += f"<keywords>{escape(segment['keywords'])}</keywords>"
    start = _number(habits, segment["start"] - origin(habits, clip))
    return (
        f'<Segment seg_num="{_number(habits, number)}" seg_name={quoteattr(_text(habits, name))} '
        f'start_frame="{start}" duration="{_number(habits, segment["duration"])}">{children}</Segment>'
    )


# Listings ------------------------------------------------------------------------------------------------------


def show_listing(habits: Habits, world: World, asked: Folder, query: Mapping[str, str]) -> Answer:
    """List a folder («List assets and folders»)."""
    if asked and asked not in world.folders:
        raise not_found()
    roots = {"path": "/".join(asked), "database": "/".join(("NEWS", *asked)), "slash": "/" + "/".join(asked)}
    inner = _tree(habits, world, asked, asked, query)
    names: Sequence[str] = {"flat": [], "dbroot": [""], "chain": ["", *asked]}.get(
        habits.listing, [_text(habits, asked[-1]) if asked else ""]
    )
    for name in reversed(names):
        inner = f"<Folder name={quoteattr(name)}>{inner}</Folder>"
    root = f" query_root={quoteattr(roots[habits.query_root])}" if habits.query_root in roots else ""
    return document(habits, f"<StoredTree{root}>{inner}</StoredTree>")


def _tree(habits: Habits, world: World, here: Folder, asked: Folder, query: Mapping[str, str]) -> str:
    without = query.get("format") == "folderlist" or (habits.listing == "level" and here != asked)
    found = "" if without else "".join(_entries(habits, world, here, query))
    for child in sorted(folder for folder in world.folders if folder[:-1] == here):
        below = _tree(habits, world, child, asked, query)
        found += f"<Folder name={quoteattr(_text(habits, child[-1]))}>{below}</Folder>"
    return found


def _entries(habits: Habits, world: World, here: Folder, query: Mapping[str, str]) -> list[str]:
    found = []
    for clip in world.clips:
        if clip["create_time"] <= query.get("datetime", ""):
            continue
        for place in (clip, *clip["links"]):
            if place["folder"] == here:
                attrs = _clip_attrs(habits, clip, place["title"]) | {"title": _text(habits, place["title"])}
                attrs = {"title": attrs["title"]} if habits.listing_attrs == "few" else attrs
                own = f' link_id="{_number(habits, place["link_id"])}"' if habits.links_id else ""
                found.append(f'<Clip{own} finalized="{habits.flag}">{_attrs(habits, attrs)}</Clip>')
    return found


# XMP fields and channels ---------------------------------------------------------------------------------------


def show_xmp(habits: Habits, clip: Clip, asked: str | None) -> Answer:
    """Show XMP fields, one or all («XMP field values»)."""
    fields: dict[str, list[str]] = dict(clip["xmp"])
    if asked is None and habits.xmp_ask == "field_empty":
        fields = {}
    if asked is not None and habits.xmp_ask != "all":
        fields = {asked: fields[asked]} if asked in fields else {}
    lists = {name: ",".join(values) for name, values in fields.items()}
    if habits.xmp == "text" and asked is not None:
        return 200, "text/plain", lists.get(asked, "").encode()
    if habits.xmp == "lines":
        return 200, "text/plain", "\r\n".join(f"{name}={value}" for name, value in lists.items()).encode()
    return document(habits, _xmp_document(habits, fields, lists))


def _xmp_document(habits: Habits, fields: Mapping[str, Sequence[str]], lists: Mapping[str, str]) -> str:
    if habits.xmp == "named":
        inner = "".join(f"<Field name={quoteattr(name)} value={quoteattr(value)}/>" for name, value in lists.items())
        return f"<Fields>{inner}</Fields>"
    if habits.xmp == "elements":
        inner = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in lists.items())
        return f"<UserFields {_NAMESPACES}>{inner}</UserFields>"
    if habits.xmp in {"nested", "rdf"}:
        inner = "".join(_values(habits, name, values) for name, values in fields.items())
        nested = f"<fields>{inner}</fields>"
        rdf = f"<rdf:RDF {_NAMESPACES}><rdf:Description>{inner}</rdf:Description></rdf:RDF>"
        return nested if habits.xmp == "nested" else rdf
    return f"<Clip>{_attrs(habits, lists)}</Clip>"


def _values(habits: Habits, name: str, values: Sequence[str]) -> str:
    if habits.xmp == "nested":
        inner = "".join(f"<value>{escape(value)}</value>" for value in values)
        return f"<field name={quoteattr(name)}>{inner}</field>"
    return f"<{name}><rdf:Bag>{''.join(f'<rdf:li>{escape(value)}</rdf:li>' for value in values)}</rdf:Bag></{name}>"


def show_channel(habits: Habits, name: str, items: Sequence[Mapping[str, str]]) -> Answer:
    """Show a channel: RSS 2.0, Atom, or less."""
    if habits.rss_form == "atom":
        shown = "".join(_entry(item) for item in items)
        text = f'<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(name)}</title>{shown}</feed>'
        return document(habits, text)
    shown = "".join(f"<item>{_elements(item)}</item>" for item in items)
    if habits.rss_form == "bare":
        return document(habits, f"<channel>{shown}</channel>")
    head = "" if habits.rss_form == "untitled" else f"<title>{escape(name)}</title><link>http://x</link>"
    return document(habits, f'<rss version="2.0"><channel>{head}{shown}</channel></rss>')


def _elements(item: Mapping[str, str]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in item.items() if name != "file")


def _entry(item: Mapping[str, str]) -> str:
    names = {"guid": "id", "description": "summary", "pubDate": "updated"}
    parts = {names.get(name, name): value for name, value in item.items()}
    link = parts.pop("link", "")
    return f"<entry>{_elements(parts)}{f'<link href={quoteattr(link)}/>' if link else ''}</entry>"
