"""The house rules that no linter knows: file and function length, module names, one place for each dialect key.

Run by `make lint`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 650
FUNCTION_LINES = 50
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}

DIALECT = "msauto/interface/dialect.py"
HANDED_ON = {"list_separator": "a text that is joined, split and shown", "rss_guid": "given to what writes playbooks"}
"""Keys that are handed on as they are: who compares them is told by name, not by their reading."""


def complaints() -> Iterator[str]:
    for path in sorted(p for room in ("msauto", "tests", "bench") for p in (ROOT / room).rglob("*.py")):
        where = path.relative_to(ROOT)
        text = path.read_text(encoding="utf-8")
        lines = text.count("\n")
        if lines > FILE_LINES:
            yield f"{where}: {lines} lines, the house allows {FILE_LINES}: give the second idea a file of its own"
        if path.stem in FORBIDDEN_NAMES:
            yield f"{where}: name the module after what it does"
        yield from long_functions(where, ast.parse(text))
    yield from dialect_keys()


def long_functions(where: Path, tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{where}:{node.lineno}: {node.name} is {length} lines: nobody should have to scroll a function"


def dialect_keys() -> Iterator[str]:
    """A rule of the field notes is looked at in one module; what two rooms ask is a question of ``Dialect`` itself."""
    for key, places in places_of_keys().items():
        if len(places) != 1 and key not in HANDED_ON:
            told = ", ".join(sorted(places)) or "nowhere"
            yield f"dialect key {key} is looked at in {told}: one place, or a question of Dialect in {DIALECT}"


def places_of_keys() -> dict[str, set[str]]:
    """Return the modules that look at each key of the dialect; where it is only shown in a text does not count."""
    (dialect,) = [
        node
        for node in ast.walk(ast.parse((ROOT / DIALECT).read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and node.name == "Dialect"
    ]
    keys = [
        node.target.id for node in dialect.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
    places: dict[str, set[str]] = {key: set() for key in keys}
    for each in _asked_of(dialect, "self"):
        places.get(each, set()).add(DIALECT)
    for path in (ROOT / "msauto").rglob("*.py"):
        where = path.relative_to(ROOT).as_posix()
        if not where.startswith("msauto/simulator/"):
            for each in _asked_of(ast.parse(path.read_text(encoding="utf-8")), "dialect"):
                places.get(each, set()).add(where)
    return places


def _asked_of(tree: ast.AST, owner: str) -> Iterator[str]:
    """Yield the attributes that are looked at of ``owner`` or of anything's attribute of that name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Attribute) and owner in {
            getattr(node.value, "id", None),
            getattr(node.value, "attr", None),
        }:
            yield node.attr
        yield from _asked_of(node, owner)


def main() -> int:
    found = list(complaints())
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
