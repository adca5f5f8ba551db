"""Ctrl-C and SIGTERM: 130, what was done and what was not, at once if asked twice; also while Python imports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from msauto.cli.interrupts import importing
from msauto.cli.main import COMMANDS, group
from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk

pytestmark = pytest.mark.scale

INV = ("-i", "inventory.yml")


@pytest.fixture
def sim() -> Iterator[Simulator]:
    """A separate simulator: its delayed work must not be done in another test."""
    with Simulator() as simulator:
        yield simulator


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert "Traceback" not in err, err
    assert "never awaited" not in err, err
    assert "Unclosed" not in err, err
    return process.returncode, out, err


def episodes(desk: Desk, count: int) -> None:
    titles = [f"EP{number:03d}" for number in range(1, count + 1)]
    fields = {"comment": "new", "user_1": "x"}
    desk.play({"asset": {"title": "{{ item }}", "fields": fields}, "loop": titles})


@pytest.mark.parametrize("command", [("plan",), ("apply", "--yes"), ("apply", "--check")])
@pytest.mark.parametrize("times", [1, 3])
def test_while_planning(desk: Desk, sim: Simulator, command: tuple[str, ...], times: int) -> None:
    episodes(desk, 4)
    sim.faults.add("delay:300@GET")  # longer than the time limit of a test
    with desk.start(*command, *INV, "play.yml") as process:
        until(lambda: sim.log)
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        code, out, err = ended(process)
    assert (code, out) == (130, "")
    assert "Interrupted: " in err
    assert "nothing was sent" in err
    assert not sim.writes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_while_applying_what_is_under_way_is_finished(
    desk: Desk, sim: Simulator, number: int
) -> None:
    episodes(desk, 4)
    sim.faults.add("delay:0.7@POST")
    with desk.start("apply", "--yes", "-f", "1", *INV, "play.yml", "--format", "json") as process:
        until(sim.writes)
        process.send_signal(number)
        code, out, err = ended(process)
    assert code == 130
    assert "Stopping after the requests in flight" in err
    result = json.loads(out)
    assert result["result"]["interrupted"] is True
    outcomes = [target["result"]["outcome"] for target in result["targets"]]
    assert outcomes[1:] == ["not attempted"] * 3
    done = [entry for entry in sim.writes() if entry.status == 200]
    told = [r["result"]["outcome"] for t in result["targets"] for r in t["requests"]].count("done")
    assert told == len(done) == len(sim.writes())
    (run,) = desk.run("history", "--format", "json").json
    assert run["status"] == "interrupted"
    assert (run["summary"]["requests"], run["summary"]["sent"]) == (
        result["summary"]["requests"],
        told,
    )
    assert f"{told} of {run['summary']['requests']} requests sent" in desk.run("history").out


def test_under_nohup_the_end_of_the_terminal_ends_nothing(desk: Desk, sim: Simulator) -> None:
    episodes(desk, 2)
    sim.faults.add("delay:0.7@POST")
    before = signal.signal(
        signal.SIGHUP, signal.SIG_IGN
    )  # as nohup does: what it starts inherits that
    try:
        process = desk.start("apply", "--yes", "-f", "1", *INV, "play.yml")
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        until(sim.writes)
        process.send_signal(signal.SIGHUP)
        code, out, _ = ended(process)
    assert (code, "2 changed" in out) == (0, True), out


@pytest.mark.parametrize("applied", ["play.yml", "plan.json"])
def test_what_was_stopped_between_its_requests_is_failed_and_continued(
    desk: Desk, sim: Simulator, applied: str
) -> None:
    fields = {"comment": "Ready", "user_1": "x"}
    desk.play({"asset": {"title": "{{ item }}", "fields": fields}, "loop": ["EP001", "EP002"]})
    assert desk.run("plan", *INV, "play.yml", "--out", "plan.json").code == 0
    sim.faults.add("delay:0.7@POST")
    with desk.start("apply", "--yes", "-f", "1", *INV, applied) as process:
        until(sim.writes)
        process.send_signal(signal.SIGINT)
        code, out, err = ended(process)
    assert code == 130
    assert "EP001: failed" in out
    assert "stopped: 1 of 2 requests were sent" in out
    assert "failed=1" in out
    assert "Interrupted: 1 failed, 1 not attempted" in out
    (run,) = desk.run("history", "--format", "json").json
    command = f"msauto apply play.yml {' '.join(INV)}"
    assert f"→ to continue: {command}" in err
    assert run["summary"]["failed"] == 1
    sim.faults.clear()
    assert desk.run(*command.split()[1:], "--yes").code == 0
    assert desk.run("plan", "--detailed-exitcode", *INV, "play.yml").code == 0


def test_a_second_ctrl_c_stops_at_once(desk: Desk, sim: Simulator) -> None:
    episodes(desk, 4)
    sim.faults.add("delay:300@POST")  # longer than the time limit of a test
    with desk.start("apply", "--yes", "-f", "2", *INV, "play.yml") as process:
        until(lambda: len(sim.writes()) == 2)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        next(line for line in process.stderr if "Press Ctrl-C again to stop at once" in line)
        process.send_signal(signal.SIGINT)
        code, out, _ = ended(process)
    assert code == 130
    assert "EP001: unverified" in out
    assert "EP004: not attempted" in out
    assert "msauto history" in out
    (run,) = desk.run("history", "--format", "json").json
    assert (run["status"], run["summary"]["unverified"]) == ("interrupted", 2)


@pytest.mark.parametrize("command", [("show", "assets"), ("show", "databases")])
def test_while_showing(desk: Desk, sim: Simulator, command: tuple[str, ...]) -> None:
    sim.faults.add("delay:300@GET")  # longer than the time limit of a test
    with desk.start(*command, *INV) as process:
        until(lambda: sim.log)
        process.send_signal(signal.SIGINT)
        code, out, err = ended(process)
    assert (code, out) == (130, "")
    assert "Interrupted" in err


def test_while_the_story_is_told(desk: Desk) -> None:
    with desk.start("demo") as process:
        assert process.stdout is not None
        next(line for line in process.stdout if "What would change?" in line)
        while (
            process.poll() is None
        ):  # Python loses a Ctrl-C that comes while it clears an object away
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted" in err


# Ctrl-C while Python still imports: 130 and one line, whatever is being imported, and no traceback


_IMPORTING = """
import os, runpy, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
sys.argv[:] = ["msauto", *sys.argv[1:]]
"""
_AS_MODULE = "runpy.run_module('msauto', run_name='__main__', alter_sys=True)"
_AS_SCRIPT = "from msauto.__main__ import main; sys.exit(main())"
"""What pip writes into the console script."""

_INSIDE_A_CLASS = """
import enum

before = enum._proto_member.__set_name__

def after(*arguments):
    if "msauto.cli.main" in sys.modules or "click" in sys.modules:
        os.kill(os.getpid(), signal.SIGINT)
    before(*arguments)

enum._proto_member.__set_name__ = after
"""


def played(code: str, *arguments: str) -> tuple[int, str, str]:
    source = str(Path(__file__).parents[3])
    sourced = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=source,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return sourced.returncode, sourced.stdout, sourced.stderr


_MODULES = (
    "msauto.cli", "msauto.cli.main", "msauto.cli.interrupts", "click", "click.types", "msauto.errors",
    "msauto.cli.commands.plan",
    "asyncio.events", "pydantic", "lxml.etree", "aiohttp", "msauto.api.stages", "msauto.report.layout",
)  # fmt: skip


@pytest.mark.parametrize("own", [None, "/etc/own.pem"])
def test_the_authorities_of_the_system_are_hidden_from_imports_alone(
    monkeypatch: pytest.MonkeyPatch, own: str | None
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", own) if own else monkeypatch.delenv(
        "SSL_CERT_FILE", raising=False
    )
    with importing():
        assert os.environ["SSL_CERT_FILE"] == os.devnull
    assert os.environ.get("SSL_CERT_FILE") == own


@pytest.mark.parametrize(
    ("name", "way"), [*((name, _AS_MODULE) for name in _MODULES), ("click", _AS_SCRIPT)]
)
def test_at_a_certain_import(name: str, way: str) -> None:
    code, out, err = played(_IMPORTING.format(name=name) + way, "plan", "play.yml")
    assert (code, out, err.lstrip("\n")) == (
        130,
        "",
        "Interrupted.\n",
    )  # a line begins once the command has begun


_EARLY = """
import os, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), 2)

sys.meta_path.insert(0, Interrupts())
sys.argv[:] = ["msauto", *sys.argv[1:]]
"""


@pytest.mark.parametrize("name", ["contextlib", "collections", "signal", "threading", "msauto.cli"])
def test_before_the_first_import_of_msauto(name: str) -> None:
    assert played(_EARLY.format(name=name) + _AS_SCRIPT, "plan", "play.yml") == (
        130,
        "",
        "Interrupted.\n",
    )


def test_where_python_makes_another_error_of_it() -> None:
    """Up to Python 3.11 what is raised while an enum is made comes as a ``RuntimeError``."""
    code = _IMPORTING.format(name="") + _INSIDE_A_CLASS + _AS_MODULE
    assert played(code, "plan", "play.yml") == (130, "", "Interrupted.\n")


def test_whoever_ignores_it_goes_on() -> None:
    """``nohup`` and shells that start a command in the background have it ignore SIGINT."""
    code = (
        _IMPORTING.format(name="click")
        + "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        + _AS_MODULE
    )
    returned, out, _ = played(code, "--version")
    assert (returned, out[:6]) == (0, "msauto")


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.2, 0.45])
def test_by_the_clock(desk: Desk, moment: float) -> None:
    """Interrupt as a user does, as soon as our code runs (before that, Python answers), at any speed of the machine."""
    desk.comment("new")
    code = _IMPORTING.format(name="msauto.cli").replace(
        "os.kill(os.getpid(), signal.SIGINT)", "os.write(1, b'.')"
    )
    command = [sys.executable, "-c", code + _AS_SCRIPT, "plan", "-i", "inventory.yml", "play.yml"]
    with subprocess.Popen(
        command,
        cwd=desk.folder,
        env=desk.surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == "."
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    assert "Traceback" not in err
    assert process.returncode == 0 or (
        process.returncode == 130 and err.lstrip().startswith("Interrupted")
    ), (out, err)


def test_the_help_loads_no_command_and_tells_what_each_says_of_itself(desk: Desk) -> None:
    """``msauto --help`` answers at once; the descriptions of the commands are written beside their names."""
    for name, words in COMMANDS.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert command.short_help == words
    code = "import sys; from msauto.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    _, out, modules = played(code)
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert not {"asyncio", "pydantic", "jinja2", "lxml", "aiohttp", "yaml"} & set(modules.split())


_ENGINE = {
    "aiohttp",
    "asyncio",
    "httpx2",
    "lxml",
    "msauto.api.stages",
    "msauto.planning.survey",
    "msauto.server.client",
}
_SCHEMAS = {"msauto.aspects", "msauto.playbook.schema.play"}
_REPORTS = {"msauto.report.text", "msauto.plugins.pages.html", "msauto.report.ci_forms"}


@pytest.mark.parametrize(
    ("command", "unused"),
    [
        ("plan --help", _SCHEMAS | _REPORTS | {"jinja2", "msgspec", "pydantic", "yaml"}),
        ("apply --help", _SCHEMAS | _REPORTS | {"jinja2", "msgspec", "pydantic", "yaml"}),
        ("undo --help", _SCHEMAS | _REPORTS | {"jinja2", "msgspec", "pydantic", "yaml"}),
        (
            "vars studio-a -i inventory.yml",
            _SCHEMAS | _REPORTS | {"msauto.ledger.ledger", "msauto.plugins.timelines.formats"},
        ),
        (
            "history",
            _SCHEMAS
            | _REPORTS
            | {"jinja2", "msauto.playbook.hosts", "pydantic", "statistics", "yaml"},
        ),
        (
            "history --config own.toml",
            _SCHEMAS | {"jinja2", "msauto.playbook.schema.inventory", "yaml"},
        ),
        (
            "doc asset",
            _REPORTS | {"jinja2", "msauto.ledger.ledger", "msauto.playbook.hosts", "yaml"},
        ),
        ("validate .", _REPORTS | {"msauto.ledger.ledger", "msauto.plugins.timelines.formats"}),
    ],
)
def test_a_command_imports_what_it_uses(desk: Desk, command: str, unused: set[str]) -> None:
    desk.write("own.toml", "[limits]\nremove_items = 5")
    code = "import sys; from msauto.cli.main import main; sys.exit(main(sys.argv[1:]) or print(*sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code, *command.split()],
        cwd=desk.folder,
        env=desk.surroundings(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert not (_ENGINE | unused) & {*done.stdout.splitlines()[-1].split()}
