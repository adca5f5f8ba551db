"""The async face, and the only wiring of the rooms: text → intents → plan → results.

::

    resolved = resolve(options)                       # playbook/: text becomes wanted state
    plan = await make_plan(resolved, ...)             # server/ reads, planning/ compares: the plan is a value
    plan, stale = await recheck_plan(saved, ...)      # or: a plan that was saved is held against what is there
    result = await apply_plan(plan, specs, ...)       # applying/ sends it, settles it, proves it

Clients used for planning refuse everything but GET and HEAD.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from msgspec import structs

from msauto.applying.executor import Cancellation, RetryPolicy, ServerConnection, apply
from msauto.applying.recovery import RecoveredTarget, recover
from msauto.applying.redacted_ports import RedactedJournal, RedactedObserver
from msauto.concurrency import concurrent_list
from msauto.errors import MsautoError, RefusedError
from msauto.ledger import Ledger, LockScope
from msauto.model.desired import IdRef, ResolvedPlaybooks, ServerIntents
from msauto.model.events import Observer
from msauto.model.history import RunDetails
from msauto.model.limits import Limits
from msauto.model.plan import Json, Plan, Target, TargetId
from msauto.model.ports import Clock, Journal, Memory, Reader
from msauto.model.result import Result
from msauto.model.server import ServerSpec
from msauto.planning.assembly import assemble
from msauto.planning.saved_plans.stale import why_stale, with_current_places
from msauto.planning.survey.survey import Survey, survey
from msauto.planning.undo.undo import undo_run
from msauto.secrets.redactor import Redactor
from msauto.secrets.taint import NO_SECRETS, Secrets, SecretsFound
from msauto.secrets.tokens import SecretTokenMemory
from msauto.server.availability.planning_client import PlanningClient
from msauto.server.availability.retry_policy import SystemClock
from msauto.server.client import AsyncMediaServer
from msauto.server.downloads.delivery import Delivery, LocalDisk
from msauto.server.reader import ServerReader
from msauto.version import __version__

__all__ = [
    "SystemClock",
    "apply_plan",
    "check_servers",
    "make_plan",
    "recheck_plan",
    "recover_runs",
    "scopes_of",
    "scopes_of_plan",
    "specs_of",
    "undo_of",
]

_URL_NOTE = "url of "


@dataclass(frozen=True, slots=True)
class MemoryByUrl:
    """Keeps memories by the server's URL, so that a host renamed in the inventory is the same server."""

    memory: Memory
    urls: Mapping[str, str]

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return what is remembered of a target."""
        return self.memory.recall(self._by_url(target))

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Keep items of a target."""
        self.memory.remember(self._by_url(target), items)

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget items of all assets of a database."""
        self.memory.forget_assets(self.urls.get(server, server), database, prefix)

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return the assets of a server of which something is pending."""
        return self.memory.pending(self.urls.get(server, server))

    def _by_url(self, target: TargetId) -> TargetId:
        return structs.replace(target, server=self.urls.get(target.server, target.server))


def _by_url(memory: Memory, specs: Iterable[ServerSpec]) -> MemoryByUrl:
    return MemoryByUrl(memory, {spec.name: spec.url for spec in specs})


def specs_of(resolved: ResolvedPlaybooks) -> tuple[ServerSpec, ...]:
    """Return the servers that the playbooks play on, in their order."""
    return tuple(work.server for work in resolved.work)


def scopes_of(resolved: ResolvedPlaybooks) -> frozenset[LockScope]:
    """Return what the run must hold alone: each server's databases, and its channels.

    A target addressed by an open file's ``handle`` takes no lock: an on-delete trigger may run msauto while msauto
    deletes (interface, «States and transitions»).
    """
    return frozenset(
        LockScope(work.server.url, getattr(intent.ref, "database", ""))
        for work in resolved.work
        for intent in work.intents
        if not (isinstance(intent.ref, IdRef) and intent.ref.namespace == "handle")
    )


def scopes_of_plan(plan: Plan, specs: Iterable[ServerSpec]) -> frozenset[LockScope]:
    """Return what a run of a saved plan must hold alone: as :func:`scopes_of`."""
    urls = {spec.name: spec.url for spec in specs}
    return frozenset(
        LockScope(urls[target.server], target.database)
        for target in plan.targets
        if target.address.namespace != "handle"
    )


async def make_plan(
    resolved: ResolvedPlaybooks,
    *,
    memory: Memory,
    clock: Clock,
    forks: int,
    limits: Limits,
    forget_pending: bool = False,
) -> Plan:
    """Read the servers, compare, and return the plan. Sends GET and HEAD only, and fetches no file.

    ``forks`` targets are surveyed at a time on each server. A target that cannot be planned carries its error.
    ``forget_pending`` takes as settled what earlier runs have left open: pending handlers, commands that may have run.
    """
    remembered = SecretTokenMemory(_by_url(memory, specs_of(resolved)), resolved.secrets.known)

    async def survey_one(work: ServerIntents) -> Survey:
        async with PlanningClient(work.server, read_only=True) as client:
            reader = ServerReader(client, clock=clock)
            return await survey(
                work,
                reader,
                remembered,
                forks=forks,
                find_links=bool(limits.protected),
                disk=LocalDisk(),
                forget_pending=forget_pending,
                secrets=resolved.secrets.known,
            )

    with resolved.secrets.kept_out_of_errors():
        surveys = await concurrent_list(survey_one, resolved.work, limit=max(1, len(resolved.work)))
    created = clock.now().isoformat(timespec="seconds")
    return assemble(resolved, surveys, created=created, version=__version__, limits=limits)


async def recheck_plan(
    plan: Plan, specs: Sequence[ServerSpec], *, memory: Memory, clock: Clock, forks: int, find_links: bool = False
) -> tuple[Plan, int]:
    """Read every target of a saved plan again; return the plan that still fits, and how many targets do not.

    A target that has changed, or that cannot be read, carries that as its error, and no changes or requests; only the
    former count as stale. ``find_links`` looks anew where assets show from which something is to be taken: for limits
    that protect folders, which may be others than when the plan was made. Sends GET and HEAD only.
    """
    remembered = _by_url(memory, specs)
    async with AsyncExitStack() as stack:
        readers: dict[str, Reader] = {}
        for spec in specs:
            client = await stack.enter_async_context(PlanningClient(spec, read_only=True))
            readers[spec.name] = ServerReader(client, clock=clock)

        async def recheck(target: Target) -> tuple[Target, bool]:
            if target.error is not None:
                return target, False
            try:
                why = await why_stale(target, readers[target.server], remembered)
                if find_links and why is None:
                    target = await with_current_places(target, readers[target.server])
            except MsautoError as error:
                return structs.replace(target, changes=(), requests=(), error=str(error)), False
            return (
                (structs.replace(target, changes=(), requests=(), error=f"stale: {why}"), True)
                if why
                else (target, False)
            )

        checked = await concurrent_list(recheck, plan.targets, limit=forks)
    return structs.replace(plan, targets=tuple(target for target, _ in checked)), sum(stale for _, stale in checked)


@asynccontextmanager
async def _servers(
    specs: Sequence[ServerSpec], clock: Clock, *, read_only: bool = False
) -> AsyncIterator[dict[str, ServerConnection]]:
    async with AsyncExitStack() as stack:
        servers = {}
        for spec in specs:
            client = await stack.enter_async_context(AsyncMediaServer(spec, read_only=read_only))
            servers[spec.name] = ServerConnection(reader=ServerReader(client, clock=clock), sender=Delivery(client))
        yield servers


async def recover_runs(
    ledger: Ledger,
    specs: Sequence[ServerSpec],
    scopes: Collection[LockScope],
    *,
    clock: Clock,
    forks: int,
    policy: RetryPolicy | None = None,
    secrets: Secrets = NO_SECRETS,
) -> tuple[str, ...]:
    """Settle what dead runs left open, by reading alone; return what to tell a person.

    Only targets within ``scopes``, which the caller holds: nobody else is writing to them. ``secrets`` are those that
    are known by now: a server may repeat in an error what it was sent then.
    """
    dead = [run.run for run in ledger.history() if run.status == "died"]
    if not dead:
        return ()
    told: list[str] = []
    journal: Journal = RedactedJournal(ledger.journal, Redactor(secrets)) if secrets else ledger.journal
    async with _servers(specs, clock, read_only=True) as servers:
        for run in reversed(dead):
            details = ledger.run_details(run)
            urls = {spec.name: spec.url for spec in specs if _url_of(details, spec.name, spec.url) == spec.url}

            def server_of(target: Target, urls: Mapping[str, str] = urls) -> ServerConnection | None:
                free = (
                    target.address.namespace == "handle"
                    or LockScope(urls.get(target.server, ""), target.database) in scopes
                )
                return servers[target.server] if target.server in urls and free else None

            memory = _by_url(ledger.memory, specs)
            found = await recover(details, server_of, journal, memory, clock, forks=forks, policy=policy)
            told += _told(details, found) if found is not None else []
    return tuple(map(secrets.hide_cut, told)) if secrets else tuple(told)


def _told(details: RunDetails, found: RecoveredTarget) -> list[str]:
    if not found.targets:
        return []
    who = f"run {found.run} (process {details.pid} on {details.host})"
    count = len(found.targets)
    under_way = "1 target" if count == 1 else f"{count} targets"
    lines = [f"{who} died with {under_way} under way, which msauto has read; nothing was sent:"]
    for each in found.targets:
        words = f"{each.outcome}: {each.message}" if each.message else each.outcome
        lines.append(f"  {each.target.server}: {each.target.name}: {words}")
    return lines


def _url_of(details: RunDetails, name: str, default: str) -> str:
    return details.notes.get(f"{_URL_NOTE}{name}", default)


async def apply_plan(
    plan: Plan,
    specs: Sequence[ServerSpec],
    *,
    ledger: Ledger,
    clock: Clock,
    observer: Observer,
    forks: int,
    playbooks: Sequence[str] = (),
    stop: Cancellation | None = None,
    frozen: Callable[[], str | None] = lambda: None,
    notes: Mapping[str, str] | None = None,
    policy: RetryPolicy | None = None,
) -> Result:
    """Send what the plan shows, and nothing else; settle, prove and record it. One result for each target.

    ``frozen`` is asked before each target, ``notes`` are recorded with the run, and where its servers are.
    ``patience``: how long to try and to look. No secret of the plan is in the result, the ledger, or what ``observer``
    is told. Raises ``RefusedError`` for a plan of which parts are hidden.
    """
    _refuse_hidden(plan)
    ledger.journal.notes.update({f"{_URL_NOTE}{spec.name}": spec.url for spec in specs} | dict(notes or {}))
    memory = SecretTokenMemory(_by_url(ledger.memory, specs), lambda: plan.secrets)
    journal: Journal = ledger.journal
    shown = Redactor(plan.secrets)
    if plan.secrets:
        memory.settle_salt(journal)
        journal = RedactedJournal(journal, Redactor(plan.secrets, memory.conceal))
        observer = RedactedObserver(observer, shown)
    with SecretsFound(plan.secrets.texts).kept_out_of_errors():
        async with _servers(specs, clock) as servers:
            result = await apply(
                plan,
                servers,
                journal,
                memory,
                clock,
                observer,
                forks=forks,
                playbooks=playbooks,
                stop=stop,
                frozen=frozen,
                policy=policy,
            )
    return shown.result(result) if plan.secrets else result


def _refuse_hidden(plan: Plan) -> None:
    """Refuse to send ``***``: what was shown or kept of a secret cannot be applied."""
    for target in plan.targets:
        if any(request.secret for request in target.requests):
            raise RefusedError(
                f"{target.name!r}: a request sends a secret, which neither a plan nor the ledger holds",
                remedy="apply the playbooks themselves: msauto apply PLAYBOOK",
            )


def undo_of(details: RunDetails, specs: Iterable[ServerSpec]) -> ResolvedPlaybooks:
    """Return what takes a run of the ledger back, as intents to plan; ``warnings`` list what cannot be taken back.

    Raises :class:`RefusedError` for a run that goes on, and where a server's name leads to another one by now.
    """
    named = {spec.name: spec for spec in specs}
    check_servers(details, named.values())
    return undo_run(details, named)


def check_servers(details: RunDetails, specs: Iterable[ServerSpec]) -> None:
    """Raise :class:`RefusedError` where a server's name leads to another one by now than it did in a run."""
    for spec in specs:
        url = _url_of(details, spec.name, spec.url)
        if url != spec.url:
            raise RefusedError(
                f"run {details.summary.run} was done on {spec.name} at {url}, and the inventory has it at {spec.url}",
                remedy="give the inventory of that run (-i)",
            )
