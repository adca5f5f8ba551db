"""Inventories as in Ansible: hosts, groups and their variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from msgspec import Struct

from msauto.documents.document import Document, Problems, SourceNode
from msauto.errors import InputError, Problem, nearest
from msauto.file_access import files_below, is_folder, may_be_there
from msauto.playbook.file_kinds import VARS_FOLDERS, check_kind
from msauto.playbook.input_files import Files, folder_not_read
from msauto.playbook.schema.inventory import InventoryArgs as InventoryFile
from msauto.playbook.schema.schema_errors import validate_data
from msauto.playbook.variables import Level, Variable, read_variables

_ENDINGS = (".yml", ".yaml")
_VARS_ENDINGS = (*_ENDINGS, ".json", "")


class _Group(Struct):
    """A group while it is read: its own hosts, groups and variables."""

    node: SourceNode
    hosts: dict[str, None] = {}
    children: dict[str, None] = {}
    variables: list[Variable] = []


class Host(Struct, frozen=True):
    """A host is a media server; ``variables`` are its definitions in the inventory, weakest first."""

    node: SourceNode
    variables: list[Variable] = []


class Inventory(Struct, frozen=True):
    """Hosts in the order of the files, and groups with all their hosts, also those of their children.

    ``single`` is the host of ``--server``, if no inventory has it: every host pattern of a play matches it, and no
    other host. ``of_all`` are the variables of the group ``all``.
    """

    hosts: Mapping[str, Host]
    groups: Mapping[str, tuple[str, ...]]
    single: str | None = None
    warnings: tuple[str, ...] = ()
    of_all: tuple[Variable, ...] = ()


def load_inventory(paths: Sequence[str], files: Files) -> Inventory:
    """Read inventories, the later over the earlier; raises :class:`InputError` with all problems.

    Flaws of the texts that leave every value known are only collected in ``files``.
    """
    problems = Problems()
    builder = _InventoryBuilder()
    for path in paths:
        inventories = [path]
        if path not in files.given:
            inventories = inventory_files(path)
        for file in inventories:
            with problems:
                if file != path:
                    files.check_inside(file, Path(path))
                builder.add(files.flawed(file), problems)
    problems.check()
    problems += builder.order_groups()
    for path in paths:
        if path not in files.given:
            with problems:
                builder.add_vars_folders(folder_of(path), files)
    problems.check()
    return builder.finish()


def inventory_files(path: str) -> list[str]:
    """Return the inventory files of a path: the file itself, or the YAML files of a folder."""
    if not is_folder(path):
        return [path]
    try:
        files = sorted(Path(path).iterdir())
    except OSError as error:
        raise folder_not_read(path, error) from error
    inventories: list[str] = []
    for file in files:
        if file.suffix in _ENDINGS and not file.name.startswith("."):
            inventories.append(str(file))
    return inventories


class _InventoryBuilder(Struct):
    """Groups and hosts, with their own variables, while they are read from several files."""

    groups: dict[str, _Group] = {}
    hosts: dict[str, Host] = {}
    warnings: list[str] = []
    children_first: list[str] = []

    def add(self, document: Document, problems: Problems) -> None:
        """Read one file; ``problems`` collects those of its groups, all others are raised.

        Of the flaws of the text, those are raised that leave a value unknown.
        """
        node = SourceNode(document)
        data = {} if document.data is None else document.data
        _, findings, _ = validate_data(InventoryFile, data, node)
        invalid = [problem for _, problem in findings]
        if document.broken:
            invalid += document.flaws
        if invalid or "all" not in data:
            check_kind(document, "inventory")
        if invalid:
            raise InputError(invalid)
        for name, body in data.items():
            with problems:
                self._group(name, body or {}, node.child(name))

    def _group(self, name: str, body: dict[str, Any], node: SourceNode) -> None:
        _check_host_name(name, node)
        group = self.groups.setdefault(name, _Group(node))
        if "vars" in body:
            place = node.child("vars")
            group.variables += read_variables(body["vars"], Level.INVENTORY_GROUP, place)
        hosts = body.get("hosts") or {}
        for host, values in hosts.items():
            place = node.child("hosts", host)
            _check_host_name(host, place)
            own = self.hosts.setdefault(host, Host(place)).variables
            own += read_variables(values, Level.INVENTORY_HOST, place)
            group.hosts[host] = None
        children = body.get("children") or {}
        for child, inner in children.items():
            self._group(child, inner or {}, node.child("children", child))
            group.children[child] = None

    def order_groups(self) -> list[Problem]:
        """Note the order of the groups, children first; return the problem of a group that contains itself."""
        self.groups.setdefault("all", _Group(SourceNode(Document("inventory"))))
        graph = {name: group.children for name, group in self.groups.items()}
        try:
            self.children_first += TopologicalSorter(graph).static_order()
            return []
        except CycleError as error:
            cycle: list[str] = error.args[1][-2::-1]  # parents first, without the repeated one
            first = min(cycle, key=list(self.groups).index)
            start = cycle.index(first)
            chain = " → ".join([*cycle[start:], *cycle[:start], first])
            why = f"the group contains itself: {chain}"
            remedy = "remove one of them from `children`"
            return [self.groups[first].node.problem(why, remedy, key=True, kind="host")]

    def add_vars_folders(self, folder: Path, files: Files) -> None:
        """Read ``group_vars/`` and ``host_vars/`` beside an inventory."""
        beside = read_vars_folders(folder, self.hosts, self.groups, files)
        self.warnings += beside.warnings
        for name, variables in beside.of_hosts.items():
            self.hosts[name].variables.extend(variables)
        for name, variables in beside.of_groups.items():
            self.groups[name].variables += variables

    def finish(self) -> Inventory:
        """Return the inventory. Variables of groups that are further from ``all`` are stronger."""
        members = self._members()
        depths = self._depths()
        positions: dict[str, int] = {}
        hosts: dict[str, Host] = {}
        for name, host in self.hosts.items():
            positions[name] = len(positions)
            hosts[name] = Host(host.node)
        groups: dict[str, tuple[str, ...]] = {}
        weakest_first = sorted(self.groups, key=lambda group: (depths[group], group))
        for name in weakest_first:
            group = self.groups[name]
            groups[name] = tuple(sorted(members[name], key=positions.__getitem__))
            for member in groups[name]:
                hosts[member].variables.extend(group.variables)
        for name, host in self.hosts.items():
            hosts[name].variables.extend(host.variables)
        warnings = tuple(dict.fromkeys(self.warnings))
        of_all = tuple(self.groups["all"].variables)
        return Inventory(hosts, groups, warnings=warnings, of_all=of_all)

    def _members(self) -> dict[str, set[str]]:
        """Return the hosts of each group, also those of its children."""
        members: dict[str, set[str]] = {}
        for name in self.children_first:
            group = self.groups[name]
            members[name] = set(group.hosts).union(*map(members.__getitem__, group.children))
        members["all"].update(self.hosts)
        return members

    def _depths(self) -> dict[str, int]:
        """Return how far each group is from ``all``, on the longest way."""
        depths = dict.fromkeys(self.groups, 1) | {"all": 0}
        for name in reversed(self.children_first):
            for child in self.groups[name].children:
                depths[child] = max(depths[child], depths[name] + 1)
        return depths


class VarsFolders(Struct):
    """The variables in ``group_vars/`` and ``host_vars/`` of a folder, by group and by host."""

    of_groups: dict[str, list[Variable]] = {}
    of_hosts: dict[str, list[Variable]] = {}
    warnings: list[str] = []


def folder_of(path: str) -> Path:
    """Return the folder of an inventory, which may be a folder itself."""
    return Path(path) if is_folder(path) else Path(path).parent


def read_vars_folders(
    folder: Path, hosts: Collection[str], groups: Collection[str], files: Files
) -> VarsFolders:
    """Read ``group_vars/`` and ``host_vars/`` of a folder; raises :class:`InputError` with all problems."""
    beside = VarsFolders()
    problems = Problems()
    for kind, name, file in vars_files_of(folder):
        is_of_host = kind == "host_vars"
        known = hosts if is_of_host else groups
        if Path(file).suffix not in _VARS_ENDINGS and name not in known:
            continue  # the name of a file may have a dot because that of its host has one
        with problems:
            files.check_inside(file, folder)
            document = files.document(file)
            if name not in known:
                hint = nearest(name, known)
                what = kind.removesuffix("_vars")
                warning = f"{document.file}: unknown {what} {name!r}"
                if hint:
                    warning += f" ({hint})"
                beside.warnings.append(warning)
            elif is_of_host:
                read = _variables_in(document, Level.HOST_VARS)
                beside.of_hosts.setdefault(name, []).extend(read)
            else:
                level = Level.GROUP_VARS_ALL if name == "all" else Level.GROUP_VARS
                read = _variables_in(document, level)
                beside.of_groups.setdefault(name, []).extend(read)
    problems.check()
    return beside


def _variables_in(document: Document, level: Level) -> list[Variable]:
    return read_variables(document.data, level, SourceNode(document))


def vars_files_of(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and path of the files in ``group_vars/`` and ``host_vars/``, as Ansible does.

    They are ``x``, ``x.yml``, ``x.yaml`` or ``x.json``, or such files in folders ``x/`` and below, unless hidden.
    """
    for kind in VARS_FOLDERS:
        for path in _files_below(folder / kind):
            parts = path.relative_to(folder / kind).parts
            has_ending = path.suffix in _VARS_ENDINGS
            if len(parts) == 1 and has_ending:
                yield kind, path.stem, str(path)
            elif len(parts) == 1 or has_ending:
                yield kind, parts[0], str(path)


def _files_below(folder: Path) -> list[Path]:
    """Return the files in a folder and below, sorted; raises :class:`InputError` where this user may not look."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, NotADirectoryError):
            raise folder_not_read(error.filename, error) from error

    if not may_be_there(folder):
        return []
    return files_below(folder, _is_read, refuse)


def _is_read(name: str) -> bool:
    return not (name.startswith(".") or name.endswith("~"))


_RESERVED = re.compile(r"[\s,:&!*?\[\]{}]")


def _check_host_name(name: str, node: SourceNode) -> None:
    if not name or _RESERVED.search(name):
        why = f"{name!r} is not a valid name of a host or group"
        raise node.error(why, "use no spaces and none of , : & ! * ? [ ]", key=True, kind="host")


# Host patterns ---------------------------------------------------------------------------------------------------

_PART = re.compile(r"(?:\[[^\[\]]*+\]|[^,:])+")
"""A part of a pattern, which may contain commas and colons in brackets."""


def match_hosts(
    pattern: str, inventory: Inventory, node: SourceNode, read: Callable[[str], bytes] | None = None
) -> list[str]:
    """Return the hosts that a pattern matches, in the order of the inventory; raises :class:`InputError`.

    Hosts, groups and globs: ``a:b`` or ``a,b`` (union), ``a:&b`` (intersection), ``a:!b`` (difference). As in Ansible,
    unions come first, then ``&``, then ``!``, in any order of the parts. ``read`` returns the content of a file that is
    given as ``@file``, with a pattern in each line.
    """
    parts = list(filter(None, map(str.strip, _PART.findall(pattern))))
    if not parts:
        raise node.error("the host pattern is empty", "write all, a host, or a group", kind="host")
    united = [part for part in parts if part[0] not in "&!"]
    chosen = set() if united else set(inventory.hosts)
    for part in united:
        chosen |= _hosts_called(part, inventory, node, read)
    for part in parts:
        if part[0] == "&":
            chosen &= _hosts_called(part[1:], inventory, node, read)
        elif part[0] == "!":
            chosen -= _hosts_called(part[1:], inventory, node, read)
    if not chosen:
        remedy = nearest("", [*inventory.hosts, *inventory.groups])
        raise node.error(f"the pattern {pattern!r} matches no host", remedy, kind="host")
    return [host for host in inventory.hosts if host in chosen]


def _hosts_of_file(
    file: str, read: Callable[[str], bytes], inventory: Inventory, node: SourceNode
) -> set[str]:
    """Return the hosts of the patterns in a file; what follows ``#`` in a line is a comment."""
    hosts: set[str] = set()
    for line in read(file).decode("utf-8-sig", "replace").splitlines():
        pattern = line.partition("#")[0].strip()
        if pattern:
            hosts.update(match_hosts(pattern, inventory, node))
    if not hosts:
        remedy = "write one host, group or glob in each line"
        raise node.error(f"the file {file} contains no host", remedy, kind="host")
    return hosts


def _hosts_called(
    name: str, inventory: Inventory, node: SourceNode, read: Callable[[str], bytes] | None
) -> set[str]:
    """Return the hosts of a name, a glob or a file; ``a*`` does not match the group all."""
    if read is not None and name.startswith("@"):
        return _hosts_of_file(name[1:], read, inventory, node)
    if name in inventory.groups:
        return set(inventory.groups[name])
    if name in inventory.hosts:
        return {name}
    names = [*inventory.hosts, *inventory.groups]
    if not any(sign in name for sign in "*?["):
        raise node.error(f"unknown host or group {name!r}", nearest(name, names), kind="host")
    matches = {host for host in inventory.hosts if fnmatchcase(host, name)}
    for group, members in inventory.groups.items():
        is_meant = group != "all" or name == "*"
        if is_meant and fnmatchcase(group, name):
            matches.update(members)
    if not matches:
        raise node.error(f"{name!r} matches no host or group", nearest("", names), kind="host")
    return matches
