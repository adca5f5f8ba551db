"""An error points at its cause: the title of an unknown asset, the task that lacks a key, the server's URL."""

from __future__ import annotations

import pytest

from msauto.simulator import Simulator
from tests.cli.command_line import Desk

INV = ("-i", "inventory.yml")
HEAD = "- hosts: all\n  tasks:\n"


@pytest.mark.parametrize(
    "task",
    [
        "    - name: Ready\n      asset: {fields: {comment: x}, title: Nobody}\n",
        '    - name: Ready\n      asset: {fields: {comment: x}, title: "{{ item }}"}\n      loop: [Nobody]\n',
        "    - name: Ready\n      command: {name: PARTNER_EXPORT_VERSION, title: Nobody}\n",
        "    - name: Ready\n      thumbnail: {dest: a.png,      title: Nobody}\n",
        "    - name: Ready\n      assert: {that: asset.frames > 1, title: Nobody}\n",
        '    - name: Ready\n      asset: {fields: {comment: x}, id: "handle:4711"}\n',
    ],
)
def test_an_unknown_asset_at_its_title(desk: Desk, task: str) -> None:
    desk.write("play.yml", HEAD + task)
    line = (HEAD + task).splitlines()[3]
    key = "title: " if "title: " in line else "id: "
    sourced = desk.run("plan", *INV, "play.yml")
    assert sourced.code == 1
    assert f"play.yml:4:{line.index(key) + len(key) + 1}: " in sourced.out, sourced.out


@pytest.mark.parametrize("word", ["'skip'", "\"{{ 'sk' ~ 'ip' }}\""])
def test_missing_skip_of_what_is_run(desk: Desk, sim: Simulator, word: str) -> None:
    desk.write(
        "play.yml",
        HEAD
        + f"    - command: {{name: PARTNER_EXPORT_VERSION, title: Nobody, missing: {word}}}\n"
        + f"    - thumbnail: {{title: Nobody, dest: a.png, missing: {word}}}\n"
        + f"    - proxy: {{title: Nobody, profile: WP1, dest: a.mp4, missing: {word}}}\n",
    )
    sourced = desk.run("apply", "-y", *INV, "play.yml")
    assert (sourced.code, sim.writes()) == (0, []), sourced
    desk.write("play.yml", HEAD + "    - command: {name: PARTNER_EXPORT_VERSION, title: EP001, missing: skip}\n")
    assert desk.run("apply", "-y", *INV, "play.yml").code == 0
    assert len(sim.writes()) == 1


def test_a_clip_being_recorded_blames_the_task_that_does_not_allow_it(desk: Desk, sim: Simulator) -> None:
    sim.state.add_clip("Live now", finalized=False)
    desk.write(
        "play.yml",
        HEAD
        + "    - asset: {title: Live now, unfinalized: allow, fields: {comment: x}}\n"
        + "    - asset: {title: Live now, fields: {user_1: y}}\n",
    )
    sourced = desk.run("plan", *INV, "play.yml")
    assert sourced.code == 1
    assert "play.yml:4:14: " in sourced.out, sourced.out


@pytest.mark.scale
def test_a_connection_error_names_the_url(away: Desk) -> None:
    away.inventory({"studio-a": {"server": {"url": "http://127.0.0.1:1"}, "database": "NEWS"}})
    away.comment("x")
    assert "server studio-a at http://127.0.0.1:1: no connection" in away.run("plan", *INV, "play.yml").out
    away.run("show", "channels", *INV).one_error("server studio-a at http://127.0.0.1:1: ")
