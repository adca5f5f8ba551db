"""Templates: Jinja2, sandboxed and strict; each text is compiled once.

An expression without text around it keeps its own type; no text is converted to a number.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import permutations
from typing import Any, Final

from jinja2 import TemplateError, TemplateSyntaxError, Undefined, meta, nodes

from msauto.documents.document import MarkedTemplate, SourceNode
from msauto.errors import InputError, RefusedError, did_you_mean
from msauto.model.facts import Need, NoAssetError, kind_of_fact
from msauto.playbook.templates import sandbox
from msauto.playbook.templates.budget import MAX_TEXT, MAX_VALUE, budgeted, made, size_of, spend
from msauto.playbook.templates.filters import REMOVED
from msauto.playbook.templates.lookups import lookup
from msauto.playbook.templates.names import (
    OMIT,
    TemplateFunctionError,
    TemplateNames,
    UsesAssetError,
    mark_text,
)
from msauto.secrets.redaction import HIDDEN
from msauto.secrets.sources import MarkedText

_SANDBOX = sandbox.Sandbox(lookup=lookup)
Compiled = Callable[[TemplateNames], Any]


# Compiling ------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=20_000)
def _compile(text: str, expression: bool) -> Compiled:
    """Compile a template, or a bare expression (``when``, ``where``); raises ``TemplateSyntaxError``."""
    tree = _SANDBOX.parse(_as_template(text) if expression else text)
    _check_comparisons(tree)
    alone = _expression_alone(tree, text)
    if alone is not None:
        body = nodes.Assign(nodes.Name(sandbox.RESULT, "store", lineno=1), alone, lineno=1)
        tree = nodes.Template([body], lineno=1)
    elif expression:
        raise TemplateSyntaxError("this is not a single expression", 1)
    template = _SANDBOX.from_string(tree)

    def render(names: TemplateNames) -> Any:
        context = sandbox.ScopeContext(_SANDBOX, _SANDBOX.globals, template.name, template.blocks)
        context.scope = names
        text = "".join(template.root_render_func(context))
        return made(text) if alone is None else context.vars[sandbox.RESULT]

    return render


class _NeverEqualError(TemplateSyntaxError):
    """A fact is compared with a text, and is never one."""


def _check_comparisons(tree: nodes.Template) -> None:
    """Raise for a number, or true or false, that is compared with a text: such a condition never changes."""
    compared: list[list[nodes.Expr]] = []
    for comparison in tree.find_all(nodes.Compare):
        compared.append([comparison.expr, *(operand.expr for operand in comparison.ops)])
    for test in tree.find_all(nodes.Test):
        compared.append([test.node, *(test.args or ())])
    for sides in compared:
        for one, other in permutations(sides, 2):
            fact, text = _fact_in(one), _text_in(other)
            kind = kind_of_fact(fact)
            if kind and text:
                raise _NeverEqualError(f"asset.{fact} is {kind}, and never equal to {text!r}", 1)


def _fact_in(node: nodes.Expr) -> str:
    """Return the name of the fact that an expression is; empty for another expression."""
    match node:
        case nodes.Getattr(node=nodes.Name(name="asset"), attr=name):
            return str(name)
        case nodes.Getitem(node=nodes.Name(name="asset"), arg=nodes.Const(value=name)):
            return str(name)
    return ""


def _text_in(node: nodes.Expr) -> str:
    """Return the text that an expression is, or the first of a list of texts alone; empty for another expression."""
    match node:
        case nodes.Const(value=str() as text):
            return text
        case nodes.List(items=items) | nodes.Tuple(items=items):
            texts = [*map(_text_in, items)]
            if texts and all(texts):
                return texts[0]
    return ""


def _as_template(expression: str) -> str:
    return "{{ (" + expression + "\n) }}"


def _expression_alone(tree: nodes.Template, text: str) -> nodes.Expr | None:
    """Return the expression of a template without text around it; it keeps its own type."""
    match tree.body:
        case [nodes.Output(nodes=[expression])] if not isinstance(expression, nodes.TemplateData):
            return expression
        case [nodes.Output(nodes=[expression, nodes.TemplateData(data="\n")])] if text[-1] == "\n":
            return expression
    return None


@lru_cache(maxsize=20_000)
def _names_needed(text: str, expression: bool) -> frozenset[str]:
    """Return the names that a template needs, without those that it tests or gives a default for."""
    tree = _SANDBOX.parse(_as_template(text) if expression else text)
    names = meta.find_undeclared_variables(tree).difference(_SANDBOX.globals)
    for node in tree.find_all((nodes.Filter, nodes.Test)):
        is_guard = node.name in {"default", "d", "defined", "undefined"}
        if is_guard and isinstance(node.node, nodes.Name):
            names.discard(node.node.name)
    return frozenset(names)


def check_names(
    text: str, names: TemplateNames, node: SourceNode, *, expression: bool = False
) -> None:
    """Raise :class:`InputError` for an undefined name in a template that cannot be rendered yet."""
    for name in sorted(_names_needed(text, expression)):
        if name not in names:
            raise node.error(
                *sandbox.explain(sandbox.MissingNameError(name=name), names), kind="undefined-name"
            )


def compiled(text: str, node: SourceNode, *, expression: bool) -> Compiled:
    """Return a template or expression, compiled; raises :class:`InputError` for an invalid one."""
    try:
        return _compile(text, expression)
    except (TemplateError, RecursionError, SyntaxError, ValueError) as error:
        if isinstance(text, MarkedTemplate):
            why = "invalid template; it is marked as secret, so the reason is not shown"
            raise node.error(why, _CORRECT, kind="template") from None
        why, remedy = _explain(error, text, "expression" if expression else "template")
        raise node.error(why, remedy or _CORRECT, kind="template") from error


def _explain(error: Exception, text: str, what: str) -> tuple[str, str]:
    """Explain why a template or expression is invalid, and what to do; without a remedy, it is to be corrected."""
    message = getattr(error, "message", None) or "it is nested too deep"
    if isinstance(error, _NeverEqualError):
        return message, "compare it with true, false or a number, without quotes"
    why, remedy = _explain_name(message)
    if why:
        return why, remedy
    reason, remedy = _explain_syntax(message, text)
    return f"invalid {what}: {reason}", remedy


def _explain_name(message: str) -> tuple[str, str]:
    """Explain a message of Jinja2 about an unknown filter or test; empty for another message."""
    named = re.fullmatch(r"No (filter|test) named '(.*)'\.", message)
    if named is None:
        return "", ""
    known: Iterable[str] = _SANDBOX.tests
    if named[1] == "filter":
        known = [name for name in _SANDBOX.filters if name.isidentifier()]
    listed = f"list them: msauto doc {named[1]}s"
    plain = named[2].rpartition(".")[2]  # of a collection of Ansible
    remedy = REMOVED.get(plain) or did_you_mean(plain, known) or listed
    return f"unknown {named[1]} {named[2]!r}", remedy


# Rendering ------------------------------------------------------------------------------------------------------

_CORRECT: Final = "correct the template"
_REASON_REDACTED = "the template fails; it uses a secret, so the reason is not shown"


def render_text(text: str, names: TemplateNames, node: SourceNode) -> Any:
    """Render one template; raises :class:`InputError` with its place.

    ``Need``, ``NoAssetError`` and ``UsesAssetError`` pass through.
    """
    value, touched = _evaluate(text, names, node, expression=False)
    if isinstance(text, MarkedTemplate):
        return mark_text(value, names.tracker, node)
    if touched and value is not OMIT:
        return names.tracker.marked(value, node)
    return value


def evaluate_expression(text: str, names: TemplateNames, node: SourceNode) -> Any:
    """Evaluate a bare expression; raises as :func:`render_text`."""
    return _evaluate(text, names, node, expression=True)[0]


def _evaluate(
    text: str, names: TemplateNames, node: SourceNode, *, expression: bool
) -> tuple[Any, bool]:
    """Return the value of a template or expression, and whether it touched a secret."""
    tracker = names.tracker
    outer, tracker.touched = tracker.touched, False
    try:
        return budgeted(_run, text, names, node, expression=expression), tracker.touched
    except InputError as error:
        # An error at another place is redacted already, by a variable.
        is_own = any(problem.place == node.place for problem in error.problems)
        if not (tracker.touched and is_own):
            raise
        if tracker.unknown and not expression:
            return MarkedText(HIDDEN), True
        remedy = "check what the template does with the secret"
        raise node.error(_REASON_REDACTED, remedy, kind="template") from None
    finally:
        tracker.touched = outer


def _run(text: str, names: TemplateNames, node: SourceNode, *, expression: bool) -> Any:
    try:
        value = compiled(text, node, expression=expression)(names)
        size_of(value, MAX_VALUE)
        return _plain(value)
    except (Need, NoAssetError, UsesAssetError, InputError, RefusedError):
        raise
    except sandbox.MissingNameError as error:
        why, remedy = sandbox.explain(error, names)
        if headers := names.headers_of(error.owner):
            why = f"{headers}: the CSV file has no column {error.name!r}"
            remedy = (
                f"{did_you_mean(error.name, error.owner)} columns: {', '.join(error.owner)}".strip()
            )
        raise node.error(why, remedy, kind="undefined-name") from error
    except TemplateFunctionError as error:
        raise node.error(str(error), error.remedy, kind=error.kind) from error
    except RecursionError as error:
        raise node.error(
            "the template calls itself without end", "end the calls", kind="template"
        ) from error
    except Exception as error:
        message, remedy = _explain_failure(error)
        raise node.error(
            f"the template fails: {message}", remedy or _CORRECT, kind="template"
        ) from error


def _plain(value: Any) -> Any:
    """Return plain data: tuples become lists; raises for undefined names and functions.

    A list or mapping that is plain is returned as it is.
    """
    if isinstance(value, Undefined):
        str(value)  # raises, with the name
    if isinstance(value, dict):
        spend()
        size_of([*value], MAX_TEXT, "the keys of a mapping")
        items: Any = {str(key): _plain(item) for key, item in value.items()}
        is_plain = all(items.get(key, items) is item for key, item in value.items())
    elif isinstance(value, str) or not hasattr(value, "__iter__"):
        if callable(value):
            raise TypeError("its value is a function: are () missing?")
        return value
    else:
        spend()
        items = [_plain(item) for item in value]
        is_plain = all(map(operator.is_, items, value))
    if is_plain and type(value) is type(items):
        return value
    spend(50 * len(items))
    return items


# Errors of Jinja2 and of Python, in terms of a playbook: what is wrong, and what to do

_FOREIGN: Final = {
    "=>": "write >=",
    "=<": "write <=",
    "&": "write `and`",
    "||": "write `or`",
    "!": "write `not`",
    "?": "write `a if condition else b`",
    "$": "variables have no $: write their name",
    "`": "quote texts with ' or \"",
}
"""What to write instead of a sign of another language."""
_TAGS: Final = "if, for, set, macro, filter, with, raw"
_TOO_SOON: Final = "it ends too soon"
_SYNTAX: Final = (
    (r"expected token '.*', got '='", "unexpected '='", "compare with =="),
    (r"expected token '.*', got 'end of (?:print statement|statement block)'", _TOO_SOON, ""),
    (
        r"expected token '(?:end of print statement|\))', got '(.*)'",
        r"unexpected '\1' after the expression",
        "write an operator or a filter (|) between two values, and texts in quotes",
    ),
    (r"expected token '(.*)', got '(.*)'", r"unexpected '\2' in place of '\1'", ""),
    (
        r"Encountered unknown tag '((?:end|else|elif)[^']*)'.*",
        r"{% \1 %} has no block before it",
        "remove it, or add the tag that it closes",
    ),
    (
        r"Encountered unknown tag '([^']*)'.*",
        r"unknown tag {% \1 %}",
        rf"available: {_TAGS}; a value is written {{{{ \1 }}}}",
    ),
    (
        r"Unexpected end of template.*closed is '([^']*)'\.",
        r"{% \1 %} is not closed",
        r"add {% end\1 %}",
    ),
    (r"[Uu]nexpected '?end of template.*|Missing end of .*", _TOO_SOON, ""),
    (r"unexpected char (['\"])(['\"])\1 at \d+", r"unexpected \1\2\1", "close the quote"),
    (r"unexpected char (['\"])(.*)\1 at \d+", r"unexpected '\2'", ""),
    (r"unexpected '.', expected '(.)'", r"a closing \1 is missing", "add it"),
    (r"unexpected '(.)'", r"unexpected '\1'", ""),
    (r"Expected an expression, got .*", "it has no expression", "write a name or a value"),
    (r"expected name or number", "a name or a number must follow the dot", ""),
    (r"expected subscript expression", "[ ] has no key or index", "write a key or an index"),
    (r"tag name expected", "{% %} has no tag", f"available: {_TAGS}"),
    (r"can't assign to '.*'", "only a name can be assigned to", "write {% set name = value %}"),
    (
        r"You cannot chain multiple tests with is",
        "two tests follow each other",
        "write `x is a and x is b`",
    ),
)
"""Messages of Jinja's parser, and what replaces them, with the groups of the message."""


def _explain_syntax(message: str, text: str) -> tuple[str, str]:
    """Explain an error of Jinja2's parser in ``text``, an expression or a whole template, as message and remedy."""
    if message == "unexpected ')'" and ")" not in text:  # ours, around an expression
        message = "Unexpected end of template"
    if message == "unexpected '}'" and text.count("{{") > text.count("}}"):
        return "unexpected '}'", "close it with }}"
    if message.startswith(("expected token", "unexpected ")):
        foreign = _foreign_sign(text)
        if foreign:
            return f"unexpected {foreign!r}", _FOREIGN[foreign]
    for pattern, instead, advice in _SYNTAX:
        match = re.fullmatch(pattern, message, re.DOTALL)
        if match is None:
            continue
        if instead == _TOO_SOON:
            return instead, _how_to_complete(text)
        return match.expand(instead), match.expand(advice)
    return message.rstrip("."), ""


def _foreign_sign(text: str) -> str:
    """Return the first sign of another language outside of quotes; empty without one."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", text)
    for sign in _FOREIGN:
        is_comparison = sign == "!" and "!=" in bare
        if sign in bare and not is_comparison:
            return sign
    return ""


def _how_to_complete(text: str) -> str:
    for start, end in (("{{", "}}"), ("{%", "%}")):
        if text.count(start) > text.count(end):
            return f"close it with {end}"
    return "complete it, and close its brackets"


_KINDS: Final = {
    **dict.fromkeys(("int", "float"), "a number"),
    **dict.fromkeys(("str", "markedtext"), "text"),
    **dict.fromkeys(("list", "tuple"), "a list"),
    "dict": "a mapping",
    "nonetype": "nothing (null)",
    "bool": "true or false",
    **dict.fromkeys(("datetime", "datetime.datetime"), "a time"),
    "datetime.timedelta": "a duration",
    "assetview": "the asset",
    **dict.fromkeys(("function", "method"), "a function"),
}
"""Python's types, without ``Written`` before their name (texts and lists with places)."""
_OPERANDS: Final = "{sign} cannot be used with {left} and {right}"
_FAILURES: Final = (
    (
        r"unsupported operand type\(s\) for (?P<sign>\S+?)(?: or pow\(\))?: '(?P<left>.*)' and '(?P<right>.*)'",
        _OPERANDS,
        "",
    ),
    (
        r"'(?P<sign>\S+)' not supported between instances of '(?P<left>.*)' and '(?P<right>.*)'",
        _OPERANDS,
        "",
    ),
    (
        r"can only (?P<sign>)concatenate (?P<left>\w+) \(not \"(?P<right>.*)\"\) to \w+",
        _OPERANDS,
        "",
    ),
    (
        r"can't multiply sequence by non-int of type '(?P<kind>.*)'",
        "text cannot be multiplied by {kind}",
        "",
    ),
    (
        r"can't \w+ offset-naive and offset-aware datetimes",
        "a time with a time zone and one without it cannot be compared",
        "compare times of one form; `select` has created_after, created_before and created_within",
    ),
    (
        r".*division by zero|.*modulo by zero|division undefined",
        "division by zero",
        "check the divisor",
    ),
    (r"'(?P<kind>.*)' object is not callable", "{kind} is not a function", "remove the ( )"),
    (
        r"argument of type '(?P<kind>.*)' is not (?:a container or )?iterable",
        "`in` cannot search {kind}",
        "it searches text, a list or a mapping",
    ),
    (r"'(?P<kind>.*)' object is not iterable", "{kind} is not a list", "use a list here"),
    (r"bad operand type for unary \S+: '(?P<kind>.*)'", "{kind} has no sign", ""),
    (r"object of type '(?P<kind>.*)' has no len\(\)", "{kind} has no length", ""),
    (r"(?:list|tuple) indices must be integers.*", "a list has no keys", "use its index: [0]"),
    (r"not all arguments converted.*", "the format has fewer places than values", "add %s"),
    (r"not enough arguments.*", "the format has more places than values", "add values"),
    (
        r"%\w format: .*|must be real number, not .*|format argument.* requires a real number.*",
        "the format needs a number",
        "convert it: | int",
    ),
    (
        r"access to attribute .* is unsafe\.|.* is not safely callable",
        "",
        "use variables, filters and tests: msauto doc filters",
    ),
)
"""Messages of Python, and what replaces them, with the kinds of values of the message."""


def _explain_failure(error: BaseException) -> tuple[str, str]:
    """Explain an error that a template raised when it was rendered, as message and remedy."""
    message = str(error)
    why, remedy = _explain_name(message)
    if why:  # map('title'): the name is a value, so it is looked up when the template is rendered
        name = message.split("'")[1]
        attribute = f"map(attribute={name!r})" if "filter" in why else f"selectattr({name!r}, …)"
        return why, f"{remedy}; for an attribute of the items: {attribute}"
    for pattern, what, remedy in _FAILURES:
        match = re.fullmatch(pattern, message, re.DOTALL)
        if match is None:
            continue
        shown = {}
        for name, kind in match.groupdict().items():
            shown[name] = _KINDS.get(kind.removeprefix("Written").lower(), "such a value")
        if what == _OPERANDS:
            shown["sign"] = match["sign"] or "+"
            remedy = _how_to_convert(shown) or remedy
        return what.format(**shown) or message, remedy
    return message[:400] or type(error).__name__, ""


def _how_to_convert(shown: Mapping[str, str]) -> str:
    kinds = {shown["left"], shown["right"]}
    if "nothing (null)" in kinds:
        return "give it a default: | default(…, true)"
    if kinds != {"a number", "text"}:
        return ""
    joins = "; ~ joins texts" if shown["sign"] == "+" else ""
    return f"convert one of them: | int or | string{joins}"
