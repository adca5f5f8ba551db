"""Variables: where they are set, and which one wins: Ansible's order (inventory, «Variables»)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from msauto.documents.document import Document, Problems, SourceNode, as_written
from msauto.documents.value_types import is_marked
from msauto.errors import InputError, Problem
from msauto.playbook.input_files import Files, LookupContext
from msauto.playbook.templates.names import AssetView, EnvView, NoText, mark_text
from msauto.playbook.templates.rendering import render_data
from msauto.secrets.sources import TAG, MarkedText, holds_secret, leaves


class Level(IntEnum):
    """Where a variable is set, weakest first. Within one level the later wins."""

    description: str

    def __new__(cls, value: int, description: str) -> Level:
        """Return the level with its description for ``msauto vars``."""
        level = int.__new__(cls, value)
        level._value_ = value
        level.description = description
        return level

    ROLE_DEFAULTS = 1, "defaults of the role"
    INVENTORY_GROUP = 2, "inventory group vars"
    GROUP_VARS_ALL = 3, "group_vars/all"
    GROUP_VARS = 4, "group_vars"
    INVENTORY_HOST = 5, "inventory host vars"
    HOST_VARS = 6, "host_vars"
    PLAY = 7, "play vars"
    VARS_FILES = 8, "vars_files"
    PLAY_KEY = 9, "the play's database"
    ROLE_VARS = 10, "vars of the role"
    BLOCK = 11, "block vars"
    TASK = 12, "task vars"
    LOOP = 13, "loop"
    EXTRA = 14, "-e"


GIVEN: Mapping[str, tuple[str, str]] = {
    "asset": ("the facts of the asset of the task", "{{ asset.frames }}"),
    "env": ("the environment of msauto", "{{ env.HOME | default('') }}"),
    "group_names": ("the names of the groups of the host, except all", "{{ group_names }}"),
    "groups": ("the hosts of each group", "{{ groups.all }}"),
    "hostvars": ("the variables of each host", "{{ hostvars[inventory_hostname].database }}"),
    "inventory_hostname": ("the name of the host", "{{ inventory_hostname }}"),
    "now": ("the start of the run, in UTC", "{{ now.date() }}"),
    "omit": ("removes the key", "{{ comment | default(omit) }}"),
    "playbook_dir": ("the folder of the playbook, as an absolute path", "{{ playbook_dir }}"),
}
"""Names that msauto sets for templates: description and example."""

OWN = frozenset({*GIVEN, "lookup"})
"""Names that no variable may have."""
_KEYWORDS = frozenset({
    "and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None",
    "range", "dict", "namespace", "loop", "self",
})  # fmt: skip


class Variable(Struct, frozen=True):
    """A variable as it is set: ``value`` is plain data with unrendered templates."""

    name: str
    value: Any
    level: Level
    node: SourceNode


_SET_IN_DATA = (
    "set it in `vars` or `extra_vars`: an inventory that is data has no group_vars beside it"
)
_SET_FOR_URL = "set it with -e, or take the variables of an inventory: -i FILE beside --server"
_SOPS = 'declare in msauto.toml: [secrets] NAME = {command = ["sops", "decrypt", …]}, and write !secret {name: NAME}'


def read_variables(data: Any, level: Level, node: SourceNode) -> list[Variable]:
    """Return the variables of a mapping; raises :class:`InputError` for invalid names."""
    if data is None:
        return []
    if not isinstance(data, dict):
        raise node.error(
            "variables must be a mapping of names to values", "write NAME: VALUE, one a line"
        )
    problems = Problems()
    variables: list[Variable] = []
    for name, value in data.items():
        variable = Variable(name, value, level, node.child(name))
        variables.append(variable)
        problems += name_problems(name, variable.node)
    for path, value in leaves(data, str):
        if value.startswith("ENC[AES256_GCM,"):
            why = "the value is encrypted with SOPS"
            problems.append(node.child(*path).problem(why, _SOPS, kind="secret"))
    problems.check()
    return variables


def name_problems(name: str, node: SourceNode) -> list[Problem]:
    """Return the problem of a name that templates cannot use, or that msauto sets."""
    why, remedy = f"{name!r} is not a valid name of a variable", "use letters, digits and _ only"
    if name in OWN | _KEYWORDS:
        reason = "set by msauto" if name in OWN else "a keyword of templates"
        why, remedy = f"{name!r} is {reason}", "give the variable another name"
    elif name.isidentifier():
        return []
    return [node.problem(why, remedy, key=True, kind="variable")]


class Variables:
    """The variables of one place in a playbook. Immutable."""

    __slots__ = ("every", "secret", "winners")

    def __init__(self, variables: Sequence[Variable] = (), base: Variables | None = None) -> None:
        others = base.every if base else ()
        self.every: tuple[Variable, ...] = tuple(
            sorted((*others, *variables), key=attrgetter("level"))
        )
        self.winners = {variable.name: variable for variable in self.every}
        """The variable of each name that wins."""
        marked = set(base.secret if base else ())
        for variable in variables:
            if is_marked(variable.value):
                marked.add(variable.name)
        self.secret: frozenset[str] = frozenset(marked)
        """Names that are marked as secret at any place: their value is secret wherever it is set, also by ``-e``."""

    def all_of(self, name: str) -> tuple[Variable, ...]:
        """Return all variables of a name, the winner first: for ``msauto vars``."""
        return tuple(variable for variable in reversed(self.every) if variable.name == name)


class TemplateScope:
    """The names that a template can use; a variable is rendered when it is used, and only once."""

    __slots__ = (
        "_busy",
        "_done",
        "_failed",
        "_given",
        "_unmarked",
        "surroundings",
        "tracker",
        "variables",
    )

    def __init__(
        self, variables: Variables, given: Mapping[str, Any], surroundings: LookupContext
    ) -> None:
        self.variables = variables
        self.surroundings = surroundings
        self.tracker = surroundings.files.tracker
        self._given = given
        self._done: dict[str, Any] = {}
        # Rendered once as well: a chain of variables may double.
        self._failed: dict[str, InputError] = {}
        self._busy: list[str] = []
        # Variables that were made with a secret and cannot be marked.
        self._unmarked: set[str] = set()

    def with_given(self, *, asset: AssetView) -> TemplateScope:
        """Return the same names for another asset."""
        return TemplateScope(self.variables, {**self._given, "asset": asset}, self.surroundings)

    def offline(self) -> TemplateScope:
        """Return the same names before anything is started or sent: secrets and the environment need not be set."""
        surroundings = structs.replace(
            self.surroundings, secrets=self.surroundings.secrets.offline()
        )
        env = EnvView(surroundings.env, lenient=True)
        return TemplateScope(self.variables, {**self._given, "env": env}, surroundings)

    def with_variables(self, more: Sequence[Variable], role: str = "") -> TemplateScope:
        """Return the same names and other variables; with the folder of a role, lookups look in its files first."""
        if not more and not role:
            return self
        surroundings = self.surroundings
        if role and surroundings.first != Path(role, "files"):
            surroundings = structs.replace(surroundings, first=Path(role, "files"))
        return TemplateScope(Variables(more, self.variables), self._given, surroundings)

    def __contains__(self, name: object) -> bool:
        if name in self._given or name != "server":
            return name in self._given or name in self.variables.winners
        # The `server:` block holds secrets, so templates cannot use it.
        variable = self.variables.winners.get("server")
        return variable is not None and variable.level > Level.HOST_VARS

    def __getitem__(self, name: str) -> Any:
        if name in self._given:
            return self._given[name]
        variable = self.variables.winners.get(name)
        if variable is None or (name == "server" and name not in self):
            raise KeyError(name)
        if name in self._failed:
            raise self._failed[name]
        if name not in self._done:
            try:
                self._done[name] = self._render(name, variable)
            except InputError as error:
                self._failed[name] = error
                raise
        if name in self._unmarked:
            self.tracker.touched = True
        return self._done[name]

    def headers_of(self, row: object) -> str:
        """Return the places of the headers of CSV files whose columns a row has; empty without one."""
        if not isinstance(row, dict):
            return ""
        return " and ".join(self.surroundings.files.headers.get(tuple(row), ()))

    def known(self) -> Iterable[str]:
        """Return all names that an error may suggest."""
        return {
            name
            for name in (*self._given, *self.variables.winners)
            if name in self and name != "omit"
        }

    @property
    def where_to_set(self) -> str:
        """Where a name can be set if the server is of no file: it is data, or the URL of ``--server``."""
        server = self.variables.winners.get("server")
        if server and server.node.document.is_data:
            return _SET_IN_DATA
        if server and server.node.document.file == "--server":
            return _SET_FOR_URL
        return ""

    def _render(self, name: str, variable: Variable) -> Any:
        if name in self._busy:
            chain = " → ".join([*self._busy[self._busy.index(name) :], name])
            remedy = "give one of them a value without the others"
            raise variable.node.error(
                f"the variable refers to itself: {chain}", remedy, kind="variable"
            )
        self._busy.append(name)
        tracker = self.tracker
        lost = len(tracker.lost)
        try:
            value = render_data(variable.value, self, variable.node)
            if name not in self.variables.secret or holds_secret(value):
                return value
            return mark_text(value, tracker, variable.node)
        finally:
            self._busy.pop()
            if len(tracker.lost) > lost:
                self._unmarked.add(name)
                del tracker.lost[lost:]


class HostVars(NoText, Mapping[str, Any]):
    """The variables of one host in ``hostvars``, rendered in the scope of that host."""

    __slots__ = ("_scope",)

    def __init__(self, scope: TemplateScope) -> None:
        self._scope = scope

    def __getitem__(self, name: str) -> Any:
        if name not in self._scope.variables.winners or name not in self._scope:
            raise KeyError(name)
        value = self._scope[name]
        if not isinstance(value, MarkedText) and holds_secret(value):
            self._scope.tracker.touched = True  # a secret that is taken out of it cannot be tracked
        return value

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._scope.variables.winners if name in self._scope)

    def __len__(self) -> int:
        return sum(1 for _ in self)


# Variables of the command line ------------------------------------------------------------------------------------

_PAIR = re.compile(r"\s*([^\s=]+)=('[^']*'|\"[^\"]*\"|(?:(?!(?<!\s)\s++\w++=).)*)", re.DOTALL)


def read_extra(text: str, files: Files) -> list[Variable]:
    """Return the variables of one ``-e``: ``k=v``, ``@file``, or a mapping as YAML or JSON.

    Raises :class:`InputError`.
    """
    if text.startswith("@"):
        document = files.document(text[1:])
        return read_variables(document.data, Level.EXTRA, SourceNode(document))
    if re.match(r"\s*\w+=", text):
        data: dict[str, str] = {}
        node = SourceNode(Document("-e", data, {(): (1, 1)}))
        # As in Ansible, values are text, and quotes may contain spaces.
        for name, value in _PAIR.findall(text):
            if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
                value = value[1:-1]
            data[name] = as_written(value)
            if value.startswith(TAG):
                why = f"the value of {name} is text here, so {TAG} would be part of it, and shown"
                raise node.error(
                    why, f"-e @FILE, with a line `{name}: {TAG} ...` in the file", kind="secret"
                )
        return read_variables(data, Level.EXTRA, node)
    # It brings the parser of YAML, which the reference does not need.
    from msauto.documents.loader import load_yaml

    document = load_yaml(text.encode("utf-8", "surrogateescape"), "-e")
    files.tracker.add_tagged(document.data)
    node = SourceNode(document)
    if not isinstance(document.data, dict):
        raise node.error(
            "-e needs name=value, @file or a mapping", "-e episode=News", kind="variable"
        )
    return read_variables(document.data, Level.EXTRA, node)
