"""``msauto vars``: the variables of a host; with a name, the winner, the losers, and where each is set."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct, structs

from msauto.cli.flags import Flags, shared_flags_of
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
from msauto.playbook.templates.rendering import render_data
from msauto.playbook.variables import TemplateScope, Variable
from msauto.report.json import dump
from msauto.secrets.redaction import HIDDEN, USER_IN_URL, Secrets, is_secret_name
from msauto.secrets.sources import MarkedText


@click.command("vars", cls=HelpCommand)
@click.argument("host")
@click.argument("name", required=False)
@click.option("--role", metavar="ROLE", help="The variables as the tasks of a role see them.")
@shared_flags_of("text", "json", uses=["inventory", "server", "extra_vars"])
def command(*, flags: Flags, host: str, name: str | None, role: str | None) -> None:
    """Show the variables of HOST; with NAME, the winner, the losers, and where each is set.

    The NAME server shows this for each key of the server. Variables of plays, blocks and tasks are not shown: they
    belong to a playbook. With --role, the defaults and variables of that role are. Secrets are hidden.
    """
    settings = flags.inputs.settings
    usual = settings.playbooks or (str(Path(settings.file or "").parent / "playbooks" / "site.yml"),)
    options = structs.replace(flags.inputs.resolving, playbooks=(*usual, "site.yml"))
    definitions = report_variables(options, host, name, role)
    if flags.format == "json":
        print_result(dump([_json(each) for each in definitions]))
        return
    heads = ("name",) if name is None else ("key", "") if name == "server" else ("",)
    rows = [[each.name if head else _RANK[each.wins] for head in heads] + _row(each) for each in definitions]
    print_table((*heads, "value", "set by", "at"), rows, no_color=flags.no_color)


_RANK: Final = {True: "wins", False: "loses"}


def _row(definition: VariableDefinition) -> list[str]:
    value, place = definition.value, definition.place
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    shown = f"(cannot be rendered: {definition.error})" if definition.error else text
    return [shown, definition.level, str(place) if place.file != definition.level else ""]


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
    with files.tracker.secrets.redacted_errors():
        env = dict.fromkeys(options.env, HIDDEN)
        hosts = open_hosts(structs.replace(options, env=env, secrets=options.secrets.offline()), files)
        files.problems.check()
        known = hosts.inventory.hosts
        if host not in known:
            raise outside_node("HOST", host).error(f"unknown host {host!r}", nearest(host, known), kind="host")
        scope = hosts.scope(host, ".")
        if role is not None:
            node = outside_node("--role", role)
            places = [place for each in options.playbooks for place in role_places(each, options.role_folders)]
            folder = find_role(role, [*dict.fromkeys(places)], node)
            scope = scope.with_variables(role_variables(folder, options.playbooks[0], node, files), folder)
        definitions = [_rendered(variable, scope) for variable in _chosen(scope, name)]
        if name == "server":
            definitions = [
                structs.replace(each, name=f"server.{each.name}", value=_public("server", each.name, each.value))
                for each in definitions
                if each.value is not OMIT
            ]
        secrets = files.tracker.secrets
        winners: dict[str, VariableDefinition] = {}
        return tuple(
            structs.replace(
                each,
                value=_redacted(each.name, each.value, secrets),
                error=secrets.redact(each.error),
                wins=winners.setdefault(each.name, each) is each,
            )
            for each in definitions
        )


def _chosen(scope: TemplateScope, name: str | None) -> Iterator[Variable]:
    variables = scope.variables
    if name is None:
        yield from (each for other in sorted(set(variables) - {"server"}) if (each := variables.winner(other)))
    elif name == "server" and name in variables:
        yield from sorted(server_keys(variables.all_of(name), scope), key=attrgetter("name"))
    elif name in variables:
        yield from variables.all_of(name)
    else:
        raise outside_node("NAME", name).error(f"unknown variable {name!r}", nearest(name, variables), kind="variable")


def _rendered(variable: Variable, scope: TemplateScope) -> VariableDefinition:
    value, error = None, ""
    lost = scope.tracker.lost
    before = len(lost)
    try:
        value = render_data(variable.value, scope, variable.node)
        value = HIDDEN if len(lost) > before else value
    except InputError as problem:
        error = problem.problems[0].message
    except UsesAssetError:
        error = "asset is known in tasks alone"
    return VariableDefinition(variable.name, value, variable.level.description, variable.node.key_place, error)


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
        return {each: _public(key, each, inner) for each, inner in value.items()}
    shown = key in _SHOWN_IN.get(owner, ()) and not isinstance(value, list) and "@" not in str(value)
    return value if shown else HIDDEN


def _redacted(name: str, value: Any, secrets: Secrets) -> Any:
    """Return a value without secrets, also those that were copied to an unmarked place."""
    if isinstance(value, dict):
        return {secrets.redact(str(key)): _redacted(str(key), each, secrets) for key, each in value.items()}
    if isinstance(value, list):
        return [_redacted(name, each, secrets) for each in value]
    if isinstance(value, MarkedText) or (is_secret_name(name) and value is not None):
        return HIDDEN
    return USER_IN_URL.sub(HIDDEN, secrets.redact(value)) if isinstance(value, str) else value
