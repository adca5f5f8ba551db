"""Templates: Jinja2, sandboxed and strict; each text is compiled once.

An expression that stands alone keeps its own type; no text is ever read as a number on the way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Protocol

from jinja2 import TemplateError, TemplateSyntaxError, Undefined, meta, nodes
from jinja2.exceptions import SecurityError

from msauto.errors import InputError
from msauto.model.facts import Need, NoAssetError
from msauto.playbook.schema.values import MarkedTemplate, UnrenderedTemplate
from msauto.playbook.templates.filters import FILTERS, REMOVED, REMOVED_TESTS, TESTS
from msauto.playbook.templates.lookups import lookup, query
from msauto.playbook.templates.sandbox import (
    MAX_LENGTH,
    OMIT,
    RESULT,
    MissingNameError,
    Sandbox,
    UsesAssetError,
    explain,
)
from msauto.playbook.templates.taint import TaintTracker, TemplateFunctionError, tracker_of
from msauto.playbook.yaml.document import Problems, SourceNode, nearest
from msauto.secrets.tainted_text import TaintedText


class TemplateNames(Protocol):
    """Where templates find their names: a mapping that computes values when asked."""

    def __contains__(self, name: object, /) -> bool:
        """Tell whether there is such a name."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of a name."""

    def known(self) -> Iterable[str]:
        """Return all names."""


def names_known() -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of all filters and of all tests, for the reference."""
    return frozenset(_SANDBOX.filters) - {"_bounded_concat", "_opened", "_touched"}, frozenset(_SANDBOX.tests)


def _sandbox() -> Sandbox:
    sandbox = Sandbox()
    for name in REMOVED:
        sandbox.filters.pop(name, None)
    for name in REMOVED_TESTS:
        sandbox.tests.pop(name, None)
    sandbox.filters.update(FILTERS)
    sandbox.tests.update(TESTS)
    sandbox.globals.update(lookup=lookup, query=query, q=query)
    return sandbox


_SANDBOX = _sandbox()
Compiled = Callable[[TemplateNames], Any]


@lru_cache(maxsize=20_000)
def compile_template(text: str) -> Compiled:
    """Compile a template; raises ``TemplateSyntaxError``. The result is called with the names to use."""
    tree = _SANDBOX.parse(text)
    alone = _expression_alone(tree, text)
    if alone is not None:
        return _compile_expression(alone)
    template = _SANDBOX.from_string(text)

    def render(names: TemplateNames) -> str:
        parts: list[str] = []
        size = 0
        for part in template.root_render_func(template.new_context({"__scope__": names}, shared=False)):
            size += len(part)
            if size > MAX_LENGTH:
                raise SecurityError(f"a template may not make more than {MAX_LENGTH:,} signs")
            parts.append(part)
        return "".join(parts)

    return render


@lru_cache(maxsize=20_000)
def compile_expression(text: str) -> Compiled:
    """Compile a bare expression (``when``, ``where``); raises ``TemplateSyntaxError``."""
    tree = _SANDBOX.parse("{{ (" + text + "\n) }}")
    alone = _expression_alone(tree, text)
    if alone is None:
        raise TemplateSyntaxError("this is no single expression", 1)
    return _compile_expression(alone)


def _expression_alone(tree: nodes.Template, text: str) -> nodes.Expr | None:
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = tree.body[0].nodes
    if len(parts) == 2 and isinstance(parts[1], nodes.TemplateData) and parts[1].data == "\n" and text[-1] == "\n":
        parts = parts[:1]
    if len(parts) != 1 or isinstance(parts[0], nodes.TemplateData):
        return None
    return parts[0]


def _compile_expression(expression: nodes.Expr) -> Compiled:
    body = nodes.Assign(nodes.Name(RESULT, "store", lineno=1), expression, lineno=1)
    template = _SANDBOX.from_string(nodes.Template([body], lineno=1))

    def evaluate(names: TemplateNames) -> Any:
        context = template.new_context({"__scope__": names}, shared=False)
        for _ in template.root_render_func(context):
            pass
        value = context.vars[RESULT]
        if isinstance(value, Undefined):
            str(value)  # raises: what is not there cannot be a value
        return value

    return evaluate


@lru_cache(maxsize=20_000)
def _names_needed(text: str, expression: bool) -> frozenset[str]:
    """Names that a template cannot do without: those that it tests or gives a default for do not count."""
    tree = _SANDBOX.parse("{{ (" + text + "\n) }}" if expression else text)
    guarded = {
        name.name
        for node in (*tree.find_all(nodes.Filter), *tree.find_all(nodes.Test))
        if node.name in {"default", "d", "defined", "undefined", "mandatory"}
        for name in ([node.node] if isinstance(node.node, nodes.Name) else [])
    }
    return frozenset(meta.find_undeclared_variables(tree)) - guarded - set(_SANDBOX.globals)


def check_names(text: str, names: TemplateNames, node: SourceNode, *, expression: bool = False) -> None:
    """Raise :class:`InputError` for a name that is not there, in a template that cannot be rendered yet."""
    for name in sorted(_names_needed(text, expression)):
        if name not in names:
            raise node.error(*explain(MissingNameError(name=name), names.known()))


def check_template(text: str, node: SourceNode, *, expression: bool = False) -> None:
    """Raise :class:`InputError` for a template or expression that cannot be compiled."""
    _compiled(text, node, expression=expression)


def _compiled(text: str, node: SourceNode, *, expression: bool) -> Compiled:
    try:
        return compile_expression(text) if expression else compile_template(text)
    except (TemplateError, RecursionError, SyntaxError, ValueError) as error:
        message = getattr(error, "message", None) or "it is too deep"
        if isinstance(text, MarkedTemplate):
            raise node.error("this template cannot be read; it is marked as secret, so why is not shown") from None
        raise node.error(*_unreadable(message, "expression" if expression else "template")) from error


def _unreadable(message: str, kind: str) -> tuple[str, str]:
    """Say in plain words what Jinja found; returns message and remedy."""
    named = re.fullmatch(r"No (filter|test) named '(.*)'\.", message)
    if named is None:
        found = "it ends too soon" if "')'" in message or "end of template" in message else message.rstrip(".")
        return f"this {kind} cannot be read: {found}", ""
    if named[1] == "filter" and named[2] in REMOVED:
        return f"there is no filter {named[2]!r}", REMOVED[named[2]]
    known = _SANDBOX.filters if named[1] == "filter" else _SANDBOX.tests
    hint = nearest(named[2], known)
    return f"there is no {named[1]} {named[2]!r}", hint if hint.startswith("did") else ""


def render_text(text: str, names: TemplateNames, node: SourceNode) -> Any:
    """Render one template; raises :class:`InputError` with its place.

    ``Need``, ``NoAssetError`` and ``UsesAssetError`` pass through.
    """
    value, touched = _evaluate(text, names, node, expression=False)
    tracker = tracker_of(names) or TaintTracker()
    if isinstance(text, MarkedTemplate):
        return mark_text(value, tracker, node)
    return tracker.taint(value, node) if touched and value is not OMIT else value


def mark_text(value: Any, marks: TaintTracker, node: SourceNode) -> TaintedText:
    """Mark a rendered text as secret; raises :class:`InputError` for what cannot be hidden."""
    try:
        return marks.add(value)
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy) from None


def evaluate_expression(text: str, names: TemplateNames, node: SourceNode) -> Any:
    """Evaluate a bare expression; raises as :func:`render_text`."""
    return _evaluate(text, names, node, expression=True)[0]


def _evaluate(text: str, names: TemplateNames, node: SourceNode, *, expression: bool) -> tuple[Any, bool]:
    """Return the value of a template or expression, and whether it used a secret."""
    tracker = tracker_of(names) or TaintTracker()
    tracker.start()
    try:
        value = _run(_compiled(text, node, expression=expression), names, node)
    except InputError as error:
        # The error of a variable hides its own secrets.
        if tracker.end() and any(problem.place == node.place for problem in error.problems):
            raise node.error(_REASON_REDACTED, "check what the template does with the secret") from None
        raise
    except BaseException:
        tracker.end()
        raise
    return value, tracker.end()


_REASON_REDACTED = "the template fails; it uses a secret, so the reason is not shown"


def _run(compiled: Compiled, names: TemplateNames, node: SourceNode) -> Any:
    try:
        return plain_result(compiled(names))
    except (Need, NoAssetError, UsesAssetError, InputError):
        raise
    except MissingNameError as error:
        raise node.error(*explain(error, names.known())) from error
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy) from error
    except SecurityError as error:
        raise node.error(f"the template does what is not allowed: {error}") from error
    except RecursionError as error:
        raise node.error("the template calls itself without end") from error
    except Exception as error:
        raise node.error(f"the template fails: {str(error) or type(error).__name__}") from error


def plain_result(value: Any) -> Any:
    """Return a result as plain data: generators and the like become lists, what cannot be a value is refused."""
    if isinstance(value, Undefined):
        str(value)
    if isinstance(value, dict):
        return {str(key): plain_result(each) for key, each in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        if isinstance(value, str) and len(value) > MAX_LENGTH:
            raise SecurityError(f"a template may not make more than {MAX_LENGTH:,} signs")
        if callable(value):
            raise TypeError("it yields no value, but something to call: are () missing?")
        return value
    items: list[Any] = []
    for item in value:
        if len(items) >= MAX_LENGTH:
            raise SecurityError(f"a template may not make more than {MAX_LENGTH:,} items")
        items.append(plain_result(item))
    return items


def render_data(data: Any, names: TemplateNames, node: SourceNode, *, keep: bool = False) -> Any:
    """Render all pending templates in plain data; raises :class:`InputError` with all that fails.

    With ``keep``, templates that look at the asset stay pending; without, ``UsesAssetError`` passes.
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
            problems.add(node.child(index).problem("omit leaves keys out, not items of a list", "filter the list"))
        return items
    if not isinstance(data, UnrenderedTemplate):
        return data
    try:
        with problems.gather():
            return render_text(data, names, node)
    except UsesAssetError:
        if not keep:
            raise
        with problems.gather():
            check_names(data, names, node)
    return data
