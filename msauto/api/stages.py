"""The stages of a run, connected: text → intents → plan → results.

::

    stage = StageContext(ledger, resolve(options), clock)  # playbook/: from text to intents, offline
    plan = await make_plan(stage, limits)                  # server/ reads, planning/ compares
    result = await apply_plan(plan, stage, notify)         # applying/ sends, settles and verifies

The clients used for planning and recovery refuse everything but GET and HEAD. All functions raise ``MsautoError``, in
which the secrets are redacted by those that plan and apply; :mod:`msauto.api.run` does it around the locks as well.
What only some commands need is imported where it is used, so that a plan starts soon.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from msauto import sockets
from msauto.api.workplace import (
    Frozen,
    ServerPlanning,
    StageContext,
    ThisProcess,
    Workplace,
    never_frozen,
)
from msauto.concurrency import concurrent_list
from msauto.errors import RefusedError
from msauto.ledger.locks import LockScope
from msauto.model.desired import IdRef, ResolvedPlaybooks, ServerIntents
from msauto.model.events import Event, Notify, ignore
from msauto.model.plan import Limits, Plan, Target
from msauto.model.ports import Journal
from msauto.model.result import Result, RunDetails
from msauto.model.server import ServerSpec
from msauto.planning.left_out import TargetChoice
from msauto.planning.limits import Protection
from msauto.planning.survey import Survey, assemble
from msauto.report.texts import plural
from msauto.secrets.redacted_plans import SecretMemory
from msauto.server.access import check_addresses
from msauto.version import __version__

if TYPE_CHECKING:
    from msauto.applying.apply_context import Cancellation

_URL_NOTE = "url of "


def workplace_on(address: str | None) -> Workplace:
    """Return what works at an address, such as ``dask://HOST:PORT``, by its scheme; without one, this process."""
    if address is None:
        return ThisProcess()
    scheme, _, place = address.partition("://")
    scheme = scheme.lower()
    workplace: Workplace = sockets.find("workplaces", scheme)(f"{scheme}://{place}")
    return workplace


def scopes_of(resolved: ResolvedPlaybooks) -> frozenset[LockScope]:
    """Return the locks that a run needs: one for each database, and one for the channels of each server.

    A target addressed by the ``handle`` of an open file needs no lock: an on-delete trigger may run msauto while msauto
    deletes (interface, «States»).
    """
    scopes = set()
    for work in resolved.work:
        for intent in work.intents:
            is_open_file = isinstance(intent.ref, IdRef) and intent.ref.namespace == "handle"
            if not is_open_file:
                scopes.add(LockScope(work.server.url, getattr(intent.ref, "database", "")))
    return frozenset(scopes)


async def make_plan(
    stage: StageContext,
    limits: Limits,
    notify: Notify = ignore,
    *,
    targets: Sequence[str] = (),
    forget_pending: bool = False,
) -> Plan:
    """Read the servers, compare, and return the plan. Sends GET and HEAD only, and downloads no file.

    A target that cannot be planned carries its error. ``targets`` are globs of titles: the plan is that of the targets
    that they match, and a glob that matches none is an error. ``forget_pending`` drops what earlier runs left: pending
    handlers, and what is in doubt. ``notify`` receives the progress, without secrets.
    """
    resolved, specs, choice = stage.resolved, stage.resolved.specs, TargetChoice(targets)
    protection = Protection(limits.protected, limits.read_only)
    read_since, memory = stage.clock.now(), stage.ledger.memory(specs, for_plan=True)

    def plan_one(work: ServerIntents) -> Awaitable[Survey]:
        given = ServerPlanning(
            work, resolved.secrets, choice, stage.clock, stage.forks, protection, forget_pending
        )
        return plan_server(given, memory, notify)

    with resolved.secrets.redacted_errors():
        await check_addresses(specs)
        async with stage.workplace.planning(specs) as plan_server:
            surveys = await concurrent_list(plan_one, resolved.work, limit=max(1, len(specs)))
    created = stage.clock.now().isoformat(timespec="seconds")
    plan = assemble(resolved, surveys, created=created, version=__version__, limits=limits)
    if not plan.errors:
        choice.require_matches()
    unreachable = frozenset(survey.server for survey in surveys if survey.is_unreachable)
    return structs.replace(
        plan,
        warnings=(*choice.warnings, *protection.warnings, *plan.warnings),
        unreachable=unreachable,
        read_since=read_since,
    )


async def recover_runs(stage: StageContext, scopes: Collection[LockScope]) -> tuple[str, ...]:
    """Settle what killed runs left in progress, by reading alone; return the lines to report.

    Only targets within ``scopes``, whose locks the caller holds, so that no other run writes to them.
    """
    from msauto.applying.executor import recover
    from msauto.secrets.redacted_plans import Redactor, redacted

    ledger, secrets = stage.ledger, stage.resolved.secrets
    killed = ledger.died_runs()
    if not killed:
        return ()
    lines: list[str] = []
    journal: Journal = ledger.journal
    if secrets.texts:
        journal = redacted(journal, Redactor(secrets))
    async with stage.workplace.settling(stage, scopes, journal) as settle:
        for run in reversed(killed):
            details = ledger.run_details(run)
            specs = stage.resolved.specs
            kept_urls = {
                spec.name: spec.url for spec in specs if _url_of(details, spec) == spec.url
            }
            is_available = partial(_is_available, urls=kept_urls, scopes=scopes)
            results = await recover(details, partial(settle, run), is_available, journal)
            if results:
                died = f"run {run} (process {details.pid} on {details.host}) died with {plural(len(results), 'target')}"
                lines.append(f"{died} in progress; what msauto finds now by reading:")
            for result in results:
                line = f"  {result.target.server}: {result.target.name}: {result.outcome}"
                if result.message:
                    line += f": {result.message}"
                lines.append(line)
    return tuple(map(secrets.redact_message, lines))


def _is_available(
    target: Target, *, urls: Mapping[str, str], scopes: Collection[LockScope]
) -> bool:
    """Return whether its server is among those with the same URL still, and it is locked or needs no lock."""
    url = urls.get(target.server)
    if url is None:
        return False
    return target.address.namespace == "handle" or LockScope(url, target.database) in scopes


def _url_of(details: RunDetails, spec: ServerSpec) -> str:
    """Return the URL that a server had in a run; its present one if the run did not record it."""
    return details.notes.get(f"{_URL_NOTE}{spec.name}", spec.url)


async def apply_plan(
    plan: Plan,
    stage: StageContext,
    notify: Notify,
    *,
    playbooks: Sequence[str] = (),
    cancellation: Cancellation | None = None,
    frozen: Frozen = never_frozen,
    notes: Mapping[str, str] | None = None,
) -> Result:
    """Send the requests of a plan; settle, verify and record them. Return one result for each target.

    ``frozen`` is called with the time before each target: a text is why it is not attempted. ``notes`` are recorded
    with the run. Secrets are redacted in the result, in the ledger, and in the events for ``notify``. A cluster
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
    ledger, specs, secrets = stage.ledger, stage.resolved.specs, stage.resolved.secrets
    ledger.journal.notes.update({f"{_URL_NOTE}{spec.name}": spec.url for spec in specs})
    ledger.journal.notes.update(notes or {})
    memory = SecretMemory(ledger.memory(specs), secrets)
    journal: Journal = ledger.journal
    redactor = Redactor(secrets)
    observe = notify
    if secrets.texts:
        memory.settle_salt(journal)
        journal = redacted(journal, redactor)

        def observe(event: Event) -> object:
            return notify(redactor(event))

    with secrets.redacted_errors():
        async with stage.workplace.applying(stage, plan, journal, frozen) as servers_of:
            result = await apply(
                servers_of,
                plan,
                journal,
                memory,
                stage.clock,
                observe,
                playbooks=playbooks,
                cancellation=cancellation,
                policy=stage.policy,
            )
    return redactor(result)


def undo_of(
    details: RunDetails, specs: Iterable[ServerSpec], targets: Sequence[str] = ()
) -> ResolvedPlaybooks:
    """Return the intents that undo a run of the ledger; ``warnings`` list what cannot be undone.

    Raises :class:`RefusedError` for a run in progress, and if a server has another URL than in the run.
    """
    from msauto.planning.undo import undo_run

    named = {spec.name: spec for spec in specs}
    check_servers(details, named.values())
    return undo_run(details, named, TargetChoice(targets))


def check_servers(details: RunDetails, specs: Iterable[ServerSpec]) -> None:
    """Raise :class:`RefusedError` if a server has another URL than it had in a run."""
    for spec in specs:
        url = _url_of(details, spec)
        if url != spec.url:
            raise RefusedError(
                f"run {details.summary.run} was applied to {spec.name} at {url}, but the inventory has {spec.url}",
                remedy="give the inventory of that run (-i)",
            )
