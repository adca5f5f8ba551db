"""Which runs cannot be undone at all; what comes back of the others is in ``tests/cases/stories/undo.yml``."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from msauto.api.stages import undo_of
from msauto.errors import RefusedError
from msauto.ledger.ledger import Ledger
from msauto.model.result import COUNTED_BY_SERVER
from msauto.model.server import Dialect, ServerSpec
from msauto.plugins.simulator.embedded import Simulator
from tests.stage import Stage


def test_a_run_of_another_server_and_a_run_that_goes_on_are_refused(
    sim: Simulator, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize("refused", [True, False])
def test_positions_that_an_older_msauto_kept_as_the_server_counts_are_refused(
    sim: Simulator, tmp_path: Path, refused: bool
) -> None:
    sim.state.add_clip("Film", "Raw")
    stage = Stage(sim, tmp_path)
    key = {"markers": [{"at": 5, "title": "new"}]} if refused else {"fields": {"comment": "Ready"}}
    assert stage.apply({"asset": {"title": "Film", **key}}).ok
    with Ledger.open(stage.place, readonly=True) as ledger:
        known = ledger.run_details("last")
    older = structs.replace(known, notes={**known.notes, COUNTED_BY_SERVER: "as the server counts"})
    spec = ServerSpec("studio", stage.sim.url, dialect=Dialect(position_origin="in"))
    undo_of(older, [ServerSpec("studio", stage.sim.url)])
    if not refused:
        undo_of(older, [spec])
        return
    with pytest.raises(RefusedError, match="with positions from the in point"):
        undo_of(older, [spec])
