"""One server that is read on workers: its reader here, and a runner of what reads it there.

A function of an item reads with a :class:`SliceReader`. Where it needs a shared answer, the item is left, the answer is
read, and the item is run again with all that was read for it before. So nothing is read twice.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from msgspec import Struct, structs

from msauto.concurrency import concurrent_list
from msauto.errors import MsautoError, ServerError
from msauto.model.plan import Address
from msauto.model.ports import Clock, Runner
from msauto.model.server import ServerSpec
from msauto.running.parcels import Parcel, Shared, pack, unpack
from msauto.server.client import AsyncMediaServer
from msauto.server.planning_client import PlanningClient, is_unreachable
from msauto.server.reader import ReadKey, ServerReader
from msauto.server.slice_reader import SHARED_KINDS, AnswerNeeded, ReadAnswer, SliceReader

T = TypeVar("T")
R = TypeVar("R")
T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

_KEPT: Final = 8192
"""How many assets the answers of are kept, as in :mod:`msauto.server.reader`."""
AssetPlace = tuple[str, Address]


class CoordinatorNeeded(BaseException):
    """The item uses something of the coordinator's machine (a file, the environment), and is done there."""

    def __init__(self, key: tuple[str, ...] = ()) -> None:
        super().__init__(key)
        self.key = key


class Reading(Protocol[T_contra, R_co]):
    """What is done with each item, by a reader. It can be pickled."""

    def places(self, item: T_contra) -> Iterable[AssetPlace]:
        """Return the assets that the item is about: no other item reads them, unless it is about them as well."""

    def function(self, reader: ServerReader) -> Callable[[T_contra], Awaitable[R_co]]:
        """Return the function of one item."""


class GivenItem(Struct, Generic[T], frozen=True):
    """An item, its number, and what was read for it before. Another item reads the ``foreign`` assets."""

    number: int
    item: T
    foreign: tuple[AssetPlace, ...] = ()
    answers: tuple[Parcel, ...] = ()


class ItemOutcome(Struct, Generic[R], frozen=True):
    """What came of an item: a result, the shared answer that it ``needs``, or that it must be done ``here``, and why.

    ``answers`` are those that were read: for each asset its parcel. ``opened_by``: the error that opened the circuit
    breaker of the server.
    """

    number: int
    result: R | None = None
    needs: ReadKey | None = None
    here: tuple[str, ...] | None = None
    answers: tuple[tuple[AssetPlace, Parcel], ...] = ()
    reads: int = 0
    learned: tuple[bool, bool] = (False, False)
    opened_by: ServerError | None = None


@dataclass(frozen=True, slots=True)
class LearnedServer:
    """What was learned about a server so far: shared answers, how it answers, and why its circuit breaker opened."""

    shared: tuple[Shared[Mapping[ReadKey, ReadAnswer]], ...] = ()
    learned: tuple[bool, bool] = (False, False)
    opened_by: ServerError | None = None


class _Left(Struct, Generic[T], frozen=True):
    """An item that is not done: the assets that are ``known`` for it, the ``foreign`` ones, and what it ``needs``."""

    number: int
    item: T
    known: tuple[AssetPlace, ...]
    foreign: tuple[AssetPlace, ...]
    needs: ReadKey | None = None


class _ReadingWork(Generic[T, R]):
    """Implements ``Work`` for a :class:`Reading`; a slice gets the state of the server when it is pickled."""

    def __init__(self, remote: RemoteServer, reading: Reading[T, R]) -> None:
        self.server = remote.server
        self._remote: RemoteServer | None = remote
        self._reading = reading
        self._state = LearnedServer()

    def __getstate__(self) -> dict[str, Any]:
        state = self._remote.state if self._remote is not None else self._state
        return {"server": self.server, "_remote": None, "_reading": self._reading, "_state": state}

    @asynccontextmanager
    async def open(self, server: ServerSpec) -> AsyncIterator[Callable[[GivenItem[T]], Awaitable[ItemOutcome[R]]]]:
        async with PlanningClient(server, read_only=True) as client:
            client.opened_by = self._state.opened_by
            reader = SliceReader(client, (each.value for each in self._state.shared))
            reader.learned = self._state.learned
            function = self._reading.function(reader)

            async def run(given: GivenItem[T]) -> ItemOutcome[R]:
                for parcel in given.answers:
                    reader.give(unpack(parcel))
                result, needs, here = None, None, None
                reader.own(frozenset(self._reading.places(given.item)).difference(given.foreign))
                try:
                    result = await function(given.item)
                except AnswerNeeded as needed:
                    needs = needed.key
                except CoordinatorNeeded as needed:
                    here = needed.key
                news, reads = reader.take_news()
                parcels = tuple(_by_asset(news))
                return ItemOutcome(given.number, result, needs, here, parcels, reads, reader.learned, client.opened_by)

            yield run


def _place(key: ReadKey) -> AssetPlace:
    """Return the asset that a key is about."""
    return cast("AssetPlace", key[1:3])


def _by_asset(news: Mapping[ReadKey, ReadAnswer]) -> Iterator[tuple[AssetPlace, Parcel]]:
    """Yield what was read of each asset."""
    found: dict[AssetPlace, dict[ReadKey, ReadAnswer]] = {}
    for key, answer in news.items():
        found.setdefault(_place(key), {})[key] = answer
    yield from ((place, pack(answers)[0]) for place, answers in found.items())


@dataclass(frozen=True, slots=True)
class _OneAnswer:
    """Reads one thing of an asset."""

    def places(self, key: ReadKey) -> Iterable[AssetPlace]:
        return [_place(key)]

    def function(self, reader: ServerReader) -> Callable[[ReadKey], Awaitable[None]]:
        async def read(key: ReadKey) -> None:
            try:
                await reader.read(key)
            except MsautoError:
                return  # it is an answer

        return read


@dataclass(frozen=True, slots=True)
class _SharedWork:
    """Implements ``Work``: reads shared answers; one item is all that are needed now."""

    server: ServerSpec
    state: LearnedServer
    forks: int

    @asynccontextmanager
    async def open(
        self, server: ServerSpec
    ) -> AsyncIterator[Callable[[tuple[ReadKey, ...]], Awaitable[ItemOutcome[dict[ReadKey, ReadAnswer]]]]]:
        async with PlanningClient(server, read_only=True) as client:
            client.opened_by = self.state.opened_by
            reader = SliceReader(client, (each.value for each in self.state.shared), reads_shared=True)
            reader.learned = self.state.learned

            async def read_one(key: ReadKey) -> None:
                try:
                    await reader.read(key)
                except MsautoError:
                    return  # it is an answer

            async def read(keys: tuple[ReadKey, ...]) -> ItemOutcome[dict[ReadKey, ReadAnswer]]:
                await concurrent_list(read_one, keys, limit=self.forks)
                news, reads = reader.take_news()
                return ItemOutcome(0, news, reads=reads, learned=reader.learned, opened_by=client.opened_by)

            yield read


class _Questions:
    """Answers questions in batches: those that are asked while a batch is under way form the next one."""

    def __init__(self, read: Callable[[tuple[ReadKey, ...]], Awaitable[None]]) -> None:
        self._read = read
        self._open: dict[ReadKey, asyncio.Future[None]] = {}
        self._asked: dict[ReadKey, asyncio.Future[None]] = {}
        self._pump: asyncio.Task[None] | None = None

    def ask(self, key: ReadKey) -> asyncio.Future[None]:
        """Return the future that ends when the answer is known."""
        if key not in self._asked:
            self._asked[key] = self._open[key] = asyncio.get_running_loop().create_future()
            if self._pump is None:
                self._pump = asyncio.ensure_future(self._answer_all())
        return self._asked[key]

    async def close(self) -> None:
        """Cancel what is under way."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.gather(self._pump, return_exceptions=True)

    async def _answer_all(self) -> None:
        while self._open:
            batch, self._open = self._open, {}
            try:
                await self._read(tuple(batch))
            except Exception as error:  # noqa: BLE001 - raised where it is awaited
                for future in batch.values():
                    future.set_exception(error)
                    future.exception()  # retrieved, so that asyncio does not warn
                continue
            except BaseException:
                for future in batch.values():
                    future.cancel()
                raise
            for key, future in batch.items():
                future.set_result(None)
                self._asked.pop(key)
        self._pump = None


class RemoteReader(ServerReader):
    """The reader of a server that is read on workers; its answers are kept as those of a local one."""

    def __init__(self, remote: RemoteServer, clock: Clock) -> None:
        super().__init__(cast("AsyncMediaServer", _Nowhere(remote.server)), clock=clock)
        self._remote = remote

    async def _once(self, key: ReadKey, _: Callable[[], Awaitable[T]]) -> T:
        async def asked() -> T:
            answer: T = (await self._remote.answer(key)).get()
            return answer

        return await super()._once(key, asked)


class _Nowhere:
    """In place of a client: nothing is read from here."""

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec


class RemoteServer:
    """One server, which ``runner`` reads; ``forks`` are the items at a time.

    ``supply`` is called with what a slice lacks of the coordinator's machine: the next ones may get it.
    """

    def __init__(
        self, runner: Runner, server: ServerSpec, clock: Clock, *, forks: int, supply: Callable[[object], object]
    ) -> None:
        self.server = replace(server, variables={})  # only playbooks use them
        self.state = LearnedServer()
        self.reader = RemoteReader(self, clock)
        self._runner = runner
        self._forks = forks
        self._supply = supply
        self._shared: dict[ReadKey, ReadAnswer] = {}
        self._of_assets: OrderedDict[AssetPlace, dict[Parcel, None]] = OrderedDict()
        self._questions = _Questions(self._read_shared)
        self._of_one = _Questions(self._read_assets)

    @property
    def unreachable(self) -> bool:
        """Whether the server as a whole does not answer."""
        return is_unreachable(self.state.opened_by)

    async def close(self) -> None:
        """Cancel what is under way."""
        await self._questions.close()
        await self._of_one.close()

    async def answer(self, key: ReadKey) -> ReadAnswer:
        """Return the answer to a key; it is read unless it is known."""
        if key[0] in SHARED_KINDS:
            while key not in self._shared:
                await asyncio.shield(self._questions.ask(key))
            return self._shared[key]
        while (known := self._known(key)) is None:
            await asyncio.shield(self._of_one.ask(key))
        return known

    def _known(self, key: ReadKey) -> ReadAnswer | None:
        for parcel in self._of_assets.get(_place(key), ()):
            answers: Mapping[ReadKey, ReadAnswer] = unpack(parcel)
            if key in answers:
                return answers[key]
        return None

    async def map(
        self,
        reading: Reading[T, R],
        items: Iterable[T],
        *,
        here: Callable[[T], Awaitable[R]],
        received: Callable[[R], None] = lambda _: None,
    ) -> AsyncGenerator[R, None]:
        """Yield the result of each item in the order of the items.

        ``here`` does an item in this process. ``received`` is called with each result of a worker as it arrives.
        """
        work = _ReadingWork(self, reading)
        left: Iterator[_Left[T]] | None = self._first(reading, items)
        done: dict[int, R] = {}
        next_one = 0
        at_home: list[_Left[T]] = []
        while left is not None:
            again: list[_Left[T]] = []
            async with aclosing(self._one_pass(work, left)) as outcomes:
                async for each, outcome in outcomes:
                    if outcome.here is not None:
                        self._supply(outcome.here)
                        at_home.append(each)
                    elif outcome.needs is not None:
                        again.append(self._needing(each, outcome.needs))
                    else:
                        done[each.number] = cast("R", outcome.result)
                        received(done[each.number])
                    while next_one in done:
                        yield done.pop(next_one)
                        next_one += 1
            left = iter(again) if again else None
            await self._answered(again)
        results = await concurrent_list(here, (each.item for each in at_home), limit=self._forks)
        done |= {each.number: result for each, result in zip(at_home, results, strict=True)}
        for _, result in sorted(done.items()):
            yield result

    def _first(self, reading: Reading[T, R], items: Iterable[T]) -> Iterator[_Left[T]]:
        """Yield all items; an asset that several are about is read by the first of them."""
        claimed: set[int] = set()
        for number, item in enumerate(items):
            places = dict.fromkeys(reading.places(item))
            foreign = tuple(place for place in places if hash(place) in claimed)
            claimed.update(map(hash, places))
            yield _Left(number, item, tuple(places), foreign)

    async def _one_pass(
        self, work: _ReadingWork[T, R], left: Iterator[_Left[T]]
    ) -> AsyncGenerator[tuple[_Left[T], ItemOutcome[R]], None]:
        under_way: dict[int, _Left[T]] = {}

        def given() -> Iterator[GivenItem[T]]:
            for each in left:
                under_way[each.number] = each
                parcels = tuple(parcel for place in each.known for parcel in self._of_assets.get(place, ()))
                yield GivenItem(each.number, each.item, each.foreign, parcels)

        async with aclosing(self._runner.map(work, given(), limit=self._forks)) as outcomes:
            async for outcome in outcomes:
                self._learn(outcome)
                yield under_way.pop(outcome.number), outcome

    def _needing(self, left: _Left[T], key: ReadKey) -> _Left[T]:
        """Return the item for the next pass; a shared answer is read at once, for the slices that follow."""
        if key[0] not in SHARED_KINDS:
            return structs.replace(left, known=(*left.known, _place(key)), needs=key)
        if key not in self._shared:
            self._questions.ask(key)
        return structs.replace(left, needs=key)

    async def _answered(self, left: Iterable[_Left[T]]) -> None:
        """Wait until what the items need is known."""
        await asyncio.gather(*map(self.answer, {each.needs for each in left if each.needs is not None}))

    def _learn(self, outcome: ItemOutcome[Any]) -> None:
        self.reader.reads += outcome.reads
        for place, parcel in outcome.answers:
            self._of_assets.setdefault(place, {})[parcel] = None
            self._of_assets.move_to_end(place)
        while len(self._of_assets) > _KEPT:
            self._of_assets.popitem(last=False)
        (names, deep), (more_names, deeper) = self.state.learned, outcome.learned
        learned = names or more_names, deep or deeper
        self.reader.learned = learned
        self.state = LearnedServer(self.state.shared, learned, self.state.opened_by or outcome.opened_by)

    async def _read_shared(self, keys: tuple[ReadKey, ...]) -> None:
        work = _SharedWork(self.server, self.state, self._forks)
        async with aclosing(self._runner.map(work, [keys], limit=self._forks)) as outcomes:
            async for outcome in outcomes:
                self._learn(outcome)
                news = outcome.result or {}
                self._shared |= news
                self.state = LearnedServer((*self.state.shared, Shared(news)), self.state.learned, self.state.opened_by)

    async def _read_assets(self, keys: tuple[ReadKey, ...]) -> None:
        async def here(key: ReadKey) -> None:
            raise RuntimeError(key)

        async with aclosing(self.map(_OneAnswer(), keys, here=here)) as outcomes:
            async for _ in outcomes:
                pass
