"""Progress on a terminal."""

from __future__ import annotations

import io
import os
import re
import termios

from msauto.model.events import (
    DownloadAsked,
    DownloadReceived,
    Event,
    PlanningEnded,
    PlanningStarted,
    RequestInDoubt,
    RequestSettled,
    RunEnded,
    RunStarted,
    TargetFinished,
    TargetPlanned,
    TargetsFound,
    TargetStarted,
    WaitingForRestore,
)
from msauto.model.plan import Plan
from msauto.model.result import RequestResult, TargetResult
from msauto.report.progress import Mode, ProgressDisplay
from msauto.report.sanitizing import display_width
from tests.unit.report.made_plans import episode, film, mixed_result

ERASE = "\r\x1b[2K"


class Ticking:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_of(
    *events: Event, live: bool = True, step: float = 1.0, mode: Mode = "auto", columns: int = 160
) -> str:
    stream, clock = Terminal() if live else io.StringIO(), Ticking()
    progress = ProgressDisplay(stream, clock.monotonic, mode=mode, width=lambda: columns)
    for event in events:
        clock.time += step
        progress.notify(event)
    return stream.getvalue()


STORY: list[Event] = [
    RunStarted("r", 4, 8),
    TargetStarted(episode()),
    RequestSettled(episode(), 0, RequestResult("done", 200, tries=1)),
    RequestSettled(episode(), 1, RequestResult("done", 200, tries=1)),
    TargetStarted(film()),
    WaitingForRestore(episode(), 180, 1800),
    TargetFinished(TargetResult(film(), "failed")),
]


PLANNING: list[Event] = [
    PlanningStarted(("studio-a", "studio-b")),
    TargetsFound("studio-a", 4),
    TargetPlanned("studio-a", "NEWS", "asset", "EP001", "changed", 1, 1),
    TargetPlanned("studio-a", "NEWS", "asset", "EP002", "error", error="no such clip"),
    TargetsFound("studio-b", 4),
]


def test_planning_shows_what_is_read_the_rate_and_the_time_left() -> None:
    lines = run_of(*PLANNING).split(ERASE)[1:]
    assert lines == [
        "[>               ] planning · reading 2 servers",
        "[>               ] planning 0/4 targets · reading studio-b",
        "[====>           ] planning 1/4 targets · reading studio-b · 30/min · 2 s elapsed",
        "[========>       ] planning 2/4 targets · reading studio-b · 40/min · 3 s elapsed · 1 in error",
        "[====>           ] planning 2/8 targets · 30/min · 4 s elapsed · 12 s left · 1 in error",
    ]


def test_planning_ends_without_a_trace() -> None:
    text = run_of(*PLANNING, PlanningEnded(Plan("", "").summary, ()))
    assert text.endswith(ERASE)


def test_live_line_tells_where_the_run_is() -> None:
    lines = run_of(*STORY).split(ERASE)
    assert lines[1] == "[>               ] 0/4 targets · 0/8 requests"
    assert lines[-2] == (
        "[====>           ] 0/4 targets · 2/8 requests · 24/min · 5 s elapsed · Promo 1"
        " · waiting for 1 restore (3 min of at most 30 min)"
    )
    assert lines[-1] == (
        "[====>           ] 1/4 targets · 2/8 requests · 20/min · 6 s elapsed · 1 failed · Evening News"
        " · waiting for 1 restore (3 min 1 s of at most 30 min)"
    )


def test_what_is_in_doubt_is_shown_until_it_is_settled() -> None:
    doubt = (
        RunStarted("r", 2, 2),
        TargetStarted(film()),
        RequestInDoubt(film(), 0, "the answer is lost"),
    )
    assert "2 s elapsed · 1 in doubt · Promo 1" in run_of(*doubt)
    assert (
        "in doubt"
        not in run_of(*doubt, RequestSettled(film(), 0, RequestResult("done"))).split(ERASE)[-1]
    )


def test_restore_is_no_longer_waited_for_once_the_target_is_finished() -> None:
    text = run_of(*STORY, TargetFinished(TargetResult(episode(), "changed")))
    assert text.split(ERASE)[-1] == (
        "[====>           ] 2/4 targets · 2/8 requests · 17/min · 7 s elapsed · 21 s left · 1 failed"
    )


def test_line_is_gone_when_the_run_ends() -> None:
    text = run_of(*STORY, RunEnded(mixed_result()))
    assert text.endswith(ERASE)
    assert "\n" not in text


def test_an_erased_line_is_gone() -> None:
    stream = Terminal()
    progress = ProgressDisplay(stream, Ticking().monotonic)
    progress.notify(STORY[0])
    progress.erase()
    assert stream.getvalue().endswith(f"requests{ERASE}")
    progress.erase()
    assert stream.getvalue().endswith(f"requests{ERASE}")  # nothing is drawn, nothing is erased


def test_a_file_that_the_server_is_making_is_told_with_its_deadline() -> None:
    stream, clock = io.StringIO(), Ticking()
    progress = ProgressDisplay(stream, clock.monotonic)
    progress.notify(RunStarted("r", 1, 1))
    progress.notify(DownloadAsked(film(), 0, 3600.0))
    for _ in range(9):
        clock.time += 10
        progress.tick()
    assert stream.getvalue().splitlines() == [
        f"0/1 targets · 0/1 requests · {waited} elapsed · waiting for 1 file ({waited} of at most 1 h)"
        for waited in ("10 s", "20 s", "40 s", "1 min 10 s")
    ], "a log is not flooded: the lines become rarer"


def test_bytes_of_downloads() -> None:
    coming = (DownloadAsked(film(), 0, 3600.0), DownloadReceived(film(), 0, 12_500_000, 40_000_000))
    other = (DownloadAsked(episode(), 0, 3600.0), DownloadReceived(episode(), 0, 1_000_000, None))
    one = run_of(RunStarted("r", 2, 2), *coming)
    assert one.endswith("1 download 12.5 of 40.0 MB")
    both = run_of(RunStarted("r", 2, 2), *coming, *other)
    assert both.endswith("2 downloads 13.5 MB")
    again = run_of(RunStarted("r", 2, 2), *coming, DownloadAsked(film(), 0, 60.0))
    assert again.endswith("waiting for 1 file (0 s of at most 1 min)"), (
        "it broke off, and is asked for anew"
    )
    done = run_of(RunStarted("r", 2, 2), *coming, RequestSettled(film(), 0, RequestResult("done")))
    assert "download" not in done.split(ERASE)[-1]


def test_no_time_goes_by_before_and_after_a_run() -> None:
    stream, clock = Terminal(), Ticking()
    progress = ProgressDisplay(stream, clock.monotonic)
    clock.time = 100
    progress.tick()
    assert stream.getvalue() == ""
    progress.notify(RunStarted("r", 1, 1))
    clock.time = 200
    progress.tick()
    progress.notify(RunEnded(mixed_result()))
    clock.time = 300
    progress.tick()
    assert stream.getvalue().count("requests") == 2
    assert stream.getvalue().endswith(ERASE)


def test_line_never_wraps() -> None:
    for line in run_of(*STORY, columns=60).split(ERASE):
        assert display_width(line) < 60


def test_many_events_are_few_drawings() -> None:
    assert run_of(*STORY, step=0.001).count(ERASE) == 1


def test_parts_that_matter_less_give_way_in_a_narrow_terminal() -> None:
    assert run_of(*STORY, columns=80).split(ERASE)[-1] == (
        "[====>           ] 1/4 targets · 2/8 requests · 20/min · 6 s elapsed · 1 failed"
    )


def test_without_a_terminal_plain_lines_that_become_rarer() -> None:
    text = run_of(*STORY, live=False, step=5)
    assert text.splitlines() == [
        "0/4 targets · 0/8 requests · 5 s elapsed · Evening News",
        "0/4 targets · 2/8 requests · 8/min · 15 s elapsed · 45 s left · Evening News",
    ]
    assert "\x1b" not in text


def test_plain_lines_every_few_seconds_if_asked_for_also_on_a_terminal() -> None:
    text = run_of(*STORY, mode="plain", step=5)
    assert len(text.splitlines()) == len(STORY) - 1
    assert "\x1b" not in text


def test_nothing_at_all_if_so_wanted() -> None:
    assert run_of(*STORY, RunEnded(mixed_result()), mode="none") == ""


def test_bar_is_full_at_the_end() -> None:
    settled = [RequestSettled(film(), 0, RequestResult("done", tries=1))] * 3
    assert "[================] 0/1 targets · 3/2 requests" in run_of(
        RunStarted("r", 1, 2), *settled
    )


def test_streams_that_cannot_write_our_signs() -> None:
    raw = io.BytesIO()
    stream, clock = io.TextIOWrapper(raw, encoding="ascii", newline=""), Ticking()
    progress = ProgressDisplay(stream, clock.monotonic)
    progress.notify(STORY[0])
    clock.time = 6
    progress.tick()
    assert re.search(rb"0/4 targets \? 0/8 requests", raw.getvalue())


def test_a_terminal_is_asked_for_its_width() -> None:
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 30))
    with os.fdopen(slave, "w") as stream:
        ProgressDisplay(stream, Ticking().monotonic).notify(STORY[0])
        drawn = os.read(master, 1000).decode().removeprefix(ERASE)
    os.close(master)
    assert drawn == "0/4 targets · 0/8 requests"
