"""Names as ranges: ``EP001…EP297`` stands for 297 names only where every number between is one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msauto.report.sanitizing import show

_NUMBER: Final = re.compile(r"(.*?)([0-9]{1,15})([^0-9]*)", re.DOTALL)
"""What is before the last number of a name, that number, and what is after it."""
_SHORTEST: Final = 3
"""Names from which on a range is shorter than the list of them."""


class NameRange(NamedTuple):
    """One name (``size`` 1, ``first`` and ``last`` equal), or all ``size`` names from ``first`` to ``last``.

    The names of a range differ only in their last number, which counts up by one with the same zero padding.
    """

    first: str
    last: str
    size: int


class _Numbered(NamedTuple):
    name: str
    before: str
    digits: str
    after: str


def name_ranges(names: Iterable[str]) -> tuple[NameRange, ...]:
    """Return names as ranges, in the order of the first name of each; a repeated name is listed again.

    >>> [tuple(each) for each in name_ranges(["EP009", "Film", "EP010", "EP011", "EP013"])]
    [('EP009', 'EP011', 3), ('Film', 'Film', 1), ('EP013', 'EP013', 1)]
    """
    given = list(names)
    places: dict[str, int] = {}
    found = []
    for place, name in enumerate(given):
        if places.setdefault(name, place) != place:
            found.append((place, NameRange(name, name, 1)))
    for run in _runs(_numbered(places)):
        shown = [run] if len(run) >= _SHORTEST else [[each] for each in run]
        found += [(min(map(places.__getitem__, part)), NameRange(part[0], part[-1], len(part))) for part in shown]
    return tuple(each for _, each in sorted(found, key=lambda item: item[0]))


def show_range(names: NameRange) -> str:
    """Return a name, or the first and the last name of a range with their number; visible.

    A name that could be taken for a list or a range is quoted.

    >>> show_range(NameRange("EP001", "EP297", 297)), show_range(NameRange("A, B", "A, B", 1))
    ('EP001…EP297 (297)', '"A, B"')
    """
    first, last = (show(name, quoted=any(sign in name for sign in (",", ";", "…", ": "))) for name in names[:2])
    return first if names.size == 1 else f"{first}…{last} ({names.size})"


def _numbered(names: Iterable[str]) -> Iterator[_Numbered]:
    for name in names:
        match = _NUMBER.fullmatch(name)
        yield _Numbered(name, *match.groups()) if match else _Numbered(name, name, "", "")


def _runs(names: Iterable[_Numbered]) -> Iterator[list[str]]:
    """Yield names in runs of consecutive numbers; a name without a number is a run by itself."""
    families: dict[tuple[str, str], dict[str, str]] = {}
    for each in names:
        families.setdefault((each.before, each.after), {})[each.digits] = each.name
    for family in families.values():
        run: list[str] = []
        expected = ""
        for digits in sorted(family, key=lambda digits: (int(digits or 0), len(digits))):
            if run and digits != expected:
                yield run
                run = []
            run.append(family[digits])
            expected = str(int(digits) + 1).zfill(len(digits)) if digits else ""
        yield run
