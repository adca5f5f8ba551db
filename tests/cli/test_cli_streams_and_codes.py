"""Closed streams and real terminals: what a process alone shows of output and consent."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import MSAUTO, Desk

pytestmark = pytest.mark.scale

INV = ("-i", "inventory.yml")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", [("apply", "--yes"), ("history", "--format", "json")])
def test_closed_streams_change_nothing(
    desk: Desk, sim: Simulator, command: tuple[str, ...], closed: str
) -> None:
    desk.comment("new")
    paths = () if command[0] == "history" else (*INV, "play.yml")
    line = shlex.join([*MSAUTO, *command, *paths])
    done = subprocess.run(
        ["sh", "-c", f"{line} {closed}"],
        cwd=desk.folder,
        env=desk.surroundings(),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, len(sim.writes())) == (0, int(command[0] == "apply")), done.stderr


# A real terminal -----------------------------------------------------------------------------------------------------


def on_a_terminal(
    desk: Desk, *arguments: str, typed: bytes = b"", term: str = "xterm"
) -> tuple[int, str]:
    """Run on a pseudo-terminal, and type once a question is shown."""
    ours, theirs = pty.openpty()
    environment = {**desk.surroundings(), "TERM": term, "COLUMNS": "100"}
    with subprocess.Popen(
        [*MSAUTO, *arguments], cwd=desk.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
        start_new_session=True, preexec_fn=_take_terminal,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
                if typed and b"to continue: " in shown:
                    _wait_until_it_reads(process.pid)
                    os.write(ours, typed)
                    typed = b""
        except OSError:
            pass  # the other end was closed
        process.wait(timeout=10)
    os.close(ours)
    return process.returncode, shown.decode()


def test_without_a_command_the_help_is_shown_as_by_help(desk: Desk) -> None:
    for words in ((), ("show",)):
        code, shown = on_a_terminal(desk, *words)
        assert (code, shown) == (1, on_a_terminal(desk, *words, "--help")[1])
        assert "\x1b[1mUsage:" in shown


def _wait_until_it_reads(pid: int) -> None:
    """Wait until a process sleeps: a signal just before it reads would only be handled after the next line."""
    stat = Path(f"/proc/{pid}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "R":
        time.sleep(0.001)


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize(
    ("typed", "code", "writes"), [(b"yes\n", 0, 1), (b"nope\n", 4, 0), (b"\x03", 130, 0)]
)
def test_asked_on_a_real_terminal(
    desk: Desk, sim: Simulator, typed: bytes, code: int, writes: int
) -> None:
    desk.comment("new")
    found, shown = on_a_terminal(desk, "apply", *INV, "play.yml", typed=typed)
    assert (found, len(sim.writes())) == (code, writes), shown
    assert "\x1b[" in shown  # colour
    assert "Traceback" not in shown
    if code == 4:
        assert "→ type yes; to apply without a question: --yes" in shown
    if code == 130:
        assert "Interrupted: nothing was sent" in shown


def test_a_trial_asked_on_a_real_terminal(desk: Desk, sim: Simulator) -> None:
    code, shown = on_a_terminal(desk, "probe", *INV, "--scratch", "EP001", typed=b"no\n")
    assert (code, sim.log) == (4, []), shown
    assert "→ type yes; to write without a question: --yes" in shown


def test_a_dumb_terminal_gets_no_control_sequences(desk: Desk) -> None:
    desk.comment("new")
    code, shown = on_a_terminal(desk, "plan", *INV, "play.yml", term="dumb")
    assert (code, "\x1b" in shown) == (0, False), shown


_COLOUR = re.compile(r"\x1b\[[\d;]*m")
"""The sequences that set colour and style; progress erases its line by another one."""


def test_no_colour_on_a_terminal_that_wants_none(desk: Desk) -> None:
    desk.comment("new")
    assert not _COLOUR.search(on_a_terminal(desk, "plan", "--no-color", *INV, "play.yml")[1])
    assert not _COLOUR.search(on_a_terminal(desk, "plan", "--no-color", *INV, "nowhere.yml")[1])
    desk.environment["NO_COLOR"] = "1"
    assert not _COLOUR.search(on_a_terminal(desk, "plan", *INV, "play.yml")[1])
