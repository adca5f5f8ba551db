"""Inventories as in Ansible: hosts, groups and their variables."""

from __future__ import annotations

import fnmatch
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from msauto.documents.document import Document, Problems, SourceNode, nearest, outside_node
from msauto.documents.value_types import mark
from msauto.playbook.input_files import Files
from msauto.playbook.schema.inventory import InventoryArgs as InventoryFile
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.variables import Level, Variable, read_variables

_VARS_FOLDERS = ("group_vars", "host_vars")
_ENDINGS = (".yml", ".yaml")
_VARS_ENDINGS = (*_ENDINGS, ".json", "")


@dataclass(slots=True)
class _Group:
    """A group while it is read: its own hosts, groups and variables."""

    name: str
    node: SourceNode
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Host:
    """A host is a media server; ``variables`` are its definitions in the inventory, weakest first."""

    name: str
    node: SourceNode
    variables: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """Hosts in the order of the files, and groups with all their hosts, also those of their children.

    ``single`` is the inventory of ``--server``: every host pattern of a play matches that server.
    """

    hosts: Mapping[str, Host]
    groups: Mapping[str, tuple[str, ...]]
    single: bool = False
    warnings: tuple[str, ...] = ()


def load_inventory(paths: Sequence[str], files: Files, flaws: Problems | None = None) -> Inventory:
    """Read inventories, the later over the earlier; raises :class:`InputError` with all problems.

    ``flaws`` collects problems of the texts that leave every value known; without it, they are raised as well.
    """
    problems = Problems()
    flaws = problems if flaws is None else flaws
    builder = _InventoryBuilder()
    for path in paths:
        for file in inventory_files(path):
            with problems.gather():
                _check_is_yaml(file, files)
                document = files.flawed(file)
                flaws.add(*document.flaws)
                builder.add(document)
    problems.check()
    with problems.gather():
        builder.check_loops()
    for path in paths:
        with problems.gather():
            builder.add_vars_folders(path, files, flaws)
    problems.check()
    return builder.finish()


_INI_GROUP = re.compile(rb"\s*(?:[#;][^\n]*\n\s*)*\[[\w.:-]+\][ \t]*(?:\r?\n|$)")


def _check_is_yaml(file: str, files: Files) -> None:
    """Refuse an inventory in the INI format of Ansible, which begins with a group in brackets."""
    if _INI_GROUP.match(files.read(file)):
        raise outside_node(file).error(
            "this inventory is in the INI format of Ansible; msauto reads YAML",
            "write it as YAML: all: children: GROUP: hosts: HOST: server: {url: …}",
            kind="host",
        )


def inventory_files(path: str) -> list[str]:
    """Return the inventory files of a path: the file itself, or the YAML files of a folder."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    return [str(each) for each in sorted(folder.iterdir()) if each.suffix in _ENDINGS and not each.name.startswith(".")]


class _InventoryBuilder:
    """Groups and hosts while they are read from several files."""

    def __init__(self) -> None:
        self.groups: dict[str, _Group] = {}
        self.hosts: dict[str, SourceNode] = {}
        self.host_variables, self.extra = defaultdict[str, list[Variable]](list), defaultdict[str, list[Variable]](list)
        self.warnings: list[str] = []

    def add(self, document: Document) -> None:
        """Read one file. The caller reports its flaws; those that leave a value unknown are also raised."""
        node = SourceNode(document)
        data = mark(document.data if document.data is not None else {})
        if isinstance(data, list):
            raise node.error("this is a playbook, not an inventory", "an inventory starts with all:", kind="host")
        problems = Problems()
        with problems.gather():
            read_as(InventoryFile, data, node)
        if document.broken:
            problems.add(*document.flaws)
        problems.check()
        for name, body in data.items():
            with problems.gather():
                self._group(name, body or {}, node.child(name))
        problems.check()

    def _group(self, name: str, body: dict[str, Any], node: SourceNode) -> None:
        _check_host_name(name, node)
        group = self.groups.setdefault(name, _Group(name, node))
        group.variables += read_variables(body.get("vars"), Level.INVENTORY_GROUP, node.child("vars"))
        for host, values in (body.get("hosts") or {}).items():
            here = node.child("hosts", host)
            _check_host_name(host, here)
            self.hosts.setdefault(host, here)
            self.host_variables[host] += read_variables(values, Level.INVENTORY_HOST, here)
            group.hosts[host] = None
        for child, inner in (body.get("children") or {}).items():
            self._group(child, inner or {}, node.child("children", child))
            group.children[child] = None

    def check_loops(self) -> None:
        """Raise for a group that contains itself."""
        try:
            self._children_first()
        except CycleError as error:
            cycle: list[str] = error.args[1][-2::-1]  # parents first, without the repeated one
            first = cycle.index(next(name for name in self.groups if name in cycle))
            chain = [*cycle[first:], *cycle[:first], cycle[first]]
            message = f"the group contains itself: {' → '.join(chain)}"
            raise self.groups[chain[0]].node.error(message, key=True, kind="host") from None

    def _children_first(self) -> list[str]:
        return list(TopologicalSorter({name: group.children for name, group in self.groups.items()}).static_order())

    def add_vars_folders(self, path: str, files: Files, flaws: Problems) -> None:
        """Read ``group_vars/`` and ``host_vars/`` beside an inventory."""
        folder = Path(path) if Path(path).is_dir() else Path(path).parent
        problems = Problems()
        for kind, name, file in vars_files_of(folder):
            known = self.hosts if kind == "host_vars" else self.groups
            if Path(file).suffix not in _VARS_ENDINGS and name not in known:
                continue  # the name of a file may have a dot because that of its host has one
            with problems.gather():
                self._vars_file(kind, name, files.document(file, flaws))
        problems.check()

    def _vars_file(self, kind: str, name: str, document: Document) -> None:
        of_host = kind == "host_vars"
        level = Level.HOST_VARS if of_host else Level.GROUP_VARS_ALL if name == "all" else Level.GROUP_VARS
        known: Iterable[str] = self.hosts if of_host else self.groups
        if name in known or level == Level.GROUP_VARS_ALL:
            found = read_variables(document.data or {}, level, SourceNode(document))
            (self.host_variables if of_host else self.extra)[name] += found
        else:
            hint = nearest(name, known)
            unknown = f"{document.file}: unknown {'host' if of_host else 'group'} {name!r}"
            self.warnings.append(unknown + (f" ({hint})" if hint else ""))

    def finish(self) -> Inventory:
        """Return the inventory."""
        everything = self.groups.setdefault("all", _Group("all", SourceNode(Document("inventory"))))
        everything.hosts.update(dict.fromkeys(self.hosts))
        depth = self._depths()
        members = self._members()
        ordered = sorted(self.groups, key=lambda name: (depth[name], name))
        hosts = {
            name: Host(name, node, tuple(self._variables(name, [each for each in ordered if name in members[each]])))
            for name, node in self.hosts.items()
        }
        groups = {name: tuple(host for host in self.hosts if host in members[name]) for name in ordered}
        return Inventory(hosts, groups, warnings=tuple(dict.fromkeys(self.warnings)))

    def _variables(self, host: str, groups: Sequence[str]) -> Iterable[Variable]:
        for group in groups:
            yield from self.groups[group].variables
        for group in groups:
            yield from self.extra[group]
        yield from self.host_variables[host]

    def _depths(self) -> dict[str, int]:
        """Return the distance of each group from ``all``: variables of deeper groups are stronger."""
        depth = dict.fromkeys(self.groups, 1) | {"all": 0}
        for name in reversed(self._children_first()):
            for child in self.groups[name].children:
                depth[child] = max(depth[child], depth[name] + 1)
        return depth

    def _members(self) -> dict[str, set[str]]:
        members: dict[str, set[str]] = {}
        for name in self._children_first():
            group = self.groups[name]
            members[name] = set(group.hosts).union(*(members[child] for child in group.children))
        return members


def vars_files_of(folder: Path) -> Iterable[tuple[str, str, str]]:
    """Yield kind, name and path of the files in ``group_vars/`` and ``host_vars/``, as Ansible does.

    They are ``x``, ``x.yml``, ``x.yaml`` or ``x.json``, or such files in folders ``x/`` and below, unless hidden.
    """
    for kind in _VARS_FOLDERS:
        for entry in _visible(folder / kind) if (folder / kind).is_dir() else ():
            if entry.is_dir():
                yield from ((kind, entry.name, str(each)) for each in _files_below(entry))
            elif entry.is_file():
                yield kind, entry.stem if entry.suffix in _VARS_ENDINGS else entry.name, str(entry)


def _files_below(folder: Path) -> Iterable[Path]:
    for entry in _visible(folder):
        if entry.is_dir():
            yield from _files_below(entry)
        elif entry.is_file() and entry.suffix in _VARS_ENDINGS:
            yield entry


def _visible(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not (each.name.startswith(".") or each.name.endswith("~")))


def _check_host_name(name: str, node: SourceNode) -> None:
    if not name.strip() or any(sign in name for sign in ",:&!*?[]{}") or any(sign.isspace() for sign in name):
        why = f"{name!r} is not a valid name of a host or group"
        raise node.error(why, "use no spaces and none of , : & ! * ? [ ]", key=True, kind="host")


# Host patterns ---------------------------------------------------------------------------------------------------

_GLOB = re.compile(r"[*?\[]")
_PART = re.compile(r"(?:\[[^\]]*\]|\([^()]*\)|\{[^}]*\}|[^,:])+")
"""A part of a pattern, which may contain commas and colons in brackets."""
_INDEX = re.compile(r"(.+)\[(?:(-?\d{1,9})|(\d{1,9})[:-](\d{0,9}))\]")


class PatternError(ValueError):
    """A pattern that is invalid or matches nothing; ``remedy`` suggests another."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def match_hosts(pattern: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the hosts that a pattern matches, in the order of the inventory; raises :class:`PatternError`.

    As in Ansible, unions come first, then ``&``, then ``!``, in any order of the parts.
    """
    return _match(split(pattern), pattern, hosts, groups)


def split(pattern: str) -> list[str]:
    """Return the parts of a pattern."""
    return [part.strip() for part in _PART.findall(pattern) if part.strip()]


def match_limit(
    pattern: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]], read: Callable[[str], bytes]
) -> list[str]:
    """Return the hosts that ``--limit`` matches; ``read`` returns a file given as ``@file``."""
    parts = [part for each in split(pattern) for part in _from_file(each, read)]
    return _match(parts, pattern, hosts, groups)


def _from_file(part: str, read: Callable[[str], bytes]) -> list[str]:
    """Return a part; for a file, a part for each of its lines, with the ``!`` of the file."""
    sign, name = (part[0], part[1:]) if part[0] in "&!" else ("", part)
    if not name.startswith("@"):
        return [part]
    lines = [line.partition("#")[0].strip() for line in read(name[1:]).decode("utf-8-sig", "replace").splitlines()]
    named = [line for line in lines if line]
    if not named:
        raise PatternError(f"the file {name[1:]} contains no host", "write one host, group or glob in each line")
    if sign == "&":
        raise PatternError("a file cannot follow &", "write the file first, then & and the group")
    return [sign + each for line in named for each in split(line)]


def _match(parts: Sequence[str], pattern: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> list[str]:
    if not parts:
        raise PatternError("the host pattern is empty", "write all, a host, or a group")
    named = [part for part in parts if part[0] not in "&!"]
    chosen = set(hosts) if not named else {host for part in named for host in _named(part, hosts, groups)}
    for part in parts:
        if part[0] == "&":
            chosen &= _named(part[1:], hosts, groups)
        elif part[0] == "!":
            chosen -= _named(part[1:], hosts, groups)
    if not chosen:
        raise PatternError(f"the pattern {pattern!r} matches no host", nearest("", [*hosts, *groups]))
    return [host for host in hosts if host in chosen]


def _named(name: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> set[str]:
    names = [*hosts, *groups]
    index = _INDEX.fullmatch(name)

    def globbed(glob: str) -> set[str]:
        return _matching(lambda each: fnmatch.fnmatchcase(each, glob), glob == "*", hosts, groups)

    if name.startswith("~"):
        from jinja2.exceptions import SecurityError

        from msauto.playbook.templates.filters import pattern as compiled_regex

        try:
            regex = compiled_regex(name[1:], max(names, key=len, default=""))
        except (ValueError, SecurityError) as error:
            raise PatternError(str(error), "use a simpler one, in Python's syntax") from error
        found = _matching(lambda each: regex.match(each) is not None, name == "~all", hosts, groups)
    elif index is not None and (":" in name or index[1] in names or globbed(index[1]) or not globbed(name)):
        return _by_index(index, name, hosts, groups)
    elif _GLOB.search(name):
        found = globbed(name)
    elif name in names:
        return set(groups.get(name, (name,)))
    else:
        raise PatternError(f"unknown host or group {name!r}", nearest(name, names))
    if not found:
        raise PatternError(f"{name!r} matches no host or group", nearest("", names))
    return found


def _matching(
    matches: Callable[[str], bool], of_all: bool, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]
) -> set[str]:
    """Return the hosts that match, and those of groups that match; ``a*`` and ``~a`` do not match the group all."""
    found = {host for host in hosts if matches(host)}
    return found.union(*(groups[each] for each in groups if matches(each) and (each != "all" or of_all)))


def _by_index(index: re.Match[str], name: str, hosts: Sequence[str], groups: Mapping[str, Sequence[str]]) -> set[str]:
    """Return the hosts of a group or glob by index; a range includes both ends."""
    found = _named(index[1], hosts, groups)
    listed = [host for host in hosts if host in found]
    if index[2] is not None:
        first = int(index[2])
        chosen = listed[first : first + 1 or None]
    else:
        chosen = listed[int(index[3]) : int(index[4]) + 1 if index[4] else None]
    if not chosen:
        count = f"{len(listed)} host{'s' if len(listed) != 1 else ''}"
        raise PatternError(f"the pattern {name!r} matches no host", f"{index[1]} has {count}, counted from 0")
    return set(chosen)
