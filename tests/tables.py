"""Tables of cases: ``tests/cases/<name>.yml`` is a list of rows, each a mapping of a test's arguments."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

CASES = Path(__file__).parent / "cases"
only_fast = False
"""Whether no slow test runs, so that its rows need not be made; ``tests/conftest.py`` decides it."""


def load(path: Path) -> Any:
    """Read a YAML file of tests with the fast loader: each worker reads all of them before its first test."""
    return yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)


def yaml_text(value: Any) -> str:
    """Write YAML as tests give it to msauto, with the fast writer: most tests write two files or more."""
    try:
        text = yaml.dump(value, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False)
    except UnicodeEncodeError:  # half of a surrogate pair
        text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False)
    return str(text)


def table(name: str, *columns: str, one_in: int = 1) -> pytest.MarkDecorator:
    """Run a test once for each row; a column that a row omits is ``None``. ``about`` names the row.

    One row in so many runs always; the others are slow tests, and so is a row that is ``slow``.
    """
    values = []
    for number, row in enumerate(load(CASES / f"{name}.yml")):
        assert set(row) <= {*columns, "about", "slow"}, row
        marks = unless_one_in(0 if row.get("slow") else one_in, number)
        about = str(row.get("about", number))
        values.append(pytest.param(*map(row.get, columns), id=about, marks=marks))
    return pytest.mark.parametrize(columns, values)


def one_fast_in(one_in: int, values: Iterable[Any]) -> list[Any]:
    """Return parameters: one in so many runs always; the others are slow tests."""
    parameters = []
    for number, value in enumerate(values):
        parameters.append(pytest.param(value, marks=unless_one_in(one_in, number)))
    return parameters


def unless_one_in(one_in: int, number: int) -> tuple[pytest.MarkDecorator, ...]:
    """Return the mark of a slow test, but none for one number in so many; the first, 0, has none."""
    is_fast = one_in > 0 and number % one_in == 0
    return () if is_fast else (pytest.mark.scale,)
