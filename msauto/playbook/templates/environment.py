"""Templates: Jinja2, sandboxed and strict; each text is compiled once.

An expression without text around it keeps its own type; no text is converted to a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any

from jinja2 import TemplateError, TemplateSyntaxError, Undefined, meta, nodes
from jinja2.exceptions import SecurityError

from msauto.documents.document import SourceNode
from msauto.documents.value_types import MarkedTemplate
from msauto.errors import InputError, did_you_mean
from msauto.model.facts import Need, NoAssetError
from msauto.playbook.templates import sandbox
from msauto.playbook.templates.filters import REMOVED
from msauto.playbook.templates.lookups import lookup, query
from msauto.playbook.templates.names import OMIT, TemplateFunctionError, TemplateNames, UsesAssetError, mark_text
from msauto.playbook.templates.sandbox import budget, spend
from msauto.playbook.templates.template_errors import explain_failure, explain_syntax

_SANDBOX = sandbox.Sandbox(lookup=lookup, query=query)
Compiled = Callable[[TemplateNames], Any]


def names_known() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all filters and of all tests, for the reference."""
    return frozenset(name for name in _SANDBOX.filters if not name.startswith("_")), frozenset(_SANDBOX.tests)


# Compiling ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=20_000)
def compile_template(text: str) -> Compiled:
    """Compile a template to a function of the names; raises ``TemplateSyntaxError``."""
    alone = _expression_alone(text, text)
    if alone is not None:
        return _compile_expression(alone)
    template = _SANDBOX.from_string(text)

    def render(names: TemplateNames) -> str:
        parts: list[str] = []
        size = 0
        for part in template.root_render_func(template.new_context({"__scope__": names}, shared=False)):
            size += len(part)
            _check_size(size, "characters")
            parts.append(part)
        return "".join(parts)

    return render


@lru_cache(maxsize=20_000)
def compile_expression(text: str) -> Compiled:
    """Compile a bare expression (``when``, ``where``); raises ``TemplateSyntaxError``."""
    alone = _expression_alone(_as_template(text), text)
    if alone is None:
        raise TemplateSyntaxError("this is not a single expression", 1)
    return _compile_expression(alone)


def _as_template(expression: str) -> str:
    return "{{ (" + expression + "\n) }}"


def _expression_alone(template: str, text: str) -> nodes.Expr | None:
    tree = _SANDBOX.parse(template)
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    if len(parts) == 2 and isinstance(parts[1], nodes.TemplateData) and parts[1].data == "\n" and text[-1] == "\n":
        parts = parts[:1]
    return None if len(parts) != 1 or isinstance(parts[0], nodes.TemplateData) else parts[0]


def _compile_expression(expression: nodes.Expr) -> Compiled:
    body = nodes.Assign(nodes.Name(sandbox.RESULT, "store", lineno=1), expression, lineno=1)
    template = _SANDBOX.from_string(nodes.Template([body], lineno=1))

    def evaluate(names: TemplateNames) -> Any:
        context = template.new_context({"__scope__": names}, shared=False)
        for _ in template.root_render_func(context):
            pass
        return context.vars[sandbox.RESULT]

    return evaluate


@lru_cache(maxsize=20_000)
def _names_needed(text: str, expression: bool) -> frozenset[str]:
    """Return the names that a template needs, without those that it tests or gives a default for."""
    tree = _SANDBOX.parse(_as_template(text) if expression else text)
    guarded = {
        node.node.name
        for node in (*tree.find_all(nodes.Filter), *tree.find_all(nodes.Test))
        if node.name in {"default", "d", "defined", "undefined", "mandatory"} and isinstance(node.node, nodes.Name)
    }
    return frozenset(meta.find_undeclared_variables(tree)) - guarded - set(_SANDBOX.globals)


def check_names(text: str, names: TemplateNames, node: SourceNode, *, expression: bool = False) -> None:
    """Raise :class:`InputError` for an undefined name in a template that cannot be rendered yet."""
    for name in sorted(_names_needed(text, expression)):
        if name not in names:
            raise node.error(
                *sandbox.explain(sandbox.MissingNameError(name=name), names.known()), kind="undefined-name"
            )


def check_template(text: str, node: SourceNode, *, expression: bool = False) -> None:
    """Raise :class:`InputError` for an invalid template or expression."""
    _compiled(text, node, expression=expression)


def _compiled(text: str, node: SourceNode, *, expression: bool) -> Compiled:
    try:
        return compile_expression(text) if expression else compile_template(text)
    except (TemplateError, RecursionError, SyntaxError, ValueError) as error:
        message = getattr(error, "message", None) or "it is nested too deep"
        if isinstance(text, MarkedTemplate):
            raise node.error(
                "invalid template; it is marked as secret, so the reason is not shown", kind="template"
            ) from None
        raise node.error(
            *_why_invalid(message, text, "expression" if expression else "template"), kind="template"
        ) from error


def _why_invalid(message: str, text: str, kind: str) -> tuple[str, str]:
    """Translate a message of Jinja2; returns message and remedy."""
    named = re.fullmatch(r"No (filter|test) named '(.*)'\.", message)
    if named is None:
        found, remedy = explain_syntax(message, text)
        return f"invalid {kind}: {found}", remedy
    known = _SANDBOX.filters if named[1] == "filter" else _SANDBOX.tests
    remedy = REMOVED.get(named[2], "") if named[1] == "filter" else ""
    return f"unknown {named[1]} {named[2]!r}", remedy or did_you_mean(named[2], known)


# Rendering ------------------------------------------------------------------------------------------------------

_REASON_REDACTED = "the template fails; it uses a secret, so the reason is not shown"


def render_text(text: str, names: TemplateNames, node: SourceNode) -> Any:
    """Render one template; raises :class:`InputError` with its place.

    ``Need``, ``NoAssetError`` and ``UsesAssetError`` pass through.
    """
    value, touched = _evaluate(text, names, node, expression=False)
    if isinstance(text, MarkedTemplate):
        return mark_text(value, names.tracker, node)
    return names.tracker.marked(value, node) if touched and value is not OMIT else value


def evaluate_expression(text: str, names: TemplateNames, node: SourceNode) -> Any:
    """Evaluate a bare expression; raises as :func:`render_text`."""
    return _evaluate(text, names, node, expression=True)[0]


def _evaluate(text: str, names: TemplateNames, node: SourceNode, *, expression: bool) -> tuple[Any, bool]:
    """Return the value of a template or expression, and whether it touched a secret."""
    tracker = names.tracker
    outer, tracker.touched = tracker.touched, False
    try:
        with budget():
            return _run(_compiled(text, node, expression=expression), names, node), tracker.touched
    except InputError as error:
        own = any(problem.place == node.place for problem in error.problems)  # else a variable redacted it
        if tracker.touched and own:
            raise node.error(
                _REASON_REDACTED, "check what the template does with the secret", kind="template"
            ) from None
        raise
    finally:
        tracker.touched = outer


def _run(compiled: Compiled, names: TemplateNames, node: SourceNode) -> Any:
    try:
        return plain_result(compiled(names))
    except (Need, NoAssetError, UsesAssetError, InputError):
        raise
    except sandbox.MissingNameError as error:
        raise node.error(*sandbox.explain(error, names.known()), kind="undefined-name") from error
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy, kind="template") from error
    except SecurityError as error:
        remedy = "use variables, filters and tests: msauto doc filters"
        raise node.error(f"the template is not allowed to do this: {error}", remedy, kind="template") from error
    except RecursionError as error:
        raise node.error("the template calls itself without end", "end the calls", kind="template") from error
    except Exception as error:
        message, remedy = explain_failure(error)
        raise node.error(f"the template fails: {message}", remedy or "correct the template", kind="template") from error


def plain_result(value: Any) -> Any:
    """Return a result as plain data: iterators become lists; raises for undefined names, functions and bombs."""
    if isinstance(value, Undefined):
        str(value)  # raises, with the name
    if isinstance(value, dict):
        spend(0, len(value))
        return {str(key): plain_result(each) for key, each in value.items()}
    if isinstance(value, str):
        _check_size(len(value), "characters")
        return value
    if isinstance(value, bytes) or not hasattr(value, "__iter__"):
        if callable(value):
            raise TypeError("its value is a function: are () missing?")
        return value
    items = [plain_result(item) for item in islice(value, sandbox.MAX_LENGTH + 1)]
    _check_size(len(items), "items")
    spend(0, len(items))
    return items


def _check_size(size: int, unit: str) -> None:
    if size > sandbox.MAX_LENGTH:
        raise SecurityError(f"a template may make at most {sandbox.MAX_LENGTH:,} {unit}")
