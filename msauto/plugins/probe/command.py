"""``msauto probe``: learns the dialect of a server, by reading or by trials on a scratch asset."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from typing import Any

import click
from msgspec import to_builtins

from msauto.api.inputs import require_database
from msauto.api.run import RunOptions
from msauto.cli.flags import LIVE, Flags, flag, option, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.interrupts import run_async
from msauto.cli.output import print_message, print_result
from msauto.cli.plan_and_apply import prompt, require_terminal
from msauto.concurrency import SystemClock, stop_signals
from msauto.errors import MsautoError, RefusedError
from msauto.exit_codes import INCOMPLETE, OK
from msauto.model.desired import TaskSource
from msauto.model.live import Asset, Link, show_folder
from msauto.model.plan import Change, Limits, Plan, Target
from msauto.planning.limits import refusals
from msauto.playbook.hosts import NamedServer, named_servers
from msauto.plugins.probe.observations import ProbeResult
from msauto.plugins.probe.probe import TrialOptions, probe, probe_by_trial
from msauto.plugins.probe.scratch_channel import probe_by_item
from msauto.report.json import dump
from msauto.report.texts import refusal_error


@click.command("probe", cls=HelpCommand)
@flag("database")
@option("--title TITLE", "A clip to read; by default the first suitable one.")
@option("--scratch TITLE", "Also write to this asset, then restore it. Asks.")
@option("--scratch-channel NAME", "Also put an item into this RSS channel, and remove it. Asks.")
@option("-y, --yes", "Do not ask.")
@option("--xmp-field NS:NAME", "An XMP field to read; with --scratch also written and restored.")
@option("--override-freeze REASON", "With a trial: write during a freeze; REASON is printed.")
@shared_flags_of("text", "json", uses=LIVE)
def command(
    *,
    flags: Flags,
    database: str | None,
    scratch: str | None,
    scratch_channel: str | None,
    yes: bool,
    **given: Any,
) -> int:
    """Learn the dialect of a server, and print the `dialect:` block for its inventory entry.

    Reads only; with --scratch it also creates and changes items of one asset, and restores them. With --scratch-channel
    it puts one item into a channel, and removes it.
    """
    field = given["xmp_field"]
    servers = [
        (server, require_database(server, database))
        for server in named_servers(flags.inputs.resolving)
    ]
    if scratch is None and scratch_channel is None:

        async def read_all() -> list[ProbeResult]:
            return [
                await probe(server.spec, name, title=given["title"], xmp_field=field)
                for server, name in servers
            ]

        _show(run_async(read_all()), flags)
        return OK
    if scratch is not None and scratch_channel is not None:
        raise MsautoError(
            "--scratch and --scratch-channel are two trials", remedy="run one after the other"
        )
    if len(servers) != 1:
        raise MsautoError(
            f"a trial needs one server, not {len(servers)}", remedy="name it with --limit HOST"
        )
    ((server, name),) = servers
    _refuse_frozen(flags, given["override_freeze"])
    if scratch_channel is not None:
        where = scratch_channel
        what = f"This puts an item into the channel {where!r} ({server.spec.name}),"
        _ask(what, "and removes it afterwards.", yes=yes)
        work = probe_by_item(server.spec, name, where, clock=SystemClock(), report=print_message)
    else:
        where = str(scratch)
        work = _asset_trial(
            server, name, TrialOptions(where, field), flags.inputs.settings.limits, yes=yes
        )
    result = run_async(_try(work))
    _show([result], flags)
    if not result.left:
        print_message(f"{where!r} was read again: it is as it was before.")
        return OK
    for item in result.left:
        print_message(f"Left on {where!r}: {item}")
    return INCOMPLETE


def _asset_trial(
    server: NamedServer, database: str, trial: TrialOptions, limits: Limits, *, yes: bool
) -> Coroutine[Any, Any, ProbeResult]:
    """Return the trial on an asset, once the user agrees."""
    items = "a segment, a marker, first_frame"
    if trial.xmp_field:
        items += f", the XMP field {trial.xmp_field}"
    what = f"creates or changes {items} of {trial.title!r} ({database}, {server.spec.name})"
    _ask(f"This {what},", "and restores them afterwards.", yes=yes)
    return probe_by_trial(
        server.spec,
        database,
        trial,
        clock=SystemClock(),
        report=print_message,
        refuse=lambda asset, links: _refuse_protected(asset, links, server, trial, limits),
        all_links=bool(limits.protected or limits.read_only),
    )


async def _try(work: Coroutine[Any, Any, ProbeResult]) -> ProbeResult:
    """Run a trial; Ctrl-C, SIGTERM and SIGHUP end it, and what it changed is still restored."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    numbers = stop_signals()
    for number in numbers:
        # Once: it still restores.
        loop.add_signal_handler(number, lambda: task.cancelling() or task.cancel())
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _refuse_frozen(flags: Flags, override_freeze: str | None) -> None:
    """Refuse to write during a freeze."""
    reason = (override_freeze or "").strip()
    if reason:
        print_message(f"Freezes are overridden: {reason}")
    times = RunOptions(override_freeze=reason or None).times(flags.inputs.settings)
    if refused := [*times.refusals(SystemClock().now())]:
        raise refusal_error(refused)


# Consent --------------------------------------------------------------------------------------------------------


def _ask(what: str, afterwards: str, *, yes: bool) -> None:
    """Return if the user agrees to a trial; otherwise raise :class:`RefusedError`."""
    if yes:
        return
    require_terminal()
    print_message(what)
    if prompt(f"{afterwards} Type 'yes' to continue: ").lower() != "yes":
        raise RefusedError(
            "no consent: nothing was sent", remedy="type yes; to write without a question: --yes"
        )


def _refuse_protected(
    asset: Asset,
    links: tuple[Link, ...] | None,
    server: NamedServer,
    trial: TrialOptions,
    limits: Limits,
) -> None:
    """Refuse what no run may delete or remove from: ``protected`` (settings, «How limits work»)."""
    change = Change(
        "delete", "marker", "", None, None, "live", reversible=True, source=TaskSource("probe")
    )
    home = None if asset.folder is None else show_folder(asset.folder)
    places = tuple(show_folder(link.folder) for link in links or ())
    target = Target(
        server.spec.name, "", "asset", trial.title, folder=home, changes=(change,), places=places
    )
    only_protected = Limits(protected=limits.protected, read_only=limits.read_only)
    for refusal in refusals(Plan("", "", targets=(target,)), only_protected):
        if refusal.code in {"protected", "read_only"}:
            raise RefusedError(
                f"{trial.title!r} is protected by {refusal.limit!r}: no trial is run on it",
                remedy=f"name a scratch asset that `{refusal.code}` in msauto.toml does not match",
            )


# Output --------------------------------------------------------------------------------------------------------


def _show(found: list[ProbeResult], flags: Flags) -> None:
    if flags.format == "json":
        print_result(dump({result.server: _json(result) for result in found}))
        return
    blocks = ["\n".join([*_lines(result), ""]) for result in found]
    print_result("---\n".join(blocks))


def _json(result: ProbeResult) -> dict[str, Any]:
    return {
        "database": result.database,
        "dialect": {finding.name: finding.value for finding in result.found},
        "evidence": to_builtins(result.found),
        "missed": to_builtins(result.missed),
        "left": result.left,
    }


def _lines(findings: ProbeResult) -> Iterator[str]:
    """Yield YAML to paste into the ``server:`` block; all evidence is comment."""
    yield f"# {findings.server}, database {findings.database}: for the `server:` block of its inventory entry"
    yield "dialect:" if findings.found else "dialect: {}"
    for finding in findings.found:
        value = finding.value if finding.value.isidentifier() else json.dumps(finding.value)
        yield f"  # {finding.evidence}"
        yield f"  {finding.name}: {value}"
    yield "# Not learned:"
    for question in findings.missed:
        yield f"#   {question.name}: {question.why}"
