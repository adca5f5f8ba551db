"""Tables of cases: ``tests/cases/<name>.yml`` is a list of rows, each a mapping of a test's arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

CASES = Path(__file__).parent / "cases"


def table(name: str, *columns: str) -> pytest.MarkDecorator:
    """Run a test once for each row; a column that a row omits is ``None``. ``about`` names the row."""
    rows: list[dict[str, Any]] = yaml.safe_load((CASES / f"{name}.yml").read_text(encoding="utf-8"))
    wrong = [row for row in rows if not set(row) <= {*columns, "about"}]
    assert not wrong, wrong
    values = [
        pytest.param(*map(row.get, columns), id=str(row.get("about", n)))
        for n, row in enumerate(rows)
    ]
    return pytest.mark.parametrize(columns, values)
