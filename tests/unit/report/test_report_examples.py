"""The examples in the docstrings of the package are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from msauto.report import name_ranges, sentences, templates, value_texts
from msauto.report import sanitizing as visible


@pytest.mark.parametrize("module", [name_ranges, sentences, templates, value_texts, visible])
def test_examples_are_true(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert tried
    assert not failed
