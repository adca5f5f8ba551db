"""The wheel in an environment of its own: it has the types, the commands and the fixture that strangers need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import msauto
from tests.docs.pages import ROOT

PROGRAM = Path(__file__).with_name("each_public_function.py")
pytestmark = pytest.mark.scale


def run(*command: str | Path, folder: Path) -> str:
    """Run a command in a folder without the checkout; return what it prints, or fail with that."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment = {
        **kept,
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    done = subprocess.run([*command], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of ``make release``; or else one that is built from the sdist, as there."""
    given = os.environ.get("MSAUTO_WHEEL")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, folder=folder)
    return next(folder.glob("*.whl"))


def installed(wheel: Path, interpreter: str | Path, folder: Path) -> Path:
    """Return the Python of a new environment that has only the wheel and what it depends on."""
    run(interpreter, "-m", "venv", folder / "venv", folder=folder)
    found = folder / "venv/bin/python"
    run(found, "-m", "pip", "install", "-q", wheel, folder=folder)
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(wheel, sys.executable, tmp_path_factory.mktemp("wheel"))


def test_a_program_that_has_only_the_wheel_runs(python: Path, tmp_path: Path) -> None:
    assert run(python, PROGRAM, folder=tmp_path).endswith("all used\n")
    assert "msauto" in run(python.with_name("msauto"), "--version", folder=tmp_path)


@pytest.mark.parametrize(
    "version",
    [(3, 11), (3, 12), (3, 13), (3, 14), (3, 15)],
    ids=lambda version: "{}.{}".format(*version),
)
def test_it_runs_on_each_other_version_of_python(
    wheel: Path, version: tuple[int, int], tmp_path: Path
) -> None:
    folders = [*map(str, Path.home().glob(".pyenv/versions/*/bin")), os.environ["PATH"]]
    interpreter = shutil.which("python{}.{}".format(*version), path=os.pathsep.join(folders))
    if interpreter is None or version == sys.version_info[:2]:
        pytest.skip("this version of Python is not installed, or runs the other tests")
    assert run(installed(wheel, interpreter, tmp_path), PROGRAM, folder=tmp_path).endswith(
        "all used\n"
    )


def test_mypy_reads_its_types(python: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.read_text())
    run(
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        python,
        "program.py",
        folder=tmp_path,
    )


def test_pyright_reads_its_types(python: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM.read_text())
    run(sys.executable, "-m", "pyright", "--pythonpath", python, "program.py", folder=tmp_path)


def test_the_program_uses_every_public_function_and_method() -> None:
    program = PROGRAM.read_text()
    functions = [
        name for name in msauto.__all__ if callable(getattr(msauto, name)) and name.islower()
    ]
    methods = [name for name in vars(msauto.MediaServer) if not name.startswith("_")]
    missing = [name for name in functions if f"msauto.{name}(" not in program]
    missing += [name for name in methods if f"server.{name}(" not in program]
    assert missing == ["close", "spec"]
