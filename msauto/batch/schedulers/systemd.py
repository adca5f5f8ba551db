"""A service, its timer, and a service that records a failure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from msauto.batch.schedule import Schedule, clock_changes
from msauto.batch.schedulers.scheduled_start import ScheduledStart, SchedulerFiles

_GAPS_FROM, _GAPS_TO = date(2026, 1, 1), date(2037, 12, 31)  # the rules of time zones are known no further

_HARDENING = """\
CapabilityBoundingSet=
DevicePolicy=closed
KeyringMode=private
LockPersonality=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateMounts=yes
PrivateTmp=yes
PrivateUsers=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome={home}
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
RestrictAddressFamilies={families}
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
UMask=0027
"""


def systemd_files(start: ScheduledStart) -> SchedulerFiles:
    """Return the units; they go to ``/etc/systemd/system``."""
    unit = start.unit
    files = {
        f"{unit}.service": _service(start),
        f"{unit}.timer": _timer(start),
        f"{unit}-failed.service": _failed(start),
    }
    readable = f"the user msauto must be able to read {start.file.parent} and {start.program[0]}"
    return SchedulerFiles(files, tuple(_install(start, tuple(files))), (readable,))


def _service(start: ScheduledStart) -> str:
    limit = start.time_limit()
    lines = [
        "[Unit]",
        f"Description=msauto batch {start.batch.name}",
        "Wants=network-online.target",
        "After=network-online.target",
        f"OnFailure={start.unit}-failed.service",
        "",
        "[Service]",
        "Type=oneshot",
        "NotifyAccess=main",
        "User=msauto",
        "Group=msauto",
        f"WorkingDirectory={_escape(str(start.file.parent))}",
        f"ExecStart={' '.join(map(_argument, start.argv))}",
        "StateDirectory=msauto",
        "StateDirectoryMode=0750",
        "Environment=XDG_STATE_HOME=%S",
        f"EnvironmentFile=-/etc/msauto/{start.batch.name}.env",
        *(f"LoadCredential={name}:/etc/credstore/{name}" for name in start.credentials()),
        *(f'ReadWritePaths="-{_escape(str(folder))}"' for folder in start.written_folders),
        f"TimeoutStartSec={'infinity' if limit is None else _seconds(limit)}",
        "TimeoutStopSec=10min",
        "KillMode=mixed",
        f"SyslogIdentifier={start.unit}",
    ]
    families = "AF_UNIX AF_INET AF_INET6"
    return "\n".join(lines) + "\n" + _HARDENING.format(home=_home(start), families=families)


def _home(start: ScheduledStart) -> str:
    """Return whether homes are hidden: not if the batch or msauto is in one."""
    homes = (Path("/home"), Path("/root"), Path("/run/user"))
    paths = (start.file, Path(start.program[0]))
    return "read-only" if any(path.is_relative_to(home) for path in paths for home in homes) else "yes"


def _timer(start: ScheduledStart) -> str:
    schedule = start.batch.schedule
    lines = [
        "[Unit]",
        f"Description=Start msauto batch {start.batch.name}",
        "",
        "[Timer]",
        *(f"OnCalendar={each}" for each in calendar(schedule)),
        "AccuracySec=1s",
        *([f"RandomizedDelaySec={_seconds(schedule.spread)}"] if schedule.spread else []),
        *(["Persistent=true"] if start.batch.window else []),
        f"Unit={start.unit}.service",
        "",
        "[Install]",
        "WantedBy=timers.target",
    ]
    return "\n".join(lines) + "\n"


def calendar(schedule: Schedule) -> Iterator[str]:
    """Yield the calendar events of a schedule. systemd skips a time in a gap, so each gap has an event of its own."""
    days = "" if len(schedule.days) == 7 else ",".join(day.title() for day in schedule.days) + " "
    yield f"{days}*-*-* {schedule.at:%H:%M}:00 {schedule.timezone}"
    for change in clock_changes(schedule, _GAPS_FROM, _GAPS_TO):
        if change.kind == "skipped":
            yield f"{change.start.astimezone(schedule.zone):%Y-%m-%d %H:%M}:00 {schedule.timezone}"


def _failed(start: ScheduledStart) -> str:
    words = f"batch {start.batch.name} failed: journalctl -u {start.unit}.service"
    lines = [
        "[Unit]",
        f"Description=Record a failure of msauto batch {start.batch.name}",
        "",
        "[Service]",
        "Type=oneshot",
        "DynamicUser=yes",
        f'ExecStart=/usr/bin/logger --priority user.err --tag {start.unit} "{words}"',
        "PrivateNetwork=yes",
    ]
    return "\n".join(lines) + "\n" + _HARDENING.format(home="yes", families="AF_UNIX")


def _install(start: ScheduledStart, names: tuple[str, ...]) -> Iterator[str]:
    yield "sudo useradd --system --home-dir /var/lib/msauto --shell /usr/sbin/nologin msauto"
    if start.credentials():
        yield "sudo install -d -m 700 /etc/credstore"
    for name in start.credentials():
        yield f"sudo install -m 600 /dev/stdin /etc/credstore/{name}   # type the secret, then Ctrl-D"
    yield f"sudo install -m 644 {' '.join(names)} /etc/systemd/system/"
    yield "sudo systemctl daemon-reload"
    yield f"sudo systemctl enable --now {start.unit}.timer"


def _seconds(span: timedelta) -> str:
    return f"{span.total_seconds():g}s"


def _escape(text: str) -> str:
    """Escape the specifiers of systemd."""
    return text.replace("%", "%%")


def _argument(text: str) -> str:
    """Quote an argument of ExecStart."""
    escaped = _escape(text).replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{escaped}"' if any(sign in text for sign in " \t'\"\\;") else escaped
