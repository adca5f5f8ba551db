"""Loads playbook files as plays and tasks: validates them, follows imports and flattens blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msauto.errors import Problem
from msauto.model.desired import Desired
from msauto.playbook.input_files import OUTSIDE, Files, beside
from msauto.playbook.schema.play import HANDLER_MODULES, MODULES, Playbook, TaskFile
from msauto.playbook.schema.schema_errors import validate_data
from msauto.playbook.schema.strict_model import Model
from msauto.playbook.schema.value_types import UnrenderedTemplate, as_list, has_pending, mark
from msauto.playbook.tasks.argument_checks import check_arguments
from msauto.playbook.tasks.task_secrets import misplaced
from msauto.playbook.templates.environment import check_template
from msauto.playbook.variables.variables import Level, Variable, read_variables
from msauto.playbook.yaml.document import Path, Problems, SourceNode, nearest

MAX_IMPORTS = 32


@dataclass(frozen=True, slots=True)
class Condition:
    """One expression of a ``when``."""

    text: str
    node: SourceNode


@dataclass(frozen=True, slots=True)
class NotifiedHandler:
    """One name under ``notify``; it may be a template."""

    text: str
    node: SourceNode


@dataclass(frozen=True, slots=True)
class InheritedKeys:
    """The keys that tasks inherit from their play, block or import."""

    conditions: tuple[Condition, ...] = ()
    tags: frozenset[str] = frozenset()
    variables: tuple[Variable, ...] = ()
    files: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    notify: tuple[NotifiedHandler, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A task: ``module`` is its name, ``data`` the whole mapping with its templates unrendered.

    ``args`` are the validated arguments of the module. If they are ``constant``, without a template, they hold for
    each host; ``compiled`` is the desired state that they make, by the name of the task in plans.
    """

    node: SourceNode
    module: str
    data: dict[str, Any]
    inherited: InheritedKeys
    args: Model
    constant: bool
    compiled: dict[str, Desired] = field(default_factory=dict, compare=False)

    @property
    def args_node(self) -> SourceNode:
        """The node of the module's arguments."""
        return self.node.child(self.module)


@dataclass(frozen=True, slots=True)
class Play:
    """A play: ``data`` is its mapping with its templates unrendered, ``file`` the playbook that holds it."""

    node: SourceNode
    file: str
    data: dict[str, Any]
    inherited: InheritedKeys
    tasks: tuple[Task, ...] = field(default_factory=tuple)
    handlers: tuple[Task, ...] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class _ValidatedFile:
    """The data of a file, templates unrendered, with the paths of invalid values and the models of valid mappings."""

    data: list[Any]
    broken: Collection[Path]
    models: Mapping[int, Model]

    def is_broken(self, node: SourceNode) -> bool:
        return _is_any_inside(self.broken, node)


class Loader:
    """Loads playbooks, and collects what is wrong with them."""

    def __init__(self, files: Files, problems: Problems) -> None:
        self._files = files
        self._problems = problems

    def playbook(self, file: str, inherited: InheritedKeys | None = None) -> list[Play]:
        """Return the plays of a playbook, with imported plays in place of imports."""
        inherited = inherited or InheritedKeys(files=(file,))
        plays: list[Play] = []
        with self._problems.gather():
            document = self._files.flawed(file)
            checked = self._checked(SourceNode(document), Playbook, "a playbook must be a list of plays")
            for index, body in enumerate(checked.data):
                node = SourceNode(document, (index,))
                if isinstance(body, dict):
                    plays += self._play(body, node, file, inherited, checked)
        return plays

    def _play(
        self, body: dict[str, Any], node: SourceNode, file: str, inherited: InheritedKeys, checked: _ValidatedFile
    ) -> list[Play]:
        inner = self._inner(body, node, inherited, Level.PLAY)
        if "import_playbook" in body:
            return self._imported(body, node, file, inner)
        inner = replace(inner, handlers=tuple(_handler_names(body.get("handlers"))))
        handlers = tuple(self._handlers(body.get("handlers"), node.child("handlers"), inner, checked))
        tasks = tuple(self._tasks(body.get("tasks"), node.child("tasks"), inner, checked))
        if any(path == node.path for path in checked.broken):
            return []
        return [Play(node, file, body, inner, tasks, handlers)]

    def _imported(self, body: dict[str, Any], node: SourceNode, file: str, inherited: InheritedKeys) -> list[Play]:
        name = body["import_playbook"]
        target = self._import(name, node.child("import_playbook"), file, inherited)
        return self.playbook(target, replace(inherited, files=(*inherited.files, target))) if target else []

    def _import(self, name: Any, node: SourceNode, file: str, inherited: InheritedKeys) -> str:
        if not isinstance(name, str):
            return ""
        if isinstance(name, UnrenderedTemplate):
            self._problems.add(
                node.problem("the name of an imported file cannot be a template", "write the name directly")
            )
            return ""
        target = beside(file, name)
        if target in inherited.files or len(inherited.files) > MAX_IMPORTS:
            chain = " → ".join([*inherited.files, target])
            self._problems.add(node.problem(f"circular import: {chain}"))
            return ""
        if not self._files.may_be_named(target, inherited.files[0] if inherited.files else file):
            self._problems.add(node.problem(f"{target}: the file is outside the playbook's repository", OUTSIDE))
            return ""
        return target if self._readable(target, node) else ""

    def _readable(self, target: str, node: SourceNode) -> bool:
        found = Problems()
        with found.gather():
            self._files.read(target)
        for problem in found.ordered():
            self._problems.add(node.problem(f"{target}: {problem.message}", problem.remedy))
        return not found

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
            if not isinstance(body, dict) or checked.is_broken(here):
                continue
            name = str(body["name"])
            if name in seen:
                first = node.child(seen[name]).place.line
                self._problems.add(
                    here.child("name").problem(
                        f"duplicate handler {name!r} (first on line {first})", "rename one of them"
                    )
                )
            seen.setdefault(name, index)
            module = next(each for each in HANDLER_MODULES if each in body)
            inner = replace(self._inner(body, here, inherited, Level.TASK), notify=())
            yield _task_of(here, module, body, inner, checked.models[id(body[module])])

    def _task(
        self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys, checked: _ValidatedFile
    ) -> Iterator[Task]:
        inner = self._inner(body, node, inherited, Level.BLOCK if "block" in body else Level.TASK)
        if "block" in body:
            yield from self._tasks(body["block"], node.child("block"), inner, checked)
            return
        if "import_tasks" in body:
            yield from self._imported_tasks(body, node, inner)
            return
        module = next((name for name in MODULES if name in body), "")
        self._check_expressions(body.get(module), node.child(module))
        args = checked.models.get(id(body.get(module)))
        if args is not None and not _is_any_inside(node.document.broken, node):
            self._problems.add(*check_arguments(args, node.child(module)))
        if args is not None and not checked.is_broken(node):
            yield _task_of(node, module, body, inner, args)

    def _check_expressions(self, data: Any, node: SourceNode) -> None:
        """Collect what is wrong with the conditions of an ``assert`` and of a selection."""
        if isinstance(data, dict):
            select = data.get("select")
            where = select.get("where") if isinstance(select, dict) else None
            tuple(self._conditions(data.get("that"), node.child("that")))
            tuple(self._conditions(where, node.child("select", "where")))

    def _notices(self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys) -> Iterator[NotifiedHandler]:
        for index, name in enumerate(as_list(body.get("notify", []))):
            place = node.child("notify", index) if isinstance(body["notify"], list) else node.child("notify")
            if isinstance(name, str | int) and not isinstance(name, bool):
                if not isinstance(name, UnrenderedTemplate) and str(name) not in inherited.handlers:
                    self._problems.add(unknown_handler(str(name), place, inherited.handlers))
                yield NotifiedHandler(name if isinstance(name, UnrenderedTemplate) else str(name), place)

    def _imported_tasks(self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys) -> Iterator[Task]:
        target = self._import(body["import_tasks"], node.child("import_tasks"), node.document.file, inherited)
        if target:
            yield from self.task_file(target, replace(inherited, files=(*inherited.files, target)))

    def task_file(self, file: str, inherited: InheritedKeys | None = None) -> list[Task]:
        """Return the tasks of a file that import_tasks names."""
        tasks: list[Task] = []
        with self._problems.gather():
            document = self._files.flawed(file)
            checked = self._checked(SourceNode(document), TaskFile, "a task file must be a list of tasks")
            inherited = inherited or InheritedKeys(files=(file,))
            tasks += self._tasks(checked.data, SourceNode(document), inherited, checked)
        return tasks

    def _checked(self, node: SourceNode, model: type[Playbook | TaskFile], expected: str) -> _ValidatedFile:
        data = mark(node.document.data)
        self._problems.add(*node.document.flaws)
        if not isinstance(data, list):
            raise node.error(
                f"{expected}; this file {'is empty' if data is None else 'is not a list'}",
                "start each item with a dash: - name:",
            )
        found = validate_data(model, data, node)
        self._problems.add(*(each.problem for each in found.problems), *misplaced(data, node))
        for pending, path in _pending(data, ()):
            with self._problems.gather():
                check_template(pending, SourceNode(node.document, path))
        broken = {*node.document.broken, *(each.path for each in found.problems)}
        return _ValidatedFile(data, broken, found.parts)

    def _inner(self, body: dict[str, Any], node: SourceNode, inherited: InheritedKeys, level: Level) -> InheritedKeys:
        variables: Sequence[Variable] = ()
        with self._problems.gather():
            values = body.get("vars")
            variables = read_variables(values, level, node.child("vars")) if isinstance(values, dict) else ()
        return replace(
            inherited,
            conditions=(*inherited.conditions, *self._conditions(body.get("when"), node.child("when"))),
            tags=inherited.tags | tags_of(body.get("tags")),
            variables=(*inherited.variables, *variables),
            notify=(*inherited.notify, *self._notices(body, node, inherited)),
        )

    def _conditions(self, data: Any, node: SourceNode) -> Iterator[Condition]:
        """Yield the conditions of a key, and collect what is wrong with them."""
        for index, text in enumerate([] if data is None else as_list(data)):
            where = node.child(index) if isinstance(data, list) else node
            shown = str(text).lower() if isinstance(text, bool) else text
            if isinstance(shown, str) and shown.strip() and not isinstance(shown, UnrenderedTemplate):
                with self._problems.gather():
                    check_template(shown, where, expression=True)
                yield Condition(shown, where)


def tags_of(data: Any) -> frozenset[str]:
    """Return the tags of a list, or of a text with commas."""
    items = [] if data is None else as_list(data)
    return frozenset(part.strip() for item in items for part in str(item).split(",") if part.strip())


def _is_any_inside(paths: Collection[Path], node: SourceNode) -> bool:
    return any(path[: len(node.path)] == node.path for path in paths)


def _task_of(node: SourceNode, module: str, body: dict[str, Any], inherited: InheritedKeys, args: Model) -> Task:
    return Task(node, module, body, inherited, args, not has_pending(body[module]))


def unknown_handler(name: str, node: SourceNode, known: Sequence[str]) -> Problem:
    """Return the problem of a name under ``notify`` that is not a handler of the play."""
    return node.problem(f"handler {name!r} not found", nearest(name, known) or "add handlers: to the play")


def _handler_names(handlers: Any) -> Iterator[str]:
    """Yield the names of a play's handlers, also of those in a block, which is reported separately."""
    for each in handlers if isinstance(handlers, list) else []:
        if isinstance(each, dict):
            yield from [str(each["name"])] if "name" in each else []
            yield from _handler_names(each.get("block"))


def _pending(data: Any, path: Path) -> Iterator[tuple[UnrenderedTemplate, Path]]:
    if isinstance(data, UnrenderedTemplate):
        yield data, path
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from _pending(value, (*path, name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _pending(value, (*path, index))
