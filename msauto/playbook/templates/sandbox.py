"""The sandbox that templates run in: nothing of Python's inside is reachable, and nothing grows without bound."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import StrictUndefined, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing
from jinja2.visitor import NodeTransformer

from msauto.model.facts import Facts
from msauto.playbook.templates.taint import opened, touched
from msauto.playbook.yaml.document import nearest

MAX_LENGTH = 1_000_000
"""The longest text or list that a template may make."""
MAX_BITS = 4096
_WIDE = re.compile(r"\d{5,}|[*]")


class Omit:
    """``omit`` in templates: leaves the key out, as if it were not written: ``"{{ comment | default(omit) }}"``."""

    __slots__ = ()

    def __str__(self) -> str:
        raise SecurityError("omit leaves a key out, so nothing can stand beside it")

    __repr__ = __format__ = __str__  # type: ignore[assignment]


OMIT = Omit()


class UsesAssetError(Exception):
    """A template looked at the asset, or at other things that are not known yet."""


class MissingNameError(UndefinedError):
    """A template used a name that is not there."""

    def __init__(self, message: str | None = None, *, name: str = "", owner: Any = missing) -> None:
        super().__init__(message)
        self.name = name
        self.owner = owner


class StrictName(StrictUndefined):
    """What is not there: any use but ``default`` and ``is defined`` fails, with the name at hand."""

    __slots__ = ()

    def __init__(self, hint: str | None = None, obj: Any = missing, name: str | None = None, exc: Any = None) -> None:
        def failure(message: str | None = None) -> MissingNameError:
            return MissingNameError(message, name=str(name or ""), owner=obj)

        super().__init__(hint, obj, name, failure if exc in {None, UndefinedError} else exc)  # type: ignore[arg-type]


class AssetView:
    """``asset`` in templates: a view of :class:`Facts`. ``Need`` and ``NoAssetError`` pass through."""

    __slots__ = ("_facts",)

    def __init__(self, facts: Facts | None) -> None:
        self._facts = facts

    def look(self, name: str) -> Any:
        """Return a fact; ``AttributeError`` where the server does not report it."""
        if self._facts is None:
            raise UsesAssetError(name)
        return self._facts.get(name)

    def names(self) -> Iterable[str]:
        """Return the names known so far."""
        return self._facts.names() if self._facts is not None else ()


class EnvView:
    """``env`` in templates: variables of the environment. ``lenient``: what is not set is not known yet."""

    __slots__ = ("_lenient", "_values")

    def __init__(self, values: Mapping[str, str], *, lenient: bool = False) -> None:
        self._values = values
        self._lenient = lenient

    def look(self, name: str) -> str:
        """Return a variable of the environment; ``AttributeError`` where it is not set."""
        try:
            return self._values[name]
        except KeyError as error:
            if self._lenient:
                raise UsesAssetError(name) from error
            raise AttributeError(name) from error

    def names(self) -> Iterable[str]:
        """Return the names that are set."""
        return self._values


_VIEWS = (AssetView, EnvView)


class ScopeContext(Context):
    """Looks names up in the scope that was handed in as ``__scope__``, only when they are used."""

    def resolve_or_missing(self, key: str) -> Any:
        """Return the value of a name, or Jinja's ``missing``."""
        if key in self.vars:
            return self.vars[key]
        scope = self.parent.get("__scope__")
        if scope is not None and key in scope:
            return scope[key]
        return self.parent.get(key, missing) if key != "__scope__" else missing


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's own sandbox, with bounds on what can grow and with views that raise as they should."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})
    context_class = ScopeContext

    def __init__(self) -> None:
        super().__init__(undefined=StrictName, keep_trailing_newline=True, autoescape=False)
        for name in ("lipsum", "cycler", "joiner"):
            del self.globals[name]
        _bound_filters(self.filters)
        self.filters["_bounded_concat"] = bounded_concat
        self.filters[_TOUCHED] = touched
        self.filters[_OPENED] = opened

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        found: nodes.Template = _Concats().visit(tree)
        return found

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        watched = _Touches(alone=RESULT).visit(source)
        return super()._generate(watched, name, filename, defer_init)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look an attribute up; of a view, a fact or variable."""
        if isinstance(obj, _VIEWS):
            return self._look(obj, attribute)
        if isinstance(obj, Mapping) and attribute in obj and not hasattr(type(obj), attribute):
            return obj[attribute]
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Look an item up; of a view, a fact or variable."""
        if isinstance(obj, _VIEWS):
            return self._look(obj, str(argument))
        return super().getitem(obj, argument)

    def _look(self, view: AssetView | EnvView, name: str) -> Any:
        try:
            return view.look(name)
        except AttributeError:
            return self.undefined(obj=view, name=name)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Compute what the operators may make large, after a look at how large."""
        check = {"+": _check_sum, "*": _check_product, "**": _check_power, "%": _check_percent}[operator]
        check(left, right)
        return super().call_binop(context, operator, left, right)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Wrap ``str.format`` as the sandbox does, after a look at how wide it would be."""
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            _check_format(value.__self__)
        return wrapped

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as in Jinja
        """Call a method, after a look at what it could make of its arguments."""
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            _check_text_call(owner, getattr(__obj, "__name__", ""), args)
        return super().call(__context, __obj, *args, **kwargs)


class _Concats(NodeTransformer):
    """``a ~ b`` becomes a filter, for only filters and operators can be bounded."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - Jinja names it
        """Rewrite one concatenation."""
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "_bounded_concat", [], [], None, None, lineno=node.lineno)


_TOUCHED = "_touched"
_OPENED = "_opened"
RESULT = "_alone"
"""The name that the value of an expression that stands alone is assigned to."""


class _Touches(NodeTransformer):
    """Every name, with what is looked up in it, goes through :func:`~msauto.playbook.templates.taint.touched`.

    ``creds.user`` is looked at as a whole, so that a secret beside it is not touched; ``token[0]`` opens one. An
    expression that hands data on as they are (``alone`` is assigned it) touches nothing: their own marks go with them.
    """

    def __init__(self, alone: str) -> None:
        self._alone = alone

    def visit_Assign(self, node: nodes.Assign) -> nodes.Node:  # noqa: N802 - Jinja names it
        """Leave alone what is handed on as it is."""
        handed_on = isinstance(node.target, nodes.Name) and node.target.name == self._alone
        node.node = self._inside(node.node) if handed_on else self.visit(node.node)
        return node

    def visit_Name(self, node: nodes.Name) -> nodes.Node:  # noqa: N802
        """Watch a name that is read."""
        return _watched(node) if node.ctx == "load" else node

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:  # noqa: N802
        """Watch what is looked up."""
        return _watched(self._inside(node))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        """Watch what is looked up."""
        return _watched(self._inside(node))

    def visit_Call(self, node: nodes.Call) -> nodes.Node:  # noqa: N802
        """Watch what a call returns, and what it is called on."""
        return _watched(self._inside(node))

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:  # noqa: N802
        """A call block needs its call as it is."""
        call = self._inside(node.call)
        self.generic_visit(node)
        node.call = call
        return node

    def _inside(self, node: Any) -> Any:
        if isinstance(node, nodes.Name):
            return node
        if isinstance(node, nodes.Getattr):
            node.node = _watched(self._inside(node.node), _OPENED)
            return node
        if isinstance(node, nodes.Getitem):
            node.node, node.arg = _watched(self._inside(node.node), _OPENED), self.visit(node.arg)
            return node
        if isinstance(node, nodes.Call):
            self.generic_visit(node)
            return node
        return self.visit(node)


def _watched(node: nodes.Expr, by: str = _TOUCHED) -> nodes.Filter:
    return nodes.Filter(node, by, [], [], None, None, lineno=node.lineno)


def bounded_concat(parts: list[Any]) -> str:
    """Join texts, if the result is not too long."""
    texts = [str(part) for part in parts]
    _check_length(sum(map(len, texts)))
    return "".join(texts)


def _check_length(length: int) -> None:
    if length > MAX_LENGTH:
        raise SecurityError(f"a template may not make more than {MAX_LENGTH:,} signs or items")


def _check_sum(left: Any, right: Any) -> None:
    if isinstance(left, str | list | tuple) and isinstance(right, str | list | tuple):
        _check_length(len(left) + len(right))


def _check_product(left: Any, right: Any) -> None:
    for text, times in ((left, right), (right, left)):
        if isinstance(text, str | list | tuple | bytes) and isinstance(times, int):
            _check_length(len(text) * max(times, 0))
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > MAX_BITS:
        raise SecurityError("a number in a template is too large")


def _check_power(left: Any, right: Any) -> None:
    size = abs(right) if isinstance(right, int | float) else 0
    bits = left.bit_length() if isinstance(left, int) else 64
    if size > MAX_BITS or bits * size > MAX_BITS:
        raise SecurityError("a number in a template is too large")


def _check_percent(left: Any, right: Any) -> None:
    del right
    if isinstance(left, str):
        _check_format(left)


def _check_format(text: str) -> None:
    if _WIDE.search(text):
        raise SecurityError("a template may not format so wide")


def _check_text_call(owner: str, name: str, args: tuple[Any, ...]) -> None:
    if name in {"center", "ljust", "rjust", "zfill", "expandtabs"}:
        _check_widths(args, owner.count("\t") or 1)
    if name == "replace" and len(args) > 1:
        _check_length((owner.count(str(args[0])) + 1) * len(str(args[1])) + len(owner))
    if name == "join" and args and isinstance(args[0], list | tuple):
        _check_length(len(owner) * len(args[0]) + sum(len(str(each)) for each in args[0]))


def _check_widths(values: Iterable[Any], times: int = 1) -> None:
    for value in values:
        if isinstance(value, int):
            _check_length(value * times)


def _bound_filters(filters: dict[str, Callable[..., Any]]) -> None:
    for name in ("center", "indent", "batch", "slice", "wordwrap"):
        filters[name] = _with_bounded_numbers(filters[name])
    filters["replace"] = _replace
    filters["format"] = _format
    filters["join"] = _with_bounded_join(filters["join"])


def _with_bounded_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(*args: Any, **kwargs: Any) -> Any:
        lines = max((arg.count("\n") + 1 for arg in args if isinstance(arg, str)), default=1)
        _check_widths([*args, *kwargs.values()], lines)
        return function(*args, **kwargs)

    return _as_filter(function, bounded)


def _with_bounded_join(function: Callable[..., Any]) -> Callable[..., Any]:
    def bounded(context: Any, value: Any, d: str = "", attribute: Any = None) -> Any:
        items = list(value)
        if attribute is None:
            _check_length(sum(len(str(item)) + len(str(d)) for item in items))
        return function(context, items, d, attribute)

    return _as_filter(function, bounded)


def _as_filter(original: Callable[..., Any], bounded: Callable[..., Any]) -> Callable[..., Any]:
    """Keep what Jinja wants handed to the filter (environment, context)."""
    argument = getattr(original, "jinja_pass_arg", None)
    if argument is not None:
        bounded.jinja_pass_arg = argument  # type: ignore[attr-defined]
    return bounded


def _replace(value: Any, old: Any, new: Any, count: int = -1) -> str:
    text = str(value)
    _check_text_call(text, "replace", (old, new))
    return text.replace(str(old), str(new), count)


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    text = str(value)
    _check_format(text)
    return text % (kwargs or args)


def explain(error: MissingNameError, known: Iterable[str]) -> tuple[str, str]:
    """Say what is not there, and what may have been meant; returns message and remedy."""
    owner, name = error.owner, error.name
    if owner is missing:
        return f"there is no variable {name!r}", nearest(name, known)
    if isinstance(owner, EnvView):
        hint = nearest(name, owner.names())
        found = hint if hint.startswith("did") else ""
        return f"the environment variable {name} is not set", found or f"set it, or write env.{name} | default('')"
    if isinstance(owner, AssetView):
        return f"the server reports no {name!r} of this asset", nearest(name, owner.names())
    if isinstance(owner, Mapping):
        return f"there is no {name!r} in it", nearest(name, map(str, owner))
    return error.message or f"there is no {name!r} in it", ""
