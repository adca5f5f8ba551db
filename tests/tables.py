"""Tables of cases: ``tests/cases/<name>.yml`` is a list of rows, each a mapping of a test's arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

CASES = Path(__file__).parent / "cases"


def load(path: Path) -> Any:
    """Read a YAML file of tests with the fast loader: each worker reads all of them before its first test."""
    return yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)


def table(name: str, *columns: str) -> pytest.MarkDecorator:
    """Run a test once for each row; a column that a row omits is ``None``. ``about`` names the row."""
    values = []
    for number, row in enumerate(load(CASES / f"{name}.yml")):
        assert set(row) <= {*columns, "about"}, row
        values.append(pytest.param(*map(row.get, columns), id=str(row.get("about", number))))
    return pytest.mark.parametrize(columns, values)
