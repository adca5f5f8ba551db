"""What templates can do: Ansible's everyday filters and tests, and this field's own for time codes.

All are deterministic, and bounded in what they make. What Jinja brings along and nobody here needs (HTML) or may
have (chance, attributes by name) is taken away: :data:`REMOVED`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msauto.playbook.templates.filters.data import DATA_FILTERS
from msauto.playbook.templates.filters.dates import TIME_FILTERS
from msauto.playbook.templates.filters.lists import LIST_FILTERS
from msauto.playbook.templates.filters.numbers import NUMBER_FILTERS
from msauto.playbook.templates.filters.strings import TEXT_FILTERS
from msauto.playbook.templates.filters.tests import TESTS
from msauto.playbook.templates.filters.timecodes import TIMECODE_FILTERS
from msauto.playbook.templates.taint import mark_secret

__all__ = ["FILTERS", "REMOVED", "REMOVED_TESTS", "TESTS"]

FILTERS: dict[str, Callable[..., Any]] = {
    **DATA_FILTERS,
    **LIST_FILTERS,
    **NUMBER_FILTERS,
    **TEXT_FILTERS,
    **TIMECODE_FILTERS,
    **TIME_FILTERS,
    "secret": mark_secret,
}

REMOVED: dict[str, str] = {
    "random": "a plan must come out the same twice",
    "shuffle": "a plan must come out the same twice",
    "attr": "write a.b or a[b]",
    "e": "nothing here is HTML",
    "escape": "nothing here is HTML",
    "forceescape": "nothing here is HTML",
    "safe": "nothing here is HTML",
    "striptags": "nothing here is HTML",
    "urlize": "nothing here is HTML",
    "xmlattr": "nothing here is HTML",
    "pprint": "use to_nice_json or to_nice_yaml",
}
"""Filters that people may look for and that are not there on purpose, with the reason."""

REMOVED_TESTS = ("callable", "escaped")
