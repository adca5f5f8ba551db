"""The index of the pages of the nights: the last 90 as a strip, with what was done and what was not on each server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from msauto.batch.batch_result import BatchResult
from msauto.model.result import parse_time
from msauto.report.html import render_page
from msauto.report.sanitizing import show, visible
from msauto.report.texts import local_time, plural

MOST_NIGHTS: Final = 90
_BARS: Final = {"changed": "changed", "failed": "not done", "differs": "differing", "outside": "changed outside"}
"""What is counted, by the class of its bar."""


class Night(NamedTuple):
    """A run of a batch on the index; visible.

    ``page``: the file of its page, empty if it is gone. ``counts``: for each server, how many targets each bar counts.
    """

    outcome: str
    started: str
    text: str
    page: str
    counts: Mapping[str, Mapping[str, int]]

    @property
    def servers(self) -> list[str]:
        """What was done on each server, in words."""
        shown = (
            (server, [f"{number} {_BARS[bar]}" for bar, number in bars.items()]) for server, bars in self.counts.items()
        )
        return [f"{server}: {', '.join(numbers)}" for server, numbers in shown]


def page_name(result: BatchResult, zone: ZoneInfo) -> str:
    """Return the name of the dated files of a run, without an ending."""
    return f"{result.batch}-{parse_time(result.started).astimezone(zone):%Y-%m-%dT%H%M%S}"


def render_index(results: Sequence[BatchResult], zone: ZoneInfo, pages: Collection[str]) -> Iterator[str]:
    """Yield the index of runs, the newest first; ``pages`` are the files that exist."""
    nights = [_night(each, f"{page_name(each, zone)}.html", pages) for each in results[:MOST_NIGHTS]]
    newest, tallest = results[0], Counter[str]()
    for night in nights:
        tallest |= Counter({server: max(bars.values()) for server, bars in night.counts.items()})
    return render_page(
        [],
        nights[0].text,
        newest.outcome,
        subject=newest.batch,
        facts=(nights[0].started, plural(len(nights), "night"), f"msauto {newest.msauto}"),
        name="batch/index.html.j2",
        nights=nights,
        tallest=dict(sorted(tallest.items())),
        bars=_BARS,
    )


def _night(result: BatchResult, page: str, pages: Collection[str]) -> Night:
    counts: dict[str, Counter[str]] = {}
    unwritten = {cause.server for job in result.jobs if job.written[1] for cause in job.causes}
    for job in result.jobs:
        found = [(server, "changed", number) for server, number in job.changed.items()]
        # What was not written is not counted again where a job with ``do: plan`` cannot compare it.
        causes = [cause for cause in job.causes if job.written[1] or cause.server not in unwritten]
        found += [(cause.server, "failed", cause.count) for cause in causes]
        found += [(target.server, "differs", 1) for target in job.reported_drift]
        found += [(server, "outside", number) for server, number in job.outside.items()]
        for server, bar, number in found:
            counts.setdefault(show(server), Counter())[bar] += number
    text = visible(result.heading.removeprefix(f"{result.batch}: {result.outcome}: "))
    return Night(
        result.outcome, local_time(result.started), text, page if page in pages else "", dict(sorted(counts.items()))
    )
