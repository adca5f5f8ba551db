"""Loads playbook files as plays and tasks: validates them, follows imports and flattens blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from msauto.documents.document import Document, SourceNode, SourceText
from msauto.documents.document import Path as DataPath
from msauto.documents.strict_model import Model
from msauto.documents.value_types import MarkedTemplate, UnrenderedTemplate, as_list, has_pending, mark
from msauto.errors import InputError, Problem, nearest
from msauto.model.desired import OutsidePolicy
from msauto.playbook.file_kinds import check_kind
from msauto.playbook.input_files import Files, beside
from msauto.playbook.roles import find_role, main_file, role_places, role_variables
from msauto.playbook.schema.play import GROUPS, HANDLER_MODULES, MODULES, HandlerFile, Playbook, TaskFile, aspects_of
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

    ``around`` are the keys that hold for the loop itself, and ``guard`` the conditions of what holds it. ``number``
    counts loops and tasks of a playbook.
    """

    node: SourceNode
    data: dict[str, Any]
    around: InheritedKeys
    guard: tuple[SourceText, ...]
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
            if name is not None:
                yield str(name), self.node.child(*(("loop_control", key) if key in self.control else ("loop",)))


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


MAX_IMPORTS = 32


class _ValidatedFile(Struct, frozen=True):
    """The data of a file, templates unrendered, with the paths of invalid values and the models of valid mappings."""

    node: SourceNode
    data: list[Any]
    broken: Collection[DataPath]
    models: Mapping[int, Model]

    def is_broken(self, node: SourceNode) -> bool:
        return any(path[: len(node.path)] == node.path for path in self.broken)


class Loader:
    """Loads playbooks, and collects what is wrong with them."""

    def __init__(self, files: Files, role_folders: Sequence[str] = ()) -> None:
        self._files = files
        self._problems = files.problems
        self._role_folders = role_folders
        self._numbers = count()
        self.loaded: set[str] = set()
        """The folders of roles and the files of tasks that were loaded."""
        self._begin(_NOTHING)

    def _begin(self, play: InheritedKeys) -> None:
        """Begin a play: its handlers, what notifies them, and where its roles are."""
        self._in_play = play
        self._places = role_places(play.files[-1], self._role_folders) if play.files else ()
        self._handlers: list[Task] = []
        self._handler_names: dict[str, SourceNode] = {}
        self._role_handlers: list[tuple[str, list[tuple[str, Any]], Mapping[str, int]]] = []
        self._notified: set[str] = set()
        self._notices: list[SourceText] = []

    def playbook(self, file: str, inherited: InheritedKeys = _NOTHING) -> list[Play]:
        """Return the plays of a playbook, with imported plays in place of imports."""
        inherited = structs.replace(inherited, files=(*inherited.files, file))
        plays: list[Play] = []
        with self._problems.gather():
            checked = self._checked(file, Playbook)
            for index, body in enumerate(checked.data):
                if isinstance(body, dict):
                    plays += self._play(body, checked.node.child(index), inherited, checked)
        return plays

    def _play(
        self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys, checked: _ValidatedFile
    ) -> list[Play]:
        inner = self._inner(body, node, inherited, Level.PLAY)
        if "import_playbook" in body:
            target = self._import(body["import_playbook"], node.child("import_playbook"), inner)
            return self.playbook(target, inner) if target else []
        self._begin(inner)
        tasks: list[Task] = []
        roles = body.get("roles")
        for index, entry in enumerate(roles if isinstance(roles, list) else []):
            here, role = node.child("roles", index), entry if isinstance(entry, dict) else {}
            if not checked.is_broken(here):
                name, place = (role["role"], here.child("role")) if role else (entry, here)
                tasks += self._role(name, place, self._inner(role, here, inner, Level.BLOCK))
        self._add_handlers(body.get("handlers"), node.child("handlers"), inner, checked)
        tasks += self._tasks(body.get("tasks"), node.child("tasks"), inner, checked)
        for notice in self._notices:
            if notice.text not in self._handler_names:
                self._problems.add(unknown_handler(notice.text, notice.node, tuple(self._handler_names)))
        if node.path in checked.broken:
            return []
        names = frozenset(self._notified), frozenset(self._handler_names)
        return [Play(node, inner.files[-1], body, inner, tuple(tasks), tuple(self._handlers), *names)]

    def _import(self, name: Any, node: SourceNode, inherited: InheritedKeys) -> str:
        """Return the path of an imported file; empty for one that cannot be imported, which is reported."""
        if not isinstance(name, str):
            return ""
        with self._problems.gather():
            if isinstance(name, UnrenderedTemplate):
                raise node.error("the name of an imported file cannot be a template", "write the name directly")
            return self._checked_path(beside(inherited.files[-1], name), node, inherited)
        return ""

    def _checked_path(self, target: str, node: SourceNode, inherited: InheritedKeys) -> str:
        """Return the path of an imported file; raises :class:`InputError` for one that cannot be imported."""
        if target in inherited.files or len(inherited.files) > MAX_IMPORTS:
            chain = " → ".join([*inherited.files, target])
            raise node.error(f"circular import: {chain}", "remove one of these imports", kind="file")
        self._files.check_named(target, inherited.files[0], node)
        try:
            self._files.read(target)
        except InputError as error:
            (problem,) = error.problems
            raise node.error(f"{target}: {problem.message}", problem.remedy, kind=problem.kind) from error
        return target

    def _role(self, name: str, node: SourceNode, inherited: InheritedKeys) -> Iterator[Task]:
        """Yield the tasks of a role; of a file of tasks alone it is not known where its roles are."""
        with self._problems.gather():
            if self._places:
                yield from self._role_in(find_role(name, self._places, node), node, inherited)

    def _role_in(self, folder: str, node: SourceNode, inherited: InheritedKeys) -> Iterator[Task]:
        """Yield the tasks of a role, and add its handlers to those of the play; raises :class:`InputError`."""
        self.loaded.add(folder)
        tasks, handlers = main_file(folder, "tasks"), main_file(folder, "handlers")
        if not tasks and not handlers:
            remedy = f"create {Path(folder, 'tasks', 'main.yml')}"
            raise node.error(f"the role {folder} has neither tasks nor handlers", remedy, kind="file")
        tasks = tasks and self._checked_path(tasks, node, inherited)
        own = role_variables(folder, inherited.files[0], node, self._files)
        inner = structs.replace(inherited, variables=(*inherited.variables, *own), role=folder)
        if handlers:
            self._files.check_named(handlers, inherited.files[0], node)
            inner = structs.replace(inner, handlers={**inner.handlers, **self._handlers_of_role(handlers, inner)})
        yield from self.task_file(tasks, inner) if tasks else ()

    def _handlers_of_role(self, file: str, role: InheritedKeys) -> Mapping[str, int]:
        """Add the handlers of a role to those of the play; return their numbers.

        They see the variables of this import of the role. Another import with the same variables has the same handlers.
        """
        variables = [(each.name, each.value) for each in role.variables]
        for other, known, numbers in self._role_handlers:
            if other == file and known == variables:
                return numbers
        inner = structs.replace(role, conditions=self._in_play.conditions, loop=None)
        checked = self._checked(file, HandlerFile)
        first = len(self._handlers)
        self._add_handlers(checked.data, checked.node, inner, checked)
        numbers = {each.name: number for number, each in enumerate(self._handlers[first:], first)}
        self._role_handlers.append((file, variables, numbers))
        return numbers

    def _tasks(self, data: Any, node: SourceNode, inherited: InheritedKeys, checked: _ValidatedFile) -> Iterator[Task]:
        for index, body in enumerate(data if isinstance(data, list) else []):
            if isinstance(body, dict):
                yield from self._task(body, node.child(index), inherited, checked)

    def _add_handlers(self, data: Any, node: SourceNode, inherited: InheritedKeys, checked: _ValidatedFile) -> None:
        """Add handlers to those of the play. They inherit its variables, but neither tags nor notify."""
        names = [*_handler_names(data)]
        for index, body in enumerate(data if isinstance(data, list) else []):
            here = node.child(index)
            if isinstance(body, dict):
                self._notified.update(map(str, as_list(body.get("notify", []))))
            if not isinstance(body, dict) or checked.is_broken(here):
                continue
            name = str(body["name"])
            first, again = self._handler_names.setdefault(name, here).place, here.place
            if first != again:
                where = f"on line {first.line}" if first.line and first.file == again.file else f"at {first}"
                why = f"duplicate handler {name!r} (first {where})"
                self._problems.add(here.child("name").problem(why, "rename one of them"))
            module = next(each for each in HANDLER_MODULES if each in body)
            inner = structs.replace(self._inner(body, here, inherited, Level.TASK), notify=())
            args = checked.models[id(body[module])]
            self._handlers.append(Task(here, module, body, inner, args, has_pending(body[module])))
        for name in names:  # also of invalid ones, which are reported themselves
            self._handler_names.setdefault(name, node)

    def _task(
        self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys, checked: _ValidatedFile
    ) -> Iterator[Task]:
        inner = self._inner(body, node, inherited, Level.TASK if body.keys().isdisjoint(GROUPS) else Level.BLOCK)
        if "block" in body:
            yield from self._tasks(body["block"], node.child("block"), inner, checked)
            return
        if "import_tasks" in body:
            target = self._import(body["import_tasks"], node.child("import_tasks"), inner)
            yield from self.task_file(target, inner) if target else ()
            return
        if "import_role" in body:
            if not checked.is_broken(node.child("import_role")):
                yield from self._role(body["import_role"]["name"], node.child("import_role", "name"), inner)
            return
        module = next((name for name in MODULES if name in body), "")
        data, here = body.get(module), node.child(module)
        that = where = None
        if isinstance(data, dict):
            that, select = data.get("that"), data.get("select")
            where = select.get("where") if isinstance(select, dict) else None
        tests = tuple(self._conditions(that, here.child("that")))
        filters = tuple(self._conditions(where, here.child("select", "where")))
        args = checked.models.get(id(data))
        if args is not None and not any(path[: len(node.path)] == node.path for path in node.document.broken):
            self._problems.add(*check_arguments(args, here))
        if args is not None and not checked.is_broken(node):
            yield Task(node, module, body, inner, args, has_pending(data), tests, filters, next(self._numbers))

    def _notices_of(self, body: dict[str, Any], node: SourceNode) -> Iterator[SourceText]:
        for index, name in enumerate(as_list(body.get("notify", []))):
            place = node.child("notify", index) if isinstance(body["notify"], list) else node.child("notify")
            if isinstance(name, str | int) and not isinstance(name, bool):
                self._notified.add(str(name))
                notice = SourceText(name if isinstance(name, UnrenderedTemplate) else str(name), place)
                if not isinstance(name, UnrenderedTemplate):
                    self._notices.append(notice)
                yield notice

    def lone_role(self, folder: str) -> None:
        """Check a role that no playbook need name: others are beside it."""
        alone = InheritedKeys(files=(beside(folder, "../a playbook"),))
        self._begin(alone)
        self._places = tuple(dict.fromkeys((beside(folder + "/", ".."), *self._places)))
        with self._problems.gather():
            list(self._role_in(folder, SourceNode(Document(folder)), alone))

    def task_file(self, file: str, inherited: InheritedKeys = _NOTHING) -> list[Task]:
        """Return the tasks of a file that import_tasks names."""
        self.loaded.add(file)
        inherited = structs.replace(inherited, files=(*inherited.files, file))
        tasks: list[Task] = []
        with self._problems.gather():
            checked = self._checked(file, TaskFile)
            tasks += self._tasks(checked.data, checked.node, inherited, checked)
        return tasks

    def _checked(self, file: str, model: type[Playbook | TaskFile | HandlerFile]) -> _ValidatedFile:
        """Read a file and validate it; raises :class:`InputError` for one that is not a list."""
        document = self._files.flawed(file)
        is_empty = document.data is None and model is HandlerFile  # as ansible-galaxy makes it
        node, data = SourceNode(document), [] if is_empty else mark(document.data)
        if not isinstance(data, list):
            is_playbook = model is Playbook
            check_kind(document, "playbook" if is_playbook else "tasks")
            items = "handlers" if model is HandlerFile else "tasks"
            why = "a playbook must be a list of plays" if is_playbook else f"a task file must be a list of {items}"
            why += f"; this file {'is empty' if data is None else 'is not a list'}"
            raise node.error(why, "start each item with a dash: - name:", kind="wrong-type")
        _, findings, models = validate_data(model, data, node)
        self._problems.add(*(problem for _, problem in findings))
        for path, text in leaves(data):
            if isinstance(text, MarkedText | MarkedTemplate) and not may_be_tagged(path):
                self._problems.add(node.child(*path).problem(NOT_ALLOWED, ALLOWED, kind="secret"))
            if isinstance(text, UnrenderedTemplate):
                with self._problems.gather():
                    check_template(text, node.child(*path))
        return _ValidatedFile(node, data, {*document.broken, *(path for path, _ in findings)}, models)

    def _inner(self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys, level: Level) -> InheritedKeys:
        if body.keys().isdisjoint(_INHERITED):
            return inherited
        variables: Sequence[Variable] = ()
        with self._problems.gather():
            values = body.get("vars")
            variables = read_variables(values, level, node.child("vars")) if isinstance(values, dict) else ()
        inner = structs.replace(
            inherited,
            conditions=(*inherited.conditions, *self._conditions(body.get("when"), node.child("when"))),
            tags=inherited.tags | tags_of(body.get("tags")),
            variables=(*inherited.variables, *variables),
            notify=(*inherited.notify, *self._notices_of(body, node)),
            outside=body.get("outside", inherited.outside),
        )
        if "loop" not in body:
            return inner
        loop = Loop(node, body, inner, inherited.conditions, next(self._numbers))
        self._check_loop(loop, inherited.loop)
        return structs.replace(inner, loop=loop)

    def _check_loop(self, loop: Loop, outer: Loop | None) -> None:
        """Collect the variables that a loop has twice, or a loop around it as well: one would hide the other."""
        taken: dict[str, SourceNode] = {}
        while outer is not None:
            taken |= dict(outer.variables())
            outer = outer.around.loop
        for name, place in loop.variables():
            if name in taken:
                why = f"the variable {name!r} is already that of a loop ({taken[name].place})"
                remedy = "name one of the two: loop_control: {loop_var: NAME}"
                self._problems.add(place.problem(why, remedy, kind="variable"))
            taken[name] = place

    def _conditions(self, data: Any, node: SourceNode) -> Iterator[SourceText]:
        """Yield the conditions of a key, and collect what is wrong with them."""
        for index, text in enumerate([] if data is None else as_list(data)):
            where = node.child(index) if isinstance(data, list) else node
            shown = str(text).lower() if isinstance(text, bool) else text
            if isinstance(shown, str) and shown.strip() and not isinstance(shown, UnrenderedTemplate):
                with self._problems.gather():
                    check_template(shown, where, expression=True)
                yield SourceText(shown, where)


def check_arguments(args: Model, node: SourceNode) -> Iterator[Problem]:
    """Yield what is wrong with the arguments of a task, each at its place."""
    for aspect in aspects_of(type(args)):
        yield from aspect.check(args, node)
    expect = getattr(getattr(args, "select", None), "expect", None)
    low, high = getattr(expect, "min", None), getattr(expect, "max", None)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield node.child("select", "expect").problem(f"min {low} is greater than max {high}", "exchange them")


_INHERITED = frozenset({"when", "tags", "vars", "notify", "outside", "loop"})


def tags_of(data: Any) -> frozenset[str]:
    """Return the tags of a list, or of a text with commas."""
    items = [] if data is None else as_list(data)
    return frozenset(part.strip() for item in items for part in str(item).split(",") if part.strip())


def unknown_handler(name: str, node: SourceNode, known: Sequence[str]) -> Problem:
    """Return the problem of a name under ``notify`` that is not a handler of the play."""
    return node.problem(f"handler {name!r} not found", nearest(name, known) or "add handlers: to the play")


def _handler_names(handlers: Any) -> Iterator[str]:
    """Yield the names of a play's handlers, also of those in a block, which is reported separately."""
    for each in handlers if isinstance(handlers, list) else []:
        if isinstance(each, dict):
            yield from [str(each["name"])] if "name" in each else []
            yield from _handler_names(each.get("block"))


_SECRET_MODULES = frozenset(MODULES) - {"block"}


def may_be_tagged(way: SecretPath) -> bool:
    """Return whether a text of a playbook may be tagged as secret."""
    for number, part in enumerate(way):
        if part in {"vars", "loop"}:
            return True
        if part in _SECRET_MODULES:
            return may_be_secret(str(part), way[number + 1 :])
    return False
