"""``--on``: the address, the extra, the host variable, and the same plans, requests and output as without it."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from msauto.plugins.simulator.embedded import Simulator
from tests.cli.command_line import Desk
from tests.clusters import Cluster, threads_cluster
from tests.tables import table


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with threads_cluster(1, {"site-oslo": 1}) as cluster:
        yield cluster


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.inventory(
        {"studio": {"server": {"url": desk.url}, "database": "NEWS", "worker": {"site-oslo": 1}}}
    )
    return desk


BASIC = ("-i", "inventory.yml")


def test_plan_apply_check_and_batch_print_the_same(desk: Desk, cluster: Cluster) -> None:
    play = desk.comment("Ready", "Master Film")
    for command in (
        ("plan", play),
        ("apply", play, "--check"),
        ("plan", play, "--format", "json", "--target", "M*"),
    ):
        here, there = (
            desk.run(*command, *BASIC),
            desk.run(*command, *BASIC, "--on", cluster.address),
        )
        created = {"created", "now"} if "json" in command else set()
        assert (there.code, there.err.splitlines()[1:]) == (here.code, here.err.splitlines()[1:]), (
            there,
            here,
        )
        lines = [
            [line for line in said.out.splitlines() if not created & set(line.split('"'))]
            for said in (there, here)
        ]
        assert lines[0] == lines[1]
    desk.write(
        "batch.yml",
        {
            "name": "night",
            "schedule": {"at": "03:00", "tz": "UTC"},
            "jobs": {"night": {"playbooks": play, "inventory": "inventory.yml", "do": "plan"}},
        },
    )
    said = desk.run("batch", "run", "batch.yml", "--check", "--on", cluster.address)
    assert (said.code, "night" in said.out) == (0, True), said


RAW = {"folder": "Raw", "recursive": True}
FACTS = {**RAW, "where": "asset.frames > 100 and asset.markers | length < 3"}
TEXTS = {
    "comment": "{{ made }} {{ env.TAG }} {{ lookup('env', 'NO', default='-') }} {{ hostvars.studio.database }}",
    "user_0": "{{ lookup('file', 'note.txt') }} {{ asset.title }} {{ now.year }}",
    "user_1": "{{ (asset.frames > 250) | ternary('long', omit) }}",
    "user_2": "{{ asset.xmp | length }}",
    "user_3": "{{ env.STUDIO_KEY | secret }}",
}
PLANS: dict[str, dict[str, Any]] = {
    "facts": {
        "asset": {"select": FACTS, "markers": [{"at": 3, "track": "Cue Point", "title": "x"}]}
    },
    "texts": {
        "asset": {"select": RAW, "fields": TEXTS},
        "vars": {"made": "{{ database }} {{ asset.frames }}"},
        "notify": ["Export", "A still"],
    },
    "links": {
        "asset": {"select": RAW, "links": [{"folder": "Playout/Tonight"}], "exactly": ["links"]}
    },
    "deletions": {"asset": {"select": RAW, "state": "absent", "with_links": True}},
    "renames": {
        "asset": {
            "title": "Renamed",
            "was": ["Long Film"],
            "missing": "skip",
            "fields": {"user_1": "z"},
        },
    },
    "missing titles": {
        "asset": {"title": "{{ item }}", "fields": {}},
        "loop": ["Evening Nevs", "Long Fil"],
    },
    "errors": {"asset": {"select": RAW, "fields": {"comment": "{{ 1 // (asset.frames - 750) }}"}}},
    "xmp": {
        "asset": {"select": RAW, "xmp": {"dc:subject": ["news"], "dc:title": "{{ asset.title }}"}}
    },
    "channel": {
        "rss": {"channel": "ticker", "items": [{"guid": "n-1", "file": "n-1.txt", "text": "Hi"}]}
    },
    "assertion": {"assert": {"select": RAW, "that": ["asset.frames > 250"], "msg": "too short"}},
}


@pytest.mark.scale
@pytest.mark.parametrize("name", PLANS)
def test_the_same_is_read_planned_and_told(
    desk: Desk, sim: Simulator, cluster: Cluster, name: str
) -> None:
    handlers = [
        {"name": "Export", "command": {"name": "PARTNER_EXPORT_VERSION"}},
        {"name": "A still", "thumbnail": {"pos": 0, "dest": "out/{{ asset.title }}.png"}},
    ]
    desk.environment |= {"TAG": "tonight", "STUDIO_KEY": "hunter2-Kanal-5"}
    desk.write("note.txt", "from a file\n")
    desk.write(
        "play.yml",
        [{"hosts": "all", "tasks": [{"name": "x", **PLANS[name]}], "handlers": handlers}],
    )
    found = []
    for more in ((), ("--on", cluster.address)):
        sim.clear_log()
        said = desk.run(
            "plan", "play.yml", *BASIC, "--format", "json", "--events", "run.jsonl", *more
        )
        document = said.json
        del document["created"], document["options"]["now"]
        events = [json.loads(line) for line in (desk.folder / "run.jsonl").read_text().splitlines()]
        kinds = sorted(
            (event["type"], str(event.get("target")), str(event.get("state"))) for event in events
        )
        found.append((said.code, document, sorted(entry.target for entry in sim.log), kinds))
        assert "hunter2" not in f"{said}{events}"
    assert found[1] == found[0]


@pytest.mark.scale
def test_everything_is_applied_once(
    desk: Desk, sim: Simulator, cluster: Cluster, shared_place: str
) -> None:
    desk.write("msauto.toml", f'inventory = "inventory.yml"\n[state]\nurl = "{shared_place}"\n')
    markers = [{"at": 7, "title": "Ad"}]
    desk.play(
        {"asset": {"select": {"folder": "Raw"}, "fields": {"comment": "Ready"}, "markers": markers}}
    )
    done = desk.run("apply", "play.yml", "--yes", "--on", cluster.address, "--format", "json")
    assert (done.code, done.json["result"]["changed"]) == (0, len(done.json["targets"])), done
    assert set(Counter(entry.line for entry in sim.writes()).values()) == {1}
    assert len(sim.writes()) == 2 * len(done.json["targets"])
    (run,) = desk.run("history", "--format", "json").json
    assert (run["status"], run["summary"]["sent"]) == ("ok", len(sim.writes()))
    assert (
        desk.run("apply", "play.yml", "--yes", "--on", cluster.address, "--format", "json").json[
            "targets"
        ]
        == []
    )


@pytest.mark.scale
def test_undo_plans_the_same(desk: Desk, cluster: Cluster) -> None:
    assert desk.run("apply", desk.comment("Ready", "Master Film"), *BASIC, "-y").code == 0
    here = desk.run("undo", "last", *BASIC, "--check")
    there = desk.run("undo", "last", *BASIC, "--check", "--on", cluster.address)
    assert (there.code, there.out) == (here.code, here.out) == (0, here.out)
    assert "Ready" in here.out


@pytest.mark.scale
def test_export_prints_the_same(desk: Desk, cluster: Cluster) -> None:
    selection = ("--folder", "Master", "--recursive", "--channel", "ticker", *BASIC)
    here = desk.run("export", *selection)
    assert here.code == 0, here
    assert desk.run("export", *selection, "--on", cluster.address) == here
    said = desk.run("export", "--title", "Nope", *BASIC, "--on", cluster.address)
    assert (said.code, said.out) == (1, "")
    said.one_error("studio has no asset 'Nope' in NEWS")


@pytest.mark.parametrize("address", ["dask://scheduler", "scheduler:8786", "dask://a b:1"])
def test_another_address_is_an_error_of_usage(desk: Desk, address: str) -> None:
    said = desk.run("plan", desk.comment("x"), *BASIC, "--on", address)
    assert said.code == 1
    said.one_error(
        f"{address!r} is not the address of a Dask scheduler, such as dask://scheduler:8786"
    )


def test_workers_that_no_plugin_brings_are_an_error(desk: Desk) -> None:
    said = desk.run("plan", desk.comment("x"), *BASIC, "--on", "tcp://scheduler:8786")
    assert said.code == 1
    said.one_error("place to work on 'tcp' not found")


@pytest.mark.parametrize("scheme", ["dask", "DASK"])
def test_without_the_extra_one_error_names_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setitem(sys.modules, "msauto.plugins.dask.cluster", None)
    said = desk.run("plan", desk.comment("x"), *BASIC, "--on", f"{scheme}://scheduler:8786")
    assert said.code == 1
    assert said.err.endswith(
        "Error: --on dask://scheduler:8786 needs the packages dask and distributed\n  → pip install dask distributed\n"
    )


@table("cli/wrong_workers", "worker", "message")
def test_the_host_variable_worker_is_validated(desk: Desk, worker: object, message: str) -> None:
    desk.inventory({"studio": {"server": {"url": desk.url}, "database": "NEWS", "worker": worker}})
    said = desk.run("plan", desk.comment("x"), *BASIC)
    assert said.code == 1
    said.one_error(message, "worker: {site-oslo: 1}")


def test_a_site_without_a_worker_is_an_error_before_anything_is_read(
    desk: Desk, cluster: Cluster
) -> None:
    desk.inventory(
        {"studio": {"server": {"url": desk.url}, "database": "NEWS", "worker": {"site-bergen": 1}}}
    )
    said = desk.run("plan", desk.comment("x"), *BASIC, "--on", cluster.address)
    assert said.code == 1
    said.one_error("server studio: no Dask worker has the resources site-bergen=1", "site-oslo=1")
