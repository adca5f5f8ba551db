"""A week of nights on three stations. By day people edit; the summary of each night shows what became of that.

The clock is the test's own: ten minutes until the next attempt take no time. The summary of each night is what the desk
reads, in the terminal or as a notice: an edit of others is there, or still on the server.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from msauto.concurrency import SystemClock
from msauto.plugins.batch.batch_file import load_batch
from msauto.plugins.batch.batch_job import BatchSignals
from msauto.plugins.batch.batch_run import BatchSession, JobChoice
from msauto.plugins.batch.summary import render_text
from msauto.plugins.simulator.embedded import ServerState, SimSegment, Simulator, empty_state
from msauto.plugins.simulator.embedded.faults import parse_change
from tests.cli.command_line import Desk

PROMOS = [f"PROMO {number:03}" for number in range(1, 5)]
BATCH = {
    "name": "nightly",
    "schedule": {"at": "03:10", "tz": "Europe/Oslo"},
    "jobs": {
        "prepare": {
            "playbooks": "play.yml",
            "keep_going": True,
            "retry": {"times": 1, "wait": "10m"},
        }
    },
}


MORNINGS = {
    "Monday": """\
nightly: ok: 1 job ok, 15 targets changed
  prepare  ok  0 s  15 changed
""",
    "Tuesday": """\
nightly: ok: 1 job ok, 12 targets changed
  prepare  ok  0 s  12 changed, 3 unchanged; 1 thing was changed outside
prepare: oslo/NEWS: PROMO 002 changed outside: field comment "CALL THE DESK
  BEFORE AIR"
→ for details: msauto history RUN --state-dir state
""",
    "Wednesday": """\
nightly: failed: 1 of 1 job not ok; 9 of 14 targets written
  prepare  failed (3)  10 min  9 of 14 targets written; 1 thing was changed
                               outside; 2 attempts
    bergen: 5 no connection: Connection refused
        PROMO 001…PROMO 004 (4), Long Film
        → start the server, or correct its `url`
    changed: 4 on oslo, 5 on tromso
prepare: tromso/NEWS: Long Film changed outside by kari: marker uid 1 moved
→ for details: msauto history RUN --state-dir state, msauto history RUN --state-dir state
→ to run these jobs again: msauto batch run batch.yml --failed --state-dir state
""",
    "Thursday": """\
nightly: failed: 1 of 1 job not ok; 12 of 13 targets written
  prepare  failed (3)  0 s  12 of 13 targets written; 1 thing was changed
                            outside
    tromso: 1 not attempted: asset 'PROMO 003' not found: its clip has the title
        'PROMO 003 final' now
        → to rename it back, add `was: 'PROMO 003 final'`; to follow it, write
          `title: 'PROMO 003 final'`. Else did you mean 'PROMO 004', 'PROMO 002'
          or 'PROMO 001'? Else correct the title, or write `missing: skip`
    changed: 4 on oslo, 5 on bergen, 3 on tromso
prepare: bergen/NEWS: Long Film changed outside: link Playout/Long Film deleted
→ for details: msauto history RUN --state-dir state
→ to run these jobs again: msauto batch run batch.yml --failed --state-dir state
""",
    "Friday": """\
nightly: ok: 1 job ok, 12 targets changed
  prepare  ok  0 s  12 changed, 3 unchanged; 1 warning: oslo: PROMO 001: this is
                    another recording (created 2026-11-14T10:00:00) than the one
                    that earlier runs wrote to (created 2026-11-13T10:00:00)
""",
    "Saturday": """\
nightly: ok: 1 job ok, 13 targets changed
  prepare  ok  10 min  13 changed, 2 unchanged; 1 thing was changed outside; 2
                       attempts
prepare: tromso/NEWS: Long Film changed outside: segment 2 changed
→ for details: msauto history RUN --state-dir state, msauto history RUN --state-dir state
""",
    "Sunday": """\
nightly: ok: 1 job ok, 12 targets changed
  prepare  ok  0 s  12 changed, 2 unchanged, 1 kept; 1 thing was changed
                    outside; 1 warning: tromso: Long Film: segment 2 was changed
                    outside since run RUN: it has title 'After
                    the break' now, and the run left title 'Part 2'; it is kept
                    (play.yml:22:9)
prepare: tromso/NEWS: PROMO 004 changed outside: field comment "HOLD"
→ for details: msauto history RUN --state-dir state
""",
}
"""The summary of each night."""


class WeekClock(SystemClock):
    """Does not go on; a pause takes no time."""

    time = datetime(2026, 11, 16, 2, 10, tzinfo=UTC)
    waited = 0.0

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return self.waited

    async def sleep(self, seconds: float) -> None:
        self.waited += seconds
        await asyncio.sleep(0)


class Pauses(BatchSignals):
    """``meanwhile`` is what happens until the next attempt."""

    def __init__(self, clock: WeekClock, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self.clock, self.meanwhile = clock, meanwhile

    def wait(self, seconds: float) -> bool:
        if seconds:
            self.clock.time += timedelta(seconds=seconds)
            self.meanwhile()
        return False


class Week:
    """Three stations with the same content, and the nights of one batch."""

    def __init__(self, folder: Path) -> None:
        self.oslo, self.bergen, self.tromso = (Simulator(state=content()) for _ in range(3))
        self.stations = {"oslo": self.oslo, "bergen": self.bergen, "tromso": self.tromso}
        self.clock, self.desk = WeekClock(), Desk(folder)

    def open(self) -> None:
        for station in self.stations.values():
            station.start()
        hosts = {
            name: {"server": {"url": each.url}, "database": "NEWS"}
            for name, each in self.stations.items()
        }
        self.desk.inventory(hosts)
        self.desk.write("msauto.toml", 'inventory = "inventory.yml"\n')
        self.desk.write("batch.yml", BATCH)

    def restart_bergen(self) -> None:
        self.bergen = self.stations["bergen"] = Simulator(
            state=self.bergen.state, port=self.bergen.port
        )
        self.bergen.start()

    def night(
        self,
        day: str,
        *more: dict[str, Any],
        meanwhile: Callable[[], object] = lambda: None,
        **film: Any,
    ) -> None:
        """Run the batch at 03:10, and read its summary, without the ids of runs."""
        self.desk.write(
            "play.yml", [{"name": "Tonight", "hosts": "all", "tasks": [*more, *tasks(day, **film)]}]
        )
        signals = Pauses(self.clock, meanwhile)
        before = Path.cwd()
        os.chdir(self.desk.folder)
        try:
            session = BatchSession(
                load_batch("batch.yml"), JobChoice(), "state", signals, clock=self.clock, env={}
            )
            summary = render_text(session.run())
        finally:
            os.chdir(before)
        self.clock.time = self.clock.time.replace(
            hour=2, minute=10, second=0, microsecond=0
        ) + timedelta(days=1)
        assert re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{4}", "RUN", summary) == MORNINGS[day]


def content() -> ServerState:
    state = empty_state()
    for title in PROMOS:
        state.databases["NEWS"].add_clip(title, "Promos", frames=500)
    state.databases["NEWS"].add_clip("Long Film", "Films", frames=90_000)
    state.databases["NEWS"].make_folder("Playout")
    return state


def tasks(day: str, **film: Any) -> list[dict[str, Any]]:
    """What is to be so tonight: the promos are cleared for the day, and the film is cut and linked."""
    cleared = {"title": "{{ item }}", "fields": {"comment": f"Cleared for {day}"}}
    parts = [
        {"number": 1, "start": "00:00:00:00", "duration": "00:30:00:00", "title": "Part 1"},
        {"number": 2, "start": "00:30:00:00", "duration": "00:30:00:00", "title": "Part 2"},
    ]
    ad_break = {"at": "00:30:00:00", "track": "Cue Point", "title": "Ad break"}
    asset = {
        "title": "Long Film",
        "segments": parts,
        "markers": [ad_break],
        "links": [{"folder": "Playout"}],
    }
    return [
        {"name": "Promos", "asset": cleared, "loop": PROMOS},
        {"name": "Film", "asset": asset, **film},
    ]


def part_of(station: ServerState) -> SimSegment:
    """The second part of the film."""
    return next(each for each in station.clip("Long Film").segments if each.number == 2)


@pytest.fixture
def week(tmp_path: Path, in_oslo: None) -> Iterator[Week]:
    week = Week(tmp_path)
    try:
        week.open()
        yield week
    finally:
        for station in week.stations.values():
            station.stop()


def test_a_week(week: Week) -> None:
    oslo, bergen, tromso = (each.state for each in week.stations.values())
    week.night("Monday")

    # On Tuesday, the desk in Oslo writes a note where the clearance stands.
    oslo.clip("PROMO 002").home.fields["comment"] = "CALL THE DESK BEFORE AIR"
    week.night("Tuesday")

    # In Bergen, others delete a link. In Tromso, the ad break moves by four seconds. At night, Bergen is down.
    news = bergen.databases["NEWS"]
    news.remove_link(news.clip("Long Film").entries[1])
    (ad_break,) = tromso.clip("Long Film").markers
    ad_break.pos, ad_break.fields["user"] = 45_100, "kari"
    week.bergen.stop()
    week.night("Wednesday")
    assert [each.pos for each in tromso.clip("Long Film").markers] == [45_000]

    # Bergen is back. In Tromso, a promo gets another title.
    week.restart_bergen()
    parse_change("rename:PROMO 003:PROMO 003 final")(tromso)
    week.night("Thursday")
    assert tromso.clip("PROMO 003 final").home.fields["comment"] == "Cleared for Wednesday"

    # The playbook renames it back. In Oslo, a promo is recorded again.
    parse_change("rerecord:PROMO 001")(oslo)
    rename = {"name": "Rename", "asset": {"title": "PROMO 003", "was": ["PROMO 003 final"]}}
    week.night("Friday", rename)

    # In Tromso, the second part begins later. At night, Bergen is busy until the second attempt.
    part_of(tromso).start, part_of(tromso).duration = 45_500, 44_500
    week.bergen.faults.add("status:503@GET /storage")
    week.night("Saturday", meanwhile=week.bergen.faults.clear)

    # From now on, what the desks do to the film is kept. In Tromso, a part has another title, and a promo is on hold.
    part_of(tromso).titles = ["After the break"]
    tromso.clip("PROMO 004").home.fields["comment"] = "HOLD"
    week.night("Sunday", outside="keep")
    assert part_of(tromso).titles == ["After the break"]

    journal = week.desk.run(
        "history", "--title", "PROMO 002", "-l", "oslo", "--state-dir", "state"
    ).out
    assert journal.count("changed outside") == 1
    assert (
        '"CALL THE DESK BEFORE AIR" → "Cleared for Tuesday"  (changed outside since Mon 2026-11-16 03:10'
        in journal
    )
