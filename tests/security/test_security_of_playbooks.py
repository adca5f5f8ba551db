"""An attacker who writes a playbook, its vars or msauto.toml: what is possible (docs/explanation/safety.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.security.security_desk import CANARY, leaks, plan_and_apply, repository, server
from tests.tables import one_fast_in, table

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


@table("security/escapes_of_templates", "template", one_in=2)
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
    said = desk.run("apply", play, *FLAGS, "--yes")
    assert said.code == 1, said.out
    shown = said.out + said.err
    assert CANARY not in shown
    assert "root:" not in shown
    assert sim.writes() == []


def test_vars_of_other_repositories_reach_no_server(desk: Desk, sim: Simulator) -> None:
    secrets = desk.folder.parent / "secrets.yml"
    secrets.write_text(f"token_of_another: {CANARY}\n")
    task = {"asset": {"title": "Film", "fields": {"comment": "{{ token_of_another }}"}}}
    (desk.folder / "linked.yml").symlink_to(secrets)
    for name in ("../secrets.yml", str(secrets), "linked.yml"):
        play = desk.write("play.yml", [{"hosts": "all", "vars_files": [name], "tasks": [task]}])
        sourced = desk.run("apply", play, *FLAGS, "--yes")
        assert sourced.code == 1, name
        assert sim.writes() == []
        assert CANARY not in sourced.out + sourced.err
    desk.write("msauto.toml", "[lookup]\nfolders = ['..']\n")
    assert desk.run("apply", play, *FLAGS, "--yes").code == 0, "a folder that the settings open"


@pytest.mark.parametrize("key", ["vars_files", "import_tasks", "import_playbook", "src"])
def test_other_files_that_a_playbook_names_show_nothing_of_themselves(
    desk: Desk, sim: Simulator, key: str
) -> None:
    task = {"asset": {"title": "Film", "fields": {"comment": "x"}}}
    text = {
        "vars_files": [{"hosts": "all", "vars_files": ["../outside.txt"], "tasks": [task]}],
        "import_tasks": [{"hosts": "all", "tasks": [{"import_tasks": "../outside.txt"}]}],
        "import_playbook": [{"import_playbook": "../outside.txt"}],
        "src": [
            {"hosts": "all", "tasks": [{"xmp_batch": {"connector": "C", "src": "../outside.txt"}}]}
        ],
    }[key]
    play = desk.write("play.yml", text)
    for command in (
        ("apply", play, *FLAGS, "--yes"),
        ("validate", play, "inventory.yml"),
        ("plan", play, *FLAGS),
    ):
        sourced = desk.run(*command)
        assert sourced.code == 1, sourced.out
        assert "outside the playbook's repository" in sourced.out + sourced.err
        assert CANARY not in sourced.out + sourced.err
    assert sim.writes() == []


@table("security/downloads_outside", "dest", one_in=3)
@pytest.mark.parametrize("module", one_fast_in(2, ["thumbnail", "proxy"]))
def test_downloads_are_written_inside_the_repository(
    desk: Desk, sim: Simulator, dest: str, module: str
) -> None:
    (desk.folder / "linked").symlink_to(desk.folder.parent)
    (desk.folder / "host_vars").mkdir()
    (desk.folder / "inside").symlink_to(desk.folder / "host_vars")
    before = {path for path in desk.folder.parent.rglob("*") if "state" not in path.parts}
    task = {
        module: {"title": "Film", "dest": dest} | ({"profile": "WP1"} if module == "proxy" else {})
    }
    play = desk.play(task)
    sourced = desk.run("apply", play, *FLAGS, "--yes")
    if dest == "~/escaped.png":  # no shell: it is the folder of that name
        assert sourced.code == (0 if module == "thumbnail" else 3)
        assert not (Path.home() / "escaped.png").exists()
        return
    assert sourced.code == 1, (sourced.out, sourced.err)
    after = {path for path in desk.folder.parent.rglob("*") if "state" not in path.parts}
    assert after - before == {desk.folder / play}


@pytest.mark.parametrize(
    "about", ["a variable of the play", "a role's file", "what the run has read"]
)
def test_downloads_do_not_become_what_msauto_reads(desk: Desk, sim: Simulator, about: str) -> None:
    desk.write("frames.png", "x")
    dest = {"a variable of the play": "{{ place }}", "a role's file": "roles/r/files/x.png"}.get(
        about, "frames.png"
    )
    comment = {"title": "Other", "fields": {"comment": "{{ lookup('file', 'frames.png') }}"}}
    tasks = [{"asset": comment}, {"thumbnail": {"title": "Film", "dest": dest}}]
    play = desk.write(
        "play.yml", [{"hosts": "all", "vars": {"place": "host_vars/studio-a.png"}, "tasks": tasks}]
    )
    sourced = desk.run("apply", play, *FLAGS, "--yes")
    assert (sourced.code, sim.writes()) == (1, [])
    assert (desk.folder / "frames.png").read_text() == "x"


@table("security/lookups_refused", "name", one_in=4)
@pytest.mark.parametrize("kind", ["file", "yaml", "src"])
def test_lookups_read_no_files_of_msauto(desk: Desk, sim: Simulator, name: str, kind: str) -> None:
    inventory = (
        f"all: {{hosts: {{far: {{server: {{url: 'http://far', auth: {{bearer: '{CANARY}'}}}}}}}}}}"
    )
    for file in (
        "prod.yml",
        "host_vars/studio-a.yml",
        "group_vars/all/secrets.yml",
        "inventories/prod/hosts.txt",
    ):
        desk.write(file, inventory if file == "prod.yml" else f"pw: {CANARY}\n")
    desk.write(
        "prod.json",
        json.dumps({"prod": {"hosts": {"far": {"server": {"url": "http://far", "x": CANARY}}}}}),
    )
    desk.write("INVENTORY.json", f'{{"x": "{CANARY}"}}')
    desk.write("Host_Vars/studio-a.yml", f"pw: {CANARY}\n")
    for file in (".env", ".git/config", "notes/.token"):
        desk.write(file, CANARY)
    desk.write("msauto.toml", f"# {CANARY}\n")
    desk.write("kept.json", f'{{"format": "msauto-plan", "x": "{CANARY}"}}')
    (desk.folder / "copied.db").write_bytes(b"SQLite format 3\0" + CANARY.encode())
    desk.write("state/ledger.sqlite", CANARY)
    (desk.folder / "shown.txt").symlink_to(".git/config")
    (desk.folder / "shown_vars").symlink_to("host_vars")
    template = f"{{{{ lookup('{kind}', '{name}') }}}}"
    task: dict[str, object] = {"asset": {"title": "Film", "fields": {"comment": template}}}
    if kind == "src":
        task = {"xmp_batch": {"connector": "C", "src": name}}
    play = desk.write("play.yml", [{"hosts": "all", "tasks": [task]}])
    flags = ("-i", "inventory.yml", "--state-dir", "elsewhere" if "state" not in name else "state")
    sourced = desk.run("plan", play, *flags)
    assert sourced.code == 1
    assert f"lookup does not read {name!r}" in sourced.out + sourced.err
    assert CANARY not in sourced.out + sourced.err
    assert sim.writes() == []


def test_lookups_of_a_folder_show_no_variables(desk: Desk) -> None:
    desk.write("host_vars/studio-a.yml", "pw: x\n")
    play = desk.play(
        {
            "asset": {
                "title": "Film",
                "fields": {"comment": "{{ lookup('fileglob', 'host_vars/*') }}"},
            }
        }
    )
    sourced = desk.run("plan", play, *FLAGS)
    assert (sourced.code, "studio-a.yml" in sourced.out + sourced.err) == (1, False)
    assert "hostvars['HOST']" in sourced.out + sourced.err


LINKS = [
    "msauto.toml",
    "group_vars/all.yml",
    "host_vars/studio-a.yml",
    "inventory.yml",
    "play.yml",
    "shows.yml",
]


@pytest.mark.parametrize("link", [*LINKS, "group_vars", "host_vars", "roles"])
@pytest.mark.parametrize("marked", one_fast_in(2, [True, False]), ids=["a repository", "a folder"])
def test_no_link_leads_out_of_the_repository(
    desk: Desk, sim: Simulator, link: str, marked: bool
) -> None:
    secret = desk.folder.parent / "secret"
    (secret / "r" / "tasks").mkdir(parents=True)
    for name in ("all.yml", "studio-a.yml", "r/tasks/main.yml", "environ"):
        (secret / name).write_text(f"PASSWORD={CANARY}\n[{CANARY}\n")
    if not marked:
        (desk.folder / ".git").rmdir()
    is_folder = "." not in link
    tasks = [{"asset": {"title": "Film", "fields": {"comment": "x"}}}]
    desk.write(
        "play.yml", [{"hosts": "all", "vars_files": ["shows.yml"], "roles": ["r"], "tasks": tasks}]
    )
    desk.write("shows.yml", "a: 1\n")
    if link != "roles":
        desk.write("roles/r/tasks/main.yml", [])
    place = desk.folder / link
    place.parent.mkdir(exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(secret if is_folder else secret / "environ")
    for words in (
        ("validate", "."),
        ("validate", "play.yml", "inventory.yml"),
        ("plan", "play.yml", *FLAGS),
    ):
        sourced = desk.run(*words)
        assert CANARY not in sourced.out + sourced.err, words
    assert sourced.code == 1
    assert "lead" in sourced.err or "outside the playbook's repository" in sourced.err
    assert sim.log == []


@pytest.mark.parametrize("key", ["ca", "password_file"])
def test_no_link_of_an_inventory_leads_out(desk: Desk, sim: Simulator, key: str) -> None:
    (desk.folder.parent / "secret.pem").write_text(CANARY)
    (desk.folder / "linked.pem").symlink_to(desk.folder.parent / "secret.pem")
    more: dict[str, object] = {"tls": {"ca": "linked.pem"}}
    if key == "password_file":
        more = {"auth": {"basic": {"username": "ops", "password_file": "linked.pem"}}}
    desk.inventory({"studio-a": {"server": {"url": sim.url, **more}, "database": "NEWS"}})
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": "x"}}})
    sourced = desk.run("plan", play, *FLAGS)
    assert (sourced.code, sim.log) == (1, [])
    assert "a link leads out of the repository" in sourced.err


def test_links_inside_the_repository_are_read(desk: Desk) -> None:
    desk.write("shared/all.yml", "text: Ready\n")
    (desk.folder / "group_vars").symlink_to("shared")
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": "{{ text }}"}}})
    (desk.folder / "linked.yml").symlink_to(play)
    assert desk.run("plan", "linked.yml", *FLAGS).code == 0
    assert desk.run("validate", ".").code == 0


FLAG_FILES = [
    "../plan.json",
    "/tmp/msauto-plan.json",
    "host_vars/studio-a.json",
    ".git/plan",
    "linked/plan.json",
]
FLAG_FILES += [
    "out.yml",
    "ci/plan.json",
    "inventory.json",
    "group_vars/../plan.json",
    "roles/r/vars/main.json",
    "x.py",
]


@pytest.mark.parametrize("name", FLAG_FILES)
@pytest.mark.parametrize("flag", one_fast_in(2, ["--out", "--events"]))
def test_flags_write_only_where_playbooks_may(
    desk: Desk, sim: Simulator, flag: str, name: str
) -> None:
    (desk.folder / "linked").symlink_to(desk.folder.parent)
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": "x"}}})
    before = {*desk.folder.parent.rglob("*")}
    sourced = desk.run("plan", play, *FLAGS, flag, name)
    assert sourced.code == 1
    assert sim.log == []
    for path in {*desk.folder.parent.rglob("*")} - before:
        assert "state" in path.parts


def test_settings_open_folders_and_endings(desk: Desk) -> None:
    (desk.folder.parent / "media").mkdir()
    play = desk.play({"thumbnail": {"title": "Film", "dest": "../media/x.gxf"}})
    desk.write("msauto.toml", "[download]\nfolders = ['../media']\nendings = ['.GXF']\n")
    assert desk.run("apply", play, *FLAGS, "--yes").code == 1, "a path without .."
    play = desk.play(
        {"thumbnail": {"title": "Film", "dest": str(desk.folder.parent / "media" / "x.gxf")}}
    )
    assert desk.run("apply", play, *FLAGS, "--yes").code == 0
    assert (
        desk.run(
            "plan", play, *FLAGS, "--out", str(desk.folder.parent / "media" / "plan.json")
        ).code
        == 0
    )
    for ending in ("yml", ".yml", ".", ".p/y", "*"):
        desk.write("msauto.toml", f"[download]\nendings = ['{ending}']\n")
        assert desk.run("plan", play, *FLAGS).code == 1, ending


@pytest.mark.parametrize(
    "folder", ["../pages", "/tmp/msauto-pages", "host_vars", ".pages", "linked"]
)
@pytest.mark.parametrize("key", one_fast_in(2, ["reports", "pages"]))
def test_a_batch_writes_where_a_run_may(desk: Desk, key: str, folder: str) -> None:
    (desk.folder / "linked").symlink_to(desk.folder.parent)
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": "x"}}})
    batch = {
        "name": "nightly",
        "schedule": {"at": "03:10", "tz": "Europe/Oslo"},
        key: {"dir": folder},
    }
    defaults = {"inventory": "inventory.yml"}
    desk.write("batch.yml", {**batch, "defaults": defaults, "jobs": {"news": {"playbooks": play}}})
    checked = desk.run("batch", "check", "batch.yml")
    assert checked.code == 1
    assert any(why in checked.out for why in ("would be written outside", " contains ")), checked
    before = {*desk.folder.parent.rglob("*")}
    desk.run("batch", "run", "batch.yml", "--state-dir", "state")
    written = {
        path.name for path in {*desk.folder.parent.rglob("*")} - before if "state" not in path.parts
    }
    assert not [name for name in written if name.startswith(("nightly-", "index"))]


@pytest.mark.parametrize("flag", ["--out", "--events"])
def test_flags_replace_only_what_msauto_wrote(desk: Desk, flag: str) -> None:
    play = desk.play({"asset": {"title": "Film", "fields": {"comment": "x"}}})
    desk.write("data.json", '{"mine": 1}')
    refused = desk.run("plan", play, *FLAGS, flag, "data.json")
    assert refused.code == 1
    assert (desk.folder / "data.json").read_text() == '{"mine": 1}'
    assert "remove it" in refused.err
    for name in ("new.json", "new.json", "/dev/null"):
        assert desk.run("plan", play, *FLAGS, flag, name).code == 0


YAML = {
    "aliases that grow": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
    ),
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
    for template in (
        "{{ server }}",
        "{{ hostvars }}",
        "{{ hostvars['studio-a'] }}",
        "{{ vars }}",
        "{{ auth }}",
    ):
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
