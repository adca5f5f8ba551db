"""The simulator as a process, and how msauto is called: as a module, before ``head``, in another locale."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from msauto.version import __version__
from tests.cli.command_line import MSAUTO, Desk

pytestmark = pytest.mark.scale

INV = ("-i", "inventory.yml")

# simulate ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_simulate_until_it_is_stopped(desk: Desk, number: int) -> None:
    with desk.start(
        "simulate", "--port", "0", "--seed", "empty", "--state", "house.json"
    ) as process:
        assert process.stderr is not None
        words = process.stderr.readline()
        assert words.startswith("A media server listens at http://127.0.0.1:")
        url = words.split()[5]
        with urllib.request.urlopen(f"{url}/storage/NEWS", timeout=5) as answer:
            assert b"StoredTree" in answer.read()
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert process.returncode in {0, 130}
    assert "Traceback" not in err
    assert out == ""


# How it is called ----------------------------------------------------------------------------------------------------


def test_python_m_msauto_and_the_script(desk: Desk) -> None:
    assert desk.spawn("--version").out == f"msauto, version {__version__}\n"
    script = Path(sys.executable).parent / "msauto"
    if script.exists():
        sourced = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert sourced.stdout == f"msauto, version {__version__}\n"


def test_head_is_content_with_less(desk: Desk) -> None:
    command = f"{' '.join(MSAUTO)} show assets -i inventory.yml | head -1"
    sourced = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=desk.folder,
        env=desk.surroundings(),
        capture_output=True,
        text=True,
    )
    assert sourced.stderr == ""
    assert sourced.stdout.count("\n") == 1
    assert sourced.returncode == 0


def test_a_locale_that_knows_no_cyrillic(desk: Desk) -> None:
    desk.environment.update(
        LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii"
    )
    sourced = desk.spawn("show", "assets", "A\\/B Tests", *INV)
    assert sourced.code == 0, sourced
    assert "\\u041d" in sourced.out
    assert "Traceback" not in sourced.err


def test_no_colour_goes_into_a_pipe(desk: Desk) -> None:
    desk.comment("new")
    desk.environment["TERM"] = "xterm-256color"
    assert "\x1b" not in desk.spawn("plan", *INV, "play.yml").out
    assert os.environ.get("FORCE_COLOR") is None
