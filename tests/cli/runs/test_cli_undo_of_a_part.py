"""A plan that is applied twice changes nothing; undo of some servers, and beside what may not be undone."""

from __future__ import annotations

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk, Said

FLAGS = ("-i", "inventory.yml", "--state-dir", "state")
EPISODES = ("EP001", "EP002")


@pytest.fixture
def house(desk: Desk, sim: Simulator, other_sim: Simulator) -> Desk:
    hosts = {}
    for name, server in (("oslo", sim), ("bergen", other_sim)):
        hosts[name] = {"server": {"url": server.url}, "database": "NEWS"}
    desk.inventory(hosts)
    return desk


def comments(desk: Desk, *titles: str) -> None:
    desk.play(*({"asset": {"title": title, "fields": {"comment": "new"}}} for title in titles))


def applied(desk: Desk, *arguments: str) -> Said:
    return desk.run("apply", *arguments, *FLAGS, "--yes")


def comment_of(sim: Simulator, title: str) -> str:
    return sim.state.clip(title).home.fields.get("comment", "")


def test_a_plan_that_is_applied_twice_changes_nothing(desk: Desk, sim: Simulator) -> None:
    desk.play(
        {"asset": {"title": "EP001 final", "was": ["EP001"], "fields": {"comment": "new"}}},
        {"asset": {"title": "EP002", "state": "absent"}},
        {"asset": {"id": "link_id:3", "fields": {"comment": "new"}}},
    )
    assert desk.run("plan", "play.yml", *FLAGS, "--out", "plan.json").code == 0
    consent = ("--allow-delete", "1")
    assert applied(desk, "plan.json", *consent).code == 0
    sim.clear_log()
    again = applied(desk, "plan.json", *consent)
    assert again.code == 0, again
    assert "No changes." in again.out
    assert not sim.writes()
    sim.state.clip("EP001 final").home.fields["comment"] = "by others"
    assert applied(desk, "plan.json", *consent).code == 4


def test_undo_of_one_server(house: Desk, sim: Simulator, other_sim: Simulator) -> None:
    comments(house, "EP001")
    before = comment_of(sim, "EP001")
    assert applied(house, "play.yml").code == 0
    undone = house.run("undo", "last", "-l", "oslo", *FLAGS, "--yes")
    assert undone.code == 0, undone
    assert (comment_of(sim, "EP001"), comment_of(other_sim, "EP001")) == (before, "new")
    house.run("undo", "last", "-l", "nowhere", *FLAGS, "--yes").one_error("nowhere")


def test_what_is_protected_does_not_block_the_rest_of_undo(desk: Desk, sim: Simulator) -> None:
    comments(desk, *EPISODES)
    before = comment_of(sim, "EP002")
    assert applied(desk, "play.yml").code == 0
    desk.write("msauto.toml", 'read_only = ["EP001"]\n')
    settings = ("--config", "msauto.toml")
    assert desk.run("undo", "last", *settings, *FLAGS, "--yes").code == 4
    undone = desk.run("undo", "last", *settings, *FLAGS, "--yes", "--keep-going")
    assert undone.code == 3, undone
    assert (comment_of(sim, "EP001"), comment_of(sim, "EP002")) == ("new", before)
    assert "read_only in msauto.toml: 'EP001'" in undone.out


def test_warnings_are_about_what_is_taken_back(desk: Desk) -> None:
    export = {"command": {"name": "PARTNER_EXPORT_VERSION", "title": "EP002"}}
    desk.play({"asset": {"title": "EP001", "fields": {"comment": "new"}}}, export)
    assert applied(desk, "play.yml").code == 0
    whole = desk.run("undo", "last", "--check", *FLAGS)
    assert "EP002" in whole.out
    part = desk.run("undo", "last", "--check", "--target", "EP001", *FLAGS)
    assert part.code == 0
    assert "EP002" not in part.out
