"""A line for a crontab. It needs no profile: cron starts it with a minimal environment."""

from __future__ import annotations

import shlex

from msauto.batch.schedulers.scheduled_start import ScheduledStart, SchedulerFiles
from msauto.playbook.settings.allowed_values import DAYS, Day


def cron_files(start: ScheduledStart) -> SchedulerFiles:
    """Return the crontab of one line."""
    schedule = start.batch.schedule
    days = days_of_week(schedule.days)
    when = f"{schedule.at.minute} {schedule.at.hour} * * {days}"
    wait = f'sleep "$(shuf -i 0-{schedule.spread.total_seconds():.0f} -n 1)" && ' if schedule.spread else ""
    ledger = "" if start.state_dir else f"XDG_STATE_HOME={shlex.quote(str(start.state_home))} "
    command = f"cd {shlex.quote(str(start.file.parent))} && {wait}{ledger}{shlex.join(start.argv)}"
    name = f"{start.unit}.crontab"
    text = f"# {start.unit}\nCRON_TZ={schedule.timezone}\n{when} {_escape(command)}\n"
    zone = f"only cronie knows CRON_TZ: with another cron, the time zone of the machine must be {schedule.timezone}"
    notes = (zone, "cron starts nothing later that it missed")
    return SchedulerFiles({name: text}, (f"(crontab -l; cat {name}) | crontab -",), notes)


def days_of_week(days: tuple[Day, ...]) -> str:
    """Return days as the fifth field of cron, in which 0 is Sunday."""
    return "*" if len(days) == len(DAYS) else ",".join(sorted(str((DAYS.index(day) + 1) % 7) for day in days))


def _escape(command: str) -> str:
    """Escape the percent signs, which cron takes for line ends."""
    return command.replace("%", "\\%")
