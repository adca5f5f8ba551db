"""How long the way of a change is, and how many Python calls an asset costs: `python -m bench.way`.

The way: one field and one marker from a playbook to *verified*: functions, files and packages of msauto, calls, and how
often it goes from one package to another. The embedded server is not counted. The calls: of everything in Python,
between a small and a large number of assets. Both are counts, which a busy machine does not change.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, Final

import msauto
from bench.sides import SELECT
from msauto.cli.main import main as run_command
from msauto.simulator import Simulator

ROOT: Final = str(Path(msauto.__file__).parent) + os.sep
TASKS: Final[dict[str, dict[str, Any]]] = {
    "field": {"title": "Evening News raw", "fields": {"comment": "Ready"}},
    "marker": {
        "title": "Evening News raw",
        "markers": [{"at": 10, "track": "Cue Point", "title": "Ad"}],
    },
}
LOOP: Final = """- hosts: all
  database: NEWS
  tasks:
    - asset:
        title: "{{ item.title }}"
        fields: {comment: "{{ item.comment }}"}
        markers:
          - {at: "{{ item.ad }}", track: Cue Point, title: Ad break}
          - {at: "00:00:08:00", track: General, title: "Out {{ item.title }}"}
        segments: [{number: 1, start: 0, duration: 100, title: Part 1}]
      loop: "{{ lookup('csv', 'rows.csv') }}"
"""
CASES: Final = ("select", "loop", "apply", "undo")
SIZES: Final = (60, 160)


class Way:
    """Notes each function of msauto that is called, but for the embedded server and parts of expressions."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call, as a profile function."""
        code = frame.f_code
        is_function = not code.co_qualname.endswith(">")
        is_ours = code.co_filename.startswith(ROOT) and "simulator" not in code.co_filename
        if event == "call" and is_function and is_ours:
            self.steps.append((code.co_filename.removeprefix(ROOT), code.co_qualname))

    def counts(self) -> dict[str, int]:
        """Return how long the way is."""
        files = [file for file, _ in self.steps]
        packages = [Path(file).parts[0] for file in files]
        changes = 0
        for package, following in pairwise(packages):
            changes += package != following
        return {
            "functions": len(set(self.steps)),
            "files": len(set(files)),
            "calls": len(self.steps),
            "packages": len(set(packages)),
            "changes of package": changes,
        }


def follow(task: str, folder: str) -> dict[str, int]:
    """Return the way of one task."""
    with Simulator() as server:
        inventory = {"all": {"hosts": {"a": {"server": {"url": server.url}}}}}

        def run(asset: dict[str, Any]) -> bool:
            plays = [
                {"hosts": "all", "database": "NEWS", "tasks": [{"name": "one", "asset": asset}]}
            ]
            loaded = msauto.load(plays, inventory=inventory, state_dir=folder)
            return msauto.apply(msauto.plan(loaded)).ok

        run(
            {"title": "Long Film", "fields": {"comment": "warm"}}
        )  # what is imported and cached is not counted
        way = Way()
        threading.setprofile(way)
        sys.setprofile(way)
        done = run(TASKS[task])
        sys.setprofile(None)
        threading.setprofile(None)
    if not done:
        raise SystemExit(f"the {task} was not applied")
    return way.counts()


def calls(arguments: list[str]) -> int:
    """Return how many Python functions a command calls."""
    number = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal number
        number += event == "call"

    threading.setprofile(count)
    sys.setprofile(count)
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        run_command(arguments)
    sys.setprofile(None)
    threading.setprofile(None)
    return number


@contextlib.contextmanager
def bulk_server(size: int) -> Iterator[str]:
    """Run an embedded server with so many assets in a process of its own; its URL."""
    command = [sys.executable, "-m", "msauto", "simulate", "--port", "0", "--seed", f"bulk:{size}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        words = process.stderr.readline().split()
        try:
            yield next(word for word in words if word.startswith("http"))
        finally:
            process.terminate()


def apart(folder: str, *arguments: str) -> Any:
    """Run this module again, with a folder as its home; return what it prints."""
    home = dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), folder)
    paths = {"PYTHONPATH": str(Path.cwd()), "PYTHONHASHSEED": "0", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "bench.way", *arguments],
        cwd=folder,
        env={**os.environ, **home, **paths},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout)


def calls_an_asset(case: str) -> float:
    """Return the Python calls of one more asset."""
    totals = []
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder, bulk_server(size) as url:
            rows = ["title,comment,ad\n"]
            for number in range(size):
                rows.append(f"Bulk {number:06d},Checked,00:00:04:00\n")
            (Path(folder) / "rows.csv").write_text("".join(rows), encoding="utf-8")
            (Path(folder) / "select.yml").write_text(SELECT, encoding="utf-8")
            (Path(folder) / "loop.yml").write_text(LOOP, encoding="utf-8")
            commands = {
                "select": ["plan", "select.yml", "--server", url],
                "loop": ["plan", "loop.yml", "--server", url],
                "apply": ["apply", "select.yml", "--server", url, "-y"],
                "undo": ["undo", "last", "-y", "--server", url, "--allow-remove", str(size)],
            }
            if case == "undo":
                apart(folder, "calls", *commands["apply"])
            totals.append(int(apart(folder, "calls", *commands[case])))
    return (totals[1] - totals[0]) / (SIZES[1] - SIZES[0])


def measure() -> None:
    """Print all counts."""
    for task in TASKS:
        with tempfile.TemporaryDirectory() as folder:
            print(f"way of one {task}: {apart(folder, 'follow', task, folder)}", flush=True)
    for case in CASES:
        print(f"Python calls an asset, {case}: {calls_an_asset(case):.0f}", flush=True)


def main(arguments: list[str]) -> None:
    """Measure everything, or in a process of its own one part."""
    if not arguments:
        measure()
    elif arguments[0] == "follow":
        print(json.dumps(follow(arguments[1], arguments[2])))
    else:
        print(json.dumps(calls(arguments[1:])))


if __name__ == "__main__":
    main(sys.argv[1:])
