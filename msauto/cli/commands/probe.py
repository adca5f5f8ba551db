"""``msauto probe``: learns a server's dialect, by reading alone or by trying on a scratch asset."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import Any

import click

from msauto.aio import SystemClock
from msauto.cli.flags import Flags, shared_flags
from msauto.cli.interruptible import run_async
from msauto.cli.output import give, say
from msauto.cli.runs.running import SIGNALS
from msauto.errors import MsautoError, RefusedError
from msauto.model.desired import TaskSource
from msauto.model.limits import Limits
from msauto.model.live import Asset, Folder, Link, parse_folder, show_folder
from msauto.model.plan import Change, Plan, Target
from msauto.planning.limits import refusals
from msauto.playbook.inventory.servers import NamedServer, named_servers
from msauto.probe.probe import DialectFinding, ProbeResult, TrialOptions, probe, probe_by_trial
from msauto.report.json import dump


@click.command("probe", short_help="Learn how a server answers: its dialect.")
@click.option("--database", "-d", metavar="NAME", help="Default: the host variable `database`.")
@click.option("--title", metavar="TITLE", help="A clip to ask for; by default one is looked for.")
@click.option("--scratch", metavar="TITLE", help="Try what reading cannot show on this asset, and put all back. Asks.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--xmp-field", metavar="NS:NAME", help="An XMP field to read; with --scratch it is written and restored.")
@click.option("--links", metavar="FOLDER", help="With --scratch: make links there, where `link_delete` is by_title.")
@shared_flags
def command(
    *,
    flags: Flags,
    database: str | None,
    title: str | None,
    scratch: str | None,
    yes: bool,
    xmp_field: str | None,
    links: str | None,
) -> int:
    """Learn what kind of server this is, and print the `dialect:` block for its inventory entry.

    Reads only; with --scratch it tries the rest on one asset, on things of its own, and takes them back.
    """
    if links is not None and scratch is None:
        raise MsautoError("--links makes links, and nothing is made without --scratch", remedy="--scratch TITLE")
    servers = [(server, _database(server, database)) for server in named_servers(flags.options)]
    if scratch is None:
        found = run_async(_read_each(servers, title, xmp_field))
        _show(found, flags)
        return 0
    server, name = _single(servers)
    trial = TrialOptions(scratch, xmp_field, None if links is None else parse_folder(links))
    _ask(server, name, trial, yes=yes)
    findings = run_async(_try(server, name, trial, flags.settings.limits))
    _show([findings], flags)
    for words in findings.left or ():
        say(f"Left on {scratch!r}: {words}")
    if not findings.left:
        say(f"{scratch!r} was read again: it is as it was before.")
    return 3 if findings.left else 0


def _database(server: NamedServer, given: str | None) -> str:
    name = given or server.database
    if name is None:
        raise MsautoError(f"no media database is named for {server.spec.name}", remedy="--database NAME")
    return name


def _single(servers: list[tuple[NamedServer, str]]) -> tuple[NamedServer, str]:
    if len(servers) != 1:
        raise MsautoError(f"--scratch tries one server, and {len(servers)} are named", remedy="-l HOST")
    return servers[0]


async def _read_each(
    servers: list[tuple[NamedServer, str]], title: str | None, xmp_field: str | None
) -> list[ProbeResult]:
    return [await probe(server.spec, name, title=title, xmp_field=xmp_field) for server, name in servers]


async def _try(server: NamedServer, database: str, trial: TrialOptions, limits: Limits) -> ProbeResult:
    """Try; Ctrl-C and SIGTERM end the trial, and what was made is still taken back."""
    task = asyncio.ensure_future(
        probe_by_trial(
            server.spec,
            database,
            trial,
            clock=SystemClock(),
            tell=say,
            refuse=lambda asset, links: _refuse_protected(asset, links, server, trial, limits),
            all_links=bool(limits.protected),
        )
    )
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in SIGNALS:
            loop.remove_signal_handler(number)


# Consent --------------------------------------------------------------------------------------------------------


def _ask(server: NamedServer, database: str, trial: TrialOptions, *, yes: bool) -> None:
    """Return where the trial is agreed to; raise :class:`RefusedError` where it is not."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise RefusedError("nobody agreed to the trial: there is no terminal to ask on", remedy="--yes")
    things = ["a segment", "a marker", "first_frame"]
    things += [f"the XMP field {trial.xmp_field}"] if trial.xmp_field else []
    things += ["links"] if trial.links is not None else []
    say(f"This makes or changes {', '.join(things)} of {trial.title!r} ({database}, {server.spec.name}),")
    answer = click.prompt("and puts all back. Only 'yes' goes on", err=True, default="no", show_default=False)
    if answer.strip().lower() != "yes":
        raise RefusedError("not agreed: nothing was sent", remedy="")


def _refuse_protected(
    asset: Asset, links: tuple[Link, ...] | None, server: NamedServer, trial: TrialOptions, limits: Limits
) -> None:
    """Refuse what no run may delete or remove from (contract, «Limits», ``protected``)."""
    folders: tuple[Folder, ...] = tuple(link.folder for link in links or ())
    folders += () if trial.links is None else (trial.links,)
    change = Change("delete", "marker", "", None, None, "live", reversible=True, source=TaskSource("probe"))
    home = None if asset.folder is None else show_folder(asset.folder)
    places = tuple(map(show_folder, folders))
    target = Target(server.spec.name, "", "asset", trial.title, folder=home, changes=(change,), places=places)
    found = refusals(Plan("", "", targets=(target,)), replace(Limits(), protected=limits.protected))
    protected = next((refusal for refusal in found if refusal.code == "protected"), None)
    if protected is not None:
        raise RefusedError(
            f"{trial.title!r} is protected by {protected.limit!r}: nothing is tried on it",
            remedy="name an asset made for trials, outside `protected` of msauto.toml",
        )


# What is printed ------------------------------------------------------------------------------------------------


def _show(found: list[ProbeResult], flags: Flags) -> None:
    if flags.format == "json":
        give(dump({findings.server: _json(findings) for findings in found}))
        return
    give("---\n".join("".join(f"{line}\n" for line in _lines(findings)) for findings in found))


def _json(findings: ProbeResult) -> dict[str, Any]:
    def named(where: Iterable[DialectFinding]) -> dict[str, Any]:
        return {each.name: each.value for each in where}

    return {
        "database": findings.database,
        "server": named(findings.of("server")),
        "dialect": named(findings.of("dialect")),
        "evidence": [asdict(each) for each in findings.found],
        "missed": [asdict(each) for each in findings.missed],
        "left": None if findings.left is None else list(findings.left),
    }


def _lines(findings: ProbeResult) -> Iterator[str]:
    """Yield YAML to paste into the ``server:`` block; all evidence is comment."""
    yield f"# {findings.server}, database {findings.database}: for the `server:` block of its inventory entry"
    for each in findings.of("server"):
        yield f"# {each.evidence}"
        yield f"{each.name}: {_scalar(each.value)}"
    dialect = findings.of("dialect")
    yield "dialect:" if dialect else "dialect: {}"
    for each in dialect:
        yield f"  # {each.evidence}"
        yield f"  {each.name}: {_scalar(each.value)}"
    if findings.missed:
        yield "# Could not learn:"
        yield from (f"#   {each.name}: {each.why}" for each in findings.missed)


def _scalar(value: str | int) -> str:
    plain = isinstance(value, int) or (value.isascii() and value.isidentifier())
    return str(value) if plain else json.dumps(value, ensure_ascii=False)
