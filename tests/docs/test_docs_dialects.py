"""The page about unknowns names the place of each dialect key and the switches of the embedded server: as they are."""

from __future__ import annotations

import re

from msauto.simulator import SimDialect
from tests.dialects.fitting import FITTING
from tests.docs.pages import ROOT
from tests.lint.dialect_keys import SHARED, places_of_keys
from tests.lint.source import read_sources

PAGE = (ROOT / "docs/explanation/unknowns.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| `([a-z_]+)` \| (`[a-z_/.]+`|handed on) \| (.+) \|$", re.MULTILINE)


def test_each_key_is_where_the_page_says() -> None:
    places = places_of_keys(read_sources())
    told = {key: place for key, place, _ in _ROW.findall(PAGE)}
    assert told.keys() == places.keys() == FITTING.keys()
    for key, place in told.items():
        assert place == "handed on" if key in SHARED else {f"msauto/{place.strip('`')}"} == places[key], key


def test_each_switch_is_one_of_the_embedded_server() -> None:
    switches = SimDialect.choices()
    for key, _, named in _ROW.findall(PAGE):
        names = re.findall(r"`([a-z_]+)`", named)
        assert names, key
        assert set(names) <= switches.keys(), key
        assert key in names or key not in switches, key
