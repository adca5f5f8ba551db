"""What comments and docstrings cite is a heading of the documentation: ``interface, «Commands»``.

A citation is the name of a page (its file without ``.md``), a comma, and a heading in angle quotes, exactly as the page
has it. More headings of the page may follow after a comma or ``and``. Comments and docstrings use angle quotes only for
that: titles of other sources are in straight quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from tests.lint.prose import comments, docstrings, without_examples
from tests.lint.source import Finding, Source

_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CITATION = re.compile(r"(?P<page>[\w-]+),\s+«[^»]*»(?:(?:,|\s+and)\s+«[^»]*»)*")
_QUOTED = re.compile(r"«(?P<heading>[^»]*)»")


def check(sources: Sequence[Source]) -> Iterator[Finding]:
    pages = headings(sources)
    for source in sources:
        for line, text in (*docstrings(source), *comments(source)) if source.is_python else ():
            cited = {
                citation.start() + quoted.start(): citation["page"]
                for citation in _CITATION.finditer(text)
                for quoted in _QUOTED.finditer(citation[0])
            }
            for quoted in _QUOTED.finditer(text):
                heading = " ".join(quoted["heading"].split())
                message = _problem(pages, cited.get(quoted.start()), heading)
                if message:
                    yield Finding(
                        source.path, line + text.count("\n", 0, quoted.start()), "citation", message
                    )


def headings(sources: Sequence[Source]) -> dict[str, set[str]]:
    """Return the headings of each page by its name: that of its file, without the ending."""
    pages = [source for source in sources if not source.is_python]
    return {
        PurePosixPath(page.path).stem: set(_HEADING.findall(without_examples(page.text)))
        for page in pages
    }


def _problem(pages: Mapping[str, set[str]], page: str | None, heading: str) -> str | None:
    if page is None:
        return f"«{heading}» names no page → write interface, «Commands»; or use straight quotes if it is no heading"
    if page not in pages:
        return (
            f"no page has the name {page!r} → cite a page of docs/, such as interface, «Commands»"
        )
    if heading not in pages[page]:
        return f"the page {page} has no heading «{heading}» → use the name of one of its headings"
    return None
