"""The commands beside plan and apply: show, validate, history, vars, schema, simulate; and how msauto is called."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from msauto.version import __version__
from tests.cli.command_line import MSAUTO, Desk, check_golden

pytestmark = pytest.mark.scale

INV = ("-i", "inventory.yml")

# show ----------------------------------------------------------------------------------------------------------------

SHOWN = {
    "databases": ("databases",),
    "folders": ("folders",),
    "folders-below": ("folders", "Sport"),
    "assets": ("assets", "Promos"),
    "assets-awkward": ("assets", "A\\/B Tests"),
    "assets-mam": ("assets", "Promos", "--mam"),
    "asset": ("asset", "Master Film"),
    "asset-view": ("asset", "Back\\Slash / Film: 50% @ night?", "--view", "WP1"),
    "asset-awkward": ("asset", "Back\\Slash / Film: 50% @ night?"),
    "asset-graphics": ("asset", "Lower Third"),
    "channels": ("channels",),
    "channel": ("channel", "ticker"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_show(desk: Desk, name: str) -> None:
    sourced = desk.run("show", *SHOWN[name], *INV)
    assert (sourced.code, sourced.err) == (0, "")
    check_golden(f"show-{name}.txt", sourced.out)
    sourced = desk.run("show", *SHOWN[name], *INV, "--format", "json")
    assert (sourced.code, sourced.err, list(sourced.json)) == (0, "", ["studio-a"])
    check_golden(f"show-{name}.json", sourced.out)


# plan and apply, as a person reads them ----------------------------------------------------------------------------

STORY: tuple[dict[str, Any], ...] = (
    {
        "asset": {
            "title": "Evening News",
            "was": ["Evening News raw"],
            "fields": {"comment": "Ready\nfor air", "first_frame": "00:00:10:00"},
            "xmp": {"dc:subject": ["news", "evening"]},
            "segments": [{"number": 1, "start": 0, "duration": "00:12:30:00", "title": "Part 1"}],
            "markers": [{"at": "00:12:30:00", "track": "Cue Point", "title": "Ad break"}],
            "links": [{"folder": "Playout/Tonight"}],
            "exactly": ["segments"],
        }
    },
    {"rss": {"channel": "ticker", "items": [{"guid": "n-9", "file": "n-9.txt", "text": "Новости дня"}]}},
)


def test_the_whole_way_as_it_is_read(desk: Desk) -> None:
    desk.play(*STORY)
    for name, arguments in {
        "plan.txt": ("plan",),
        "plan-vv.txt": ("plan", "-vv"),
        "plan.md": ("plan", "--format", "markdown"),
        "plan.json": ("plan", "--format", "json"),
        "apply.txt": ("apply", "--yes"),
        "plan-again.txt": ("plan",),
    }.items():
        sourced = desk.run(*arguments, *INV, "play.yml")
        assert (sourced.code, sourced.err) == (0, "")
        check_golden(name, sourced.out, (f'"msauto": "{__version__}"', '"msauto": "VERSION"'))
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    check_golden("history.txt", desk.run("history").out, ("who".ljust(len(who)), "who"), (who, "USER@HOST"))
    told = desk.run("history", "last").out
    user = "user             "
    mine = (f"{user}{getpass.getuser()}", f"{user}USER")
    check_golden("history-last.txt", told, (__version__, "VERSION"), (str(desk.folder), "FOLDER"), mine)


# history and vars ----------------------------------------------------------------------------------------------------


def variables(desk: Desk) -> None:
    desk.write(
        "house/hosts.yml",
        "all:\n  vars: {word: all, house: Kanal 5}\n  children:\n    playout:\n      vars: {word: group}\n"
        "      hosts:\n        studio-a:\n          word: host\n          motto: '{{ house }}, {{ word }}'\n"
        "          broken: '{{ nobody }}'\n          api_token: tok-123\n          from_env: 'x{{ env.SECRET_WORD }}'\n"
        "          feed: http://u:hunter2@feed\n          deep: {password: hunter2, list: [1, 2]}\n"
        "          server: {url: 'http://a', auth: {bearer: '{{ env.SECRET_WORD }}'}}\n",
    )
    desk.write("house/group_vars/all.yml", {"word": "group_vars/all"})
    desk.write("house/host_vars/studio-a.yml", {"word": "host_vars"})
    desk.environment["SECRET_WORD"] = "hunter2"


def test_vars_that_need_the_asset_of_a_task(desk: Desk) -> None:
    desk.inventory({"a": {"label": "{{ asset.title }}", "house": "K5"}})
    said = desk.run("vars", "a", "-i", "inventory.yml")
    assert said.code == 0, said
    assert "(cannot be rendered: asset is known in tasks alone)" in said.out
    assert "K5" in said.out


def test_vars_of_a_host(desk: Desk) -> None:
    variables(desk)
    sourced = desk.run("vars", "-i", "house/hosts.yml", "studio-a")
    assert (sourced.code, sourced.err) == (0, "")
    check_golden("vars.txt", sourced.out)
    assert "hunter2" not in sourced.out
    assert "tok-123" not in sourced.out


def test_the_winner_and_the_losers(desk: Desk) -> None:
    variables(desk)
    arguments = ("vars", "-i", "house/hosts.yml", "studio-a", "word", "-e", "word=extra")
    check_golden("vars-word.txt", desk.run(*arguments).out)
    told = desk.run(*arguments, "--format", "json").json
    assert [(each["value"], each["set_by"], each["wins"]) for each in told] == [
        ("extra", "-e", True),
        ("host_vars", "host_vars", False),
        ("host", "inventory host vars", False),
        ("group_vars/all", "group_vars/all", False),
        ("group", "inventory group vars", False),
        ("all", "inventory group vars", False),
    ]
    assert (told[2]["file"], told[2]["line"]) == ("house/hosts.yml", 8)
    assert "hunter2" not in desk.run("vars", "-i", "house/hosts.yml", "studio-a", "--format", "json").out


def test_where_each_key_of_the_server_comes_from_without_secrets(desk: Desk) -> None:
    variables(desk)
    private = {"basic": {"username": "ops", "password": "pw"}, "headers": {"username": "h1"}, "beerer": "h2"}
    tls = {"verify": False, "key_password": "pw"}
    group = {
        "server": {"timezone": "{{ zone }}", "auth": private, "tls": tls, "url": "ops:h3@b", "secret": {"url": "h4"}}
    }
    desk.write("house/group_vars/playout.yml", group)
    arguments = ("vars", "-i", "house/hosts.yml", "studio-a", "server")
    check_golden("vars-server.txt", desk.run(*arguments).out)
    told = desk.run(*arguments, "--format", "json").json
    assert [(each["name"], each["set_by"], each["wins"]) for each in told[:3]] == [
        ("server.auth", "inventory host vars", True),
        ("server.auth", "group_vars", False),
        ("server.secret", "group_vars", True),
    ]
    desk.write("house/group_vars/playout.yml", {"server": {"auth": "bearer=h5", "tls": "h5"}})
    assert "h5" not in desk.run(*arguments).out
    alone = desk.run("vars", "--server", "http://b", "b", "server")
    assert "http://b" in alone.out


# simulate ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_simulate_until_it_is_stopped(desk: Desk, number: int) -> None:
    with desk.start("simulate", "--port", "0", "--seed", "empty", "--state", "house.json") as process:
        assert process.stderr is not None
        words = process.stderr.readline()
        assert words.startswith("A media server listens at http://127.0.0.1:")
        url = words.split()[5]
        with urllib.request.urlopen(f"{url}/storage/NEWS", timeout=5) as answer:
            assert b"StoredTree" in answer.read()
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert process.returncode in {0, 130}
    assert "Traceback" not in err
    assert out == ""


# How it is called ----------------------------------------------------------------------------------------------------


def test_python_m_msauto_and_the_script(desk: Desk) -> None:
    assert desk.spawn("--version").out == f"msauto, version {__version__}\n"
    script = Path(sys.executable).parent / "msauto"
    if script.exists():
        sourced = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
        assert sourced.stdout == f"msauto, version {__version__}\n"


def test_head_is_content_with_less(desk: Desk) -> None:
    command = f"{' '.join(MSAUTO)} show assets -i inventory.yml | head -1"
    sourced = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=desk.folder,
        env=desk.surroundings(),
        capture_output=True,
        text=True,
    )
    assert sourced.stderr == ""
    assert sourced.stdout.count("\n") == 1
    assert sourced.returncode == 0


def test_a_locale_that_knows_no_cyrillic(desk: Desk) -> None:
    desk.environment.update(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
    sourced = desk.spawn("show", "assets", "A\\/B Tests", *INV)
    assert sourced.code == 0, sourced
    assert "\\u041d" in sourced.out
    assert "Traceback" not in sourced.err


def test_no_colour_goes_into_a_pipe(desk: Desk) -> None:
    desk.play(*STORY)
    desk.environment["TERM"] = "xterm-256color"
    assert "\x1b" not in desk.spawn("plan", *INV, "play.yml").out
    assert os.environ.get("FORCE_COLOR") is None
