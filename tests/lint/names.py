"""A class name occurs once in ``msauto/``; a module is named after what it does; nothing installs msauto by its name.

A leading underscore makes no other name: ``_Run`` and ``Run`` are duplicates.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from tests.lint.source import Finding, Source, package_sources

BY_NAME = re.compile(r"pip3? install\b[^`]*?[\s'\"]msauto(?![\w/.-])")
"""On the public package index, this name is another project."""
FORBIDDEN = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}


def check(sources: Sequence[Source]) -> Iterator[Finding]:
    yield from _duplicate_classes(package_sources(sources))
    for source in sources:
        path = PurePosixPath(source.path)
        for name in FORBIDDEN & {path.stem, *path.parts[:-1]} if source.is_python else ():
            yield Finding(
                source.path, 1, "module name", f"{name!r} does not say what the module does"
            )
        for number, line in enumerate(source.text.splitlines(), 1):
            if BY_NAME.search(line):
                yield Finding(
                    source.path, number, "package name", "name the library, or the wheel of msauto"
                )


def _duplicate_classes(sources: Sequence[Source]) -> Iterator[Finding]:
    places: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append((source.path, node.lineno))
    for name, found in places.items():
        for path, line in found:
            others = ", ".join(
                f"{other}:{at}" for other, at in found if (other, at) != (path, line)
            )
            if others:
                yield Finding(
                    path, line, "class name", f"class name {name} is also used in {others}"
                )
