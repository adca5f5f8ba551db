"""Loads playbook files as plays and tasks: validates them, follows imports and flattens blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from msauto.documents.document import (
    Document,
    MarkedTemplate,
    SourceNode,
    SourceText,
    UnrenderedTemplate,
)
from msauto.documents.document import Path as DataPath
from msauto.documents.strict_model import Model
from msauto.documents.value_types import has_pending
from msauto.errors import InputError, Problem, nearest
from msauto.model.desired import OutsidePolicy
from msauto.playbook.file_kinds import FileKind, check_kind
from msauto.playbook.input_files import Files, beside
from msauto.playbook.roles import find_role, main_file, role_places, role_variables
from msauto.playbook.schema.play import (
    GROUPS,
    HANDLER_MODULES,
    MODULES,
    HandlerFile,
    Playbook,
    TaskFile,
    aspects_of,
)
from msauto.playbook.schema.schema_errors import validate_data
from msauto.playbook.templates.rendering import check_template
from msauto.playbook.variables import Level, Variable, read_variables
from msauto.secrets.sources import ALLOWED, NOT_ALLOWED, MarkedText, leaves, may_be_secret
from msauto.secrets.sources import DataPath as SecretPath


class InheritedKeys(Struct, frozen=True):
    """The keys that tasks inherit from their play, block, import or role, with their own.

    ``files`` lead from the playbook to the task. ``loop`` is the innermost one. ``role`` is the folder of the innermost
    role, and ``handlers`` are those of its import, by name: their numbers in the play.
    """

    conditions: tuple[SourceText, ...] = ()
    tags: frozenset[str] = frozenset()
    variables: tuple[Variable, ...] = ()
    files: tuple[str, ...] = ()
    loop: Loop | None = None
    role: str = ""
    handlers: Mapping[str, int] = {}
    notify: tuple[SourceText, ...] = ()
    outside: OutsidePolicy | UnsetType = UNSET


class Loop(Struct, frozen=True):
    """A loop of a task, or of what holds tasks: ``data`` is its mapping.

    ``around`` are the keys that hold for the loop itself. ``number`` counts loops and tasks of a playbook.
    """

    node: SourceNode
    data: dict[str, Any]
    around: InheritedKeys
    number: int

    @property
    def control(self) -> dict[str, Any]:
        """The names of its variables, and its label."""
        control = self.data.get("loop_control")
        return control if isinstance(control, dict) else {}

    def variables(self) -> Iterator[tuple[str, SourceNode]]:
        """Yield the names of its variables, that of the item first, each with its place."""
        for key, default in (("loop_var", "item"), ("index_var", None)):
            name = self.control.get(key, default)
            if name is None:
                continue
            path = ("loop_control", key) if key in self.control else ("loop",)
            yield str(name), self.node.child(*path)


_NOTHING = InheritedKeys()


class Task(Struct, frozen=True):
    """A task of a module: ``data`` is the whole mapping with its templates unrendered.

    ``args`` are the arguments of the module. Those with templates are validated again once they are rendered.
    ``that`` are the conditions of an ``assert``, ``where`` those of a selection. ``number`` counts tasks and loops.
    """

    node: SourceNode
    module: str
    data: dict[str, Any]
    inherited: InheritedKeys
    args: Model
    is_templated: bool
    """Whether the arguments have templates."""
    that: tuple[SourceText, ...] = ()
    where: tuple[SourceText, ...] = ()
    number: int = 0

    @property
    def name(self) -> str:
        """The name as it is written; empty without one."""
        return str(self.data.get("name") or "")


class Play(Struct, frozen=True):
    """A play: ``data`` is its mapping with its templates unrendered, ``file`` the playbook that holds it.

    ``notified`` are all names under ``notify``, also of invalid tasks and of imported ones. ``handler_names`` are those
    of all handlers, also of invalid ones and of roles.
    """

    node: SourceNode
    file: str
    data: dict[str, Any]
    inherited: InheritedKeys
    tasks: tuple[Task, ...]
    handlers: tuple[Task, ...]
    notified: frozenset[str] = frozenset()
    handler_names: frozenset[str] = frozenset()

    @property
    def folder(self) -> str:
        """The folder of the playbook."""
        return str(Path(self.file).parent)

    @property
    def top_folder(self) -> str:
        """The folder of the playbook that was given, and that may import this one."""
        return str(Path(self.inherited.files[0]).parent)


MAX_IMPORTS = 32
_MOST_IMPORTS = 2000
"""The most imports of one playbook, each counted as often as it is reached."""


class _Part(Struct, frozen=True):
    """A part of a file that was validated: its data, templates unrendered, and its place.

    ``broken`` are the paths of the invalid values of the file, and ``models`` the models of its valid mappings.
    """

    node: SourceNode
    data: Any
    broken: Collection[DataPath]
    models: Mapping[int, Model]

    def child(self, *keys: str) -> _Part:
        """Return the value of a key, of a key of that value, and so on; ``None`` is the data of a missing one."""
        data = self.data
        for key in keys:
            data = data.get(key) if isinstance(data, dict) else None
        node = SourceNode(self.node.document, self.node.path + keys)
        return _Part(node, data, self.broken, self.models)

    def items(self, kind: type = object) -> list[_Part]:
        """Return the items of a list that are of a kind. What should be a list and is not was reported."""
        items: list[_Part] = []
        if isinstance(self.data, list):
            for index, item in enumerate(self.data):
                if isinstance(item, kind):
                    node = SourceNode(self.node.document, (*self.node.path, index))
                    items.append(_Part(node, item, self.broken, self.models))
        return items

    def values(self, *keys: str) -> list[_Part]:
        """Return the items of a list, or the value that may stand for a list of one; none for a missing key."""
        part = self.child(*keys)
        if isinstance(part.data, list):
            return part.items()
        return [] if part.data is None else [part]


def _has_any(node: SourceNode, paths: Collection[DataPath]) -> bool:
    """Return whether any of the paths leads to the node, or into it."""
    depth = len(node.path)
    return any(path[:depth] == node.path for path in paths)


class _OpenPlay(Struct):
    """A play while it is loaded: its own keys, its handlers with their names, and what notifies them.

    ``role_handlers`` are the imports of roles with handlers: the file, the variables, and the numbers of the handlers.
    ``beside_role`` is the folder of a role that is loaded alone.
    """

    own: InheritedKeys = _NOTHING
    beside_role: tuple[str, ...] = ()
    handlers: list[Task] = []
    handler_names: dict[str, SourceNode] = {}
    role_handlers: list[tuple[str, list[tuple[str, Any]], Mapping[str, int]]] = []
    notified: set[str] = set()
    notices: list[SourceText] = []


class Loader:
    """Loads playbooks, and collects what is wrong with them."""

    def __init__(self, files: Files, role_folders: Sequence[str] = ()) -> None:
        self._files = files
        self._problems = files.problems
        self._role_folders = role_folders
        self._numbers = count()
        self._imports: Counter[str] = Counter()
        self.loaded: set[str] = set()
        """The folders of roles and the files of tasks that were loaded."""
        self._play = _OpenPlay()

    def playbook(self, file: str, inherited: InheritedKeys = _NOTHING) -> list[Play]:
        """Return the plays of a playbook, with imported plays in place of imports."""
        inherited = structs.replace(inherited, files=(*inherited.files, file))
        plays: list[Play] = []
        with self._problems:
            for play in self._validated(file, Playbook).items(dict):
                plays += self._plays_of(play, inherited)
        return plays

    def _plays_of(self, part: _Part, inherited: InheritedKeys) -> list[Play]:
        """Return a play, or the plays that it imports; none for an invalid one."""
        inner = self._inner(part, inherited, Level.PLAY)
        if "import_playbook" in part.data:
            file = self._import(part.child("import_playbook"), inner)
            return self.playbook(file, inner) if file else []
        self._play = _OpenPlay(inner)
        tasks: list[Task] = []
        if "roles" in part.data:
            tasks += self._roles(part.child("roles"), inner)
        if "handlers" in part.data:
            self._add_handlers(part.child("handlers"), inner)
        tasks += self._tasks(part.child("tasks"), inner)
        for notice in self._play.notices:
            if notice.text not in self._play.handler_names:
                self._problems.append(
                    unknown_handler(notice.text, notice.node, tuple(self._play.handler_names))
                )
        if part.node.path in part.broken:
            return []
        play = Play(
            part.node,
            inner.files[-1],
            part.data,
            inner,
            tuple(tasks),
            tuple(self._play.handlers),
            notified=frozenset(self._play.notified),
            handler_names=frozenset(self._play.handler_names),
        )
        return [play]

    def _import(self, name: _Part, inherited: InheritedKeys) -> str:
        """Return the path of an imported file; empty for one that cannot be imported, which is reported."""
        if not isinstance(name.data, str):
            return ""
        with self._problems:
            if isinstance(name.data, UnrenderedTemplate):
                raise name.node.error(
                    "the name of an imported file cannot be a template", "write the name directly"
                )
            file = beside(inherited.files[-1], name.data)
            self._check_import(file, name.node, inherited)
            return file
        return ""

    def _check_import(self, target: str, node: SourceNode, inherited: InheritedKeys) -> None:
        """Raise :class:`InputError` for a file that cannot be imported."""
        if target in inherited.files or len(inherited.files) > MAX_IMPORTS:
            chain = " → ".join([*inherited.files, target])
            raise node.error(
                f"circular import: {chain}", "remove one of these imports", kind="file"
            )
        self._imports[inherited.files[0]] += 1
        if self._imports[inherited.files[0]] > _MOST_IMPORTS:
            raise node.error(
                f"more than {_MOST_IMPORTS:,} imports",
                "import fewer files, or each only once",
                kind="file",
            )
        self._files.check_named(target, inherited.files[0], node)
        try:
            self._files.read(target)
        except InputError as error:
            (problem,) = error.problems
            raise node.error(
                f"{target}: {problem.message}", problem.remedy, kind=problem.kind
            ) from error

    def _roles(self, roles: _Part, inherited: InheritedKeys) -> list[Task]:
        tasks: list[Task] = []
        for entry in roles.items():
            if _has_any(entry.node, entry.broken):
                continue
            if isinstance(entry.data, dict):
                name = "role" if "role" in entry.data else "name"
                inner = self._inner(entry, inherited, Level.BLOCK)
                tasks += self._role(entry.child(name), inner)
            else:
                tasks += self._role(entry, inherited)
        return tasks

    def _role(self, name: _Part, inherited: InheritedKeys) -> list[Task]:
        """Return the tasks of a role; of a file of tasks alone it is not known where its roles are."""
        if not self._play.own.files:
            return []
        with self._problems:
            playbook = self._play.own.files[-1]
            places = (*self._play.beside_role, *role_places(playbook, self._role_folders))
            folder = find_role(name.data, tuple(dict.fromkeys(places)), name.node)
            return self._role_in(folder, name.node, inherited)
        return []

    def _role_in(self, folder: str, node: SourceNode, inherited: InheritedKeys) -> list[Task]:
        """Return the tasks of a role, and add its handlers to those of the play; raises :class:`InputError`."""
        self.loaded.add(folder)
        tasks = main_file(folder, "tasks")
        handlers = main_file(folder, "handlers")
        if not tasks and not handlers:
            remedy = f"create {Path(folder, 'tasks', 'main.yml')}"
            raise node.error(
                f"the role {folder} has neither tasks nor handlers", remedy, kind="file"
            )
        if tasks:
            self._check_import(tasks, node, inherited)
        own = role_variables(folder, inherited.files[0], node, self._files)
        inner = structs.replace(inherited, variables=(*inherited.variables, *own), role=folder)
        if handlers:
            self._files.check_named(handlers, inherited.files[0], node)
            numbers = self._handlers_of_role(handlers, inner)
            inner = structs.replace(inner, handlers={**inner.handlers, **numbers})
        return self.task_file(tasks, inner) if tasks else []

    def _handlers_of_role(self, file: str, role: InheritedKeys) -> Mapping[str, int]:
        """Add the handlers of a role to those of the play; return their numbers.

        They see the variables of this import of the role. Another import with the same variables has the same handlers.
        """
        variables = [(variable.name, variable.value) for variable in role.variables]
        for known_file, known_variables, known_numbers in self._play.role_handlers:
            if known_file == file and known_variables == variables:
                return known_numbers
        inner = structs.replace(role, conditions=self._play.own.conditions, loop=None)
        first = len(self._play.handlers)
        self._add_handlers(self._validated(file, HandlerFile), inner)
        numbers = {
            handler.name: number
            for number, handler in enumerate(self._play.handlers[first:], first)
        }
        self._play.role_handlers.append((file, variables, numbers))
        return numbers

    def _add_handlers(self, handlers: _Part, inherited: InheritedKeys) -> None:
        """Add handlers to those of the play. They inherit its variables, but neither tags nor notify."""
        for handler in handlers.items(dict):
            self._play.notified.update(str(name.data) for name in handler.values("notify"))
            if not _has_any(handler.node, handler.broken):
                self._check_handler_name(handler)
                self._play.handlers.append(self._handler(handler, inherited))
        # Also of invalid ones, which are reported themselves.
        for name in _handler_names(handlers.data):
            self._play.handler_names.setdefault(name, handlers.node)

    def _check_handler_name(self, handler: _Part) -> None:
        """Collect the second of two handlers with the same name."""
        name = str(handler.data["name"])
        place = handler.node.place
        first = self._play.handler_names.setdefault(name, handler.node).place
        if first == place:
            return
        where = f"at {first}"
        if first.line and first.file == place.file:
            where = f"on line {first.line}"
        why = f"duplicate handler {name!r} (first {where})"
        self._problems.append(handler.node.child("name").problem(why, "rename one of them"))

    def _handler(self, handler: _Part, inherited: InheritedKeys) -> Task:
        module = next(name for name in HANDLER_MODULES if name in handler.data)
        inner = structs.replace(self._inner(handler, inherited, Level.TASK), notify=())
        data = handler.data[module]
        return Task(
            handler.node, module, handler.data, inner, handler.models[id(data)], has_pending(data)
        )

    def _tasks(self, parts: _Part, inherited: InheritedKeys) -> list[Task]:
        """Return the tasks of a list, with those of its blocks and imports."""
        tasks: list[Task] = []
        for part in parts.items(dict):
            level = Level.TASK if part.data.keys().isdisjoint(GROUPS) else Level.BLOCK
            inner = self._inner(part, inherited, level)
            if "block" in part.data:
                tasks += self._tasks(part.child("block"), inner)
            elif "import_tasks" in part.data:
                file = self._import(part.child("import_tasks"), inner)
                tasks += self.task_file(file, inner) if file else []
            elif "import_role" in part.data:
                role = part.child("import_role")
                if not _has_any(role.node, role.broken):
                    tasks += self._role(role.child("name"), inner)
            else:
                tasks += self._own_task(part, inner)
        return tasks

    def _own_task(self, task: _Part, inherited: InheritedKeys) -> list[Task]:
        """Return a task of a module, unless it is invalid."""
        module = next((name for name in MODULES if name in task.data), "")
        arguments = task.child(module)
        that = tuple(self._conditions(arguments.values("that")))
        where = tuple(self._conditions(arguments.values("select", "where")))
        args = task.models.get(id(arguments.data))
        if args is None:
            return []
        if not _has_any(task.node, task.node.document.broken):
            self._problems.extend(check_arguments(args, arguments.node))
        if _has_any(task.node, task.broken):
            return []
        is_templated = has_pending(arguments.data)
        number = next(self._numbers)
        return [
            Task(task.node, module, task.data, inherited, args, is_templated, that, where, number)
        ]

    def lone_role(self, folder: str) -> None:
        """Check a role that no playbook need name: others are beside it."""
        alone = InheritedKeys(files=(beside(folder, "../a playbook"),))
        self._play = _OpenPlay(alone, beside_role=(beside(folder + "/", ".."),))
        with self._problems:
            self._role_in(folder, SourceNode(Document(folder)), alone)

    def task_file(self, file: str, inherited: InheritedKeys = _NOTHING) -> list[Task]:
        """Return the tasks of a file that import_tasks names."""
        self.loaded.add(file)
        inherited = structs.replace(inherited, files=(*inherited.files, file))
        tasks: list[Task] = []
        with self._problems:
            tasks += self._tasks(self._validated(file, TaskFile), inherited)
        return tasks

    def _validated(self, file: str, model: type[Playbook | TaskFile | HandlerFile]) -> _Part:
        """Read a file and validate it; raises :class:`InputError` for one that is not a list."""
        document = self._files.flawed(file)
        node = SourceNode(document)
        data = _entries(node, model)
        _, findings, models = validate_data(model, data, node)
        broken = set(document.broken)
        for path, problem in findings:
            broken.add(path)
            self._problems.append(problem)
        for path, text in leaves(data):
            if isinstance(text, MarkedText | MarkedTemplate) and not may_be_tagged(path):
                self._problems.append(
                    node.child(*path).problem(NOT_ALLOWED, ALLOWED, kind="secret")
                )
            if isinstance(text, UnrenderedTemplate):
                with self._problems:
                    check_template(text, node.child(*path))
        return _Part(node, data, broken, models)

    def _inner(self, part: _Part, inherited: InheritedKeys, level: Level) -> InheritedKeys:
        """Return the keys that hold in a play, block, import, role or task."""
        if part.data.keys().isdisjoint(_INHERITED):
            return inherited
        variables: Sequence[Variable] = ()
        values = part.child("vars")
        with self._problems:
            if isinstance(values.data, dict):
                variables = read_variables(values.data, level, values.node)
        inner = structs.replace(
            inherited,
            conditions=(*inherited.conditions, *self._conditions(part.values("when"))),
            tags=inherited.tags | _tags_of(part.values("tags")),
            variables=(*inherited.variables, *variables),
            notify=(*inherited.notify, *self._notices_of(part.values("notify"))),
            outside=part.data.get("outside", inherited.outside),
        )
        if "loop" not in part.data:
            return inner
        loop = Loop(part.node, part.data, inner, next(self._numbers))
        self._check_loop(loop, inherited.loop)
        return structs.replace(inner, loop=loop)

    def _conditions(self, parts: Iterable[_Part]) -> Iterator[SourceText]:
        """Yield the conditions of a key, and collect what is wrong with them."""
        for condition in parts:
            text = condition.data
            if isinstance(text, bool):
                text = str(text).lower()
            is_expression = isinstance(text, str) and not isinstance(text, UnrenderedTemplate)
            if is_expression and text.strip():
                with self._problems:
                    check_template(text, condition.node, expression=True)
                yield SourceText(text, condition.node)

    def _notices_of(self, parts: Iterable[_Part]) -> Iterator[SourceText]:
        """Yield the names under ``notify``, and note them for the check of the play."""
        for name in parts:
            if isinstance(name.data, bool) or not isinstance(name.data, str | int):
                continue
            self._play.notified.add(str(name.data))
            if isinstance(name.data, UnrenderedTemplate):
                yield SourceText(name.data, name.node)
                continue
            notice = SourceText(str(name.data), name.node)
            self._play.notices.append(notice)
            yield notice

    def _check_loop(self, loop: Loop, outer: Loop | None) -> None:
        """Collect the variables that a loop has twice, or a loop around it as well: one would hide the other."""
        places: dict[str, SourceNode] = {}
        while outer is not None:
            places |= dict(outer.variables())
            outer = outer.around.loop
        for name, node in loop.variables():
            if name in places:
                why = f"the variable {name!r} is already that of a loop ({places[name].place})"
                remedy = "name one of the two: loop_control: {loop_var: NAME}"
                self._problems.append(node.problem(why, remedy, kind="variable"))
            places[name] = node


_INHERITED = frozenset({"when", "tags", "vars", "notify", "outside", "loop"})
_LISTS: Mapping[type, tuple[FileKind, str]] = {
    Playbook: ("playbook", "a playbook must be a list of plays"),
    TaskFile: ("tasks", "a task file must be a list of tasks"),
    HandlerFile: ("tasks", "a task file must be a list of handlers"),
}


def _entries(node: SourceNode, model: type[Playbook | TaskFile | HandlerFile]) -> list[Any]:
    """Return the list that a file is; raises :class:`InputError` for other data."""
    data = node.document.data
    if data is None and model is HandlerFile:  # as ansible-galaxy makes it
        return []
    if not isinstance(data, list):
        kind, what = _LISTS[model]
        check_kind(node.document, kind)
        content = "is empty" if data is None else "is not a list"
        why = f"{what}; this file {content}"
        raise node.error(why, "start each item with a dash: - name:", kind="wrong-type")
    return data


def _tags_of(parts: Iterable[_Part]) -> frozenset[str]:
    """Return the tags of a list, or of a text with commas."""
    tags: set[str] = set()
    for text in parts:
        tags.update(tag.strip() for tag in str(text.data).split(","))
    return frozenset(tags - {""})


def check_arguments(args: Model, node: SourceNode) -> Iterator[Problem]:
    """Yield what is wrong with the arguments of a task, each at its place."""
    for aspect in aspects_of(type(args), frozenset(args.model_fields_set)):
        yield from aspect.check(args, node)
    expect = getattr(getattr(args, "select", None), "expect", None)
    low = getattr(expect, "min", None)
    high = getattr(expect, "max", None)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield node.child("select", "expect").problem(
            f"min {low} is greater than max {high}", "exchange them"
        )


def unknown_handler(name: str, node: SourceNode, known: Sequence[str]) -> Problem:
    """Return the problem of a name under ``notify`` that is not a handler of the play."""
    return node.problem(
        f"handler {name!r} not found", nearest(name, known) or "add handlers: to the play"
    )


def _handler_names(handlers: Any) -> Iterator[str]:
    """Yield the names of a play's handlers, also of those in a block, which is reported separately."""
    if not isinstance(handlers, list):
        return
    for handler in handlers:
        if isinstance(handler, dict):
            if "name" in handler:
                yield str(handler["name"])
            yield from _handler_names(handler.get("block"))


_SECRET_MODULES = frozenset(MODULES) - {"block"}


def may_be_tagged(way: SecretPath) -> bool:
    """Return whether a text of a playbook may be tagged as secret."""
    for number, part in enumerate(way):
        if part in {"vars", "loop"}:
            return True
        if part in _SECRET_MODULES:
            return may_be_secret(str(part), way[number + 1 :])
    return False
