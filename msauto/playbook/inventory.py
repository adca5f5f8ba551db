"""Inventories as in Ansible: hosts, groups and their variables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from msauto.documents.document import Document, Problems, SourceNode
from msauto.documents.value_types import mark
from msauto.errors import nearest
from msauto.playbook.file_kinds import VARS_FOLDERS, check_kind
from msauto.playbook.input_files import Files
from msauto.playbook.schema.inventory import InventoryArgs as InventoryFile
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.variables import Level, Variable, read_variables

_ENDINGS = (".yml", ".yaml")
_VARS_ENDINGS = (*_ENDINGS, ".json", "")


class _Group(Struct):
    """A group while it is read: its own hosts, groups and variables."""

    node: SourceNode
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)


class Host(Struct, frozen=True):
    """A host is a media server; ``variables`` are its definitions in the inventory, weakest first."""

    node: SourceNode
    variables: tuple[Variable, ...] = ()


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
        for file in [path] if path in files.given else inventory_files(path):
            with problems.gather():
                if file != path:
                    files.check_inside(file, Path(path))
                builder.add(files.flawed(file))
    problems.check()
    with problems.gather():
        builder.order_groups()
    for path in (each for each in paths if each not in files.given):
        with problems.gather():
            builder.add_vars_folders(path, files)
    problems.check()
    return builder.finish()


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
        self.host_variables = defaultdict[str, list[Variable]](list)
        self.group_variables = defaultdict[str, list[Variable]](list)  # of `group_vars/`
        self.warnings: list[str] = []
        self.children_first: list[str] = []

    def add(self, document: Document) -> None:
        """Read one file. Of its flaws, only those that leave a value unknown are raised."""
        node = SourceNode(document)
        data = mark(document.data if document.data is not None else {})
        check_kind(document, "inventory")
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
        group = self.groups.setdefault(name, _Group(node))
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

    def order_groups(self) -> None:
        """Note the order of the groups, children first; raises :class:`InputError` for a group that contains itself."""
        self.groups.setdefault("all", _Group(SourceNode(Document("inventory"))))
        graph = {name: group.children for name, group in self.groups.items()}
        try:
            self.children_first += TopologicalSorter(graph).static_order()
        except CycleError as error:
            cycle: list[str] = error.args[1][-2::-1]  # parents first, without the repeated one
            first = cycle.index(next(name for name in self.groups if name in cycle))
            names = [*cycle[first:], *cycle[:first], cycle[first]]
            message = f"the group contains itself: {' → '.join(names)}"
            raise self.groups[names[0]].node.error(
                message, "remove one of them from `children`", key=True, kind="host"
            ) from None

    def add_vars_folders(self, path: str, files: Files) -> None:
        """Read ``group_vars/`` and ``host_vars/`` beside an inventory."""
        folder = Path(path) if Path(path).is_dir() else Path(path).parent
        problems = Problems()
        for kind, name, file in vars_files_of(folder):
            of_host = kind == "host_vars"
            known: Iterable[str] = self.hosts if of_host else self.groups
            if Path(file).suffix not in _VARS_ENDINGS and name not in known:
                continue  # the name of a file may have a dot because that of its host has one
            with problems.gather():
                files.check_inside(file, folder)
                document = files.document(file)
                if name in known:
                    level = Level.HOST_VARS if of_host else Level.GROUP_VARS_ALL if name == "all" else Level.GROUP_VARS
                    variables = self.host_variables if of_host else self.group_variables
                    variables[name] += read_variables(
                        {} if document.data is None else document.data, level, SourceNode(document)
                    )
                    continue
                hint = nearest(name, known)
                unknown = f"{document.file}: unknown {'host' if of_host else 'group'} {name!r}"
                self.warnings.append(unknown + (f" ({hint})" if hint else ""))
        problems.check()

    def finish(self) -> Inventory:
        """Return the inventory. Variables of groups that are further from ``all`` are stronger."""
        members: dict[str, set[str]] = {}
        for name in self.children_first:
            group = self.groups[name]
            members[name] = set(group.hosts).union(*(members[child] for child in group.children))
        members["all"].update(self.hosts)
        depth = dict.fromkeys(self.groups, 1) | {"all": 0}
        for name in reversed(self.children_first):
            for child in self.groups[name].children:
                depth[child] = max(depth[child], depth[name] + 1)
        ordered = sorted(self.groups, key=lambda name: (depth[name], name))
        positions = {name: position for position, name in enumerate(self.hosts)}
        groups = {name: tuple(sorted(members[name], key=positions.__getitem__)) for name in ordered}
        variables: dict[str, list[Variable]] = {name: [] for name in self.hosts}
        for around, hosts_of_group in groups.items():
            of_group = (*self.groups[around].variables, *self.group_variables[around])
            for name in hosts_of_group:
                variables[name] += of_group
        hosts = {name: Host(node, (*variables[name], *self.host_variables[name])) for name, node in self.hosts.items()}
        of_all = (*self.groups["all"].variables, *self.group_variables["all"])
        return Inventory(hosts, groups, warnings=tuple(dict.fromkeys(self.warnings)), of_all=of_all)


def vars_files_of(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield kind, name and path of the files in ``group_vars/`` and ``host_vars/``, as Ansible does.

    They are ``x``, ``x.yml``, ``x.yaml`` or ``x.json``, or such files in folders ``x/`` and below, unless hidden.
    """
    for kind in VARS_FOLDERS:
        for path in sorted((folder / kind).rglob("*")):
            entry, *below = path.relative_to(folder / kind).parts
            if not path.is_file() or any(part.startswith(".") or part.endswith("~") for part in (entry, *below)):
                continue
            if not below:
                yield kind, path.stem if path.suffix in _VARS_ENDINGS else path.name, str(path)
            elif path.suffix in _VARS_ENDINGS:
                yield kind, entry, str(path)


def _check_host_name(name: str, node: SourceNode) -> None:
    if not name.strip() or any(sign in name for sign in ",:&!*?[]{}") or any(sign.isspace() for sign in name):
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
    parts = [part.strip() for part in _PART.findall(pattern) if part.strip()]
    if not parts:
        raise node.error("the host pattern is empty", "write all, a host, or a group", kind="host")

    def hosts_of(name: str) -> set[str]:
        if read is not None and name.startswith("@"):
            lines = read(name[1:]).decode("utf-8-sig", "replace").splitlines()
            named = [line for each in lines if (line := each.partition("#")[0].strip())]
            if not named:
                remedy = "write one host, group or glob in each line"
                raise node.error(f"the file {name[1:]} contains no host", remedy, kind="host")
            return {host for line in named for host in match_hosts(line, inventory, node)}
        return _hosts_called(name, inventory, node)

    united = [part for part in parts if part[0] not in "&!"]
    chosen = {host for part in united for host in hosts_of(part)} if united else set(inventory.hosts)
    for part in parts:
        if part[0] == "&":
            chosen &= hosts_of(part[1:])
        elif part[0] == "!":
            chosen -= hosts_of(part[1:])
    if not chosen:
        remedy = nearest("", [*inventory.hosts, *inventory.groups])
        raise node.error(f"the pattern {pattern!r} matches no host", remedy, kind="host")
    return [host for host in inventory.hosts if host in chosen]


def _hosts_called(name: str, inventory: Inventory, node: SourceNode) -> set[str]:
    """Return the hosts of a name or glob; ``a*`` does not match the group all."""
    if name in inventory.groups or name in inventory.hosts:
        return set(inventory.groups.get(name, (name,)))
    names = [*inventory.hosts, *inventory.groups]
    if not any(sign in name for sign in "*?["):
        raise node.error(f"unknown host or group {name!r}", nearest(name, names), kind="host")
    matches = {host for host in inventory.hosts if fnmatchcase(host, name)}
    for group, members in inventory.groups.items():
        if fnmatchcase(group, name) and (group != "all" or name == "*"):
            matches.update(members)
    if not matches:
        raise node.error(f"{name!r} matches no host or group", nearest("", names), kind="host")
    return matches
