"""``msauto validate``: all that is wrong with playbooks and inventories, as far as it can be known without a server."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import get_args

from msgspec import Struct, structs

from msauto.aspects import contradictions
from msauto.documents.document import Document, Problems, SourceNode, is_template
from msauto.errors import Problem, SourceLocation, did_you_mean, in_order
from msauto.file_access import files_below, is_folder, may_be_there
from msauto.model import desired as model
from msauto.model.facts import Facts, Need, NoAssetError
from msauto.model.timecode import DROP_FRAME_RATES, Timecode
from msauto.playbook.file_kinds import FileKind, kind_of_file
from msauto.playbook.hosts import Hosts, ResolveOptions, open_hosts
from msauto.playbook.input_files import Files, folder_not_read, how_to_find, is_encrypted
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
    roles: set[str] = set()
    for path in dict.fromkeys(_walked(paths, files, by_kind["foreign"])):
        role = role_of(path)
        if role:
            roles.add(role)
            continue
        with files.problems:
            by_kind[kind_of_file(files.flawed(path))].append(path)
    loaded = _check_playbooks(by_kind, options, files)
    loader = Loader(files, options.role_folders)
    for role in sorted(roles - loaded):
        loader.lone_role(role)
    _check_lone_tasks(by_kind, loaded | loader.loaded, files)
    _report_foreign(by_kind["foreign"], options, files)
    for path in by_kind["batch"]:
        _check_batch(files.flawed(path), files.problems)
    for path in by_kind["vars"]:
        document = files.flawed(path)
        if not isinstance(document.data, dict | None):
            why = "this is neither plays nor variables"
            files.problems.append(
                SourceNode(document).problem(why, _WHAT_IT_READS, kind="wrong-type")
            )
    problems = _hosts_in_one(_ansible_in_one(in_order(files.problems), files))
    return [files.tracker.secrets.redact_problem(problem) for problem in in_order(problems)]


def _check_lone_tasks(
    by_kind: Mapping[FileKind, list[str]], loaded: set[str], files: Files
) -> None:
    """Check the files of tasks that no playbook imports."""
    alone = [path for path in by_kind["tasks"] if path not in loaded]
    for path in alone:
        Loader(files).task_file(path)
    if alone and by_kind["playbook"]:
        remedy = "let a play import them: import_tasks: FILE"
        files.problems.append(_about("no playbook imports these tasks:", alone, remedy))


def _report_foreign(paths: Sequence[str], options: ResolveOptions, files: Files) -> None:
    """Report the files that nothing reads: neither msauto nor a command of the settings."""
    named: set[Path] = set()
    for command in options.secrets.declared.values():
        named.update(Path(command.folder, word).absolute() for word in command.words)
    for problem in in_order(files.problems):
        if problem.place:
            named.add(Path(problem.place.file).absolute())
    unread = [path for path in paths if Path(path).absolute() not in named]
    if unread:
        remedy = "write inventories as YAML, name encrypted files in a command of [secrets] in msauto.toml;"
        remedy += " leave the rest to the programs that read it"
        files.problems.append(_about("msauto does not read:", unread, remedy))


def _check_batch(document: Document, problems: Problems) -> None:
    from msauto.playbook.schema.json_schema import file_model

    with problems:
        read_as(file_model("batch"), document.data, SourceNode(document))


# A repository for Ansible: what is the same in many places is reported once -------------------------------------------


def _about(message: str, paths: Sequence[str], remedy: str) -> Problem:
    """Return one warning about several files."""
    shown = ", ".join(paths[:_FEW])
    if len(paths) > _FEW:
        shown += f" and {len(paths) - _FEW} more"
    return Problem(
        f"{message} {shown}", SourceLocation(paths[0]), remedy, level="warning", kind="unused"
    )


def _ansible_in_one(problems: list[Problem], files: Files) -> list[Problem]:
    """Return the problems, with one in the place of many modules of Ansible.

    What else is wrong with a file for Ansible is reported once its modules are replaced.
    """
    unsupported: list[Problem] = []
    for_ansible: set[str] = set()
    for problem in problems:
        if problem.kind != "not-supported" or problem.place is None:
            continue
        document = files.flawed(problem.place.file)
        if isinstance(document.data, list) and not any(map(_OUR_MODULE.search, document.lines)):
            unsupported.append(problem)
            for_ansible.add(document.file)
    if len(unsupported) <= _FEW:
        return problems
    others: list[Problem] = []
    notes: list[str] = []
    for problem in problems:
        place = problem.place
        if place is None:
            others.append(problem)
        elif not place.line and problem.level == "warning":
            notes.append(problem.message)
        elif not place.line or place.file not in for_ansible:
            others.append(problem)
    return [_about_ansible(unsupported, len(for_ansible), notes), *others]


def _about_ansible(problems: Sequence[Problem], files: int, notes: Sequence[str]) -> Problem:
    """Return what replaces each module, which keys are not supported, and notes about other files."""
    from msauto.playbook.schema.play import FOREIGN_MODULES

    names_by_remedy = defaultdict[str, dict[str, None]](dict)
    keys: dict[str, None] = {}
    for problem in problems:
        name = problem.message.partition(" ")[0]
        is_module = "." in name or name in {*FOREIGN_MODULES, "command"}
        names = names_by_remedy[problem.remedy] if is_module else keys
        names[name.removeprefix("ansible.builtin.")] = None
    if keys:
        names_by_remedy["keys to replace or remove"] = keys
    paragraphs = [f"{', '.join(names)}: {remedy}" for remedy, names in names_by_remedy.items()]
    lines = [f"written for Ansible (files: {files}); msauto has instead:"]
    for paragraph in (*paragraphs, *notes):
        lines += wrap(paragraph, 78, subsequent_indent="  ")
    return replace(problems[0], message="\n".join(lines), remedy=_CONVERT, excerpt="")


def _hosts_in_one(problems: list[Problem]) -> list[Problem]:
    """Return the problems, with one in the place of many hosts without a server."""
    bare = [problem for problem in problems if problem.message.endswith(" has no server")]
    if len(bare) <= _FEW:
        return problems
    first = replace(bare[0], message=f"{bare[0].message}, nor have {len(bare) - 1} other hosts")
    return [first, *(problem for problem in problems if problem not in bare)]


_FEW = 3
_OUR_MODULE = re.compile(r"\b(asset|rss|thumbnail|proxy|xmp_batch):")
_CONVERT = "convert one file at a time, as in the how-to: Coming from Ansible"


def _check_playbooks(
    by_kind: Mapping[FileKind, list[str]], options: ResolveOptions, files: Files
) -> set[str]:
    """Check the inventories and playbooks; return the roles and the files of tasks that the playbooks use."""
    loaded: set[str] = set()
    hosts = _checked_hosts(by_kind, options, files)
    all_plays: list[Play] = []
    for path in by_kind["playbook"]:
        # Each playbook is checked separately: two may be for different runs, and may contradict each other.
        loader = Loader(files, options.role_folders)
        plays = loader.playbook(path)
        all_plays += plays
        loaded |= loader.loaded
        files.problems.extend(_never_notified(plays))
        if hosts is not None:
            _check_together(resolve_plays(plays, hosts, check_only=True).work, files)
    if all_plays:
        files.problems.extend(tag_problems(options, all_plays))
    return loaded


def _checked_hosts(
    by_kind: Mapping[FileKind, list[str]], options: ResolveOptions, files: Files
) -> Hosts | None:
    """Return the hosts of the inventories, or that of ``--server``; ``None`` without any, or if they are invalid."""
    inventories = tuple(dict.fromkeys([*options.inventories, *by_kind["inventory"]]))
    if not inventories and options.server_url is None:
        return None
    options = structs.replace(options, playbooks=tuple(by_kind["playbook"]))
    if inventories:
        options = structs.replace(options, inventories=inventories, server_url=None)
    problems = files.problems
    with problems:
        hosts = open_hosts(options, files)
        if not inventories:
            return hosts
        names = hosts.inventory.hosts
        for name in names:
            with problems:
                hosts.check_server(name)
        problems.extend(hosts.sent_openly(names))
        if not by_kind["playbook"]:
            problems.extend(hosts.same_servers(names))
        return hosts
    return None


def _check_together(work: Sequence[model.ServerIntents], files: Files) -> None:
    """Collect what tasks ask for that no server can do, each problem with its line."""
    for problem in (*_contradictions(work), *_impossible_positions(work)):
        place = problem.place
        if place is not None and place.line:
            problem = replace(problem, excerpt=files.flawed(place.file).excerpt(place))
        files.problems.append(problem)


def _walked(paths: Sequence[str], files: Files, foreign: list[str]) -> Iterator[str]:
    """Yield the files; of those in folders, what other programs read is added to ``foreign``."""
    for path in paths:
        if is_folder(path):
            yield from _walked_folder(Path(path), files, foreign)
        elif may_be_there(path):
            yield path
        else:
            missing = Problem(
                "file or folder not found", SourceLocation(path), how_to_find(path), kind="file"
            )
            files.problems.append(missing)


def _walked_folder(folder: Path, files: Files, foreign: list[str]) -> Iterator[str]:
    def tell(error: OSError) -> None:
        files.problems.extend(folder_not_read(error.filename, error).problems)

    for file in files_below(folder, _is_read, tell):
        parts = file.relative_to(folder).parts
        if "molecule" in parts or file.suffix in {".ini", ".cfg"} or file.name == "hosts":
            foreign.append(str(file))
        elif file.suffix in _ENDINGS and _is_inside(file, folder, files):
            if is_encrypted(file):
                foreign.append(str(file))
            else:
                yield str(file)


def _is_read(name: str) -> bool:
    return not name.startswith(".")


def _is_inside(file: Path, folder: Path, files: Files) -> bool:
    """Return whether a file is in the repository of a folder; a link that leads out of it is a problem."""
    with files.problems:
        files.check_inside(str(file), folder)
        return True
    return False


# Handlers that never run -----------------------------------------------------------------------------------------


def _never_notified(plays: Sequence[Play]) -> Iterator[Problem]:
    """Yield a warning for each handler that no task and no other handler of its play notifies."""
    for play in plays:
        handlers = play.data.get("handlers")
        may_notify_any = any(map(is_template, play.notified))
        if may_notify_any or not isinstance(handlers, list):
            continue
        for index, handler in enumerate(handlers):
            name = handler.get("name") if isinstance(handler, dict) else None
            if not isinstance(name, str) or is_template(name) or name in play.notified:
                continue
            remedy = (
                did_you_mean(name, play.notified) or "add notify: to a task, or remove the handler"
            )
            why = f"no task notifies the handler {name!r}, so it never runs"
            node = play.node.child("handlers", index, "name")
            yield replace(node.problem(why, remedy, kind="unused"), level="warning")


# What tasks desire together, as far as it is known without a server -------------------------------------------------


def _contradictions(work: Sequence[model.ServerIntents]) -> Iterator[Problem]:
    """Yield what two tasks contradict that name the same title, id or channel, and depend on no facts.

    One of them may be left out by its tags.
    """
    for server in work:
        left_out = _declared(server.left_out)
        for ref, desired in _declared(server.intents).items():
            title = ref.title if isinstance(ref, model.TitleRef) else ""
            for together in (desired, *([*desired, kept] for kept in left_out.get(ref, ()))):
                for error in contradictions(together, title):
                    yield Problem(error.message, error.place, error.remedy, kind="conflict")


def _declared(
    intents: Sequence[model.Intent],
) -> dict[model.Ref, list[model.DesiredAsset | model.DesiredChannel]]:
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
    for server in work:
        for intent in server.intents:
            desired = _constant_of(intent)
            if not isinstance(desired, model.DesiredAsset):
                continue
            for sourced in desired.sourced():
                for code in _codes_in(sourced.value):
                    if code.is_omitted(_ALWAYS_SKIPPED):
                        message = f"{code} does not exist: drop-frame time codes skip it"
                        remedy = (
                            f"use {code.text.partition(';')[0]};{_ALWAYS_SKIPPED:02} (29.97 fps)"
                        )
                        yield Problem(message, sourced.source.place, remedy, kind="time-code")


def _codes_in(value: object) -> Iterator[Timecode]:
    """Yield the time codes of the positions in a value."""
    parts: Iterable[object] = ()
    if isinstance(value, model.Position):
        for code in (value.timecode, value.origin):
            if code is not None:
                yield code
    elif isinstance(value, Struct):
        parts = structs.asdict(value).values()
    elif isinstance(value, Mapping):
        parts = value.values()
    for part in parts:
        yield from _codes_in(part)


def _constant_of(intent: model.Intent) -> model.DesiredAsset | model.DesiredChannel | None:
    """Return the desired state of an intent; ``None`` if it depends on facts."""
    try:
        desired = intent.evaluate(Facts())
    except (Need, NoAssetError, UsesAssetError):
        return None
    return desired if isinstance(desired, model.DesiredAsset | model.DesiredChannel) else None
