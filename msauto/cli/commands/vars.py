"""``msauto vars``: the variables of a host; with a name, the winner, the losers, and where each is set."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct, structs

from msauto.cli.flags import Flags, option, shared_flags_of
from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result, print_table
from msauto.codec import to_json
from msauto.documents.document import outside_node
from msauto.documents.strict_model import fields_of
from msauto.errors import InputError, SourceLocation, nearest
from msauto.playbook.hosts import ResolveOptions, open_hosts, server_keys
from msauto.playbook.input_files import Files
from msauto.playbook.roles import find_role, role_places, role_variables
from msauto.playbook.schema.inventory import DialectArgs, ServerArgs, TimeoutArgs
from msauto.playbook.templates.names import OMIT, UsesAssetError
from msauto.playbook.templates.rendering import check_texts, render_data
from msauto.playbook.variables import TemplateScope, Variable
from msauto.report.json import dump
from msauto.secrets.redaction import HIDDEN, USER_IN_URL, Secrets, is_secret_name
from msauto.secrets.sources import MarkedText

_OMITTED: Final = "it is omit: the key that has this value is left out"


@click.command("vars", cls=HelpCommand)
@click.argument("host")
@click.argument("name", required=False)
@option("--role ROLE", "The variables as the tasks of a role see them.")
@shared_flags_of("text", "json", uses=["inventory", "server", "extra_vars"])
def command(*, flags: Flags, host: str, name: str | None, role: str | None) -> None:
    """Show the variables of HOST; with NAME, the winner, the losers, and where each is set.

    The NAME server shows this for each key of the server. Variables of plays, blocks and tasks are not shown: they
    belong to a playbook. With --role, the defaults and variables of that role are. Secrets are hidden.
    """
    settings = flags.inputs.settings
    beside_settings = Path(settings.file or "").parent / "playbooks" / "site.yml"
    playbooks = settings.playbooks or (str(beside_settings),)
    options = structs.replace(flags.inputs.resolving, playbooks=(*playbooks, "site.yml"))
    definitions = report_variables(options, host, name, role)
    if flags.format == "json":
        print_result(dump([_json(definition) for definition in definitions]))
        return
    heads = ["name"]
    if name is not None:
        heads = ["key", ""] if name == "server" else [""]
    rows = [_row(definition, heads) for definition in definitions]
    print_table((*heads, "value", "set by", "at"), rows, no_color=flags.no_color)


def _row(definition: VariableDefinition, heads: Sequence[str]) -> list[str]:
    row = [definition.name] if heads[0] else []
    if "" in heads:
        rank = "wins" if definition.wins else "loses"
        row.append(rank)
    value, place = definition.value, definition.place
    if definition.error:
        value = f"(cannot be rendered: {definition.error})"
    elif not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    shown_place = str(place) if place.file != definition.level else ""
    return [*row, value, definition.level, shown_place]


def _json(definition: VariableDefinition) -> dict[str, Any]:
    head = {"name": definition.name, "value": definition.value, "set_by": definition.level}
    return {**head, **to_json(definition.place), "wins": definition.wins, "error": definition.error}


# Variables ---------------------------------------------------------------------------------------------------------


class VariableDefinition(Struct, frozen=True):
    """A variable with the place where it is set, and its rendered ``value``, or the ``error`` of rendering."""

    name: str
    value: Any
    level: str
    place: SourceLocation
    error: str = ""
    wins: bool = True


def report_variables(
    options: ResolveOptions, host: str, name: str | None = None, role: str | None = None
) -> tuple[VariableDefinition, ...]:
    """Return the variables of a host by name; with a name, all its definitions, the winner first.

    ``role`` adds those of a role, which is looked for beside the playbooks.

    Values are redacted if they come from the environment, are secret, or have the name of a secret. Of the ``server:``
    blocks, which may hold any secret, the name ``server`` gives each key, with only values that can be shown.
    Raises :class:`InputError` for an unknown host or name.
    """
    files = Files(options.lookup_folders)
    secrets = files.tracker.secrets
    with secrets.redacted_errors():
        env = dict.fromkeys(options.env, HIDDEN)
        hosts = open_hosts(
            structs.replace(options, env=env, secrets=options.secrets.offline()), files
        )
        files.problems.check()
        hosts_by_name = hosts.inventory.hosts
        if host not in hosts_by_name:
            node = outside_node("HOST", host)
            raise node.error(f"unknown host {host!r}", nearest(host, hosts_by_name), kind="host")
        scope = hosts.scope(host, ".", ".")
        if role is not None:
            scope = _with_role(scope, role, options, files)
        definitions = [_rendered(variable, scope) for variable in _chosen(scope, name)]
        if name == "server":
            definitions = [*_keys_of_server(definitions)]
        shown = []
        names = set()
        for definition in definitions:
            if definition.value is OMIT:
                definition = structs.replace(definition, value=None, error=_OMITTED)
            value = _redacted(definition.name, definition.value, secrets)
            error = secrets.redact(definition.error)
            wins = definition.name not in names
            names.add(definition.name)
            shown.append(structs.replace(definition, value=value, error=error, wins=wins))
        return tuple(shown)


def _with_role(
    scope: TemplateScope, role: str, options: ResolveOptions, files: Files
) -> TemplateScope:
    node = outside_node("--role", role)
    places: dict[str, None] = {}
    for playbook in options.playbooks:
        places |= dict.fromkeys(role_places(playbook, options.role_folders))
    folder = find_role(role, [*places], node)
    return scope.with_variables(role_variables(folder, options.playbooks[0], node, files), folder)


def _keys_of_server(definitions: Iterable[VariableDefinition]) -> Iterator[VariableDefinition]:
    """Yield the keys of the server that are set, with only values that can be shown."""
    for key in definitions:
        if key.value is not OMIT:
            value = _public("server", key.name, key.value)
            yield structs.replace(key, name=f"server.{key.name}", value=value)


def _chosen(scope: TemplateScope, name: str | None) -> Iterator[Variable]:
    variables = scope.variables
    if name is None:
        for other in sorted(variables.winners.keys() - {"server"}):
            yield variables.winners[other]
    elif name == "server" and name in variables.winners:
        yield from sorted(server_keys(variables.all_of(name), scope), key=attrgetter("name"))
    elif name in variables.winners:
        yield from variables.all_of(name)
    else:
        raise outside_node("NAME", name).error(
            f"unknown variable {name!r}", nearest(name, variables.winners), kind="variable"
        )


def _rendered(variable: Variable, scope: TemplateScope) -> VariableDefinition:
    value, error = None, ""
    lost_marks = scope.tracker.lost
    lost_before = len(lost_marks)
    try:
        value = render_data(variable.value, scope, variable.node)
        if value is not OMIT:
            check_texts(value, variable.node)
        if len(lost_marks) > lost_before:
            value = HIDDEN
    except InputError as problem:
        value, error = None, problem.problems[0].message
    except UsesAssetError:
        error = "asset is known in tasks alone"
    return VariableDefinition(
        variable.name, value, variable.level.description, variable.node.key_place, error
    )


_SHOWN_IN: Final[Mapping[str, Collection[str]]] = {
    "server": fields_of(ServerArgs).keys() - {"auth", "tls"},
    "auth": ("bearer_file", "bearer_keyring"),
    "basic": ("username", "password_file", "password_keyring"),
    "tls": ("verify", "ca", "cert", "key"),
    "timeouts": fields_of(TimeoutArgs).keys(),
    "dialect": fields_of(DialectArgs).keys(),
}
"""The keys of each mapping in a ``server:`` block whose values can be shown."""


def _public(owner: str, key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _public(key, name, inner) for name, inner in value.items()}
    is_secret = isinstance(value, list) or "@" in str(value)
    return HIDDEN if is_secret or key not in _SHOWN_IN.get(owner, ()) else value


def _redacted(name: str, value: Any, secrets: Secrets) -> Any:
    """Return a value without secrets, also those that were copied to an unmarked place."""
    if isinstance(value, dict):
        return {
            secrets.redact(str(key)): _redacted(str(key), inner, secrets)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_redacted(name, item, secrets) for item in value]
    if isinstance(value, MarkedText) or (is_secret_name(name) and value is not None):
        return HIDDEN
    if isinstance(value, bool | int | float | date | Fraction | None):
        return value
    return USER_IN_URL.sub(HIDDEN, secrets.redact(str(value)))  # a span of time is shown as a text
