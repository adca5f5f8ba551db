"""Results that read the same, together: thousands of targets fail for one reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import quote

from msauto.model.plan import Target
from msauto.model.result import Outcome, TargetResult
from msauto.report.grouping import FEWEST_ALIKE, OWN_TITLE
from msauto.report.result_sentences import Kind, result_lines
from msauto.report.sanitizing import show


class ResultGroup(NamedTuple):
    """Results with the same outcome and the same lines, in which the titles are placeholders if there are several."""

    outcome: Outcome
    lines: tuple[tuple[Kind, str], ...]
    results: tuple[TargetResult, ...]


def group_results(results: Iterable[TargetResult]) -> Iterator[ResultGroup]:
    """Yield results in groups of at least 3 or alone, in the order of the run."""
    groups: dict[tuple[Outcome, str, tuple[tuple[Kind, str], ...]], list[TargetResult]] = {}
    for each in results:
        lines = tuple((kind, _without_title(line, each.target)) for kind, line in result_lines(each))
        groups.setdefault((each.outcome, each.target.kind, lines), []).append(each)
    for key, found in groups.items():
        if len(found) >= FEWEST_ALIKE:
            yield ResultGroup(found[0].outcome, key[2], tuple(found))
        else:
            yield from (ResultGroup(each.outcome, tuple(result_lines(each)), (each,)) for each in found)


def _without_title(line: str, target: Target) -> str:
    """Return a line with placeholders for the title, which is part of the paths of requests."""
    for name in dict.fromkeys((target.name, target.address.name, target.address_after.name)):
        for form in dict.fromkeys((show(name), quote(name, safe="", errors="replace"))) if name else ():
            line = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", lambda _: OWN_TITLE, line)
    return line
