"""``msauto state``: what the ledger is, and copying it, for example into a shared one."""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

import click
from msgspec import structs

from msauto.api.inputs import ledger_place
from msauto.cli.flags import flag, form_flag, no_color_flag
from msauto.cli.help import HelpGroup
from msauto.cli.output import print_message, print_result, print_table
from msauto.codec import to_json
from msauto.errors import MsautoError
from msauto.exit_codes import CHANGES, OK
from msauto.ledger.ledger import Ledger, LedgerFacts, LedgerPlace
from msauto.model.ledger_url import is_ledger_url, parse_ledger_url
from msauto.playbook.settings import Settings, load_settings
from msauto.report.json import dump
from msauto.report.texts import plural


@click.group("state", cls=HelpGroup)
def command() -> None:
    """Check the ledger, or copy it to another place."""


@command.command("check")
@form_flag
@flag("state_dir")
@flag("config")
@no_color_flag
def check(*, form: str, state_dir: str | None, config: str | None, no_color: bool) -> int:
    """Show what the ledger is: kind, settings, size, commit time, held locks, runs that died; 2 with a warning.

    It is created if it does not exist.
    """
    with Ledger.open(ledger_place(state_dir, load_settings(config))) as ledger:
        facts = ledger.facts(monotonic)
    warnings = [*facts.warnings]
    for run in facts.died:
        warnings.append(f"run {run} died: the next run on its servers reads what it left")
    if form == "json":
        print_result(dump(to_json(structs.replace(facts, warnings=tuple(warnings)))))
    else:
        print_table(("fact", "value"), _rows(facts), no_color=no_color)
        for warning in warnings:
            print_message(f"Warning: {warning}")
    return CHANGES if warnings else OK


def _rows(facts: LedgerFacts) -> list[tuple[str, str]]:
    settings = [f"{name} = {value}" for name, value in facts.settings.items()]
    rows = [f"{table} {count:,}" for table, count in facts.rows.items() if count]
    return [
        ("ledger", facts.ledger),
        ("kind", f"{facts.kind}, ledger version {facts.version}"),
        ("settings", ", ".join(settings)),
        ("size", f"{facts.bytes / 1e6:,.1f} MB"),
        ("rows", ", ".join(rows) or "none"),
        ("one commit", f"{facts.commit_seconds * 1000:.1f} ms"),
        *[("held", f"{lock.lock}: {lock.holder}") for lock in facts.locks],
    ]


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@flag("config")
def copy(*, source: str, target: str, config: str | None) -> None:
    """Copy a ledger, and verify every row. FROM and TO are folders, or URLs of a shared ledger.

    TO must be empty. Nothing is copied if a run is in progress in FROM, or if anything fails. FROM stays as it is.
    A password is that of [state] in msauto.toml for its URL; for another URL, it is libpq's.
    """
    settings = load_settings(config)
    places = [_place(text, settings) for text in (source, target)]
    if not Ledger.exists(places[0]):
        raise MsautoError(
            f"no ledger found in {source}", remedy="name the folder that contains ledger.sqlite"
        )
    with Ledger.open(places[0]) as ledger, Ledger.open(places[1]) as copied:
        rows = ledger.copy_to(copied)
        print_result(
            f"Copied and verified {plural(rows['run'], 'run')} ({plural(sum(rows.values()), 'row')} in all)."
        )
        remedy = f"use --state-dir {target}"
        if is_ledger_url(target):
            remedy = f'set `url = "{copied.name}"` under [state] of msauto.toml'
        elif settings.ledger_url is not None:
            remedy = f"remove `url` under [state] of msauto.toml, and {remedy}"
        print_message(f"The ledger {ledger.name} stays as it is\n  → to use the copy, {remedy}")


def _place(text: str, settings: Settings) -> LedgerPlace:
    if not is_ledger_url(text):
        return Path(os.path.expanduser(text))  # noqa: PTH111 - no error for an unknown user
    try:
        url = parse_ledger_url(text)
    except MsautoError as error:
        raise MsautoError(f"the URL {error.message}", remedy=error.remedy) from None
    of_settings = settings.ledger_url
    if of_settings is not None and of_settings.url == url.url:
        return of_settings
    return url
