"""Facts: what templates may know of a target, read layer by layer (listing < clip < xmp).

Touching a layer that was not read raises :class:`Need`; the survey reads that layer and evaluates again. What to
read is never declared. What was read is recorded, so that the fingerprint covers that and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Literal

from msgspec import Struct, structs

from msauto.model.fields import NUMBER_OF_CLIP, NUMBERS, SEGMENT_NAMES
from msauto.model.live import (
    Asset,
    ClipAttributes,
    Entry,
    Link,
    Marker,
    Segment,
    Xmp,
    show_folder,
    typed,
    why_no_rate,
)
from msauto.primitives.decimals import read_whole

Layer = Literal["clip", "xmp", "links"]

_ROOT = ("title", "folder", "hires", "proxy", "archive", "link_id", "finalized")
_ROOT_OF_ENTRY = ("title", "link_id", "finalized")


def kind_of_fact(name: str) -> str:
    """Return what a fact is that is never a text; empty for another one."""
    if name == "finalized":
        return "true or false"
    if name in NUMBER_OF_CLIP or name in {"fps", "rate", "duration"}:
        return "a number"
    return ""


class Need(Exception):  # noqa: N818 - it is a request, not an error
    """A layer of facts was touched that has not been read yet; ``name``: of it, one XMP field."""

    def __init__(self, layer: Layer, name: str | None = None) -> None:
        super().__init__(layer, name)
        self.layer: Layer = layer
        self.name = name


class NoAssetError(LookupError):
    """A fact of an asset was touched, but the asset does not exist or the task has none."""


class NamedXmpFields(Struct):
    """The known XMP fields of an asset for which GETUSERFIELDS without ``field`` listed none.

    ``silent``: the answer was empty (interface, «XMP field values»: behaviour without ``field`` is not shown), so that
    the asset may have none; else it was an error, or could not be read. ``asked`` are the fields asked for by name.
    """

    silent: bool = False
    asked: set[str] = set()
    fields: dict[str, tuple[str, ...]] = {}

    @property
    def known(self) -> Xmp | None:
        """All that is known; ``None`` where that is nothing."""
        return self.fields if self.silent or self.asked else None

    @property
    def may_be_none(self) -> bool:
        """Whether the asset may have no fields at all."""
        return self.silent and not any(self.fields.values())


class XmpByName(dict[str, list[str]]):
    """A mapping that asks for a field when it is read; an empty field is missing, as in a list of all fields.

    ``ask`` gets a name that was not asked for yet; ``every`` is called where all fields are read at once. Either raises
    if the fields must be read first or cannot be read.
    """

    def __init__(
        self,
        named: NamedXmpFields,
        ask: Callable[[str], None],
        every: Callable[[], None],
        show: Callable[[str], str] = str,
    ) -> None:
        super().__init__()
        self._show = show
        self._named = named
        self._ask = ask
        self._every = every

    def __getitem__(self, name: str) -> list[str]:
        if not isinstance(name, str):
            raise KeyError(name)
        self._ask(name)
        values = self._named.fields.get(name, ())
        if not values:
            raise KeyError(name)
        return [self._show(value) for value in values]

    def shown_by(self, show: Callable[[str], str]) -> XmpByName:
        """Return this mapping with values in another form."""
        return XmpByName(self._named, self._ask, self._every, show)

    # Those of a dictionary would see no fields; these call __getitem__, __iter__ and __len__.
    get = Mapping.get  # type: ignore[assignment]
    keys, values, items = Mapping.keys, Mapping.values, Mapping.items  # type: ignore[assignment]
    __contains__, __eq__, __ne__ = Mapping.__contains__, Mapping.__eq__, object.__ne__
    __reversed__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[str]:
        self._every()
        return iter(())

    def __len__(self) -> int:
        self._every()
        return 0

    def copy(self) -> dict[str, list[str]]:
        """Look at all fields."""
        return dict(self.items())

    def __repr__(self) -> str:
        return repr(self.copy())


class Facts(Struct, kw_only=True, eq=False):
    """Facts of one target, as far as they were read.

    ``entry`` is the layer of a listing, ``asset`` the clip, ``xmp`` its XMP fields, ``links`` its shortcuts. ``named``
    replaces ``xmp`` where the server does not list all fields at once; ``asked`` are the fields that were read by name.
    ``exists`` is false for an asset that the server does not have, and for channels and databases.
    """

    entry: Entry | None = None
    asset: Asset | None = None
    xmp: Xmp | None = None
    named: NamedXmpFields | None = None
    links: tuple[Link, ...] | None = None
    exists: bool = True
    asked: set[str] = set()
    depends_on: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """Return the fact ``name``, typed; raise :class:`Need`, :class:`NoAssetError` or :class:`AttributeError`.

        Numbers are ints, times datetimes without a zone (the server's own), ``fps`` (and ``rate``, the
        same) an int or a Fraction, ``duration`` seconds. ``markers``, ``segments`` and ``links`` are lists of mappings
        with the names that playbooks use.
        ``xmp`` is a mapping of lists, ``parameters`` those of a graphic template. ``frame_time`` is a float: positions
        are counted by ``fps``, which is exact.
        """
        if not self.exists:
            raise NoAssetError(name)
        value = self._find(name)
        if not isinstance(value, XmpByName):  # its fields are noted one by one
            self.depends_on[name] = value
        return value

    def names(self) -> tuple[str, ...]:
        """Return the names that the layers read so far can answer: for messages and completion."""
        known = {
            "fps",
            "rate",
            "duration",
            "markers",
            "segments",
            "links",
            "parameters",
            "xmp",
            *_ROOT,
        }
        for layer in (self.entry, self.asset):
            if layer is not None:
                known.update(layer.attributes)
        return tuple(sorted(known))

    def _find(self, name: str) -> Any:
        match name:
            case "fps" | "rate":
                return self._fps()
            case "duration":
                frames = self._reporting("frames").frames
                if frames is None:
                    raise AttributeError("duration: the asset reports no frames")
                seconds = Fraction(frames) / self._fps()
                return seconds.numerator if seconds.denominator == 1 else float(seconds)
            case "markers":
                return list(map(_marker, self._clip().markers))
            case "segments":
                return list(map(_segment, self._clip().segments))
            case "parameters":
                return list(self._clip().parameters)
            case "links":
                if self.links is None:
                    raise Need("links")
                return [
                    {"folder": show_folder(link.folder), "title": link.title} for link in self.links
                ]
            case "xmp" if self.named is not None:
                return XmpByName(self.named, self._ask_xmp, self._every_xmp)
            case "xmp":
                if self.xmp is None:
                    raise Need("xmp")
                return {field: list(values) for field, values in self.xmp.items()}
        for layer in (self.asset, self.entry):  # a listing may report more than the answer
            value = None if layer is None else _reported(layer, name)
            if value is not None:
                return value
        self._clip()
        raise AttributeError(f"the server does not report {name!r} of this asset")

    def _clip(self) -> Asset:
        if self.asset is None:
            raise Need("clip")
        return self.asset

    def _reporting(self, name: str) -> ClipAttributes:
        """Return the layer that reports an attribute: the clip, else its entry."""
        if (
            self.entry
            and name in self.entry.names
            and (self.asset is None or name not in self.asset.attributes)
        ):
            return self.entry
        return self._clip()

    def _fps(self) -> int | Fraction:
        layer = self._reporting("frame_time")
        fps = layer.fps
        if fps is None:
            raise AttributeError(f"fps: {why_no_rate(layer)}")
        return fps

    def _ask_xmp(self, name: str) -> None:
        self.asked.add(name)
        if self.named is None or name not in self.named.asked:
            raise Need("xmp", name)

    def _every_xmp(self) -> None:
        if self.named is None or not self.named.may_be_none:
            raise Need("xmp")
        self.depends_on["xmp"] = {}


def _marker(marker: Marker) -> dict[str, Any]:
    """A marker with the names of playbooks; ``frame`` and ``at`` are the same."""
    numbers = {name: _number(text) for name, text in marker.fields.items() if name in NUMBERS}
    return {
        "uid": marker.uid,
        "frame": marker.frame,
        "at": marker.frame,
        **marker.fields,
        **numbers,
    }


def _segment(segment: Segment) -> dict[str, Any]:
    """A segment with the names of playbooks; ``title`` is the first of its titles, else its name."""
    rating = None if segment.rating is None else _number(segment.rating)
    return {
        **structs.asdict(segment),
        "titles": [text for text in segment.titles if text],
        **{name: segment.text(name) for name in SEGMENT_NAMES},
        "rating": rating,
    }


def _number(text: str) -> int | str | None:
    """Return the whole number of a text; ``None`` if it cannot be read; an empty text stays."""
    return read_whole(text) if text.strip() else text


def _reported(layer: Asset | Entry, name: str) -> Any:
    root = _ROOT if isinstance(layer, Asset) else _ROOT_OF_ENTRY
    if name not in root:
        return typed(name, layer.attributes.get(name))
    value = getattr(layer, name)
    return show_folder(value) if name == "folder" and value is not None else value
