"""Who writes a plan file: nothing of it is sent, and it is applied only if the playbooks give the same plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.security.security_desk import CANARY, forge, repository, server
from tests.tables import table

FLAGS = ("-i", "inventory.yml", "--state-dir", "state")
Forgery = Callable[[dict[str, Any]], object]


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with server() as simulator:
        yield simulator


@pytest.fixture
def desk(tmp_path: Path, sim: Simulator) -> Desk:
    desk = repository(tmp_path, sim.url)
    play = desk.play(
        {
            "asset": {
                "title": "Film",
                "fields": {"comment": "Ready"},
                "xmp": {"dc:title": ["a"]},
                "markers": [{"at": 5, "title": "m"}],
                "segments": [{"number": 1, "start": 0, "duration": 5, "title": "s"}],
            }
        },
        {"rss": {"channel": "ticker", "items": [{"guid": "n-1", "text": "Hello"}]}},
        {"thumbnail": {"title": "Film", "dest": "still.png"}},
    )
    sourced = desk.run("plan", play, *FLAGS, "--out", "plan.json")
    assert sourced.code == 0, sourced.err
    return desk


def path_of(data: dict[str, Any], word: str) -> dict[str, Any]:
    requests = (request for target in data["targets"] for request in target["requests"])
    found: dict[str, Any] = next(request for request in requests if word in request["path"])
    return found


def sets(word: str, path: str | None = None, **keys: Any) -> Forgery:
    def change(data: dict[str, Any]) -> None:
        request = path_of(data, word)
        request.update(keys | ({"path": path} if path is not None else {}))

    return change


def drops_changes(data: dict[str, Any]) -> None:
    path_of(data, "SETFIELD")["changes"] = []


def shows_what_it_does_not_do(data: dict[str, Any]) -> None:
    target = data["targets"][0]
    target["changes"].append({**target["changes"][0], "key": "user_7"})


@table("planning/forged_requests", "word", "keys", one_in=4)
def test_a_forged_request_is_refused(
    desk: Desk, sim: Simulator, word: str, keys: dict[str, Any]
) -> None:
    is_refused(desk, sim, lambda data: path_of(data, word).update(keys))


@pytest.mark.parametrize("forgery", [drops_changes, shows_what_it_does_not_do])
def test_a_plan_whose_changes_are_not_its_requests_is_refused(
    desk: Desk, sim: Simulator, forgery: Forgery
) -> None:
    is_refused(desk, sim, forgery)


def is_refused(desk: Desk, sim: Simulator, forgery: Forgery) -> None:
    data = json.loads((desk.folder / "plan.json").read_text())
    planned = set()
    for target in data["targets"]:
        planned |= {request["path"] for request in target["requests"]}
    forge(desk.folder / "plan.json", forgery)
    sourced = desk.run("apply", "plan.json", *FLAGS, "--yes")
    assert sourced.code in {1, 4}, sourced.out + sourced.err
    sourced.one_error()
    assert sim.writes() == []
    assert desk.run("apply", "plan.json", *FLAGS, "--yes", "--keep-going").code in {1, 3}
    assert {entry.target for entry in sim.writes()} <= planned
    assert not (desk.folder / "other.png").exists()


@pytest.mark.parametrize(
    "dest", ["../escaped.png", "/tmp/msauto-escaped.png", ".git/hooks/pre-commit", "play.yml"]
)
def test_a_forged_plan_writes_no_file_where_no_playbook_may(
    desk: Desk, sim: Simulator, dest: str
) -> None:
    def change(data: dict[str, Any]) -> None:
        for target in data["targets"]:
            for number, shown in enumerate(target["changes"]):
                if shown["aspect"] == "thumbnail":
                    shown["key"] = dest
                    request = next(
                        each for each in target["requests"] if each["changes"] == [number]
                    )
                    request["dest"] = request["effects"][0]["key"] = dest

    before = (desk.folder / "play.yml").read_text()
    forge(desk.folder / "plan.json", change)
    sourced = desk.run("apply", "plan.json", *FLAGS, "--yes")
    assert (sourced.code, sim.writes()) == (4, [])
    assert (desk.folder / "play.yml").read_text() == before


@table("planning/forged_plans", "options", "words")
def test_a_forged_plan_sends_nothing_elsewhere(
    desk: Desk, sim: Simulator, options: dict[str, Any], words: str
) -> None:
    desk.inventory(
        {"studio-a": {"server": {"url": "http://127.0.0.1:9"}, "database": "NEWS"}}, "evil.yml"
    )
    forge(desk.folder / "plan.json", lambda data: data["options"].update(options))
    if "extra_vars" in options:
        forge(
            desk.folder / "plan.json",
            lambda data: data["servers"][0].update(url="http://127.0.0.1:9"),
        )
    sim.clear_log()
    sourced = desk.run("apply", "plan.json", *FLAGS[2:], "--yes")
    assert sourced.code in {1, 4}
    sourced.one_error(words)
    assert sim.log == []


def test_a_forged_plan_names_no_server_that_the_inventory_lacks(desk: Desk, sim: Simulator) -> None:
    forge(desk.folder / "plan.json", lambda data: data["targets"][0].update(server="evil"))
    sourced = desk.run("apply", "plan.json", *FLAGS, "--yes")
    assert (sourced.code, sim.writes()) == (4, [])


def test_a_plan_holds_no_secret(tmp_path: Path) -> None:
    with server("auth=bearer", f"auth_secret={'Canary-7Q'}") as sim:
        desk = repository(tmp_path, sim.url, auth={"bearer": "Canary-7Q"})
        sourced = desk.run("plan", desk.comment("x", "Film"), *FLAGS, "--out", "plan.json")
        assert sourced.code == 0, sourced.err
        text = (desk.folder / "plan.json").read_text()
        assert "Canary" not in text
        assert CANARY not in text
        assert oct((desk.folder / "plan.json").stat().st_mode)[-3:] == "600"
