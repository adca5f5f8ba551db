"""Playbook files as plays and tasks: imports followed, blocks flattened, all that structure alone can tell checked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msauto.errors import Problem
from msauto.playbook.files import OUTSIDE, Files, beside
from msauto.playbook.schema.play import HANDLER_MODULES, MODULES, Playbook, TaskFile
from msauto.playbook.schema.validation import findings
from msauto.playbook.schema.values import UnrenderedTemplate, as_list, mark
from msauto.playbook.tasks.static_checks import check_task
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
    """One name under ``notify``; it may still be a template."""

    text: str
    node: SourceNode


@dataclass(frozen=True, slots=True)
class InheritedKeys:
    """What a play, a block or an import gives to all tasks in it."""

    conditions: tuple[Condition, ...] = ()
    tags: frozenset[str] = frozenset()
    variables: tuple[Variable, ...] = ()
    files: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()
    notify: tuple[NotifiedHandler, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A task: ``module`` is its name, ``data`` the whole mapping with templates pending."""

    node: SourceNode
    module: str
    data: dict[str, Any]
    around: InheritedKeys

    @property
    def args(self) -> SourceNode:
        """The spot of the module's arguments."""
        return self.node.child(self.module)


@dataclass(frozen=True, slots=True)
class Play:
    """A play: ``data`` is its mapping with templates pending, ``file`` the playbook that it stands in."""

    node: SourceNode
    file: str
    data: dict[str, Any]
    around: InheritedKeys
    tasks: tuple[Task, ...] = field(default_factory=tuple)
    handlers: tuple[Task, ...] = field(default_factory=tuple)


class Loader:
    """Loads playbooks, and collects what is wrong with them."""

    def __init__(self, files: Files, problems: Problems) -> None:
        self._files = files
        self._problems = problems

    def playbook(self, file: str, around: InheritedKeys | None = None) -> list[Play]:
        """Return the plays of a playbook, imported ones in their place."""
        around = around or InheritedKeys(files=(file,))
        plays: list[Play] = []
        with self._problems.gather():
            document = self._files.flawed(file)
            data, broken = self._checked(SourceNode(document), Playbook, "a playbook is a list of plays")
            for index, body in enumerate(data):
                node = SourceNode(document, (index,))
                if isinstance(body, dict):
                    plays += self._play(body, node, file, around, broken)
        return plays

    def _play(
        self, body: dict[str, Any], node: SourceNode, file: str, around: InheritedKeys, broken: set[Path]
    ) -> list[Play]:
        inner = self._inner(body, node, around, Level.PLAY)
        if "import_playbook" in body:
            return self._imported(body, node, file, inner)
        inner = replace(inner, handlers=_handler_names(body))
        handlers = tuple(self._handlers(body.get("handlers"), node.child("handlers"), inner, broken))
        tasks = tuple(self._tasks(body.get("tasks"), node.child("tasks"), inner, broken))
        if any(path == node.path for path in broken):
            return []
        return [Play(node, file, body, inner, tasks, handlers)]

    def _imported(self, body: dict[str, Any], node: SourceNode, file: str, around: InheritedKeys) -> list[Play]:
        name = body["import_playbook"]
        target = self._import(name, node.child("import_playbook"), file, around)
        return self.playbook(target, replace(around, files=(*around.files, target))) if target else []

    def _import(self, name: Any, node: SourceNode, file: str, around: InheritedKeys) -> str:
        if not isinstance(name, str):
            return ""
        if isinstance(name, UnrenderedTemplate):
            self._problems.add(node.problem("the name of an imported file cannot be a template", "write it out"))
            return ""
        target = beside(file, name)
        if target in around.files or len(around.files) > MAX_IMPORTS:
            chain = " → ".join([*around.files, target])
            self._problems.add(node.problem(f"the import leads back to itself: {chain}"))
            return ""
        if not self._files.may_be_named(target, around.files[0] if around.files else file):
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

    def _tasks(self, data: Any, node: SourceNode, around: InheritedKeys, broken: set[Path]) -> Iterator[Task]:
        for index, body in enumerate(data if isinstance(data, list) else []):
            if isinstance(body, dict):
                yield from self._task(body, node.child(index), around, broken)

    def _handlers(self, data: Any, node: SourceNode, around: InheritedKeys, broken: set[Path]) -> Iterator[Task]:
        """Yield the handlers of a play; they have the play's variables, and neither its tags nor anybody's notify."""
        seen: dict[str, int] = {}
        for index, body in enumerate(data if isinstance(data, list) else []):
            here = node.child(index)
            if not isinstance(body, dict) or _is_broken(here, broken):
                continue
            name = str(body["name"])
            if name in seen:
                first = node.child(seen[name]).place.line
                self._problems.add(
                    here.child("name").problem(
                        f"the handler {name!r} stands twice (first in line {first})", "rename one"
                    )
                )
            seen.setdefault(name, index)
            module = next(each for each in HANDLER_MODULES if each in body)
            yield Task(here, module, body, replace(self._inner(body, here, around, Level.TASK), notify=()))

    def _task(self, body: dict[str, Any], node: SourceNode, around: InheritedKeys, broken: set[Path]) -> Iterator[Task]:
        inner = self._inner(body, node, around, Level.BLOCK if "block" in body else Level.TASK)
        if "block" in body:
            yield from self._tasks(body["block"], node.child("block"), inner, broken)
            return
        if "import_tasks" in body:
            yield from self._imported_tasks(body, node, inner)
            return
        module = next((name for name in MODULES if name in body), "")
        with self._problems.gather():
            if not _is_broken(node, node.document.broken):  # what is not known says nothing new
                check_task(module, body, node)
            if not _is_broken(node, broken):
                yield Task(node, module, body, inner)

    def _notices(self, body: dict[str, Any], node: SourceNode, around: InheritedKeys) -> Iterator[NotifiedHandler]:
        for index, name in enumerate(as_list(body.get("notify", []))):
            place = node.child("notify", index) if isinstance(body["notify"], list) else node.child("notify")
            if isinstance(name, str | int) and not isinstance(name, bool):
                if not isinstance(name, UnrenderedTemplate) and str(name) not in around.handlers:
                    self._problems.add(unknown_handler(str(name), place, around.handlers))
                yield NotifiedHandler(name if isinstance(name, UnrenderedTemplate) else str(name), place)

    def _imported_tasks(self, body: dict[str, Any], node: SourceNode, around: InheritedKeys) -> Iterator[Task]:
        target = self._import(body["import_tasks"], node.child("import_tasks"), node.document.file, around)
        if target:
            yield from self.task_file(target, replace(around, files=(*around.files, target)))

    def task_file(self, file: str, around: InheritedKeys | None = None) -> list[Task]:
        """Return the tasks of a file for import_tasks."""
        tasks: list[Task] = []
        with self._problems.gather():
            document = self._files.flawed(file)
            data, broken = self._checked(SourceNode(document), TaskFile, "a task file is a list of tasks")
            tasks += self._tasks(data, SourceNode(document), around or InheritedKeys(files=(file,)), broken)
        return tasks

    def _checked(
        self, node: SourceNode, model: type[Playbook | TaskFile], expected: str
    ) -> tuple[list[Any], set[Path]]:
        data = mark(node.document.data)
        self._problems.add(*node.document.flaws)
        if not isinstance(data, list):
            raise node.error(
                f"{expected}; this is {'empty' if data is None else 'none'}", "begin each with a dash: - name:"
            )
        found = findings(model, data, node)
        broken: set[Path] = set(node.document.broken)
        if isinstance(found, list):
            self._problems.add(*(each.problem for each in found))
            broken |= {each.path for each in found}
        self._problems.add(*misplaced(data, node))
        for pending, path in _pending(data, ()):
            with self._problems.gather():
                check_template(pending, SourceNode(node.document, path))
        return data, broken

    def _inner(self, body: dict[str, Any], node: SourceNode, around: InheritedKeys, level: Level) -> InheritedKeys:
        variables: Sequence[Variable] = ()
        with self._problems.gather():
            sourced = body.get("vars")
            variables = read_variables(sourced, level, node.child("vars")) if isinstance(sourced, dict) else ()
        return replace(
            around,
            conditions=(*around.conditions, *self._conditions(body.get("when"), node.child("when"))),
            tags=around.tags | tags_of(body.get("tags")),
            variables=(*around.variables, *variables),
            notify=(*around.notify, *self._notices(body, node, around)),
        )

    def _conditions(self, data: Any, node: SourceNode) -> Iterator[Condition]:
        for index, text in enumerate([] if data is None else as_list(data)):
            where = node.child(index) if isinstance(data, list) else node
            shown = str(text).lower() if isinstance(text, bool) else text
            if isinstance(shown, str) and shown.strip() and not isinstance(shown, UnrenderedTemplate):
                with self._problems.gather():
                    check_template(shown, where, expression=True)
                yield Condition(shown, where)


def tags_of(data: Any) -> frozenset[str]:
    """Return tags: a list, or a text with commas."""
    items = [] if data is None else as_list(data)
    return frozenset(part.strip() for item in items for part in str(item).split(",") if part.strip())


def _is_broken(node: SourceNode, broken: Collection[Path]) -> bool:
    return any(path[: len(node.path)] == node.path for path in broken)


def unknown_handler(name: str, node: SourceNode, known: Sequence[str]) -> Problem:
    """Return what is wrong with a name under ``notify`` that no handler of the play has."""
    return node.problem(f"there is no handler {name!r}", nearest(name, known) or "add handlers: to the play")


def _handler_names(body: dict[str, Any]) -> tuple[str, ...]:
    """Return the names of a play's handlers; those in a block, which is told, are known as well."""
    return tuple(_names_in(body.get("handlers")))


def _names_in(handlers: Any) -> Iterator[str]:
    for each in handlers if isinstance(handlers, list) else []:
        if isinstance(each, dict):
            yield from [str(each["name"])] if "name" in each else []
            yield from _names_in(each.get("block"))


def _pending(data: Any, path: Path) -> Iterator[tuple[UnrenderedTemplate, Path]]:
    if isinstance(data, UnrenderedTemplate):
        yield data, path
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from _pending(value, (*path, name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _pending(value, (*path, index))
