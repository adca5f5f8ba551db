"""stdout carries the result alone, exit codes are those of commands, «Exit codes», and consent is asked for."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import time
from pathlib import Path

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import MSAUTO, Desk
from tests.tables import table

pytestmark = pytest.mark.scale

INV = ("-i", "inventory.yml")
PROMOS = {"asset": {"title": "{{ item }}", "state": "absent", "with_links": True}, "loop": ["Promo 1", "Promo 2"]}
RAW_MARKS = {"asset": {"title": "EP001", "markers": [], "exactly": ["markers"]}}


def marked(sim: Simulator, count: int) -> None:
    from msauto.simulator import SimMarker

    sim.state.clip("EP001").markers[:] = [SimMarker(n, n, {"track": "General"}) for n in range(1, count + 1)]


def test_a_plan_writes_nothing_anywhere(desk: Desk, sim: Simulator) -> None:
    before = desk.files() | {desk.comment("new")}
    sourced = desk.run("plan", *INV, "play.yml")
    assert (sourced.code, sourced.err) == (0, "")
    assert '"new"' in sourced.out
    assert desk.files() == before
    assert not desk.state.exists()
    assert {entry.method for entry in sim.log} <= {"GET", "HEAD"}


@table("cli/exit_codes", "arguments", "changes", "code")
def test_exit_codes(desk: Desk, sim: Simulator, arguments: tuple[str, ...], changes: bool, code: int) -> None:
    desk.comment("new" if changes else "")
    sim.state.clip("EP001").home.fields["comment"] = ""
    sourced = desk.run(*arguments, *INV, "play.yml")
    assert sourced.code == code, sourced
    assert len(sim.writes()) == (changes and "--yes" in arguments)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", [("apply", "--yes"), ("history", "--format", "json")])
def test_closed_streams_change_nothing(desk: Desk, sim: Simulator, command: tuple[str, ...], closed: str) -> None:
    desk.comment("new")
    paths = () if command[0] == "history" else (*INV, "play.yml")
    line = shlex.join([*MSAUTO, *command, *paths])
    done = subprocess.run(
        ["sh", "-c", f"{line} {closed}"], cwd=desk.folder, env=desk.surroundings(), capture_output=True, check=False
    )
    assert (done.returncode, len(sim.writes())) == (0, int(command[0] == "apply")), done.stderr


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_documents_are_alone_on_stdout(desk: Desk, form: str) -> None:
    desk.comment("new")
    for command in (("plan",), ("apply", "--yes")):
        sourced = desk.run(*command, *INV, "play.yml", "--format", form)
        assert (sourced.code, sourced.err) == (0, "")
        assert sourced.out.startswith({"markdown": "<!-- msauto:", "html": "<!DOCTYPE html>"}[form])


@table("cli/bad_usage", "arguments")
def test_bad_usage_is_1(desk: Desk, arguments: tuple[str, ...]) -> None:
    desk.write("x.yml", "[]")
    sourced = desk.run(*arguments)
    assert (sourced.code, sourced.out) == (1, "")
    assert sourced.err.strip()
    sourced.one_error()


@pytest.mark.parametrize("arguments", [("--version",), ("--help",), ("plan", "-h"), ("show", "assets", "--help")])
def test_what_is_asked_for_is_no_error(desk: Desk, arguments: tuple[str, ...]) -> None:
    sourced = desk.run(*arguments)
    assert (sourced.code, sourced.err) == (0, "")
    assert "msauto" in sourced.out


# Consent and limits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "code", "writes"),
    [("yes\n", 0, 1), ("YES\n", 0, 1), ("y\n", 4, 0), ("no\n", 4, 0), ("\n", 4, 0), ("", 4, 0), (None, 4, 0)],
)
def test_only_yes_goes_on(desk: Desk, sim: Simulator, typed: str | None, code: int, writes: int) -> None:
    desk.comment("new")
    sourced = desk.run("apply", *INV, "play.yml", typed=typed)
    assert (sourced.code, len(sim.writes())) == (code, writes)
    assert "Plan: 0 to add, 1 to change" in sourced.out
    assert ("Type 'yes' to continue" in sourced.err) is (typed is not None)
    assert "goes on" not in sourced.out


@pytest.mark.parametrize(("typed", "code"), [("2\n", 0), ("yes\n", 4), ("1\n", 4), ("22\n", 4), ("", 4), (None, 4)])
def test_deleting_takes_the_number(desk: Desk, sim: Simulator, typed: str | None, code: int) -> None:
    desk.play(PROMOS)
    sourced = desk.run("apply", *INV, "play.yml", typed=typed)
    assert (sourced.code, len(sim.writes())) == (code, 0 if code else 2)
    assert "2 assets are deleted; this cannot be undone:" in sourced.out  # the plan is shown first
    assert f"{sourced.out}{sourced.err}".count("--allow-delete 2") == (0 if code == 0 else 1)


@pytest.mark.parametrize(("flag", "code"), [(("--allow-delete", "1"), 4), (("--allow-delete", "2"), 0), ((), 4)])
def test_yes_is_no_word_for_deleting(desk: Desk, sim: Simulator, flag: tuple[str, ...], code: int) -> None:
    desk.play(PROMOS)
    sourced = desk.run("apply", "--yes", *flag, *INV, "play.yml")
    assert (sourced.code, len(sim.writes())) == (code, 0 if code else 2)
    assert ("--allow-delete 2" in sourced.err) is bool(code)


@pytest.mark.parametrize(("flag", "code"), [(("--allow-remove", "2"), 4), (("--allow-remove", "3"), 0), ((), 4)])
def test_emptying_a_list_takes_a_word(desk: Desk, sim: Simulator, flag: tuple[str, ...], code: int) -> None:
    marked(sim, 3)
    desk.play(RAW_MARKS)
    for typed in ("yes\n", None):
        if code or typed is None:
            sourced = desk.run("apply", *(["--yes"] if typed is None else []), *flag, *INV, "play.yml", typed=typed)
            assert (sourced.code, len(sim.writes())) == (code, 0 if code else 3)
            assert ("--allow-remove 3" in sourced.err) is bool(code)


def test_a_limit_of_requests(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "EP001", "fields": {"comment": "a", "user_1": "b"}}})
    desk.run("apply", "--yes", "--allow-requests", "1", *INV, "play.yml").one_error(
        "sends 2 requests", "the limit is 1"
    )
    assert desk.run("apply", "--yes", "--allow-requests", "1", *INV, "play.yml").code == 4
    assert not sim.writes()
    assert desk.run("apply", "--yes", "--allow-requests", "2", *INV, "play.yml").code == 0


# Errors of planning ------------------------------------------------------------------------------------------------


def test_a_planning_error_stops_all(desk: Desk, sim: Simulator) -> None:
    tasks = [{"asset": {"title": title, "fields": {"comment": "new"}}} for title in ("EP001", "Nowhere", "EP002")]
    desk.play(*tasks)
    for command in (("plan",), ("apply", "--yes"), ("apply", "--check"), ("plan", "--detailed-exitcode")):
        sourced = desk.run(*command, *INV, "play.yml")
        assert sourced.code == 1
        assert "asset 'Nowhere' not found" in sourced.out
        assert "nothing can be applied" in sourced.out
        sourced = desk.run(*command, *INV, "play.yml", "--format", "json")
        assert (sourced.code, sourced.json["summary"]["errors"]) == (1, 1)
        sourced.one_error("cannot plan 1 target", "→")
    assert not sim.writes()


# A real terminal -----------------------------------------------------------------------------------------------------


def on_a_terminal(desk: Desk, *arguments: str, typed: bytes = b"", term: str = "xterm") -> tuple[int, str]:
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


@pytest.mark.parametrize(("typed", "code", "writes"), [(b"yes\n", 0, 1), (b"nope\n", 4, 0), (b"\x03", 130, 0)])
def test_asked_on_a_real_terminal(desk: Desk, sim: Simulator, typed: bytes, code: int, writes: int) -> None:
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
