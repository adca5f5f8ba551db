"""The flags of a run, which ``apply`` and ``undo`` share, and the one value that they come to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click

from msauto.cli.flags import Flags, for_stdout, keep_going_flag, plan_options
from msauto.cli.runs.allowed_times import AllowedTimes, times_of, window_flag
from msauto.cli.runs.attempt import Attempt
from msauto.cli.runs.past_runs import as_it_was, run_called
from msauto.cli.seconds import read_seconds
from msauto.model.limits import Limits


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How the run is to go: consent, limits with what the flags allow, and when targets may be begun.

    ``out`` and ``detailed_exitcode`` are those of ``msauto plan``, for a ``check``.
    """

    limits: Limits
    times: AllowedTimes
    attempt: Attempt
    yes: bool = False
    check: bool = False
    keep_going: bool = False
    out: str | None = None
    detailed_exitcode: bool = False
    override_freeze: str | None = None
    lock_timeout: float = 0.0


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
    window_flag,
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
        window: str | None,
        **own: Any,
    ) -> Any:
        if override_freeze is not None and not override_freeze.strip():
            raise click.BadParameter("say why", param_hint="--override-freeze")
        if not check and (out is not None or detailed_exitcode):
            raise click.UsageError("--out and --detailed-exitcode are for a plan that is not applied: give --check")
        attempt = Attempt.here()
        attempt.flags, attempt.dismissed = flags, check
        flags = for_stdout(flags, out)
        for name, to_undo in (("run", True), ("resumed", False)):
            if own.get(name) is not None and not own.get("playbooks"):  # the two together are refused later
                own[name] = run_called(flags, own[name], to_undo=to_undo)
                flags = as_it_was(flags, own[name])
        limits = _allowed(flags.settings.limits, allow_delete, allow_remove, allow_requests)
        times = times_of(flags, window, override_freeze=override_freeze)
        asked = RunOptions(
            limits, times, attempt, yes, check, keep_going, out, detailed_exitcode, override_freeze, lock_timeout
        )
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
