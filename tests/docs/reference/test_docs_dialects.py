"""The page of the dialect names every dialect key and its switches of the embedded server."""

from __future__ import annotations

import re

from msauto.plugins.simulator.embedded import SimDialect
from tests.dialects.fitting import FITTING
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/reference/dialect.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| `([a-z_]+)` \| (`.+`) \|$", re.MULTILINE)


def test_every_key_is_named() -> None:
    assert dict(_ROW.findall(PAGE)).keys() >= FITTING.keys()


def test_each_switch_is_one_of_the_embedded_server() -> None:
    switches = SimDialect.choices()
    for key, named in _ROW.findall(PAGE):
        names = re.findall(r"`([a-z_]+)`", named)
        assert names, key
        assert set(names) <= switches.keys(), key
        assert key in names or key not in switches, key
