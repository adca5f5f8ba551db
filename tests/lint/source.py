"""The checked files and the findings."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Source:
    """A file: its path below the root of the repository, with slashes, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def module(self) -> str:
        """The dotted name of the module; a package for its ``__init__.py``."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    def is_in(self, *folders: str) -> bool:
        """Return whether the file is Python in one of the folders, or below it."""
        return self.is_python and self.path.startswith(tuple(f"{folder}/" for folder in folders))


def read_sources(root: Path = ROOT) -> list[Source]:
    """Read the Python files of the repository and its documentation, without the changelog."""
    paths = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    paths.remove(root / "CHANGELOG.md")
    paths += [
        path for folder in ("msauto", "tests", "bench") for path in (root / folder).rglob("*.py")
    ]
    return [
        Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(paths)
    ]


def package_sources(sources: Iterable[Source]) -> list[Source]:
    """Return the modules of ``msauto/``."""
    return [source for source in sources if source.is_in("msauto")]
