"""Sphinx configuration of the documentation: ``make docs``."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

_ROOT = Path(__file__).resolve().parents[1]

project = "msauto"
author = "The msauto founders"
version = release = runpy.run_path(str(_ROOT / "msauto" / "version.py"))["__version__"]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
autodoc_default_options = {"members": True, "inherited-members": "Struct, Exception, str"}
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_type_aliases = {name: name for name in ("Event", "Plan", "Result")}
python_maximum_signature_line_length = 100
nitpick_ignore_regex = [
    ("py:.*", ".*")
]  # types of other packages and of our own modules have no page
myst_heading_anchors = 4

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"msauto {release}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}

man_pages = [
    ("reference/commands", "msauto", "automate the media servers of broadcasters", author, 1),
    ("reference/playbook", "msauto-playbook", "the language of msauto playbooks", author, 5),
]
man_show_urls = False

_NAVIGATION = """

```{toctree}
:hidden:

tutorial
```

```{toctree}
:hidden:
:caption: How to

HOW_TO
```

```{toctree}
:hidden:
:glob:
:caption: Reference

reference/*
dependencies
```

```{toctree}
:hidden:
:glob:
:caption: Explanation

explanation/*
```
"""


def _add_navigation(_: Sphinx, page: str, source: list[str]) -> None:
    """Add the navigation to the start page here, so that GitHub shows the page without directives.

    The how-tos are in the order of the table of the start page; one that is not in it comes last.
    """
    if page == "index":
        listed = re.findall(r"\]\((how-to/[\w-]+)\.md\) \|$", source[0], re.MULTILINE)
        pages = sorted(f"how-to/{path.stem}" for path in (_ROOT / "docs" / "how-to").glob("*.md"))
        source[0] += _NAVIGATION.replace("HOW_TO", "\n".join(dict.fromkeys((*listed, *pages))))


_EXCERPTS = """\
// What the search shows of a page: a browser reads no other files where the pages are files.
const pages = %s;
const fetchPage = window.fetch;
window.fetch = (url, ...more) => {
  const text = pages[Object.keys(pages).find((page) => String(url).endsWith(`${page}.html`))];
  return text === undefined ? fetchPage(url, ...more) : Promise.resolve(new Response(`<div role="main">${text}</div>`));
};
"""
_texts: dict[str, str] = {}


def _keep_text(
    app: Sphinx, page: str, _: str, context: dict[str, Any], __: nodes.document | None
) -> None:
    """Keep the text of each page by its sections; only the page of the search loads it."""
    if page == "search":
        app.add_js_file("excerpts.js")
    elif "body" in context:
        _texts[page] = re.sub(r"<(?!/?section\b)[^>]*>|¶", "", context["body"])


def _write_excerpts(app: Sphinx, error: Exception | None) -> None:
    if error is None and _texts:
        path = Path(app.outdir, "_static", "excerpts.js")
        path.write_text(_EXCERPTS % json.dumps(_texts, ensure_ascii=False), encoding="utf-8")


class ManPageLayout(SphinxPostTransform):
    """Lay a page out as a man page: a description first, lists in place of tables, no links to other pages."""

    default_priority = 900
    builders = ("man",)

    def run(self) -> None:
        """Change the document of one man page."""
        for table in list(self.document.findall(nodes.table)):
            head, *rows = ([*row.findall(nodes.entry)] for row in table.findall(nodes.row))
            table.replace_self(nodes.definition_list("", *(_definition(head, row) for row in rows)))
        for link in list(self.document.findall(nodes.reference)):
            if "://" not in link.get("refuri", ""):
                link.replace_self(link.children)
        page = next(self.document.findall(nodes.section))
        first = next(
            index for index, each in enumerate(page.children) if isinstance(each, nodes.section)
        )
        page.children[1:first] = [
            nodes.section("", nodes.title("", "Description"), *page.children[1:first])
        ]


def _definition(head: list[nodes.entry], row: list[nodes.entry]) -> nodes.definition_list_item:
    """Return a row of a table as its first cell, and below it the others; from the third on with their heading."""
    key, meaning, *others = row
    more = [
        nodes.paragraph("", "", nodes.emphasis("", name.astext()), nodes.Text(": "), *_inline(cell))
        for name, cell in zip(head[2:], others, strict=True)
        if cell.astext()
    ]
    term, definition = (
        nodes.term("", "", *_inline(key)),
        nodes.definition("", *meaning.children, *more),
    )
    return nodes.definition_list_item("", term, definition)


def _inline(cell: nodes.entry) -> list[nodes.Node]:
    return [part for paragraph in cell.children for part in paragraph.children]


def _name_aliases(*details: str | None) -> tuple[str | None, ...]:
    """Show an alias of a type by its name; autodoc shows what stands for it."""
    return tuple(
        each and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", each) for each in details[-2:]
    )


def _list_attributes(
    _: Sphinx, _kind: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Show the attributes that a docstring describes as a list, not as one paragraph."""
    if "Attributes:" in lines:
        start = lines.index("Attributes:") + 1
        items = "\n".join(lines[start:])
        items = re.sub(r"^    (\w+): ", r"- ``\1``: ", items, flags=re.MULTILINE)
        items = re.sub(r"^ {8}", "  ", items, flags=re.MULTILINE)
        lines[start:] = ["", *items.split("\n")]


def setup(app: Sphinx) -> None:
    """Register what Sphinx calls while it reads the pages."""
    app.add_lexer("csv", TextLexer)
    app.add_post_transform(ManPageLayout)
    app.connect("source-read", _add_navigation)
    app.connect("html-page-context", _keep_text)
    app.connect("build-finished", _write_excerpts)
    app.connect("autodoc-process-signature", _name_aliases)
    app.connect("autodoc-process-docstring", _list_attributes)
