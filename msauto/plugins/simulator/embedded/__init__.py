"""The embedded media server: the whole interface over HTTP, with dialects, faults and a request log.

It imports no other package of msauto, so that it cannot share mistakes with the code that it tests.

    from msauto.plugins.simulator.embedded import Simulator
    with Simulator(dialect=["segment_update=overwrite"], faults=["cut_after@POST .*CREATEMARKER*1"]) as sim:
        sim.url, sim.state.clip("Evening News raw").segments, sim.writes()
"""

from msauto.plugins.simulator.embedded.dialect import SimDialect
from msauto.plugins.simulator.embedded.faults import Fault
from msauto.plugins.simulator.embedded.seed import (
    bulk_state,
    empty_state,
    sample_state,
    state_from_seed,
)
from msauto.plugins.simulator.embedded.server import LogEntry, Simulator
from msauto.plugins.simulator.embedded.state import (
    Item,
    ServerState,
    SimChannel,
    SimClip,
    SimMarker,
    SimSegment,
)

__all__ = [
    "Fault", "Item", "LogEntry", "ServerState", "SimChannel", "SimClip", "SimDialect", "SimMarker", "SimSegment",
    "Simulator", "bulk_state", "empty_state", "sample_state", "state_from_seed",
]  # fmt: skip
