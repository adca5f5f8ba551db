"""``asset.xmp`` of a server that tells of XMP fields only when asked for one by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from msauto.model.live import Xmp


@dataclass(slots=True)
class NamedXmpFields:
    """What is known of the XMP fields of an asset for which GETUSERFIELDS without ``field`` told of none.

    ``silent``: the answer was empty (interface, «XMP field values»: behaviour without ``field`` is not shown), so that
    the asset may have none; else it was an error, or could not be read. ``asked`` are the fields asked for by name.
    """

    silent: bool = False
    asked: set[str] = field(default_factory=set)
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def known(self) -> Xmp | None:
        """All that is known; ``None`` where that is nothing."""
        return self.fields if self.silent or self.asked else None

    @property
    def may_be_none(self) -> bool:
        """Whether the asset may have no fields at all."""
        return self.silent and not any(self.fields.values())


class XmpByName(dict[str, list[str]]):  # noqa: PLW1641 - no dict has a hash
    """A mapping that asks for a field when it is touched; an empty one is not there, as in a list of all.

    ``ask`` gets a name that was not asked for yet, ``every`` is called where all fields are looked at at once: either
    raises where that must be read first, or cannot be.
    """

    def __init__(self, named: NamedXmpFields, ask: Callable[[str], None], every: Callable[[], None]) -> None:
        super().__init__()
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
        return list(values)

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field's values, or the default."""
        try:
            return self[name]
        except KeyError:
            return default

    def __contains__(self, name: object) -> bool:
        return self.get(name) is not None if isinstance(name, str) else False

    # What follows looks at all fields, of which none is known.

    def _none(self) -> dict[str, list[str]]:
        self._every()
        return {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._none())

    def __reversed__(self) -> Iterator[str]:
        return iter(self._none())

    def __len__(self) -> int:
        return len(self._none())

    def keys(self) -> Any:
        """Look at all names."""
        return self._none().keys()

    def values(self) -> Any:
        """Look at all values."""
        return self._none().values()

    def items(self) -> Any:
        """Look at all fields."""
        return self._none().items()

    def copy(self) -> dict[str, list[str]]:
        """Look at all fields."""
        return self._none()

    def __or__(self, other: Any) -> Any:
        return self._none() | other

    def __ror__(self, other: Any) -> Any:
        return other | self._none()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._none() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        return repr(self._none())
