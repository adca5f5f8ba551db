"""Ansible's everyday filters and tests, and those for time codes.

All are deterministic, and limit what they make. Of Jinja's own, templates have those that media playbooks use:
:data:`JINJA_FILTERS`, :data:`JINJA_TESTS`.
"""

from msauto.playbook.templates.filters import data, dates, lists, numbers, strings, tests, timecodes

__all__ = [
    "JINJA_FILTERS", "JINJA_TESTS", "REMOVED", "data", "dates", "lists", "numbers", "strings", "tests", "timecodes",
]  # fmt: skip

_HTML = "nothing here is HTML"
REMOVED: dict[str, str] = {
    **dict.fromkeys(("e", "escape", "forceescape", "safe", "striptags", "urlize", "xmlattr"), _HTML),
    **dict.fromkeys(("random", "shuffle"), "the same playbook must always give the same plan"),
    "attr": "write a.b or a[b]",
    "pprint": "use to_json or to_yaml",
}
"""Filters that users may look for and that are removed on purpose, with the reason."""

JINJA_FILTERS = (
    "abs", "capitalize", "count", "d", "default", "dictsort", "first", "format", "groupby", "indent", "items", "join",
    "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace", "reverse", "round",
    "select", "selectattr", "sort", "string", "sum", "title", "trim", "truncate", "upper", "urlencode",
)  # fmt: skip
JINJA_TESTS = (
    "boolean", "defined", "divisibleby", "eq", "equalto", "even", "false", "float", "ge", "greaterthan", "gt", "in",
    "integer", "iterable", "le", "lessthan", "lower", "lt", "mapping", "ne", "none", "number", "odd", "sameas",
    "sequence", "string", "true", "undefined", "upper", "==", "!=", "<", "<=", ">", ">=",
)  # fmt: skip
