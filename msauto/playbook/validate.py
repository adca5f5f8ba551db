"""``msauto validate``: all that is wrong with playbooks and inventories, as far as it can be known without a server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from textwrap import wrap
from typing import get_args

from msgspec import Struct, structs

from msauto.aspects import contradictions
from msauto.documents.document import Problems, SourceNode
from msauto.documents.value_types import is_template
from msauto.errors import Problem, SourceLocation, nearest
from msauto.model import desired as model
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.timecode import DROP_FRAME_RATES
from msauto.playbook.file_kinds import FileKind, kind_of_file
from msauto.playbook.hosts import Hosts, ResolveOptions, open_hosts
from msauto.playbook.input_files import Files, how_to_find, is_encrypted
from msauto.playbook.plays import Loader, Play
from msauto.playbook.resolve import resolve_plays, tag_problems
from msauto.playbook.roles import role_of
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.templates.names import UsesAssetError

_WHAT_IT_READS = "write a list of plays, or a mapping: an inventory, variables or a batch"
_ENDINGS = (".yml", ".yaml")


def validate(paths: Sequence[str], options: ResolveOptions) -> list[Problem]:
    """Return all problems in order of place; the content of a file decides what it is.

    Inventories among the paths are added to those of the options. Without any, only the structure of playbooks is
    checked, because the names that templates may use are unknown.
    """
    options = structs.replace(options, secrets=options.secrets.offline())
    files = Files(options.lookup_folders)
    files.tracker.unknown = bool(options.secrets.declared)
    by_kind: dict[FileKind, list[str]] = {kind: [] for kind in get_args(FileKind)}
    roles = {path: role_of(path) for path in _walked(paths, files, by_kind["foreign"])}
    for path in (path for path, role in roles.items() if not role):
        with files.problems.gather():
            by_kind[kind_of_file(files.flawed(path))].append(path)
    loaded = _check_playbooks(by_kind, options, files)
    loader = Loader(files, options.role_folders)
    for role in sorted({*roles.values()} - loaded - {""}):
        loader.lone_role(role)
    alone = [path for path in by_kind["tasks"] if path not in loaded | loader.loaded]
    for path in alone:
        Loader(files).task_file(path)
    if alone and by_kind["playbook"]:
        remedy = "let a play import them: import_tasks: FILE"
        files.problems.add(_about("no playbook imports these tasks:", alone, remedy))
    named = {Path(each.folder, word) for each in options.secrets.declared.values() for word in each.words}
    reported = {Path(problem.place.file) for problem in files.problems.ordered() if problem.place}
    read = {path.absolute() for path in named | reported}
    if foreign := [path for path in by_kind["foreign"] if Path(path).absolute() not in read]:
        remedy = "write inventories as YAML, name encrypted files in a command of [secrets] in msauto.toml;"
        remedy += " leave the rest to the programs that read it"
        files.problems.add(_about("msauto does not read:", foreign, remedy))
    for node in (SourceNode(files.flawed(path)) for path in by_kind["batch"]):
        from msauto.playbook.schema.json_schema import file_model

        with files.problems.gather():
            read_as(file_model("batch"), node.document.data, node)
    for node in (SourceNode(files.flawed(path)) for path in by_kind["vars"]):
        if not isinstance(node.document.data, dict | None):
            files.problems.add(node.problem("this is neither plays nor variables", _WHAT_IT_READS, kind="wrong-type"))
    secrets = files.tracker.secrets
    return [secrets.redact_problem(problem) for problem in _each_once(files.problems.ordered(), files)]


# A repository for Ansible: what is the same in many places is reported once -------------------------------------------


def _about(message: str, paths: Sequence[str], remedy: str) -> Problem:
    """Return one warning about several files."""
    shown = ", ".join(paths[:_FEW]) + (f" and {len(paths) - _FEW} more" if len(paths) > _FEW else "")
    return Problem(f"{message} {shown}", SourceLocation(paths[0]), remedy, level="warning", kind="unused")


def _each_once(problems: list[Problem], files: Files) -> list[Problem]:
    """Return the problems, with one in the place of many modules of Ansible, and of many hosts without a server.

    What else is wrong with a file for Ansible is reported once its modules are replaced.
    """
    foreign: dict[Problem, str] = {}
    for each in problems:
        if each.kind == "not-supported" and each.place is not None:
            document = files.flawed(each.place.file)
            if isinstance(document.data, list) and not any(map(_OUR_MODULE.search, document.lines)):
                foreign[each] = document.file
    if len(foreign) > _FEW:
        replaced = {*foreign.values()}
        left = [each for each in problems if not (each.place and each.place.line and each.place.file in replaced)]
        notes = [each for each in left if each.place and not each.place.line and each.level == "warning"]
        summary = _about_ansible([*foreign], len(replaced), [each.message for each in notes])
        problems = [summary, *(each for each in left if each not in notes)]
    bare = [each for each in problems if each.message.endswith(" has no server")]
    if len(bare) > _FEW:
        first = replace(bare[0], message=f"{bare[0].message}, nor have {len(bare) - 1} other hosts")
        problems = [first, *(each for each in problems if each not in bare)]
    return Problems(*problems).ordered()


def _about_ansible(problems: Sequence[Problem], files: int, notes: Sequence[str]) -> Problem:
    """Return what replaces each module, which keys are not supported, and notes about other files."""
    from msauto.playbook.schema.play import FOREIGN_MODULES

    names_by_remedy: dict[str, dict[str, None]] = {"": {}}
    for each in problems:
        name = each.message.partition(" ")[0]
        is_module = name in {*FOREIGN_MODULES, "command"} or "." in name
        names_by_remedy.setdefault(each.remedy if is_module else "", {})[name.removeprefix("ansible.builtin.")] = None
    names_by_remedy["keys to replace or remove"] = names_by_remedy.pop("")
    lines = [f"{', '.join(names)}: {remedy}" for remedy, names in names_by_remedy.items() if names]
    lines = [part for line in (*lines, *notes) for part in wrap(line, 78, subsequent_indent="  ")]
    message = "\n".join([f"written for Ansible (files: {files}); msauto has instead:", *lines])
    return replace(problems[0], message=message, remedy=_CONVERT, excerpt="")


_FEW = 3
_OUR_MODULE = re.compile(r"\b(asset|rss|thumbnail|proxy|xmp_batch):")
_CONVERT = "convert one file at a time, as in the how-to: Coming from Ansible"


def _check_playbooks(by_kind: dict[FileKind, list[str]], options: ResolveOptions, files: Files) -> set[str]:
    """Check the inventories and playbooks; return the roles and the files of tasks that the playbooks use."""
    loaded: set[str] = set()
    problems = files.problems
    inventories = tuple(dict.fromkeys([*options.inventories, *by_kind["inventory"]]))
    opened: list[Hosts] = []
    if inventories or options.server_url is not None:
        url = None if inventories else options.server_url
        with problems.gather():
            opened.append(open_hosts(structs.replace(options, inventories=inventories, server_url=url), files))
    for hosts in opened if inventories else ():
        for name in hosts.inventory.hosts:
            with problems.gather():
                hosts.check_server(name)
        problems.add(*hosts.sent_openly(hosts.inventory.hosts))
        if not by_kind["playbook"]:
            problems.add(*hosts.same_servers(hosts.inventory.hosts))
    every: list[Play] = []
    for path in by_kind["playbook"]:
        # Each playbook is checked separately: two may be for different runs, and may contradict each other.
        loader = Loader(files, options.role_folders)
        plays = loader.playbook(path)
        every += plays
        loaded |= loader.loaded
        problems.add(*_never_notified(plays))
        for hosts in opened:
            work = resolve_plays(plays, hosts, check_only=True).work
            for problem in (*_contradictions(work), *_impossible_positions(work)):
                if problem.place is not None and problem.place.line:
                    excerpt = files.flawed(problem.place.file).excerpt(problem.place)
                    problem = replace(problem, excerpt=excerpt)
                problems.add(problem)
    problems.add(*tag_problems(options, every) if every else ())
    return loaded


def _walked(paths: Sequence[str], files: Files, foreign: list[str]) -> Iterator[str]:
    """Yield the files; of those in folders, what other programs read is added to ``foreign``."""
    for path in paths:
        if not Path(path).exists():
            missing = Problem("file or folder not found", SourceLocation(path), how_to_find(path), kind="file")
            files.problems.add(missing)
        elif Path(path).is_dir():
            for file in sorted(Path(path).rglob("*")):
                parts = file.relative_to(path).parts
                if any(part.startswith(".") for part in parts) or not file.is_file():
                    continue
                if "molecule" in parts or file.suffix in {".ini", ".cfg"} or file.name == "hosts":
                    foreign.append(str(file))
                elif file.suffix in _ENDINGS and _is_inside(file, Path(path), files):
                    if is_encrypted(file):
                        foreign.append(str(file))
                    else:
                        yield str(file)
        else:
            yield path


def _is_inside(file: Path, folder: Path, files: Files) -> bool:
    """Return whether a file is in the repository of a folder; a link that leads out of it is a problem."""
    with files.problems.gather():
        files.check_inside(str(file), folder)
        return True
    return False


# Handlers that never run -----------------------------------------------------------------------------------------


def _never_notified(plays: Sequence[Play]) -> Iterator[Problem]:
    """Yield a warning for each handler that no task and no other handler of its play notifies."""
    for play in plays:
        handlers = play.data.get("handlers")
        for index, handler in enumerate(handlers if isinstance(handlers, list) else []):
            name = handler.get("name") if isinstance(handler, dict) else None
            unused = isinstance(name, str) and not is_template(name) and name not in play.notified
            if not unused or any(map(is_template, play.notified)):  # a template may name any handler
                continue
            hint = nearest(str(name), play.notified)
            remedy = hint if hint.startswith("did") else "add notify: to a task, or remove the handler"
            why = f"no task notifies the handler {name!r}, so it never runs"
            node = play.node.child("handlers", index, "name")
            yield replace(node.problem(why, remedy, kind="unused"), level="warning")


# What tasks desire together, as far as it is known without a server -------------------------------------------------


def _contradictions(work: Sequence[model.ServerIntents]) -> Iterator[Problem]:
    """Yield what two tasks contradict that name the same title, id or channel, and depend on no facts.

    One of them may be left out by its tags.
    """
    for each in work:
        declared, left_out = _declared(each.intents), _declared(each.left_out)
        for ref, desired in declared.items():
            title = ref.title if isinstance(ref, model.TitleRef) else ""
            together = [desired, *([*desired, kept] for kept in left_out.get(ref, ()))]
            errors = {str(error): error for some in together for error in contradictions(some, title)}
            for error in errors.values():
                yield Problem(error.message, error.place, error.remedy, kind="conflict")


def _declared(intents: Sequence[model.Intent]) -> dict[model.Ref, list[model.DesiredAsset | model.DesiredChannel]]:
    """Return what tasks declare that depends on no facts, by the title, id or channel that they name."""
    declared: dict[model.Ref, list[model.DesiredAsset | model.DesiredChannel]] = {}
    for intent in intents:
        ref, desired = intent.ref, _constant_of(intent)
        if isinstance(ref, model.TitleRef):
            ref = model.TitleRef(ref.database, ref.title)
        if desired is not None and not isinstance(ref, model.SelectRef):
            declared.setdefault(ref, []).append(desired)
    return declared


_ALWAYS_SKIPPED = min(DROP_FRAME_RATES.values())
"""The frames that every drop-frame rate skips at the start of a minute."""


def _impossible_positions(work: Sequence[model.ServerIntents]) -> Iterator[Problem]:
    """Yield the drop-frame time codes that exist at no rate, each at its place; a plan names the clip's length, too."""
    for intent in (intent for each in work for intent in each.intents):
        desired = _constant_of(intent)
        for sourced in desired.sourced() if isinstance(desired, model.DesiredAsset) else ():
            for position in _positions_in(sourced.value):
                for code in (position.timecode, position.origin):
                    if code is not None and code.is_omitted(_ALWAYS_SKIPPED):
                        message = f"{code} does not exist: drop-frame time codes skip it"
                        remedy = f"use {code.text.partition(';')[0]};{_ALWAYS_SKIPPED:02} (29.97 fps)"
                        yield Problem(message, sourced.source.place, remedy, kind="time-code")


def _positions_in(value: object) -> Iterator[model.Position]:
    if isinstance(value, model.Position):
        yield value
    elif isinstance(value, Struct):
        yield from chain.from_iterable(_positions_in(getattr(value, name)) for name in value.__struct_fields__)
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_positions_in, value.values()))


def _constant_of(intent: model.Intent) -> model.DesiredAsset | model.DesiredChannel | None:
    """Return the desired state of an intent; ``None`` if it depends on facts."""
    try:
        desired = intent.evaluate(Facts())
    except (Need, NoAssetError, UsesAssetError):
        return None
    return desired if isinstance(desired, model.DesiredAsset | model.DesiredChannel) else None
