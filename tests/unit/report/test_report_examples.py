"""The examples in the docstrings of the package are true."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from msauto.report import layout, sanitizing, texts


@pytest.mark.parametrize("module", [layout, sanitizing, texts])
def test_examples_are_true(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert tried
    assert not failed
