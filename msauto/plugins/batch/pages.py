"""The index of the pages of the nights: the last 90 as a strip, with what was done and what was not on each server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from msauto.api.forms import page_writer
from msauto.model.result import parse_time
from msauto.plugins.batch.batch_result import BatchResult, JobResult
from msauto.plugins.batch.schedule import Schedule
from msauto.report.page_parts import PageHead
from msauto.report.sanitizing import show, visible
from msauto.report.texts import local_time, plural

MOST_NIGHTS: Final = 90
_BARS: Final = {
    "changed": "changed",
    "failed": "not done",
    "differs": "differing",
    "outside": "changed outside",
}
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
        lines = []
        for server, bars in self.counts.items():
            numbers = [f"{number} {_BARS[bar]}" for bar, number in bars.items()]
            lines.append(f"{server}: {', '.join(numbers)}")
        return lines


def page_name(result: BatchResult, zone: ZoneInfo) -> str:
    """Return the name of the dated files of a run, without an ending."""
    return f"{result.batch}-{parse_time(result.started).astimezone(zone):%Y-%m-%dT%H%M%S}"


def render_index(
    results: Sequence[BatchResult], schedule: Schedule, pages: Collection[str]
) -> Iterable[str]:
    """Return the index of runs, the newest first; ``pages`` are the files that exist."""
    starts = set()
    nights = []
    tallest = Counter[str]()
    for result in results[:MOST_NIGHTS]:
        starts.add(schedule.last_start(parse_time(result.started)))
        page = f"{page_name(result, schedule.zone)}.html"
        if page not in pages:
            page = ""
        night = _night(result, page)
        nights.append(night)
        for server, bars in night.counts.items():
            tallest[server] = max(tallest[server], *bars.values())
    newest = results[0]
    facts = (nights[0].started, plural(len(starts), "night"), f"msauto {newest.msauto}")
    render_page = page_writer()
    return render_page(
        PageHead(newest.batch, newest.outcome, newest.sentence, facts),
        name="plugins/batch/index.html.j2",
        nights=nights,
        tallest=dict(sorted(tallest.items())),
        bars=_BARS,
    )


def _night(result: BatchResult, page: str) -> Night:
    writing = [job for job in result.jobs if job.written[1]]
    others = [job for job in result.jobs if job not in writing]
    # A job with ``do: plan`` finds again what the others have not written.
    bars = _counts(writing) | _counts(others)

    counts: dict[str, dict[str, int]] = {}
    for server, bar in sorted(bars, key=_order):
        counts.setdefault(show(server), {})[bar] = bars[server, bar]
    started = local_time(result.started)
    texts = [result.sentence]
    for job in result.jobs:
        if not job.done:
            texts.append(f"{job.job} {job.outcome}")
    text = visible(" · ".join(texts))
    return Night(result.outcome, started, text, page, counts)


def _order(counted: tuple[str, str]) -> tuple[str, int]:
    server, bar = counted
    return server, list(_BARS).index(bar)


def _counts(jobs: Iterable[JobResult]) -> Counter[tuple[str, str]]:
    """Return how many targets each bar of each server counts."""
    counts = Counter[tuple[str, str]]()
    for job in jobs:
        for server, number in job.changed.items():
            counts[server, "changed"] += number
        for cause in job.causes:
            counts[cause.server, "failed"] += cause.count
        for target in job.outside:
            counts[target.server, "outside"] += 1
        for target in job.reported_drift:
            counts[target.server, "differs"] += 1
    return counts
