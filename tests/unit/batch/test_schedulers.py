"""What is printed for each scheduler: recorded texts, and the scheduler's own tools where they are installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import jsonschema
import pytest
import yaml
from lxml import etree

from msauto.plugins.batch.batch_file import load_batch
from msauto.plugins.batch.schedule import Schedule, clock_changes
from msauto.plugins.batch.schedulers import (
    SCHEDULERS,
    ScheduledStart,
    SchedulerFiles,
    calendar,
    scheduler_files,
)

HERE = Path(__file__).parent
FULL = """
name: nightly
schedule: {at: "02:30", days: [mon, sat, sun], tz: Europe/Oslo, spread: 10m}
window: {from: "23:00", to: "05:30"}
heartbeat: {credential: heartbeat}
metrics: {file: /var/lib/node_exporter/msauto.prom}
reports: {dir: reports}
notify: [{to: {credential: chat}, on: [failed]}]
jobs:
  titles: {playbooks: site.yml, max_time: 90m}
  rest: {playbooks: site.yml, max_time: 30m}
"""
LEAST = """
name: often
schedule: {at: "03:10", tz: UTC}
jobs: {all: {playbooks: site.yml}}
"""


def start(
    folder: Path, text: str = FULL, program: str = "/opt/msauto/bin/msauto"
) -> ScheduledStart:
    folder.mkdir(exist_ok=True)
    (folder / "batch.yml").write_text(text, encoding="utf-8")
    return ScheduledStart(
        load_batch(str(folder / "batch.yml")), (program,), Path("/home/ops/.local/state")
    )


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("text", [FULL, LEAST], ids=["full", "least"])
def test_printed_files(
    name: str, text: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    printed = scheduler_files(name, start(tmp_path, text), "units")
    shown = ""
    for file, content in printed.files.items():
        shown += f"=== {file}\n{content}"
    notes, install = printed.install.split("To install, in units:\n")
    shown += re.sub(r"(?m)^Note: (.*)\.$", r"=== \1", notes)
    shown += re.sub("(?m)^  ", "=== ", install)
    form = request.node.callspec.id.partition("-")[0]
    path = HERE / "golden" / f"{name}-{form}.txt"
    shown = shown.replace(str(tmp_path), "/srv/automation")
    if os.environ.get("MSAUTO_WRITE_CASES"):
        path.write_text(shown, encoding="utf-8")
    assert shown == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "seconds"),
    [
        ("", None),
        ("max_time: 90m", 9000),
        ("max_time: 9h", 27000),  # the window is shorter
    ],
)
def test_time_limit(keys: str, seconds: int | None, tmp_path: Path) -> None:
    window = 'window: {from: "23:00", to: "05:30"}\n' if "9h" in keys else ""
    text = LEAST.replace("site.yml", f"site.yml, {keys}" if keys else "site.yml") + window
    limit = start(tmp_path, text).time_limit()
    assert (limit.total_seconds() if limit else None) == seconds


# systemd ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("NOT TESTED: systemd-analyze is not installed; apt-get install systemd")
    return found


def run(*argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0", "TZ": "UTC"}
    return subprocess.run(
        argv, capture_output=True, text=True, check=False, env=environment, timeout=60
    )


def written(folder: Path, printed: SchedulerFiles) -> list[str]:
    for name, text in printed.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [str(folder / name) for name in printed.files]


@pytest.mark.parametrize("text", [FULL, LEAST], ids=["full", "least"])
@pytest.mark.parametrize("odd", ["automation", 'my "auto" %h $HOME'])
def test_systemd_accepts_the_units(analyze: str, text: str, odd: str, tmp_path: Path) -> None:
    paths = written(
        tmp_path, scheduler_files("systemd", start(tmp_path / odd, text, sys.executable))
    )
    done = run(analyze, "verify", "--man=no", *paths)
    assert (done.returncode, done.stderr) == (
        0,
        "",
    )  # it exits with 0 on unknown keys, and reports them


def test_the_services_are_hardened(analyze: str, tmp_path: Path) -> None:
    for home in (tmp_path / "a", Path("/root/batch-of-a-test")):
        kept = start(tmp_path / "a")
        files = scheduler_files(
            "systemd",
            kept if home == tmp_path / "a" else ScheduledStart(kept.batch, (f"{home}/m",), home),
        )
        for path in written(tmp_path, files):
            if path.endswith(".service"):
                output = run(analyze, "security", "--offline=yes", path).stdout
                exposure = re.search(r"Overall exposure level for .*: ([\d.]+)", output)
                assert exposure
                assert float(exposure[1]) <= 2.0


def test_units_refer_to_units_that_are_printed(tmp_path: Path) -> None:
    printed = scheduler_files("systemd", start(tmp_path))
    text = "\n".join(printed.files.values())
    named = re.findall(r"^(?:OnFailure|Unit)=(.+)$", text, re.MULTILINE)
    assert named
    assert set(named) <= set(printed.files)
    assert "Persistent=true" in text
    assert "Persistent" not in "\n".join(
        scheduler_files("systemd", start(tmp_path, LEAST)).files.values()
    )


ZONES = (
    "Europe/Oslo", "Europe/London", "America/New_York", "America/Havana", "America/Santiago", "America/Nuuk",
    "Africa/Cairo", "Africa/Casablanca", "Asia/Beirut", "Asia/Jerusalem", "Australia/Lord_Howe", "Pacific/Chatham",
)  # fmt: skip


@pytest.mark.scale
@pytest.mark.parametrize("zone", ZONES)
def test_the_timer_elapses_at_the_starts_of_the_schedule(analyze: str, zone: str) -> None:
    days = change_days(zone)
    assert days
    for at in (time(0, 15), time(2, 15), time(2, 45), time(23, 45)):
        if (zone, at) == ("Pacific/Chatham", time(2, 45)):
            continue  # systemd 252 fails for this gap from 02:45 to 03:45: "Resource deadlock avoided"
        schedule = Schedule(at, zone)
        for day in days:
            first = datetime.combine(day, time(), UTC) - timedelta(days=2)
            until = first + timedelta(days=4)
            found = {
                each
                for event in calendar(schedule)
                for each in elapses(analyze, event, first)
                if each <= until
            }
            assert sorted(found) == [*schedule.starts_between(first, until)], (at, day)


def change_days(zone: str) -> list[date]:
    """The days of a year on which a time of the day is skipped or repeated."""
    times = (time(hour, minute) for hour in range(24) for minute in (15, 45))
    year = (date(2027, 1, 1), date(2027, 12, 31))
    return sorted(
        {change.day for at in times for change in clock_changes(Schedule(at, zone), *year)}
    )


def elapses(analyze: str, event: str, base: datetime) -> Iterator[datetime]:
    if re.match(r"\d{4}", event) and not abs(
        date.fromisoformat(event[:10]) - base.date()
    ) < timedelta(days=10):
        return  # another night
    done = run(
        analyze, "calendar", f"--base-time={base:%Y-%m-%d %H:%M:%S} UTC", "--iterations=6", event
    )
    assert done.returncode == 0, done.stderr
    for text in re.findall(
        r"(?:Next elapse|Iter. #\d+|\(in UTC\)): \w{3} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC",
        done.stdout,
    ):
        yield datetime.fromisoformat(text).replace(tzinfo=UTC)


# cron -------------------------------------------------------------------------------------------------------------

RECORD = """#!/bin/sh
{ pwd; printf '%s\\n' "$@"; env; } > "$(dirname "$0")/record"
"""


@pytest.mark.parametrize("odd", ["automation", "my 'auto' 100% $HOME"])
def test_the_crontab_line_works_with_the_environment_of_cron(odd: str, tmp_path: Path) -> None:
    program = tmp_path / "bin dir" / "msauto"
    program.parent.mkdir()
    program.write_text(RECORD, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (text,) = scheduler_files(
        "cron", start(tmp_path / odd, FULL.replace(", spread: 10m", ", spread: 1s"), str(program))
    ).files.values()
    line = text.splitlines()[-1]
    fields = line.split(" ", 5)
    assert fields[:5] == ["30", "2", "*", "*", "0,1,6"]
    assert not re.search(r"(?<!\\)%", fields[5])  # cron takes it for a line end
    command = fields[5].replace("\\%", "%")
    bare = ["env", "-i", "PATH=/usr/bin:/bin", "HOME=/", "/bin/sh", "-c", command]
    done = subprocess.run(bare, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    folder, *recorded = (program.parent / "record").read_text(encoding="utf-8").splitlines()
    assert folder == str(tmp_path / odd)
    assert recorded[:3] == ["batch", "run", str(tmp_path / odd / "batch.yml")]
    assert "XDG_STATE_HOME=/home/ops/.local/state" in recorded


# Kubernetes and Windows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [FULL, LEAST], ids=["full", "least"])
def test_the_cron_job_has_the_form_of_its_schema(text: str, tmp_path: Path) -> None:
    (manifest,) = scheduler_files("kubernetes", start(tmp_path, text)).files.values()
    data = yaml.safe_load(manifest)
    schema = json.loads((HERE / "schemas" / "cronjob.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(data)
    spec = data["spec"]
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert spec["concurrencyPolicy"] == "Forbid"
    assert pod["restartPolicy"] == "Never"
    assert spec["startingDeadlineSeconds"] == (10800 if text == FULL else 300)


@pytest.mark.parametrize("text", [FULL, LEAST], ids=["full", "least"])
def test_the_task_has_the_form_of_its_schema(text: str, tmp_path: Path) -> None:
    (task,) = scheduler_files("windows", start(tmp_path / "a & <b>", text)).files.values()
    schema = etree.XMLSchema(etree.parse(str(HERE / "schemas" / "task.xsd")))
    tree = etree.fromstring(task.encode())
    schema.assertValid(tree)
    spaces = {"t": "http://schemas.microsoft.com/windows/2004/02/mit/task"}
    assert tree.findtext(".//t:WorkingDirectory", namespaces=spaces) == str(tmp_path / "a & <b>")
    assert tree.findtext(".//t:StartWhenAvailable", namespaces=spaces) == (
        "true" if text == FULL else "false"
    )
