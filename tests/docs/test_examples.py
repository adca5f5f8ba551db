"""The examples in docs/examples run as a reader would run them."""

from __future__ import annotations

import importlib.util
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

import msauto
from msauto.plugins.simulator.embedded import Simulator
from tests.docs.pages import ROOT

EXAMPLES = ROOT / "docs/examples"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def studio() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


def python(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder of the examples."""
    shared = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(
        [sys.executable, *words], cwd=EXAMPLES, env=shared, capture_output=True, text=True
    )


def example(name: str) -> ModuleType:
    """Return an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.scale
def test_the_tests_of_a_playbook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the fixture is an entry point, too
    flags = (
        "-p",
        "msauto.plugins.simulator.pytest_fixture",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--strict-markers",
    )
    done = python("-m", "pytest", "-q", *flags, "test_news.py")
    assert "3 passed" in done.stdout, done.stdout


@pytest.mark.scale
def test_the_airflow_task(studio: Simulator, tmp_path: Path) -> None:
    task = example("airflow_task")
    inventory = tmp_path / "inventory.yml"
    inventory.write_text(
        f'all: {{hosts: {{studio-a: {{server: {{url: "{studio.url}"}}, database: NEWS}}}}}}\n'
    )
    assert task.prepare_news(EXAMPLES / "news.yml", inventory) == {"changed": 1}
    assert task.prepare_news(EXAMPLES / "news.yml", inventory) == {"unchanged": 1}
    deletion = tmp_path / "deletion.yml"
    deletion.write_text("- {hosts: all, tasks: [{asset: {title: EP010, state: absent}}]}\n")
    with pytest.raises(msauto.RefusedError):
        task.prepare_news(deletion, inventory)
    studio.faults.add("status:500@SETFIELD")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("- {hosts: all, tasks: [{asset: {title: Long Film, fields: {comment: x}}}]}\n")
    with pytest.raises(RuntimeError, match="Long Film"):
        task.prepare_news(wrong, inventory)
    studio.stop()
    with pytest.raises(msauto.PlanningError, match="studio-a"):
        task.prepare_news(EXAMPLES / "news.yml", inventory)


@pytest.mark.scale
def test_the_plan_from_a_database_query(studio: Simulator, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "schedule.sqlite")) as connection:
        connection.execute("CREATE TABLE schedule (title, slot, host, ready)")
        rows = [
            ("EP002", "21:00", "Kim", 1),
            ("EP001", "20:00", "Mo", 1),
            ("EP003", "22:00", "Lou", 0),
        ]
        connection.executemany("INSERT INTO schedule VALUES (?, ?, ?, ?)", rows)
        connection.commit()
    done = python("plan_from_database.py", str(tmp_path / "schedule.sqlite"), studio.url)
    assert done.returncode == 0, done.stderr
    assert "EP001" in done.stdout
    assert '"21:00"' in done.stdout
    assert "EP003" not in done.stdout
    assert not studio.writes()


@pytest.mark.scale
def test_the_notebook(studio: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("MEDIA_SERVER", studio.url)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(EXAMPLES / "look_at_a_plan.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=60).execute()
    shown = []
    for cell in notebook.cells:
        shown += [output.data for output in cell.get("outputs", [])]
    html, text = "text/html", "text/plain"
    assert list(map(sorted, shown)) == [[html, text], [html, text], [text]]
    assert "Evening News" in shown[0][html]
    assert shown[0][text].startswith("<Plan: 3 changes")
