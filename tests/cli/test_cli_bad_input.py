"""What bad input gets: one clear error with place, cause and remedy, exit code 1, and no request to any server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from msauto.cli.main import COMMANDS, group
from msauto.simulator import Simulator
from tests.cli.command_line import Desk, check_golden
from tests.tables import table

INV = ("-i", "inventory.yml")

BAD_PLAYBOOKS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "unreadable-yaml": ("- hosts: [a\n  tasks: {", ("bad.yml:",)),
    "empty": ("", ("bad.yml",)),
    "binary": (b"\x00\x01\x02\xff\xfe\x89PNG", ("bad.yml",)),
    "latin-1": ("- hosts: all # \xe9\n".encode("latin-1"), ("bad.yml",)),
    "utf-16": ("- hosts: all\n".encode("utf-16"), ("bad.yml",)),
    "nul": (b"- hosts: a\x00b\n", ("bad.yml",)),
    "bomb": ("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)), ("bad.yml",)),
    "deep": ("[" * 3000 + "]" * 3000, ("bad.yml",)),
    "python-tag": ("- !!python/object/apply:os.system ['touch pwned']\n", ("bad.yml",)),
    "toml": ('forks = 8  # targets\n\n[limits]\nremove_items = 50\n', ("bad.yml:3:1", "does not continue")),
    "import-missing": ("- import_playbook: other.yml\n", ("other.yml",)),
    "import-itself": ("- import_playbook: bad.yml\n", ("bad.yml",)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_PLAYBOOKS)
def test_a_bad_playbook(desk: Desk, sim: Simulator, name: str) -> None:
    content, words = BAD_PLAYBOOKS[name]
    desk.write("bad.yml", content)
    for command in (("plan",), ("apply", "--yes")):
        sourced = desk.run(*command, *INV, "bad.yml")
        assert (sourced.code, sourced.out) == (1, ""), sourced
        sourced.one_error("problem", "→", *words)
        assert desk.state.exists() is (command[0] == "apply")  # an attempt to apply is in the history
    assert not sim.log
    assert not (desk.folder / "pwned").exists()


BAD_INVENTORIES: dict[str, tuple[Any, tuple[str, ...]]] = {
    "no-server": ("all: {hosts: {a: {database: X}}}", ("has no server",)),
    "no-url": ("all: {hosts: {a: {server: {}, database: X}}}", ("url",)),
    "secret-unset": (
        'all: {hosts: {a: {server: {url: "http://x", auth: {bearer: "{{ env.NOT_SET_AT_ALL }}"}}, database: X}}}',
        ("NOT_SET_AT_ALL",),
    ),
}


@pytest.mark.parametrize("name", BAD_INVENTORIES)
def test_a_bad_inventory(desk: Desk, name: str) -> None:
    content, words = BAD_INVENTORIES[name]
    desk.comment("x")
    desk.write("bad.yml", content)
    sourced = desk.run("plan", "-i", "bad.yml", "play.yml")
    assert (sourced.code, sourced.out) == (1, ""), sourced
    sourced.one_error(*words)


BAD_ARGUMENTS: dict[str, tuple[tuple[str, ...], str]] = {
    "missing playbook": (("plan", *INV, "nowhere.yml"), "nowhere.yml"),
    "missing inventory": (("plan", "-i", "nowhere.yml", "play.yml"), "nowhere.yml"),
    "a folder": (("plan", *INV, "folder"), "folder"),
    "no server at all": (("plan", "play.yml"), "-i INVENTORY or --server URL"),
    "both": (("plan", *INV, "--server", "http://studio-a", "play.yml"), "another server called 'studio-a'"),
    "limit of nobody": (("plan", *INV, "-l", "nobody", "play.yml"), "nobody"),
    "extra without value": (("plan", *INV, "-e", "novalue", "play.yml"), "novalue"),
    "extra file missing": (("plan", *INV, "-e", "@nowhere.yml", "play.yml"), "nowhere.yml"),
    "server of nothing": (("plan", "--server", "not a url", "play.yml"), "invalid in a host name"),
    "playbook of a device": (("plan", *INV, "/dev/null"), "it is a device or a pipe"),
    "config of a folder": (("plan", *INV, "--config", "folder", "play.yml"), "use a file in it"),
    "config missing": (("plan", *INV, "--config", "nowhere.toml", "play.yml"), "nowhere.toml"),
    "vars of nobody": (("vars", *INV, "nobody"), "nobody"),
    "vars of nothing": (("vars", *INV, "studio-a", "nothing"), "nothing"),
    "validate nothing": (("validate", "nowhere.yml"), "nowhere.yml"),
    "show an id of nothing": (("show", "asset", "id:none", *INV), "id:NS:ID"),
    "show a view of nothing": (("show", "asset", "EP001", "--view", "WP99", *INV), "'WP99' is not a web-proxy profile"),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_a_bad_argument(desk: Desk, sim: Simulator, name: str) -> None:
    arguments, word = BAD_ARGUMENTS[name]
    desk.comment("x")
    (desk.folder / "folder").mkdir()
    sourced = desk.run(*arguments)
    assert sourced.code == 1, sourced
    sourced.one_error(word, "→")
    assert not sim.writes()


BAD_SETTINGS = ("forks = many", "colour = 1", "[limits]\ndelete_assets = -1", b"\xff\xfe", "[[freeze]]\nfrom = 1")


@pytest.mark.parametrize("content", BAD_SETTINGS)
def test_bad_settings(desk: Desk, sim: Simulator, content: Any) -> None:
    desk.comment("x")
    desk.write("msauto.toml", content)
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert (sourced.code, sourced.out) == (1, "")
    sourced.one_error("msauto.toml")
    assert not sim.log


def test_all_that_is_wrong_is_told_at_once(desk: Desk) -> None:
    desk.write(
        "bad.yml",
        '- hosts: all\n  colour: red\n  tasks:\n    - asset: {title: "{{ nobody }}", fields: {comment: "{{ 1 + }}"}}\n'
        "    - asset: {fields: {comment: x}}\n    - assett: {title: A}\n",
    )
    sourced = desk.run("plan", *INV, "bad.yml")
    assert sourced.code == 1
    check_golden("many-problems.txt", sourced.err)
    sourced = desk.run("validate", "bad.yml", "--format", "json")
    assert sourced.code == 1
    check_golden("many-problems.json", sourced.out)


WANTED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown asset": ({"asset": {"title": "Nowhere", "fields": {"comment": "x"}}}, "asset 'Nowhere' not found"),
    "unknown folder": (
        {"asset": {"select": {"folder": "Nowhere"}, "fields": {"comment": "x"}}},
        "folder 'Nowhere' not found in database NEWS",
    ),
    "folder misspelled": ({"asset": {"select": {"folder": "Rav"}, "fields": {"comment": "x"}}}, "did you mean 'Raw'?"),
    "folder of a link misspelled": (
        {"asset": {"title": "EP001", "links": [{"folder": "Playout/Tonite"}]}},
        "did you mean 'Playout/Tonight'? Else create the folder",
    ),
    "channel misspelled": ({"rss": {"channel": "tickr", "items": []}}, "did you mean 'ticker'?"),
    "glob as title": (
        {"asset": {"title": "EP*", "fields": {"comment": "x"}}},
        "select: {where: asset.title is match('EP.*$')}",
    ),
}


@pytest.mark.parametrize("name", WANTED)
def test_what_the_server_does_not_have(desk: Desk, sim: Simulator, name: str) -> None:
    task, words = WANTED[name]
    desk.play(task)
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert sourced.code == 1
    sourced.one_error(words, "play.yml:", "→")
    assert not sim.writes()


def test_an_unknown_database(desk: Desk, sim: Simulator) -> None:
    desk.play({"asset": {"title": "Gone", "state": "absent"}})
    desk.inventory({"studio-a": {"server": {"url": desk.url}, "database": "NOWHERE"}})
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert sourced.code == 1
    sourced.one_error("database 'NOWHERE' not found", "show databases")


def test_a_misspelled_database(desk: Desk) -> None:
    for task in ({"asset": {"title": "EP001"}}, {"asset": {"select": {"folder": "Raw"}}}):
        desk.play({**task, "name": "A task"})
        desk.inventory({"studio-a": {"server": {"url": desk.url}, "database": "NEWZ"}})
        desk.run("plan", *INV, "play.yml").one_error("database 'NEWZ' not found", "did you mean 'NEWS'?")


# Places that cannot be written -----------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["nowhere/tonight.plan", "folder", "/dev/full", "/proc/tonight.plan"])
def test_a_plan_that_cannot_be_kept(desk: Desk, out: str) -> None:
    desk.comment("new")
    (desk.folder / "folder").mkdir()
    before = desk.files()
    sourced = desk.run("plan", *INV, "play.yml", "--out", out)
    assert sourced.code == 1
    sourced.one_error(out)
    assert desk.files() == before


def test_a_plan_is_kept_whole_and_for_its_owner(desk: Desk) -> None:
    desk.comment("new")
    before = desk.files()
    desk.write("tonight.plan", "old")
    assert desk.run("plan", *INV, "play.yml", "--out", "tonight.plan").code == 0
    assert desk.files() == before | {"tonight.plan"}
    assert (desk.folder / "tonight.plan").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("state", ["play.yml", "/dev/full", "/proc/state", "a\0b"])
def test_a_state_folder_that_cannot_be(desk: Desk, sim: Simulator, state: str) -> None:
    """An unusable ``state_dir`` is not an empty ledger: every command that reads it reports an error."""
    desk.comment("new")
    book = (*INV, "play.yml")
    for command in (
        *(("plan", *book), ("apply", "--yes", *book), ("apply", "--check", *book), ("history",), ("history", "last")),
        *(("apply", "--yes", *INV, "--resume", "last"), ("undo", "--yes", *INV, "last")),
    ):
        if state == "/proc/state" and command[:2] != ("apply", "--yes"):
            continue  # it is not there yet, and need not be for reading
        sourced = desk.run(*command, "--state-dir", state)
        assert (sourced.code, sourced.out) == (1, ""), sourced
        sourced.one_error("ledger" if "\0" not in state else "state", "→")
    assert not sim.writes()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_state_folder_without_permission(desk: Desk, sim: Simulator, tmp_path: Path) -> None:
    desk.comment("new")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    sourced = desk.run("apply", "--yes", *INV, "play.yml", "--state-dir", str(closed / "state"))
    assert sourced.code == 1
    sourced.one_error("ledger", "→")
    assert not sim.writes()


def test_a_ledger_that_is_none(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    desk.write("state/msauto/ledger.sqlite", b"garbage" * 1000)
    for command in (("plan",), ("apply", "--yes"), ("history",)):
        arguments = () if command == ("history",) else (*INV, "play.yml")
        sourced = desk.run(*command, *arguments)
        assert sourced.code == 1
        sourced.one_error("ledger.sqlite", "→")
    assert not sim.writes()


@pytest.mark.scale
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_stdout(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    with Path("/dev/full").open("w") as full:
        for command in (("plan",), ("apply", "--yes")):
            sourced = desk.spawn(*command, *INV, "play.yml", stdout=full)
            assert sourced.code == 1
            sourced.one_error("cannot write the result: No space left on device")
        assert not sim.writes()
        sourced = desk.spawn("apply", "--yes", "--format", "json", *INV, "play.yml", stdout=full)
    assert sourced.code == 3  # it was applied, and nobody could be told
    sourced.one_error("No space left", "msauto history")
    assert len(sim.writes()) == 1


@pytest.mark.scale
def test_whoever_reads_has_gone(desk: Desk, sim: Simulator) -> None:
    desk.comment("new")
    for command, code in ((("plan", *INV, "play.yml"), 0), (("show", "assets", *INV), 0), (("schema",), 0)):
        sourced = _into_nothing(desk, *command)
        assert (sourced[0], sourced[1]) == (code, ""), sourced
    code, err = _into_nothing(desk, "apply", "--yes", *INV, "play.yml")
    assert code == 1
    assert "nothing was sent" in err
    assert not sim.writes()
    code, err = _into_nothing(desk, "apply", "--yes", "--format", "json", *INV, "play.yml")
    assert (code, err) == (0, "")
    assert len(sim.writes()) == 1


def _into_nothing(desk: Desk, *arguments: str) -> tuple[int, str]:
    ours, theirs = os.pipe()
    os.close(ours)
    with desk.start(*arguments, stdout=theirs) as process:
        os.close(theirs)
        _, err = process.communicate(timeout=30)
    return process.returncode, err


# Invalid numbers, and a file called ``-``: an error with a remedy, before anything is read


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "-1", "1e30", "86401", "soon", ""])
@pytest.mark.parametrize("command", [("apply", "--yes", *INV, "play.yml"), ("undo", "--yes", *INV, "last")])
def test_a_lock_timeout_that_never_ends(desk: Desk, sim: Simulator, command: tuple[str, ...], number: str) -> None:
    desk.comment("new")
    sourced = desk.run(*command, f"--lock-timeout={number}")
    assert (sourced.code, sim.log) == (1, []), sourced
    sourced.one_error("--lock-timeout", "→")


@pytest.mark.parametrize("number", ["0", "0.5", "86400"])
def test_a_lock_timeout(desk: Desk, number: str) -> None:
    desk.comment("new")
    assert desk.run("apply", "--yes", *INV, "play.yml", "--lock-timeout", number).code == 0


@pytest.mark.parametrize("command", [("plan",), ("apply", "--check")])
def test_a_plan_kept_on_stdout_is_all_that_is_there(desk: Desk, command: tuple[str, ...]) -> None:
    """``--out -`` is stdout, as everywhere on Unix: the plan file, whole, and nothing else."""
    desk.comment("new")
    sourced = desk.run(*command, *INV, "play.yml", "--out", "-")
    assert (sourced.code, sourced.json["format"]) == (0, "msauto-plan"), sourced
    assert "-" not in desk.files()
    desk.write("kept", sourced.out)
    assert desk.run("apply", "--yes", *INV, "kept").code == 0


def test_a_plan_with_errors_on_stdout(desk: Desk) -> None:
    desk.comment("new", title="No Such Clip")
    sourced = desk.run("plan", *INV, "play.yml", "--out", "-")
    assert sourced.code == 1
    assert json.loads(sourced.out)["summary"]["errors"] == 1
    sourced.one_error("cannot plan 1 target")


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_two_forms_on_stdout(desk: Desk, sim: Simulator, form: str) -> None:
    desk.comment("new")
    sourced = desk.run("plan", *INV, "play.yml", "--out", "-", "--format", form)
    assert (sourced.code, sourced.out, sim.log) == (1, "", []), sourced
    sourced.one_error("--out -", "→")


def test_a_freeze_on_no_day(desk: Desk, sim: Simulator) -> None:
    desk.write("msauto.toml", '[[freeze]]\ndays = []\nfrom = "18:00"\nto = "22:00"\ntz = "UTC"\n')
    desk.comment("new")
    sourced = desk.run("apply", "--yes", *INV, "play.yml")
    assert (sourced.code, sim.log) == (1, []), sourced
    sourced.one_error("days")


NO_NUMBERS = ("nan", "inf", "-inf", "-1", "1.5", "true", "many", "²", "", "9" * 5000)


@pytest.mark.parametrize(
    ("flag", "number"),
    [
        *[("--forks", each) for each in (*NO_NUMBERS, "0", "513", str(10**30))],
        *[(f"--allow-{each}", number) for each in ("delete", "remove", "requests") for number in NO_NUMBERS],
    ],
)
def test_a_flag_whose_number_is_none(desk: Desk, sim: Simulator, flag: str, number: str) -> None:
    desk.comment("new")
    sourced = desk.run("apply", "--yes", *INV, "play.yml", f"{flag}={number}")
    assert (sourced.code, sim.log) == (1, []), sourced
    sourced.one_error(flag, "→")


@pytest.mark.parametrize("flag", ["--allow-delete", "--allow-remove", "--allow-requests"])
def test_more_than_any_run_does_may_be_allowed(desk: Desk, flag: str) -> None:
    desk.comment("new")
    assert desk.run("apply", "--yes", *INV, "play.yml", flag, str(10**30)).code == 0


@pytest.mark.parametrize(
    ("flag", "number"),
    [
        *[("--port", each) for each in (*NO_NUMBERS, "65536", str(10**30))],
        *[("--seed", f"bulk:{each}") for each in (*NO_NUMBERS, "10000000", str(10**30))],
        *[("--fault", f"status:{each}@GET") for each in (*NO_NUMBERS, "99", "600", "99999")],
        *[("--fault", f"delay:{each}@GET") for each in ("nan", "inf", "-1", "", "9" * 400)],
        *[("--fault", f"cut_before@GET*{'9' * 5000}")],
    ],
)
def test_a_simulator_whose_number_is_none(desk: Desk, flag: str, number: str) -> None:
    sourced = desk.run("simulate", "--port=0", f"{flag}={number}")
    assert sourced.code == 1, sourced
    sourced.one_error("Error: ", "→")


@pytest.mark.parametrize("port", ["0", "65536", "-1", "nan", "²", "9" * 5000])
def test_a_server_whose_port_is_none(desk: Desk, port: str) -> None:
    sourced = desk.run("show", "databases", "--server", f"http://127.0.0.1:{port}")
    assert sourced.code == 1, sourced
    sourced.one_error("→ write http://host:7901")


# An error points at its cause: the title of an unknown asset, the task that lacks a key, the server's URL


HEAD = "- hosts: all\n  tasks:\n"


@table("cli/unknown_assets", "task")
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


# What a new user gets: help that fits a terminal of 80 columns, and errors with a remedy


def test_the_list_of_commands_fits_and_is_cut_nowhere() -> None:
    told = CliRunner().invoke(group, ["--help"], terminal_width=80).output
    lines = told.splitlines()
    assert told.replace("\n", "").isprintable()
    assert all(len(line) <= 80 for line in lines)
    for name in COMMANDS:
        (line,) = [line for line in lines if line.startswith(f"  {name} ")]
        assert not line.endswith("...")
    for word in ("msauto demo", "msauto init", "Exit codes: 0 fine", "130 interrupted"):
        assert word in told


@pytest.mark.parametrize(("typed", "meant"), [("aply", "'apply'"), ("plna", "'plan'"), ("simulator", "'simulate'")])
def test_a_command_that_is_misspelled(away: Desk, typed: str, meant: str) -> None:
    sourced = away.run(typed)
    assert sourced.code == 1
    sourced.one_error(f"did you mean {meant}?", "msauto --help")


def test_tasks_given_as_a_playbook(away: Desk) -> None:
    away.write("more.yml", "- asset: {title: A}\n")
    sourced = away.run("plan", *INV, "more.yml")
    assert sourced.code == 1
    sourced.one_error("this is a task (asset), but a playbook is a list of plays", "import_tasks")
    assert "did you mean" not in sourced.err


@table("cli/show_what_does_not_exist", "arguments", "words", "remedy")
def test_show_names_what_is_not_there_and_what_is_nearest(
    desk: Desk, arguments: tuple[str, ...], words: str, remedy: str
) -> None:
    sourced = desk.run("show", *arguments, *INV)
    assert sourced.code == 1
    sourced.one_error(words, f"  → {remedy}")


def test_a_web_server_that_is_no_media_server(desk: Desk, sim: Simulator) -> None:
    sim.faults.add("status:404@GET")
    for what in ("databases", "channels"):
        sourced = desk.run("show", what, *INV)
        sourced.one_error(f"studio-a has no list of {what}", "check that the address is that of a media server", "7901")
        assert sourced.code == 1


def test_a_port_that_is_taken(desk: Desk, sim: Simulator) -> None:
    sourced = desk.run("simulate", "--port", str(sim.port))
    sourced.one_error(f"Error: port {sim.port} on 127.0.0.1 is taken\n", "--port 0")
    assert "Errno" not in sourced.err
    sourced = desk.run("simulate", "--port", "0", "--fault", "status@x")
    sourced.one_error("needs a number, such as status:503")
