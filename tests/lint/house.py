"""The house rules that no linter knows: file length, function length, module names. Run by `make lint`."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 400
FUNCTION_LINES = 50
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}


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


def long_functions(where: Path, tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"{where}:{node.lineno}: {node.name} is {length} lines: nobody should have to scroll a function"


def main() -> int:
    found = list(complaints())
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
