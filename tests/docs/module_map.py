"""Writes the list of modules into CONTRIBUTING.md, from their first lines: ``python -m tests.docs.module_map``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import ROOT

PAGE = ROOT / "CONTRIBUTING.md"
HEADING = "## Where does my change go?\n"
NEXT = "\n## States of a target\n"
_FIRST_LINE = re.compile(r'^r?"""(.*?)(?:"""|$)', re.MULTILINE)
INTRO = """
The first line of each module describes it. `python -m tests.docs.module_map` makes this list from those lines, so a
change begins with a search in it.
"""


def first_line(path: Path) -> str:
    """Return the first line of the docstring of a module."""
    found = _FIRST_LINE.search(path.read_text(encoding="utf-8"))
    return found[1] if found else ""


def module_map() -> str:
    """Return the list: a heading for each folder, and a line for each of its modules."""
    return INTRO + "\n".join(_lines())


def _lines() -> Iterator[str]:
    for folder in sorted({path.parent for path in (ROOT / "msauto").rglob("*.py")}):
        modules = sorted(path for path in folder.glob("*.py") if path.name != "__init__.py")
        if not modules or "skeleton" in folder.parts:
            continue
        yield f"\n**`{folder.relative_to(ROOT)}/`**\n"
        for path in modules:
            yield f"- `{path.name}`: {first_line(path)}"


def with_map(text: str) -> str:
    """Return the page with the list as it is now."""
    before, _, rest = text.partition(HEADING)
    after = rest.partition(NEXT)[2]
    return f"{before}{HEADING}{module_map()}\n{NEXT}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_map(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
