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
from msauto.plugins.simulator.embedded import SimDialect, Simulator

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
    (folder / "inventory.yml").write_text(
        yaml.safe_dump({"all": {"hosts": hosts}}, allow_unicode=True)
    )
    return str(folder / "inventory.yml")


def test_what_is_printed_can_be_pasted(
    sim: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sim.dialect = SimDialect.parse(HABITS.split())
    given = inventory(sim, tmp_path)
    assert main(["probe", "-i", given, "--scratch", TITLE, "-y", "--xmp-field", "dc:title"]) == 0
    out, err = capsys.readouterr()
    assert "it is as it was before" in err
    path = inventory(sim, tmp_path, pasted=out)
    (server,) = named_servers(ResolveOptions(playbooks=(), inventories=(path,)))
    dialect = server.spec.dialect
    assert (dialect.segment_update, dialect.marker_update, dialect.position_origin) == (
        "overwrite",
        "changed",
        "in",
    )
    assert (dialect.list_separator, dialect.not_found, dialect.title_address) == (
        ";",
        "text",
        "plain",
    )
    for line in out.splitlines():
        name, colon, value = line.strip().partition(": ")
        assert (
            line.startswith("#")
            or line.lstrip().startswith("#")
            or line == "dialect:"
            or (name and colon and value)
        )
    assert "# CREATESEGMENT on an existing number: accepted; it shows the new one alone" in out


def test_reading_sends_no_write_and_gives_json(
    sim: Simulator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["probe", "--server", sim.url, "-d", "NEWS", "--title", TITLE, "--format", "json"])
        == 0
    )
    found = json.loads(capsys.readouterr().out)["127.0.0.1"]
    assert found["dialect"] == {
        "not_found": "auto",
        "title_address": "plain",
        "xmp_read": "auto",
        "link_title": "address",
    }
    assert found["left"] is None
    assert {each["name"] for each in found["missed"]} >= {
        "segment_update",
        "list_separator",
        "folder_missing",
    }
    assert {entry.method for entry in sim.log} == {"GET"}
