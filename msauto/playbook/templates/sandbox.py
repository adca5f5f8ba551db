"""The sandbox of templates: what may be named and called is listed, and what an operation reads and makes is counted.

Values are texts, numbers, times, lists and mappings. Jinja2's tree is changed before it is compiled, so that what its
own hooks do not see goes through a filter here. Each use of a secret is noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, timedelta
from fractions import Fraction
from functools import partial, wraps
from math import isinf, prod
from typing import Any

from jinja2 import (
    StrictUndefined,
    TemplateSyntaxError,
    Undefined,
    UndefinedError,
    nodes,
    pass_context,
    pass_environment,
)
from jinja2.filters import _GroupTuple, do_round
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, missing
from jinja2.visitor import NodeTransformer

from msauto import sockets
from msauto.errors import did_you_mean, nearest, nearest_name
from msauto.model.facts import Facts
from msauto.playbook.templates.budget import (
    MAX_BITS,
    MAX_TEXT,
    bits,
    check_length,
    each,
    made,
    size_of,
    spend,
)
from msauto.playbook.templates.filters import (
    FILTERS,
    JINJA_FILTERS,
    JINJA_TESTS,
    TESTS,
    check_time_format,
    tracker_of,
    words,
)
from msauto.playbook.templates.names import (
    AssetView,
    EnvView,
    TemplateFunctionError,
    TemplateNames,
)
from msauto.secrets.sources import MarkedText, holds_secret

MAX_TEMPLATE = 50_000
"""The most characters of a template."""
MAX_PRODUCT = 50_000_000
"""The longest of two texts or lists times the other: what replacing, joining or searching may make or compare."""

_ATTRIBUTES: tuple[tuple[Any, str], ...] = (
    (
        str,
        "capitalize casefold center count endswith find index isalnum isalpha isdecimal isdigit islower isnumeric",
    ),
    (
        str,
        "isspace istitle isupper join ljust lower lstrip partition removeprefix removesuffix replace rfind rindex",
    ),
    (
        str,
        "rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title upper zfill",
    ),
    ((list, tuple), "count index"),
    (_GroupTuple, "grouper list"),
    (Mapping, "get items keys values"),
    (
        date,
        "year month day hour minute second microsecond date time isoformat isoweekday strftime timestamp weekday",
    ),
    (timedelta, "days microseconds seconds total_seconds"),
    (Fraction, "denominator numerator"),
    (
        LoopContext,
        "changed cycle depth depth0 first index index0 last length nextitem previtem revindex revindex0",
    ),
)
"""The attributes and methods of each type that templates may use."""
_OF_LISTS = words(
    "!= == combine contains count d default defined dict2items dictsort difference eq first flatten groupby"
)
_OF_LISTS += words(
    "in items2dict last length list map mapping max min ne none product reject rejectattr reverse select"
)
_OF_LISTS += words("selectattr sequence sort subelements sum ternary undefined unique zip")
"""Filters and tests that take large lists, and make no text."""


class MissingNameError(UndefinedError):
    """A template uses an undefined name."""

    def __init__(self, message: str | None = None, *, name: str = "", owner: Any = missing) -> None:
        super().__init__(message)
        self.name = name
        self.owner = owner


class StrictName(StrictUndefined):
    """An undefined name: any use except ``default`` and ``is defined`` raises, with the name."""

    def __init__(
        self, hint: str | None = None, obj: Any = missing, name: str | None = None, exc: Any = None
    ) -> None:
        if exc in {None, UndefinedError}:
            text = "" if name is None else str(name)
            exc = partial(MissingNameError, name=text[:80], owner=obj)
        super().__init__(hint, obj, name, exc)


_VIEWS = (AssetView, EnvView)


class ScopeContext(Context):
    """Looks up names in a scope, only when they are used."""

    scope: TemplateNames

    def resolve_or_missing(self, key: str) -> Any:
        """Return the value of a name, or Jinja's ``missing``."""
        if key in self.vars:
            return self.vars[key]
        try:
            return self.scope[key]
        except KeyError:
            return self.parent.get(key, missing)


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, with lists of what may be used, and with limits."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%", "**"})
    context_class = ScopeContext

    def __init__(self, **functions: Callable[..., Any]) -> None:
        super().__init__(
            undefined=StrictName,
            keep_trailing_newline=True,
            autoescape=False,
            optimized=False,
            finalize=_printed,
        )
        for name in ("lipsum", "cycler", "joiner"):
            del self.globals[name]
        self.globals |= functions
        own = {"format": _format, "round": _round, "sum": _sum}
        self.filters = _Filters(
            _metered_all(self.filters, JINJA_FILTERS, FILTERS | own) | _OPERATIONS
        )
        self.tests = _metered_all(self.tests, JINJA_TESTS, TESTS)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        if len(source) > MAX_TEMPLATE:
            raise TemplateSyntaxError(f"it has more than {MAX_TEMPLATE:,} characters", 1)
        return super()._parse(source, name, filename)

    def _generate(
        self,
        source: nodes.Template,
        name: str | None,
        filename: str | None,
        defer_init: bool = False,
    ) -> str:
        return super()._generate(_Guards().visit(source), name, filename, defer_init)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:  # noqa: ARG002 - as in Jinja
        """Return whether templates may use an attribute."""
        if isinstance(obj, Namespace):
            return not attr.startswith("_")
        return any(isinstance(obj, kinds) and attr in names.split() for kinds, names in _ATTRIBUTES)

    def is_safe_callable(self, obj: Any) -> bool:
        """Return whether templates may call it: functions of msauto, macros, loops, and the methods that are listed."""
        if isinstance(obj, Macro | LoopContext | Undefined) or obj in self.globals.values():
            return True
        owner = getattr(obj, "__self__", None)
        return self.is_safe_attribute(owner, getattr(obj, "__name__", ""), obj)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look up an attribute."""
        if isinstance(obj, _VIEWS):
            return self._look(obj, attribute)
        if (
            isinstance(obj, dict | Mapping)
            and attribute in obj
            and not hasattr(type(obj), attribute)
        ):
            return obj[attribute]
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Look up an item."""
        spend()
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
        if operator == "%" and isinstance(left, str):
            _check_format(left, right)
        elif operator == "*":
            for items, times in ((left, right), (right, left)):
                if isinstance(items, str | list | tuple) and isinstance(times, int):
                    check_length(len(items) * times, "the result of *")
        elif operator == "**":
            check_length(bits(left) * abs(right), "a number in bits", MAX_BITS)
        return made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805 - as in Jinja
        """Call a function or method after a check of the size of its result."""
        if not callable(__obj):
            raise TypeError(f"'{type(__obj).__name__}' object is not callable")
        if isinstance(__obj, LoopContext):  # a recursive loop
            args = (each(args[0]), *args[1:])
        if isinstance(__obj, Macro | LoopContext | Undefined):
            spend()
            return super().call(__context, __obj, *args, **kwargs)
        name = __obj.__name__
        owner = getattr(__obj, "__self__", None)
        weighed = None if isinstance(owner, Mapping) else owner
        texts = _check_texts(f"{name}()", (weighed, *args, *kwargs.values()))
        if isinstance(owner, str):
            for value in args:
                if isinstance(value, int):
                    check_length(value, f"the result of {name}()")
        if name == "strftime":
            for form in (*args, *kwargs.values()):
                check_time_format(str(form))
        result = super().call(__context, __obj, *args, **kwargs)
        if name == "lookup":
            return result  # what is in a file is bounded where it is read
        return made(result, texts)


# The tree -------------------------------------------------------------------------------------------------------

_OWN = "="
"""How the names of our own filters begin: no template can name them."""
RESULT = "_alone"
"""The variable that gets the value of an expression without text around it."""


def _through(operation: str, node: nodes.Node) -> nodes.Filter:
    """Return a node that passes the value of another one through one of :data:`_OPERATIONS`."""
    return nodes.Filter(node, _OWN + operation, [], [], None, None, lineno=node.lineno)


class _Guards(NodeTransformer):
    """Passes what takes time or memory through a filter, and each name, with its attributes, through :func:`_touched`.

    ``creds.user`` is checked as a whole, so a secret beside it is not touched; ``token[0]`` opens a secret. An
    expression that passes data on unchanged (to :data:`RESULT`) touches nothing: the data carry their own marks.
    """

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:  # noqa: N802 - Jinja names it
        """Count a text between expressions, each time."""
        return nodes.Const(node.data, lineno=node.lineno)

    def visit_Const(self, node: nodes.Const) -> nodes.Node:  # noqa: N802
        """Refuse a number that is too large to be one: Python would read it as the name ``inf``."""
        if isinstance(node.value, float) and isinf(node.value):
            raise TemplateSyntaxError("a number is out of range", node.lineno)
        return node

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        """Count the items of a loop."""
        self.generic_visit(node)
        node.iter = _through("each", node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        """Turn ``a ~ b`` into a filter."""
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "join", [], [], None, None, lineno=node.lineno)

    def visit_List(self, node: nodes.Node) -> nodes.Node:  # noqa: N802
        """Count a list or mapping that the template writes."""
        return _through("made", self.generic_visit(node))

    visit_Dict = visit_List  # noqa: N815

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        """Count it as a list, unless it is assigned to."""
        if node.ctx != "load":
            return node
        return self.visit_List(node)

    def visit_Assign(self, node: nodes.Assign) -> nodes.Node:  # noqa: N802
        """Skip a value that is passed on unchanged."""
        is_unchanged = isinstance(node.target, nodes.Name) and node.target.name == RESULT
        node.node = self._inside(node.node) if is_unchanged else self.visit(node.node)
        return node

    def visit_Name(self, node: nodes.Name) -> nodes.Node:  # noqa: N802
        """Watch a name."""
        if node.ctx != "load":
            return node
        return _through("touched", node)

    def visit_Call(self, node: nodes.Call | nodes.Getattr | nodes.Getitem) -> nodes.Node:  # noqa: N802
        """Watch a lookup, or the result of a call and its object."""
        return _through("touched", self._inside(node))

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
            node.node = _through("opened", self._inside(node.node))
            if isinstance(node, nodes.Getattr):
                return node
            is_slice = isinstance(node.arg, nodes.Slice)
            node.arg = self.visit(node.arg)
            return _through("made", node) if is_slice else node
        if isinstance(node, nodes.Call):
            return self.generic_visit(node)
        return self.visit(node)


# Operations -----------------------------------------------------------------------------------------------------


@pass_context
def _touched(context: Context, value: Any) -> Any:
    """Return a value that a template uses; note whether it contains a secret."""
    spend()
    tracker = tracker_of(context)
    if tracker.secrets.texts or tracker.unknown:
        owner = getattr(value, "__self__", None)  # the object that a method belongs to
        tracker.touched |= holds_secret(value) or holds_secret(owner)
    return value


@pass_context
def _opened(context: Context, value: Any) -> Any:
    """Return a value whose items or attributes a template uses; note whether it is a secret itself: ``token[0]``."""
    tracker_of(context).touched |= isinstance(value, MarkedText)
    return value


@pass_context  # so that Jinja2 does not call it while it compiles
def _printed(_: Context, value: Any) -> Any:
    """Return a value that becomes part of a text; raises for a function."""
    if callable(value) and not isinstance(value, Undefined):
        raise TemplateFunctionError("a function is not a text", "call it: …()")
    spend(size_of(value, MAX_TEXT, "what is printed"))
    return value


def _made(value: Any) -> Any:
    """Count a value; ``texts`` is not for templates, whose ``map('=made', texts=…)`` leads here."""
    return made(value)


_OPERATIONS: Any = {
    "=each": each,
    "=made": _made,
    "=opened": _opened,
    "=touched": _touched,
}


class _Filters(dict[str, Callable[..., Any]]):
    """The filters of templates; one that is not ours is looked for among those of plugins."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        place = sockets.place_of("filters", name)
        if place is None:
            raise KeyError(name)
        self[name] = _metered(name, sockets.load_place(place))
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a filter, as Jinja asks for it while it compiles."""
        try:
            return self[name]
        except KeyError:
            return default


def _metered_all(of_jinja: Any, names: Iterable[str], ours: Any) -> dict[str, Any]:
    known = {name: of_jinja[name] for name in names} | ours
    return {name: _metered(name, function) for name, function in known.items()}


def _metered(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter or test that weighs what it reads, and counts what it makes."""

    @wraps(function)  # also keeps the attribute by which Jinja passes the environment or context
    def counted(*args: Any, **kwargs: Any) -> Any:
        spend()
        texts = 0
        if name not in _OF_LISTS:
            texts = _check_texts(name, (*args, *kwargs.values()))
        return made(function(*args, **kwargs), texts)

    return counted


def _check_texts(operation: str, values: Iterable[Any]) -> int:
    """Raise if what is given to an operation is too large for a text; return the length of its texts."""
    sizes = [size_of(value, MAX_TEXT, f"what {operation} reads") for value in values]
    check_length(prod(sorted(sizes)[-2:]), f"{operation}: one text times the other", MAX_PRODUCT)
    return sum(sizes)


def _check_format(text: str, values: Any) -> None:
    """Raise if a format may make a long text: by its widths, and by the largest value in each place."""
    if "*" in text:
        raise ValueError("a format cannot take its width from a value")
    widths = sum(int(digits[:9]) for digits in re.findall(r"\d+", text))
    largest = 300 + size_of(values, MAX_TEXT, "a format")  # 300: a number
    check_length(len(text) + widths + text.count("%") * largest, "a format")


@pass_environment
def _format(sandbox: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    return sandbox.call_binop(None, "%", str(value), kwargs or args)


@pass_environment
def _sum(sandbox: Any, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    for item in value:
        part = item if attribute is None else sandbox.getitem(item, attribute)
        start = sandbox.call_binop(None, "+", start, part)
    return start


def _round(value: Any, precision: int = 0, method: Any = "common") -> Any:
    return do_round(value, max(-300, min(precision, 300)), method)


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
    **{
        name: f"facts are in asset: asset.{name}"
        for name in (*Facts().names(), "frames", "create_time", "finalized")
    },
}
"""What to use instead of a name that is not defined."""


def explain(error: MissingNameError, names: TemplateNames) -> tuple[str, str]:
    """Explain an undefined name and suggest another; returns message and remedy."""
    owner, name = error.owner, error.name
    default = "write | default(…) after it, or test it with `when`"
    if owner is missing and not name:  # the first item of an empty list
        return str(error.message), default
    if owner is missing:
        hint = nearest(name, names.known())
        if names.where_to_set:
            hint = did_you_mean(name, names.known(), names.where_to_set, cutoff=0.75)
        return f"undefined variable {name!r}", _NAMES.get(name, hint)
    if isinstance(owner, EnvView):
        remedy = f"set it where msauto runs, or write env.{name} | default('')"
        hint = did_you_mean(name, owner.names(), remedy, cutoff=0.75)
        return f"the environment variable {name} is not set", hint
    if isinstance(owner, AssetView) and (why := owner.why_not(name)):
        return f"{name!r} is not known: {why}", "count in frames, or test it with `is defined`"
    if isinstance(owner, AssetView):
        meant = _FACTS.get(nearest_name(name, (*owner.names(), *_FACTS)))
        hint = (
            f"use {meant}; all facts: msauto doc facts" if meant else nearest(name, owner.names())
        )
        return f"the server does not report {name!r} for this asset", hint
    if isinstance(owner, Mapping):
        return f"{name!r} not found in the mapping", nearest(name, map(str, owner)) or default
    if isinstance(owner, list | tuple) and name.lstrip("-").isdecimal():
        return f"the list has no item {name}: its length is {len(owner)}", default
    return error.message or f"{name!r} not found in the value", default
