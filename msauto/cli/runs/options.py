"""The flags of ``plan``, ``apply`` and ``undo``, and the value that a run gets from them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import click
from msgspec import structs

from msauto.cli.flags import Decorator, Flags, parse_seconds, with_options
from msauto.cli.runs.attempt_record import Attempt
from msauto.cli.runs.past_runs import find_run, options_of, with_settings_of
from msauto.cli.runs.run_watch import STDOUT, RunWatch
from msauto.errors import MsautoError
from msauto.model.plan import Limits, Plan, Refusal
from msauto.playbook.change_windows import DatedFreeze, Freeze, Window, freeze_at, parse_window


@dataclass(frozen=True, slots=True)
class AllowedTimes:
    """When a run may begin a target: outside of every freeze, within the window of the run, and before ``until``."""

    freezes: tuple[Freeze | DatedFreeze, ...] = ()
    window: Window | None = None
    until: datetime | None = None

    def refusals(self, now: datetime) -> Iterator[Refusal]:
        """Yield why no target may begin now."""
        frozen = freeze_at(self.freezes, now)
        if frozen is not None:
            yield Refusal("freeze", str(frozen), _time(now.astimezone(frozen.since.tzinfo)), "--override-freeze REASON")
        window = self.window
        if window is not None and not window.is_open(now):
            shown = f"{window} ({window.timezone or 'the time zone of this machine'})"
            yield Refusal("window", shown, _time(window.clock(now)), "run it within the window, or without --window")
        if self.until is not None and now >= self.until:
            until = _time(self.until.astimezone(now.tzinfo))
            yield Refusal("max_time", until, _time(now), "give the job more time: max_time")

    def check(self, plan: Plan, now: datetime) -> Plan:
        """Return the plan with the reasons why it may not be applied now, if it changes something."""
        return structs.replace(plan, refusals=(*plan.refusals, *self.refusals(now))) if plan.requests else plan


def allowed_times(flags: Flags, window: str | None, *, override_freeze: str | None = None) -> AllowedTimes:
    """Return when targets may begin; the time zone of the window is that of the settings."""
    settings = flags.settings
    freezes = () if override_freeze else settings.freezes
    return AllowedTimes(freezes, None if window is None else parse_window(window, settings.timezone))


def _time(moment: datetime) -> str:
    return f"{moment:%a %H:%M %Z}"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Consent, limits with what the flags allow, and when targets may begin.

    ``out``, ``detailed_exitcode`` and ``stills`` are those of ``msauto plan``, for ``--check``.
    """

    limits: Limits
    times: AllowedTimes
    attempt: Attempt
    yes: bool = False
    check: bool = False
    keep_going: bool = False
    out: str | None = None
    detailed_exitcode: bool = False
    stills: int = 0
    override_freeze: str | None = None
    lock_timeout: float = 0.0
    watch: RunWatch = field(default_factory=RunWatch)


def _parse_window(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    try:
        return None if text is None else str(parse_window(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not a valid window: {error}", ctx=context, param=option) from None


def plan_flags(condition: str = "") -> tuple[Decorator, ...]:
    """Return the flags of a plan that is not applied; ``condition`` is put before their help."""
    return (
        click.option(
            "--out",
            type=click.Path(dir_okay=False),
            metavar="FILE",
            help=f"{condition}Write the plan to FILE, for msauto apply FILE; - is stdout.",
        ),
        click.option("--detailed-exitcode", is_flag=True, help=f"{condition}Exit with 2 if there are changes."),
    )


forget_pending_flag = click.option(
    "--forget-pending", is_flag=True, help="Drop what earlier runs left pending (handlers, commands in doubt)."
)
keep_going_flag = click.option(
    "--keep-going", is_flag=True, help="Leave out targets in error; the run then ends with 3."
)
window_flag = click.option(
    "--window",
    callback=_parse_window,
    metavar="HH:MM-HH:MM",
    help="Begin targets only in these hours, such as 23:00-05:30, in the time zone `tz` of msauto.toml.",
)
_OPTIONS: tuple[Decorator, ...] = (
    click.option("-y", "--yes", is_flag=True, help="Do not ask."),
    click.option("--check", is_flag=True, help="Plan only: the same as msauto plan."),
    *plan_flags("With --check: "),
    keep_going_flag,
    click.option("--allow-delete", type=click.IntRange(0), metavar="N", help="Assets that the run may delete."),
    click.option("--allow-remove", type=click.IntRange(0), metavar="N", help="List items that the run may lose."),
    click.option("--allow-requests", type=click.IntRange(0), metavar="N", help="Requests that the run may send."),
    click.option("--override-freeze", metavar="REASON", help="Apply during a freeze; the reason is recorded."),
    click.option(
        "--lock-timeout", callback=parse_seconds, default="0", metavar="SECONDS", help="Wait for another run."
    ),
    window_flag,
)


def run_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags of a run as one ``run_options`` value; apply it below ``shared_flags``."""

    @functools.wraps(function)
    def command(*, flags: Flags, watch: RunWatch, **own: Any) -> Any:
        given = {name: own.pop(name) for name in _NAMES}
        _check(given)
        attempt = click.get_current_context().find_object(Attempt)
        assert attempt is not None
        attempt.flags, attempt.check = flags, given["check"]
        flags = with_output(flags, given["out"])
        flags = _of_past_run(flags, own.pop("run", None), own.pop("resumed", None))
        window, *allowed = (given.pop(name) for name in _CONVERTED)
        run_options = RunOptions(
            limits=allow(flags.settings.limits, *allowed),
            times=allowed_times(flags, window, override_freeze=given["override_freeze"]),
            attempt=attempt,
            watch=watch,
            **given,
        )
        return function(flags=flags, run_options=run_options, **own)

    return with_options(command, _OPTIONS)


def _of_past_run(flags: Flags, undone: str | None, resumed: str | None) -> Flags:
    """Return the flags to undo a run, or to plan its rest; under its settings, unless playbooks are named."""
    given, past, typed = flags.given, None, flags.given.config
    if resumed is not None:
        details = find_run(flags, resumed)
        past = None if given.playbooks else details
        given = options_of(details, given) if past else structs.replace(given, resume=details.summary.run)
    if undone is not None or given.undo:
        past = find_run(flags, undone if undone is not None else given.undo, to_undo=True)
        given = structs.replace(given, undo=past.summary.run)
    flags = replace(flags, given=given)
    return flags if past is None or typed is not None else with_settings_of(past, flags)


_CONVERTED = ("window", "allow_delete", "allow_remove", "allow_requests")
_NAMES = (*_CONVERTED, "yes", "check", "keep_going", "out", "detailed_exitcode", "override_freeze", "lock_timeout")


def _check(given: Mapping[str, Any]) -> None:
    """Refuse flags that contradict each other."""
    if given["override_freeze"] is not None and not given["override_freeze"].strip():
        raise click.BadParameter("the reason is empty", param_hint="--override-freeze")
    if not given["check"] and (given["out"] is not None or given["detailed_exitcode"]):
        raise click.UsageError("--out and --detailed-exitcode need --check: the plan is not applied")


def with_output(flags: Flags, out: str | None) -> Flags:
    """Return the flags for a plan written to ``out``: on stdout there is only the plan file."""
    if out != STDOUT:
        return flags
    if flags.format not in {"text", "json"}:
        raise MsautoError(
            f"--out - and --format {flags.format} would both write to stdout",
            remedy="name a file with --out FILE, or remove --format",
        )
    return replace(flags, format="json")


def allow(limits: Limits, delete: int | None, remove: int | None, requests: int | None) -> Limits:
    """Return the limits with what the flags allow for this run."""
    return replace(
        limits,
        delete_assets=max(delete or 0, limits.delete_assets),
        allow_remove=limits.allow_remove if remove is None else remove,
        requests=limits.requests if requests is None else requests,
    )
