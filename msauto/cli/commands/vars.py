"""``msauto vars``: the variables of a host; with a name, the winner, the losers, and where each is set."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click
from msgspec import Struct, structs

from msauto.cli.flags import Flags, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result, print_table
from msauto.documents.document import outside_node
from msauto.errors import InputError, SourceLocation, nearest
from msauto.playbook.hosts import ResolveOptions, open_hosts
from msauto.playbook.input_files import Files
from msauto.playbook.templates.rendering import render_data
from msauto.playbook.variables import TemplateScope, Variable
from msauto.report.json import dump
from msauto.secrets.redaction import HIDDEN, USER_IN_URL, Secrets, is_secret_name
from msauto.secrets.sources import MarkedText


@click.command("vars", cls=HelpCommand)
@click.argument("host")
@click.argument("name", required=False)
@shared_flags_of("text", "json", uses=["inventory", "server", "extra_vars"])
def command(*, flags: Flags, host: str, name: str | None) -> None:
    """Show the variables of HOST; with NAME, the winner, the losers, and where each is set.

    Variables of plays, blocks and tasks are not shown: they belong to a playbook. Secrets are hidden.
    """
    definitions = report_variables(flags.inputs.resolving, host, name)
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


# Variables ---------------------------------------------------------------------------------------------------------


class VariableDefinition(Struct, frozen=True):
    """A variable with the place where it is set, and its rendered ``value``, or the ``error`` of rendering."""

    name: str
    value: Any
    level: str
    place: SourceLocation
    error: str = ""


def report_variables(options: ResolveOptions, host: str, name: str | None = None) -> tuple[VariableDefinition, ...]:
    """Return the variables of a host by name; with a name, all its definitions, the winner first.

    Values are redacted if they come from the environment, are secret, or have the name of a secret. The ``server:``
    block is left out, because it may hold any secret. Raises :class:`InputError` for an unknown host or name.
    """
    files = Files()
    with files.tracker.found.redacted_errors():
        hosts = open_hosts(structs.replace(options, env=dict.fromkeys(options.env, HIDDEN)), files)
        files.problems.check()
        if host not in hosts.inventory.hosts:
            raise outside_node("HOST", host).error(
                f"unknown host {host!r}", nearest(host, hosts.inventory.hosts), kind="host"
            )
        scope = hosts.scope(host, ".")
        definitions = [_rendered(variable, scope) for variable in _chosen(scope, name)]
        secrets = files.tracker.found
        return tuple(
            structs.replace(each, value=_redacted(each.name, each.value, secrets), error=secrets.redact(each.error))
            for each in definitions
        )


def _chosen(scope: TemplateScope, name: str | None) -> Iterator[Variable]:
    names = sorted(set(scope.variables) - {"server"})
    if name is None:
        yield from (variable for each in names if (variable := scope.variables.winner(each)))
    elif name in names:
        yield from scope.variables.all_of(name)
    else:
        raise outside_node("NAME", name).error(f"unknown variable {name!r}", nearest(name, names), kind="variable")


def _rendered(variable: Variable, scope: TemplateScope) -> VariableDefinition:
    value, error = None, ""
    lost = scope.tracker.lost
    before = len(lost)
    try:
        value = render_data(variable.value, scope, variable.node)
        value = HIDDEN if len(lost) > before else value
    except InputError as problem:
        error = problem.problems[0].message
    return VariableDefinition(variable.name, value, variable.level.description, variable.node.key_place, error)


def _redacted(name: str, value: Any, secrets: Secrets) -> Any:
    """Return a value without secrets, also those that were copied to an unmarked place."""
    if isinstance(value, dict):
        return {secrets.redact(str(key)): _redacted(str(key), each, secrets) for key, each in value.items()}
    if isinstance(value, list):
        return [_redacted(name, each, secrets) for each in value]
    if isinstance(value, MarkedText) or (is_secret_name(name) and value is not None):
        return HIDDEN
    return USER_IN_URL.sub(HIDDEN, secrets.redact(value)) if isinstance(value, str) else value
