"""Each cause has one recipe: who does what the summary prints, to the letter, ends with ``ok`` in the status."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import get_args

import pytest
import yaml

from msauto.concurrency import SystemClock
from msauto.ledger.ledger import Ledger
from msauto.ledger.locks import LockScope
from msauto.model.plan import CauseKind
from msauto.plugins.simulator.embedded import Simulator
from msauto.report.result_view import NOT_DONE
from tests.cli.batch.test_cli_batch import batch
from tests.cli.command_line import Desk
from tests.cli.test_sessions import Steps
from tests.stage import entered, free_port
from tests.stories import Given
from tests.tables import CASES, load, table

RECIPES = load(CASES / "batch" / "recipes.yml")
COLUMNS = ("kind", "outcome", "jobs", "batch", "wrong", "told", "right")
AGAIN = "→ to run these jobs again: "


@contextmanager
def locked(desk: Desk, sim: Simulator) -> Iterator[None]:
    """Another run holds the lock of the database."""
    with Ledger.open(desk.state / "msauto") as ledger:
        lock = ledger.hold([LockScope(sim.url, "NEWS")], SystemClock())
        with entered(lock):
            yield


class Morning(Steps):
    """What went wrong at night, and what the user does in the morning."""

    def __init__(self, desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(desk, sim, monkeypatch, {})
        self.open = ExitStack()
        self.port = free_port()

    def take(self, step: Given) -> None:
        match step:
            case {"stop": _}:
                url = f"http://127.0.0.1:{self.port}"
                self._desk.inventory({"studio-a": {"server": {"url": url}, "database": "NEWS"}})
            case {"start": _}:
                self.open.enter_context(Simulator(port=self.port))
            case {"lock": _}:
                self.open.enter_context(locked(self._desk, self._sim))
            case {"release": _}:
                self.open.close()
            case _:
                super().take(step)


def test_every_kind_of_cause_has_a_recipe() -> None:
    assert {*get_args(CauseKind)} <= {row.get("kind") for row in RECIPES}
    assert {*NOT_DONE} <= {row.get("outcome") for row in RECIPES}


@pytest.mark.usefixtures("hurried")
@table("batch/recipes", *COLUMNS, one_in=8)
def test_what_the_summary_prints_ends_with_ok(
    desk: Desk,
    sim: Simulator,
    monkeypatch: pytest.MonkeyPatch,
    kind: str | None,
    outcome: str | None,
    jobs: Given | None,
    batch: Given | None,
    wrong: list[Given],
    told: str,
    right: list[Given],
) -> None:
    jobs = jobs or {"tonight": {"playbooks": "play.yml"}}
    desk.comment("x")
    write(desk, jobs, batch)
    morning = Morning(desk, sim, monkeypatch)
    with morning.open:
        for step in wrong:
            morning.take(step)
        night = desk.run("batch", "run", "batch.yml")
        shown = night.out
        assert night.code, shown
        assert told in shown, shown
        if kind or outcome:
            found, *_ = desk.run("batch", "status", "batch.yml", "--format", "json").json
            assert all(cause["remedy"] for cause in found["causes"]), found
            assert kind in {None, *[cause["kind"] for cause in found["causes"]]}
            assert outcome in {None, *[cause["outcome"] for cause in found["causes"]]}
        for step in right:
            morning.take(step)
        for allowed in re.findall(r"set allow: (\{.*?\})", shown):
            jobs["tonight"]["allow"] = yaml.safe_load(allowed)
            write(desk, jobs, batch)
        (command,) = [line for line in shown.splitlines() if line.startswith(AGAIN)]
        program, *arguments = shlex.split(command.removeprefix(AGAIN))
        assert program == "msauto"
        again = desk.run(*arguments)
        assert again.code == 0, (shown, again)
        status = desk.run("batch", "status", "batch.yml", "--format", "json")
    assert {each["outcome"] for each in status.json} == {"ok"}
    assert status.code == 0


def write(desk: Desk, jobs: Given, more: Given | None) -> None:
    kept = desk.folder / "msauto.toml"
    settings = kept.read_text(encoding="utf-8") if kept.exists() else None
    batch(desk, jobs, **(more or {}))
    if settings is not None:
        desk.write("msauto.toml", settings)
