"""Writes the pages of the reference that are made from the code: ``python -m tests.docs.make_reference``."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args, get_type_hints

from msauto.batch.batch_result import batch_result_schema
from msauto.interface.dialect import Dialect
from msauto.playbook.reference.doc_pages import PAGES
from tests.docs.error_index import error_index_page
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


BATCH_RESULT = """# Batch as JSON

The summary of a batch: `msauto batch run --format json`, and `msauto report` and `msauto history` of a batch. Times are
in ISO 8601, UTC. Its JSON Schema: `msauto schema batch-result`.
"""
PARTS = {"JobResult": "Jobs", "DifferingTarget": "Drift", "SentMessage": "Deliveries"}


def batch_result_page() -> str:
    """Return the reference page of the summary of a batch, from its schema."""
    schema = batch_result_schema()
    parts = [("Keys", schema), *((PARTS[name], part) for name, part in schema["$defs"].items())]
    return BATCH_RESULT + "".join(f"\n## {heading}\n\n{_keys(part)}" for heading, part in parts)


def _keys(part: dict[str, Any]) -> str:
    rows = [f"| `{name}` | {_description(key)} |" for name, key in part["properties"].items()]
    return "\n".join(["| key | content |", "|---|---|", *rows]) + "\n"


def _description(key: dict[str, Any]) -> str:
    choices = [f"`{each}`" for each in key.get("enum", [])]
    return ": ".join(filter(None, (key.get("description", ""), ", ".join(choices))))


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
    (ROOT / "docs" / "reference" / "batch-json.md").write_text(batch_result_page(), encoding="utf-8")
    (ROOT / "docs" / "reference" / "errors.md").write_text(error_index_page(), encoding="utf-8")
    (ROOT / "docs" / "reference" / "dialect.md").write_text(dialect_page(), encoding="utf-8")
