"""The reader of a slice on a worker: its answers travel, so that each thing is read once in a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar

from msgspec import Struct

from msauto.errors import MsautoError
from msauto.model.live import Asset
from msauto.model.plan import Address
from msauto.server.client import AsyncMediaServer
from msauto.server.reader import ReadKey, ServerReader

T = TypeVar("T")

SHARED_KINDS: Final = frozenset({"list", "there", "links", "channel"})
"""The kinds of answers that the targets of a server share: they are read in one place only."""

_OWN: Final[ContextVar[frozenset[ReadKey]]] = ContextVar("own")


class AnswerNeeded(BaseException):
    """The item needs a shared answer, which the coordinator must give first."""

    def __init__(self, key: ReadKey) -> None:
        super().__init__(key)
        self.key = key


class ReadAnswer(Struct, frozen=True):
    """An answer: a value, or the error that reading it raised."""

    value: Any = None
    error: MsautoError | None = None

    def get(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


class SliceReader(ServerReader):
    """A reader that knows the answers that were given to it, and collects those that it read itself.

    It raises :class:`AnswerNeeded` for a shared answer that was not given, unless it ``reads_shared`` ones, and for an
    asset that another item is about.
    """

    def __init__(
        self, client: AsyncMediaServer, shared: Iterable[Mapping[ReadKey, ReadAnswer]], *, reads_shared: bool = False
    ) -> None:
        super().__init__(client)
        self._shared = tuple(shared)
        self._given: dict[ReadKey, ReadAnswer] = {}
        self._reads_shared = reads_shared
        self._news: dict[ReadKey, ReadAnswer] = {}

    def fresh(self, *, homes: bool = False) -> SliceReader:
        """Return this reader, which lives for one slice only; its answers to assets travel."""
        self._settles = homes
        return self

    def give(self, answers: Mapping[ReadKey, ReadAnswer]) -> None:
        """Add answers that were read before."""
        self._given.update(answers)

    def own(self, places: frozenset[ReadKey]) -> None:
        """Set the assets (database and address) that may be read in this asyncio task."""
        _OWN.set(places)

    def take_news(self) -> tuple[dict[ReadKey, ReadAnswer], int]:
        """Return the answers that were read since the last call, and the number of requests."""
        news, reads = self._news, self.reads
        self._news, self.reads = {}, 0
        return {key: each for key, each in news.items() if key[0] != "clip" or ("asset", *key[1:]) not in news}, reads

    async def _read_clip(self, database: str, address: Address) -> Asset | None:
        """Return the answer before its folder is settled, for which a shared answer may be needed."""
        return await self._once(("clip", database, address), partial(super()._read_clip, database, address))

    def _may_read(self, key: ReadKey) -> bool:
        return self._reads_shared if key[0] in SHARED_KINDS else key in self._answers or key[1:3] in _OWN.get()

    async def _once(self, key: ReadKey, ask: Callable[[], Awaitable[T]]) -> T:
        known = next((answers[key] for answers in (self._given, *self._shared) if key in answers), None)
        if known is not None:
            value: T = known.get()
            return value
        if not self._may_read(key):
            raise AnswerNeeded(("asset", *key[1:]) if key[0] == "clip" else key)
        is_new = key not in self._answers
        try:
            value = await super()._once(key, ask)
        except MsautoError as error:
            if is_new:
                self._news[key] = ReadAnswer(error=error)
            raise
        if is_new:
            self._news[key] = ReadAnswer(value)
        return value
