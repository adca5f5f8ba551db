"""A large server: the memory that `msauto plan` and other commands take for 100,000 clips (never the time)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator
from msauto.plugins.simulator.embedded.seed import bulk_state

pytestmark = [pytest.mark.scale, pytest.mark.xdist_group("large-server")]

CLIPS = 100_000
ENTRY = 400  # bytes that may be held of each entry of a listing
RUN = """
import resource, sys
from msauto.cli.main import main
code = main(sys.argv[1:])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak // (1024 if sys.platform == "darwin" else 1), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with Simulator(bulk_state(CLIPS)) as sim:
        yield sim.url


def mebibytes(folder: Path, *arguments: str) -> tuple[str, float]:
    """Run a command in a process of its own; return what it printed, and the most memory that it ever held."""
    command = [sys.executable, "-c", RUN, *arguments, "--state-dir", str(folder / "state")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, int(done.stderr.split()[-1]) / 1024


def book(folder: Path, task: str) -> str:
    path = folder / "book.yml"
    path.write_text(f"- hosts: all\n  database: NEWS\n  tasks:\n    - asset: {task}\n")
    return str(path)


@pytest.fixture(scope="module")
def small(server: str, tmp_path_factory: pytest.TempPathFactory) -> float:
    """What a plan holds that needs no listing at all."""
    folder = tmp_path_factory.mktemp("small")
    task = "{title: Bulk 000001, fields: {comment: Checked}}"
    return mebibytes(folder, "plan", book(folder, task), "--server", server)[1]


FEW = """{select: {folder: Bulk, recursive: true, where: 'asset.title is match("Bulk 0000")'}, fields: {comment: C}}"""
LINKED = "{select: {recursive: true, where: 'asset.frames == 250 and asset.links | length == 0'}, fields: {comment: C}}"
UNLINKED = "{title: Bulk 000001, links: [], exactly: [links]}"


@pytest.mark.parametrize("task", [FEW, LINKED, UNLINKED], ids=["few", "linked", "unlinked"])
def test_a_plan_holds_little_of_each_entry(
    tmp_path: Path, server: str, small: float, task: str
) -> None:
    printed, peak = mebibytes(tmp_path, "plan", book(tmp_path, task), "--server", server)
    assert "Plan:" in printed or "No changes" in printed
    transient = 250  # what tells doubles apart while a select is made
    assert peak - small < CLIPS * (ENTRY + transient) / 2**20


def test_a_table_of_all_holds_one_form_of_it(tmp_path: Path, server: str, small: float) -> None:
    printed, peak = mebibytes(
        tmp_path, "show", "assets", "Bulk", "--recursive", "-d", "NEWS", "--server", server
    )
    assert printed.count("\n") == CLIPS + 1
    assert peak - small < CLIPS * 2000 / 2**20


def test_an_export_of_a_folder_holds_little_of_all_else(
    tmp_path: Path, server: str, small: float
) -> None:
    arguments = ("--folder", "Bulk/000", "--database", "NEWS", "--server", server)
    printed, peak = mebibytes(tmp_path, "export", *arguments)
    assert printed.count("title: Bulk") == 1000
    assert peak - small < CLIPS * (ENTRY + 250) / 2**20 + 20
