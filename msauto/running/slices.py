"""One slice on a worker: items of one server, worked on in an event loop of its own.

A slice returns errors as values and never raises, because a worker logs what a task raises.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from distributed import get_worker
from msgspec import Struct

from msauto.concurrency import concurrent_map, run_unless
from msauto.errors import ClusterError, MsautoError
from msauto.model.ports import Work
from msauto.running.current_slice import CURRENT_SLICE, CurrentSlice
from msauto.running.parcels import Parcel, pack, unpack
from msauto.version import __version__

_POLL: Final = 0.2
"""Seconds between two looks at whether the coordinator still waits for the slice."""
VERSIONS: Final = (__version__, f"{sys.version_info[0]}.{sys.version_info[1]}")
"""The versions of msauto and Python, which must be the same on all machines."""


@dataclass(frozen=True, slots=True)
class SliceLimits:
    """``parts``: a slice may use one of so many equal parts of its server's limits; ``limit``: the items at a time."""

    parts: int
    limit: int


class SliceResult(Struct, frozen=True):
    """The results up to the first error; ``seconds`` is how long the slice ran."""

    results: list[Any]
    error: BaseException | None = None
    seconds: float = 0.0


def keep(parcel: Parcel) -> Parcel:
    """Return a parcel, so that Dask keeps it and moves it to the workers that need it."""
    return parcel


def run_slice(
    versions: tuple[str, str], limits: SliceLimits, parcel: Parcel, numbers: tuple[int, ...], *shared: Parcel
) -> Parcel:
    """Run a slice and return its :class:`SliceResult`."""
    try:
        if versions != VERSIONS:
            raise ClusterError(version_mismatch(_here(), VERSIONS, versions), remedy=SAME_VERSIONS)
        result = _run(limits, parcel, dict(zip(numbers, shared, strict=True)))
    except Exception as error:  # noqa: BLE001 - returned as a value
        result = SliceResult([], _portable(error))
    try:
        return pack(result)[0]
    except Exception as error:  # noqa: BLE001 - returned as a value
        return pack(SliceResult([], _portable(error)))[0]


SAME_VERSIONS: Final = "install the same versions of msauto and Python on the workers and here"


def version_mismatch(worker: str, theirs: tuple[str | None, str], ours: tuple[str, str]) -> str:
    """Return the message about a worker with another version."""
    msauto = f"msauto {theirs[0]}" if theirs[0] else "no msauto"
    return (
        f"the Dask worker {worker} has {msauto} and Python {theirs[1]}; here are msauto {ours[0]} and Python {ours[1]}"
    )


def _here() -> str:
    return str(get_worker().name or get_worker().address)


def _run(limits: SliceLimits, parcel: Parcel, shared: dict[int, Parcel]) -> SliceResult:
    wanted = _Wanted()
    start = time.monotonic()
    work, items = unpack(parcel, shared)
    CURRENT_SLICE.set(CurrentSlice(wanted.key, items, _here()))
    results: list[Any] = []
    error = asyncio.run(_work_on(work, items, limits, results, wanted))
    return SliceResult(results, error, time.monotonic() - start)


class _Wanted:
    """Whether the coordinator still waits for the slice that runs in this thread.

    Dask cannot interrupt a task. It forgets a cancelled one, and those of a coordinator that has left.
    """

    def __init__(self) -> None:
        self._worker = get_worker()
        self.key = self._worker.get_current_task()

    def __bool__(self) -> bool:
        task = self._worker.state.tasks.get(self.key)
        running = self._worker.status.name in {"running", "paused", "closing_gracefully"}
        return running and task is not None and task.state in {"executing", "long-running"}


async def _work_on(
    work: Work[Any, Any], items: list[Any], limits: SliceLimits, results: list[Any], wanted: _Wanted
) -> BaseException | None:
    """Add the results up to the first error, which is returned."""
    unwanted = asyncio.Event()

    async def work_on_all() -> None:
        async with (
            work.open(work.server.share(limits.parts)) as call,
            aclosing(concurrent_map(call, items, limit=limits.limit)) as found,
        ):
            async for result in found:
                results.append(result)  # noqa: PERF401 - those before an error count

    async def watch() -> None:
        while wanted:  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(_POLL)
        unwanted.set()

    watching = asyncio.ensure_future(watch())
    try:
        if not await run_unless(work_on_all(), unwanted):
            return ClusterError("the slice was cancelled")
    except Exception as error:  # noqa: BLE001 - returned as a value
        return _portable(error)
    finally:
        watching.cancel()
    return None


def _portable(error: Exception) -> Exception:
    """Return an error that can be pickled. The text of an unexpected one may hold a secret, and stays here."""
    if isinstance(error, MsautoError):
        return error
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {Path(each.filename).name}:{each.lineno}" for each in last)
    return ClusterError(
        f"msauto itself failed on the Dask worker {_here()}: {type(error).__name__}{place}",
        remedy="this is a bug in msauto: run it without --on, and report it",
    )
