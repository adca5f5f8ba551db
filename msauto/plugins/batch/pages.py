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
from msauto.plugins.batch.summary import WeekLine
from msauto.report.page_parts import PageHead
from msauto.report.result_view import NOT_DONE
from msauto.report.sanitizing import show, visible
from msauto.report.texts import local_time, plural

MOST_NIGHTS: Final = 90
_WORDS: Final = ("changed", *NOT_DONE, "differing", "changed outside")
"""What is counted of each server, in its order."""


class Night(NamedTuple):
    """A run of a batch on the index; visible.

    ``page``: the file of its page, empty if it is gone. ``day``: of the month. ``counts``: of each word, by server.
    """

    outcome: str
    started: str
    day: str
    text: str
    page: str
    counts: Mapping[str, Mapping[str, int]]

    @property
    def servers(self) -> list[str]:
        """What was done on each server, in words; servers with the same counts are together."""
        alike: dict[str, list[str]] = {}
        for server, words in self.counts.items():
            numbers = [f"{number} {word}" for word, number in words.items()]
            alike.setdefault(", ".join(numbers), []).append(server)
        return [f"{', '.join(servers)}: {numbers}" for numbers, servers in alike.items()]


def page_name(result: BatchResult, zone: ZoneInfo) -> str:
    """Return the name of the dated files of a run, without an ending."""
    return f"{result.batch}-{parse_time(result.started).astimezone(zone):%Y-%m-%dT%H%M%S}"


def render_index(
    results: Sequence[BatchResult],
    schedule: Schedule,
    pages: Collection[str],
    week: Sequence[WeekLine] = (),
) -> Iterable[str]:
    """Return the index of runs, the newest first; ``pages`` are the files that exist."""
    starts = set()
    nights = []
    tallest: dict[str, int] = {}
    for result in results[:MOST_NIGHTS]:
        starts.add(schedule.last_start(parse_time(result.started)))
        page = f"{page_name(result, schedule.zone)}.html"
        if page not in pages:
            page = ""
        night = _night(result, page, schedule.zone)
        nights.append(night)
        for server, counts in night.counts.items():
            tallest[server] = max(tallest.get(server, 0), *counts.values())
    newest = results[0]
    facts = (nights[0].started, plural(len(starts), "night"), f"msauto {newest.msauto}")
    render_page = page_writer()
    return render_page(
        PageHead(newest.batch, newest.outcome, newest.sentence, facts),
        name="plugins/batch/index.html.j2",
        nights=nights,
        week=week,
        tallest=dict(sorted(tallest.items())),
    )


def _night(result: BatchResult, page: str, zone: ZoneInfo) -> Night:
    writing = [job for job in result.jobs if job.written[1]]
    others = [job for job in result.jobs if job not in writing]
    # A job with ``do: plan`` finds again what the others have not written.
    found = _counts(writing) | _counts(others)
    counts: dict[str, dict[str, int]] = {}
    for server, word in sorted(found, key=_order):
        counts.setdefault(show(server), {})[word] = found[server, word]
    texts = [result.sentence]
    for job in result.jobs:
        if not job.done:
            texts.append(f"{job.job} {job.outcome}")
    return Night(
        outcome=result.outcome,
        started=local_time(result.started),
        day=f"{parse_time(result.started).astimezone(zone):%d}",
        text=visible(" · ".join(texts)),
        page=page,
        counts=counts,
    )


def _order(counted: tuple[str, str]) -> tuple[str, int]:
    server, word = counted
    return server, _WORDS.index(word)


def _counts(jobs: Iterable[JobResult]) -> Counter[tuple[str, str]]:
    """Return how many targets of each server are changed, not done, differing or changed outside."""
    counts = Counter[tuple[str, str]]()
    for job in jobs:
        for server, number in job.changed.items():
            counts[server, "changed"] += number
        for cause in job.causes:
            counts[cause.server, cause.outcome] += cause.count
        for target in job.outside:
            counts[target.server, "changed outside"] += 1
        for target in job.reported_drift:
            counts[target.server, "differing"] += 1
    return counts
