"""Inventories in Ansible's shape: hosts, groups, and what they say of variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msauto.playbook.files import Files
from msauto.playbook.schema.inventory import InventoryArgs as InventoryFile
from msauto.playbook.schema.validation import read_as
from msauto.playbook.schema.values import mark
from msauto.playbook.variables.variables import Level, Variable, read_variables
from msauto.playbook.yaml.document import Document, Problems, SourceNode, nearest

_VARS_FOLDERS = ("group_vars", "host_vars")
_ENDINGS = (".yml", ".yaml")
_VARS_ENDINGS = (*_ENDINGS, ".json", "")


@dataclass(slots=True)
class GroupBuilder:
    """A group while it is read: its own hosts and groups, and what its vars say."""

    name: str
    node: SourceNode
    hosts: dict[str, None] = field(default_factory=dict)
    children: dict[str, None] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Host:
    """A host: a media server, with all that the inventory says of it, weakest first."""

    name: str
    node: SourceNode
    variables: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """Hosts in the order of the files, and groups with all their hosts, those of their children too.

    ``single`` is the inventory of ``--server``: whatever a play says under ``hosts``, it means that server.
    """

    hosts: Mapping[str, Host]
    groups: Mapping[str, tuple[str, ...]]
    single: bool = False
    warnings: tuple[str, ...] = ()


def load_inventory(paths: Sequence[str], files: Files, flaws: Problems | None = None) -> Inventory:
    """Read inventories, the later over the earlier; raises :class:`InputError` with all that is wrong.

    ``flaws``, where given, takes what is wrong with the texts alone, and leaves every value known.
    """
    problems = Problems()
    told = problems if flaws is None else flaws
    tree = _Tree()
    for path in paths:
        for file in inventory_files(path):
            with problems.gather():
                document = files.flawed(file)
                told.add(*document.flaws)
                tree.add(document)
    problems.check()
    with problems.gather():
        tree.check_loops()
    for path in paths:
        with problems.gather():
            tree.add_vars_folders(path, files, told)
    problems.check()
    return tree.finish()


def inventory_files(path: str) -> list[str]:
    """Return the inventory files that a path means: itself, or the YAML files of a folder."""
    folder = Path(path)
    if not folder.is_dir():
        return [path]
    return [str(each) for each in sorted(folder.iterdir()) if each.suffix in _ENDINGS and not each.name.startswith(".")]


class _Tree:
    """Groups as they are read, from several files."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupBuilder] = {}
        self.hosts: dict[str, SourceNode] = {}
        self.host_variables: dict[str, list[Variable]] = {}
        self.extra: dict[str, list[Variable]] = {}
        self.warnings: list[str] = []

    def add(self, document: Document) -> None:
        """Read one file; its flaws are told by whoever calls, and raised here too where they leave a value unknown."""
        node = SourceNode(document)
        data = mark(document.data if document.data is not None else {})
        if isinstance(data, list):
            raise node.error("this is a playbook, not an inventory", "an inventory begins with all:")
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
        group = self.groups.setdefault(name, GroupBuilder(name, node))
        group.variables += read_variables(body.get("vars"), Level.INVENTORY_GROUP, node.child("vars"))
        for host, values in (body.get("hosts") or {}).items():
            self._host(host, values, node.child("hosts", host))
            group.hosts[host] = None
        for child, inner in (body.get("children") or {}).items():
            self._group(child, inner or {}, node.child("children", child))
            group.children[child] = None

    def _host(self, name: str, values: Any, node: SourceNode) -> None:
        _check_host_name(name, node)
        self.hosts.setdefault(name, node)
        found = read_variables(values, Level.INVENTORY_HOST, node)
        self.host_variables.setdefault(name, []).extend(found)

    def check_loops(self) -> None:
        """Raise for a group that is, by its children, in itself."""
        sound: set[str] = set()
        for name in self.groups:
            self._descend(name, (), sound)

    def _descend(self, name: str, above: tuple[str, ...], sound: set[str]) -> None:
        if name in above:
            chain = " → ".join([*above[above.index(name) :], name])
            raise self.groups[name].node.error(f"the group is in itself: {chain}", key=True)
        if name not in sound:
            for child in self.groups[name].children:
                self._descend(child, (*above, name), sound)
            sound.add(name)

    def add_vars_folders(self, path: str, files: Files, told: Problems) -> None:
        """Read ``group_vars/`` and ``host_vars/`` beside an inventory."""
        folder = Path(path) if Path(path).is_dir() else Path(path).parent
        problems = Problems()
        for kind, name, file in vars_files_of(folder):
            known = self.hosts if kind == "host_vars" else self.groups
            if Path(file).suffix not in _VARS_ENDINGS and name not in known:
                continue  # a file without an ending may be called a.b as its host is; any other is none of variables
            with problems.gather():
                self._vars_file(kind, name, files.document(file, told))
        problems.check()

    def _vars_file(self, kind: str, name: str, document: Document) -> None:
        node = SourceNode(document)
        if kind == "host_vars":
            if name not in self.hosts:
                self._warn(document.file, "host", name, self.hosts)
            else:
                self.host_variables.setdefault(name, []).extend(_file_variables(document, Level.HOST_VARS, node))
            return
        level = Level.GROUP_VARS_ALL if name == "all" else Level.GROUP_VARS
        found = _file_variables(document, level, node)
        if name in self.groups or name == "all":
            self.extra.setdefault(name, []).extend(found)
        else:
            self._warn(document.file, "group", name, self.groups)

    def _warn(self, file: str, kind: str, name: str, known: Iterable[str]) -> None:
        hint = nearest(name, known)
        self.warnings.append(f"{file}: there is no {kind} {name!r}" + (f" ({hint})" if hint else ""))

    def finish(self) -> Inventory:
        """Return the inventory: for each host its variables, weakest first."""
        everybody = self.groups.setdefault("all", GroupBuilder("all", SourceNode(Document("inventory"))))
        everybody.hosts.update(dict.fromkeys(self.hosts))
        depth = self._depths()
        members: dict[str, set[str]] = {}
        for name in self.groups:
            self._gather_members(name, members)
        ordered = sorted(self.groups, key=lambda name: (depth[name], name))
        hosts = {
            name: Host(name, node, tuple(self._variables(name, [each for each in ordered if name in members[each]])))
            for name, node in self.hosts.items()
        }
        groups = {name: tuple(host for host in self.hosts if host in members[name]) for name in ordered}
        return Inventory(hosts, groups, warnings=tuple(dict.fromkeys(self.warnings)))

    def _variables(self, host: str, groups: Sequence[str]) -> Iterable[Variable]:
        for source in ({name: each.variables for name, each in self.groups.items()}, self.extra):
            for group in groups:
                yield from source.get(group, ())
        yield from self.host_variables.get(host, ())

    def _depths(self) -> dict[str, int]:
        """How far a group is from ``all``: the deeper is the stronger."""
        depth = dict.fromkeys(self.groups, 1) | {"all": 0}
        moved = True
        while moved:
            moved = False
            for name, group in self.groups.items():
                for child in group.children:
                    if depth[child] <= depth[name]:
                        depth[child], moved = depth[name] + 1, True
        return depth

    def _gather_members(self, name: str, members: dict[str, set[str]]) -> set[str]:
        if name not in members:
            group = self.groups[name]
            inner = [self._gather_members(child, members) for child in group.children]
            members[name] = set(group.hosts).union(*inner)
        return members[name]


def vars_files_of(folder: Path) -> Iterable[tuple[str, str, str]]:
    """Yield kind, name and path of the files in ``group_vars/`` and ``host_vars/``, as Ansible reads them.

    ``x``, ``x.yml``, ``x.yaml`` or ``x.json``, or such files in folders ``x/`` and below; hidden ones are not read.
    """
    for kind in _VARS_FOLDERS:
        if not (folder / kind).is_dir():
            continue
        for entry in sorted((folder / kind).iterdir()):
            if entry.is_dir() and not _is_ignored(entry):
                yield from ((kind, entry.name, str(each)) for each in _files_below(entry))
            elif entry.is_file() and not _is_ignored(entry):
                yield kind, entry.stem if entry.suffix in _VARS_ENDINGS else entry.name, str(entry)


def _files_below(folder: Path) -> Iterable[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_dir() and not _is_ignored(entry):
            yield from _files_below(entry)
        elif _holds_variables(entry):
            yield entry


def _holds_variables(entry: Path) -> bool:
    return entry.is_file() and entry.suffix in _VARS_ENDINGS and not _is_ignored(entry)


def _is_ignored(entry: Path) -> bool:
    return entry.name.startswith(".") or entry.name.endswith("~")


def _file_variables(document: Document, level: Level, node: SourceNode) -> list[Variable]:
    return read_variables(document.data or {}, level, node)


def _check_host_name(name: str, node: SourceNode) -> None:
    if not name.strip() or any(sign in name for sign in ",:&!*?[]{}") or any(sign.isspace() for sign in name):
        raise node.error(
            f"{name!r} cannot be the name of a host or group", "no spaces, and none of , : & ! * ? [ ]", key=True
        )
