"""Each path that a page, a comment or a docstring names is in the tree.

A path starts with a folder of the repository, such as ``msauto/``. ``*`` and a ``<name>`` stand for any text.
``python -m`` names a module. A map names most modules by their file names alone: such a file is below a folder that its
line names before, or else below ``msauto/``. What a map names as ``name`` in a file occurs there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import PurePosixPath

from tests.lint.prose import comments, docstrings, without_examples
from tests.lint.source import ROOT, Finding, Source

FOLDERS = ("msauto", "tests", "bench", "docs", ".ci", ".github")
MAPS = frozenset({"CONTRIBUTING.md"})
"""The page that describes which module does what."""

_PATH = re.compile(
    rf"(?<![\w./~<>{{}}-])(?:{'|'.join(map(re.escape, FOLDERS))})/(?:[\w./*<>-]*[\w/>])?"
)
_PART = re.compile(rf"{_PATH.pattern}|(?<=`)(?:\w+/|[\w./*<>]+\.(?:py|j2|js|css))(?=`)")
_NAME_IN = re.compile(r"`(\w+)` in `(msauto/[\w/]+\.py)`")
_MODULE = re.compile(r"python -m ((?:msauto|tests|bench)(?:\.\w+)*)")


def check(sources: Sequence[Source]) -> Iterator[Finding]:
    for source in sources:
        is_map = source.path in MAPS
        for number, line in _lines(source):
            names = (*_missing_modules(line), *_missing_paths(line, _PART if is_map else _PATH))
            for name in (*names, *_missing_names(line)) if is_map else names:
                yield Finding(
                    source.path, number, "path", f"{name} is not in the repository → name what is"
                )


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines of comments and docstrings, or those of a page outside of its examples."""
    texts = (
        [*docstrings(source), *comments(source)]
        if source.is_python
        else [(1, without_examples(source.text))]
    )
    for start, text in texts:
        yield from enumerate(text.split("\n"), start)


def _missing_modules(line: str) -> Iterator[str]:
    for name in _MODULE.findall(line):
        path = name.replace(".", "/")
        if not _matches([f"{path}.py", f"{path}/__main__.py"]):
            yield name


def _missing_paths(line: str, form: re.Pattern[str]) -> Iterator[str]:
    before: list[PurePosixPath] = []
    for name in form.findall(line):
        pattern = re.sub(r"<[^>]*>", "*", name).removesuffix("/")
        inside = [
            f"{folder}/{below}{pattern}"
            for folder in before or [PurePosixPath("msauto")]
            for below in ("", "*/")
        ]
        found = _matches([pattern] if _PATH.fullmatch(name) else inside)
        if found is None:
            yield name
        else:
            before.append(found.parent if found.suffix else found)


def _missing_names(line: str) -> Iterator[str]:
    for name, path in _NAME_IN.findall(line):
        found = _matches([path])
        if found is None or name not in (ROOT / found).read_text(encoding="utf-8"):
            yield f"{name} of {path}"


def _matches(patterns: Iterable[str]) -> PurePosixPath | None:
    """Return the first file or folder of the repository that has the form of one of the patterns."""
    return next(
        (path for pattern in patterns for path in _tree() if fnmatchcase(str(path), pattern)), None
    )


@cache
def _tree() -> list[PurePosixPath]:
    files = [
        path.relative_to(ROOT)
        for name in FOLDERS
        for path in (ROOT / name).rglob("*")
        if path.is_file()
    ]
    kept = [PurePosixPath(path) for path in files if "__pycache__" not in path.parts]
    return sorted({*kept, *(parent for path in kept for parent in path.parents)})
