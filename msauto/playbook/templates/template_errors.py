"""Errors of Jinja2 and of Python in templates, in terms of a playbook: what is wrong, and what to do."""

from __future__ import annotations

import re
from typing import Final

Explanation = tuple[str, str]
"""A message and a remedy."""

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
    (r"Unexpected end of template.*closed is '([^']*)'\.", r"{% \1 %} is not closed", r"add {% end\1 %}"),
    (r"[Uu]nexpected end of template.*|Missing end of .*", _TOO_SOON, ""),
    (r"unexpected char (['\"])(['\"])\1 at \d+", r"unexpected \1\2\1", "close the quote"),
    (r"unexpected char (['\"])(.*)\1 at \d+", r"unexpected '\2'", ""),
    (r"unexpected '.', expected '(.)'", r"a closing \1 is missing", "add it"),
    (r"unexpected '(.)'", r"unexpected '\1'", ""),
    (r"Expected an expression, got .*", "it has no expression", "write a name or a value"),
    (r"expected name or number", "a name or a number must follow the dot", ""),
    (r"expected subscript expression", "[ ] has no key or index", "write a key or an index"),
    (r"tag name expected", "{% %} has no tag", f"available: {_TAGS}"),
    (r"can't assign to '.*'", "only a name can be assigned to", "write {% set name = value %}"),
    (r"You cannot chain multiple tests with is", "two tests follow each other", "write `x is a and x is b`"),
)
"""Messages of Jinja's parser, and what replaces them, with the groups of the message."""


def explain_syntax(message: str, text: str) -> Explanation:
    """Explain an error of Jinja2's parser in ``text``: an expression, or a whole template."""
    if message == "unexpected ')'" and ")" not in text:  # ours, around an expression
        message = "Unexpected end of template"
    if message.startswith(("expected token", "unexpected ")):
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", text)
        sign = next((sign for sign in _FOREIGN if sign in bare and (sign != "!" or "!=" not in bare)), None)
        if sign is not None:
            return f"unexpected {sign!r}", _FOREIGN[sign]
    found, what, remedy = None, message.rstrip("."), ""
    for pattern, instead, advice in _SYNTAX:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            what, remedy = instead, advice
            break
    if what == _TOO_SOON:
        unclosed = [end for start, end in (("{{", "}}"), ("{%", "%}")) if text.count(start) > text.count(end)]
        return what, f"close it with {unclosed[0]}" if unclosed else "complete it, and close its brackets"
    return (found.expand(what), found.expand(remedy)) if found else (what, remedy)


_KINDS: Final = {
    "int": "a number",
    "float": "a number",
    "str": "text",
    "markedtext": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "nonetype": "nothing (null)",
    "bool": "true or false",
    "datetime": "a time",
    "datetime.datetime": "a time",
    "datetime.timedelta": "a duration",
    "assetview": "the asset",
    "function": "a function",
    "method": "a function",
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
    (r"can only (?P<sign>)concatenate (?P<left>\w+) \(not \"(?P<right>.*)\"\) to \w+", _OPERANDS, ""),
    (r"can't multiply sequence by non-int of type '(?P<kind>.*)'", "text cannot be multiplied by {kind}", ""),
    (r".*division by zero|.*modulo by zero|division undefined", "division by zero", "check the divisor"),
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
    (r"%\w format: .*|must be real number, not .*", "the format needs a number", "convert it: | int"),
)
"""Messages of Python, and what replaces them, with the kinds of values of the message."""


def explain_failure(error: BaseException) -> Explanation:
    """Explain an error that a template raised when it was rendered."""
    message = str(error)
    for pattern, what, remedy in _FAILURES:
        found = re.fullmatch(pattern, message, re.DOTALL)
        if found is not None:
            shown = {name: _KINDS.get(kind.removeprefix("Written").lower(), "such a value")
                     for name, kind in found.groupdict().items()}  # fmt: skip
            if what == _OPERANDS:
                shown["sign"] = found["sign"] or "+"
                kinds = {shown["left"], shown["right"]}
                if "nothing (null)" in kinds:
                    remedy = "give it a default: | default(…, true)"
                elif kinds == {"a number", "text"}:
                    joins = "; ~ joins texts" if shown["sign"] == "+" else ""
                    remedy = f"convert one of them: | int or | string{joins}"
            return what.format(**shown), remedy
    return message or type(error).__name__, ""
