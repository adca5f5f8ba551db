"""``msauto vars``: the variables of a host; with a name, who wins, who loses, and where each is set."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

import click

from msauto.cli.flags import Flags, require_text_or_json, shared_flags
from msauto.cli.output import colour_on, give
from msauto.playbook.variables.variable_report import VariableDefinition, report_variables
from msauto.report.json import dump
from msauto.report.tables import render_table


@click.command("vars", short_help="Show the variables of a host, and who wins.")
@click.argument("host")
@click.argument("name", required=False)
@shared_flags
def command(*, flags: Flags, host: str, name: str | None) -> None:
    """Show the variables of HOST; with NAME, the winner, the losers, and where each is set.

    Those of plays, blocks and tasks are not known here: they belong to a playbook. Secrets are not shown.
    """
    require_text_or_json(flags)
    told = report_variables(flags.options, host, name)
    if flags.format == "json":
        give(dump([_json(each, wins=name is None or each is told[0]) for each in told]))
        return
    first = [] if name is None else ["wins", *["loses"] * (len(told) - 1)]
    headers = ("name", "value", "set by", "at") if name is None else ("", "value", "set by", "at")
    rows = [[first[n] if first else each.name, *_row(each)] for n, each in enumerate(told)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    give(render_table(headers, rows, colour=colour_on(sys.stdout, no_color=flags.no_color), width=width))


def _row(told: VariableDefinition) -> list[str]:
    value = f"(cannot be rendered: {told.error})" if told.error else _shown(told.value)
    return [value, told.level, str(told.place) if told.place.file != told.level else ""]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _json(told: VariableDefinition, *, wins: bool) -> dict[str, Any]:
    place = {"file": told.place.file, "line": told.place.line, "column": told.place.column}
    return {"name": told.name, "value": told.value, "set_by": told.level, **place, "wins": wins, "error": told.error}
