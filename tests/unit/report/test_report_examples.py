"""The examples in the docstrings of the package are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from msauto.documents import csv_cells
from msauto.plugins.batch import monitoring
from msauto.report import sanitizing, templates, texts


@pytest.mark.parametrize("module", [csv_cells, monitoring, sanitizing, templates, texts])
def test_examples_are_true(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert tried
    assert not failed
