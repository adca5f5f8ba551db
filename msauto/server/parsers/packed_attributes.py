"""The attributes of the entries of a listing in compact form, because a large database has 300,000 entries.

A mapping of its attributes takes about 3 KB; packed into bytes they take their texts and about 100 bytes.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping
from typing import Final

from msauto.server.parsers.xml import unreadable

_SEPARATOR: Final = "\0"  # the one character that XML cannot contain
_MOST_NAMES: Final = 1_000_000
"""The limit of attribute names in all sets of names: clips normally share a few sets."""

Names = Mapping[str, int]
"""The names of attributes, each with its position among the packed texts; similar entries share one object."""


class PackedAttributes(Mapping[str, str]):
    """The attributes of one entry, unpacked at each access."""

    __slots__ = ("_names", "_packed")

    def __init__(self, names: Names, packed: bytes) -> None:
        self._names = names
        self._packed = packed

    def __getitem__(self, name: str) -> str:
        place = self._names[name]
        return self._packed.split(b"\0", place + 1)[place].decode()

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def items(self) -> ItemsView[str, str]:
        """Return the items, unpacked together."""
        return dict(zip(self._names, self._packed.decode().split(_SEPARATOR), strict=False)).items()

    def __repr__(self) -> str:
        return repr(dict(self.items()))


class AttributePacker:
    """Packs attributes; equal sets of names are stored once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Names] = {}
        self._count = 0

    def pack(self, texts: Mapping[str, str]) -> PackedAttributes:
        """Return the attributes in compact form. Raises ``UnreadableError`` for too many names."""
        key = tuple(texts)
        names = self._known.get(key)
        if names is None:
            self._count += len(key)
            if self._count > _MOST_NAMES:
                raise unreadable(f"the clips of the answer have more than {_MOST_NAMES} names of attributes")
            names = self._known[key] = {name: place for place, name in enumerate(key)}
        return PackedAttributes(names, _SEPARATOR.join(texts.values()).encode())
