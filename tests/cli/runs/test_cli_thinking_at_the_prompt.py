"""The prompt stays open for long, and another user changes the server meanwhile."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from msauto.api.attempts import Attempt
from msauto.api.inputs import Inputs
from msauto.api.loading import Loaded
from msauto.api.run import RunOptions
from msauto.cli.flags import Flags
from msauto.cli.interrupts import restored_handler
from msauto.cli.plan_and_apply import RunDialog
from msauto.cli.watch import RunWatch
from msauto.concurrency import SystemClock
from msauto.errors import RefusedError
from msauto.exit_codes import OK
from msauto.model.plan import Limits, PlanOptions
from msauto.playbook.settings import Settings
from msauto.plugins.simulator.embedded import Simulator, empty_state
from msauto.plugins.simulator.embedded.faults import parse_change
from tests.stage import Stage

Step = tuple[float, str, str]
"""How long the user thinks, what another user does meanwhile, and what the user types."""


class ThinkingClock(SystemClock):
    """Passes as the user thinks."""

    def __init__(self) -> None:
        self.thought = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.thought


class Person(io.StringIO):
    """A terminal whose user thinks before each answer."""

    def __init__(self, clock: ThinkingClock, sim: Simulator, *steps: Step) -> None:
        super().__init__()
        self.clock, self.sim, self.steps = clock, sim, [*steps]

    def isatty(self) -> bool:
        return True

    def readline(self, *_: Any) -> str:  # type: ignore[override]
        seconds, change, typed = self.steps.pop(0)
        self.clock.thought += seconds
        if change.startswith("comment:"):
            self.sim.state.clip("Film").home.fields["comment"] = change.partition(":")[2]
        elif change:
            parse_change(change)(self.sim.state)
        return f"{typed}\n"


@pytest.fixture
def sim() -> Iterator[Simulator]:
    state = empty_state()
    news = state.databases["NEWS"]
    news.add_clip("Film", "Raw", frames=100).home.fields["comment"] = "raw"
    news.add_clip("Logo", "Master", frames=100)
    with Simulator(state=state) as simulator:
        yield simulator


@pytest.fixture
def ask(
    sim: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    def run(task: dict[str, Any], *steps: Step, **limits: Any) -> tuple[int, str]:
        clock = ThinkingClock()
        settings = Settings(limits=Limits(**limits))
        inputs = Inputs(PlanOptions(), settings, tmp_path, tmp_path)
        flags = Flags(inputs=inputs, verbosity=4, no_color=True)
        dialog = RunDialog(flags, RunOptions(), Attempt(None, ()), RunWatch(), clock=clock)
        person = Person(clock, sim, *steps)
        resolved = Stage(sim, tmp_path).resolved({"name": "A task", "asset": task})
        loaded = Loaded(inputs, resolved)
        with mock.patch.object(sys, "stdin", person), restored_handler():
            code = dialog.run(loaded)
        assert not person.steps
        return code, "".join(capsys.readouterr())

    return run


Asks = Callable[..., tuple[int, str]]
COMMENT = {"title": "Film", "fields": {"comment": "Ready"}}
DELETED = {"title": "Film", "state": "absent"}


def test_what_is_as_it_was_is_not_asked_again(ask: Asks, sim: Simulator) -> None:
    assert ask(COMMENT, (600, "", "yes"))[0] == OK
    assert len(sim.writes()) == 1


def test_a_change_is_shown_and_the_question_asked_again(ask: Asks, sim: Simulator) -> None:
    code, shown = ask(
        COMMENT, (61, "comment:theirs", "yes"), (61, "comment:again", "yes"), (5, "", "yes")
    )
    assert code == OK
    assert "The plan has changed since it was shown, and nothing was sent:" in shown
    assert "studio: Film: field comment: planned 'raw' → 'Ready', now 'theirs' → 'Ready'" in shown
    assert "'again'" in shown
    assert len(sim.writes()) == 1


def test_who_answers_at_once_is_asked_once(ask: Asks, sim: Simulator) -> None:
    assert ask(COMMENT, (59, "", "yes"))[0] == OK
    assert len(sim.writes()) == 1


def test_a_protected_clip_that_got_the_title_is_not_deleted(ask: Asks, sim: Simulator) -> None:
    with pytest.raises(RefusedError, match="protected"):
        ask(DELETED, (61, "swap:Film:Logo", "1"), delete_assets=1, protected=("Master/*",))
    assert sim.writes() == []


def test_another_clip_of_the_title_is_not_deleted_without_a_second_consent(
    ask: Asks, sim: Simulator
) -> None:
    with pytest.raises(RefusedError, match="no consent"):
        ask(DELETED, (61, "rerecord:Film", "1"), (1, "", "no"))
    assert sim.writes() == []
