"""``msauto completion SHELL``, and the answers to its script: commands, flags, hosts, tags, runs and titles.

An answer must come within 0.3 seconds. The imports of a command take longer, so the commands and their flags are kept
in the user's cache folder, and values come from files alone. What cannot be read offers nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from msauto.cli.help import HelpCommand
from msauto.cli.output import print_result
from msauto.file_writing import write_file
from msauto.playbook.settings_file import beside, settings_above, state_folder
from msauto.report.sanitizing import visible
from msauto.version import __version__

VARIABLE: Final = "_MSAUTO_COMPLETE"
SHELLS: Final[dict[str, type[ShellComplete]]] = {"bash": BashComplete, "fish": FishComplete, "zsh": ZshComplete}
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
_TITLES: Final = "SELECT DISTINCT name FROM target WHERE kind = 'asset' AND substr(name, 1, ?) = ? LIMIT ?"
_RUNS: Final = "SELECT name, started, status, playbooks FROM run ORDER BY started DESC LIMIT ?"

Values = Iterable[tuple[str, str]]
"""Values, each with its help, which may be empty."""
Finder = Callable[[Mapping[str, Any], str], Values]
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
        kept = {"mark": mark, "group": commands.to_info_dict(click.Context(commands))}
        _keep("commands.json", json.dumps(kept, default=str))
    group = _command("msauto", kept["group"])
    assert isinstance(group, click.Group)
    return group


def _command(name: str, told: Mapping[str, Any]) -> click.Command:
    """Return a command from what click's ``to_info_dict`` returned for it."""
    if "commands" in told:
        inner = [_command(each, info) for each, info in told["commands"].items()]
        return click.Group(name, commands=inner, short_help=told["short_help"] or told["help"])
    params = [
        _parameter(name, each) for each in told["params"] if "--help" not in each["opts"] and not each.get("hidden")
    ]
    return _CommandBeingTyped(name, params=params, short_help=told["short_help"] or told["help"])


class _CommandBeingTyped(click.Command):
    """A command that keeps what was typed before a flag that has no value yet: click drops it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = (each for each in self.params if isinstance(each, click.Option))
        waits = any(
            args[-1:] == [name] for each in options if not each.is_flag and not each.count for name in each.opts
        )
        return super().parse_args(ctx, [*args, ""] if waits else args)


def _parameter(command: str, told: Mapping[str, Any]) -> click.Parameter:
    choices = told["type"].get("choices")
    kind = click.Choice(choices) if choices else click.Path() if told["type"]["param_type"] == "Path" else None
    complete = _completer(_FINDERS.get((command, told["name"])) or _FINDERS.get(("", told["name"])))
    if told["param_type_name"] == "argument":
        return click.Argument([told["name"]], nargs=told["nargs"], required=False, type=kind, shell_complete=complete)
    names = [told["name"], *told["opts"], *told["secondary_opts"]]
    if told["is_flag"] or told["count"]:
        return click.Option(names, is_flag=told["is_flag"], count=told["count"], help=told["help"])
    return click.Option(names, multiple=told["multiple"], type=kind, help=told["help"], shell_complete=complete)


def _completer(find: Finder | None) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]] | None:
    """Return the function of click that completes values with what is known now."""
    if find is None:
        return None

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        # What is complete of a list or pattern (``a,b:!c``), and the part that is being typed.
        at = max(incomplete.rfind(sign) for sign in ",:&!") + 1 if find in {_hosts, _tags} else 0
        before, begun = incomplete[:at], incomplete[at:]
        matches: dict[str, str] = {}
        for value, text in find(context.params, begun):
            if value.startswith(begun) and value.isprintable():
                matches[value] = visible(text)
        return [CompletionItem(f"{before}{value}", help=text or None) for value, text in [*matches.items()][:_MOST]]

    return complete


# Hosts and tags ----------------------------------------------------------------------------------------------------


def _hosts(given: Mapping[str, Any], _: str) -> Values:
    file, kept = _settings(given)
    inventories = given.get("inventory") or kept.get("inventory") or ()
    for each in [inventories] if isinstance(inventories, str) else inventories:
        for path in _files(Path(each) if given.get("inventory") else Path(beside(file, each))):
            data = _load(path)
            for name, group in data.items() if isinstance(data, dict) else ():
                yield from _inventory_group(name, group)


def _inventory_group(name: str, group: Any) -> Iterator[tuple[str, str]]:
    yield name, "group"
    if isinstance(group, dict):
        for host in group.get("hosts") or ():
            yield str(host), "host"
        children = group.get("children")
        for child, inner in children.items() if isinstance(children, dict) else ():
            yield from _inventory_group(child, inner)


def _tags(given: Mapping[str, Any], _: str) -> Values:
    playbooks = [Path(each) for each in given.get("playbooks") or given.get("paths") or ()]
    seen: set[Path] = set()
    waiting = playbooks or [*_files(Path()), *_files(Path("playbooks"))]
    file, settings = _settings(given)
    roles = settings.get("roles")
    shared = roles.get("path") if isinstance(roles, dict) else None
    folders = [Path(beside(file, str(each))) for each in (shared if isinstance(shared, list) else [shared or "roles"])]
    folders += (path.parent / "roles" for path in waiting)
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            for name, value in _keys(_load(path)):
                if name == "tags":
                    texts = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]
                    yield from ((tag.strip(), "") for tag in ",".join(texts).split(",") if tag.strip())
                elif name in _IMPORTS and isinstance(value, str):
                    waiting.append(path.parent / value)
                elif name in _ROLES:
                    entries = value if isinstance(value, list) else [value]
                    names = [each.get("name") if isinstance(each, dict) else each for each in entries]
                    waiting += (folder / str(each) / "tasks" / "main.yml" for each in names for folder in folders)


def _keys(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield all keys of nested data with their values."""
    for each in data if isinstance(data, list) else ():
        yield from _keys(each)
    for name, value in data.items() if isinstance(data, dict) else ():
        yield name, value
        yield from _keys(value)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in {".yml", ".yaml", ".json"})


def _load(path: Path) -> Any:
    """Return texts, lists and mappings alone, whatever the tags are."""
    import yaml

    with suppress(OSError, ValueError, yaml.YAMLError, RecursionError):
        if path.stat().st_size <= _LARGEST:
            loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
            return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - it makes texts alone
    return None


# Settings ----------------------------------------------------------------------------------------------------------


def _settings(given: Mapping[str, Any]) -> tuple[Path, Mapping[str, Any]]:
    """Return the settings file and what it holds, not validated: that would take too long."""
    import tomli

    starts = (Path(each).parent for each in given.get("playbooks") or ())
    path = given.get("config") or next(settings_above(*starts, Path()), "")
    with suppress(OSError, ValueError):
        return Path(path), tomli.loads(Path(path).read_text(encoding="utf-8-sig"))
    return Path(), {}


# The ledger --------------------------------------------------------------------------------------------------------


def _runs(given: Mapping[str, Any], begun: str) -> Values:
    if "last".startswith(begun):
        yield "last", "the newest run"
    for name, started, status, playbooks in _query(given, _RUNS, (_MOST,)):
        yield name, f"{started[:16].replace('T', ' ')}Z {status} {' '.join(json.loads(playbooks))}"


def _titles(given: Mapping[str, Any], begun: str) -> Values:
    with suppress(OSError, RuntimeError):
        for path in sorted((_cache_folder() / "titles").iterdir()):
            yield from ((each, "") for each in _read(f"titles/{path.name}").splitlines() if each.startswith(begun))
    yield from ((title, "") for (title,) in _query(given, _TITLES, (len(begun), begun, _MOST)))


def _query(given: Mapping[str, Any], query: str, values: tuple[object, ...]) -> list[Any]:
    file, kept = _settings(given)
    state, folder = kept.get("state"), kept.get("state_dir")
    if isinstance(state, dict) and "url" in state:  # a shared ledger: completion does not wait for a server
        return []
    set_to = beside(file, folder) if isinstance(folder, str) else None
    path = state_folder(given.get("state_dir"), set_to) / "ledger.sqlite"
    with suppress(sqlite3.Error, OSError, ValueError):
        if path.is_file():
            uri = f"{path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=0.1)) as connection:
                return connection.execute(query, values).fetchall()
    return []


_FINDERS: Final[Mapping[tuple[str, str], Finder]] = {
    ("", "limit"): _hosts,
    **{("", name): _tags for name in ("tags", "skip_tags")},
    **{("", name): _runs for name in ("run", "undo")},
    **{("", name): _titles for name in ("title", "titles", "target", "scratch")},
    ("vars", "host"): _hosts,
}
"""What completes a parameter: by command (empty: any) and name."""


# The cache -----------------------------------------------------------------------------------------------------------


def keep_titles(url: str, database: str, titles: Iterable[str]) -> None:
    """Remember the titles of a database."""
    lines = [f"{title}\n" for title, _ in zip(titles, range(_MOST_TITLES), strict=False) if title.isprintable()]
    name = hashlib.sha256(f"{url}\0{database}".encode()).hexdigest()[:16]
    _keep(f"titles/{name}", "".join(lines))


def _cache_folder() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "msauto"


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
