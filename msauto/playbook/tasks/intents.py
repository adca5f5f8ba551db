"""One task on one host, for one item of its loop: to an :class:`Intent`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msauto.errors import InputError
from msauto.model.desired import Desired, DesiredAsset, DesiredChannel, Handler, Intent, TaskSource
from msauto.model.facts import Facts
from msauto.model.server import ServerSpec
from msauto.playbook.schema.asset import AssetArgs
from msauto.playbook.schema.validation import read_as
from msauto.playbook.schema.values import UnrenderedTemplate, as_list, has_pending
from msauto.playbook.tasks.asset_checks import check_asset
from msauto.playbook.tasks.asset_module import REF_KEYS, asset_ref, check_separators, desired_asset, named_at
from msauto.playbook.tasks.operation_intents import OperationTask, handler_of, run_intent
from msauto.playbook.tasks.plays import Condition, NotifiedHandler, Task, unknown_handler
from msauto.playbook.tasks.rss_module import rss_ref, rss_wanted
from msauto.playbook.tasks.task_secrets import render_task, shown
from msauto.playbook.templates.conditions import holds, refuse_pending, undecided, where_of
from msauto.playbook.templates.environment import render_data, render_text
from msauto.playbook.templates.sandbox import AssetView, UsesAssetError
from msauto.playbook.variables.variables import Level, TemplateScope, Variable, check_name
from msauto.playbook.yaml.document import Problems, SourceNode

MAX_LOOP = 100_000
Database = Callable[[TemplateScope], str]
"""Returns the database that the names of a task lead to on this host; raises where there is none."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """What a task meets on one host: the server, the names, and how to find the database."""

    server: ServerSpec
    scope: TemplateScope
    database: Database
    handlers: Mapping[str, Sequence[Handler]] = field(default_factory=dict)
    batch: int = 0


def task_intents(task: Task, setting: TaskContext) -> Iterator[Intent]:
    """Yield the intents of one task on one host; raises :class:`InputError` with all that is wrong."""
    base = setting.scope.with_variables(task.around.variables)
    problems = Problems()
    for variables in _items(task, base):
        with problems.gather():
            scope = base.with_variables(variables) if variables else base
            intent = _intent(task, setting, scope)
            notify = _notified(task, setting, scope)
            if intent is not None:
                yield replace(intent, notify=notify, batch=setting.batch)
    problems.check()


def _notified(task: Task, setting: TaskContext, scope: TemplateScope) -> tuple[Handler, ...]:
    """Return the handlers that a task names; raises :class:`InputError` for a name that no handler has."""
    problems = Problems()
    found: list[Handler] = []
    for notice in task.around.notify:
        with problems.gather():
            for name in as_list(_notice_text(notice, scope)):
                if str(name) not in setting.handlers:
                    if str(name) in task.around.handlers:
                        continue  # there is one, and what is wrong with it is told
                    raise InputError([unknown_handler(str(name), notice.node, tuple(setting.handlers))])
                found += setting.handlers[str(name)]
    problems.check()
    return tuple(found)


def _notice_text(notice: NotifiedHandler, scope: TemplateScope) -> Any:
    if not isinstance(notice.text, UnrenderedTemplate):
        return notice.text
    try:
        return shown(render_text(notice.text, scope, notice.node), notice.node)
    except UsesAssetError as error:
        raise notice.node.error("asset cannot be used here: handlers are known before any server is asked") from error


def task_handlers(task: Task, setting: TaskContext, order: tuple[int, ...]) -> Iterator[Handler]:
    """Yield the handlers of one handler task on one host, one for each item of its loop."""
    base = setting.scope.with_variables(task.around.variables)
    name = str(task.data["name"])
    problems = Problems()
    for number, variables in enumerate(_items(task, base)):
        with problems.gather():
            scope = base.with_variables(variables) if variables else base
            conditions = undecided(task.around.conditions, scope)
            if conditions is not None:
                data = render_task(task.module, task.data[task.module], scope, task.args, keep=True)
                run = OperationTask(task.module, scope, conditions, data, task.args, name)
                yield handler_of(run, name, TaskSource.at(task.node.place, name), (*order, number))
    problems.check()


def _items(task: Task, scope: TemplateScope) -> Sequence[tuple[Variable, ...]]:
    if "loop" not in task.data:
        return ((),)
    node = task.node.child("loop")
    try:
        items = render_data(task.data["loop"], scope, node)
    except UsesAssetError as error:
        raise node.error("a loop cannot use the asset: it is known before any server is asked") from error
    if not isinstance(items, list):
        raise node.error(
            "a loop needs a list", "make one of a mapping with | dict2items" if isinstance(items, dict) else ""
        )
    if len(items) > MAX_LOOP:
        raise node.error(f"the loop has more than {MAX_LOOP:,} items")
    control = task.data.get("loop_control") or {}
    name, index_name = control.get("loop_var", "item"), control.get("index_var")
    for each, where in ((name, "loop_var"), (index_name, "index_var")):
        if each is not None:
            check_name(str(each), task.node.child("loop_control", where))
    return [_loop_variables(name, index_name, item, index, node) for index, item in enumerate(items)]


def _loop_variables(name: str, index_name: str | None, item: Any, index: int, node: SourceNode) -> tuple[Variable, ...]:
    found = [Variable(name, item, Level.LOOP, node.child(index))]
    if index_name:
        found.append(Variable(index_name, index, Level.LOOP, node))
    return tuple(found)


def _intent(task: Task, setting: TaskContext, scope: TemplateScope) -> Intent | None:
    conditions = undecided(task.around.conditions, scope)
    if conditions is None:
        return None
    source = TaskSource.at(task.node.place, _task_name(task, scope))
    data = render_task(task.module, task.data[task.module], scope, task.args, keep=True)
    if task.module == "rss":
        return _rss_intent(task, data, source, conditions)
    if task.module == "asset":
        return _asset_intent(task, setting, scope, data, source, conditions)
    return run_intent(
        OperationTask(task.module, scope, conditions, data, task.args, source.task), setting.database, source
    )


def _task_name(task: Task, scope: TemplateScope) -> str:
    """Return what a task is called in plans; with the label of the loop's item, if there is one."""
    control = task.data.get("loop_control") or {}
    name = _rendered(task.data.get("name", ""), task.node.child("name"), scope)
    if "label" not in control:
        return name
    label = _rendered(control["label"], task.node.child("loop_control", "label"), scope)
    return f"{name} ({label})" if name else label


def _rendered(name: Any, node: SourceNode, scope: TemplateScope) -> str:
    if isinstance(name, UnrenderedTemplate):
        try:
            return str(shown(render_text(name, scope, node), node))
        except UsesAssetError:
            return str(name)
    return str(shown(name, node))


def _rss_intent(task: Task, data: Any, source: TaskSource, conditions: tuple[Condition, ...]) -> Intent:
    node = task.args
    if conditions:
        raise conditions[0].node.error("an RSS channel has no asset", "say when without asset")
    refuse_pending(data, node, "an RSS channel has no asset")
    desired: DesiredChannel = rss_wanted(data, node, source.task)
    return Intent(rss_ref(data_text(data["channel"])), source, lambda facts: desired)  # noqa: ARG005 - constant


def data_text(value: Any) -> str:
    """Return a validated text as text."""
    return str(value)


def _asset_intent(
    task: Task,
    setting: TaskContext,
    scope: TemplateScope,
    data: Any,
    source: TaskSource,
    conditions: tuple[Condition, ...],
) -> Intent:
    node = task.args
    separator = setting.server.dialect.list_separator
    problems = Problems()
    for name in REF_KEYS:
        if name in data:
            with problems.gather():
                refuse_pending(data[name], node.child(name), "it is not known yet which asset is meant")
    args, database, where = None, "", None
    with problems.gather():
        args = _checked(data, node, separator)
    with problems.gather():
        database = setting.database(scope)
    with problems.gather():
        where = where_of(data, scope, node)
    problems.check()
    if args is None:
        raise AssertionError("arguments without problems are arguments")
    constant = None if has_pending(data) else desired_asset(data, node, source.task, separator)
    evaluate = _AssetEvaluator(scope, conditions, data, node, source.task, separator, constant)
    absent = data.get("state") == "absent"
    named = named_at(args, node, source.task)
    return Intent(asset_ref(args, database, where), source, evaluate, args.missing or "error", absent, named=named)


def _checked(data: Any, node: SourceNode, separator: str) -> AssetArgs:
    """Return the arguments, templates that need the asset left alone; raises for all that is wrong already."""
    args = read_as(AssetArgs, data, node)
    problems = [*check_asset(args, node), *check_separators(args, node, separator)]
    if problems:
        raise InputError(problems)
    return args


@dataclass(frozen=True, slots=True)
class _AssetEvaluator:
    """The pure function of an asset's intent: facts to wanted."""

    scope: TemplateScope
    conditions: tuple[Condition, ...]
    data: Any
    node: SourceNode
    task: str
    separator: str
    constant: DesiredAsset | None

    def __call__(self, facts: Facts) -> Desired | None:
        if self.constant is not None and not self.conditions:
            return self.constant
        names = self.scope.with_asset(AssetView(facts))
        if not all(holds(condition, names) for condition in self.conditions):
            return None
        if self.constant is not None:
            return self.constant
        data = render_task("asset", self.data, names, self.node)
        return desired_asset(data, self.node, self.task, self.separator)
