"""Renders plain data, and evaluates conditions. Jinja2 is imported at the first template: most playbooks have none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from msgspec import Struct

from msauto.documents.document import Path, Problems, SourceNode, SourceText, UnrenderedTemplate
from msauto.errors import InputError, Problem
from msauto.model.facts import Facts
from msauto.playbook.templates.budget import MAX_VALUE, size_of
from msauto.playbook.templates.names import (
    OMIT,
    AssetView,
    NoText,
    TemplateFunctionError,
    TemplateNames,
    UsesAssetError,
)
from msauto.secrets.sources import NOT_ALLOWED, MarkedText, leaves


@cache
def _engine() -> ModuleType:
    from msauto.playbook.templates import environment

    return environment


def check_template(text: str, node: SourceNode, *, expression: bool = False) -> None:
    """Raise :class:`InputError` for an invalid template or expression."""
    _engine().compiled(text, node, expression=expression)


_MAY_HOLD_TEMPLATES = (dict, list, UnrenderedTemplate)


def render_data(data: Any, names: TemplateNames, node: SourceNode, *, keep: bool = False) -> Any:
    """Render all templates in plain data; raises :class:`InputError` with all problems.

    With ``keep``, templates that use the asset stay unrendered; without, ``UsesAssetError`` passes through.
    """
    if not isinstance(data, _MAY_HOLD_TEMPLATES) or not leaves(data, UnrenderedTemplate):
        return data
    problems = Problems()
    rendered = _render(data, names, node, (), problems, keep)
    problems.check()
    try:
        size_of(rendered, MAX_VALUE)
    except TemplateFunctionError as error:  # one of templates that are small themselves
        raise node.error(str(error), error.remedy, kind="template") from error
    return rendered


def _render(
    data: Any, names: TemplateNames, root: SourceNode, path: Path, problems: Problems, keep: bool
) -> Any:
    """Render what is at a path: only a template needs its node, and most values of a task have no template."""
    if isinstance(data, dict):
        made: dict[str, Any] = {}
        for key, value in data.items():
            if isinstance(value, _MAY_HOLD_TEMPLATES):
                value = _render(value, names, root, (*path, key), problems, keep)
            if value is not OMIT:
                made[key] = value
        return made
    if isinstance(data, list):
        items = [
            _render(value, names, root, (*path, index), problems, keep)
            for index, value in enumerate(data)
        ]
        for index, value in enumerate(items):
            if value is OMIT:
                why = "omit removes keys, not items of a list"
                problems.append(
                    root.child(*path, index).problem(why, "filter the list", kind="template")
                )
        return items
    if not isinstance(data, UnrenderedTemplate):
        return data
    node = root.child(*path)
    try:
        return _engine().render_text(data, names, node)
    except InputError as error:
        problems.extend(error.problems)
    except UsesAssetError:
        if not keep:
            raise
        with problems:
            _engine().check_names(data, names, node)
    return data


def render_shown(
    data: Any, names: TemplateNames, node: SourceNode, why: str = "the asset is not known yet"
) -> Any:
    """Render data that will be shown; raises :class:`InputError` for a secret, what is not a text, use of the asset.

    Without ``why``, what uses the asset is returned as it is.
    """
    if type(data) is str:  # neither a template nor secret
        return data
    try:
        data = render_data(data, names, node)
    except UsesAssetError as error:
        if why:
            message = f"asset cannot be used here: {why}"
            raise node.error(message, "use a variable", kind="template") from error
    problems = Problems()
    for path, _ in leaves(data, MarkedText):
        remedy = "write the value directly, or use another variable"
        problems.append(node.child(*path).problem(NOT_ALLOWED, remedy, kind="secret"))
    problems.check()
    check_texts(data, node)
    return data


def check_texts(data: Any, node: SourceNode) -> None:
    """Raise :class:`InputError` for ``env``, ``asset`` or ``omit`` as a value in rendered data."""
    problems = Problems()
    for path, _ in leaves(data, NoText):
        remedy = "write a text, or use one of its attributes"
        problems.append(node.child(*path).problem("this is not a text", remedy, kind="template"))
    problems.check()


# Conditions over facts: when, where, that


def undecided(
    conditions: Sequence[SourceText], scope: TemplateNames
) -> tuple[SourceText, ...] | None:
    """Return the conditions that need the asset; ``None`` if another one is false."""
    remaining = []
    for condition in conditions:
        try:
            if not holds(condition, scope):
                return None
        except UsesAssetError:
            _engine().check_names(condition.text, scope, condition.node, expression=True)
            remaining.append(condition)
    return tuple(remaining)


def holds(condition: SourceText, scope: TemplateNames) -> bool:
    """Return whether a condition holds; raises :class:`InputError` for text, because ``"false"`` would be true."""
    value = _engine().evaluate_expression(condition.text, scope, condition.node)
    if isinstance(value, str):
        raise condition.node.error(
            "the condition gives text, not true or false",
            "compare it, as with != ''; for a text such as 'true', use | bool",
            kind="template",
        )
    return bool(value)


def refused(data: Any, node: SourceNode, why: str) -> Iterator[Problem]:
    """Yield a problem for each template of ``data``, which uses the asset where it cannot."""
    message = f"asset cannot be used here: {why}"
    for path, _ in leaves(data, UnrenderedTemplate):
        yield node.child(*path).problem(message, "use a variable", kind="template")


class Where(Struct, frozen=True):
    """The ``where`` of a selection: a function of facts, which can be pickled."""

    conditions: tuple[SourceText, ...]
    scope: TemplateNames

    def __call__(self, facts: Facts) -> bool:
        """Return whether all conditions hold."""
        names = self.scope.with_given(asset=AssetView(facts))
        return all(holds(condition, names) for condition in self.conditions)
