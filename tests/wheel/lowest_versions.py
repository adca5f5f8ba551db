"""The lowest versions that ``pyproject.toml`` allows, as constraints of pip, for ``make lowest``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def constraints(text: str) -> Iterator[str]:
    """Yield ``NAME==VERSION`` for each dependency of msauto and of its extras."""
    project = tomllib.loads(text)["project"]
    for requirement in (
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ):
        yield re.sub(r"\[.*?\]", "", requirement).replace(">=", "==")


if __name__ == "__main__":
    print(*constraints(PROJECT.read_text(encoding="utf-8")), sep="\n")
