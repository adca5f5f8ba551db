"""Each extra and each group installs from wheels alone on each Python that msauto supports: no compiler is needed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DEPENDENCIES: list[str] = PROJECT["project"]["dependencies"]
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
GROUPS: dict[str, list[Any]] = PROJECT["dependency-groups"]

pytestmark = [pytest.mark.scale, pytest.mark.xdist_group("index")]


def requirements_of(group: str) -> list[str]:
    """Return what a group names, without msauto itself; what it includes is a group of its own here."""
    return [
        entry
        for entry in GROUPS[group]
        if isinstance(entry, str) and not entry.startswith("msauto[")
    ]


SETS = {"msauto": DEPENDENCIES, **EXTRAS, **{group: requirements_of(group) for group in GROUPS}}


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module", autouse=True)
def _index(tmp_path_factory: pytest.TempPathFactory) -> None:
    if (
        pip(
            "download", "--no-deps", "--dest", str(tmp_path_factory.mktemp("index")), "click"
        ).returncode
        != 0
    ):
        pytest.skip("pip reaches no package index")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("version", VERSIONS)
def test_wheels_are_enough(version: str, name: str, tmp_path: Path) -> None:
    only_wheels = ("--only-binary=:all:", "--python-version", version, "--target", str(tmp_path))
    done = pip("install", "--dry-run", "--ignore-installed", "--quiet", *only_wheels, *SETS[name])
    assert done.returncode == 0, done.stderr
