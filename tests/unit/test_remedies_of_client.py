"""Each remedy of the client for Python works: the call of who followed it is accepted."""

from __future__ import annotations

from typing import Any

import pytest

import msauto
from msauto.errors import AddressError
from msauto.plugins.simulator.embedded import Simulator, sample_state
from tests.tables import table


@table(
    "server/remedies",
    "call", "wrong", "wrong_more", "remedy", "right", "more", "options", "then",
)  # fmt: skip
def test_a_remedy_works(
    call: str | None,
    wrong: list[Any],
    wrong_more: dict[str, Any] | None,
    remedy: str,
    right: list[Any],
    more: dict[str, Any] | None,
    options: dict[str, Any] | None,
    then: dict[str, Any] | None,
) -> None:
    with Simulator() as sim:
        sim.state = sample_state()
        if options is not None:
            with pytest.raises(AddressError) as refused:
                msauto.MediaServer(sim.url, **options)
            assert refused.value.remedy == remedy
        with msauto.MediaServer(sim.url, **(then or {})) as server:
            if call is None:
                assert server.databases()
                return
            method = getattr(server, call)
            with pytest.raises(AddressError) as refused:
                method(*wrong, **(wrong_more or {}))
            assert refused.value.remedy == remedy
            assert sim.writes() == []
            method(*right, **(more or {}))
