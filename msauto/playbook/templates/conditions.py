"""Conditions over facts (``when``, ``where``, ``that``), and errors for templates that must not use the asset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msauto.documents.document import Problems, SourceNode, SourceText
from msauto.documents.value_types import as_list, pending_templates
from msauto.model.facts import Facts
from msauto.playbook.templates.names import AssetView, UsesAssetError
from msauto.playbook.templates.rendering import check_names, evaluate_expression
from msauto.playbook.variables import TemplateScope


def undecided(conditions: Sequence[SourceText], scope: TemplateScope) -> tuple[SourceText, ...] | None:
    """Return the conditions that need the asset; ``None`` if another one is false."""
    remaining: list[SourceText] = []
    for condition in conditions:
        try:
            if not holds(condition, scope):
                return None
        except UsesAssetError:
            check_names(condition.text, scope, condition.node, expression=True)
            remaining.append(condition)
    return tuple(remaining)


def holds(condition: SourceText, scope: TemplateScope) -> bool:
    """Return whether a condition holds; raises :class:`InputError` for text, because ``"false"`` would be true."""
    value = evaluate_expression(condition.text, scope, condition.node)
    if isinstance(value, str):
        raise condition.node.error(
            "the condition gives text, not true or false", "compare it, or use | bool", kind="template"
        )
    return bool(value)


def refuse_pending(data: Any, node: SourceNode, why: str) -> None:
    """Raise for each template of ``data`` that uses the asset where it cannot."""
    message = f"asset cannot be used here: {why}"
    Problems(
        *(node.child(*path).problem(message, "use a variable", kind="template") for path, _ in pending_templates(data))
    ).check()


@dataclass(frozen=True, slots=True)
class Where:
    """The ``where`` of a selection: a function of facts, which can be pickled."""

    conditions: tuple[SourceText, ...]
    scope: TemplateScope

    def __call__(self, facts: Facts) -> bool:
        """Return whether all conditions hold."""
        names = self.scope.with_asset(AssetView(facts))
        return all(holds(condition, names) for condition in self.conditions)


def where_of(data: dict[str, Any], scope: TemplateScope, node: SourceNode) -> Where | None:
    """Return the ``where`` of a selection as a function of facts; raises :class:`InputError` for undefined names."""
    select = data.get("select")
    if not isinstance(select, dict) or "where" not in select:
        return None
    inner = node.child("select", "where")
    texts = as_list(select["where"])
    conditions = tuple(SourceText(str(text).lower() if isinstance(text, bool) else text, inner) for text in texts)
    undecided(conditions, scope)  # reports undefined names before any request

    return Where(conditions, scope)
