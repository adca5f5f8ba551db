"""The sandbox of templates: Python's internals are not accessible, nothing grows without limit, secrets are noted.

What one template may cost is counted, not timed: its steps, and the size of all that it reads and makes. A template
that is evaluated for another one, such as a variable, shares its budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any

from jinja2 import Environment, StrictUndefined, Undefined, UndefinedError, nodes, pass_context, pass_environment
from jinja2.exceptions import SecurityError
from jinja2.filters import make_attrgetter
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing
from jinja2.visitor import NodeTransformer

from msauto.errors import did_you_mean, nearest, nearest_name
from msauto.model.facts import Facts
from msauto.playbook.templates.filters import FILTERS, JINJA_FILTERS, JINJA_TESTS, TESTS, tracker_of
from msauto.playbook.templates.names import AssetView, EnvView, TemplateNames
from msauto.secrets.sources import MarkedText, holds_secret

MAX_STEPS = 300_000
"""The most loop items, operators and calls: they take about a second."""
MAX_SIZE = 20_000_000
"""The most characters and items that its operators and calls may read and make together."""

_BUDGET: ContextVar[list[int] | None] = ContextVar("budget", default=None)
_SHALLOW = {
    "d", "default", "dict2items", "first", "groupby", "last", "length", "list", "map", "reject", "rejectattr", "select",
    "selectattr", "sort", "unique", "zip",
}  # fmt: skip
"""Filters that do not read into the items of a list, or do so with another filter."""


def budgeted(evaluate: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Count what is evaluated; raises ``SecurityError`` there if it is too much."""
    if _BUDGET.get() is not None:
        return evaluate(*args, **more)
    token = _BUDGET.set([MAX_STEPS, MAX_SIZE])
    try:
        return evaluate(*args, **more)
    finally:
        _BUDGET.reset(token)


def spend(steps: int, size: int = 0) -> None:
    """Count steps and a size."""
    left = _BUDGET.get()
    if left is None:
        return
    left[0] -= steps
    left[1] -= size
    if left[0] < 0 or left[1] < 0:
        what = f"{MAX_STEPS:,} steps" if left[0] < 0 else f"{MAX_SIZE:,} characters and items in all"
        raise SecurityError(f"a template may take at most {what}: loop over less, or split it")


def each(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of a loop, each of which is a step."""
    for item in items:
        spend(1)
        yield item


def size_of(value: Any) -> int:
    """Return the length of a text, list or mapping, without what is in its items; facts must not be read for it."""
    return len(value) if isinstance(value, str | list | tuple | bytes) or type(value) is dict else 0


def sized(value: Any) -> Any:
    """Return a value; count its length."""
    spend(0, size_of(value))
    return value


def weigh(value: Any) -> Any:
    """Return a value; count everything in it, as often as it is in it: characters once, items ten times."""
    spend(0, size_of(value))
    inner = [value] if isinstance(value, list | tuple) or type(value) is dict else []
    while inner:
        one = inner.pop()
        items = one.values() if isinstance(one, dict) else one
        spend(0, 10 * len(one))
        spend(0, sum(len(item) for item in items if isinstance(item, str)))
        inner.extend(item for item in items if isinstance(item, list | tuple) or type(item) is dict)
    return value


def metered(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter or test that counts what it reads and makes."""
    count = size_of if name in _SHALLOW else lambda value: size_of(weigh(value))

    @wraps(function)  # also keeps the attribute by which Jinja passes the environment or context
    def counted(*args: Any, **kwargs: Any) -> Any:
        spend(1, sum(map(count, (*args, *kwargs.values()))))
        return sized(function(*args, **kwargs))

    return counted


MAX_LENGTH = 1_000_000
"""The longest text or list that a template may make."""
MAX_BITS = 4096


class MissingNameError(UndefinedError):
    """A template uses an undefined name."""

    def __init__(self, message: str | None = None, *, name: str = "", owner: Any = missing) -> None:
        super().__init__(message)
        self.name = name
        self.owner = owner


class StrictName(StrictUndefined):
    """An undefined name: any use except ``default`` and ``is defined`` raises, with the name."""

    __slots__ = ()

    def __init__(self, hint: str | None = None, obj: Any = missing, name: str | None = None, exc: Any = None) -> None:
        def failure(message: str | None = None) -> MissingNameError:
            return MissingNameError(message, name=str(name or ""), owner=obj)

        super().__init__(hint, obj, name, failure if exc in {None, UndefinedError} else exc)  # type: ignore[arg-type]


_VIEWS = (AssetView, EnvView)


class ScopeContext(Context):
    """Looks up names in the scope ``__scope__``, only when they are used."""

    def resolve_or_missing(self, key: str) -> Any:
        """Return the value of a name, or Jinja's ``missing``."""
        if key in self.vars:
            return self.vars[key]
        scope = self.parent.get("__scope__")
        if scope is not None and key in scope:
            return scope[key]
        return self.parent.get(key, missing) if key != "__scope__" else missing


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, with limits on what can grow."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    context_class = ScopeContext

    def __init__(self, **functions: Callable[..., Any]) -> None:
        super().__init__(undefined=StrictName, keep_trailing_newline=True, autoescape=False, finalize=weigh)
        for name in ("lipsum", "cycler", "joiner"):
            del self.globals[name]
        self.globals |= functions
        filters: dict[str, Any] = {name: self.filters[name] for name in JINJA_FILTERS} | FILTERS
        filters |= {"replace": _replace, "format": _format, "join": _join, "sum": _sum, _CONCAT: bounded_concat}
        self.filters = {name: metered(name, function) for name, function in filters.items()}
        tests: dict[str, Any] = {name: self.tests[name] for name in JINJA_TESTS} | TESTS
        self.tests = {name: metered(name, function) for name, function in tests.items()}
        self.filters |= {_EACH: each, _SIZED: sized, _TOUCHED: touched, _OPENED: opened}  # its own cost nothing

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        metered: nodes.Template = _MeteredNodes().visit(super()._parse(source, name, filename))
        return metered

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        return super()._generate(_Touches().visit(source), name, filename, defer_init)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look up an attribute."""
        if isinstance(obj, _VIEWS):
            return self._look(obj, attribute)
        if isinstance(obj, Mapping) and attribute in obj and not hasattr(type(obj), attribute):
            return obj[attribute]
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Look up an item."""
        if isinstance(obj, _VIEWS):
            return self._look(obj, str(argument))
        return super().getitem(obj, argument)

    def _look(self, view: AssetView | EnvView, name: str) -> Any:
        try:
            return view.look(name)
        except AttributeError:
            return self.undefined(obj=view, name=name)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator after a check of the size of its result."""
        match operator, left, right:
            case "%", str(), _:
                _check_format(left, right if isinstance(right, tuple) else (right,))
            case "+", str() | list() | tuple(), str() | list() | tuple():
                _check_length(len(left) + len(right))
            case "*", int(), int():
                _check_bits(left.bit_length() + right.bit_length())
            case "*", _, _:
                items, times = (right, left) if isinstance(left, int) else (left, right)
                if isinstance(items, str | list | tuple | bytes) and isinstance(times, int):
                    _check_length(len(items) * max(times, 0))
            case "**", _, _:
                size = abs(right) if isinstance(right, int | float) else 0
                bits = left.bit_length() if isinstance(left, int) else 64
                _check_bits(max(size, bits * size))
        spend(1)
        return sized(super().call_binop(context, operator, left, right))

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Wrap ``str.format`` as the sandbox does, after a check of its widths."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None

        def bounded(*args: Any, **kwargs: Any) -> str:
            _check_format(value.__self__, (*args, *kwargs.values()))
            return wrapped(*args, **kwargs)

        return bounded

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as in Jinja
        """Call a method after a check of the size of its result."""
        owner = getattr(__obj, "__self__", None)
        if isinstance(__obj, LoopContext):  # a recursive loop
            args = (each(args[0]), *args[1:])
        if isinstance(owner, str):
            _check_text_call(owner, getattr(__obj, "__name__", ""), (*args, *kwargs.values()))
        spend(50 if isinstance(__obj, Macro) else 1, size_of(owner) + sum(map(size_of, args)))
        return sized(super().call(__context, __obj, *args, **kwargs))


class _MeteredNodes(NodeTransformer):
    """Turns ``a ~ b`` into a filter, and puts one around what is looped over and compared: filters can be limited."""

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - Jinja names it
        """Count the items of a loop."""
        self.generic_visit(node)
        node.iter = _watched(node.iter, _EACH)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        """Count the size of what is compared."""
        self.generic_visit(node)
        node.expr = _watched(node.expr, _SIZED)
        for operand in node.ops:
            operand.expr = _watched(operand.expr, _SIZED)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - Jinja names it
        """Rewrite one concatenation."""
        self.generic_visit(node)
        return _watched(nodes.List(node.nodes, lineno=node.lineno), _CONCAT)


_EACH, _SIZED = "_each", "_sized"
_CONCAT = "_bounded_concat"
_TOUCHED = "_touched"
_OPENED = "_opened"
RESULT = "_alone"
"""The variable that gets the value of an expression without text around it."""


class _Touches(NodeTransformer):
    """Passes each name, with its attributes and items, through :func:`touched`.

    ``creds.user`` is checked as a whole, so a secret beside it is not touched; ``token[0]`` opens a secret. An
    expression that passes data on unchanged (to :data:`RESULT`) touches nothing: the data carry their own marks.
    """

    def visit_Assign(self, node: nodes.Assign) -> nodes.Node:  # noqa: N802 - Jinja names it
        """Skip a value that is passed on unchanged."""
        unchanged = isinstance(node.target, nodes.Name) and node.target.name == RESULT
        node.node = self._inside(node.node) if unchanged else self.visit(node.node)
        return node

    def visit_Name(self, node: nodes.Name) -> nodes.Node:  # noqa: N802
        """Watch a name."""
        return _watched(node) if node.ctx == "load" else node

    def visit_Call(self, node: nodes.Call | nodes.Getattr | nodes.Getitem) -> nodes.Node:  # noqa: N802
        """Watch a lookup, or the result of a call and its object."""
        return _watched(self._inside(node))

    visit_Getattr = visit_Getitem = visit_Call  # noqa: N815

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802
        """Keep the call of a call block."""
        call = self._inside(node.call)
        self.generic_visit(node)
        node.call = call
        return node

    def _inside(self, node: Any) -> Any:
        if isinstance(node, nodes.Name):
            return node
        if isinstance(node, nodes.Getattr | nodes.Getitem):
            node.node = _watched(self._inside(node.node), _OPENED)
            if isinstance(node, nodes.Getitem):
                node.arg = self.visit(node.arg)
            return node
        return self.generic_visit(node) if isinstance(node, nodes.Call) else self.visit(node)


def _watched(node: nodes.Node, by: str = _TOUCHED) -> nodes.Filter:
    return nodes.Filter(node, by, [], [], None, None, lineno=node.lineno)


@pass_context
def touched(context: Context, value: Any) -> Any:
    """Return a value that a template uses; note whether it contains a secret."""
    tracker = tracker_of(context)
    if (tracker.secrets or tracker.unknown) and not isinstance(value, Undefined):
        owner = getattr(value, "__self__", None)  # the object that a method belongs to
        tracker.touched |= holds_secret(value) or (owner is not None and holds_secret(owner))
    return value


@pass_context
def opened(context: Context, value: Any) -> Any:
    """Return a value whose items or attributes a template uses; note whether it is a secret itself: ``token[0]``."""
    tracker_of(context).touched |= isinstance(value, MarkedText)
    return value


def bounded_concat(parts: list[Any]) -> str:
    """Join texts unless the result is too long."""
    return _joined("", map(str, parts))


def _joined(between: str, parts: Iterable[str]) -> str:
    texts = list(parts)
    _check_length(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _check_length(length: int) -> None:
    if length > MAX_LENGTH:
        raise SecurityError(f"a template may make at most {MAX_LENGTH:,} characters or items")


def _check_bits(bits: float) -> None:
    if bits > MAX_BITS:
        raise SecurityError("a number in a template is too large")


def _check_format(text: str, values: Iterable[Any]) -> None:
    if re.search(r"\d{5,}|[*]", text):
        raise SecurityError("the width of a format is limited to 4 digits")
    longest = max((len(str(weigh(value))) for value in values), default=0)
    _check_length(len(text) + max(text.count("{"), text.count("%")) * longest)


def _check_text_call(owner: str, name: str, args: tuple[Any, ...]) -> None:
    if name in {"center", "ljust", "rjust", "zfill", "expandtabs"}:
        widths = [width for width in args if isinstance(width, int)]
        _check_length(max(widths, default=0) * (owner.count("\t") or 1))
    if name == "replace" and len(args) > 1:
        _check_length((owner.count(str(args[0])) + 1) * len(str(args[1])) + len(owner))
    if name == "translate" and args and isinstance(args[0], Mapping):
        _check_length(len(owner) * max((len(str(each)) for each in args[0].values()), default=0))
    if name == "join" and args and isinstance(args[0], list | tuple):
        _check_length(len(owner) * len(args[0]) + sum(len(str(each)) for each in args[0]))


@pass_environment
def _join(environment: Environment, value: Any, d: str = "", attribute: Any = None) -> str:
    return _joined(str(d), map(str, map(make_attrgetter(environment, attribute), value)))


@pass_environment
def _sum(environment: Environment, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    items = list(map(make_attrgetter(environment, attribute), value) if attribute is not None else value)
    if any(isinstance(each, list | tuple) for each in items):  # each sum would copy the one before it
        _check_length(sum(map(size_of, items)))
        spend(len(items), sum(map(size_of, items)) * len(items) // 100)
    return sum(items, start)


def _replace(value: Any, old: Any, new: Any, count: int = -1) -> str:
    text = str(value)
    _check_text_call(text, "replace", (old, new))
    return text.replace(str(old), str(new), count)


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    text = str(value)
    _check_format(text, (*args, *kwargs.values()))
    return text % (kwargs or args)


_FACTS: Mapping[str, str] = {
    name: fact
    for fact, names in {
        "frames, or duration in seconds": "length runtime",
        "fps": "framerate frame_rate",
        "title": "name clip_name clip",
        "hires": "path file filename",
        "create_time, or rec_time": "created created_at date recorded",
        "first_frame": "start in tc_in",
        "last_frame": "end out tc_out",
    }.items()
    for name in names.split()
}
"""The facts that other words mean."""


_NAMES: Mapping[str, str] = {
    "item": "add loop: to the task",
    "each": "add loop: to the task, and use item",
    "query": "use lookup",
    "var": "write the name of the variable alone",
    "ansible_date_time": "use now",
    "ansible_env": "use env",
    "ansible_facts": "facts of the asset are in asset: msauto doc facts",
    **{name: f"facts are in asset: asset.{name}" for name in (*Facts().names(), "frames", "create_time", "finalized")},
}
"""What to use instead of a name that is not defined."""


def explain(error: MissingNameError, names: TemplateNames) -> tuple[str, str]:
    """Explain an undefined name and suggest another; returns message and remedy."""
    owner, name = error.owner, error.name
    if owner is missing:
        hint = nearest(name, names.known())
        if names.where_to_set:
            hint = did_you_mean(name, names.known(), names.where_to_set, cutoff=0.75)
        return f"undefined variable {name!r}", _NAMES.get(name, hint)
    if isinstance(owner, EnvView):
        remedy = f"set it where msauto runs, or write env.{name} | default('')"
        hint = did_you_mean(name, owner.names(), remedy, cutoff=0.75)
        return f"the environment variable {name} is not set", hint
    if isinstance(owner, AssetView):
        meant = _FACTS.get(nearest_name(name, (*owner.names(), *_FACTS)))
        hint = f"use {meant}; all facts: msauto doc facts" if meant else nearest(name, owner.names())
        return f"the server does not report {name!r} for this asset", hint
    if isinstance(owner, Mapping):
        return f"{name!r} not found in the mapping", nearest(name, map(str, owner))
    if isinstance(owner, list | tuple) and name.lstrip("-").isdecimal():
        return f"the list has no item {name}", f"its length is {len(owner)}; the first item is 0"
    return error.message or f"{name!r} not found in the value", ""
