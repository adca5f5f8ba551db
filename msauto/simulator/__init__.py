"""The embedded media server: the whole interface over HTTP, with dialects, faults and a request log.

It imports no other package of msauto, so that it cannot share mistakes with the code that it tests.

    from msauto.simulator import Simulator
    with Simulator(dialect=["segment_update=overwrite"], faults=["cut_after@POST .*CREATEMARKER*1"]) as sim:
        sim.url, sim.state.clip("Evening News raw").segments, sim.writes()
"""

from msauto.simulator.dialect import SimDialect as SimDialect
from msauto.simulator.faults import Fault as Fault
from msauto.simulator.http.log import LogEntry as LogEntry
from msauto.simulator.server import Simulator as Simulator
from msauto.simulator.state.seed import (
    bulk_state as bulk_state,
)
from msauto.simulator.state.seed import (
    empty_state as empty_state,
)
from msauto.simulator.state.seed import (
    sample_state as sample_state,
)
from msauto.simulator.state.seed import (
    state_from_seed as state_from_seed,
)
from msauto.simulator.state.state import (
    Item as Item,
)
from msauto.simulator.state.state import (
    ServerState as ServerState,
)
from msauto.simulator.state.state import (
    SimChannel as SimChannel,
)
from msauto.simulator.state.state import (
    SimClip as SimClip,
)
from msauto.simulator.state.state import (
    SimMarker as SimMarker,
)
from msauto.simulator.state.state import (
    SimSegment as SimSegment,
)
