"""The modules that run something, or ask (command, thumbnail, proxy, assert, xmp_batch): to intents and handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from msauto.errors import InputError, Problem
from msauto.model.desired import AssertionPassed, DatabaseRef, Desired, Handler, Intent, TaskSource
from msauto.model.facts import Facts
from msauto.playbook.schema.operations import AssertArgs, CommandArgs, ProxyArgs, RunTarget, TargetKeys, ThumbnailArgs
from msauto.playbook.schema.validation import read_as
from msauto.playbook.schema.values import has_pending
from msauto.playbook.tasks.asset_module import named_at, ref_of
from msauto.playbook.tasks.operation_modules import check_dest, run_wanted, xmp_batch_wanted
from msauto.playbook.tasks.plays import Condition
from msauto.playbook.tasks.task_secrets import render_task
from msauto.playbook.templates.conditions import holds, refuse_pending, undecided, where_of
from msauto.playbook.templates.sandbox import AssetView, UsesAssetError
from msauto.playbook.variables.variables import TemplateScope
from msauto.playbook.yaml.document import Problems, SourceNode

MODELS: Mapping[str, type[TargetKeys]] = {
    "command": CommandArgs,
    "thumbnail": ThumbnailArgs,
    "proxy": ProxyArgs,
    "assert": AssertArgs,
}
_REF_KEYS = ("title", "id", "select")
_KNOWN_BEFORE = (*_REF_KEYS, "missing")


@dataclass(frozen=True, slots=True)
class OperationTask:
    """One task of such a module on one host: its arguments rendered as far as they can be without the asset."""

    module: str
    scope: TemplateScope
    conditions: tuple[Condition, ...]
    data: Any
    node: SourceNode
    task: str

    def desired(self, data: Any, scope: TemplateScope) -> Desired:
        """Return what arguments want that are rendered whole; raises :class:`InputError`."""
        if self.module == "assert":
            return _asserted(data, self.node, self.task, scope)
        return run_wanted(self.module, data, self.node, self.task, scope.surroundings)


def run_intent(run: OperationTask, database: Callable[[TemplateScope], str], source: TaskSource) -> Intent | None:
    """Return the intent of one task; ``None`` for an ``assert`` without an asset, which is answered here."""
    if run.module == "xmp_batch":
        return _batch_intent(run, database, source)
    problems = Problems()
    for name in _KNOWN_BEFORE:
        if name in run.data:
            with problems.gather():
                refuse_pending(run.data[name], run.node.child(name), "it is not known yet which asset is meant")
    args, name, where = None, "", None
    with problems.gather():
        args = read_as(MODELS[run.module], run.data, run.node)
    with problems.gather():
        where = where_of(run.data, run.scope, run.node)
    with problems.gather():
        _check(run)
    if args is not None and any(getattr(args, key) is not None for key in _REF_KEYS):
        with problems.gather():
            name = database(run.scope)
    problems.check()
    if args is None:
        raise AssertionError("arguments without problems are arguments")
    if not name:
        _answered(run)
        return None
    ref = ref_of(args.title, args.id, args.select, name, where)
    missing = args.missing if isinstance(args, RunTarget) else None
    return Intent(ref, source, _OperationEvaluator(run), missing or "error", named=named_at(args, run.node, run.task))


def handler_of(run: OperationTask, name: str, source: TaskSource, order: tuple[int, ...]) -> Handler:
    """Return a handler for one item of its loop; raises :class:`InputError` for what is known to be wrong already."""
    _check(run)
    return Handler(name, source, _OperationEvaluator(run), order)


@dataclass(frozen=True, slots=True)
class _OperationEvaluator:
    """The pure function of an intent: facts to wanted."""

    run: OperationTask

    def __call__(self, facts: Facts) -> Desired | None:
        run = self.run
        names = run.scope.with_asset(AssetView(facts))
        if not all(holds(condition, names) for condition in run.conditions):
            return None
        return run.desired(render_task(run.module, run.data, names, run.node), names)


def _check(run: OperationTask) -> None:
    """Raise for what can be known without the asset."""
    if run.module == "assert":
        _check_that(run)
    elif not has_pending(run.data):
        run.desired(run.data, run.scope)
    elif not has_pending(run.data.get("dest")) and "dest" in run.data:
        check_dest(run.data["dest"], run.node.child("dest"), run.scope.surroundings)


# assert --------------------------------------------------------------------------------------------------------


def _that(data: Mapping[str, Any], node: SourceNode) -> tuple[Condition, ...]:
    texts = data.get("that")
    here = node.child("that")
    if not isinstance(texts, list):
        texts = [] if texts is None else [texts]
        return tuple(Condition(_expression(text), here) for text in texts)
    return tuple(Condition(_expression(text), here.child(index)) for index, text in enumerate(texts))


def _expression(text: Any) -> str:
    return str(text).lower() if isinstance(text, bool) else str(text)


def _check_that(run: OperationTask) -> None:
    """Raise for a condition that does not hold whatever the asset is, if the task applies whatever the asset is."""
    problems = Problems()
    for condition in _that(run.data, run.node):
        with problems.gather():
            if undecided((condition,), run.scope) is None and not run.conditions:
                problems.add(_fails(condition, run.data.get("msg")))
    problems.check()


def _fails(condition: Condition, message: Any) -> Problem:
    sourced = f"{message} ({condition.text})" if message is not None else f"it does not hold: {condition.text}"
    return condition.node.problem(f"assert: {sourced}", "mend what is there, or the expectation")


def _asserted(data: Any, node: SourceNode, task: str, names: TemplateScope) -> AssertionPassed:
    """Return that all conditions hold; raises :class:`InputError` with each that does not, at its place."""
    problems = Problems()
    message = data.get("msg")
    for condition in _that(data, node):
        with problems.gather():
            if not holds(condition, names):
                problems.add(_fails(condition, message))
    problems.check()
    return AssertionPassed(TaskSource.at(node.place, task))


def _answered(run: OperationTask) -> None:
    """Answer an ``assert`` that is about variables alone."""
    if run.conditions:
        raise run.conditions[0].node.error("this assert names no asset", "add title, id or select")
    refuse_pending(run.data, run.node, "this assert names no asset: add title, id or select")
    try:
        _asserted(run.data, run.node, run.task, run.scope)
    except UsesAssetError as error:
        raise run.node.child("that").error(
            "asset cannot be used here: this assert names none", "add title, id or select"
        ) from error


# xmp_batch -----------------------------------------------------------------------------------------------------


def _batch_intent(run: OperationTask, database: Callable[[TemplateScope], str], source: TaskSource) -> Intent:
    problems = Problems()
    name, desired = "", None
    if run.conditions:
        problems.add(run.conditions[0].node.problem("a batch has no asset", "say when without asset"))
    with problems.gather():
        refuse_pending(run.data, run.node, "a batch has no asset")
        desired = xmp_batch_wanted(run.data, run.node, run.task, run.scope.surroundings)
    with problems.gather():
        name = database(run.scope)
    problems.check()
    if desired is None:
        raise InputError([])
    found = desired
    return Intent(DatabaseRef(name), source, lambda facts: found)  # noqa: ARG005 - constant
