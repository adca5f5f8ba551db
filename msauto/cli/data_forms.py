"""Plain data as YAML, and as CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from msauto.documents.writer import VerbatimText, yaml_lines
from msauto.report.json import dump

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would run as a formula."""


def render_yaml(value: object) -> Iterator[str]:
    """Yield JSON data as YAML, as exported playbooks are written; texts that look like templates stay as they are."""
    for line in yaml_lines(_verbatim(json.loads(dump(value)))):
        yield f"{line}\n"


def _verbatim(value: Any) -> Any:
    if isinstance(value, str):
        return VerbatimText(value)
    if isinstance(value, dict):
        return {name: _verbatim(each) for name, each in value.items()}
    return [_verbatim(each) for each in value] if isinstance(value, list) else value


def render_csv(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield records with a header line: their keys in the order in which they first appear.

    A text that a spreadsheet would take for a formula gets a ``'`` in front. Lists and mappings are written as JSON.
    """
    records = list(records)
    names = list(dict.fromkeys(name for record in records for name in record))
    if names:
        yield _line(names)
    for record in records:
        yield _line([_cell(record.get(name)) for name in names])


def _line(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return json.dumps(json.loads(dump(value)), ensure_ascii=False)
