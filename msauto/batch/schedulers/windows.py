"""A task of the Task Scheduler of Windows ([MS-TSCH], «XML Schema», version 1.2)."""

from __future__ import annotations

from datetime import timedelta
from importlib.resources import files
from subprocess import list2cmdline
from xml.sax.saxutils import escape

from msauto.batch.schedulers.scheduled_start import ScheduledStart, SchedulerFiles
from msauto.playbook.settings.allowed_values import DAYS, Day

_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def windows_files(start: ScheduledStart) -> SchedulerFiles:
    """Return the XML of the task."""
    schedule, limit = start.batch.schedule, start.time_limit()
    text = (
        (files(__package__) / "task.xml")
        .read_text(encoding="utf-8")
        .format(
            name=start.batch.name,
            at=schedule.at,
            delay=f"      <RandomDelay>{_span(schedule.spread)}</RandomDelay>\n" if schedule.spread else "",
            days=_days(schedule.days),
            late="false" if start.batch.window is None else "true",
            limit=_span(limit or timedelta()),  # PT0S means unlimited
            program=escape(start.program[0]),
            arguments=escape(list2cmdline(start.argv[1:])),
            folder=escape(str(start.file.parent)),
        )
    )
    file = f"{start.unit}.xml"
    install = f"Register-ScheduledTask -TaskName {start.unit} -Xml (Get-Content -Raw -Encoding UTF8 {file})"
    zone = f"the time zone of the machine must be {schedule.timezone}: a task has none of its own"
    paths = "the paths are those of this machine: print the task where it runs"
    return SchedulerFiles({file: text}, (install,), (zone, paths))


def _days(days: tuple[Day, ...]) -> str:
    if len(days) == len(DAYS):
        return "      <ScheduleByDay>\n        <DaysInterval>1</DaysInterval>\n      </ScheduleByDay>\n"
    named = "".join(f"          <{_NAMES[DAYS.index(day)]} />\n" for day in days)
    return (
        "      <ScheduleByWeek>\n        <WeeksInterval>1</WeeksInterval>\n        <DaysOfWeek>\n"
        f"{named}        </DaysOfWeek>\n      </ScheduleByWeek>\n"
    )


def _span(span: timedelta) -> str:
    return f"PT{span.total_seconds():.0f}S"
