"""Parcels: what travels between the coordinator and the workers, as bytes that no dashboard or log can show."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

from msauto.errors import MsautoError

T = TypeVar("T")


class UnresolvedError(MsautoError):
    """A parcel refers to something that the worker does not have; the coordinator must send it."""

    def __init__(self, key: object) -> None:
        super().__init__("a parcel cannot be opened here")
        self.key = key


class Contents(Protocol):
    """How the objects of a run are pickled."""

    def __call__(self, value: object, /) -> Any:
        """Return how an object is pickled, as ``__reduce__`` does; ``NotImplemented``: as usual."""

    def supply(self, key: object, /) -> bool:
        """Send from now on what a worker lacks (:class:`UnresolvedError`); return whether that changes anything."""


class PlainContents:
    """Pickles everything as usual."""

    def __call__(self, _: object) -> Any:
        """Return ``NotImplemented``."""
        return NotImplemented

    def supply(self, _: object) -> bool:
        """Return that nothing changes."""
        return False


class Shared(Generic[T]):
    """A value that many slices use: it travels once to each worker."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


class Parcel:
    """Pickled values. Its ``repr`` shows the size only."""

    __slots__ = ("data", "opened")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.opened: Shared[Any] | None = None

    def __repr__(self) -> str:
        return f"Parcel({len(self.data)} bytes)"

    def __sizeof__(self) -> int:
        return len(self.data)

    def __reduce__(self) -> tuple[type[Parcel], tuple[bytes]]:
        return Parcel, (self.data,)

    def as_shared(self, others: Mapping[int, Parcel]) -> Shared[Any]:
        """Return the shared value that it holds; it is unpickled once in each process."""
        if self.opened is None:
            self.opened = Shared(unpack(self, others))
        return self.opened


class SharedValues:
    """The shared values that the parcels of one run have referred to so far, by number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._values: list[Shared[Any]] = []

    def __getitem__(self, number: int) -> Shared[Any]:
        return self._values[number]

    def number(self, value: Shared[Any]) -> int:
        """Return the number of a value, which may be new."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._values)
            self._values.append(value)
        return self._numbers[id(value)]


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, contents: Contents, known: SharedValues) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._contents = contents
        self._known = known
        self.used: set[int] = set()

    def persistent_id(self, value: object) -> int | None:
        if not isinstance(value, Shared):
            return None
        number = self._known.number(value)
        self.used.add(number)
        return number

    def reducer_override(self, value: object) -> Any:
        return self._contents(value)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, shared: Mapping[int, Parcel]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, number: int) -> Shared[Any]:
        return self._shared[number].as_shared(self._shared)


_PLAIN: Final = PlainContents()


def pack(value: object, contents: Contents = _PLAIN, known: SharedValues | None = None) -> tuple[Parcel, set[int]]:
    """Return a parcel, and the numbers of the shared values that it refers to; without ``known``, to none."""
    if known is None and contents is _PLAIN:
        return Parcel(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)), set()
    file = io.BytesIO()
    pickler = _Pickler(file, contents, known or SharedValues())
    pickler.dump(value)
    return Parcel(file.getvalue()), pickler.used


def unpack(parcel: Parcel, shared: Mapping[int, Parcel] = MappingProxyType({})) -> Any:
    """Return what a parcel holds; ``shared`` are the parcels of the shared values that it refers to, by number."""
    return _Unpickler(io.BytesIO(parcel.data), shared).load()
