"""Where the servers of a run are read and written: in this process, or on the workers of a cluster (``on_workers``).

What only some commands need is imported where it is used, so that a plan starts soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field, structs

from msauto.concurrency import concurrent_map
from msauto.errors import MsautoError, ServerError
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope
from msauto.model.desired import ResolvedPlaybooks, ServerIntents
from msauto.model.events import Event, Notify, TargetPlanned, ignore
from msauto.model.plan import Plan
from msauto.model.ports import Clock, HashFile, Journal, Memory
from msauto.model.result import format_time
from msauto.model.server import ServerSpec
from msauto.planning.asset_survey import SurveyContext
from msauto.planning.left_out import TargetChoice
from msauto.planning.limits import Protection
from msauto.planning.survey import Survey, failed_survey, survey
from msauto.secrets.redacted_plans import SecretMemory
from msauto.secrets.redaction import Secrets
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import hash_file
from msauto.server.reader import ServerReader

if TYPE_CHECKING:
    from msauto.applying.apply_context import ApplyContext, ServerConnection
    from msauto.applying.executor import Records, Servers
    from msauto.ledger.journal import LedgerMemory
    from msauto.model.result import TargetResult
    from msauto.retry_policy import RetryPolicy
    from msauto.server.snapshots import ReadEach

    PlanServer = Callable[["ServerPlanning", LedgerMemory, Notify], Awaitable[Survey]]
    ReadServer = Callable[[ServerSpec, int | None], AbstractAsyncContextManager[ReadEach]]
    SettleServer = Callable[[str, str, Records], Awaitable[Mapping[int, TargetResult]]]
    ServersOfRun = Callable[[ApplyContext], Servers]

Frozen = Callable[[datetime], str | None]
"""Returns why no target may start at a time; ``None`` if it may."""


def never_frozen(_: datetime) -> None:
    """Return that targets may start at any time."""


class Workplace(Protocol):
    """Where servers are planned, read, settled and applied; each method connects until its context ends."""

    def check_ledger(self, ledger: Ledger) -> None:
        """Raise ``LedgerError`` if what works there cannot use the ledger; call it before locks are taken."""

    def planning(self, specs: Iterable[ServerSpec]) -> AbstractAsyncContextManager[PlanServer]:
        """Return what plans a server, with GET and HEAD only."""

    def reading(self, specs: Iterable[ServerSpec]) -> AbstractAsyncContextManager[ReadServer]:
        """Return what opens a server to read, so many items at a time (``None``: as many as it has connections)."""

    def settling(
        self, stage: StageContext, scopes: Collection[LockScope], journal: Journal
    ) -> AbstractAsyncContextManager[SettleServer]:
        """Return what settles, by reading, targets of a run that died on a server."""

    def applying(
        self, stage: StageContext, plan: Plan, journal: Journal, frozen: Frozen
    ) -> AbstractAsyncContextManager[ServersOfRun]:
        """Return what applies the servers of a run; ``frozen`` is asked before each target."""


class ServerPlanning(Struct, frozen=True):
    """How to plan one server.

    Evaluating the intents adds to ``secrets``; ``choice`` and ``protection`` remember what they matched.
    """

    work: ServerIntents
    secrets: Secrets
    choice: TargetChoice
    clock: Clock
    forks: int | None
    protection: Protection
    forget: bool


Connect = Callable[..., AsyncMediaServer]
"""Makes the client of a server, with what ``AsyncMediaServer`` takes."""


async def plan_server(
    given: ServerPlanning,
    memory: Memory,
    notify: Notify,
    hash_file: HashFile = hash_file,
    connect: Connect = AsyncMediaServer,
) -> Survey:
    """Plan one server. Sends GET and HEAD only. No event holds a secret.

    An error of a server, whatever its class, is that of its tasks; those of the ledger and of a cluster are raised.
    """
    spec, secrets = given.work.server, given.secrets

    def notify_redacted(event: Event) -> None:
        if isinstance(event, TargetPlanned) and event.error:
            event = structs.replace(event, error=secrets.redact_message(event.error))
        notify(event)

    delay = spec.dialect.longest_delay
    overdue = format_time(given.clock.now() - delay) if delay else ""
    try:
        async with connect(spec, read_only=True, clock=given.clock, gives_up=True) as client:
            context = SurveyContext(
                spec,
                ServerReader(client, clock=given.clock),
                SecretMemory(memory, secrets),
                hash_file,
                protection=given.protection,
                forget=given.forget,
                overdue=overdue,
                secrets=secrets,
                choice=given.choice,
                left_out=given.work.left_out,
                notify=notify_redacted,
            )
            surveyed = await survey(
                given.work.intents, context, forks=given.forks or spec.connections
            )
            return structs.replace(surveyed, is_unreachable=client.unreachable)
    except Exception as error:
        if isinstance(error, MsautoError) and not isinstance(error, ServerError):
            raise
        return failed_survey(spec.name, given.work.intents, error, notify_redacted)


class ThisProcess(Struct, frozen=True):
    """The :class:`Workplace` without a cluster; ``connect`` and ``hash_file`` are what it works with."""

    connect: Connect = AsyncMediaServer
    hash_file: HashFile = hash_file

    def check_ledger(self, ledger: Ledger) -> None:
        """Accept any ledger."""

    def planning(self, specs: Iterable[ServerSpec]) -> AbstractAsyncContextManager[PlanServer]:
        """Implement :meth:`Workplace.planning`."""
        del specs
        return nullcontext(partial(plan_server, hash_file=self.hash_file, connect=self.connect))

    def reading(self, specs: Iterable[ServerSpec]) -> AbstractAsyncContextManager[ReadServer]:
        """Implement :meth:`Workplace.reading`."""
        del specs

        @asynccontextmanager
        async def read_server(server: ServerSpec, forks: int | None) -> AsyncIterator[ReadEach]:
            async with self.connect(server, read_only=True) as client:
                reader, limit = ServerReader(client), forks or server.connections
                yield lambda read, items: concurrent_map(partial(read, reader), items, limit=limit)

        return nullcontext(read_server)

    @asynccontextmanager
    async def settling(
        self, stage: StageContext, scopes: Collection[LockScope], journal: Journal
    ) -> AsyncIterator[SettleServer]:
        """Implement :meth:`Workplace.settling`."""
        from msauto.applying.apply_context import ApplyContext, Cancellation, GroupCommit
        from msauto.applying.executor import settle_here
        from msauto.retry_policy import RetryPolicy

        del scopes
        memory, policy = (
            stage.ledger.memory(stage.resolved.specs),
            stage.policy or RetryPolicy(),
        )
        async with _connected(stage, self.connect, read_only=True) as connections:

            async def settle(run: str, server: str, records: Records) -> Mapping[int, TargetResult]:
                commits, stop = GroupCommit(journal), Cancellation()
                context = ApplyContext(
                    run, journal, memory, stage.clock, ignore, commits, stop, policy
                )
                return await settle_here(context, connections[server], records)

            yield settle

    @asynccontextmanager
    async def applying(
        self, stage: StageContext, plan: Plan, journal: Journal, frozen: Frozen
    ) -> AsyncIterator[ServersOfRun]:
        """Implement :meth:`Workplace.applying`."""
        from msauto.applying.executor import ServersHere

        del plan
        async with _connected(stage, self.connect, admit=journal.check) as connections:
            yield partial(
                ServersHere, connections=connections, frozen=lambda: frozen(stage.clock.now())
            )


class StageContext(Struct, frozen=True):
    """What the stages of a run have in common; ``forks`` are the targets at a time.

    The secrets of what is ``resolved`` are redacted in all that is recorded and reported.
    """

    ledger: Ledger
    resolved: ResolvedPlaybooks
    clock: Clock
    forks: int | None = None
    workplace: Workplace = field(default_factory=ThisProcess)
    policy: RetryPolicy | None = None


@asynccontextmanager
async def _connected(
    stage: StageContext, connect: Connect, **options: Any
) -> AsyncIterator[dict[str, ServerConnection]]:
    """Connect to the servers; ``options`` as for ``AsyncMediaServer``."""
    from msauto.applying.apply_context import ServerConnection

    slots_of_all = asyncio.Semaphore(stage.forks) if stage.forks else None
    async with AsyncExitStack() as stack:
        servers = {}
        for spec in stage.resolved.specs:
            client = await stack.enter_async_context(connect(spec, clock=stage.clock, **options))
            servers[spec.name] = ServerConnection(
                reader=ServerReader(client, clock=stage.clock),
                sender=client,
                slots=slots_of_all or asyncio.Semaphore(spec.connections),
                shows_after=spec.dialect.longest_delay.total_seconds(),
            )
        yield servers
