"""``msauto batch check`` and ``msauto schedule print`` as commands: streams, exit codes, files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import Desk

BATCH = """
name: nightly
schedule: {at: "03:10", tz: Europe/Oslo}
window: {from: "23:00", to: "05:30"}
jobs: {all: {playbooks: play.yml, inventory: inventory.yml}}
"""


@pytest.fixture
def night(away: Desk) -> Desk:
    away.comment("ready")
    away.write("batch.yml", BATCH)
    return away


def test_a_good_batch(night: Desk) -> None:
    done = night.run("batch", "check", "batch.yml")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("No errors found. nightly starts 1 job next on ")
    assert night.run("batch", "check", "batch.yml", "--format", "json").json == {"problems": []}


def test_a_wrong_batch(night: Desk) -> None:
    night.write("batch.yml", BATCH.replace("play.yml", "plai.yml"))
    done = night.run("batch", "check", "batch.yml")
    assert (done.code, done.err) == (1, "")
    assert "batch.yml:5:25: 'plai.yml' not found" in done.out
    assert "→ did you mean 'play.yml'?" in done.out
    (problem,) = night.run("batch", "check", "batch.yml", "--format", "json").json["problems"]
    assert (problem["file"], problem["line"], problem["column"]) == ("batch.yml", 5, 25)
    night.write("batch.yml", "name: Nightly\n")
    done = night.run("batch", "check", "batch.yml")
    assert (done.code, done.err) == (1, "")
    assert "'Nightly' is not a valid batch name" in done.out
    missing = night.run("batch", "check", "btch.yml")
    assert missing.code == 1
    assert "did you mean 'batch.yml'?" in missing.out


@pytest.mark.parametrize("scheduler", ["systemd", "cron", "kubernetes", "windows"])
def test_print_and_write(night: Desk, scheduler: str) -> None:
    shown = night.run("schedule", "print", "batch.yml", "--for", scheduler)
    assert shown.code == 0
    assert "nightly" in shown.out
    assert "To install:" in shown.err
    written = night.run("schedule", "print", "batch.yml", "--for", scheduler, "--out", "units")
    assert written.code == 0
    paths = written.out.splitlines()
    assert len(paths) == (3 if scheduler == "systemd" else 1)
    assert all((night.folder / path).read_text(encoding="utf-8") in shown.out + "\n" for path in paths)


def test_the_ledger_is_that_of_the_batch_file(night: Desk) -> None:
    night.write("play/msauto.toml", 'state_dir = "../play.yml"\n')  # a file: it cannot be written
    night.write("play/play.yml", (night.folder / "play.yml").read_text(encoding="utf-8"))
    night.write("batch.yml", BATCH.replace("play.yml", "play/play.yml"))
    assert night.run("batch", "check", "batch.yml").code == 0
    assert "XDG_STATE_HOME=" in night.run("schedule", "print", "batch.yml", "--for", "cron").out
    night.write("msauto.toml", 'state_dir = "play.yml"\n')
    assert "the state directory 'play.yml' cannot be written" in night.run("batch", "check", "batch.yml").out


@pytest.mark.parametrize("scheduler", ["systemd", "cron", "kubernetes", "windows"])
def test_paths_that_a_scheduler_cannot_contain(night: Desk, scheduler: str) -> None:
    for folder, refused in (("a\nUser=root", True), ("a\x0b", True), ('a"b', scheduler == "systemd")):
        night.write(f"{folder}/batch.yml", BATCH)
        said = night.run("schedule", "print", f"{folder}/batch.yml", "--for", scheduler)
        assert said.code == refused
        if refused:
            assert said.out == ""
            said.one_error("which is not supported for", "rename the file or folder")
    night.write("batch.yml", BATCH + 'reports: {dir: "/a\\nUser=root"}\n')
    assert night.run("schedule", "print", "batch.yml", "--for", scheduler).code == 1


def test_wrong_folders(night: Desk) -> None:
    cron = ("schedule", "print", "batch.yml", "--for", "cron")
    night.run(*cron, "--out", "batch.yml/x").one_error("cannot write to batch.yml/x")
    assert night.run("schedule", "print", "batch.yml").code == 1


def test_the_printed_program_runs_in_the_environment_of_cron(night: Desk) -> None:
    line = night.run("schedule", "print", "batch.yml", "--for", "cron").out.splitlines()[-1]
    assert "batch run" in line
    command = line.split(" ", 5)[5].replace("\\%", "%").replace("batch run", "batch check")
    bare = ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/", "/bin/sh", "-c", command]
    done = subprocess.run(bare, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "No errors found." in done.stderr


def test_the_batch_of_a_new_repository(away: Desk) -> None:
    assert away.run("init", "repo").code == 0
    assert away.run("batch", "check", "repo/batch.yml").out == ""
    text = (away.folder / "repo" / "batch.yml").read_text(encoding="utf-8")
    shutil.copytree(away.folder / "repo", away.folder / "all")
    uncommented = [line.replace("# ", "", 1) if _is_example(line) else line for line in text.splitlines()]
    Path(away.folder / "all" / "batch.yml").write_text("\n".join(uncommented), encoding="utf-8")
    done = away.run("batch", "check", "all/batch.yml")
    errors = [line for line in done.out.splitlines() if "all/batch.yml:" in line and "warning" not in line]
    assert [line for line in errors if "node-exporter" not in line] == []


def _is_example(line: str) -> bool:
    """Return whether a line is a key that is commented out."""
    return line.lstrip().startswith("# ") and line.lstrip()[2:].split(":")[0].strip(" -{").isidentifier()
