"""The content of a server: what ``simulate --state`` and the pytest fixture take, and ``export --content`` writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import to_builtins

from msauto.api.export import ExportedPlay, Snapshot, TextExport, check_exported, file_errors
from msauto.documents.loader import load_yaml, plain
from msauto.documents.writer import FlowStyle, verbatim, yaml_lines
from msauto.errors import InputError
from msauto.file_writing import write_file
from msauto.model import fields as registry
from msauto.model.live import AssetSnapshot, Marker, RssChannel, Segment, Xmp, show_folder
from msauto.model.requests import default_file
from msauto.model.server import Dialect
from msauto.playbook.export import HEADER, rss_item
from msauto.plugins.simulator.embedded.seed import (
    GivenClip,
    GivenItem,
    GivenLink,
    GivenMarker,
    GivenSegment,
    state_from_content,
)
from msauto.plugins.simulator.embedded.state import ServerState
from msauto.primitives.decimals import read_whole

_NUMBERS: Final = ("frames", "mime_type", "width", "height", "channels", "sample_rate", "bps")


_TEXTS: Final = ("create_time", "orig_name", "orig_type", "derived_from", "rec_time")


_MARKER_TEXTS: Final = registry.names(registry.MARKER_ATTRIBUTES, "text")


def load_content(path: Path) -> ServerState:
    """Return the content of a file; raises ``OSError``, ``InputError``, or ``ValueError`` for another content."""
    document = load_yaml(path.read_bytes(), str(path))
    if document.flaws:
        raise InputError(document.flaws)
    try:
        return state_from_content(plain(document.data))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def clip_content(snapshot: AssetSnapshot) -> GivenClip:
    """Return an asset as content: all that its answers show."""
    asset = snapshot.asset
    title = asset.title or snapshot.title
    is_gone = asset.hires == ""
    attributes = {**asset.attributes}
    if not attributes.get("orig_name"):
        attributes.pop("orig_name", None)
    own = _attributes(attributes)
    if own.get("orig_name") == title:
        del own["orig_name"]  # the default
    if asset.rate is not None:
        own["fps"] = asset.fps if isinstance(asset.fps, int) else str(asset.fps)
    else:  # what stands for no known rate counts as no rate
        attributes.pop("frame_time", None)
    links = []
    for link in snapshot.links or ():
        links.append(GivenLink(show_folder(link.folder), link.title, link.link_id))
    return GivenClip(
        title,
        show_folder(asset.folder or ()),
        asset.link_id,
        finalized=asset.finalized is not False,
        archived=is_gone,
        hires=asset.hires or "",
        proxy=asset.proxy or "",
        archive=asset.archive or (None if is_gone else ""),
        params=asset.parameters,
        hidden=tuple(name for name in ("frame_time", *_NUMBERS, *_TEXTS) if name not in attributes),
        fields=entry_fields(attributes),
        xmp=_xmp(snapshot.xmp or {}),
        segments=[_segment(segment) for segment in asset.segments],
        markers=[_marker(marker) for marker in asset.markers],
        links=links,
        **own,
    )


def _attributes(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes that the content names, a number as one."""
    own: dict[str, Any] = {}
    for name in (*_TEXTS, *_NUMBERS):
        text = attributes.get(name)
        value = text if name in _TEXTS else read_whole(text)
        if value is not None:
            own[name] = value
    return own


def _xmp(fields: Xmp) -> dict[str, str | list[str]]:
    given: dict[str, str | list[str]] = {}
    for name, values in fields.items():
        if values:
            given[name] = [*values] if values[1:] else values[0]
    return given


def entry_fields(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the link fields that an entry shows; but not an in point or out point at the ends of the clip."""
    last = (read_whole(attributes.get("frames")) or 0) - 1
    ends = {"first_frame": 0, "last_frame": last}
    fields = {}
    for name, text in attributes.items():
        is_end = name in ends and read_whole(text) == ends[name]
        if name in registry.LINK_FIELD and text and not is_end:
            fields[name] = text
    return fields


def _segment(segment: Segment) -> GivenSegment:
    texts: dict[str, Any] = {
        name: getattr(segment, name) or "" for name in ("keywords", "name", "track")
    }
    if len(segment.titles) > 1:
        texts["titles"] = [*segment.titles]
    else:
        texts["title"] = "".join(segment.titles)
    rating = read_whole(segment.rating) or 0
    return GivenSegment(segment.number, segment.start, segment.duration, rating=rating, **texts)


def _marker(marker: Marker) -> GivenMarker:
    more = {name: text for name, text in marker.fields.items() if text}
    texts = {name: more.pop(name, "") for name in _MARKER_TEXTS}
    more.pop("track", None)
    rating = read_whole(more.pop("rating", None))
    return GivenMarker(marker.frame, marker.uid, marker.track, rating=rating, more=more, **texts)


def channel_content(channel: RssChannel, rss_guid: str) -> Iterator[GivenItem]:
    """Yield the items of a channel as content."""
    for item in channel.items:
        shown = rss_item(item, rss_guid)
        file = default_file(item.guid, text="text" in shown) if item.guid else "item.txt"
        yield GivenItem(**{"file": file, **shown})


def content_lines(contents: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of clips, items or names of folders, as items of a list; no text of them is a template."""
    for content in contents:
        shown = verbatim(to_builtins(content))
        if isinstance(shown, dict):
            for name, value in shown.items():
                shown[name] = _in_flow_style(value)
        yield from yaml_lines([shown], 4)


def _in_flow_style(value: Any) -> Any:
    """Return a list or mapping that is written in one line; a list of mappings has a line for each."""
    if not isinstance(value, list | tuple | dict):
        return value
    if isinstance(value, list) and isinstance(value[0], dict):
        return [FlowStyle(item) for item in value]
    return FlowStyle(value)


class ContentExport(TextExport):
    """The content of one server, in one file, in place of playbooks."""

    holds_one_server: ClassVar = True

    def __init__(self, path: Path, *, force: bool) -> None:
        check_exported([path], force=force)
        super().__init__()
        self._path, self.written = path, [path]
        self._part, self._plays = ("", ""), 1
        self.write([f"# {HEADER}: what a server holds, for msauto simulate --state and tests."])

    def begin(self, play: ExportedPlay, head: Iterable[str]) -> None:
        """Begin nothing: clips belong to a database, whatever their folder."""

    def add(self, snapshot: Snapshot, dialect: Dialect, database: str | None) -> None:
        """Add a clip, which has its links, or the items of a channel."""
        if isinstance(snapshot, AssetSnapshot):
            self.add_part("databases", str(database), [clip_content(snapshot)])
        elif isinstance(snapshot, RssChannel):
            self.add_part("channels", snapshot.name, channel_content(snapshot, dialect.rss_guid))

    def add_part(self, section: str, name: str, items: Iterable[Any]) -> None:
        """Add items to the list of this name in a section of the file."""
        if section != self._part[0]:
            self.write([f"{section}:"])
        if self._part != (section, name):
            key = next(yaml_lines({name: []}, 2))
            self.write([key.removesuffix(" []")])
            self._part = section, name
        self.write(content_lines(items))

    def add_folders(self, database: str, names: Iterable[str]) -> None:
        """Add the names of all folders, also of those without assets."""
        self.add_part("folders", database, names)

    def finish(self) -> Iterable[str]:
        """Write the file, and return nothing."""
        with file_errors(self._path):
            write_file(self._path, super().finish())
        return ()
