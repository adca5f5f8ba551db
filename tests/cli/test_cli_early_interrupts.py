"""Ctrl-C while Python still imports: 130 and one line, whatever is being imported, and no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from msauto.cli.main import COMMANDS, group
from tests.cli.command_line import Desk

pytestmark = pytest.mark.scale

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
    source = str(Path(__file__).parents[2])
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
    "asyncio.events", "pydantic", "lxml.etree", "aiohttp", "msauto.api.stages", "msauto.report.html",
)  # fmt: skip


@pytest.mark.parametrize(("name", "way"), [*((name, _AS_MODULE) for name in _MODULES), ("click", _AS_SCRIPT)])
def test_at_a_certain_import(name: str, way: str) -> None:
    assert played(_IMPORTING.format(name=name) + way, "plan", "play.yml") == (130, "", "Interrupted.\n")


def test_where_python_makes_another_error_of_it() -> None:
    """Up to Python 3.11 what is raised while an enum is made comes as a ``RuntimeError``."""
    code = _IMPORTING.format(name="") + _INSIDE_A_CLASS + _AS_MODULE
    assert played(code, "plan", "play.yml") == (130, "", "Interrupted.\n")


def test_whoever_ignores_it_goes_on() -> None:
    """``nohup`` and shells that start a command in the background have it ignore SIGINT."""
    code = _IMPORTING.format(name="click") + "signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + _AS_MODULE
    returned, out, _ = played(code, "--version")
    assert (returned, out[:6]) == (0, "msauto")


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.2, 0.45])
def test_by_the_clock(desk: Desk, moment: float) -> None:
    """Interrupt as a user does, as soon as our code runs (before that, Python answers), at any speed of the machine."""
    desk.comment("new")
    code = _IMPORTING.format(name="msauto.cli").replace("os.kill(os.getpid(), signal.SIGINT)", "os.write(1, b'.')")
    command = [sys.executable, "-c", code + _AS_SCRIPT, "plan", "-i", "inventory.yml", "play.yml"]
    with subprocess.Popen(
        command, cwd=desk.folder, env=desk.surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == "."
        time.sleep(moment)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
    assert "Traceback" not in err
    assert process.returncode == 0 or (process.returncode == 130 and err.lstrip().startswith("Interrupted")), (out, err)


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
