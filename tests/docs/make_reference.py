"""Writes the pages of the reference that are made from the code: ``python -m tests.docs.make_reference``."""

from __future__ import annotations

from dataclasses import fields
from typing import get_args, get_type_hints

from msauto.interface.dialect import Dialect
from msauto.playbook.reference.doc_pages import PAGES
from tests.docs.pages import ROOT

DIALECT = """# Dialect

How a server answers where the interface is silent: the `dialect:` of its
[`server:` block](inventory.md#the-server-block). The first value is the default.
[When to set which](../how-to/another-server-another-dialect.md).

| key | values | means |
|---|---|---|
{rows}

The embedded server has switches of its own (`msauto simulate --dialect`). Several have the same name as a key. They set
what the server *does*; a key sets what msauto takes it to do. `msauto simulate --dialect '?=?'` lists them.
"""


def dialect_page() -> str:
    """Return the reference page of the dialect, from its registry."""
    hints = get_type_hints(Dialect)
    rows = []
    for key in fields(Dialect):
        choices = [f"`{value}`" for value in get_args(hints[key.name])] or [f"a text; `{key.default}`"]
        rows.append(f"| `{key.name}` | {', '.join(choices)} | {key.metadata['description']} |")
    return DIALECT.format(rows="\n".join(rows))


if __name__ == "__main__":
    for name in PAGES:
        (ROOT / "docs" / "reference" / f"{name}.md").write_text(PAGES[name](), encoding="utf-8")
    (ROOT / "docs" / "reference" / "dialect.md").write_text(dialect_page(), encoding="utf-8")
