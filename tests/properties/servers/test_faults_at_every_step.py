"""A server with faults at random steps, over real HTTP: the report is true, nothing is duplicated.

Once the faults are over, one more apply, which forgets what is in doubt, reaches the desired state. Runs may be undone
in between.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from msauto.plugins.simulator.embedded import SimClip, Simulator, empty_state
from tests.crash.faulty import KINDS, PATIENCE, until_late_work_is_done
from tests.properties.test_whole_way import NAMES, XMP_NAMES, State, put_live, task
from tests.stage import Stage

TEXTS = st.sampled_from(["", "a", "50% & more", "две\nстроки"])
fully = st.builds(
    State,
    fields=st.fixed_dictionaries(dict.fromkeys(NAMES, TEXTS)),
    xmp=st.fixed_dictionaries(
        {name: st.lists(st.sampled_from(["x", "ы"]), min_size=1, max_size=2) for name in XMP_NAMES}
    ),
    segments=st.dictionaries(
        st.integers(1, 3),
        st.fixed_dictionaries(
            {"start": st.integers(0, 2), "duration": st.integers(1, 2), "title": TEXTS}
        ),
        max_size=3,
    ),
    markers=st.dictionaries(
        st.tuples(st.sampled_from(["General", "Icon"]), st.integers(0, 3)),
        st.fixed_dictionaries({"title": TEXTS, "comment": TEXTS}),
        max_size=3,
    ),
    links=st.just(set[tuple[str, str]]()),
)
"""Wants that leave nothing open: after them the clip is known to the last letter."""

faults = st.lists(
    st.builds(
        "{}@{}*1+{}".format,
        st.sampled_from(KINDS),
        st.sampled_from(["POST", "SEGMENT", "MARKER", "SETFIELD", "GET /storage/NEWS@"]),
        st.integers(0, 3),
    ),
    max_size=3,
)


def expected(desired: State) -> dict[str, Any]:
    """The clip as it is to be."""
    return {
        "fields": desired.fields,
        "xmp": desired.xmp,
        "segments": sorted(
            (n, s["start"], s["duration"], s["title"]) for n, s in desired.segments.items()
        ),
        "markers": sorted(
            (at, track, m["title"], m["comment"]) for (track, at), m in desired.markers.items()
        ),
    }


def seen(clip: SimClip) -> dict[str, Any]:
    """The clip as it is."""
    return {
        "fields": {name: clip.home.fields.get(name, "") for name in NAMES},
        "xmp": {name: clip.xmp.get(name, []) for name in XMP_NAMES},
        "segments": sorted(
            (s.number, s.start, s.duration, "".join(s.titles)) for s in clip.segments
        ),
        "markers": sorted(
            (m.pos, m.fields["track"], m.fields.get("title", ""), m.fields.get("comment", ""))
            for m in clip.markers
        ),
    }


class FaultyServer(RuleBasedStateMachine):
    """One clip, one ledger, many runs."""

    place = ""

    def __init__(self) -> None:
        super().__init__()
        self.sim = Simulator(state=empty_state())
        self.sim.start()
        self.folder = tempfile.TemporaryDirectory()
        self.stage = Stage(self.sim, Path(self.folder.name), policy=PATIENCE, place=self.place)
        self.desired: State | None = None

    @initialize(live=fully)
    def begin(self, live: State) -> None:
        self.clip = put_live(self.sim, live)

    @rule(desired=fully, faults=faults)
    def apply(self, desired: State, faults: list[str]) -> None:
        self.desired = desired
        self.sim.faults.clear()
        self.sim.faults.add(*faults)
        result = self.stage.apply(task(desired, {"segments", "markers"}))
        self._settle()
        for target in result.targets:
            told = (target.outcome, target.message, target.requests, target.differences)
            assert target.outcome in {"changed", "failed", "unverified", "not attempted"}, told
            if target.outcome == "changed" and not result.plan.left_out:
                assert seen(self.clip) == expected(desired), told
            if target.outcome == "failed":
                assert seen(self.clip) != expected(desired), told

    @precondition(lambda self: self.desired is not None)
    @rule(faults=faults)
    def undo(self, faults: list[str]) -> None:
        self.sim.faults.clear()
        self.sim.faults.add(*faults)
        runs = self.stage.runs()
        if runs:
            self.stage.undo(runs[0])
        self._settle()

    def _settle(self) -> None:
        until_late_work_is_done(self.sim)
        self.sim.clear_log()
        self.sim.faults.clear()

    @invariant()
    def nothing_is_there_twice(self) -> None:
        clip = getattr(self, "clip", None)
        if clip is not None:
            markers = [(m.pos, m.fields["track"]) for m in clip.markers]
            numbers = [s.number for s in clip.segments]
            assert len(set(markers)) == len(markers), markers
            assert len(set(numbers)) == len(numbers), numbers

    def teardown(self) -> None:
        try:
            if self.desired is not None:
                asked = task(self.desired, {"segments", "markers"})
                again = self.stage.apply(asked, forget_pending=True)
                assert again.ok, [
                    (each.outcome, each.message, each.differences) for each in again.targets
                ]
                assert seen(self.clip) == expected(self.desired)
                assert self.stage.plan(asked).requests == 0
        finally:
            self.sim.stop()
            self.folder.cleanup()


def often(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=6,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )


@pytest.mark.scale
def test_faults_at_every_step() -> None:
    run_state_machine_as_test(FaultyServer, settings=often(5))


@pytest.mark.scale
def test_faults_at_every_step_with_a_shared_ledger(shared_place: str) -> None:
    class FaultyServerOfMachines(FaultyServer):
        """The same, with one shared ledger for all examples."""

        place = shared_place

    run_state_machine_as_test(FaultyServerOfMachines, settings=often(5))


@pytest.mark.scale
def test_faults_at_every_step_for_long() -> None:
    run_state_machine_as_test(FaultyServer, settings=often(25))
