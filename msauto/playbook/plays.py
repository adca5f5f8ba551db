"""Loads playbook files as plays and tasks: validates them, follows imports and flattens blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType, structs

from msauto.documents.document import Path as DataPath
from msauto.documents.document import SourceNode, SourceText
from msauto.documents.strict_model import Model
from msauto.documents.value_types import MarkedTemplate, UnrenderedTemplate, as_list, has_pending, mark
from msauto.errors import InputError, Problem, nearest
from msauto.model.desired import OutsidePolicy
from msauto.playbook.file_kinds import check_kind
from msauto.playbook.input_files import Files, beside
from msauto.playbook.schema.play import HANDLER_MODULES, MODULES, Playbook, TaskFile, aspects_of
from msauto.playbook.schema.schema_errors import validate_data
from msauto.playbook.templates.rendering import check_template
from msauto.playbook.variables import Level, Variable, read_variables
from msauto.secrets.sources import ALLOWED, NOT_ALLOWED, MarkedText, leaves, may_be_secret
from msauto.secrets.sources import DataPath as SecretPath


class InheritedKeys(Struct, frozen=True):
    """The keys that tasks inherit from their play, block or import; ``files`` lead from the playbook to the task."""

    conditions: tuple[SourceText, ...] = ()
    tags: frozenset[str] = frozenset()
    variables: tuple[Variable, ...] = ()
    files: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    notify: tuple[SourceText, ...] = ()
    outside: OutsidePolicy | UnsetType = UNSET


_NOTHING = InheritedKeys()


class Task(Struct, frozen=True):
    """A task of a module: ``data`` is the whole mapping with its templates unrendered.

    ``args`` are the arguments of the module. Those with templates are validated again once they are rendered.
    ``that`` are the conditions of an ``assert``, ``where`` those of a selection.
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

    @property
    def name(self) -> str:
        """The name as it is written; empty without one."""
        return str(self.data.get("name") or "")


class Play(Struct, frozen=True):
    """A play: ``data`` is its mapping with its templates unrendered, ``file`` the playbook that holds it.

    ``notified`` are all names under ``notify``, also of invalid tasks and of imported ones.
    """

    node: SourceNode
    file: str
    data: dict[str, Any]
    inherited: InheritedKeys
    tasks: tuple[Task, ...]
    handlers: tuple[Task, ...]
    notified: frozenset[str] = frozenset()

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

    def __init__(self, files: Files) -> None:
        self._files = files
        self._problems = files.problems
        self._notified: set[str] = set()

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
        self._notified.clear()
        inner = structs.replace(inner, handlers=tuple(_handler_names(body.get("handlers"))))
        handlers = tuple(self._handlers(body.get("handlers"), node.child("handlers"), inner, checked))
        tasks = tuple(self._tasks(body.get("tasks"), node.child("tasks"), inner, checked))
        if node.path in checked.broken:
            return []
        return [Play(node, inner.files[-1], body, inner, tasks, handlers, frozenset(self._notified))]

    def _import(self, name: Any, node: SourceNode, inherited: InheritedKeys) -> str:
        """Return the path of an imported file; empty for one that cannot be imported, which is reported."""
        if not isinstance(name, str):
            return ""
        target = beside(inherited.files[-1], name)
        with self._problems.gather():
            if isinstance(name, UnrenderedTemplate):
                raise node.error("the name of an imported file cannot be a template", "write the name directly")
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
        return ""

    def _tasks(self, data: Any, node: SourceNode, inherited: InheritedKeys, checked: _ValidatedFile) -> Iterator[Task]:
        for index, body in enumerate(data if isinstance(data, list) else []):
            if isinstance(body, dict):
                yield from self._task(body, node.child(index), inherited, checked)

    def _handlers(
        self, data: Any, node: SourceNode, inherited: InheritedKeys, checked: _ValidatedFile
    ) -> Iterator[Task]:
        """Yield the handlers of a play. They inherit its variables, but neither tags nor notify."""
        seen: dict[str, int] = {}
        for index, body in enumerate(data if isinstance(data, list) else []):
            here = node.child(index)
            if isinstance(body, dict):
                self._notified.update(map(str, as_list(body.get("notify", []))))
            if not isinstance(body, dict) or checked.is_broken(here):
                continue
            name = str(body["name"])
            if name in seen:
                first = node.child(seen[name]).place.line
                why = f"duplicate handler {name!r} (first on line {first})"
                self._problems.add(here.child("name").problem(why, "rename one of them"))
            seen.setdefault(name, index)
            module = next(each for each in HANDLER_MODULES if each in body)
            inner = structs.replace(self._inner(body, here, inherited, Level.TASK), notify=())
            yield Task(here, module, body, inner, checked.models[id(body[module])], has_pending(body[module]))

    def _task(
        self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys, checked: _ValidatedFile
    ) -> Iterator[Task]:
        inner = self._inner(body, node, inherited, Level.BLOCK if "block" in body else Level.TASK)
        if "block" in body:
            yield from self._tasks(body["block"], node.child("block"), inner, checked)
            return
        if "import_tasks" in body:
            target = self._import(body["import_tasks"], node.child("import_tasks"), inner)
            yield from self.task_file(target, inner) if target else ()
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
            yield Task(node, module, body, inner, args, has_pending(data), tests, filters)

    def _notices(self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys) -> Iterator[SourceText]:
        for index, name in enumerate(as_list(body.get("notify", []))):
            place = node.child("notify", index) if isinstance(body["notify"], list) else node.child("notify")
            if isinstance(name, str | int) and not isinstance(name, bool):
                self._notified.add(str(name))
                if not isinstance(name, UnrenderedTemplate) and str(name) not in inherited.handlers:
                    self._problems.add(unknown_handler(str(name), place, inherited.handlers))
                yield SourceText(name if isinstance(name, UnrenderedTemplate) else str(name), place)

    def task_file(self, file: str, inherited: InheritedKeys = _NOTHING) -> list[Task]:
        """Return the tasks of a file that import_tasks names."""
        inherited = structs.replace(inherited, files=(*inherited.files, file))
        tasks: list[Task] = []
        with self._problems.gather():
            checked = self._checked(file, TaskFile)
            tasks += self._tasks(checked.data, checked.node, inherited, checked)
        return tasks

    def _checked(self, file: str, model: type[Playbook | TaskFile]) -> _ValidatedFile:
        """Read a file and validate it; raises :class:`InputError` for one that is not a list."""
        document = self._files.flawed(file)
        node, data = SourceNode(document), mark(document.data)
        if not isinstance(data, list):
            is_playbook = model is Playbook
            check_kind(document, "playbook" if is_playbook else "tasks")
            why = "a playbook must be a list of plays" if is_playbook else "a task file must be a list of tasks"
            why += f"; this file {'is empty' if data is None else 'is not a list'}"
            raise node.error(why, "start each item with a dash: - name:", kind="wrong-type")
        _, found, models = validate_data(model, data, node)
        self._problems.add(*(problem for _, problem in found))
        for path, text in leaves(data):
            if isinstance(text, MarkedText | MarkedTemplate) and not may_be_tagged(path):
                self._problems.add(node.child(*path).problem(NOT_ALLOWED, ALLOWED, kind="secret"))
            if isinstance(text, UnrenderedTemplate):
                with self._problems.gather():
                    check_template(text, node.child(*path))
        return _ValidatedFile(node, data, {*document.broken, *(path for path, _ in found)}, models)

    def _inner(self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys, level: Level) -> InheritedKeys:
        if body.keys().isdisjoint(_INHERITED):
            return inherited
        variables: Sequence[Variable] = ()
        with self._problems.gather():
            values = body.get("vars")
            variables = read_variables(values, level, node.child("vars")) if isinstance(values, dict) else ()
        return structs.replace(
            inherited,
            conditions=(*inherited.conditions, *self._conditions(body.get("when"), node.child("when"))),
            tags=inherited.tags | tags_of(body.get("tags")),
            variables=(*inherited.variables, *variables),
            notify=(*inherited.notify, *self._notices(body, node, inherited)),
            outside=body.get("outside", inherited.outside),
        )

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


_INHERITED = frozenset({"when", "tags", "vars", "notify", "outside"})


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
