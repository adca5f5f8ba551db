"""Conditions over facts (``when``, ``where``, ``that``), and errors for templates that must not use the asset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msauto.model.facts import Facts
from msauto.playbook.schema.value_types import UnrenderedTemplate, as_list
from msauto.playbook.tasks.plays import Condition
from msauto.playbook.templates.environment import check_names, evaluate_expression
from msauto.playbook.templates.sandbox import AssetView, UsesAssetError
from msauto.playbook.variables.variables import TemplateScope
from msauto.playbook.yaml.document import Problems, SourceNode

Where = Callable[[Facts], bool]


def undecided(conditions: Sequence[Condition], scope: TemplateScope) -> tuple[Condition, ...] | None:
    """Return the conditions that need the asset; ``None`` if another one is false."""
    remaining: list[Condition] = []
    for condition in conditions:
        try:
            if not holds(condition, scope):
                return None
        except UsesAssetError:
            check_names(condition.text, scope, condition.node, expression=True)
            remaining.append(condition)
    return tuple(remaining)


def holds(condition: Condition, scope: TemplateScope) -> bool:
    """Return whether a condition holds; raises :class:`InputError` for text, because ``"false"`` would be true."""
    value = evaluate_expression(condition.text, scope, condition.node)
    if isinstance(value, str):
        raise condition.node.error("the condition gives text, not true or false", "compare it, or use | bool")
    return bool(value)


def refuse_pending(data: Any, node: SourceNode, why: str) -> None:
    """Raise for each template of ``data`` that uses the asset where it cannot."""
    problems = Problems()
    for unrendered in _unrendered(data, node):
        problems.add(unrendered.problem(f"asset cannot be used here: {why}"))
    problems.check()


def _unrendered(data: Any, node: SourceNode) -> Iterator[SourceNode]:
    if isinstance(data, UnrenderedTemplate):
        yield node
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from _unrendered(value, node.child(name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _unrendered(value, node.child(index))


def where_of(data: dict[str, Any], scope: TemplateScope, node: SourceNode) -> Where | None:
    """Return the ``where`` of a selection as a function of facts; raises :class:`InputError` for undefined names."""
    select = data.get("select")
    if not isinstance(select, dict) or "where" not in select:
        return None
    inner = node.child("select", "where")
    texts = as_list(select["where"])
    conditions = tuple(Condition(str(text).lower() if isinstance(text, bool) else text, inner) for text in texts)
    undecided(conditions, scope)  # reports undefined names before any request

    def where(facts: Facts) -> bool:
        names = scope.with_asset(AssetView(facts))
        return all(holds(condition, names) for condition in conditions)

    return where
