"""``kill -9`` of a real ``msauto apply`` in the middle of a large download, and the next run, which goes on.

The film has 40 MiB; the server sends some of it and is then silent, so that the moment is known. What outlives the
command: the beginning beside the file's place, and its record in the ledger, written at each 8 MiB.
"""

from __future__ import annotations

import hashlib
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from msauto.ledger.ledger import FILE
from msauto.simulator import Simulator, empty_state

pytestmark = pytest.mark.scale

MIB = 2**20
FILM = random.Random(1).randbytes(40 * MIB)
PROXY = "/WP1"


@pytest.fixture
def sim(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    state = empty_state()
    state.databases["NEWS"].add_clip("Film", "Raw", frames=100)
    monkeypatch.setattr("msauto.simulator.media.make_film", lambda *_: FILM)
    with Simulator(state=state, dialect=["ranges=yes"]) as simulator:
        yield simulator


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.yml"
    task = {"proxy": {"title": "Film", "profile": "WP1", "dest": "out/film.mp4"}}
    path.write_text(yaml.safe_dump([{"hosts": "all", "database": "NEWS", "tasks": [task]}]))
    return path


def start(sim: Simulator, book: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "msauto", "apply", str(book), "--yes", "--format", "json", "--server", sim.url]
    return subprocess.Popen(
        [*command, "--state-dir", str(book.parent / "state")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    with process:
        _, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    return process.returncode, err


def part(book: Path) -> Path:
    return book.parent / "out" / ".film.mp4.msauto.part"


def remembered(book: Path) -> int:
    """Return how many bytes of the beginning the ledger vouches for; 0 where it knows of none."""
    with sqlite3.connect(f"file:{book.parent / 'state' / FILE}?mode=ro", uri=True) as ledger:
        rows = ledger.execute("SELECT value FROM memory WHERE item LIKE 'part:%'").fetchall()
    return max((json.loads(value)["size"] for (value,) in rows), default=0)


def break_off(sim: Simulator, book: Path, came: int, *signals: int) -> None:
    """Let ``came`` bytes come and nothing more, and end the command by the signals."""
    sim.faults.add(f"cut_at:{came}:60@{PROXY}*1")
    process = start(sim, book)
    # What came is written by the megabyte: the rest of it waits in memory.
    while not part(book).exists() or part(book).stat().st_size < came // MIB * MIB - MIB:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    time.sleep(0.3)
    for number in signals:
        process.send_signal(number)
        time.sleep(0.2)
    finish(process)
    assert not (book.parent / "out" / "film.mp4").exists()
    sim.faults.clear()
    sim.clear_log()


def asked(sim: Simulator) -> list[int]:
    return [entry.status for entry in sim.log if entry.target.endswith(PROXY)]


def check_end(sim: Simulator, book: Path, answers: list[int]) -> None:
    """The next run fetches the rest alone, and the one after it nothing."""
    code, told = finish(start(sim, book))
    assert code == 0, told
    assert asked(sim) == answers
    film = book.parent / "out" / "film.mp4"
    assert hashlib.sha256(film.read_bytes()).digest() == hashlib.sha256(FILM).digest()
    assert [path.name for path in film.parent.iterdir()] == [film.name]
    assert remembered(book) == 0, "nothing is kept of what is done"
    sim.clear_log()
    assert finish(start(sim, book))[0] == 0
    assert asked(sim) == []


@pytest.mark.parametrize("came", [9 * MIB, 21 * MIB + 17])
def test_killed_after_a_checkpoint_the_next_run_goes_on(sim: Simulator, book: Path, came: int) -> None:
    break_off(sim, book, came, signal.SIGKILL)
    known = remembered(book)
    assert came - 9 * MIB <= known <= came
    assert known >= 8 * MIB
    check_end(sim, book, [206])


def test_killed_before_the_first_checkpoint_the_next_run_begins_again(sim: Simulator, book: Path) -> None:
    break_off(sim, book, 5 * MIB, signal.SIGKILL)
    assert remembered(book) == 0
    check_end(sim, book, [200])


def test_killed_twice_it_comes_on_each_time(sim: Simulator, book: Path) -> None:
    break_off(sim, book, 10 * MIB, signal.SIGKILL)
    first = remembered(book)
    part(book).write_bytes(part(book).read_bytes()[: first + MIB])  # so that the wait is for what comes now
    break_off(sim, book, 20 * MIB, signal.SIGKILL)
    assert remembered(book) >= first + 8 * MIB
    check_end(sim, book, [206])


def test_stopped_at_once_it_keeps_every_byte_that_came(sim: Simulator, book: Path) -> None:
    break_off(sim, book, 3 * MIB + 5, signal.SIGINT, signal.SIGINT)
    assert remembered(book) == part(book).stat().st_size == 3 * MIB + 5
    check_end(sim, book, [206])


def test_what_somebody_changed_meanwhile_is_not_gone_on_with(sim: Simulator, book: Path) -> None:
    break_off(sim, book, 12 * MIB, signal.SIGKILL)
    with part(book).open("r+b") as file:
        file.seek(MIB)
        file.write(b"\0" * 16)
    check_end(sim, book, [200])
