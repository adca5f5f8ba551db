"""A batch file becomes values, and its check finds what will go wrong at night."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from msauto.errors import InputError
from msauto.playbook.input_files import Files
from msauto.playbook.variables import read_extra
from msauto.plugins.batch.batch_file import BatchFile, check_batch, load_batch, read_batch
from msauto.secrets.redaction import HIDDEN
from msauto.secrets.sources import holds_secret
from tests.tables import table

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
INVENTORY = (
    "all: {children: {playout: {hosts: {a: {server: {url: 'http://a'}, database: NEWS}}}}}\n"
)
HEAD = 'name: nightly\nschedule: {at: "03:10", tz: Europe/Oslo}\n'
PLAY = "- hosts: all\n  tasks: [{asset: {title: A, fields: {comment: x}}}]\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "msauto.toml").write_text('inventory = "inventory.yml"\n', encoding="utf-8")
    (tmp_path / "inventory.yml").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "site.yml").write_text(PLAY, encoding="utf-8")
    return tmp_path


def write(folder: Path, text: str) -> str:
    file = folder / "batch.yml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def load(folder: Path, text: str) -> BatchFile:
    return load_batch(write(folder, text))


def found(folder: Path, text: str) -> list[str]:
    """Return the problems of a check, each as its line: level, line, message."""
    lines = []
    read = read_batch(write(folder, text))
    for each in check_batch(read, {"PATH": "/usr/bin:/bin"}, NOW, str(folder / "state")):
        assert each.place
        lines.append(f"{each.level} {Path(each.place.file).name}:{each.place.line}: {each.message}")
    return [line.replace(f"{folder}/", "") for line in lines]


def refused(folder: Path, text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load(folder, text)
    problems = caught.value.problems
    assert all(problem.place and problem.place.line for problem in problems)
    return [problem.message for problem in problems]


def test_what_is_wrong_with_the_file_hides_nothing_of_its_jobs(folder: Path) -> None:
    (folder / "bad.yml").write_text(PLAY.replace("fields", "field"), encoding="utf-8")
    text = """
name: nightly
colour: red
schedule: {at: "03:10", tz: UTC}
defaults: {limit: nosuch, retry: {tims: 3}}
metrics: {file: msauto.txt}
jobs:
  one: {playbooks: nosuch.yml}
  two: {playbooks: bad.yml, forks: many}
  three: {playbook: bad.yml}
  four: {playbooks: site.yml, needs: [three, zz]}
  five: {plan: nosuch.json, optional: maybe}
"""
    told = found(folder, text)
    lines = [line.split(" ", 1)[1] for line in told]
    numbers = [int(line.split(":")[1]) for line in lines if line.startswith("batch")]
    assert numbers == sorted(numbers)
    assert {3, 5, 8, 9, 10, 11, 12} <= {*numbers}
    for part in (
        "bad.yml:2: unknown key 'field'",
        "batch.yml:5: unknown key 'tims'",
        "batch.yml:8: 'nosuch.yml' not found",
        "batch.yml:11: 'zz' is not an earlier job",
        "batch.yml:12: 'nosuch.json' does not exist yet",
    ):
        assert any(line.startswith(part) for line in lines), (part, lines)


def test_what_is_wrong_beside_the_jobs_hides_nothing_of_them(folder: Path) -> None:
    told = found(folder, f"{HEAD}metrics: {{file: msauto.txt}}\njobs: {{a: {{playbooks: b.yml}}}}")
    assert [line.split(" ")[1] for line in told] == ["batch.yml:3:", "batch.yml:4:"]


@pytest.mark.parametrize("wrong", ["do: aply", "extra_vars: 3", "limit: [a]"])
def test_a_wrong_key_leads_to_no_further_errors(folder: Path, wrong: str) -> None:
    (folder / "site.yml").write_text(PLAY.replace("x}", "'{{ season }}'}"), encoding="utf-8")
    job = "playbooks: site.yml, drift: {after: 2}"
    told = found(folder, f"{HEAD}jobs: {{a: {{{job}, {wrong}}}}}\n")
    told += found(folder, f"{HEAD}defaults: {{{wrong}}}\njobs: {{a: {{{job}}}}}\n")
    assert [line.split(" ")[1] for line in told] == ["batch.yml:3:", "batch.yml:3:"]


def test_values(folder: Path) -> None:
    batch = load(
        folder,
        """
name: nightly
schedule: {at: "03:10", days: [sun, mon], tz: Europe/Oslo, spread: 10m}
window: {from: "23:00", to: "05:30"}
heartbeat: {env: URL}
notify: [{to: "mailto://ops@example.org", on: [failed]}, {to: {credential: chat}, on: [ok]}]
defaults: {forks: 4, limit: playout, extra_vars: {season: 3}, do: plan}
jobs:
  titles: {playbooks: [site.yml, ../other.yml], forks: 8, max_time: 90m}
  reviewed: {plan: tonight.json, needs: [{titles: any}]}
""",
    )
    titles, reviewed = batch.jobs
    assert batch.schedule.days == ("mon", "sun")
    assert batch.schedule.spread == timedelta(minutes=10)
    assert str(batch.window) == "23:00-05:30"
    assert batch.credentials == ["chat"]
    assert titles.playbooks == (str(folder / "site.yml"), str(folder.parent / "other.yml"))
    assert (titles.args.forks, titles.args.limit, titles.args.do) == (8, "playout", "plan")
    assert titles.args.max_time == timedelta(minutes=90)
    assert titles.options["extra_vars"] == ('{"season": 3}',)
    assert titles.settings().inventories == (str(folder / "inventory.yml"),)
    assert reviewed.plan == str(folder / "tonight.json")
    assert (
        reviewed.args.forks,
        reviewed.args.limit,
        reviewed.args.do,
        reviewed.options["extra_vars"],
    ) == (
        4,
        None,
        None,
        (),
    )
    assert reviewed.args.needs == {"titles": "any"}


def test_secrets_of_variables_stay_secrets(folder: Path) -> None:
    text = "jobs: {a: {playbooks: site.yml, extra_vars: {word: !secret hemmelighet, list: [{x: 1.50, y: æ}]}}}\n"
    (job,) = load(folder, HEAD + text).jobs
    (text,) = job.options["extra_vars"]
    word, items = read_extra(text, Files())
    assert holds_secret(word.value)
    assert word.value == "hemmelighet"
    assert items.value == [{"x": 1.5, "y": "æ"}]


def test_settings_are_those_beside_the_playbook_first(folder: Path) -> None:
    (folder / "playbooks").mkdir()
    (folder / "playbooks" / "msauto.toml").write_text("forks = 3\n", encoding="utf-8")
    one, two = load(
        folder, HEAD + "jobs: {a: {playbooks: playbooks/x.yml}, b: {playbooks: site.yml}}\n"
    ).jobs
    assert (one.settings().forks, two.settings().forks) == (3, None)


@table("batch/wrong_files", "text", "message")
def test_wrong_files(text: str, message: str, folder: Path) -> None:
    (found_message,) = refused(folder, HEAD + text)
    assert found_message.startswith(message)


@table("batch/wrong_schedules", "schedule", "message")
def test_wrong_schedules(schedule: str, message: str, folder: Path) -> None:
    text = f"name: nightly\nschedule: {schedule}\njobs: {{a: {{plan: p}}}}\n"
    (found_message,) = refused(folder, text)
    assert found_message.startswith(message)


def test_a_secret_in_the_text_is_not_shown(folder: Path) -> None:
    text = (
        HEAD
        + 'notify: [{to: !secret "slack://A123456/B123456", on: [fail]}]\njobs: {a: {plan: p}}\n'
    )
    with pytest.raises(InputError) as caught:
        load(folder, text)
    assert HIDDEN in str(caught.value)
    assert "A123456" not in str(caught.value)


# The check --------------------------------------------------------------------------------------------------------

JOB = "jobs: {a: {playbooks: site.yml}}\n"


def test_a_good_batch(folder: Path) -> None:
    assert found(folder, HEAD + JOB) == []


def test_playbooks_are_validated_with_the_variables_and_limit_of_their_job(folder: Path) -> None:
    (folder / "bad.yml").write_text(PLAY.replace("comment", "comentt"), encoding="utf-8")
    (folder / "vars.yml").write_text(PLAY.replace(": x", ': "{{ season }}"'), encoding="utf-8")
    text = """jobs:
  a: {playbooks: [site.yml, bad.yml, nothere.yml]}
  b: {playbooks: vars.yml}
  c: {playbooks: vars.yml, extra_vars: {season: 3}}
  d: {playbooks: site.yml, limit: playot}
  e: {playbooks: site.yml, inventory: other.yml}
"""
    assert found(folder, HEAD + text) == [
        "error bad.yml:2: unknown key 'comentt'",
        "error batch.yml:4: 'nothere.yml' not found",
        "error batch.yml:7: unknown host or group 'playot'",
        "error batch.yml:8: 'other.yml' not found",
        "error vars.yml:2: undefined variable 'season'",
    ]


def test_tags_are_those_of_the_plan(folder: Path) -> None:
    (folder / "site.yml").write_text(
        PLAY.replace("- hosts", "- tags: [news]\n  hosts"), encoding="utf-8"
    )
    text = HEAD + "jobs:\n  a:\n    playbooks: [site.yml]\n    tags: news, promos\n"
    assert found(folder, text) == ["error batch.yml:6: no task has the tag 'promos'"]
    (folder / "promos.yml").write_text(
        PLAY.replace("- hosts", "- tags: [promos]\n  hosts"), encoding="utf-8"
    )
    assert found(folder, text.replace("[site.yml]", "[site.yml, promos.yml]")) == []


def test_a_job_without_an_inventory(folder: Path) -> None:
    (folder / "msauto.toml").unlink()
    assert found(folder, HEAD + JOB) == ["error batch.yml:3: the job a has no inventory"]


def test_wrong_settings_do_not_hide_the_rest(folder: Path) -> None:
    (folder / "msauto.toml").write_text("forks = 0\n", encoding="utf-8")
    skipped = "02:30 is skipped in Europe/Oslo: the batch starts at 03:00 CEST, which cron and Kubernetes may leave out"
    repeated = "02:30 is repeated in Europe/Oslo: the batch starts at the earlier, 02:30 CEST"
    assert found(folder, HEAD.replace("03:10", "02:30") + JOB) == [
        f"warning batch.yml:2: on Sun 2027-03-28, {skipped}",
        f"warning batch.yml:2: on Sun 2027-10-31, {repeated}",
        "error msauto.toml:1: forks must be at least 1, not 0",
    ]


def test_a_window_in_the_skipped_hour(folder: Path) -> None:
    text = HEAD.replace("03:10", "02:30") + 'window: {from: "02:15", to: "02:45"}\n'
    assert found(folder, text + JOB)[0].endswith(
        "the start would be at 03:00 CEST, outside of the window 02:15-02:45, so it is missed"
    )


def test_freezes(folder: Path) -> None:
    freezes = """
[[freeze]]
start = 2026-12-24
end = 2026-12-26
reason = "Christmas"
tz = "Europe/Oslo"
[[freeze]]
days = ["sun"]
from = "05:00"
to = "23:30"
tz = "Europe/Oslo"
"""
    settings = folder / "msauto.toml"
    settings.write_text(settings.read_text(encoding="utf-8") + freezes, encoding="utf-8")
    text = HEAD + 'window: {from: "23:00", to: "05:30"}\n' + JOB
    nights = "the 365 nights until 2027-11-20"
    christmas = "first on Thu 2026-12-24: 2026-12-24 00:00 to 2026-12-27 00:00 CET (Christmas)"
    sundays = "first on Sun 2026-11-22: Sun 05:00 to Sun 23:30 CET"
    assert found(folder, text) == [
        f"warning batch.yml:2: 3 of {nights} start in a freeze of msauto.toml, {christmas}",
        f"warning batch.yml:2: 52 of {nights} run into a freeze of msauto.toml, {sundays}",
    ]
    never = text.replace("tz: Europe/Oslo}", "tz: Europe/Oslo, days: [sun]}").replace(
        "03:10", "05:10"
    )
    assert (
        "error batch.yml:2: every start is in a freeze, so the batch never changes anything"
        in found(folder, never)
    )


def test_saved_plans(folder: Path) -> None:
    (folder / "bad.json").write_text("{", encoding="utf-8")
    (folder / "old.json").write_text('{"format": "other"}', encoding="utf-8")
    text = """jobs:
  a: {plan: nothere.json}
  b: {plan: nothere.json, optional: true}
  c: {plan: bad.json}
  d: {plan: old.json}
"""
    missing, bad, old = found(folder, HEAD + text)
    assert missing == "warning batch.yml:4: 'nothere.json' does not exist yet"
    assert bad.startswith("error batch.yml:6: cannot read 'bad.json'")
    assert old.startswith("error old.json")


def test_folders_that_cannot_be_written(folder: Path) -> None:
    (folder / "file").write_text("", encoding="utf-8")
    text = "metrics: {file: metrics/x.prom}\nreports: {dir: file/reports}\n"
    assert found(folder, HEAD + text + JOB) == [
        "error batch.yml:3: folder 'metrics' not found",
        "error batch.yml:4: the folder of the reports 'file/reports' cannot be written: 'file' is a file",
    ]


def test_a_notice_that_cannot_be_sent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{HEAD}notify: [{{to: 'mailto://a@b', on: [failed]}}]\njobs: {{a: {{playbooks: site.yml}}}}\n"
    assert found(folder, text) == []
    monkeypatch.setattr("msauto.plugins.batch.batch_file.find_spec", lambda _: None)
    assert found(folder, text) == [
        "error batch.yml:3: no notice can be sent: the package apprise is not installed",
    ]
    assert found(folder, text.replace("mailto://a@b", "SMTPs://mail?from=a&to=b")) == []
