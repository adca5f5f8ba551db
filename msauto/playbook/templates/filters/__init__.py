"""Ansible's everyday filters and tests, and those for time codes.

All are deterministic, and limit what they make. Jinja's own filters for HTML, and those that are not deterministic or
not safe, are removed: :data:`REMOVED`.
"""

from msauto.playbook.templates.filters import data, dates, lists, numbers, strings, tests, timecodes

__all__ = ["REMOVED", "REMOVED_TESTS", "data", "dates", "lists", "numbers", "strings", "tests", "timecodes"]

_HTML = "nothing here is HTML"
REMOVED: dict[str, str] = {
    **dict.fromkeys(("e", "escape", "forceescape", "safe", "striptags", "urlize", "xmlattr"), _HTML),
    **dict.fromkeys(("random", "shuffle"), "the same playbook must always give the same plan"),
    "attr": "write a.b or a[b]",
    "pprint": "use to_nice_json or to_nice_yaml",
}
"""Filters that users may look for and that are removed on purpose, with the reason."""

REMOVED_TESTS = ("callable", "escaped")
