"""The survey of one server in slices: groups go to workers, and their outcomes come back."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

from msgspec import Struct

from msauto.model.desired import TaskSource, TitleRef
from msauto.model.events import Event
from msauto.model.plan import Address, Json, TargetId
from msauto.model.ports import NamedMemory
from msauto.model.server import ServerSpec
from msauto.planning.survey.asset_survey import SurveyContext, SurveyedTarget
from msauto.planning.survey.fact_layers import XmpAnswers
from msauto.planning.survey.similar_titles import SimilarTitles
from msauto.planning.survey.survey import SurveyWork
from msauto.planning.survey.target_groups import IntentGroup
from msauto.running.parcels import Shared
from msauto.secrets.redaction import Secrets
from msauto.secrets.remembered_secrets import SALT, SecretMemory
from msauto.server.reader import ServerReader
from msauto.slices.remote_server import AssetPlace, CoordinatorNeeded, RemoteServer

_Remembered = Mapping[TargetId, Mapping[str, Json]]


class RememberedGroup(Struct, frozen=True):
    """A group, every title that may be read for it, and what the ledger remembers of the targets of these names."""

    group: IntentGroup
    names: tuple[str, ...]
    remembered: _Remembered


class SurveyedGroup(Struct, frozen=True):
    """The outcome of a group, and what planning it has changed beside: events, answers about XMP fields, secrets."""

    outcome: SurveyedTarget
    events: tuple[Event, ...]
    reports_all: bool
    doubted: tuple[TaskSource | None, ...]
    secrets: Secrets


@dataclass(frozen=True, slots=True)
class SurveyReading:
    """Implements ``Reading``: plans groups on a worker, with what a :class:`SurveyContext` holds."""

    server: ServerSpec
    find_links: bool
    forget: bool
    pending: Shared[frozenset[tuple[str, str]]]
    batches: Mapping[str, TaskSource]
    secrets: Secrets
    salt: Mapping[str, Json]

    def places(self, item: RememberedGroup) -> Iterator[AssetPlace]:
        """Return the assets of all names of a group."""
        group = item.group
        yield from ((group.database, Address(name)) for name in item.names)
        yield from ((group.database, part.by_id[0]) for part in group.parts if part.by_id)

    def function(self, reader: ServerReader) -> Callable[[RememberedGroup], Awaitable[SurveyedGroup]]:
        """Return the function that plans a group with this reader."""
        context = SurveyContext(
            self.server,
            reader,
            _NOTHING,
            find_links=self.find_links,
            hash_file=_hash_here,
            pending=self.pending.value,
            forget=self.forget,
            secrets=self.secrets,
            similar=_SimilarHere(),
        )
        return partial(self._survey, context)

    async def _survey(self, context: SurveyContext, item: RememberedGroup) -> SurveyedGroup:
        events: list[Event] = []
        answers = XmpAnswers(self.batches)
        before, sources = frozenset(self.secrets.texts), self.secrets.sources.copy()
        memory = _GivenMemory({**item.remembered, SALT: self.salt})
        context = replace(
            context,
            memory=SecretMemory(memory, self.secrets),
            answers=answers,
            notify=events.append,
        )
        outcome = await SurveyWork(context).plan(item.group)
        found = Secrets(self.secrets.texts - before, self.secrets.sources.since(sources))
        return SurveyedGroup(outcome, tuple(events), answers.reports_all, tuple(answers.doubted), found)


class RemoteSurvey:
    """Implements ``Runner`` for a :class:`SurveyWork` on the workers of a :class:`RemoteServer`."""

    def __init__(self, remote: RemoteServer, memory: NamedMemory, secrets: Secrets) -> None:
        self._remote = remote
        self._memory = memory
        self._secrets = secrets

    async def map(
        self,
        work: SurveyWork,
        groups: Iterable[IntentGroup],
        *,
        limit: int,  # noqa: ARG002 - that of the server holds
    ) -> AsyncGenerator[SurveyedTarget, None]:
        """Yield the outcome of each group, in their order."""
        context = work.context
        reading = SurveyReading(
            context.server,
            context.find_links,
            context.forget,
            Shared(context.pending),
            context.answers.batches,
            self._secrets,
            self._memory.recall(SALT),
        )

        async def here(item: RememberedGroup) -> SurveyedGroup:
            outcome = await work.plan(item.group)
            return SurveyedGroup(outcome, (), False, (), Secrets())

        def received(result: SurveyedGroup) -> None:
            for text in result.secrets.texts:
                self._secrets.add(text)
            self._secrets.sources.merge(result.secrets.sources)
            for event in result.events:
                context.notify(event)

        items = map(self._remembered, groups)
        async with aclosing(self._remote.map(reading, items, here=here, received=received)) as results:
            async for result in results:
                context.answers.reports_all |= result.reports_all
                context.answers.doubted.update(dict.fromkeys(result.doubted))
                yield result.outcome

    def _remembered(self, group: IntentGroup) -> RememberedGroup:
        names, server = _names(group), self._remote.server.name
        found = (self._memory.recall_named(server, group.database, group.kind, name) for name in names)
        return RememberedGroup(group, names, {target: items for each in found for target, items in each.items()})


def _names(group: IntentGroup) -> tuple[str, ...]:
    """Return every title that may be read for a group."""
    names = dict.fromkeys((group.name, *group.names))
    for part in group.parts:
        names |= dict.fromkeys((*part.all_names, *part.next_titles) if part.by_id else (*part.names, *part.next_titles))
        for name, oldest in part.chain.items():
            names |= dict.fromkeys((name, *oldest))
        for member in part.members:
            if member.entry is not None:
                names[member.entry.title] = None
            if isinstance(member.intent.ref, TitleRef):
                names |= dict.fromkeys(member.intent.ref.was)
    return tuple(names)


class _GivenMemory:
    """What was sent along of the ledger's memory. It is not written."""

    def __init__(self, remembered: _Remembered) -> None:
        self._items = {_key(target): items for target, items in remembered.items()}

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        return self._items.get(_key(target), {})

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:  # noqa: ARG002
        raise CoordinatorNeeded

    def forget_assets(self, server: str, database: str, prefix: str) -> None:  # noqa: ARG002
        raise CoordinatorNeeded

    def pending(self, server: str) -> frozenset[tuple[str, str]]:  # noqa: ARG002
        raise CoordinatorNeeded


_NOTHING = _GivenMemory({})


def _key(target: TargetId) -> tuple[Any, ...]:
    name = unicodedata.normalize("NFC", target.name)
    return (target.server, target.database, target.kind, name, target.link_id, target.create_time or None)


class _SimilarHere(SimilarTitles):
    """The first errors of a run get similar titles, so they are counted in one place."""

    async def near(self, *_: object) -> NoReturn:
        raise CoordinatorNeeded


async def _hash_here(dest: str) -> NoReturn:
    raise CoordinatorNeeded(("file", dest))
