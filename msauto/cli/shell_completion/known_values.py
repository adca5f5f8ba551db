"""The values that completion offers: hosts, groups, tags, runs and titles, from files alone.

It reads them with as little as possible: the loaders that a command uses take longer than a shell may wait. What cannot
be read offers nothing.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from click import Context, Parameter
from click.shell_completion import CompletionItem

from msauto.cli.shell_completion.cache_folder import read_titles

_MOST: Final = 200
_LARGEST: Final = 5_000_000
"""The largest file that is read, in bytes."""
_IMPORTS: Final = ("import_playbook", "import_tasks")
_TITLES: Final = "SELECT DISTINCT name FROM target WHERE kind = 'asset' AND substr(name, 1, ?) = ? LIMIT ?"
_RUNS: Final = "SELECT name, started, status, playbooks FROM run ORDER BY started DESC LIMIT ?"

Values = Iterable[tuple[str, str]]
"""Values, each with its help, which may be empty."""
KINDS: Final[Mapping[tuple[str, str], str]] = {
    **{("", name): "hosts" for name in ("limit",)},
    **{("", name): "tags" for name in ("tags", "skip_tags")},
    **{("", name): "runs" for name in ("run", "resumed")},
    **{("", name): "titles" for name in ("title", "titles", "target", "targets", "scratch")},
    ("vars", "host"): "hosts",
}
"""What completes a parameter: by command (empty: any) and name."""


def completer(
    command: str, parameter: str, values: Sequence[tuple[str, str]]
) -> Callable[[Context, Parameter, str], list[CompletionItem]] | None:
    """Return the function of click that completes a parameter, if one does: with ``values``, or what is known now."""
    kind = KINDS.get((command, parameter)) or KINDS.get(("", parameter), "")
    if not kind and not values:
        return None

    def fixed(_: Mapping[str, Any], __: str) -> Values:
        return values

    find = _FINDERS[kind] if kind else fixed

    def complete(context: Context, option: Parameter, incomplete: str) -> list[CompletionItem]:
        del option
        before, begun = _split(incomplete) if kind in {"hosts", "tags"} else ("", incomplete)
        found = {value: text for value, text in find(context.params, begun) if value.startswith(begun)}
        return [CompletionItem(f"{before}{value}", help=text or None) for value, text in [*found.items()][:_MOST]]

    return complete


def _split(incomplete: str) -> tuple[str, str]:
    """Return what is complete of a list or pattern (``a,b:!c``), and the part that is being typed."""
    at = max(incomplete.rfind(sign) for sign in ",:&!") + 1
    return incomplete[:at], incomplete[at:]


# Hosts and tags ----------------------------------------------------------------------------------------------------


def _hosts(given: Mapping[str, Any], _: str) -> Values:
    inventories = given.get("inventory") or _settings(given).get("inventory") or ()
    folder = _folder(given) if not given.get("inventory") else Path()
    for each in [inventories] if isinstance(inventories, str) else inventories:
        for path in _files(folder / each):
            for name, group in _read(path).items():
                yield from _group(name, group)


def _group(name: str, group: Any) -> Iterator[tuple[str, str]]:
    yield name, "group"
    if isinstance(group, dict):
        for host in group.get("hosts") or ():
            yield str(host), "host"
        children = group.get("children")
        for child, inner in children.items() if isinstance(children, dict) else ():
            yield from _group(child, inner)


def _tags(given: Mapping[str, Any], _: str) -> Values:
    playbooks = [Path(each) for each in given.get("playbooks") or given.get("paths") or ()]
    seen: set[Path] = set()
    waiting = playbooks or [*_files(Path()), *_files(Path("playbooks"))]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            for name, value in _keys(_load(path)):
                if name == "tags":
                    yield from ((tag, "") for tag in _words(value))
                elif name in _IMPORTS and isinstance(value, str):
                    waiting.append(path.parent / value)


def _keys(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield all keys of nested data with their values."""
    for each in data if isinstance(data, list) else ():
        yield from _keys(each)
    for name, value in data.items() if isinstance(data, dict) else ():
        yield name, value
        yield from _keys(value)


def _words(value: Any) -> Iterator[str]:
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str):
            yield from filter(None, (part.strip() for part in each.split(",")))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in {".yml", ".yaml", ".json"})


def _read(path: Path) -> dict[str, Any]:
    data = _load(path)
    return data if isinstance(data, dict) else {}


def _load(path: Path) -> Any:
    import yaml

    with suppress(OSError, ValueError, yaml.YAMLError, RecursionError):
        if path.stat().st_size <= _LARGEST:
            return yaml.load(path.read_text(encoding="utf-8"), Loader=_loader())  # noqa: S506 - it makes texts alone
    return None


def _loader() -> Any:
    """Return a loader that makes texts, lists and mappings alone, whatever the tags are; the fast one if it exists."""
    import yaml

    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)


# Settings ----------------------------------------------------------------------------------------------------------


def _folder(given: Mapping[str, Any]) -> Path:
    """Return the folder of the settings: that of the first playbook, or the working folder."""
    if config := given.get("config"):
        return Path(config).parent
    starts = [*(Path(each).parent for each in given.get("playbooks") or ()), Path()]
    above = (each for start in starts for each in (start.resolve(), *start.resolve().parents))
    return next((each for each in above if (each / "msauto.toml").is_file()), Path())


def _settings(given: Mapping[str, Any]) -> Mapping[str, Any]:
    import tomllib

    path = Path(given["config"]) if given.get("config") else _folder(given) / "msauto.toml"
    with suppress(OSError, ValueError):
        return tomllib.loads(path.read_text(encoding="utf-8"))
    return {}


# The ledger --------------------------------------------------------------------------------------------------------


def _runs(given: Mapping[str, Any], begun: str) -> Values:
    if "last".startswith(begun):
        yield "last", "the newest run"
    for name, started, status, playbooks in _query(given, _RUNS, (_MOST,)):
        yield name, f"{started[:16].replace('T', ' ')}Z {status} {' '.join(json.loads(playbooks))}"


def _titles(given: Mapping[str, Any], begun: str) -> Values:
    yield from ((title, "") for title in read_titles() if title.startswith(begun))
    for (title,) in _query(given, _TITLES, (len(begun), begun, _MOST)):
        if title.isprintable():
            yield title, ""


def _query(given: Mapping[str, Any], query: str, values: tuple[object, ...]) -> list[Any]:
    state = _settings(given).get("state")
    if isinstance(state, dict) and "url" in state:  # a shared ledger: completion does not wait for a server
        return []
    path = _state_folder(given) / "ledger.sqlite"
    with suppress(sqlite3.Error, OSError, ValueError):
        if path.is_file():
            uri = f"{path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True, timeout=0.1)) as connection:
                return connection.execute(query, values).fetchall()
    return []


def _state_folder(given: Mapping[str, Any]) -> Path:
    """Return the folder of the ledger, as :func:`~msauto.cli.flags.state_folder`."""
    if given.get("state_dir"):
        return Path(os.path.expanduser(given["state_dir"]))  # noqa: PTH111 - no error for an unknown user
    kept = _settings(given).get("state_dir")
    if isinstance(kept, str):
        return _folder(given) / os.path.expanduser(kept)  # noqa: PTH111
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "msauto"


_FINDERS: Final[Mapping[str, Callable[[Mapping[str, Any], str], Values]]] = {
    "hosts": _hosts,
    "tags": _tags,
    "runs": _runs,
    "titles": _titles,
}
