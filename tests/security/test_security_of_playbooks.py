"""An attacker who writes a playbook, its vars or msauto.toml: what is possible (docs/explanation/safety.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.security.security_desk import CANARY, leaks, plan_and_apply, repository, server
from tests.tables import table

FLAGS = ("-i", "inventory.yml", "--state-dir", "state")


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with server() as simulator:
        yield simulator


@pytest.fixture
def desk(tmp_path: Path, sim: Simulator) -> Desk:
    desk = repository(tmp_path, sim.url)
    desk.environment["SOME_VARIABLE"] = "seen"
    return desk


@table("security/escapes_of_templates", "template")
def test_templates_reach_nothing_of_python(desk: Desk, sim: Simulator, template: str) -> None:
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": template}}})
    sourced = desk.run("apply", play, *FLAGS, "--yes")
    assert sourced.code == 1, (sourced.out, sourced.err)
    assert "Traceback" not in sourced.err
    assert "msauto itself failed" not in sourced.err
    assert sim.writes() == []
    assert not any("pwned" in name for name in desk.files())


@table("security/templates_without_end", "template")
def test_templates_end_soon(desk: Desk, sim: Simulator, template: str) -> None:
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": template}}})
    sourced = desk.run("plan", play, *FLAGS)
    assert sourced.code == 1, sourced.out[:300]


@table("security/lookups_outside", "template")
def test_lookups_stay_inside_the_repository(desk: Desk, sim: Simulator, template: str) -> None:
    (desk.folder / "link.txt").symlink_to(desk.folder.parent / "outside.txt")
    (desk.folder / "linked").symlink_to(desk.folder.parent)
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": template}}})
    sourced = desk.run("apply", play, *FLAGS, "--yes")
    assert sourced.code == 1, sourced.out
    assert CANARY not in sourced.out + sourced.err
    assert "root:" not in sourced.out + sourced.err
    assert sim.writes() == []


def test_vars_of_other_repositories_reach_no_server(desk: Desk, sim: Simulator) -> None:
    (desk.folder.parent / "secrets.yml").write_text(f"token_of_another: {CANARY}\n")
    task = {"asset": {"title": "Film", "fields": {"comment": "{{ token_of_another }}"}}}
    (desk.folder / "linked.yml").symlink_to(desk.folder.parent / "secrets.yml")
    for name in ("../secrets.yml", str(desk.folder.parent / "secrets.yml"), "linked.yml"):
        play = desk.write("play.yml", [{"hosts": "all", "vars_files": [name], "tasks": [task]}])
        sourced = desk.run("apply", play, *FLAGS, "--yes")
        assert (sourced.code, sim.writes()) == (1, []), name
        assert CANARY not in sourced.out + sourced.err
    desk.write("msauto.toml", "[lookup]\nfolders = ['..']\n")
    assert desk.run("apply", play, *FLAGS, "--yes").code == 0, "a folder that the settings open"


@pytest.mark.parametrize("key", ["vars_files", "import_tasks", "import_playbook", "src"])
def test_other_files_that_a_playbook_names_show_nothing_of_themselves(desk: Desk, sim: Simulator, key: str) -> None:
    task = {"asset": {"title": "Film", "fields": {"comment": "x"}}}
    text = {
        "vars_files": [{"hosts": "all", "vars_files": ["../outside.txt"], "tasks": [task]}],
        "import_tasks": [{"hosts": "all", "tasks": [{"import_tasks": "../outside.txt"}]}],
        "import_playbook": [{"import_playbook": "../outside.txt"}],
        "src": [{"hosts": "all", "tasks": [{"xmp_batch": {"connector": "C", "src": "../outside.txt"}}]}],
    }[key]
    play = desk.write("play.yml", text)
    for command in (("apply", play, *FLAGS, "--yes"), ("validate", play, "inventory.yml"), ("plan", play, *FLAGS)):
        sourced = desk.run(*command)
        assert sourced.code == 1, sourced.out
        assert "outside the playbook's repository" in sourced.out + sourced.err
        assert CANARY not in sourced.out + sourced.err
    assert sim.writes() == []


@table("security/downloads_outside", "dest")
@pytest.mark.parametrize("module", ["thumbnail", "proxy"])
def test_downloads_are_written_inside_the_repository(desk: Desk, sim: Simulator, dest: str, module: str) -> None:
    (desk.folder / "linked").symlink_to(desk.folder.parent)
    before = {path for path in desk.folder.parent.rglob("*") if "state" not in path.parts}
    task = {module: {"title": "Film", "dest": dest} | ({"profile": "WP1"} if module == "proxy" else {})}
    play = desk.play(task)
    sourced = desk.run("apply", play, *FLAGS, "--yes")
    if dest == "~/escaped.png":  # no shell: it is the folder of that name
        assert sourced.code in {1, 3, 0}
        assert not (Path.home() / "escaped.png").exists()
        return
    assert sourced.code == 1, (sourced.out, sourced.err)
    after = {path for path in desk.folder.parent.rglob("*") if "state" not in path.parts}
    assert after - before == {desk.folder / play}


YAML = {
    "aliases that grow": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)),
    "an object of Python": "- !!python/object/apply:os.system ['touch pwned']\n",
    "a name of Python": "- !!python/name:os.system\n",
    "deep": "[" * 100_000,
    "deep in blocks": "".join(f"{' ' * n}- \n" for n in range(3000)),
    "an alias to itself": "&a [*a]\n",
    "a binary": "- !!binary aGVsbG8=\n",
    "a wide number": "- hosts: all\n  serial: " + "9" * 100_000,
}


@pytest.mark.scale
@pytest.mark.parametrize("text", YAML.values(), ids=YAML.keys())
def test_yaml_is_data_and_stays_small(desk: Desk, sim: Simulator, text: str) -> None:
    play = desk.write("play.yml", text)
    for command in (("validate", play), ("plan", play, *FLAGS), ("apply", play, *FLAGS, "--yes")):
        sourced = desk.run(*command)
        sourced.one_error()
        assert sourced.code == 1
    assert not any("pwned" in name for name in desk.files())


def test_a_playbook_never_gets_at_the_secrets_of_an_inventory(desk: Desk, sim: Simulator) -> None:
    desk.environment["STUDIO_PASSWORD"] = CANARY
    auth = {"basic": {"username": "ops", "password": "{{ env.STUDIO_PASSWORD }}"}}
    desk.inventory({"studio-a": {"server": {"url": sim.url, "auth": auth}, "database": "NEWS"}})
    for template in ("{{ server }}", "{{ hostvars }}", "{{ hostvars['studio-a'] }}", "{{ vars }}", "{{ auth }}"):
        play = desk.play({"asset": {"title": "Film", "fields": {"comment": template}}})
        sourced = plan_and_apply(desk, play)
        assert leaks(desk, sourced, CANARY) == []
    assert all(CANARY not in entry.target for entry in sim.log)


def test_a_playbook_may_read_the_environment_which_is_why_ci_must_not_plan_strangers_with_secrets(
    desk: Desk, sim: Simulator
) -> None:
    """What the page about security warns of: ``env`` is open to every template, and the plan shows what it holds."""
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": "{{ env.SOME_VARIABLE }}"}}})
    assert "seen" in desk.run("plan", play, *FLAGS).out


SETTINGS = [
    "[limits]\ndelete_assets = -1\n",
    "protected = 7\n",
    "[[freeze]]\ndays = ['some day']\n",
    "[state]\nkeep_runs = 'all'\n",
    "unknown = true\n",
    "a = " + "[" * 10_000,
    "\x00",
]


@pytest.mark.parametrize("text", SETTINGS)
def test_settings_that_are_wrong_stop_everything(desk: Desk, sim: Simulator, text: str) -> None:
    desk.write("msauto.toml", text)
    play = desk.comment("x", "Film")
    sourced = desk.run("apply", play, *FLAGS, "--yes")
    sourced.one_error()
    assert (sourced.code, sim.writes()) == (1, [])
