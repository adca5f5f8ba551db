"""``msauto demo``: it waits for Enter between its scenes, on a terminal alone."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from msauto.plugins.simulator.demo import STEPS
from tests.cli.command_line import Desk

HINT = "Press Enter for the next scene"


def shown_on_terminal(desk: Desk, answers: str, **variables: str) -> str:
    """Run the demo on a terminal, and give the next answer at each hint; return what it shows."""
    ours, theirs = pty.openpty()
    environment = {
        name: value for name, value in desk.surroundings().items() if name != "CI"
    } | variables
    with subprocess.Popen(
        [sys.executable, "-m", "msauto", "demo"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        shown, answered = "", 0
        try:
            while data := os.read(ours, 65536):
                shown += data.decode(errors="replace")
                while shown.count(HINT) > answered:
                    os.write(
                        ours, answers[answered].encode().replace(b" ", b"\n").replace(b"q", b"q\n")
                    )
                    answered += 1
        except OSError:  # the end of a terminal on Linux
            pass
        os.close(ours)
    assert process.returncode == 0, shown
    return shown


@pytest.mark.scale
def test_each_scene_waits_for_enter(desk: Desk) -> None:
    shown = shown_on_terminal(desk, " " * 6)
    assert shown.count(HINT) == len(STEPS) - 1
    assert "Next: read" in shown


@pytest.mark.scale
def test_q_runs_the_rest_without_a_pause(desk: Desk) -> None:
    shown = shown_on_terminal(desk, " q")
    assert shown.count(HINT) == 2
    assert "Next: read" in shown


@pytest.mark.scale
@pytest.mark.parametrize(
    "terminal",
    [pytest.param(True, marks=pytest.mark.scale, id="CI"), pytest.param(False, id="no terminal")],
)
def test_it_never_waits_without_somebody_at_a_terminal(desk: Desk, terminal: bool) -> None:
    shown = shown_on_terminal(desk, "", CI="true") if terminal else desk.spawn("demo").out
    assert HINT not in shown
    assert "Next: read" in shown
