"""The page about states is held against the state machine itself: every transition is there, and no other."""

from __future__ import annotations

import re

from msauto.applying.states import State
from tests.crash.test_every_path import all_transitions
from tests.docs.pages import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| ([a-z ]+) \| ([a-z ]+) \| ([A-Z][A-Za-z, ]+) \| .+ \|$", re.MULTILINE)


def test_the_table_of_a_target_is_the_state_machine() -> None:
    told = {(came, goes): set(events.split(", ")) for came, goes, events in _ROW.findall(PAGE)}
    real: dict[tuple[str, str], set[str]] = {}
    for progress, event, following in all_transitions():
        pair = (progress.state.value, following.state.value)
        real.setdefault(pair, set()).add(type(event).__name__)
    assert told == real


def test_every_state_is_drawn() -> None:
    drawing = PAGE.partition("## States of a target")[2]
    assert [state.value for state in State if state.value not in drawing] == []
