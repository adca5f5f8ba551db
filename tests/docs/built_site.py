"""Checks what ``make docs`` built: ``python -m tests.docs.built_site build``.

The site works without a network and from files: nothing that a page needs comes from elsewhere.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

NEEDED = (
    "html/index.html",
    "html/search.html",
    "html/searchindex.js",
    "html/_static/excerpts.js",
    "man/msauto.1",
    "man/msauto-playbook.5",
)
"""What ``make docs`` builds, among others."""
_LOADED = (
    re.compile(
        r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc\s*=\s*[\"']?((?:https?:)?//[^\"'\s>]+)"
    ),
    re.compile(
        r"<link\b(?=[^>]*\brel=\"?(?:stylesheet|preload|icon|preconnect))[^>]*?\bhref=\"?((?:https?:)?//[^\"'\s>]+)"
    ),
    re.compile(r"(?:url\(\s*|@import\s+)[\"']?((?:https?:)?//[^\"')\s]+)"),
)


def outside_requests(text: str) -> Iterator[str]:
    """Yield the addresses that a browser loads for HTML or CSS, without a click."""
    for pattern in _LOADED:
        yield from pattern.findall(text)


def problems(build: Path) -> Iterator[str]:
    """Yield what is wrong with the built documentation."""
    yield from (f"{name} is missing" for name in NEEDED if not (build / name).is_file())
    for path in sorted(build.glob("html/**/*")):
        if path.suffix in {".html", ".css", ".svg"}:
            text = path.read_text(encoding="utf-8")
            for address in outside_requests(text):
                yield f"{path.relative_to(build)}: loads {address}"
            if "<dt>Attributes:" in text:
                yield f"{path.relative_to(build)}: attributes in one paragraph, not in a list"


if __name__ == "__main__":
    found = list(problems(Path(sys.argv[1])))
    print(
        "\n".join(found)
        or f"The documentation is in {sys.argv[1]}/html, the man pages are in {sys.argv[1]}/man."
    )
    sys.exit(bool(found))
