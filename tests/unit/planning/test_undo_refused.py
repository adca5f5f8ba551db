"""Which runs cannot be undone at all; what comes back of the others is in ``tests/cases/stories/undo.yml``."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from msauto.api.stages import undo_of
from msauto.errors import RefusedError
from msauto.ledger.ledger import Ledger
from msauto.model.server import ServerSpec
from msauto.plugins.simulator.embedded import Simulator
from tests.stage import Stage


def test_a_run_of_another_server_and_a_run_that_goes_on_are_refused(sim: Simulator, tmp_path: Path) -> None:
    sim.state.add_clip("Film", "Raw")
    stage = Stage(sim, tmp_path)
    assert stage.apply({"asset": {"title": "Film", "fields": {"comment": "Ready"}}}).ok
    with Ledger.open(stage.place, readonly=True) as ledger:
        known = ledger.run_details("last")
    with pytest.raises(RefusedError, match="was applied to studio at"):
        undo_of(known, [ServerSpec("studio", "http://127.0.0.1:1")])
    going = structs.replace(known, summary=structs.replace(known.summary, status="running"))
    with pytest.raises(RefusedError, match="is still running"):
        undo_of(going, [ServerSpec("studio", stage.sim.url)])
