"""msauto.toml is obeyed: defaults, limits, freezes, a required ledger."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from msauto.concurrency import SystemClock
from msauto.simulator import Simulator
from tests.cli.command_line import Desk
from tests.tables import table

INV = ("-i", "inventory.yml")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday
DELETE = {"asset": {"title": "Promo 1", "state": "absent", "with_links": True}}


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemClock, "now", lambda _: NOON)


def test_defaults_beside_the_playbook(desk: Desk, sim: Simulator) -> None:
    desk.inventory({"studio-a": {"server": {"url": desk.url}, "database": "NEWS"}}, name="house/hosts.yml")
    desk.write("house/msauto.toml", 'inventory = "hosts.yml"\nforks = 1\nstate_dir = "ledger"\n')
    desk.comment("new", name="house/play.yml")
    sourced = desk.run("apply", "--yes", "house/play.yml")
    assert sourced.code == 0, sourced
    assert (desk.folder / "house/ledger/ledger.sqlite").is_file()
    assert not desk.state.exists()


def test_a_command_without_a_playbook_takes_the_usual_one(desk: Desk, sim: Simulator) -> None:
    for words in ("validate", "plan -i inventory.yml", "apply --yes -i inventory.yml"):
        desk.run(*words.split()).one_error(
            "no playbook is named", "set `playbook` in msauto.toml", "playbooks/site.yml"
        )
    desk.comment("usual", name="playbooks/site.yml")
    assert '"usual"' in desk.run("plan", *INV).out
    desk.comment("named", name="house/tonight.yml")
    desk.write("msauto.toml", 'playbook = ["house/tonight.yml"]\ninventory = "inventory.yml"\n')
    for words in ("validate", "plan", "apply --yes"):
        assert desk.run(*words.split()).code == 0
    assert sim.state.clip("EP001").home.fields["comment"] == "named"


def test_flags_win_over_settings(desk: Desk) -> None:
    desk.write("msauto.toml", 'inventory = "nowhere.yml"\nstate_dir = "wrong"\n')
    desk.comment("new")
    assert desk.run("apply", "--yes", *INV, "--state-dir", "right", "play.yml").code == 0
    assert (desk.folder / "right/ledger.sqlite").is_file()
    assert not (desk.folder / "wrong").exists()


def test_settings_from_elsewhere(desk: Desk) -> None:
    desk.write("else/where.toml", 'inventory = "../inventory.yml"\n')
    desk.comment("new")
    assert desk.run("plan", "play.yml").code == 1
    assert desk.run("plan", "play.yml", "--config", "else/where.toml").code == 0


def test_the_ledger_is_at_home(desk: Desk) -> None:
    desk.comment("new")
    assert desk.run("apply", "--yes", *INV, "play.yml").code == 0
    assert (desk.state / "msauto/ledger.sqlite").is_file()
    desk.environment.update(XDG_STATE_HOME="", HOME=str(desk.folder / "home"))
    assert desk.run("apply", "--yes", *INV, "play.yml").code == 0
    assert (desk.folder / "home/.local/state/msauto/ledger.sqlite").is_file()
    assert desk.run("apply", "--yes", *INV, "play.yml", "--state-dir=~/here").code == 0
    assert (desk.folder / "home/here/ledger.sqlite").is_file()


@table("cli/limits", "settings", "flags", "code")
def test_limits(desk: Desk, sim: Simulator, settings: str, flags: tuple[str, ...], code: int) -> None:
    desk.write("msauto.toml", settings)
    desk.play(DELETE)
    sourced = desk.run("apply", "--yes", *flags, *INV, "play.yml")
    assert (sourced.code, len(sim.writes())) == (code, 0 if code else 1), sourced


# Which file ------------------------------------------------------------------------------------------------------

PROTECTED = 'inventory = "inventory.yml"\nprotected = ["Promos/*"]\nstate_dir = "ledger"\n'
DELETING = ("--yes", "--allow-delete", "1")


@pytest.fixture
def inner(desk: Desk) -> Desk:
    """A desk in `playbooks` of a repository that `msauto init` makes: the settings are in the folder above."""
    desk.write("msauto.toml", PROTECTED)
    desk.play(DELETE, name="playbooks/play.yml")
    return Desk(desk.folder / "playbooks", desk.url, environment={"XDG_STATE_HOME": str(desk.state)})


def test_the_settings_above_the_playbook(desk: Desk, inner: Desk, sim: Simulator, tmp_path: Path) -> None:
    elsewhere = Desk(tmp_path / "elsewhere")
    (tmp_path / "elsewhere/.git").mkdir()
    starts = ((inner, "play.yml"), (desk, "playbooks/play.yml"), (elsewhere, str(inner.folder / "play.yml")))
    for start, playbook in starts:
        refused = start.run("apply", *DELETING, playbook)  # the inventory is that of the settings as well
        assert (refused.code, sim.writes()) == (4, []), refused
        refused.one_error("is protected by 'Promos/*'")
    assert (desk.folder / "ledger/ledger.sqlite").is_file()
    assert len(desk.run("history", "--all", "--format", "json").json) == 3
    assert not (inner.folder / "ledger").exists()
    assert inner.run("apply", *DELETING, *INV, "play.yml", "--config", "../../none.toml").code == 1


@pytest.mark.parametrize(
    ("marked", "code"), [(".git", 4), ("playbooks/.git", 0)], ids=["the same repository", "another repository"]
)
def test_settings_of_another_repository_do_not_apply(
    desk: Desk, inner: Desk, sim: Simulator, marked: str, code: int
) -> None:
    (desk.folder / marked).mkdir()
    assert inner.run("apply", *DELETING, *INV, "play.yml").code == code
    assert len(sim.writes()) == (0 if code else 1)


def test_two_settings_files(desk: Desk, inner: Desk, sim: Simulator) -> None:
    inner.write("msauto.toml", "")
    for start, playbook, found, other in (
        (inner, "play.yml", "msauto.toml", "../msauto.toml"),
        (desk, "playbooks/play.yml", "playbooks/msauto.toml", "msauto.toml"),
    ):
        refused = start.run("apply", *DELETING, "-i", str(inner.folder / "inventory.yml"), playbook)
        assert (refused.code, sim.writes()) == (1, []), refused
        refused.one_error(f"two settings files: {found} is the nearest, but {other} is above", "--config FILE")
    assert inner.run("apply", *DELETING, "play.yml", "--config", "../msauto.toml").code == 4
    inner.write("msauto.toml", "broken = ")
    (desk.folder / "msauto.toml").unlink()
    (desk.folder / "msauto.toml").symlink_to("playbooks/msauto.toml")  # the same file
    inner.run("plan", "play.yml").one_error("invalid TOML")
    (desk.folder / "playbooks/msauto.toml").unlink()
    assert inner.run("plan", "play.yml").code == 1  # a link that leads nowhere does not count as no settings


def test_the_settings_are_named(desk: Desk, inner: Desk) -> None:
    inner.comment("new", name="comment.yml")
    named = {"path": "../msauto.toml", "sha256": sha256(PROTECTED.encode()).hexdigest()}
    plan = inner.run("plan", "comment.yml", "--format", "json").json
    assert plan["settings"] == named
    for form, shown in (
        ("text", "Settings: ../msauto.toml\n"),
        ("markdown", "`Settings: ../msauto.toml`</sub>"),
        ("html", "<span>Settings: ../msauto.toml</span>"),
    ):
        assert shown in inner.run("plan", "comment.yml", "-v", "--format", form).out
        assert shown in inner.run("apply", "--yes", "comment.yml", "-v", "--format", form).out
    assert "Settings" not in inner.run("plan", "comment.yml").out
    assert inner.run("apply", "--yes", "comment.yml", "--format", "json").json["settings"] == named
    path = str(desk.folder / "msauto.toml")
    inner.run("apply", *DELETING, "play.yml")
    runs = inner.run("history", "--format", "json").json
    assert {run["settings"] for run in runs} == {path}
    for run in runs:
        assert path in inner.run("history", run["run"]).out
    assert f"Settings: {path}" in inner.run("report", runs[1]["run"], "-v").out


# Freezes ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("noon")
@table("cli/freezes", "freeze", "holds")
def test_a_freeze(desk: Desk, sim: Simulator, freeze: str, holds: bool) -> None:
    desk.write("msauto.toml", f"[[freeze]]\n{freeze}\n")
    desk.comment("new")
    plan = desk.run("plan", *INV, "play.yml")
    assert (plan.code, "Refused: msauto.toml has a freeze" in plan.out) == (0, holds)
    refusals = desk.run("plan", *INV, "play.yml", "--format", "json").json["refusals"]
    assert [(each["code"], each["remedy"]) for each in refusals] == [("freeze", "--override-freeze REASON")] * holds
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert (sourced.code, len(sim.writes())) == ((4, 0) if holds else (0, 1))
    assert '"new"' in sourced.out  # the plan is shown first
    if holds:
        sourced.one_error("msauto.toml has a freeze", "--override-freeze REASON")
        sourced = desk.run("apply", "--yes", "--override-freeze", "Новости: breaking", *INV, "play.yml")
        assert (sourced.code, len(sim.writes())) == (0, 1)
        assert desk.run("history", "last", "--format", "json").json["notes"]["override_freeze"] == "Новости: breaking"
        assert "Новости: breaking" in desk.run("history", "last").out


@pytest.mark.usefixtures("noon")
def test_where_nothing_changes_nothing_is_frozen(desk: Desk, sim: Simulator) -> None:
    desk.write("msauto.toml", '[[freeze]]\nfrom = "11:00"\nto = "13:00"\ntz = "UTC"\n')
    desk.comment("new")
    sim.state.clip("EP001").home.fields["comment"] = "new"
    assert desk.run("apply", *INV, "play.yml").code == 0


def test_a_freeze_that_begins_on_the_way(desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    def now(_: object) -> datetime:
        return NOON if sim.writes() else NOON - timedelta(minutes=1)

    monkeypatch.setattr(SystemClock, "now", now)
    desk.write("msauto.toml", '[[freeze]]\nfrom = "12:00"\nto = "13:00"\ntz = "UTC"\n')
    desk.play(*({"asset": {"title": f"EP00{n}", "fields": {"comment": "new", "user_1": "x"}}} for n in (1, 2, 3)))
    sourced = desk.run("apply", "--yes", "-f", "1", *INV, "play.yml", "--format", "json")
    assert sourced.code == 3
    assert [t["result"]["outcome"] for t in sourced.json["targets"]] == ["changed", "not attempted", "not attempted"]
    assert "msauto.toml has a freeze" in sourced.json["targets"][1]["result"]["message"]
    assert len(sim.writes()) == 2  # what was begun is finished


# A ledger that must be there -----------------------------------------------------------------------------------------


def test_an_empty_ledger_is_refused(desk: Desk, sim: Simulator) -> None:
    desk.write("msauto.toml", "[state]\nrequire = true\n")
    desk.comment("new")
    plan = desk.run("plan", *INV, "play.yml")
    assert (plan.code, "Refused: the ledger in" in plan.out) == (0, True)
    assert desk.run("plan", *INV, "play.yml", "--format", "json").json["refusals"][0]["code"] == "state"
    for form in ("text", "json"):
        sourced = desk.run("apply", "--yes", *INV, "play.yml", "--format", form)
        assert sourced.code == 4
        assert "comment" in sourced.out  # the plan is shown first
        sourced.one_error("is empty", "require = false")
    assert not sim.writes()
    assert not desk.state.exists()
    desk.write("first.toml", "[state]\nrequire = false\n")
    assert desk.run("apply", "--yes", "--config", "first.toml", *INV, "play.yml").code == 0
    desk.comment("newer")
    assert desk.run("apply", "--yes", *INV, "play.yml").code == 0
    assert len(sim.writes()) == 2
    assert "Refused" not in desk.run("plan", *INV, "play.yml").out


# Choosing ------------------------------------------------------------------------------------------------------------


def titles(sourced: str) -> list[str]:
    return [target["name"] for target in json.loads(sourced)["targets"]]


def test_tags_limits_and_extra_variables(desk: Desk, other_sim: Simulator) -> None:
    urls = {"a": desk.url, "b": other_sim.url}
    hosts = {name: {"server": {"url": url}, "database": "NEWS", "word": name} for name, url in urls.items()}
    desk.inventory(hosts)
    desk.play(
        {"asset": {"title": "EP001", "fields": {"comment": "{{ word }}"}}, "tags": ["one"]},
        {"asset": {"title": "EP002", "fields": {"comment": "{{ word }}"}}, "tags": ["two"]},
    )
    plan = ("plan", *INV, "play.yml", "--format", "json")
    assert titles(desk.run(*plan).out) == ["EP001", "EP002"] * 2
    assert titles(desk.run(*plan, "-l", "a", "-t", "one").out) == ["EP001"]
    assert titles(desk.run(*plan, "-l", "b", "--skip-tags", "one", "-f", "1").out) == ["EP002"]
    assert titles(desk.run(*plan, "-l", "b", "-t", "one,two").out) == ["EP001", "EP002"]
    assert '"after": "won"' in desk.run(*plan, "-l", "a", "-t", "one", "-e", "word=won").out
    desk.write("extra.yml", {"word": "from a file"})
    assert '"after": "from a file"' in desk.run(*plan, "-l", "a", "-t", "one", "-e", "@extra.yml").out


def test_two_inventories_and_a_server_alone(desk: Desk, other_sim: Simulator) -> None:
    desk.inventory({"b": {"server": {"url": other_sim.url}, "database": "NEWS"}}, name="second.yml")
    desk.comment("new")
    both = desk.run("plan", *INV, "-i", "second.yml", "play.yml", "--format", "json").json
    assert [target["server"] for target in both["targets"]] == ["studio-a", "b"]
    task = {"asset": {"title": "EP001", "fields": {"comment": "x"}}}
    desk.write("own.yml", [{"hosts": "anything", "database": "NEWS", "tasks": [task]}])
    alone = desk.run("plan", "--server", desk.url, "own.yml", "--format", "json").json
    assert [target["server"] for target in alone["targets"]] == ["127.0.0.1"]
    assert desk.run("apply", "--yes", "--server", desk.url, "own.yml").code == 0


def test_what_was_changed_outside_is_kept_where_the_settings_say_so(desk: Desk, sim: Simulator) -> None:
    desk.comment("Week 47")
    assert desk.run("apply", "--yes", "play.yml", *INV).code == 0
    sim.state.clip("EP001").home.fields["comment"] = "CALL THE DESK"
    desk.comment("Week 48")
    desk.write("msauto.toml", '[plan]\noutside = "keep"\n')
    kept = desk.run("plan", "play.yml", *INV)
    assert "it is kept" in kept.err + kept.out
    desk.run("apply", "--yes", "play.yml", *INV)
    assert sim.state.clip("EP001").home.fields["comment"] == "CALL THE DESK"
    desk.write("msauto.toml", '[plan]\noutside = "maybe"\n')
    desk.run("plan", "play.yml", *INV).one_error("outside", "overwrite")
