"""Conditions over facts (``when``, ``where``, ``that``), and what may not look at an asset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msauto.model.facts import Facts
from msauto.playbook.schema.values import UnrenderedTemplate, as_list
from msauto.playbook.tasks.plays import Condition
from msauto.playbook.templates.environment import check_names, evaluate_expression
from msauto.playbook.templates.sandbox import AssetView, UsesAssetError
from msauto.playbook.variables.variables import TemplateScope
from msauto.playbook.yaml.document import Problems, SourceNode

Where = Callable[[Facts], bool]


def undecided(conditions: Sequence[Condition], scope: TemplateScope) -> tuple[Condition, ...] | None:
    """Return the conditions that need the asset; ``None`` where one is false already."""
    open_still: list[Condition] = []
    for condition in conditions:
        try:
            if not holds(condition, scope):
                return None
        except UsesAssetError:
            check_names(condition.text, scope, condition.node, expression=True)
            open_still.append(condition)
    return tuple(open_still)


def holds(condition: Condition, scope: TemplateScope) -> bool:
    """Tell whether a condition holds. A text is no answer: ``"false"`` would be true."""
    value = evaluate_expression(condition.text, scope, condition.node)
    if isinstance(value, str):
        raise condition.node.error("the condition yields text, neither true nor false", "compare it, or use | bool")
    return bool(value)


def refuse_pending(data: Any, node: SourceNode, why: str) -> None:
    """Raise for each template of ``data`` that looks at the asset where it cannot."""
    problems = Problems()
    for where in pending_spots(data, node):
        problems.add(where.problem(f"asset cannot be used here: {why}"))
    problems.check()


def pending_spots(data: Any, node: SourceNode) -> Iterator[SourceNode]:
    """Yield the spots of templates that are still to be rendered."""
    if isinstance(data, UnrenderedTemplate):
        yield node
    elif isinstance(data, dict):
        for name, value in data.items():
            yield from pending_spots(value, node.child(name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from pending_spots(value, node.child(index))


def where_of(data: dict[str, Any], scope: TemplateScope, node: SourceNode) -> Where | None:
    """Return the ``where`` of a selection as a function of facts; raises for names that are not there."""
    select = data.get("select")
    if not isinstance(select, dict) or "where" not in select:
        return None
    inner = node.child("select", "where")
    texts = as_list(select["where"])
    conditions = tuple(Condition(str(text).lower() if isinstance(text, bool) else text, inner) for text in texts)
    undecided(conditions, scope)  # shows unknown names before any server is asked

    def where(facts: Facts) -> bool:
        names = scope.with_asset(AssetView(facts))
        return all(holds(condition, names) for condition in conditions)

    return where
