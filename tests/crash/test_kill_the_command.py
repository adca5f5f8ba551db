"""``kill -9`` of a real ``msauto apply`` at many points, then ``msauto apply`` again: as desired, nothing done twice.

The media server lives in the test's process and outlives the command. One kind of point is during each request, before
and after the work was done. The other is after a share of the time of a whole run: this hits the commits of the ledger,
verification, reading and the start. Then Ctrl-C, once and twice.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from msauto.plugins.simulator.embedded import (
    SimChannel,
    SimMarker,
    SimSegment,
    Simulator,
    empty_state,
)
from tests.conftest import COUNTED

pytestmark = pytest.mark.scale

TITLES = ("Film", "Новости 50% & more", "Third")
WRITES = 8 * len(TITLES) + 2
CLIP_TASK = {
    "title": "{{ item }}",
    "fields": {"comment": "Ready"},
    "xmp": {"dc:title": ["a", "b"]},
    "segments": [
        {"number": 1, "start": 0, "duration": 10, "title": "One"},
        {"number": 2, "start": 10, "duration": 5},
    ],
    "markers": [{"uid": 1, "at": 7}, {"at": 20, "track": "Cue Point", "title": "Ad break"}],
    "links": [{"folder": "Playout", "title": "{{ item }} tonight"}],
}
TASKS: list[dict[str, Any]] = [
    {"name": "Clips", "asset": CLIP_TASK, "loop": list(TITLES)},
    {
        "name": "Ticker",
        "rss": {
            "channel": "ticker",
            "items": [{"guid": "n-1", "text": "Hello"}, {"guid": "n-2", "text": "World"}],
        },
    },
]


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    news = state.databases["NEWS"]
    news.make_folder("Playout")
    for title in TITLES:
        clip = news.add_clip(title, "Raw", frames=100)
        clip.markers[:] = [SimMarker(1, 3, {"track": "General", "title": "moved"})]
        clip.segments[:] = [SimSegment(2, 10, 6, ["Two"])]
    state.channels["ticker"] = SimChannel("ticker", "Ticker")
    with Simulator(state=state) as simulator:
        yield simulator


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.yml"
    path.write_text(
        yaml.safe_dump([{"hosts": "all", "database": "NEWS", "tasks": TASKS}], allow_unicode=True)
    )
    return path


def start(sim: Simulator, book: Path, *more: str, forks: int = 2) -> subprocess.Popen[str]:
    flags = (
        "--server",
        sim.url,
        "--state-dir",
        str(book.parent / "state"),
        "--forks",
        str(forks),
        *more,
    )
    command = [
        sys.executable,
        "-m",
        "msauto",
        "apply",
        str(book),
        "--yes",
        "--format",
        "json",
        *flags,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(sim: Simulator, book: Path) -> tuple[int, dict[str, Any], str]:
    with start(sim, book) as process:
        out, err = process.communicate(timeout=60)
    assert out, err
    assert "Traceback" not in err
    return process.returncode, json.loads(out), err


def check_end(sim: Simulator) -> None:
    """The end is as desired, nothing is duplicated, and no write was done twice."""
    for title in TITLES:
        clip = sim.state.clip(title)
        assert clip.home.fields["comment"] == "Ready"
        assert clip.xmp["dc:title"] == ["a", "b"]
        assert sorted((s.number, s.start, s.duration, *s.titles) for s in clip.segments) == [
            (1, 0, 10, "One"),
            (2, 10, 5, "Two"),
        ]
        assert (
            sorted((m.pos, m.fields["track"], m.fields["title"]) for m in clip.markers)
            == _markers()
        )
        assert [entry.title for entry in clip.entries[1:]] == [f"{title} tonight"]
    assert [(item.guid, item.title) for item in sim.state.channels["ticker"].items] == [
        ("n-1", "Hello"),
        ("n-2", "World"),
    ]
    done = Counter((entry.line, entry.body) for entry in sim.writes() if entry.done)
    assert [line for line, count in done.items() if count > 1] == [], "a write was done twice"


def _markers() -> list[tuple[int, str, str]]:
    return [(7, "General", "moved"), (20, "Cue Point", "Ad break")]


def wait_for(sim: Simulator, count: int, process: subprocess.Popen[str]) -> None:
    while len(sim.writes()) < count and process.poll() is None:
        time.sleep(0.002)


def kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


SHARES = 12
POINTS = [
    *(("delay:0.4", number) for number in range(1, WRITES + 1)),
    *(("slow_body:0.4", number) for number in range(1, WRITES + 1, 3)),
]


def test_the_points(record_property: Callable[[str, object], None]) -> None:
    each = f"{len(POINTS)} at a request, {SHARES} at a share of the run"
    record_property(COUNTED, f"kill points of the command: {each}")
    assert len(POINTS) == WRITES + (WRITES + 2) // 3


@pytest.mark.parametrize(("kind", "number"), POINTS)
def test_killed_while_a_write_is_under_way(
    sim: Simulator, book: Path, kind: str, number: int
) -> None:
    sim.faults.add(f"{kind}@^(POST|PUT|DELETE)*1+{number - 1}")
    process = start(sim, book)
    wait_for(sim, number, process)
    kill(process)
    sim.faults.clear()
    time.sleep(0.45)  # the server does what it was asked, whoever asked for it is dead
    code, plan, told = finish(sim, book)
    assert code == 0, told
    assert "died with" in told
    assert plan["summary"]["requests"] < WRITES + 1
    check_end(sim)
    assert finish(sim, book)[1]["summary"]["requests"] == 0


@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_any_moment(sim: Simulator, book: Path, share: int) -> None:
    sim.faults.add("delay:0.02@.")
    process = start(sim, book, forks=1)
    time.sleep(0.2 + share * 0.17)
    kill(process)
    sim.faults.clear()
    time.sleep(0.05)
    code, _, told = finish(sim, book)
    assert code == 0, told
    check_end(sim)


@pytest.fixture
def shared_book(book: Path, shared_place: str) -> Path:
    """The playbook of a repository with a shared ledger."""
    (book.parent / "msauto.toml").write_text(f'[state]\nurl = "{shared_place}"\n')
    return book


@pytest.mark.parametrize(("kind", "number"), POINTS[::7])
def test_killed_while_a_write_is_under_way_with_a_shared_ledger(
    sim: Simulator, shared_book: Path, kind: str, number: int
) -> None:
    test_killed_while_a_write_is_under_way(sim, shared_book, kind, number)


@pytest.mark.parametrize("share", range(0, SHARES, 3))
def test_killed_at_any_moment_with_a_shared_ledger(
    sim: Simulator, shared_book: Path, share: int
) -> None:
    test_killed_at_any_moment(sim, shared_book, share)


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_leaves_a_ledger_to_go_on_from(sim: Simulator, book: Path, times: int) -> None:
    sim.faults.add("delay:0.3@^(POST|PUT)")
    process = start(sim, book)
    wait_for(sim, 3, process)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    outcomes = {target["result"]["outcome"] for target in json.loads(out)["targets"]}
    assert "not attempted" in outcomes
    sim.faults.clear()
    time.sleep(0.35)
    code, _, told = finish(sim, book)
    assert code == 0, told
    assert "died with" not in told, "a run that was stopped has told the ledger what it left"
    check_end(sim)
