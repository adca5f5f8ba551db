"""``msauto completion SHELL``, and the answers to its script: commands, flags, hosts, tags, runs and titles.

An answer must come within 0.3 seconds. The imports of a command take longer, so the commands and their flags are kept
in the user's cache folder, and values come from files alone. What cannot be read offers nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result
from msauto.file_writing import write_file
from msauto.playbook.settings_file import beside, settings_above, state_folder
from msauto.report.sanitizing import visible
from msauto.version import __version__

VARIABLE: Final = "_MSAUTO_COMPLETE"
SHELLS: Final[dict[str, type[ShellComplete]]] = {
    "bash": BashComplete,
    "fish": FishComplete,
    "zsh": ZshComplete,
}
_CHANGED: Final = {
    # A title holds blanks, which bash must not take for the ends of words.
    "bash": ("COMPREPLY+=($value)", 'printf -v value %%q "$value"; COMPREPLY+=("$value")'),
    # A title may hold commas.
    "fish": ('string split ","', 'string split --max 1 ","'),
}
_MOST_TITLES: Final = 100_000
_MOST: Final = 200
_LARGEST: Final = 5_000_000
"""The largest file that is read, in bytes."""
_IMPORTS: Final = ("import_playbook", "import_tasks")
_ROLES: Final = ("roles", "role", "import_role")
_TITLES: Final = (
    "SELECT DISTINCT name FROM target WHERE kind = 'asset' AND substr(name, 1, ?) = ? LIMIT ?"
)
_RUNS: Final = "SELECT name, started, status, playbooks FROM run ORDER BY started DESC LIMIT ?"

Data = Mapping[str, Any]
"""Parameters, settings, or what a file holds."""
Values = Iterable[tuple[str, str]]
"""Values, each with its help, which may be empty."""
Finder = Callable[[Data, str], Values]
"""Finds values, from the parameters given so far and the beginning of the value."""


@click.command("completion", cls=HelpCommand)
@click.argument("shell", type=click.Choice(sorted(SHELLS)))
def command(*, shell: str) -> None:
    """Print the completion script of a shell: eval "$(msauto completion bash)" in ~/.bashrc."""
    group = click.get_current_context().find_root().command
    assert isinstance(group, click.Group)
    light_group(group)  # remembers the commands, so that the first answer comes soon as well
    print_result(_script(shell, group))


def answer(instruction: str, commands: click.Group) -> str | None:
    """Return what ``bash_complete`` or ``bash_source`` ask for; ``None`` for anything else."""
    shell, _, what = instruction.partition("_")
    if shell not in SHELLS or what not in {"complete", "source"}:
        return None
    if what == "source":
        return _script(shell, commands)
    return SHELLS[shell](light_group(commands), {}, "msauto", VARIABLE).complete()


def _script(shell: str, commands: click.Group) -> str:
    complete = SHELLS[shell](commands, {}, "msauto", VARIABLE)
    # source() would start a bash only to find its version.
    return complete.source_template.replace(*_CHANGED.get(shell, ("", ""))) % complete.source_vars()


# Commands ------------------------------------------------------------------------------------------------------------


def light_group(commands: click.Group) -> click.Group:
    """Return a group that completes as ``commands`` does, and also values; a change of msauto renews it."""
    folder = Path(__file__).parents[1]
    files = sorted([*folder.glob("*.py"), *folder.glob("commands/*.py")])
    stamps = [f"{file.name} {file.stat().st_mtime_ns}" for file in files]
    mark = hashlib.sha256("\n".join([__version__, *stamps]).encode()).hexdigest()
    try:
        kept = json.loads(_read("commands.json"))
    except ValueError:
        kept = {}
    if kept.get("mark") != mark:
        context = click.Context(commands, **commands.context_settings)
        kept = {"mark": mark, "group": commands.to_info_dict(context)}
        _keep("commands.json", json.dumps(kept, default=str))
    group = _command("msauto", kept["group"])
    assert isinstance(group, click.Group)
    return group


def _command(name: str, described: Data) -> click.Command:
    """Return a command from what click's ``to_info_dict`` returned for it."""
    summary = described["short_help"] or described["help"]
    if "commands" in described:
        inner = [_command(own_name, info) for own_name, info in described["commands"].items()]
        return click.Group(name, commands=inner, short_help=summary)
    params = []
    for param in described["params"]:
        is_help = "--help" in param["opts"]
        if not is_help and not param.get("hidden"):
            params.append(_parameter(name, param))
    return _CommandBeingTyped(name, params=params, short_help=summary)


class _CommandBeingTyped(click.Command):
    """A command that keeps what was typed before a flag that has no value yet: click drops it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for param in self.params:
            takes_value = isinstance(param, click.Option) and not param.is_flag and not param.count
            if takes_value and args and args[-1] in param.opts:
                args = [*args, ""]
        return super().parse_args(ctx, args)


def _parameter(command: str, described: Data) -> click.Parameter:
    name = described["name"]
    find = _FINDERS.get(f"{command} {name}") or _FINDERS.get(name)
    kind = _value_type(described["type"])
    complete = _completer(find)
    if described["param_type_name"] == "argument":
        count = described["nargs"]
        return click.Argument(
            [name], nargs=count, required=False, type=kind, shell_complete=complete
        )
    names = [name, *described["opts"], *described["secondary_opts"]]
    kept = {key: described[key] for key in ("is_flag", "count", "multiple", "help")}
    if kept["is_flag"] or kept["count"]:
        return click.Option(names, **kept)
    return click.Option(names, **kept, type=kind, shell_complete=complete)


def _value_type(described: Data) -> click.ParamType[Any] | None:
    if described.get("choices"):
        return click.Choice(described["choices"])
    return click.Path() if described["param_type"] == "Path" else None


def _completer(
    find: Finder | None,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]] | None:
    """Return the function of click that completes values with what is known now."""
    if find is None:
        return None

    def complete(
        context: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        # What is complete of a list or pattern (``a,b:!c``), and the part that is being typed.
        begun = incomplete
        if find in {_hosts, _tags}:
            begun = re.split("[,:&!]", incomplete)[-1]
        before = incomplete.removesuffix(begun)
        matches: dict[str, str] = {}
        for value, text in find(context.params, begun):
            if value.startswith(begun) and value.isprintable():
                matches[value] = visible(text)
        first = islice(matches.items(), _MOST)
        return [CompletionItem(f"{before}{value}", help=text or None) for value, text in first]

    return complete


# Hosts and tags ----------------------------------------------------------------------------------------------------


def _hosts(given: Data, _: str) -> Values:
    file, settings = _settings(given)
    inventories = given.get("inventory")
    if not inventories:
        inventories = [beside(file, name) for name in _as_list(settings.get("inventory"))]
    for inventory in inventories:
        for path in _files(Path(inventory)):
            for name, group in _mapping(_load(path)).items():
                yield from _inventory_group(name, group)


def _inventory_group(name: str, group: Any) -> Iterator[tuple[str, str]]:
    yield name, "group"
    group = _mapping(group)
    for host in group.get("hosts") or ():
        yield str(host), "host"
    for child, inner in _mapping(group.get("children")).items():
        yield from _inventory_group(child, inner)


def _mapping(data: Any) -> Data:
    """Return a mapping; an empty one for other data."""
    return data if isinstance(data, dict) else {}


def _as_list(data: Any) -> list[Any]:
    """Return a list, of one item for other data; empty for none."""
    if not data:
        return []
    return data if isinstance(data, list) else [data]


def _tags(given: Data, _: str) -> Values:
    named = given.get("playbooks") or given.get("paths") or ()
    waiting = [Path(name) for name in named]
    if not waiting:
        waiting = [*_files(Path()), *_files(Path("playbooks"))]
    role_folders = [*_shared_role_folders(given), *(path.parent / "roles" for path in waiting)]
    read_files: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in read_files:
            continue
        read_files.add(path)
        for key, value in _keys(_load(path)):
            if key == "tags":
                yield from _split_tags(value)
            elif key in _IMPORTS and isinstance(value, str):
                waiting.append(path.parent / value)
            elif key in _ROLES:
                waiting += _task_files(value, role_folders)


def _shared_role_folders(given: Data) -> list[Path]:
    """Return the folders of roles that the settings name."""
    file, settings = _settings(given)
    folders = _as_list(_mapping(settings.get("roles")).get("path")) or ["roles"]
    return [Path(beside(file, str(folder))) for folder in folders]


def _split_tags(value: Any) -> Values:
    for text in _as_list(value):
        if isinstance(text, str):
            for tag in filter(None, map(str.strip, text.split(","))):
                yield tag, ""


def _task_files(roles: Any, folders: Iterable[Path]) -> Iterator[Path]:
    """Yield where the tasks of roles may be."""
    for role in _as_list(roles):
        name = role.get("name") if isinstance(role, dict) else role
        for folder in folders:
            yield folder / str(name) / "tasks" / "main.yml"


def _keys(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield all keys of nested data with their values."""
    if isinstance(data, list):
        for item in data:
            yield from _keys(item)
    for name, value in _mapping(data).items():
        yield name, value
        yield from _keys(value)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in {".yml", ".yaml", ".json"})


def _load(path: Path) -> Any:
    """Return texts, lists and mappings alone, whatever the tags are."""
    import yaml

    with suppress(OSError, ValueError, yaml.YAMLError, RecursionError):
        if path.stat().st_size <= _LARGEST:
            loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
            return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - it makes texts alone
    return None


# Settings ----------------------------------------------------------------------------------------------------------


def _settings(given: Data) -> tuple[Path, Data]:
    """Return the settings file and what it holds, not validated: that would take too long."""
    import tomli

    starts = [Path(playbook).parent for playbook in given.get("playbooks") or ()]
    path = Path(given.get("config") or next(settings_above(*starts, Path()), ""))
    with suppress(OSError, ValueError):
        return path, tomli.loads(path.read_text(encoding="utf-8-sig"))
    return Path(), {}


# The ledger --------------------------------------------------------------------------------------------------------


def _runs(given: Data, begun: str) -> Values:
    if "last".startswith(begun):
        yield "last", "the newest run"
    for name, started, status, playbooks in _query(given, _RUNS, (_MOST,)):
        yield name, f"{started[:16].replace('T', ' ')}Z {status} {' '.join(json.loads(playbooks))}"


def _titles(given: Data, begun: str) -> Values:
    with suppress(OSError, RuntimeError):
        for path in sorted((_cache_folder() / "titles").iterdir()):
            for title in _read(f"titles/{path.name}").splitlines():
                if title.startswith(begun):
                    yield title, ""
    for (title,) in _query(given, _TITLES, (len(begun), begun, _MOST)):
        yield title, ""


def _query(given: Data, query: str, values: tuple[object, ...]) -> list[Any]:
    file, settings = _settings(given)
    folder = settings.get("state_dir")
    # A shared ledger: completion does not wait for a server.
    if "url" in _mapping(settings.get("state")):
        return []
    set_to = beside(file, folder) if isinstance(folder, str) else None
    path = state_folder(given.get("state_dir"), set_to) / "ledger.sqlite"
    with suppress(sqlite3.Error, OSError, ValueError):
        if path.is_file():
            uri = f"{path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=0.1)) as connection:
                return connection.execute(query, values).fetchall()
    return []


_FINDERS: Final[Mapping[str, Finder]] = {
    "limit": _hosts,
    "tags": _tags,
    "skip_tags": _tags,
    "run": _runs,
    "undo": _runs,
    "title": _titles,
    "titles": _titles,
    "target": _titles,
    "scratch": _titles,
    "vars host": _hosts,
}
"""What completes a parameter: by its name, or by command and name."""


# The cache -----------------------------------------------------------------------------------------------------------


def keep_titles(url: str, database: str, titles: Iterable[str]) -> None:
    """Remember the titles of a database."""
    first = islice(titles, _MOST_TITLES)
    lines = [f"{title}\n" for title in first if title.isprintable()]
    name = hashlib.sha256(f"{url}\0{database}".encode()).hexdigest()[:16]
    _keep(f"titles/{name}", "".join(lines))


def _cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    folder = Path(given) if given else Path.home() / ".cache"
    return folder / "msauto"


def _keep(name: str, text: str) -> None:
    """Write a file of the cache, completely or not at all; that it cannot be written is not an error."""
    with suppress(OSError, RuntimeError):  # without a home folder
        path = _cache_folder() / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_file(path, [text], 0o600)  # readable by the owner only


def _read(name: str) -> str:
    with suppress(OSError, RuntimeError):
        return (_cache_folder() / name).read_text(encoding="utf-8", errors="surrogateescape")
    return ""
