"""The stages of a run, connected: text → intents → plan → results.

::

    resolved = resolve(options)                       # playbook/: from text to intents, offline
    plan = await make_plan(resolved, ...)             # server/ reads, planning/ compares
    result = await apply_plan(plan, context, ...)     # applying/ sends, settles and verifies

The clients used for planning and recovery refuse everything but GET and HEAD. All functions raise ``MsautoError``.
What only some commands need is imported where it is used, so that a plan starts soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from msauto.api.server_plan import ServerPlanning, plan_server
from msauto.concurrency import concurrent_list, concurrent_map
from msauto.errors import ClusterError, RefusedError
from msauto.ledger.journal import LedgerMemory
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope
from msauto.model.desired import IdRef, ResolvedPlaybooks, ServerIntents
from msauto.model.events import SILENT, Event, Observer
from msauto.model.plan import Limits, Plan, Target
from msauto.model.ports import Clock, Journal
from msauto.model.result import Result, RunDetails, TargetResult
from msauto.model.server import ServerSpec
from msauto.planning.plan_assembly import assemble
from msauto.planning.survey import Survey
from msauto.planning.target_choice import TargetChoice
from msauto.report.texts import plural
from msauto.secrets.redacted_plans import SecretMemory
from msauto.secrets.redaction import Secrets
from msauto.server.access import check_addresses
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads import hash_file
from msauto.server.reader import ServerReader
from msauto.version import __version__

if TYPE_CHECKING:
    from msauto.api.on_workers import WorkersOfRun
    from msauto.applying.apply_context import ApplyContext, Cancellation, ServerConnection
    from msauto.applying.cluster import Cluster
    from msauto.applying.executor import Servers, Settle
    from msauto.applying.states import RetryPolicy
    from msauto.server.snapshots import ReadEach

_URL_NOTE = "url of "


class StageContext(Struct, frozen=True):
    """What the stages that write to a ledger have in common.

    ``secrets`` are redacted in all that is recorded and reported. ``forks``: the targets at a time. ``on``: the Dask
    cluster whose workers do the work, such as ``dask://HOST:PORT``.
    """

    ledger: Ledger
    specs: Sequence[ServerSpec]
    clock: Clock
    secrets: Secrets
    forks: int | None = None
    on: str | None = None
    policy: RetryPolicy | None = None


def specs_of(resolved: ResolvedPlaybooks) -> tuple[ServerSpec, ...]:
    """Return the servers of the playbooks, in their order."""
    return tuple(work.server for work in resolved.work)


def scopes_of(resolved: ResolvedPlaybooks) -> frozenset[LockScope]:
    """Return the locks that a run needs: one for each database, and one for the channels of each server.

    A target addressed by the ``handle`` of an open file needs no lock: an on-delete trigger may run msauto while msauto
    deletes (interface, «States»).
    """
    return frozenset(
        LockScope(work.server.url, getattr(intent.ref, "database", ""))
        for work in resolved.work
        for intent in work.intents
        if not (isinstance(intent.ref, IdRef) and intent.ref.namespace == "handle")
    )


async def make_plan(
    resolved: ResolvedPlaybooks,
    memory: LedgerMemory,
    clock: Clock,
    limits: Limits,
    observer: Observer = SILENT,
    *,
    forks: int | None,
    forget_pending: bool = False,
    targets: Sequence[str] = (),
    on: str | None = None,
) -> Plan:
    """Read the servers, compare, and return the plan. Sends GET and HEAD only, and downloads no file.

    ``forks``: the targets surveyed at a time on each server; ``None``: as many as it has connections. A target that
    cannot be planned carries its error.
    ``forget_pending`` drops what earlier runs left: pending handlers, and commands in doubt. ``targets`` are globs of
    titles: the plan is that of the targets that they match, and a glob that matches none is an error. ``observer``
    receives the progress, without secrets. ``on``: the Dask cluster whose workers read, such as ``dask://HOST:PORT``.
    """
    read_since, specs = clock.now(), specs_of(resolved)
    by_url = memory.by_url(specs)
    choice = TargetChoice(targets)

    def notify(event: Event) -> None:
        with suppress(Exception):
            observer.notify(event)

    async def plan_one(work: ServerIntents) -> Survey:
        find_links = bool(limits.protected)
        given = ServerPlanning(work, resolved.secrets, choice, clock, forks, find_links, forget_pending)
        if cluster is not None:
            from msauto.api.on_workers import plan_on

            return await plan_on(cluster, given, by_url, notify)
        return await plan_server(given, by_url, hash_file, notify)

    with resolved.secrets.redacted_errors():
        await check_addresses(specs)
        async with nullcontext() if on is None else _cluster(on, specs) as cluster:
            surveys = await concurrent_list(plan_one, resolved.work, limit=max(1, len(specs)))
    created = clock.now().isoformat(timespec="seconds")
    plan = assemble(resolved, surveys, created=created, version=__version__, limits=limits)
    if not plan.errors:
        choice.require_matches()
    unreachable = frozenset(each.server for each in surveys if each.is_unreachable)
    return structs.replace(
        plan, warnings=(*choice.warnings, *plan.warnings), unreachable=unreachable, read_since=read_since
    )


@asynccontextmanager
async def reading_here(server: ServerSpec, forks: int | None) -> AsyncIterator[ReadEach]:
    """Connect to a server; return what reads it in this process, ``forks`` items at a time (see :func:`make_plan`)."""
    async with AsyncMediaServer(server, read_only=True) as client:
        reader = ServerReader(client)
        yield lambda read, items: concurrent_map(partial(read, reader), items, limit=forks or server.connections)


ReadServer = Callable[[ServerSpec, int | None], "AbstractAsyncContextManager[ReadEach]"]
"""Opens a server with the items at a time."""


@asynccontextmanager
async def reading_on(on: str, specs: Sequence[ServerSpec]) -> AsyncIterator[ReadServer]:
    """Connect to a Dask cluster; return :func:`reading_here` for its workers."""
    from msauto.api.on_workers import read_each_on

    async with _cluster(on, specs) as cluster:
        yield lambda server, forks: nullcontext(partial(read_each_on, cluster, server, forks))


@asynccontextmanager
async def _cluster(on: str, specs: Sequence[ServerSpec]) -> AsyncIterator[Cluster]:
    try:
        from msauto.applying.cluster import open_cluster
    except ImportError as error:
        raise ClusterError(
            f"--on {on} needs the packages dask and distributed", remedy="pip install 'msauto[dask]'"
        ) from error
    from msauto.api.on_workers import Belongings

    belongings = Belongings(hash_file)
    async with open_cluster(on, specs, belongings.answer, belongings.reducers) as cluster:
        yield cluster


@asynccontextmanager
async def _connect(context: StageContext, **options: Any) -> AsyncIterator[dict[str, ServerConnection]]:
    """Connect to the servers; ``options`` as for ``AsyncMediaServer``."""
    from msauto.applying.apply_context import ServerConnection

    of_all = asyncio.Semaphore(context.forks) if context.forks else None
    async with AsyncExitStack() as stack:
        servers = {}
        for spec in context.specs:
            client = await stack.enter_async_context(AsyncMediaServer(spec, **options))
            slots = of_all or asyncio.Semaphore(spec.connections)
            servers[spec.name] = ServerConnection(ServerReader(client, clock=context.clock), client, slots)
        yield servers


async def recover_runs(context: StageContext, scopes: Collection[LockScope]) -> tuple[str, ...]:
    """Settle what killed runs left in progress, by reading alone; return the lines to report.

    Only targets within ``scopes``, whose locks the caller holds, so that no other run writes to them.
    """
    from msauto.applying.executor import recover, settle_here
    from msauto.secrets.redacted_plans import Redactor, redacted

    ledger, specs, secrets = context.ledger, context.specs, context.secrets
    killed = [run.run for run in ledger.history() if run.status == "died"]
    if not killed:
        return ()
    lines: list[str] = []
    journal: Journal = redacted(ledger.journal, Redactor(secrets)) if secrets else ledger.journal
    memory = ledger.memory.by_url(specs)
    async with AsyncExitStack() as stack:
        connections = await stack.enter_async_context(_connect(context, read_only=True))
        cluster = None if context.on is None else await stack.enter_async_context(_cluster(context.on, specs))
        for run in reversed(killed):
            details = ledger.run_details(run)
            urls = {spec.name: spec.url for spec in specs if _url_of(details, spec) == spec.url}
            available = partial(_is_available, urls, scopes)
            settle: Settle = partial(
                settle_here,
                run=run,
                connections=connections,
                journal=journal,
                memory=memory,
                clock=context.clock,
                policy=context.policy,
            )
            if cluster is not None:
                workers = _workers_of(context, cluster, run, scopes, never_frozen, settles=True)
                settle = workers.settle
            results = await recover(details, settle, available, journal)
            lines += _report(details, results) if results else []
    return tuple(map(secrets.redact_message, lines)) if secrets else tuple(lines)


def _is_available(urls: Mapping[str, str], scopes: Collection[LockScope], target: Target) -> bool:
    """Return whether the server of a target still has the same URL, and the target is locked or needs no lock."""
    url = urls.get(target.server)
    locked = target.address.namespace == "handle" or LockScope(url or "", target.database) in scopes
    return url is not None and locked


def _report(details: RunDetails, results: Sequence[TargetResult]) -> list[str]:
    run = f"run {details.summary.run} (process {details.pid} on {details.host})"
    lines = [f"{run} died with {plural(len(results), 'target')} in progress, which msauto has read; nothing was sent:"]
    for each in results:
        outcome = f"{each.outcome}: {each.message}" if each.message else each.outcome
        lines.append(f"  {each.target.server}: {each.target.name}: {outcome}")
    return lines


def _url_of(details: RunDetails, spec: ServerSpec) -> str:
    """Return the URL that a server had in a run; its present one if the run did not record it."""
    return details.notes.get(f"{_URL_NOTE}{spec.name}", spec.url)


def never_frozen(_: datetime) -> None:
    """Return that targets may start at any time."""


async def apply_plan(
    plan: Plan,
    context: StageContext,
    observer: Observer,
    *,
    playbooks: Sequence[str] = (),
    cancellation: Cancellation | None = None,
    frozen: Callable[[datetime], str | None] = never_frozen,
    notes: Mapping[str, str] | None = None,
) -> Result:
    """Send the requests of a plan; settle, verify and record them. Return one result for each target.

    ``frozen`` is called with the time before each target: a text is why it is not attempted. ``notes`` are recorded
    with the run. Secrets are redacted in the result, in the ledger, and in the events for ``observer``. A cluster
    needs a shared ledger, and a ``frozen`` that can be pickled. Raises ``RefusedError`` for a plan with redacted
    requests, and for downloads on a cluster.
    """
    from msauto.applying.executor import apply
    from msauto.secrets.redacted_plans import Redactor, redacted

    for target in plan.targets:
        if any(request.secret for request in target.requests):  # it holds ``***``
            raise RefusedError(
                f"{target.name!r}: a request sends a secret, which neither a plan nor the ledger stores",
                remedy="apply the playbooks themselves: msauto apply PLAYBOOK",
            )
    ledger, specs, secrets = context.ledger, context.specs, context.secrets
    ledger.journal.notes.update({f"{_URL_NOTE}{spec.name}": spec.url for spec in specs} | dict(notes or {}))
    memory = SecretMemory(ledger.memory.by_url(specs), secrets)
    journal: Journal = ledger.journal
    redactor = Redactor(secrets)
    if secrets:
        memory.settle_salt(journal)
        journal = redacted(journal, redactor)
        observer = redacted(observer, redactor)
    with secrets.redacted_errors():
        here = _applying_here(context, journal, frozen)
        async with here if context.on is None else _applying_on(context.on, context, plan, frozen) as servers_of:
            result = await apply(
                servers_of,
                plan,
                journal,
                memory,
                context.clock,
                observer,
                playbooks=playbooks,
                cancellation=cancellation,
                policy=context.policy,
            )
    return redactor(result)


@asynccontextmanager
async def _applying_here(
    context: StageContext, journal: Journal, frozen: Callable[[datetime], str | None]
) -> AsyncIterator[Callable[[ApplyContext], Servers]]:
    """Connect to the servers; return what applies them in this process."""
    from msauto.applying.executor import ServersHere

    async with _connect(context, admit=journal.check) as connections:
        yield partial(ServersHere, connections=connections, frozen=lambda: frozen(context.clock.now()))


@asynccontextmanager
async def _applying_on(
    on: str, context: StageContext, plan: Plan, frozen: Callable[[datetime], str | None]
) -> AsyncIterator[Callable[[ApplyContext], Servers]]:
    """Connect to a cluster; return what applies servers on its workers. Needs a shared ledger."""
    from msauto.api.on_workers import ServersOnWorkers

    for target in plan.targets:
        if any(request.dest is not None for request in target.requests):
            raise RefusedError(
                f"{target.name!r}: a download is saved on this machine, and workers run on others",
                remedy="apply the tasks with downloads without --on; choose them with --tags",
            )
    urls = {spec.name: spec.url for spec in context.specs}
    targets = (target for target in plan.targets if target.address.namespace != "handle")
    scopes = {LockScope(urls[target.server], target.database) for target in targets}  # as in scopes_of
    async with _cluster(on, context.specs) as cluster:

        def servers_of(applying: ApplyContext) -> Servers:
            more = {"policy": applying.policy, "read_since": applying.read_since}
            workers = _workers_of(context, cluster, applying.run, scopes, frozen, **more)
            return ServersOnWorkers(applying, workers, lambda: frozen(context.clock.now()))

        yield servers_of


def _workers_of(
    context: StageContext,
    cluster: Cluster,
    run: str,
    scopes: Collection[LockScope],
    frozen: Callable[[datetime], str | None],
    **more: Any,
) -> WorkersOfRun:
    from msauto.api.on_workers import SharedRun, WorkersOfRun

    ledger = context.ledger
    shared = SharedRun(run, *ledger.admit_workers(), scopes, context.secrets, context.forks, frozen, **more)
    return WorkersOfRun(cluster, ledger, {spec.name: spec for spec in context.specs}, shared)


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
