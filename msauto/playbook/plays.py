"""Playbook files as plays and tasks: imports followed, blocks flattened, all that structure alone can tell checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msauto.playbook.document import Path, Problems, Spot, nearest
from msauto.playbook.files import Files, beside
from msauto.playbook.schema import findings
from msauto.playbook.schema_play import MODULES, Playbook, TaskFile
from msauto.playbook.schema_values import Pending, as_list, mark
from msauto.playbook.static_checks import check_task
from msauto.playbook.templates import check_template
from msauto.playbook.variables import Level, Variable, read_variables

MAX_IMPORTS = 32
_PLAY_LATER = ("serial", "max_fail_percentage", "any_errors_fatal", "handlers")
_TASK_LATER = ("thumbnail", "proxy", "xmp_batch", "command", "assert", "notify")


@dataclass(frozen=True, slots=True)
class Condition:
    """One expression of a ``when``."""

    text: str
    spot: Spot


@dataclass(frozen=True, slots=True)
class Around:
    """What a play, a block or an import gives to all tasks in it."""

    conditions: tuple[Condition, ...] = ()
    tags: frozenset[str] = frozenset()
    variables: tuple[Variable, ...] = ()
    files: tuple[str, ...] = ()
    handlers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """A task: ``module`` is its name, ``data`` the whole mapping with templates pending."""

    spot: Spot
    module: str
    data: dict[str, Any]
    around: Around

    @property
    def args(self) -> Spot:
        """The spot of the module's arguments."""
        return self.spot.child(self.module)


@dataclass(frozen=True, slots=True)
class Play:
    """A play: ``data`` is its mapping with templates pending, ``file`` the playbook that it stands in."""

    spot: Spot
    file: str
    data: dict[str, Any]
    around: Around
    tasks: tuple[Task, ...] = field(default_factory=tuple)


class Loader:
    """Loads playbooks, and collects what is wrong with them."""

    def __init__(self, files: Files, problems: Problems) -> None:
        self._files = files
        self._problems = problems

    def playbook(self, file: str, around: Around | None = None) -> list[Play]:
        """Return the plays of a playbook, imported ones in their place."""
        around = around or Around(files=(file,))
        plays: list[Play] = []
        with self._problems.gather():
            document = self._files.document(file)
            data, broken = self._checked(Spot(document), Playbook, "a playbook is a list of plays")
            for index, body in enumerate(data):
                spot = Spot(document, (index,))
                if isinstance(body, dict):
                    plays += self._play(body, spot, file, around, broken)
        return plays

    def _play(self, body: dict[str, Any], spot: Spot, file: str, around: Around, broken: set[Path]) -> list[Play]:
        inner = self._inner(body, spot, around, Level.PLAY)
        if "import_playbook" in body:
            return self._imported(body, spot, file, inner)
        for name in _PLAY_LATER:
            if name in body:
                self._later(name, spot)
        inner = replace(inner, handlers=_handler_names(body))
        tasks = tuple(self._tasks(body.get("tasks"), spot.child("tasks"), inner, broken))
        if any(path == spot.path for path in broken):
            return []
        return [Play(spot, file, body, inner, tasks)]

    def _imported(self, body: dict[str, Any], spot: Spot, file: str, around: Around) -> list[Play]:
        name = body["import_playbook"]
        target = self._import(name, spot.child("import_playbook"), file, around)
        return self.playbook(target, replace(around, files=(*around.files, target))) if target else []

    def _import(self, name: Any, spot: Spot, file: str, around: Around) -> str:
        if not isinstance(name, str):
            return ""
        if isinstance(name, Pending):
            self._problems.add(spot.problem("the name of an imported file cannot be a template", "write it out"))
            return ""
        target = beside(file, name)
        if target in around.files or len(around.files) > MAX_IMPORTS:
            chain = " → ".join([*around.files, target])
            self._problems.add(spot.problem(f"the import leads back to itself: {chain}"))
            return ""
        return target if self._readable(target, spot) else ""

    def _readable(self, target: str, spot: Spot) -> bool:
        found = Problems()
        with found.gather():
            self._files.read(target)
        for problem in found.ordered():
            self._problems.add(spot.problem(f"{target}: {problem.message}"))
        return not found

    def _tasks(self, data: Any, spot: Spot, around: Around, broken: set[Path]) -> Iterator[Task]:
        for index, body in enumerate(data if isinstance(data, list) else []):
            if isinstance(body, dict):
                yield from self._task(body, spot.child(index), around, broken)

    def _task(self, body: dict[str, Any], spot: Spot, around: Around, broken: set[Path]) -> Iterator[Task]:
        inner = self._inner(body, spot, around, Level.BLOCK if "block" in body else Level.TASK)
        if "block" in body:
            yield from self._tasks(body["block"], spot.child("block"), inner, broken)
            return
        if "import_tasks" in body:
            yield from self._imported_tasks(body, spot, inner)
            return
        self._check_later(body, spot, around)
        module = next((name for name in MODULES if name in body), "")
        if module in _TASK_LATER or any(path[: len(spot.path)] == spot.path for path in broken):
            return
        task = Task(spot, module, body, inner)
        with self._problems.gather():
            check_task(module, body, spot)
            yield task

    def _check_later(self, body: dict[str, Any], spot: Spot, around: Around) -> None:
        for name in _TASK_LATER:
            if name in body:
                self._later(name, spot)
        for index, name in enumerate(as_list(body.get("notify", []))):
            if isinstance(name, str) and not isinstance(name, Pending) and name not in around.handlers:
                place = spot.child("notify", index) if isinstance(body["notify"], list) else spot.child("notify")
                self._problems.add(place.problem(f"there is no handler {name!r}", nearest(name, around.handlers)))

    def _later(self, name: str, spot: Spot) -> None:
        self._problems.add(spot.child(name).problem(f"{name} is not built yet", "leave it out", key=True))

    def _imported_tasks(self, body: dict[str, Any], spot: Spot, around: Around) -> Iterator[Task]:
        target = self._import(body["import_tasks"], spot.child("import_tasks"), spot.document.file, around)
        if target:
            yield from self.task_file(target, replace(around, files=(*around.files, target)))

    def task_file(self, file: str, around: Around | None = None) -> list[Task]:
        """Return the tasks of a file for import_tasks."""
        tasks: list[Task] = []
        with self._problems.gather():
            document = self._files.document(file)
            data, broken = self._checked(Spot(document), TaskFile, "a task file is a list of tasks")
            tasks += self._tasks(data, Spot(document), around or Around(files=(file,)), broken)
        return tasks

    def _checked(self, spot: Spot, model: type[Playbook | TaskFile], expected: str) -> tuple[list[Any], set[Path]]:
        data = mark(spot.document.data)
        if not isinstance(data, list):
            raise spot.error(
                f"{expected}; this is {'empty' if data is None else 'none'}", "begin each with a dash: - name:"
            )
        found = findings(model, data, spot)
        broken: set[Path] = set()
        if isinstance(found, list):
            self._problems.add(*(each.problem for each in found))
            broken = {each.path for each in found}
        for pending, path in _pending(data, ()):
            with self._problems.gather():
                check_template(pending, Spot(spot.document, path))
        return data, broken

    def _inner(self, body: dict[str, Any], spot: Spot, around: Around, level: Level) -> Around:
        variables: Sequence[Variable] = ()
        with self._problems.gather():
            said = body.get("vars")
            variables = read_variables(said, level, spot.child("vars")) if isinstance(said, dict) else ()
        return replace(
            around,
            conditions=(*around.conditions, *self._conditions(body.get("when"), spot.child("when"))),
            tags=around.tags | tags_of(body.get("tags")),
            variables=(*around.variables, *variables),
        )

    def _conditions(self, data: Any, spot: Spot) -> Iterator[Condition]:
        for index, text in enumerate([] if data is None else as_list(data)):
            where = spot.child(index) if isinstance(data, list) else spot
            shown = str(text).lower() if isinstance(text, bool) else text
            if isinstance(shown, str) and shown.strip() and not isinstance(shown, Pending):
                with self._problems.gather():
                    check_template(shown, where, expression=True)
                yield Condition(shown, where)


def tags_of(data: Any) -> frozenset[str]:
    """Return tags: a list, or a text with commas."""
    items = [] if data is None else as_list(data)
    return frozenset(part.strip() for item in items for part in str(item).split(",") if part.strip())


def _handler_names(body: dict[str, Any]) -> tuple[str, ...]:
    handlers = body.get("handlers")
    found = handlers if isinstance(handlers, list) else []
    return tuple(str(each["name"]) for each in found if isinstance(each, dict) and "name" in each)


def _pending(data: Any, path: Path) -> Iterator[tuple[Pending, Path]]:
    if isinstance(data, Pending):
        yield data, path
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from _pending(value, (*path, name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _pending(value, (*path, index))
