"""Errors of Jinja2 and of Python in templates, in terms of a playbook: what is wrong, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

Explanation = tuple[str, str]
"""A message and a remedy."""

_TAGS: Final = ("if", "for", "set", "macro", "filter", "with", "raw")
_SIGNS: Final = {
    "&": "write `and`",
    "|": "write `or`",
    "!": "write `not`",
    "?": "write `a if condition else b`",
    "=": "compare with ==",
    "$": "variables have no $: write their name",
    "`": "quote texts with ' or \"",
    "'": "close the quote",
    '"': "close the quote",
}
"""What to write instead of a character of another language."""
_END_TOKENS: Final = {"end of print statement": "}}", "end of statement block": "%}"}


def explain_syntax(message: str, text: str) -> Explanation:
    """Explain an error of Jinja2's parser in ``text``: an expression, or a whole template."""
    for pattern, explain in _SYNTAX:
        found = pattern.fullmatch(message)
        if found is not None:
            return explain(found, text)
    return message.rstrip("."), ""


def _unexpected(found: re.Match[str], text: str) -> Explanation:
    expected, got = found["expected"], found["got"]
    if got in _END_TOKENS or (got == ")" and expected != ")" and text.count(")") < text.count("(") + 1):
        return f"it ends too soon: {_sign(expected)} is missing", ""
    if got == "=":
        at = text.find("=")
        if text[at : at + 2] in {"=>", "=<"}:
            return f"unexpected {text[at : at + 2]!r}", f"write {text[at + 1]}="
        return "unexpected '='", "compare with =="
    if got == "|" and "||" in text:
        return "unexpected '||'", _SIGNS["|"]
    if expected in {"end of print statement", ")"}:
        return (
            f"unexpected {got!r} after the expression",
            "write an operator or a filter (|) between two values, and texts in quotes",
        )
    return f"unexpected {_sign(got)!r} in place of {_sign(expected)!r}", ""


def _unexpected_sign(found: re.Match[str], text: str) -> Explanation:
    sign = found["sign"]
    if sign == ")" and ")" not in text:  # ours, around an expression
        return _ends(found, text)
    if sign == "=" and "=<" in text:
        return "unexpected '=<'", "write <="
    return f"unexpected {sign!r}", _SIGNS.get(sign[:1], "")


def _sign(token: str) -> str:
    return _END_TOKENS.get(token, token)


def _unknown_tag(found: re.Match[str], _: str) -> Explanation:
    tag = found["tag"]
    if tag.startswith(("end", "else", "elif")):
        return f"{{% {tag} %}} has no block before it", "remove it, or add the tag that it closes"
    return f"unknown tag {{% {tag} %}}", f"available: {', '.join(_TAGS)}; a value is written {{{{ {tag} }}}}"


def _not_closed(found: re.Match[str], _: str) -> Explanation:
    return f"{{% {found['tag']} %}} is not closed", f"add {{% end{found['tag']} %}}"


def _ends(_: object, text: str) -> Explanation:
    unclosed = [end for start, end in (("{{", "}}"), ("{%", "%}")) if text.count(start) > text.count(end)]
    return "it ends too soon", f"close it with {unclosed[0]}" if unclosed else "complete it, and close its brackets"


_Explain = Callable[[re.Match[str], str], Explanation]
_SYNTAX: Final[tuple[tuple[re.Pattern[str], _Explain], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), explain)
    for pattern, explain in (
        (r"expected token '(?P<expected>.*)', got '(?P<got>.*)'", _unexpected),
        (r"Encountered unknown tag '(?P<tag>[^']*)'.*", _unknown_tag),
        (r"Unexpected end of template.*closed is '(?P<tag>[^']*)'\.", _not_closed),
        (r"[Uu]nexpected end of template.*|Missing end of .*", _ends),
        (r"unexpected char (?P<quote>['\"])(?P<sign>.*)(?P=quote) at \d+", _unexpected_sign),
        (r"unexpected '(?P<sign>.)'", _unexpected_sign),
        (
            r"unexpected '.', expected '(?P<sign>.)'",
            lambda found, _: (f"a closing {found['sign']} is missing", "add it"),
        ),
        (r"Expected an expression, got .*", lambda *_: ("it has no expression", "write a name or a value")),
        (r"expected name or number", lambda *_: ("a name or a number must follow the dot", "")),
        (r"expected subscript expression", lambda *_: ("[ ] has no key or index", "write a key or an index")),
        (r"tag name expected", lambda *_: ("{% %} has no tag", f"available: {', '.join(_TAGS)}")),
        (r"can't assign to '.*'", lambda *_: ("only a name can be assigned to", "write {% set name = value %}")),
        (
            r"You cannot chain multiple tests with is",
            lambda *_: ("two tests follow each other", "write `x is a and x is b`"),
        ),
    )
)


_KINDS: Final = {
    "int": "a number",
    "float": "a number",
    "str": "text",
    "MarkedText": "text",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "NoneType": "nothing (null)",
    "bool": "true or false",
    "datetime": "a time",
    "datetime.datetime": "a time",
    "datetime.timedelta": "a duration",
    "AssetView": "the asset",
    "function": "a function",
    "method": "a function",
}


def _kind(name: str) -> str:
    return _KINDS.get(name, _KINDS.get(name.removeprefix("Written").lower(), "such a value"))


def _operands(found: re.Match[str]) -> Explanation:
    left, right, sign = _kind(found["left"]), _kind(found["right"]), found["sign"]
    return f"{sign} cannot be used with {left} and {right}", _conversion({left, right}, sign)


def _conversion(kinds: Iterable[str], sign: str) -> str:
    if "nothing (null)" in kinds:
        return "give it a default: | default(…, true)"
    if set(kinds) == {"a number", "text"}:
        return "convert one of them: | int or | string" + ("; ~ joins texts" if sign == "+" else "")
    return ""


def _concatenated(found: re.Match[str]) -> Explanation:
    left, right = _kind(found["left"]), _kind(found["right"])
    return f"+ cannot be used with {left} and {right}", _conversion({left, right}, "+")


def _failing(message: str, remedy: str = "") -> Callable[[re.Match[str]], Explanation]:
    def explain(found: re.Match[str]) -> Explanation:
        kinds = {name: _kind(value) for name, value in found.groupdict().items()}
        return message.format(**kinds), remedy

    return explain


_FAILURES: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Explanation]], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), explain)
    for pattern, explain in (
        (
            r"unsupported operand type\(s\) for (?P<sign>\S+?)(?: or pow\(\))?: '(?P<left>.*)' and '(?P<right>.*)'",
            _operands,
        ),
        (r"'(?P<sign>\S+)' not supported between instances of '(?P<left>.*)' and '(?P<right>.*)'", _operands),
        (r"can only concatenate (?P<left>\w+) \(not \"(?P<right>.*)\"\) to \w+", _concatenated),
        (r"can't multiply sequence by non-int of type '(?P<kind>.*)'", _failing("text cannot be multiplied by {kind}")),
        (r".*division by zero|.*modulo by zero|division undefined", _failing("division by zero", "check the divisor")),
        (r"'(?P<kind>.*)' object is not callable", _failing("{kind} is not a function", "remove the ( )")),
        (
            r"argument of type '(?P<kind>.*)' is not (?:a container or )?iterable",
            _failing("`in` cannot search {kind}", "it searches text, a list or a mapping"),
        ),
        (r"'(?P<kind>.*)' object is not iterable", _failing("{kind} is not a list", "use a list here")),
        (r"bad operand type for unary (?P<sign>\S+): '(?P<kind>.*)'", _failing("{kind} has no sign", "")),
        (r"object of type '(?P<kind>.*)' has no len\(\)", _failing("{kind} has no length")),
        (r"(?:list|tuple) indices must be integers.*", _failing("a list has no keys", "use its index: [0]")),
        (r"not all arguments converted.*", _failing("the format has fewer places than values", "add %s")),
        (r"not enough arguments.*", _failing("the format has more places than values", "add values")),
        (r"%\w format: .*|must be real number, not .*", _failing("the format needs a number", "convert it: | int")),
    )
)


def explain_failure(error: BaseException) -> Explanation:
    """Explain an error that a template raised when it was rendered."""
    message = str(error)
    for pattern, explain in _FAILURES:
        found = pattern.fullmatch(message)
        if found is not None:
            return explain(found)
    return message or type(error).__name__, ""
