"""``msauto vars``: the variables of a host; with a name, the winner, the losers, and where each is set."""

from __future__ import annotations

import json
from typing import Any

import click

from msauto.cli.flags import Flags, table_flags
from msauto.cli.output import print_result, print_table
from msauto.playbook.variables.variable_report import VariableDefinition, report_variables
from msauto.report.json import dump


@click.command("vars")
@click.argument("host")
@click.argument("name", required=False)
@table_flags
def command(*, flags: Flags, host: str, name: str | None) -> None:
    """Show the variables of HOST; with NAME, the winner, the losers, and where each is set.

    Variables of plays, blocks and tasks are not shown: they belong to a playbook. Secrets are hidden.
    """
    definitions = report_variables(flags.options, host, name)
    if flags.format == "json":
        print_result(dump([_json(each, wins=name is None or each is definitions[0]) for each in definitions]))
        return
    ranks = ["wins", *["loses"] * (len(definitions) - 1)]
    first = [each.name for each in definitions] if name is None else ranks
    rows = [[cell, *_row(each)] for cell, each in zip(first, definitions, strict=True)]
    print_table(("name" if name is None else "", "value", "set by", "at"), rows, no_color=flags.no_color)


def _row(definition: VariableDefinition) -> list[str]:
    value, place = definition.value, definition.place
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    shown = f"(cannot be rendered: {definition.error})" if definition.error else text
    return [shown, definition.level, str(place) if place.file != definition.level else ""]


def _json(definition: VariableDefinition, *, wins: bool) -> dict[str, Any]:
    place = definition.place
    return {
        "name": definition.name,
        "value": definition.value,
        "set_by": definition.level,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "wins": wins,
        "error": definition.error,
    }
