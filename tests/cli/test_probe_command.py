"""``msauto probe`` as a command: what is printed can be pasted, consent, refusals and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from msauto.cli.main import main
from msauto.playbook.hosts import ResolveOptions, named_servers
from msauto.simulator import SimDialect, Simulator

TITLE = "Evening News raw"
HABITS = "segment_update=overwrite marker_update=keep position_origin=in list_separator=; not_found=200_text"


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    with Simulator() as simulator:
        yield simulator


@pytest.fixture
def sim(running: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    monkeypatch.chdir(tmp_path)
    running.dialect = SimDialect()
    running.faults.clear()
    running.clear_log()
    return running


def inventory(sim: Simulator, folder: Path, *, pasted: str = "") -> str:
    block: dict[str, Any] = {"url": sim.url} | (yaml.safe_load(pasted) or {})
    hosts = {"studio": {"server": block, "database": "NEWS"}}
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}, allow_unicode=True))
    return str(folder / "inventory.yml")


def test_what_is_printed_can_be_pasted(sim: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sim.dialect = SimDialect.parse(HABITS.split())
    given = inventory(sim, tmp_path)
    assert main(["probe", "-i", given, "--scratch", TITLE, "-y", "--xmp-field", "dc:title"]) == 0
    out, err = capsys.readouterr()
    assert "it is as it was before" in err
    path = inventory(sim, tmp_path, pasted=out)
    (server,) = named_servers(ResolveOptions(playbooks=(), inventories=(path,)))
    dialect = server.spec.dialect
    assert (dialect.segment_update, dialect.marker_update, dialect.position_origin) == ("overwrite", "changed", "in")
    assert (dialect.list_separator, dialect.not_found, dialect.title_address) == (";", "text", "plain")
    for line in out.splitlines():
        name, colon, value = line.strip().partition(": ")
        assert line.startswith("#") or line.lstrip().startswith("#") or line == "dialect:" or (name and colon and value)
    assert "# CREATESEGMENT on an existing number: accepted; it shows the new one alone" in out


def test_reading_sends_no_write_and_gives_json(sim: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--server", sim.url, "-d", "NEWS", "--title", TITLE, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["127.0.0.1"]
    assert found["dialect"] == {
        "not_found": "auto",
        "title_address": "plain",
        "xmp_read": "auto",
    }
    assert found["left"] is None
    assert {each["name"] for each in found["missed"]} >= {"segment_update", "list_separator", "folder_missing"}
    assert {entry.method for entry in sim.log} == {"GET"}


def test_nobody_agreed(sim: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", "--server", sim.url, "-d", "NEWS", "--scratch", TITLE]) == 4
    assert "no consent" in capsys.readouterr().err
    assert sim.log == []


@pytest.mark.parametrize(
    ("title", "protected", "code"),
    [
        (TITLE, ["Raw/*"], 4),
        (TITLE, ["Evening*"], 4),
        ("Promo 1", ["Playout/*"], 4),  # its link lives there
        ("Studio A live", [], 4),  # still being recorded
        ("No such", [], 1),
    ],
)
def test_refused_assets(
    sim: Simulator, capsys: pytest.CaptureFixture[str], title: str, protected: list[str], code: int
) -> None:
    Path("msauto.toml").write_text(f"protected = {json.dumps(protected)}\n")
    assert main(["probe", "--server", sim.url, "-d", "NEWS", "--scratch", title, "-y"]) == code
    assert title in capsys.readouterr().err
    assert sim.writes() == []


@pytest.mark.scale
def test_something_left_is_3(sim: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    sim.faults.add("status:500@POST .*DELETESEGMENT")
    assert main(["probe", "--server", sim.url, "-d", "NEWS", "--scratch", "EP001", "-y"]) == 3
    out, err = capsys.readouterr()
    assert "Left on 'EP001': segment 1" in err
    assert "segment_update: recreate" in out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--server", "http://127.0.0.1:9", "-d", "NEWS"], "no connection"),
        (["--server", "http://127.0.0.1:9"], "--database"),
        (["--server", "ftp://x", "-d", "NEWS"], "http"),
    ],
)
def test_bad_usage_is_1(sim: Simulator, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str) -> None:
    assert main(["probe", *arguments]) == 1
    out, err = capsys.readouterr()
    assert (out, word in err, "Traceback" in err) == ("", True, False)


def test_trial_is_of_one_server(sim: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Simulator() as second:
        hosts = {
            name: {"server": {"url": each.url}, "database": "NEWS"} for name, each in {"a": sim, "b": second}.items()
        }
        Path("two.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        assert main(["probe", "-i", "two.yml", "--scratch", TITLE, "-y"]) == 1
        assert "--limit HOST" in capsys.readouterr().err
        assert main(["probe", "-i", "two.yml"]) == 0
        assert len(list(yaml.safe_load_all(capsys.readouterr().out))) == 2
        assert sim.writes() == second.writes() == []


def test_a_trial_on_a_channel(sim: Simulator, capsys: pytest.CaptureFixture[str]) -> None:
    trial = ["probe", "--server", sim.url, "-d", "NEWS", "--scratch-channel", "ticker"]
    before = list(sim.state.channels["ticker"].items)
    assert (main(trial), sim.writes()) == (4, [])
    assert "no consent" in capsys.readouterr().err
    assert main([*trial, "-y"]) == 0
    out, err = capsys.readouterr()
    assert yaml.safe_load(out)["dialect"]["rss_guid"] == "item"
    assert "'ticker' was read again: it is as it was before." in err
    assert sim.state.channels["ticker"].items == before
    assert main([*trial, "-y", "--scratch", TITLE]) == 1
    assert "run one after the other" in capsys.readouterr().err


def test_a_trial_obeys_a_freeze(sim: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = inventory(sim, tmp_path)
    (tmp_path / "msauto.toml").write_text('[[freeze]]\nstart = 2000-01-01\nend = 2999-01-01\nreason = "Election"\n')
    trial = ["probe", "-i", given, "--scratch", TITLE, "-y"]
    assert (main(trial), sim.writes()) == (4, [])
    err = capsys.readouterr().err
    assert "msauto.toml has a freeze" in err
    assert "(Election): nothing was sent" in err
    assert "--override-freeze REASON" in err
    assert main(["probe", "-i", given]) == 0  # it only reads
    assert main([*trial, "--override-freeze", "a new server"]) == 0
    assert sim.writes()
    assert "a new server" in capsys.readouterr().err
