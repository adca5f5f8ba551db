"""The number of modules in a folder of ``msauto/``, and the length of functions."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tests.lint.source import Finding, Source, package_sources

FOLDER_MODULES = 15
REGISTRIES = frozenset({"msauto/aspects", "msauto/cli/commands"})
"""Folders that hold a module for each member of a registry: they grow with msauto, and stay one idea."""
FUNCTION_LINES = 60


def check(sources: Sequence[Source]) -> Iterator[Finding]:
    yield from _folders(sources)
    for source in sources:
        if source.is_python:
            yield from _functions(source)


def _folders(sources: Sequence[Source]) -> Iterator[Finding]:
    paths = (PurePosixPath(source.path) for source in package_sources(sources))
    for folder, modules in Counter(
        path.parent.as_posix() for path in paths if path.stem != "__init__"
    ).items():
        if modules > FOLDER_MODULES and folder not in REGISTRIES:
            message = (
                f"the folder has {modules} modules, more than {FOLDER_MODULES} → form a sub-package"
            )
            yield Finding(folder, 1, "folder size", message)


def _functions(source: Source) -> Iterator[Finding]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                message = f"{node.name} has {length} lines, more than {FUNCTION_LINES} → split it"
                yield Finding(source.path, node.lineno, "function length", message)
