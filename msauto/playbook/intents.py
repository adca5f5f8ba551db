"""Tasks and handlers on one host: loops, conditions and arguments become intents."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct, structs

from msauto.aspects import CHECKED_FOR_SERVER
from msauto.aspects.arguments import TaskArguments
from msauto.aspects.rss_arguments import RssArgs
from msauto.documents.document import Problems, SourceNode, SourceText, UnrenderedTemplate
from msauto.documents.strict_model import Model
from msauto.documents.value_types import as_list, has_pending
from msauto.errors import InputError, Problem, SourceLocation
from msauto.model import desired as model
from msauto.model.facts import Facts
from msauto.model.server import Dialect, ServerSpec
from msauto.playbook.hosts import database_of
from msauto.playbook.plays import InheritedKeys, Loop, Play, Task, check_arguments, unknown_handler
from msauto.playbook.schema.play import TARGET_NAMES, AssertArgs, AssetArgs, TargetKeys, aspects_of
from msauto.playbook.schema.schema_errors import read_as
from msauto.playbook.templates import rendering
from msauto.playbook.templates.names import AssetView, PathPartView, UsesAssetError
from msauto.playbook.variables import Level, TemplateScope, Variable, name_problems
from msauto.secrets.sources import may_be_secret, misplaced_secrets

_REF_KEYS = ("title", "id", "was", "select", "missing")
"""The arguments that name the asset: rendered before any server is asked."""
_NO_SERVER_READ = "handlers are resolved before any server is read"
MAX_LOOP = 100_000
_LOOP_SECONDS: Final = 10
"""The most time that a loop may take of the processor, besides that of each of its items."""
_ITEM_SECONDS: Final = 0.005
_WORD: Final = re.compile(r"\w+")


Order = tuple[int, ...]
"""Where a task with loops around it comes in its play: the numbers of the loops, of their items, and of the task."""


class TaskContext(Struct, frozen=True):
    """What the tasks of a play share on one host: the server, the variables, and for each handler those it makes."""

    server: ServerSpec
    scope: TemplateScope
    play: Play
    handlers: list[list[model.Handler]] = []
    batch: int = 0


def task_intents(
    task: Task, context: TaskContext, problems: Problems
) -> Iterator[tuple[Order, model.Intent]]:
    """Yield the intents of one task on one host; ``problems`` collects what is wrong."""
    for order, scope in _scopes(task.inherited, context.scope, problems):
        with problems:
            host_task = _on_host(task, context, scope)
            intent = _intent(host_task, context) if host_task else None
            notify = _notified(task, context, scope) if task.inherited.notify else ()
            if intent is not None:
                intent = structs.replace(intent, notify=notify, batch=context.batch)
                yield (*order, task.number), intent


def _notified(task: Task, context: TaskContext, scope: TemplateScope) -> tuple[model.Handler, ...]:
    """Return the handlers that a task names, those of its role first; raises :class:`InputError` for unknown names."""
    problems = Problems()
    notified: list[model.Handler] = []
    for notice in task.inherited.notify:
        with problems:
            names = rendering.render_shown(notice.text, scope, notice.node, _NO_SERVER_READ)
            for name in map(str, as_list(names)):
                for number in _handlers_called(name, task, context.play, notice.node):
                    notified += context.handlers[number]
    problems.check()
    return tuple(notified)


def _handlers_called(name: str, task: Task, play: Play, node: SourceNode) -> list[int]:
    """Return the numbers of the handlers with a name: those of the task's role, or of the play."""
    if name in task.inherited.handlers:
        return [task.inherited.handlers[name]]
    if name not in play.handler_names:
        raise InputError([unknown_handler(name, node, tuple(play.handler_names))])
    places: set[SourceLocation] = set()
    numbers: list[int] = []
    for number, handler in enumerate(play.handlers):
        if handler.name == name:
            numbers.append(number)
            places.add(handler.node.place)
    if len(places) < len(numbers):
        why = (
            f"the role of the handler {name!r} is imported more than once, with different variables"
        )
        raise node.error(why, "notify it from tasks of the role, or write the handler in the play")
    return numbers  # none of an invalid handler, which is reported itself


def task_handlers(
    task: Task, context: TaskContext, order: Order, problems: Problems
) -> Iterator[model.Handler]:
    """Yield the handlers of one handler task on one host, one for each item of its loop."""
    for items, scope in _scopes(task.inherited, context.scope, problems):
        with problems:
            host_task = _on_host(task, context, scope, task.name)
            if host_task is not None:
                evaluate = host_task.evaluator(host_task.arguments())
                yield model.Handler(host_task.name, host_task.source, evaluate, (*order, *items))


def _scopes(
    inherited: InheritedKeys, scope: TemplateScope, problems: Problems
) -> Iterator[tuple[Order, TemplateScope]]:
    """Yield the names that a task uses on one host, for each item of its loops, the outer loop first.

    A loop ends where it has too many items or takes too long, so that those around it end, too.
    """
    if inherited.loop is None:
        yield (), scope.with_variables(inherited.variables, inherited.role)
        return
    loop = inherited.loop
    written = loop.node.child("loop")
    total = 0
    end = time.thread_time() + _LOOP_SECONDS
    inner = inherited.variables[len(loop.around.variables) :]
    for order, outer in _scopes(loop.around, scope, problems):
        if _is_guarded(loop, outer):
            continue
        items: list[Any] = []
        with problems:
            items = _items(loop, outer)
        total += len(items)
        if total > MAX_LOOP:
            remedy = "choose the assets with select, or split the list"
            problems.append(written.problem(f"the loop has more than {MAX_LOOP:,} items", remedy))
            return
        for index, item in enumerate(items):
            end += _ITEM_SECONDS
            if _is_too_slow(written, end, problems):
                return
            values = ((item, loop.node.child("loop", index)), (index, written))
            variables: list[Variable] = []
            for (name, _), (value, node) in zip(loop.variables(), values, strict=False):
                variables.append(Variable(name, value, Level.LOOP, node))
            names = (*inner, *variables)
            yield (*order, loop.number, index), outer.with_variables(names, inherited.role)
        if _is_too_slow(written, end, problems):
            return


def _is_guarded(loop: Loop, scope: TemplateScope) -> bool:
    """Return whether a condition that needs no item is false: the loop is not evaluated then."""
    names = {name for name, _ in loop.variables()}
    for condition in loop.around.conditions:
        if not names.isdisjoint(_WORD.findall(condition.text)):
            continue
        with suppress(InputError):  # reported for the task
            if rendering.undecided((condition,), scope) is None:
                return True
    return False


def _is_too_slow(loop: SourceNode, end: float, problems: Problems) -> bool:
    """Return whether a loop takes longer than it may, which is a problem."""
    if time.thread_time() <= end:
        return False
    why = f"the loop takes more than {_LOOP_SECONDS} seconds"
    problems.append(loop.problem(why, "loop over less, or simplify the templates of the task"))
    return True


def _items(loop: Loop, scope: TemplateScope) -> list[Any]:
    node = loop.node.child("loop")
    for name, place in loop.variables():
        Problems(name_problems(name, place)).check()
    try:
        items = rendering.render_data(loop.data["loop"], scope, node)
    except UsesAssetError as error:
        remedy = "choose the assets with select, or use variables"
        raise node.error(
            "a loop cannot use asset: it is evaluated before any server is read", remedy
        ) from error
    if not isinstance(items, list):
        if not isinstance(loop.data["loop"], UnrenderedTemplate):
            return []  # of what holds tasks; reported where it is read
        remedy = "write [item, …]"
        if isinstance(items, dict):
            remedy = "convert the mapping with | dict2items"
        raise node.error("a loop requires a list", remedy, kind="wrong-type")
    return items


def _task_name(task: Task, scope: TemplateScope) -> str:
    """Return the name of a task in plans, with the labels of the items of its loops."""
    labels: list[str] = []
    loop = task.inherited.loop
    while loop is not None:
        if "label" in loop.control:
            node = loop.node.child("loop_control", "label")
            label = rendering.render_shown(loop.control["label"], scope, node, "")
            labels.insert(0, str(label))
        loop = loop.around.loop
    name = task.data.get("name", "")
    if isinstance(name, UnrenderedTemplate):
        name = rendering.render_shown(name, scope, task.node.child("name"), "")
    label = ", ".join(labels)
    if name and label:
        return f"{name} ({label})"
    return str(name or label)


class _HostTask(Struct, frozen=True):
    """One task on one host, for one item of its loop.

    ``data`` are its arguments, rendered as far as possible without the asset; ``needs_asset``: some of them need it.
    ``conditions`` are those that need it. For the evaluation, ``args`` are the arguments of an ``assert`` that do not
    depend on the asset, and ``constant`` is the desired state that other ones make.
    """

    task: Task
    scope: TemplateScope
    dialect: Dialect
    conditions: tuple[SourceText, ...]
    name: str
    data: Any
    needs_asset: bool
    node: SourceNode
    args: Model | None = None
    constant: model.Desired | None = None

    @property
    def source(self) -> model.TaskSource:
        return model.TaskSource.at(self.task.node.place, self.name)

    def arguments(self, data: Any = None) -> Model:
        """Return the arguments; raises :class:`InputError`."""
        args = self.task.args
        problems: list[Problem] = []
        if self.task.is_templated:
            rendered = self.data if data is None else data
            args = read_as(type(args), rendered, self.node)
            problems += check_arguments(args, self.node)
        if isinstance(args, AssetArgs):
            for aspect in CHECKED_FOR_SERVER:
                problems += aspect.check_for(args, self.node, self.dialect)
        if problems:
            raise InputError(problems)
        return args

    def evaluator(self, args: Model) -> _HostTask:
        """Return this task as an evaluation; raises :class:`InputError` for what is wrong for every asset."""
        if isinstance(args, AssertArgs):
            if not self.conditions:  # what is false for every asset
                self._check_assert(
                    args,
                    lambda condition: rendering.undecided((condition,), self.scope) is not None,
                )
            return self if self.needs_asset else structs.replace(self, args=args)
        if not self.needs_asset:
            return structs.replace(self, constant=self.desired(args, self.scope))
        dest = getattr(args, "dest", None)
        if dest is not None and not isinstance(dest, UnrenderedTemplate):
            self.scope.surroundings.dest(dest, self.node.child("dest"))
        return self

    def __call__(self, facts: Facts) -> model.Desired | None:
        """Return the desired state of one target, as a pure function of its facts."""
        if self.conditions or self.constant is None:
            scope = self.scope.with_given(asset=AssetView(facts))
        if not all(rendering.holds(condition, scope) for condition in self.conditions):
            return None
        if self.constant is not None:
            return self.constant
        args = self.args
        if args is None:
            args = self.arguments(self._rendered(scope, facts))
        return self.desired(args, scope)

    def _rendered(self, scope: TemplateScope, facts: Facts) -> Any:
        """Return the arguments; in the path of a file that is written, each text of the server is one part."""
        module = self.task.module
        data = self.data
        if not isinstance(data, dict) or "dest" not in data:
            return render_task(module, data, scope, self.node)
        others = dict(data)
        dest = {"dest": others.pop("dest")}
        in_path = self.scope.with_given(asset=PathPartView(facts))
        path = render_task(module, dest, in_path, self.node)
        return render_task(module, others, scope, self.node) | path

    def desired(self, args: Model, scope: TemplateScope) -> model.Desired:
        """Return the desired state of arguments that are rendered whole."""
        if isinstance(args, AssertArgs):
            self._check_assert(args, lambda condition: rendering.holds(condition, scope))
            return model.AssertionPassed(model.TaskSource.at(self.node.place, self.name))
        outside = self.task.inherited.outside
        return desired_of(TaskArguments(args, self.node, self.name, scope.surroundings, outside))

    def _check_assert(self, args: AssertArgs, may_hold: Callable[[SourceText], bool]) -> None:
        """Raise :class:`InputError` with each condition that does not hold, at its place."""
        problems = Problems()
        for condition in self.task.that:
            with problems:
                if not may_hold(condition):
                    why = f"the condition is false: {condition.text}"
                    if args.msg is not None:
                        why = f"{args.msg} ({condition.text})"
                    problems.append(
                        condition.node.problem(f"assert: {why}", "fix the asset, or the condition")
                    )
        problems.check()


def _on_host(
    task: Task, context: TaskContext, scope: TemplateScope, name: str | None = None
) -> _HostTask | None:
    """Return a task on one host, for one item of its loop; ``None`` if a condition is false for every asset.

    ``name`` is that of a handler, which is the same for all items.
    """
    conditions = rendering.undecided(task.inherited.conditions, scope)
    if conditions is None:
        return None
    if name is None:
        name = _task_name(task, scope)
    node = task.node.child(task.module)
    data = task.data[task.module]
    needs_asset = False
    if task.is_templated:
        data = render_task(task.module, data, scope, node, keep=True)
        needs_asset = has_pending(data)
    dialect = context.server.dialect
    return _HostTask(task, scope, dialect, conditions, name, data, needs_asset, node)


_WITHOUT_ASSET = {"rss": "an RSS channel has no asset", "xmp_batch": "a batch has no asset"}
"""The modules whose target is a channel or a database, and why they cannot use the asset."""


def _intent(host_task: _HostTask, context: TaskContext) -> model.Intent | None:
    """Return the intent of a task; ``None`` for an ``assert`` about variables alone, which is evaluated here."""
    data = host_task.data
    node = host_task.node
    where = host_task.task.where
    problems = Problems()
    if host_task.needs_asset or host_task.conditions:
        problems += _too_early(host_task)
    with problems:
        args = host_task.arguments()
        evaluate = host_task.evaluator(args)
    if where:
        with problems:
            rendering.undecided(
                where, host_task.scope
            )  # reports undefined names before any request
    target = next((name for name in TARGET_NAMES if name in data), None)
    database = ""
    if target is not None or host_task.task.module == "xmp_batch":
        with problems:
            database = database_of(host_task.scope, context.server.name, context.play.node)
    problems.check()  # what is assigned above is known
    if isinstance(args, RssArgs):
        return model.Intent(model.ChannelRef(args.channel), host_task.source, evaluate)
    if not isinstance(args, TargetKeys):
        return model.Intent(model.DatabaseRef(database), host_task.source, evaluate)
    if target is None:
        _assert_without_asset(host_task, args)
        return None
    condition = rendering.Where(where, host_task.scope) if where else None
    return model.Intent(
        asset_ref(args, database, condition),
        host_task.source,
        evaluate,
        getattr(args, "missing", None) or "error",
        getattr(args, "state", None) == "absent",
        named=model.TaskSource.at(node.child(target).place, host_task.name),
    )


def _too_early(host_task: _HostTask) -> list[Problem]:
    """Return the problems of what needs the asset before it is known, or where the target has no asset."""
    data, node = host_task.data, host_task.node
    why = _WITHOUT_ASSET.get(host_task.task.module)
    problems: list[Problem] = []
    if why is None:
        why = "the asset is not known yet"
        for name in _REF_KEYS:
            if name in data:
                problems += rendering.refused(data[name], node.child(name), why)
        return problems
    for condition in host_task.conditions[:1]:
        problems.append(condition.node.problem(why, "remove asset from when"))
    return [*problems, *rendering.refused(data, node, why)]


def asset_ref(args: TargetKeys, database: str, where: rendering.Where | None) -> model.Ref:
    """Return which assets the arguments name; title, id, select and was are rendered."""
    if args.title is not None:
        former: tuple[str, ...] = ()
        if isinstance(args, AssetArgs) and args.was is not None:
            former = tuple(as_list(args.was))
        return model.TitleRef(database, args.title, former)
    if args.id is not None:
        namespace, _, identifier = args.id.partition(":")
        return model.IdRef(database, namespace, identifier)
    select = args.select
    assert select is not None
    expect_min = expect_max = None
    if select.expect:
        expect_min, expect_max = select.expect.min, select.expect.max
    return model.SelectRef(
        database=database,
        folder=select.folder or (),
        recursive=bool(select.recursive),
        created_after=select.created_after,
        created_before=select.created_before,
        created_within=select.created_within,
        mimetypes=tuple(as_list(select.mimetype or [])),
        where=where,
        expect_min=expect_min,
        expect_max=expect_max,
    )


def _assert_without_asset(host_task: _HostTask, args: Model) -> None:
    """Evaluate an ``assert`` that is about variables alone."""
    if host_task.conditions:
        raise host_task.conditions[0].node.error(
            "this assert names no asset", "add title, id or select"
        )
    why = "this assert names no asset: add title, id or select"
    Problems(rendering.refused(host_task.data, host_task.node, why)).check()
    try:
        host_task.desired(args, host_task.scope)
    except UsesAssetError as error:
        why = "asset cannot be used here: this assert names none"
        raise host_task.node.child("that").error(why, "add title, id or select") from error


def desired_of(task: TaskArguments) -> model.Desired:
    """Return what a task asks for, each value with its place; raises :class:`InputError` for files that are refused."""
    args: Model = task.args
    aspects = aspects_of(type(args), frozenset(args.model_fields_set))
    if not isinstance(args, AssetArgs):
        operation: model.Desired = aspects[0].declare(task)
        return operation
    parts: dict[str, Any] = {}
    for aspect in aspects:
        part = aspect.declare(task)
        if part is not None:
            parts[aspect.name] = part
    folder = None if args.folder is None else model.Sourced(args.folder, task.source("folder"))
    return model.DesiredAsset(
        task.source(),
        parts,
        present=args.state != "absent",
        missing=args.missing or "error",
        unfinalized=args.unfinalized or "error",
        lossy=bool(args.lossy),
        folder=folder,
        with_links=bool(args.with_links),
    )


# Secrets: values that name a target or decide are shown, so they cannot be secret

_NO_TEXT = "this template turns a secret into a value that is not text, and cannot be redacted"
_MAKE_TEXT = "use the secret itself, or a text made from it"


def render_task(
    module: str, data: Any, scope: TemplateScope, node: SourceNode, *, keep: bool = False
) -> Any:
    """Render the arguments of a task; raises :class:`InputError` for secrets that cannot be redacted.

    ``keep`` as for :func:`~msauto.playbook.templates.rendering.render_data`.
    """
    tracker = scope.tracker
    before = len(tracker.lost)
    rendered = rendering.render_data(data, scope, node, keep=keep)
    if not tracker.secrets.texts:
        return rendered
    problems = Problems()
    for place in tracker.lost[before:]:
        problems.append(place.problem(_NO_TEXT, _MAKE_TEXT, kind="secret"))
    del tracker.lost[before:]
    for path, message, remedy in misplaced_secrets(
        rendered, lambda path: may_be_secret(module, path)
    ):
        problems.append(node.child(*path).problem(message, remedy, kind="secret"))
    problems.check()
    return rendered
