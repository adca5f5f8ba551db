"""A role the whole way: from its folder, through a plan that is kept, to the server."""

from __future__ import annotations

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

pytestmark = pytest.mark.usefixtures("hurried")
INV = ("-i", "inventory.yml")


@pytest.fixture
def play(desk: Desk) -> str:
    episode = {"title": "{{ episode.title }}", "fields": {"comment": "{{ lookup('file', 'comment.txt') }} {{ week }}"}}
    desk.write("shared/episodes/tasks/main.yml", [{"asset": episode, "notify": "Export", "tags": "ready"}])
    export = {"name": "Export", "command": {"name": "PARTNER_EXPORT_VERSION"}}
    desk.write("shared/episodes/handlers/main.yml", [export])
    desk.write("shared/episodes/defaults/main.yml", {"week": 1})
    desk.write("shared/episodes/vars/main.yml", {"database": "NEWS"})
    desk.write("shared/episodes/files/comment.txt", "Week")
    desk.write("studio/msauto.toml", '[roles]\npath = "../shared"\n')
    role = {
        "import_role": {"name": "episodes"},
        "loop": "{{ lookup('csv', 'episodes.csv') }}",
        "loop_control": {"loop_var": "episode", "label": "{{ episode.title }}"},
    }
    desk.write("studio/episodes.csv", "title\nEP001\nEP002\n")
    return desk.write("studio/site.yml", [{"hosts": "all", "tasks": [role]}])


def test_from_its_folder_to_the_server(desk: Desk, sim: Simulator, play: str) -> None:
    applied = desk.run("apply", *INV, play, "--yes")
    assert applied.code == 0, applied
    sent = [entry.target for entry in sim.writes()]
    for title in ("EP001", "EP002"):
        assert f"/storage/NEWS@{title}?command=SETFIELD&name=comment&val=Week%201" in sent
    assert sum("PARTNER_EXPORT_VERSION" in target for target in sent) == 2
    assert desk.run("plan", *INV, play, "--detailed-exitcode").code == 0


@pytest.mark.parametrize("file", ["tasks/main.yml", "handlers/main.yml", "defaults/main.yml", "files/comment.txt"])
def test_a_plan_that_is_kept_is_stale_after_an_edit_of_the_role(
    desk: Desk, sim: Simulator, play: str, file: str
) -> None:
    assert desk.run("plan", *INV, play, "--out", "tonight.plan").code == 0
    edited = desk.folder / "shared/episodes" / file
    edited.write_text(edited.read_text() + "\n")
    refused = desk.run("apply", "tonight.plan", "--yes")
    assert refused.code == 4
    assert f"shared/episodes/{file} has changed" in refused.err
    assert sim.writes() == []


def test_variables_as_a_role_sees_them(desk: Desk, play: str) -> None:
    desk.write("group_vars/all.yml", {"week": 48})
    told = [*INV, "--config", "studio/msauto.toml", "--role", "episodes", "--format", "json"]
    found = desk.run("vars", "studio-a", "week", *told).json
    assert [(each["value"], each["set_by"], each["wins"]) for each in found] == [
        (48, "group_vars/all", True),
        (1, "defaults of the role", False),
    ]
    (won, lost) = desk.run("vars", "studio-a", "database", *told).json
    assert (won["set_by"], lost["set_by"]) == ("vars of the role", "inventory host vars")
    desk.run("vars", "studio-a", *INV, "--role", "episode").one_error(
        "role 'episode' not found in playbooks/roles or roles"
    )
    assert "week" not in desk.run("vars", "studio-a", "database", *INV).out
