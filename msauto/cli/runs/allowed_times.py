"""When a run may begin a target: not in a freeze of the settings, and only within ``--window``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import click
from msgspec import structs

from msauto.cli.flags import Flags
from msauto.ledger import Ledger
from msauto.model.plan import Plan, Refusal
from msauto.playbook.settings.freezes import freeze_at
from msauto.playbook.settings.settings import Freeze
from msauto.playbook.settings.windows import Window, parse_window


@dataclass(frozen=True, slots=True)
class AllowedTimes:
    """The freezes that hold, and the window of the run, if it has one."""

    freezes: tuple[Freeze, ...] = ()
    window: Window | None = None

    def refusals(self, now: datetime) -> Iterator[Refusal]:
        """Yield why no target is to be begun now."""
        frozen = freeze_at(self.freezes, now)
        if frozen is not None:
            yield Refusal("freeze", str(frozen), _at(now.astimezone(frozen.since.tzinfo)), "--override-freeze REASON")
        window = self.window
        if window is not None and not window.is_open(now):
            clock = _at(window.clock(now))
            yield Refusal("window", f"{window} ({window.timezone or 'the time zone of this machine'})", clock, _WITHIN)


_WITHIN = "run it within the window, or without --window"


def _at(moment: datetime) -> str:
    return f"{moment:%a %H:%M %Z}"


def times_of(flags: Flags, window: str | None, *, override_freeze: str | None = None) -> AllowedTimes:
    """Return when targets may be begun; ``window`` as it was given, and its zone is that of the settings."""
    settings = flags.settings
    freezes = () if override_freeze else settings.freezes
    return AllowedTimes(freezes, None if window is None else parse_window(window, settings.timezone))


def with_times(plan: Plan, times: AllowedTimes, now: datetime) -> Plan:
    """Return a plan that changes something with why it is not applied now."""
    return structs.replace(plan, refusals=(*plan.refusals, *times.refusals(now))) if plan.requests else plan


def with_state(plan: Plan, flags: Flags, ledger: Ledger) -> Plan:
    """Return a plan with the refusal of an empty ledger, where the settings require one."""
    settings = flags.settings
    if not settings.require_state or not ledger.empty:
        return plan
    remedy = "mount the folder that holds it; for the very first run, set `require = false` under [state]"
    refusal = Refusal("state", str(settings.file), str(flags.state_dir), remedy)
    return structs.replace(plan, refusals=(*plan.refusals, refusal))


def _window(context: click.Context, option: click.Parameter, text: str | None) -> str | None:
    try:
        return None if text is None else str(parse_window(text))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no window: {error}", ctx=context, param=option) from None


window_flag = click.option(
    "--window",
    callback=_window,
    metavar="HH:MM-HH:MM",
    help="Begin targets only in these hours, such as 23:00-05:30; `tz` of msauto.toml is their zone.",
)
