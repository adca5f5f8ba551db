"""``msauto probe``: learns the dialect of a live server, by reading or by trials on a scratch asset.

A new dialect key has its question in :mod:`.observations`, in ``_TRIALS``, or its reason in ``_NEVER_TRIED``.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable

from msauto.concurrency import finish
from msauto.errors import InDoubtError, ServerError
from msauto.model.live import Asset, Link
from msauto.model.ports import Clock
from msauto.model.server import Dialect, ServerSpec
from msauto.probe.observations import DialectFinding, ProbeNotes, ProbeResult, ReadOnlyProbe, UnansweredQuestion
from msauto.probe.trials import ScratchAsset, TrialOptions, put_back, try_markers, try_segments, try_separators
from msauto.server.client import AsyncMediaServer

__all__ = ["DialectFinding", "ProbeResult", "TrialOptions", "UnansweredQuestion", "probe", "probe_by_trial"]

Refuse = Callable[[Asset, tuple[Link, ...] | None], None]

Trial = Callable[[ScratchAsset], Awaitable[None]]

_TRIALS: dict[Trial, tuple[tuple[str, ...], str]] = {
    try_segments: (("segment_update",), ""),
    try_markers: (("marker_update", "position_origin"), ""),
    try_separators: (("list_separator",), " with --xmp-field NAME"),
}
"""The keys that a trial answers, and its options besides ``--scratch``. Other keys: :mod:`.observations`."""

_NEVER_TRIED = {
    "folder_missing": "the trial would create a folder, which the interface cannot delete",
    "link_delete": "trying could delete the clip instead of its link",
    "rss_update": "the trial would change a channel that is on air",
    "rss_body": "the trial would change a channel that is on air",
}


async def probe(
    spec: ServerSpec, database: str, *, title: str | None = None, xmp_field: str | None = None
) -> ProbeResult:
    """Return what reading shows; sends GET only, never for all of ``/storage`` or a web proxy.

    ``title`` is a clip to read, else one is searched for; ``xmp_field`` is a field that it has. Raises ``MsautoError``
    if the server cannot be reached, rejects the credentials, or has no such database.
    """
    async with AsyncMediaServer(spec, read_only=True) as client:
        notes = ProbeNotes(client.hide)
        await ReadOnlyProbe(client, database, notes, title=title, field=xmp_field).run()
    _miss_the_rest(notes)
    return ProbeResult(spec.name, database, tuple(notes.found), tuple(notes.missed))


async def probe_by_trial(
    spec: ServerSpec,
    database: str,
    trial: TrialOptions,
    *,
    clock: Clock,
    report: Callable[[str], None],
    refuse: Refuse,
    all_links: bool = False,
) -> ProbeResult:
    """Read as :func:`probe` does, then try the rest on one asset, and undo the changes.

    ``refuse`` gets the asset and its links and raises for one that must not be changed. Changes are undone after an
    error or interruption as well; ``left`` and ``report`` name what could not be undone.
    """
    async with AsyncMediaServer(spec) as client:
        notes = ProbeNotes(client.hide)
        bench = ScratchAsset(client, database, trial, notes, clock, report)
        await bench.open(refuse, all_links=all_links)
        await ReadOnlyProbe(client, database, notes, title=trial.title, field=trial.xmp_field).run()
        left = await _try_all(bench)
    _miss_the_rest(notes)
    return ProbeResult(spec.name, database, tuple(notes.found), tuple(notes.missed), left)


async def _try_all(bench: ScratchAsset) -> tuple[str, ...]:
    try:
        for trial, (keys, _) in _TRIALS.items():
            try:
                with bench.notes.trying(*keys):
                    await trial(bench)
            except ServerError as error:
                bench.report(f"The trial ends here: {error}")
                lost = isinstance(error, InDoubtError)
                why = "an answer was lost before" if lost else "the server could no longer be reached"
                _miss_the_rest(bench.notes, why)
                break
    except BaseException:  # Ctrl-C as well: changes are always undone
        if bench.made:
            bench.report(f"Stopped. Undoing: {bench.changed}")
        _tell_left(bench, await _put_all_back(bench))
        raise
    return await _put_all_back(bench)


async def _put_all_back(bench: ScratchAsset) -> tuple[str, ...]:
    """Undo all changes. A first interruption only prints a message; a second one stops, and names what to check."""
    if not bench.made:
        return ()
    words = f"{bench.changed} of {bench.trial.title!r}"
    try:
        left, stopped = await finish(
            put_back(bench), lambda: bench.report(f"Still undoing {words}. Stopping once more leaves it there")
        )
    except asyncio.CancelledError:
        bench.report(f"Stopped while undoing: it is not known what is left. Look for {words}")
        raise
    if stopped:
        _tell_left(bench, left)
        raise asyncio.CancelledError
    return left


def _tell_left(bench: ScratchAsset, left: tuple[str, ...]) -> None:
    for words in left:
        bench.report(f"Left on {bench.trial.title!r}: {words}")


def _miss_the_rest(notes: ProbeNotes, why: str = "") -> None:
    """Note why the questions that reading does not answer have no answer."""
    for keys, options in _TRIALS.values():
        notes.miss(why or f"reading does not show it: --scratch TITLE{options} tries it", *keys)
    for key in (each.name for each in dataclasses.fields(Dialect)):
        notes.miss(_NEVER_TRIED.get(key, "msauto has no trial for it"), key)
