"""``msauto probe``: what a live server shows of its dialect, by reading alone or by trying on a scratch asset."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msauto.concurrency import finish
from msauto.errors import InDoubtError, ServerError
from msauto.model.live import Asset, Link
from msauto.model.ports import Clock
from msauto.model.server import ServerSpec
from msauto.probe.findings import DialectFinding, ProbeNotes, ProbeResult, UnansweredQuestion
from msauto.probe.read_only import ReadOnlyProbe
from msauto.probe.scratch import (
    ScratchAsset,
    TrialOptions,
    open_bench,
    put_back,
    spec_for_trial,
    try_markers,
    try_segments,
)
from msauto.probe.trials import try_lines, try_links, try_separators
from msauto.server.client import AsyncMediaServer

__all__ = ["DialectFinding", "ProbeResult", "TrialOptions", "UnansweredQuestion", "probe", "probe_by_trial"]

Refuse = Callable[[Asset, tuple[Link, ...] | None], None]

_TRIALS: tuple[tuple[Callable[[ScratchAsset], Awaitable[None]], tuple[str, ...]], ...] = (
    (try_lines, ("request_line",)),
    (try_segments, ("segment_update",)),
    (try_markers, ("marker_update", "position_origin")),
    (try_separators, ("list_separator",)),
    (try_links, ("COPYLINK twice", "link_title")),
)


async def probe(
    spec: ServerSpec, database: str, *, title: str | None = None, xmp_field: str | None = None
) -> ProbeResult:
    """Return what reading shows of a server; sends GET only, never ``/storage`` whole, never a web proxy.

    ``title`` is a clip to ask for, else one is looked for; ``xmp_field`` one that it has. Raises ``MsautoError``
    where the server cannot be reached, lets nobody in, or has no such database.
    """
    async with AsyncMediaServer(spec, read_only=True) as client:
        notes = ProbeNotes(client.hide)
        await ReadOnlyProbe(client, database, notes, title=title, field=xmp_field).run()
    return ProbeResult(spec.name, database, tuple(notes.found), tuple(notes.missed))


async def probe_by_trial(
    spec: ServerSpec,
    database: str,
    trial: TrialOptions,
    *,
    clock: Clock,
    tell: Callable[[str], None],
    refuse: Refuse,
    all_links: bool = False,
) -> ProbeResult:
    """Read as :func:`probe` does, then try the rest on one asset, and put back what was there.

    ``refuse`` gets the asset and its links and raises for one that must not be touched. Whatever fails or interrupts
    the trial, what it made is taken back as far as it can be; ``left`` and ``tell`` name what is not.
    """
    async with AsyncMediaServer(spec_for_trial(spec)) as client:
        notes = ProbeNotes(client.hide)
        bench = await open_bench(
            client, database, trial, notes, clock=clock, tell=tell, refuse=refuse, all_links=all_links
        )
        async with AsyncMediaServer(spec, read_only=True) as reader:
            await ReadOnlyProbe(reader, database, notes, title=trial.title, field=trial.xmp_field).run()
        left = await _try_all(bench)
    return ProbeResult(spec.name, database, tuple(notes.found), tuple(notes.missed), left)


async def _try_all(bench: ScratchAsset) -> tuple[str, ...]:
    bench.notes.forget(*(name for _, names in _TRIALS for name in names))
    try:
        for trial, names in _TRIALS:
            try:
                with bench.notes.trying(*names):
                    await trial(bench)
            except ServerError as error:
                bench.tell(f"The trial ends here: {error}")
                _miss_rest(bench.notes, error)
                break
    except BaseException:  # Ctrl-C as well: what was made is taken back whatever happens
        if bench.made:
            bench.tell(f"Stopped. Taking back: {'; '.join(bench.made.values())}")
        _tell_left(bench, await _put_all_back(bench))
        raise
    return await _put_all_back(bench)


async def _put_all_back(bench: ScratchAsset) -> tuple[str, ...]:
    """Put back, to the end: who stops that as well must do so twice, and is told what to look for."""
    if not bench.made:
        return ()
    words = f"{'; '.join(bench.made.values())} of {bench.trial.title!r}"
    try:
        left, stopped = await finish(
            put_back(bench), lambda: bench.tell(f"Still taking back {words}. Stopping once more leaves it there")
        )
    except asyncio.CancelledError:
        bench.tell(f"Stopped while taking back: it is not known what is left. Look for {words}")
        raise
    if stopped:
        _tell_left(bench, left)
        raise asyncio.CancelledError
    return left


def _tell_left(bench: ScratchAsset, left: tuple[str, ...]) -> None:
    for words in left:
        bench.tell(f"Left on {bench.trial.title!r}: {words}")


def _miss_rest(notes: ProbeNotes, error: ServerError) -> None:
    lost = isinstance(error, InDoubtError)
    why = "an answer was lost before" if lost else "the server could not be reached any more"
    for _, names in _TRIALS:
        for name in names:
            notes.miss(name, why)
