"""Applying in slices, as one worker does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from msauto.applying.batches import BatchFailures
from msauto.applying.circuit_breaker import BreakerState
from msauto.applying.states import RetryPolicy
from msauto.errors import LedgerError
from msauto.model.ledger_url import LedgerUrl, PasswordSource
from msauto.model.plan import Plan
from msauto.model.server import ServerSpec
from msauto.running.current_slice import CURRENT_SLICE, CurrentSlice
from msauto.secrets.redaction import Secrets
from msauto.slices.apply_slices import ApplyWork, SharedApply


def test_a_worker_that_cannot_open_the_ledger_is_named(tmp_path: Path) -> None:
    missing = PasswordSource("file", str(tmp_path / "password"))
    place = LedgerUrl("postgresql:///ledger?host=/nowhere", missing)
    shared = SharedApply("run-1", place, [], Secrets(), None, RetryPolicy())
    server = ServerSpec("studio-a", "http://a.example")
    work = ApplyWork(server, shared, BatchFailures(Plan("", ""), 0), BreakerState())

    async def open_it() -> None:
        CURRENT_SLICE.set(CurrentSlice("slice-1", [], "worker-7"))
        async with work.open(server):
            raise AssertionError

    with pytest.raises(LedgerError, match="the Dask worker worker-7 cannot open the ledger: the password") as caught:
        asyncio.run(open_it())
    assert caught.value.remedy in caught.value.message
