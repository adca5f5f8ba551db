"""msauto as a library, with asyncio: ``load``, ``plan``, ``apply``, ``undo``, ``export`` and ``history`` to await.

::

    import asyncio
    import msauto.aio

    async def tonight() -> None:
        play = await msauto.aio.load("news.yml", inventory="inventory.yml", extra_vars={"season": 3})
        plan = await msauto.aio.plan(play)
        print(plan.to_text())
        result = await msauto.aio.apply(plan, allow_delete=2, observer=print)
        assert result.ok

    asyncio.run(tonight())

The functions of the same names in :mod:`msauto` block. The keywords are the flags of the command line. The settings
(``msauto.toml``) are found as there: their limits, freezes and protected names hold. Nothing asks: what the command
asks for on a terminal is a keyword, ``allow_delete=2`` for example.

All errors are :class:`~msauto.errors.MsautoError`, with ``message``, ``place`` and ``remedy``. Warnings and notes go to
the logger ``msauto``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from msauto import sockets
from msauto.api import export as exporting
from msauto.api import loading
from msauto.api.export import Export, ExportSelection
from msauto.api.history import list_changes, list_runs, read_attempt
from msauto.api.inputs import PLAYS
from msauto.api.keywords import Data, File, Texts, checked, inputs_of, texts_of
from msauto.api.loading import Agreement, Loaded
from msauto.api.run import RunOptions, apply_unasked, plan_only
from msauto.api.values import Plan, Result
from msauto.errors import MsautoError
from msauto.model.events import Event, guarded
from msauto.model.result import PastTarget, RunDetails, RunSummary
from msauto.model.server import Transport
from msauto.secrets.redacted_plans import redact_plan

if TYPE_CHECKING:
    from msauto.plugins.simulator.rehearsal import Rehearsal

__all__ = ["apply", "export", "history", "load", "plan", "rehearse", "undo"]


@checked
async def load(
    playbooks: File | Sequence[File | Data] = (),
    *,
    inventory: File | Data | Sequence[File | Data] = (),
    server: str | None = None,
    extra_vars: Data | Texts = (),
    limit: str | None = None,
    tags: Texts = (),
    skip_tags: Texts = (),
    target: Texts = (),
    forget_pending: bool = False,
    undo: str | None = None,
    keep_going: bool = False,
    forks: int | None = None,
    config: File | None = None,
    state_dir: File | None = None,
    secret_commands: bool = False,
    on: str | None = None,
    transport: Transport | None = None,
) -> Loaded:
    """Read playbooks and inventories, and check them without a server.

    ``playbooks`` are files, one saved plan, or plays as data; ``inventory`` is files, folders, or data, as YAML gives
    them. A place in data is ``plays[0].tasks[1].asset.title``. In data, :class:`msauto.Secret` is what ``!secret`` is
    in YAML. In place of playbooks, ``undo`` names a run of the history, or ``last``. ``forks`` is the
    number of targets at a time (default: the connections of each server). ``target`` are globs of titles, ``limit`` is
    a host pattern. In templates, ``now`` is the time of this call. ``transport`` is any transport of httpx2, in place
    of the network to every server: it gets the requests of plans and of applying. ``secret_commands`` lets the commands
    of ``[secrets]`` in the settings run, once each.

    Raises ``InputError`` with all problems, and ``RefusedError`` for a saved plan whose files have changed, unless
    ``keep_going``.

    >>> play = msauto.load("news.yml", inventory="inventory.yml", extra_vars={"season": 3})
    >>> play
    <Loaded news.yml: studio-a>
    """
    return await asyncio.to_thread(_load, locals())


def _load(given: Mapping[str, Any]) -> Loaded:
    inputs = inputs_of(**given)
    if not (inputs.given.playbooks or PLAYS in inputs.documents or inputs.given.undo):
        remedy = "give the file of a playbook, its plays, or a saved plan"
        raise MsautoError("no playbook is given", remedy=remedy)
    return loading.load(inputs, keep_going=given["keep_going"])


@checked
async def plan(
    play: Loaded, *, window: str | None = None, observer: Callable[[Event], object] | None = None
) -> Plan:
    """Read the servers, compare, and return what applying would do. Sends only GET and HEAD, and writes nothing.

    Targets that cannot be planned are in ``plan.errors``, and what is not allowed in ``plan.refusals``: neither raises.
    ``window`` is when the plan may be applied, such as ``"23:00-05:30"``. ``observer`` is called with each event
    (:mod:`msauto.model.events`), in the thread that works.

    >>> plan = msauto.plan(play)
    >>> plan
    <Plan: 2 changes, 2 requests, 0 unchanged>
    >>> for change in plan.changes:
    ...     print(change.place, change.aspect, change.after)
    news.yml:7:18 field Season 3
    news.yml:8:19 marker {'frame': 250, 'track': 'Cue Point', 'title': 'Ad break'}
    """
    made = await plan_only(play, RunOptions(window=window), notify=guarded(observer))
    return Plan(play, made)


@checked
async def apply(
    plan: Plan | Loaded,
    *,
    allow_delete: int | None = None,
    allow_remove: int | None = None,
    allow_requests: int | None = None,
    keep_going: bool = False,
    override_freeze: str | None = None,
    window: str | None = None,
    lock_timeout: float = 0.0,
    observer: Callable[[Event], object] | None = None,
) -> Result:
    """Apply a plan: send its requests, read again, verify, and record the run.

    It is planned again under the lock, and only what is the same as in ``plan`` is sent. What :func:`load` returned
    can be applied without a plan, as ``msauto apply --yes`` does. ``allow_delete`` is the number of assets that may be
    deleted, ``allow_remove`` that of list items that may be lost, and ``allow_requests`` that of requests.
    ``keep_going`` leaves out targets in error or changed. ``override_freeze`` is the reason, which is recorded.
    ``lock_timeout`` is how long to wait for another run, in seconds.

    Before anything is sent, it raises ``RefusedError`` (a limit, a freeze, a plan that is no longer true),
    ``LockedError`` (another run) or ``PlanningError``. Afterwards it raises nothing for a target that failed:
    ``result.ok`` is false. A cancelled call finishes the requests in flight; cancelled again, it stops at once.

    >>> result = msauto.apply(plan, allow_delete=2)
    >>> result.ok, [(each.target.name, each.outcome) for each in result.targets]
    (True, [('Long Film', 'changed')])
    """
    options = RunOptions.of(locals())
    if isinstance(plan, Plan):
        agreement = Agreement(redact_plan(plan.unredacted))
        loaded = replace(plan.loaded, agreements=(*plan.loaded.agreements, agreement))
    else:
        loaded = plan
    return Result(await apply_unasked(loaded, options, guarded(observer)))


@checked
async def rehearse(
    play: Loaded,
    *,
    fault: Texts = (),
    allow_delete: int | None = None,
    allow_remove: int | None = None,
    allow_requests: int | None = None,
    keep_going: bool = False,
    observer: Callable[[Event], object] | None = None,
) -> Rehearsal:
    """Plan on the real servers, and apply that in full to embedded copies of what was read; plan again, and undo.

    To the real servers it sends GET and HEAD only, and it only reads the ledger. ``fault`` are faults of the embedded
    servers while the plan is applied, such as ``"cut_after"`` for the first write, or ``"status:503@SETFIELD*2"``.
    Freezes and windows do not matter. Raises as :func:`apply` where that would send nothing.

    >>> rehearsal = msauto.rehearse(play)
    >>> rehearsal.ok, rehearsal.repeated, rehearsal.left
    (True, (), ())
    """
    options = RunOptions.of(locals())
    run_rehearsal = sockets.find("functions", "rehearse")
    rehearsal: Rehearsal = await run_rehearsal(play, options, texts_of(fault), guarded(observer))
    return rehearsal


@checked
async def undo(
    run: str = "last",
    *,
    inventory: File | Data | Sequence[File | Data] = (),
    server: str | None = None,
    extra_vars: Data | Texts = (),
    limit: str | None = None,
    target: Texts = (),
    forks: int | None = None,
    config: File | None = None,
    state_dir: File | None = None,
    secret_commands: bool = False,
    on: str | None = None,
    transport: Transport | None = None,
    allow_delete: int | None = None,
    allow_remove: int | None = None,
    allow_requests: int | None = None,
    keep_going: bool = False,
    override_freeze: str | None = None,
    window: str | None = None,
    lock_timeout: float = 0.0,
    observer: Callable[[Event], object] | None = None,
) -> Result:
    """Undo a run: plan the earlier values from the ledger, and apply that as :func:`apply` does.

    ``run`` is a name of the history, the start of one, or ``last``. A value that is no longer what the run wrote is
    left alone; ``result.to_json()`` names it in its warnings. To see the plan first: ``plan(load(undo=run, ...))``.

    >>> msauto.undo(result.run, inventory="inventory.yml").ok
    True
    """
    given = locals()
    loaded = await asyncio.to_thread(_load, {**given, "undo": run})
    return Result(await apply_unasked(loaded, RunOptions.of(given), guarded(observer)))


@checked
async def export(
    *,
    title: Texts = (),
    folder: Texts = (),
    channel: Texts = (),
    recursive: bool = False,
    database: str | None = None,
    links: bool = True,
    out: File | None = None,
    content: File | None = None,
    force: bool = False,
    format: str = "text",
    origin: str | None = None,
    inventory: File | Data | Sequence[File | Data] = (),
    server: str | None = None,
    extra_vars: Data | Texts = (),
    limit: str | None = None,
    forks: int | None = None,
    config: File | None = None,
    secret_commands: bool = False,
    on: str | None = None,
    transport: Transport | None = None,
) -> Export:
    """Read live state, and return it as a playbook that plans to nothing, or write it into the folder ``out``.

    Without ``title``, ``folder`` or ``channel``, it is the whole media database. ``format`` ``edl``, ``otio``, ``csv``
    or ``vtt`` gives the markers and segments of one asset, or of many into ``out``. ``origin`` is the time code of the
    first frame. ``content`` is the file to write for ``msauto simulate --state`` and the pytest fixture, in place of
    playbooks. ``force`` overwrites files that msauto did not export.

    >>> exported = msauto.export(title="Long Film", server="http://studio-a:7901", database="NEWS")
    >>> print(exported.text.splitlines()[0])
    # Exported by msauto: assets of NEWS.
    """
    given = locals()
    chosen = ExportSelection(
        texts_of(title), texts_of(folder), texts_of(channel), recursive, database, links
    )
    form = exporting.timeline_form(format, origin, chosen)
    inputs = await asyncio.to_thread(inputs_of, **given)
    place = None if out is None else Path(out)
    file = None if content is None else Path(content)
    exported = await exporting.export(inputs, chosen, form, place, content=file, force=force)
    exported.text  # noqa: B018 - closes its temporary file
    return exported


@overload
async def history(
    run: None = None,
    *,
    batch: str | None = None,
    since: timedelta | None = None,
    all: bool = False,
    config: File | None = None,
    state_dir: File | None = None,
) -> tuple[RunSummary, ...]: ...
@overload
async def history(
    run: None = None,
    *,
    title: str,
    limit: str | None = None,
    since: timedelta | None = None,
    all: bool = False,
    config: File | None = None,
    state_dir: File | None = None,
) -> tuple[PastTarget, ...]: ...
@overload
async def history(
    run: str, *, config: File | None = None, state_dir: File | None = None
) -> RunDetails: ...
@checked
async def history(
    run: str | None = None,
    *,
    title: str | None = None,
    limit: str | None = None,
    batch: str | None = None,
    since: timedelta | None = None,
    all: bool = False,
    config: File | None = None,
    state_dir: File | None = None,
) -> tuple[RunSummary, ...] | tuple[PastTarget, ...] | RunDetails:
    """Return what ran, newest first; or one run with its targets and requests. Reads only the ledger.

    ``run`` is a name, the start of one, or ``last``. The summary of a batch is in ``batch`` of the result. The keywords
    ``batch`` and ``since`` narrow the list. In a repository (a folder with ``msauto.toml`` or ``.git``, and those below
    it) it has the runs of this repository, or with ``all`` all runs. With ``title`` (a glob), return what the runs
    changed of these clips, or found changed outside; ``limit`` holds globs of servers.
    Raises ``LedgerError`` for a run that is not found.

    >>> msauto.history()
    (<Run 2...: ok, undo 2...>, <Run 2...: ok, news.yml>)
    >>> [each.target.name for each in msauto.history(result.run).targets]
    ['Long Film']
    """
    place = (await asyncio.to_thread(inputs_of, config=config, state_dir=state_dir)).ledger
    if title is not None:
        return await asyncio.to_thread(
            list_changes, place, title, limit=limit, since=since, every=all
        )
    if run is None:
        return (await asyncio.to_thread(list_runs, place, batch=batch, since=since, every=all)).runs
    summary, details = await asyncio.to_thread(read_attempt, place, run)
    return details or RunDetails(summary, 0, summary.host, "")
