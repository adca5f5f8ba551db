"""``msauto rehearse``: a dry run that ran. Nothing is written to the server, to the ledger, or to the user's files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import msauto
from msauto.plugins.simulator import rehearsal as rehearsals
from msauto.plugins.simulator.embedded import SimDialect, SimMarker, SimSegment, Simulator
from msauto.plugins.simulator.embedded.seed import state_to_json
from tests.cli.command_line import Desk, Said

INV = ("-i", "inventory.yml")
PLAYBOOKS = Path(__file__).parents[3] / "playbooks"


def rehearse(desk: Desk, *arguments: str) -> Said:
    return desk.run("rehearse", *INV, *arguments)


@pytest.mark.scale
def test_all_examples_are_rehearsed_and_nothing_is_written(desk: Desk, sim: Simulator) -> None:
    shutil.copytree(PLAYBOOKS, desk.folder, dirs_exist_ok=True)
    desk.environment["STUDIO_A_URL"] = sim.url
    sim.state.clip("Studio A live").recording_since = None
    before, files = state_to_json(sim.state), desk.files()
    for playbook in sorted(PLAYBOOKS.glob("*.yml")):
        if playbook.name not in {"inventory.yml", "site.yml"}:
            said = rehearse(desk, playbook.name, "--allow-delete", "2")
            assert said.code == 0, (playbook.name, said)
            assert "as planned; the second plan is empty" in said.out
    assert {entry.method for entry in sim.log} == {"GET"}
    assert (state_to_json(sim.state), desk.files()) == (before, files)


def test_the_copy_knows_what_the_ledger_does(desk: Desk, sim: Simulator) -> None:
    name = desk.play(
        {"command": {"name": "PARTNER_COPY_PROGRAM_FIELDS", "title": "EP001", "run": "once"}},
        {
            "asset": {
                "title": "EP001",
                "fields": {"comment": "x"},
                "markers": [{"at": 5, "title": "m"}],
            }
        },
        {"thumbnail": {"title": "EP001", "dest": "still.png"}},
    )
    assert desk.run("apply", *INV, name, "--yes").code == 0
    sim.clear_log()
    ledger, still = (desk.state / "msauto" / "ledger.sqlite", desk.folder / "still.png")
    before = ledger.read_bytes(), still.read_bytes()
    assert rehearse(desk, name, "--format", "json").json["result"]["result"]["run"]
    said = rehearse(desk, name)
    assert (said.code, "No changes" in said.out) == (0, True), said
    sim.state.clip("EP001").home.fields["comment"], sim.state.clip("EP001").markers[0].pos = (
        "theirs",
        77,
    )
    said = rehearse(desk, name)
    assert "changed outside since" in said.out
    assert "undo brings everything back" in said.out
    assert (said.code, before) == (0, (ledger.read_bytes(), still.read_bytes()))
    assert not sim.writes()


def test_each_server_has_a_copy_without_its_credentials(
    desk: Desk, sim: Simulator, other_sim: Simulator
) -> None:
    sim.dialect = SimDialect(
        auth="bearer", auth_secret="hunter2-secret", segment_update="overwrite"
    )
    servers = {
        "studio-a": {
            "url": sim.url,
            "auth": {"bearer": "hunter2-secret"},
            "dialect": {"segment_update": "overwrite"},
        },
        "studio-b": {"url": other_sim.url},
    }
    desk.inventory({name: {"server": each, "database": "NEWS"} for name, each in servers.items()})
    part = {
        "number": 1,
        "start": 0,
        "duration": "{{ asset.frames }}",
        "title": "{{ 'hunter3-secret' | secret }}",
    }
    other_sim.state.clip("EP001").frames = 77
    said = rehearse(desk, desk.play({"asset": {"title": "EP001", "segments": [part]}}), "-v")
    assert said.code == 0, said
    assert "copy of studio-a, studio-b: as planned" in said.out
    assert "duration=77" in said.out
    assert "-secret" not in said.out + said.err
    assert not sim.writes() + other_sim.writes()


@pytest.mark.scale
def test_identity_goes_with_the_copy(desk: Desk, sim: Simulator) -> None:
    """Links, twins of markers, another entry of the same title, an open file, an archived and an unfinalized clip."""
    database, film = sim.state.databases["NEWS"], sim.state.clip("Long Film")
    film.markers = [
        SimMarker(3, 5, {"title": "a"}),
        SimMarker(3, 9, {"title": "b"}),
        SimMarker(8, 20, {"title": "c"}),
    ]
    film.segments = [SimSegment(2, 5, 20, ["One", "Two"], "name", "Program", 3, "k")]
    database.add_entry(film, ("Playout", "Tonight"), "Film tonight").fields = {
        "comment": "of the link"
    }
    sim.state.handles["4711"] = sim.state.clip("EP002")
    sim.state.clip("EP004").xmp["house"] = ["H-4"]
    tasks = (
        {"title": "Promo 1 tonight", "fields": {"comment": "new"}},
        {
            "title": "Long Film",
            "was": ["Nobody"],
            "markers": [{"uid": 8, "title": "d"}, {"at": 100, "title": "e"}],
        },
        {"id": "handle:4711", "fields": {"comment": "open"}},
        {"id": f"link_id:{sim.state.clip('EP003').home.link_id}", "fields": {"user_0": "by id"}},
        {"id": "house:H-4", "fields": {"user_0": "by XMP"}},
        {"id": "orig_name:EP005", "fields": {"user_0": "by its name"}},
        {"title": "Studio A live", "unfinalized": "allow", "fields": {"comment": "live"}},
        {"title": "Documentary 1987", "restore": True},
        {"select": {"folder": "Stills"}, "fields": {"user_1": "{{ asset.links | length }}"}},
    )
    link = {
        "title": "Film tonight",
        "fields": {"comment": ""},
        "links": [{"folder": "Playout/Tomorrow"}],
    }
    assert rehearse(desk, desk.play({"asset": link}, name="link.yml")).code == 0
    said = rehearse(desk, desk.play(*({"asset": each} for each in tasks)))
    assert said.code == 0, said
    left = said.out.partition("Undo does not bring back:\n")[2].splitlines()
    assert left[0] == "  studio-a · NEWS · Documentary 1987: restore hires"
    assert left[1].startswith("Rehearsed")


@pytest.mark.scale
@pytest.mark.parametrize(
    "dialect", [SimDialect(xmp_shape="unreadable"), SimDialect(orig_name="hidden")]
)
def test_no_problem_is_told_that_only_the_copy_has(
    dialect: SimDialect, desk: Desk, sim: Simulator
) -> None:
    sim.dialect = dialect
    name = desk.play(
        {"asset": {"title": "EP001 new", "was": ["EP001"], "xmp": {"dc:subject": ["x"]}}},
        {"asset": {"select": {"folder": "Playout", "recursive": True}, "fields": {"user_2": "x"}}},
    )
    said = rehearse(desk, name)
    assert said.code == 0, said


def test_a_server_that_is_left_out_has_no_copy(desk: Desk, sim: Simulator) -> None:
    servers = {"studio-a": {"url": sim.url}, "studio-b": {"url": "http://127.0.0.1:9"}}
    desk.inventory({name: {"server": each, "database": "NEWS"} for name, each in servers.items()})
    said = rehearse(desk, desk.comment("x"), "--keep-going")
    assert said.code == 3
    assert "no connection" in said.out
    assert said.out.endswith(
        "Rehearsed on an embedded copy of studio-a: not everything was as planned; the second plan is empty; undo "
        "brings everything back. Nothing was written to the server.\n"
    )


def test_a_copy_that_plans_otherwise_is_told(
    desk: Desk, sim: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsals, "entry_fields", lambda _: {"comment": "x"})
    said = rehearse(desk, desk.comment("x"))
    assert said.code == 3
    assert (
        "plans these otherwise than the server:\n  studio-a · NEWS · EP001: field comment"
        in said.out
    )


def test_the_library(desk: Desk, sim: Simulator) -> None:
    inventory = {"all": {"hosts": {"studio-a": {"server": {"url": sim.url}, "database": "NEWS"}}}}
    plays = [{"hosts": "all", "tasks": [{"asset": {"title": "EP001", "fields": {"comment": "x"}}}]}]
    play = msauto.load(plays, inventory=inventory, state_dir=desk.state)
    rehearsal = msauto.rehearse(play)
    assert (rehearsal.ok, len(rehearsal.plan.changes), rehearsal.again.changes) == (True, 1, ())
    assert rehearsal.to_text().endswith("Nothing was written to the server.\n")
    assert repr(rehearsal).startswith("<Rehearsal: ok, <Result ")
    assert not msauto.rehearse(play, fault=["status:400"]).ok
    msauto.apply(play)
    undo = msauto.load(undo="last", inventory=inventory, state_dir=desk.state)
    with pytest.raises(msauto.MsautoError, match="only playbooks are rehearsed"):
        msauto.rehearse(undo)
