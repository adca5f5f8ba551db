"""The commands and their flags as completion needs them, remembered so that no command has to be imported."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

import click

from msauto.cli.shell_completion.cache_folder import keep, read
from msauto.cli.shell_completion.known_values import completer
from msauto.version import __version__

_NAME: Final = "commands.json"


def light_group(commands: click.Group) -> click.Group:
    """Return a group that completes as ``commands`` does, and also values; a change of msauto renews it."""
    mark = _mark()
    try:
        index = json.loads(read(_NAME))
    except ValueError:
        index = {}
    if index.get("mark") != mark:
        index = {"mark": mark, "commands": _describe_group(commands)}
        keep(_NAME, json.dumps(index))
    return _group("msauto", index["commands"])


def _mark() -> str:
    """Return what changes with the code of the commands."""
    folder = Path(__file__).parents[1]
    files = sorted(each for part in ("commands", "runs", ".") for each in (folder / part).glob("*.py"))
    stamps = [f"{file.name} {file.stat().st_mtime_ns}" for file in files]
    return hashlib.sha256("\n".join([__version__, *stamps]).encode()).hexdigest()


# Describe ----------------------------------------------------------------------------------------------------------


def _describe_group(group: click.Group) -> dict[str, Any]:
    context = click.Context(group)
    found = {name: group.get_command(context, name) for name in group.list_commands(context)}
    return {
        name: {"help": command.get_short_help_str(80)}
        | (
            {"commands": _describe_group(command)}
            if isinstance(command, click.Group)
            else {"params": [_describe(each) for each in command.params]}
        )
        for name, command in found.items()
        if command is not None
    }


def _describe(parameter: click.Parameter) -> dict[str, Any]:
    kind = parameter.type
    shared = {
        "name": parameter.name,
        "nargs": parameter.nargs,
        "choices": list(kind.choices) if isinstance(kind, click.Choice) else None,
        "path": isinstance(kind, click.Path),
        "values": _own_values(parameter),
    }
    if not isinstance(parameter, click.Option):
        return {**shared, "argument": True}
    flags = {"is_flag": parameter.is_flag, "count": parameter.count, "multiple": parameter.multiple}
    return {**shared, **flags, "opts": [*parameter.opts, *parameter.secondary_opts], "help": parameter.help}


def _own_values(parameter: click.Parameter) -> list[tuple[str, str | None]]:
    """Return what a parameter itself completes: values that do not depend on anything."""
    if isinstance(parameter.type, click.Choice | click.Path):
        return []
    return [(each.value, each.help) for each in parameter.shell_complete(click.Context(click.Command("")), "")]


# Make again --------------------------------------------------------------------------------------------------------


def _group(name: str, commands: dict[str, Any]) -> click.Group:
    group = click.Group(name)
    for each, described in commands.items():
        group.add_command(_command(each, described), each)
    return group


def _command(name: str, described: dict[str, Any]) -> click.Command:
    if "commands" in described:
        group = _group(name, described["commands"])
        group.short_help = described["help"]
        return group
    params = [_parameter(name, each) for each in described["params"]]
    return click.Command(name, params=params, short_help=described["help"])


def _parameter(command: str, described: dict[str, Any]) -> click.Parameter:
    kind = click.Choice(described["choices"]) if described["choices"] else click.Path() if described["path"] else None
    complete = completer(command, described["name"], described["values"])
    if "argument" in described:
        return click.Argument(
            [described["name"]], nargs=described["nargs"], required=False, type=kind, shell_complete=complete
        )
    if described["is_flag"]:
        return click.Option([described["name"], *described["opts"]], is_flag=True, help=described["help"])
    if described["count"]:
        return click.Option([described["name"], *described["opts"]], count=True, help=described["help"])
    return click.Option(
        [described["name"], *described["opts"]],
        multiple=described["multiple"],
        type=kind,
        help=described["help"],
        shell_complete=complete,
    )
