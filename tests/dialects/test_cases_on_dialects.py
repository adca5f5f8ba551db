"""Every case of ``tests/cases`` the whole way, on servers of every habit: playbook, plan, apply, plan, over HTTP.

Each case is played on a share of the rows of the pairwise set. Where a row makes it impossible, it is refused for the
reason of its rule (``case_refusals``). What must be there then is worked out from the case alone (``case_end``), and
looked up in the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from msauto.errors import InputError
from msauto.ledger.ledger import Ledger
from msauto.model.desired import ResolvedPlaybooks
from msauto.model.identity import ClipIdentity
from msauto.model.plan import Plan, TargetId
from msauto.model.result import Result
from msauto.plugins.simulator.embedded import LogEntry, SimDialect, Simulator
from tests.dialects.case_end import end_of
from tests.dialects.case_refusals import BY_DIALECT, refusal, told_by_server
from tests.dialects.case_seed import (
    CREATED,
    Case,
    ledger_of,
    load_cases,
    pins_of,
    put_case,
    tags_of,
    tasks_of,
)
from tests.dialects.fitting import ours_of, rows, server_of
from tests.dialects.pairwise import Row
from tests.dialects.store import differences, evened, plain_store
from tests.stage import Stage

pytestmark = pytest.mark.scale

CASES = load_cases()
# The oracle of the cases knows one clip for each title, and links whose titles find them; tests/worlds has the others.
PINNED = {
    "title_case": "exact",
    "title_twins": "first",
    "link_titles": "found",
    "orig_name": "reported",
}
ROWS = [{**row, **{name: value for name, value in PINNED.items() if name in row}} for row in rows()]
SHARE = 12
"""On how many rows a case is played: others for each case, and over all cases each row about fifty times."""


@dataclass
class Play:
    """One case on one server."""

    case: Case
    stage: Stage
    server: SimDialect
    ours: dict[str, str]

    @property
    def told(self) -> str:
        return f"{self.case.path} on {asdict(self.server)} as {self.ours}"

    def __call__(self) -> None:
        put_case(self.stage.sim, self.case, self.server)
        if self.case.ledger:
            self.remember(ledger_of(self.case, self.stage.folder))
        before = plain_store(self.stage.sim)
        words = refusal(self.case, self.server, self.ours)
        plan, resolved = self.plan()
        if words:
            self.check_refused(plan, words, before)
        else:
            assert isinstance(plan, Plan), f"{plan}\n{self.told}"
            self.check_done(plan, resolved, before)

    def remember(self, items: Mapping[str, Any]) -> None:
        """Put items into the ledger, of each target that the case may mean."""
        url = self.stage.sim.url
        with Ledger.open(self.stage.place) as ledger:
            for target in (
                TargetId(url, "NEWS", "asset", "Film", ClipIdentity(1, CREATED)),
                TargetId(url, "NEWS", "database", "NEWS"),
                TargetId(url, "", "rss_channel", "ticker"),
            ):
                ledger.memory().remember(target, items)

    def plan(self) -> tuple[Plan | InputError, Any]:
        try:
            tasks, tags = tasks_of(self.case, self.stage.folder), tags_of(self.case)
            resolved = self.stage.resolved(*tasks, tags=tags)
            return self.stage.planned(resolved), resolved
        except InputError as error:
            return error, None

    def check_refused(
        self, plan: Plan | InputError, words: list[str], before: dict[str, Any]
    ) -> None:
        if isinstance(plan, InputError):
            errors = str(plan)
        else:
            assert plan.requests == 0 or len(plan.targets) > 1, self.told
            errors = "\n".join(target.error or "" for target in plan.targets)
        for word in words:
            assert word in errors, f"{word!r} is not in {errors!r}\n{self.told}"
        assert not self.stage.sent()
        assert plain_store(self.stage.sim) == before

    def check_done(self, plan: Plan, resolved: ResolvedPlaybooks, before: dict[str, Any]) -> None:
        assert not plan.errors, f"{[target.error for target in plan.targets]}\n{self.told}"
        end = evened(end_of(self.case, before, self.server))
        self.check_plan(plan)
        result = self.stage.applied(plan, resolved)
        if told_by_server(end, before, self.server):
            assert not result.ok, self.told
            return
        self.check_result(result)
        wrong = differences(end, plain_store(self.stage.sim))
        assert not wrong, "\n".join([*wrong, self.told])
        assert told(self.stage.sim.log, plan) == asked(plan), self.told
        self.check_files(plan)
        self.check_again(resolved)

    def check_plan(self, plan: Plan) -> None:
        """What is as desired, and shown by the server, is left alone."""
        if self.shows_all() and self.ours.items() >= self.case.sourced.get("dialect", {}).items():
            unchanged = self.case.sourced.get("unchanged") or self.case.sourced.get("skipped")
            assert (plan.requests == 0) == bool(unchanged), f"{asked(plan)}\n{self.told}"

    def shows_all(self) -> bool:
        hidden = (self.server.link_fields, self.server.segment_keywords) != ("reported", "reported")
        return (
            not hidden and self.server.xmp_shape != "unreadable" and self.ours["xmp_read"] == "auto"
        )

    def check_result(self, result: Result) -> None:
        failed = [
            (each.target.name, each.outcome, each.message, each.differences)
            for each in result.targets
        ]
        assert result.ok, f"{failed}\n{self.told}"

    def check_files(self, plan: Plan) -> None:
        for dest in (each.dest for target in plan.targets for each in target.requests if each.dest):
            content = Path(dest).read_bytes()
            assert content.startswith(b"\x89PNG") or content[4:8] == b"ftyp", (dest, content[:16])

    def check_again(self, resolved: ResolvedPlaybooks) -> None:
        again = self.stage.planned(resolved)
        assert again.errors == self.case.sourced.get("again_errors", 0), self.told
        left = [
            f"{each.action} {each.aspect} {each.key}"
            for target in again.targets
            for each in target.changes
        ]
        assert left == self.case.sourced.get("again", []), f"{left}\n{self.told}"


def asked(plan: Plan) -> list[str]:
    """The requests of a plan, as lines; of several targets in any order."""
    lines = [f"{each.method} {each.path}" for target in plan.targets for each in target.requests]
    return lines if len(plan.targets) == 1 else sorted(lines)


def told(log: list[LogEntry], plan: Plan) -> list[str]:
    """What the server was asked to do, and to send as a file."""
    files = {each.path for target in plan.targets for each in target.requests if each.dest}
    lines = [entry.line for entry in log if entry.method != "GET" or entry.target in files]
    return lines if len(plan.targets) == 1 else sorted(lines)


def play(case: Case, row: Row, sim: Simulator, folder: Path) -> None:
    row = row | pins_of(case)
    stage = Stage(sim, folder, ours_of(row), case.sourced.get("version"))
    Play(case, stage, server_of(row), ours_of(row))()


def share_of(name: str) -> list[Row]:
    """The rows of a case: they follow from its name alone, so that a new case leaves those of the others."""
    first = crc32(name.encode())
    return [ROWS[(first + turn) % len(ROWS)] for turn in range(SHARE)]


def test_every_row_is_met() -> None:
    met = {id(row) for case in CASES for row in share_of(case.name)}
    assert met == {id(row) for row in ROWS}
    assert len(CASES) > 150
    assert {case.name for case in CASES} >= BY_DIALECT.keys()


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_case_on_a_share_of_the_rows(case: Case, sim: Simulator, tmp_path: Path) -> None:
    for number, row in enumerate(share_of(case.name)):
        (tmp_path / str(number)).mkdir()
        play(case, row, sim, tmp_path / str(number))
