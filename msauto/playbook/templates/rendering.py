"""Renders plain data. Jinja2 is imported at the first template, because most playbooks have none."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from msauto.documents.document import Problems, SourceNode
from msauto.documents.value_types import UnrenderedTemplate
from msauto.playbook.templates.names import OMIT, TemplateNames, UsesAssetError


def _engine() -> ModuleType:
    from msauto.playbook.templates import environment

    return environment


def check_template(text: str, node: SourceNode, *, expression: bool = False) -> None:
    """Raise :class:`InputError` for an invalid template or expression."""
    _engine().check_template(text, node, expression=expression)


def check_names(text: str, names: TemplateNames, node: SourceNode, *, expression: bool = False) -> None:
    """Raise :class:`InputError` for an undefined name in a template that cannot be rendered yet."""
    _engine().check_names(text, names, node, expression=expression)


def evaluate_expression(text: str, names: TemplateNames, node: SourceNode) -> Any:
    """Evaluate a bare expression; raises as ``environment.render_text``."""
    return _engine().evaluate_expression(text, names, node)


def render_data(data: Any, names: TemplateNames, node: SourceNode, *, keep: bool = False) -> Any:
    """Render all templates in plain data; raises :class:`InputError` with all problems.

    With ``keep``, templates that use the asset stay unrendered; without, ``UsesAssetError`` passes through.
    """
    problems = Problems()
    rendered = _render(data, names, node, problems, keep)
    problems.check()
    return rendered


def _render(data: Any, names: TemplateNames, node: SourceNode, problems: Problems, keep: bool) -> Any:
    if isinstance(data, dict):
        found = {key: _render(value, names, node.child(key), problems, keep) for key, value in data.items()}
        return {key: value for key, value in found.items() if value is not OMIT}
    if isinstance(data, list):
        items = [_render(value, names, node.child(index), problems, keep) for index, value in enumerate(data)]
        for index in (index for index, value in enumerate(items) if value is OMIT):
            problems.add(
                node.child(index).problem("omit removes keys, not items of a list", "filter the list", kind="template")
            )
        return items
    if not isinstance(data, UnrenderedTemplate):
        return data
    try:
        with problems.gather():
            return _engine().render_text(data, names, node)
    except UsesAssetError:
        if not keep:
            raise
        with problems.gather():
            check_names(data, names, node)
    return data
