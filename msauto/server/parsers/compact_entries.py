"""The entries of a listing in compact form, because a large database has 300,000 of them.

An entry with a mapping of its attributes takes about 3 KB; packed into bytes it takes its texts and about 60 bytes.
It is unpacked at each access.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, overload

from msauto.model.live import Entry, Folder
from msauto.server.parsers.xml import unreadable

_SEPARATOR: Final = "\0"  # the one character that XML cannot contain
_SPLIT: Final = b"\0"
_FLAGS: Final = {True: b"1", False: b"0", None: b""}
_FLAG_OF: Final = {b"1": True, b"0": False, b"": None}
_FIRST: Final = 2  # the link id and the flag precede the texts
_MOST_NAMES: Final = 1_000_000
"""The limit of attribute names in all sets of names: clips normally share a few sets."""
_TITLES: Final = ("title", "clip_name", "name")

Names = Mapping[str, int]
"""The names of attributes, each with its position among the packed texts; similar entries share one object."""
PackedClip = tuple[Names, bytes]


class PackedAttributes(Mapping[str, str]):
    """The attributes of one entry, unpacked at each access."""

    __slots__ = ("_names", "_packed")

    def __init__(self, names: Names, packed: bytes) -> None:
        self._names = names
        self._packed = packed

    def __getitem__(self, name: str) -> str:
        place = self._names[name]
        return self._packed.split(_SPLIT, place + 1)[place].decode()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def items(self) -> ItemsView[str, str]:
        """Return the items, unpacked together."""
        return dict(zip(self._names, self._packed.decode().split(_SEPARATOR)[_FIRST:], strict=True)).items()

    def __repr__(self) -> str:
        return repr(dict(self.items()))


class EntryPacker:
    """Packs clips; equal sets of names are stored once."""

    __slots__ = ("_count", "_known")

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Names] = {}
        self._count = 0

    def pack(self, link_id: int | None, finalized: bool | None, texts: Mapping[str, str]) -> PackedClip:
        """Return the shared names and the packed texts of one clip; raises ``UnreadableError`` for too many."""
        return self.names_of(tuple(texts)), pack_texts(link_id, finalized, [text.encode() for text in texts.values()])

    def names_of(self, key: tuple[str, ...]) -> Names:
        """Return the shared object of these names; raises ``UnreadableError`` for too many."""
        names = self._known.get(key)
        if names is None:
            self._count += len(key)
            if self._count > _MOST_NAMES:
                raise unreadable(f"the clips of the answer have more than {_MOST_NAMES} names of attributes")
            names = self._known[key] = {name: place for place, name in enumerate(key, _FIRST)}
        return names


def pack_texts(link_id: int | None, finalized: bool | None, texts: Iterable[bytes]) -> bytes:
    """Return the texts of one clip (UTF-8) in compact form."""
    return _SPLIT.join((b"" if link_id is None else b"%d" % link_id, _FLAGS[finalized], *texts))


class PackedEntries(Sequence[Entry]):
    """The entries of a listing, in order; each is created at each access."""

    __slots__ = ("_folders", "_names", "_packed")

    def __init__(self) -> None:
        self._folders: list[Folder] = []
        self._names: list[Names] = []
        self._packed: list[bytes] = []

    def extend(self, folder: Folder, names: Sequence[Names], packed: Sequence[bytes]) -> None:
        """Add the clips of a folder, each with its names and packed texts."""
        self._folders += [folder] * len(packed)
        self._names += names
        self._packed += packed

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return _entry(self._folders[index], self._names[index], self._packed[index])

    def __iter__(self) -> Iterator[Entry]:
        return map(_entry, self._folders, self._names, self._packed)

    def __len__(self) -> int:
        return len(self._packed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return NotImplemented if not isinstance(other, Sequence) else False
        return all(mine == its for mine, its in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return f"<{len(self)} entries>"


def title_of(texts: Mapping[str, Any]) -> str:
    """Return the name of the attribute that holds the title; empty without one."""
    return next((name for name in _TITLES if name in texts), "")


def _entry(folder: Folder, names: Names, packed: bytes) -> Entry:
    place = names.get(title_of(names), 1)
    parts = packed.split(_SPLIT, place + 1)
    title = parts[place].decode() if place >= _FIRST else ""
    link = int(parts[0]) if parts[0] else None
    return Entry(folder, title, link, _FLAG_OF[parts[1]], PackedAttributes(names, packed))
