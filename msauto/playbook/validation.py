"""``msauto validate``: all that is wrong with playbooks and inventories, as far as it can be known without a server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msauto.errors import Problem, SourceLocation
from msauto.playbook.files import Files, how_to_find
from msauto.playbook.inventory.hosts import Hosts, same_servers
from msauto.playbook.tasks.contradictions import contradictions
from msauto.playbook.tasks.handler_names import never_notified
from msauto.playbook.tasks.invalid_times import impossible_positions
from msauto.playbook.tasks.plays import Loader
from msauto.playbook.yaml.document import Document, Problems

if TYPE_CHECKING:
    from msauto.playbook.resolve import ResolveOptions

Kind = Literal["playbook", "tasks", "inventory", "vars"]
_ENDINGS = (".yml", ".yaml")
_VARS_FOLDERS = ("group_vars", "host_vars")


def find_problems(paths: Sequence[str], options: ResolveOptions) -> list[Problem]:
    """Return all problems in order of place; playbooks and inventories are told apart by their content.

    Inventories among the paths serve the playbooks beside those of the options. Without any, playbooks are checked
    by their structure alone, for the names that templates may use are not known.
    """
    problems = Problems()
    files = Files(options.lookup_folders, options.file_mib)
    sorted_out: dict[Kind, list[str]] = {"playbook": [], "tasks": [], "inventory": [], "vars": []}
    for path in _walked(paths, problems):
        with problems.gather():
            document = files.flawed(path)
            problems.add(*document.flaws)
            sorted_out[kind_of_file(document)].append(path)
    _check_playbooks(sorted_out, options, problems, files)
    loader = Loader(files, problems)
    for path in sorted_out["tasks"]:
        loader.task_file(path)
    secrets = files.taint.found.known()
    return [secrets.redact_problem(problem) for problem in problems.ordered()] if secrets else problems.ordered()


def _check_playbooks(found: dict[Kind, list[str]], options: ResolveOptions, problems: Problems, files: Files) -> None:
    from msauto.playbook.resolve import open_hosts

    complete = replace(options, inventories=tuple(dict.fromkeys([*options.inventories, *found["inventory"]])))
    hosts: Hosts | None = None
    if complete.inventories:
        with problems.gather():
            hosts = open_hosts(replace(complete, server_url=None), files, problems)
        if hosts is None:
            complete = replace(complete, inventories=())
    elif options.server_url is not None:
        with problems.gather():
            hosts = open_hosts(complete, files, problems)
    if hosts is not None and complete.inventories:
        for name in hosts.inventory.hosts:
            with problems.gather():
                hosts.check_server(name)
        if not found["playbook"]:
            problems.add(*same_servers(hosts, hosts.inventory.hosts))
    for path in found["playbook"]:
        _check_playbook(path, complete, problems, files, hosts)


def _check_playbook(path: str, options: ResolveOptions, problems: Problems, files: Files, hosts: Hosts | None) -> None:
    """Check one playbook by itself: two that contradict each other need not be for the same run."""
    from msauto.playbook.resolve import resolve_with

    problems.add(*never_notified(Loader(files, Problems()).playbook(path)))
    resolved = resolve_with(replace(options, playbooks=(path,)), hosts, files, problems, check_only=True)
    work = resolved.work if resolved is not None else ()
    for problem in (*contradictions(work), *impossible_positions(work)):
        problems.add(_drawn(problem, files))


def _drawn(problem: Problem, files: Files) -> Problem:
    """Return a problem with the line that it is about."""
    place = problem.place
    if place is None or not place.line:
        return problem
    return replace(problem, excerpt=files.flawed(place.file).excerpt(place))


def _walked(paths: Sequence[str], problems: Problems) -> Iterator[str]:
    for path in paths:
        if not Path(path).exists():
            problems.add(Problem("there is no such file or folder", SourceLocation(path), how_to_find(path)))
        elif Path(path).is_dir():
            yield from _in_folder(Path(path))
        else:
            yield path


def _in_folder(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix in _ENDINGS and path.is_file() and not hidden:
            yield str(path)


def kind_of_file(document: Document) -> Kind:
    """Tell what a file is by what it holds: a list of plays or of tasks, an inventory, or variables."""
    data = document.data
    if isinstance(data, list):
        tasks = any(map(_is_task, data)) and not any(map(_is_play, data))
        return "tasks" if tasks else "playbook"
    if any(part in _VARS_FOLDERS for part in Path(document.file).parts):
        return "vars"
    if isinstance(data, dict) and ("all" in data or any(_is_group(value) for value in data.values())):
        return "inventory"
    return "vars"


def _is_play(item: Any) -> bool:
    return isinstance(item, dict) and bool({"hosts", "tasks", "import_playbook", "handlers", "vars_files"} & set(item))


def _is_task(item: Any) -> bool:
    from msauto.playbook.schema.play import MODULES

    return isinstance(item, dict) and bool({*MODULES} & set(item))


def _is_group(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and set(value) <= {"hosts", "vars", "children"}
