"""The flags of a run, which ``apply`` and ``undo`` share, and the one value that they come to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any

import click

from msauto.cli.flags import Flags, for_stdout, keep_going_flag, plan_options
from msauto.cli.past import as_it_was, run_called
from msauto.cli.seconds import read_seconds
from msauto.model.limits import Limits


@dataclass(frozen=True, slots=True)
class Asked:
    """How the run is to go: consent, limits with what the flags allow, and until when targets may be begun.

    ``out`` and ``detailed_exitcode`` are those of ``msauto plan``, for a ``check``.
    """

    limits: Limits
    yes: bool = False
    check: bool = False
    keep_going: bool = False
    out: str | None = None
    detailed_exitcode: bool = False
    override_freeze: str | None = None
    lock_timeout: float = 0.0
    not_after: datetime | None = None


def _moment(context: click.Context, option: click.Parameter, text: str | None) -> datetime | None:
    """Read a time of day (the next one, here), or an ISO 8601 date and time; without a zone it is this machine's."""
    if text is None:
        return None
    try:
        if len(text) <= len("05:30"):
            return next_time(time.fromisoformat(text), datetime.now().astimezone())
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):  # the latter: a date that another zone's calendar does not reach
        message = f"{text!r} is no time: write 05:30, or 2026-11-21T05:30"
        raise click.BadParameter(message, ctx=context, param=option) from None


def next_time(clock: time, now: datetime) -> datetime:
    """Return when it is this time of day next, here; each day's own distance from UTC counts."""
    today = datetime.combine(now.date(), clock).astimezone()
    return today if today > now else datetime.combine(now.date() + timedelta(days=1), clock).astimezone()


_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option("--check", is_flag=True, help="Plan only: the same as msauto plan."),
    *plan_options("With --check: "),
    keep_going_flag,
    click.option("--allow-delete", type=click.IntRange(0), metavar="N", help="Assets that the run may delete."),
    click.option("--allow-remove", type=click.IntRange(0), metavar="N", help="List items that `exactly` may remove."),
    click.option("--allow-requests", type=click.IntRange(0), metavar="N", help="Requests that the run may send."),
    click.option(
        "--override-freeze", metavar="REASON", help="Go on in a freeze of msauto.toml; the reason is recorded."
    ),
    click.option("--lock-timeout", callback=read_seconds, default="0", metavar="SECONDS", help="Wait for another run."),
    click.option(
        "--not-after", callback=_moment, metavar="TIME", help="Begin no target after this (05:30, or a date)."
    ),
)


def run_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of a run, handed to it as one ``asked`` value; goes below ``shared_flags``' own."""

    @functools.wraps(function)
    def command(
        *,
        flags: Flags,
        yes: bool,
        check: bool,
        keep_going: bool,
        out: str | None,
        detailed_exitcode: bool,
        allow_delete: int | None,
        allow_remove: int | None,
        allow_requests: int | None,
        override_freeze: str | None,
        lock_timeout: float,
        not_after: datetime | None,
        **own: Any,
    ) -> Any:
        if override_freeze is not None and not override_freeze.strip():
            raise click.BadParameter("say why", param_hint="--override-freeze")
        if not check and (out is not None or detailed_exitcode):
            raise click.UsageError("--out and --detailed-exitcode are for a plan that is not applied: give --check")
        flags = for_stdout(flags, out)
        for name, to_undo in (("run", True), ("resumed", False)):
            if own.get(name) is not None and not own.get("playbooks"):  # the two together are refused later
                own[name] = run_called(flags, own[name], to_undo=to_undo)
                flags = as_it_was(flags, own[name])
        limits = _allowed(flags.settings.limits, allow_delete, allow_remove, allow_requests)
        asked = Asked(limits, yes, check, keep_going, out, detailed_exitcode, override_freeze, lock_timeout, not_after)
        return function(flags=flags, asked=asked, **own)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _allowed(limits: Limits, delete: int | None, remove: int | None, requests: int | None) -> Limits:
    """Return the limits with what the flags allow for this run."""
    if delete is not None:
        limits = replace(limits, delete_assets=max(delete, limits.delete_assets))
    if remove is not None:
        limits = replace(limits, allow_remove=remove)
    if requests is not None:
        limits = replace(limits, requests=requests)
    return limits
