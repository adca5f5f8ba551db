"""The async API, and the only composition root: text → intents → plan → results.

::

    resolved = resolve(options)                       # playbook/: from text to intents, offline
    plan = await make_plan(resolved, ...)             # server/ reads, planning/ compares
    plan, stale = await recheck_plan(saved, ...)      # or: compare a saved plan with the live state
    result = await apply_plan(plan, specs, ...)       # applying/ sends, settles and verifies

The clients used for planning and recovery refuse everything but GET and HEAD. All functions raise ``MsautoError``.
What only some commands need is imported where it is used, so that a plan starts soon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from msauto.concurrency import concurrent_list
from msauto.errors import MsautoError, RefusedError, UnreachableError
from msauto.ledger import Ledger, LockScope
from msauto.ledger.memory import MemoryByUrl
from msauto.model.desired import IdRef, ResolvedPlaybooks, ServerIntents
from msauto.model.events import SILENT, Event, Observer, TargetPlanned, TargetsFound
from msauto.model.plan import Limits, Plan, Target
from msauto.model.ports import Clock, Journal, Memory, NamedMemory, Reader
from msauto.model.result import Result, TargetResult
from msauto.model.run_records import RunDetails
from msauto.model.server import ServerSpec
from msauto.planning.plan_assembly import assemble
from msauto.planning.survey.asset_survey import SurveyContext
from msauto.planning.survey.survey import Survey, survey
from msauto.planning.survey.target_choice import TargetChoice
from msauto.secrets.secret_tokens import SecretTokenMemory
from msauto.secrets.taint import NO_SECRETS, Secrets, SecretsFound
from msauto.server.availability import SystemClock
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads.part_file import hash_file
from msauto.server.planning_client import PlanningClient
from msauto.server.reader import ServerReader
from msauto.version import __version__

if TYPE_CHECKING:
    from msauto.applying.apply_context import ApplyContext
    from msauto.applying.executor import Cancellation, RetryPolicy, ServerConnection
    from msauto.applying.recovery import Settle
    from msauto.applying.wave_executor import WaveExecutor
    from msauto.server.snapshots import Take
    from msauto.slices.cluster import Cluster

__all__ = ["SystemClock"]

_URL_NOTE = "url of "


def specs_of(resolved: ResolvedPlaybooks) -> tuple[ServerSpec, ...]:
    """Return the servers of the playbooks, in their order."""
    return tuple(work.server for work in resolved.work)


def scopes_of(resolved: ResolvedPlaybooks) -> frozenset[LockScope]:
    """Return the locks that a run needs: one for each database, and one for the channels of each server.

    A target addressed by the ``handle`` of an open file needs no lock: an on-delete trigger may run msauto while msauto
    deletes (interface, «States and transitions»).
    """
    return frozenset(
        LockScope(work.server.url, getattr(intent.ref, "database", ""))
        for work in resolved.work
        for intent in work.intents
        if not (isinstance(intent.ref, IdRef) and intent.ref.namespace == "handle")
    )


def scopes_of_plan(plan: Plan, specs: Iterable[ServerSpec]) -> frozenset[LockScope]:
    """Return the locks that a run of a saved plan needs, as :func:`scopes_of`."""
    urls = {spec.name: spec.url for spec in specs}
    return frozenset(
        LockScope(urls[target.server], target.database)
        for target in plan.targets
        if target.address.namespace != "handle"
    )


async def make_plan(
    resolved: ResolvedPlaybooks,
    *,
    memory: NamedMemory,
    clock: Clock,
    forks: int,
    limits: Limits,
    forget_pending: bool = False,
    targets: Sequence[str] = (),
    observer: Observer = SILENT,
    on: str | None = None,
) -> Plan:
    """Read the servers, compare, and return the plan. Sends GET and HEAD only, and downloads no file.

    ``forks``: the targets surveyed at a time on each server. A target that cannot be planned carries its error.
    ``forget_pending`` drops what earlier runs left: pending handlers, and commands in doubt. ``targets`` are globs of
    titles: the plan is that of the targets that they match, and a glob that matches none is an error. ``observer``
    receives the progress, without secrets. ``on``: the Dask cluster whose workers read, such as ``dask://HOST:PORT``.
    """
    by_url = MemoryByUrl(memory, specs_of(resolved))
    remembered = SecretTokenMemory(by_url, resolved.secrets.known)
    choice = TargetChoice(targets)

    def context_of(work: ServerIntents, reader: Reader) -> SurveyContext:
        return SurveyContext(
            work.server,
            reader,
            remembered,
            find_links=bool(limits.protected),
            hash_file=hash_file,
            forget=forget_pending,
            secrets=resolved.secrets.known,
            choice=choice,
            notify=partial(_notify, observer, resolved.secrets.known),
        )

    surveying = _Surveying(resolved, by_url, clock, forks, context_of)
    with resolved.secrets.redacted_errors():
        surveys = await surveying.run(on)
    created = clock.now().isoformat(timespec="seconds")
    plan = assemble(resolved, surveys, created=created, version=__version__, limits=limits)
    if not plan.errors:
        choice.require_matches()
    unreachable = frozenset(surveying.unreachable)
    return structs.replace(plan, warnings=(*choice.warnings, *plan.warnings), unreachable=unreachable)


@dataclass(frozen=True, slots=True)
class _Surveying:
    """The surveys of all servers of a plan; ``unreachable`` collects the names of servers that do not answer."""

    resolved: ResolvedPlaybooks
    memory: MemoryByUrl
    clock: Clock
    forks: int
    context_of: Callable[[ServerIntents, Reader], SurveyContext]
    unreachable: set[str] = field(default_factory=set)

    async def run(self, on: str | None) -> list[Survey]:
        """Survey all servers at the same time, here or on a cluster."""
        work = self.resolved.work
        async with AsyncExitStack() as stack:
            survey_one: Callable[[ServerIntents], Awaitable[Survey]] = self._here
            if on is not None:
                specs = specs_of(self.resolved)
                cluster = await stack.enter_async_context(_cluster(on, specs, self.resolved.secrets))
                survey_one = partial(self._on, cluster)
            return await concurrent_list(survey_one, work, limit=max(1, len(work)))

    async @asynccontextmanager
async def _applying_here(
    specs: Sequence[ServerSpec],
    journal: Journal,
    clock: Clock,
    frozen: Callable[[datetime], str | None],
    forks: int,
) -> AsyncIterator[Callable[[ApplyContext], WaveExecutor]]:
    """Connect to the servers; return what applies targets in this process."""
    from msauto.applying.wave_executor import LocalWaveExecutor

    async with _connect(specs, clock, partial(AsyncMediaServer, admit=journal.check)) as servers:
        yield partial(LocalWaveExecutor, servers=servers, frozen=lambda: frozen(clock.now()), forks=forks)


@asynccontextmanager
async def _applying_on(
    on: str,
    plan: Plan,
    specs: Sequence[ServerSpec],
    ledger: Ledger,
    clock: Clock,
    frozen: Callable[[datetime], str | None],
    forks: int,
) -> AsyncIterator[Callable[[ApplyContext], WaveExecutor]]:
    """Connect to a cluster; return what applies targets on its workers. Needs a shared ledger."""
    from msauto.applying.slices import SlicedWaveExecutor
    from msauto.slices.apply_slices import SharedApply

    scopes, place = scopes_of_plan(plan, specs), ledger.shared_place
    async with _cluster(on, specs, _found(plan.secrets)) as cluster:

        def executor_of(context: ApplyContext) -> WaveExecutor:
            shared = SharedApply(context.run, place, scopes, plan.secrets, frozen, context.policy)
            workers = cluster.applying(specs, ledger, shared, forks=forks)
            return SlicedWaveExecutor(context, workers, workers, lambda: frozen(clock.now()))

        yield executor_of


def _found(secrets: Secrets) -> SecretsFound:
    found = SecretsFound(secrets.texts)
    found.sources = secrets.sources
    return found


def _refuse_downloads(plan: Plan) -> None:
    for target in plan.targets:
        if any(request.dest is not None for request in target.requests):
            raise RefusedError(
                f"{target.name!r}: a download is saved on this machine, and workers run on others",
                remedy="apply the tasks with downloads without --on; choose them with --tags",
            )


def _refuse_redacted(plan: Plan) -> None:
    """Refuse to send ``***``: a redacted secret cannot be applied."""
    for target in plan.targets:
        if any(request.secret for request in target.requests):
            raise RefusedError(
                f"{target.name!r}: a request sends a secret, which neither a plan nor the ledger stores",
                remedy="apply the playbooks themselves: msauto apply PLAYBOOK",
            )


def undo_of(details: RunDetails, specs: Iterable[ServerSpec]) -> ResolvedPlaybooks:
    """Return the intents that undo a run of the ledger; ``warnings`` list what cannot be undone.

    Raises :class:`RefusedError` for a run in progress, and if a server has another URL than in the run.
    """
    from msauto.planning.undo import undo_run

    named = {spec.name: spec for spec in specs}
    check_servers(details, named.values())
    return undo_run(details, named)


def check_servers(details: RunDetails, specs: Iterable[ServerSpec]) -> None:
    """Raise :class:`RefusedError` if a server has another URL than it had in a run."""
    for spec in specs:
        url = _url_of(details, spec)
        if url != spec.url:
            raise RefusedError(
                f"run {details.summary.run} was applied to {spec.name} at {url}, but the inventory has {spec.url}",
                remedy="give the inventory of that run (-i)",
            )
