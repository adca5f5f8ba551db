"""A plan on a Dask cluster is the same bytes as a local one, with the same requests to the server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from msauto.api.stages import make_plan
from msauto.concurrency import SystemClock
from msauto.ledger import Ledger
from msauto.model.events import Event
from msauto.model.plan import Limits, Plan
from msauto.planning.saved_plan import plan_document
from msauto.playbook.inventory.hosts import ResolveOptions
from msauto.playbook.resolve import resolve
from msauto.report.json import dump_document
from msauto.simulator import Simulator, bulk_state, sample_state
from tests.clusters import Cluster, process_cluster, threads_cluster

BOLD = Limits(delete_assets=1000, allow_remove=1000)
NOON = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


class Noon(SystemClock):
    def now(self) -> datetime:
        return NOON


@dataclass
class Seen:
    """An observer of events."""

    events: list[Event] = field(default_factory=list)

    def notify(self, event: Event) -> None:
        self.events.append(event)


@pytest.fixture(scope="module", params=["threads", pytest.param("processes", marks=pytest.mark.scale)])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with threads_cluster(2, {}) if request.param == "threads" else process_cluster(2) as cluster:
        yield cluster


@dataclass(frozen=True)
class House:
    """Playbooks for a simulator; they are planned here and on a cluster."""

    sim: Simulator
    folder: Path
    cluster: Cluster

    def plan(
        self,
        on: str | None,
        *tasks: Mapping[str, Any],
        env: Mapping[str, str],
        targets: tuple[str, ...] = (),
        forget: bool = False,
        seen: Seen | None = None,
        limits: Limits = BOLD,
        handlers: list[Mapping[str, Any]] | None = None,
        server: Mapping[str, Any] | None = None,
    ) -> Plan:
        block = {"url": self.sim.url, **(server or {})}
        inventory = {"all": {"hosts": {"studio": {"server": block, "database": "NEWS", "house": "Kanal 5"}}}}
        play = {"name": "A test", "hosts": "all", "tasks": list(tasks), "handlers": handlers or []}
        for name, value in (("inventory.yml", inventory), ("playbook.yml", [play])):
            (self.folder / name).write_text(yaml.safe_dump(value, allow_unicode=True, sort_keys=False))
        options = ResolveOptions(
            playbooks=(str(self.folder / "playbook.yml"),),
            inventories=(str(self.folder / "inventory.yml"),),
            env=env,
            now=NOON,
        )
        with Ledger.open(self.folder / "state", readonly=True) as ledger:
            return asyncio.run(
                make_plan(
                    resolve(options),
                    memory=ledger.memory,
                    clock=Noon(),
                    forks=8,
                    limits=limits,
                    targets=targets,
                    forget_pending=forget,
                    observer=seen or Seen(),
                    on=on,
                )
            )

    def both(self, *tasks: Mapping[str, Any], env: Mapping[str, str] | None = None, **more: Any) -> Plan:
        """Plan here and on the cluster; return the plan, if both and the requests for them are the same."""
        plans, reads, events = [], [], []
        for on in (None, self.cluster.address):
            before, seen = len(self.sim.log), Seen()
            plans.append(self.plan(on, *tasks, env=env or {}, seen=seen, **more))
            reads.append(sorted(entry.target for entry in self.sim.log[before:]))
            events.append(sorted(map(repr, seen.events)))
        documents = ["".join(dump_document(plan_document(plan))) for plan in plans]
        assert documents[1] == documents[0]
        assert plans[1] == plans[0], "also what the documents do not show"
        assert reads[1] == reads[0]
        assert events[1] == events[0]
        return plans[1]


@pytest.fixture(params=["sample", pytest.param("bulk", marks=pytest.mark.scale)])
def any_house(request: pytest.FixtureRequest, cluster: Cluster, tmp_path: Path) -> Iterator[House]:
    with Simulator(state=sample_state() if request.param == "sample" else bulk_state(300)) as sim:
        yield House(sim, tmp_path, cluster)


@pytest.fixture
def house(cluster: Cluster, tmp_path: Path) -> Iterator[House]:
    with Simulator(state=sample_state()) as sim:
        yield House(sim, tmp_path, cluster)


EVERYTHING = {"folder": "/", "recursive": True}


@pytest.mark.scale
def test_a_selection_of_everything(any_house: House) -> None:
    plan = any_house.both({"name": "x", "asset": {"select": EVERYTHING, "fields": {"comment": "{{ asset.title }}!"}}})
    assert plan.requests


def test_a_selection_by_facts_of_the_clip_reads_each_clip_once(any_house: House) -> None:
    where = "asset.frames > 100 and asset.markers | length < 3"
    task = {"select": {**EVERYTHING, "where": where}, "markers": [{"at": 3, "track": "Cue Point", "title": "x"}]}
    assert any_house.both({"name": "x", "asset": task}).requests


def test_links_read_each_folder_once(any_house: House) -> None:
    links = [{"folder": "Playout/Tonight"}, {"folder": "Playout/Tomorrow"}, {"folder": "Promos"}]
    any_house.both({"name": "x", "asset": {"select": EVERYTHING, "links": links}})


@pytest.mark.scale
def test_links_that_are_complete_list_the_database_once(any_house: House) -> None:
    task = {"select": EVERYTHING, "links": [{"folder": "Playout/Tonight"}], "exactly": ["links"]}
    any_house.both({"name": "x", "asset": task})


@pytest.mark.scale
def test_deletions_list_the_database_once(any_house: House) -> None:
    plan = any_house.both(
        {"name": "x", "asset": {"select": EVERYTHING, "state": "absent", "with_links": True}},
        limits=Limits(delete_assets=1000, protected=("Master/*",)),
    )
    assert plan.summary.delete or plan.errors


def test_missing_titles_get_similar_ones(house: House) -> None:
    titles = [f"Evening Nevs {number}" for number in range(15)] + ["Long Fil"]
    plan = house.both({"name": "x", "asset": {"title": "{{ item }}", "fields": {"comment": "x"}}, "loop": titles})
    assert plan.errors == 16


@pytest.mark.scale
def test_two_names_of_one_clip_are_one_target(house: House) -> None:
    house.both(
        {"name": "a", "asset": {"select": EVERYTHING, "fields": {"comment": "x"}}},
        {"name": "b", "asset": {"title": "Long Film", "was": ["Evening News"], "fields": {"user_0": "y"}}},
        {
            "name": "c",
            "asset": {"title": "Renamed", "was": ["Long Film"], "missing": "skip", "fields": {"user_1": "z"}},
        },
    )


@pytest.mark.scale
def test_xmp_channels_assertions_and_narrowing(house: House) -> None:
    tasks = [
        {
            "name": "a",
            "asset": {"select": EVERYTHING, "xmp": {"dc:subject": ["news"], "dc:title": "{{ asset.title }}"}},
        },
        {"name": "b", "rss": {"channel": "ticker", "items": [{"guid": "n-1", "file": "n-1.txt", "text": "Hi"}]}},
        {"name": "c", "assert": {"select": EVERYTHING, "that": ["asset.frames > 250"], "msg": "too short"}},
        {"name": "d", "asset": {"select": EVERYTHING, "fields": {"comment": "{{ asset.xmp | length }}"}}},
    ]
    house.both(*tasks)
    house.both(*tasks, targets=("E*", "ticker"))


@pytest.mark.scale
def test_handlers_and_variables_and_the_environment(house: House) -> None:
    (house.folder / "note.txt").write_text("from a file\n")
    house.both(
        {
            "name": "a",
            "vars": {"made": "{{ house }} {{ asset.frames }}", "all": "{{ hostvars[inventory_hostname].house }}"},
            "asset": {
                "select": EVERYTHING,
                "fields": {
                    "comment": "{{ made }} {{ env.TAG }} {{ lookup('env', 'NO', default='-') }} {{ all }}",
                    "user_0": "{{ lookup('file', 'note.txt') }} {{ asset.title }} {{ now.year }}",
                    "user_1": "{{ (asset.frames > 250) | ternary('long', omit) }}",
                },
            },
            "notify": ["Export", "A still"],
        },
        env={"TAG": "tonight", "OTHER": "never"},
        handlers=[
            {"name": "Export", "command": {"name": "PARTNER_EXPORT_VERSION"}},
            {"name": "A still", "thumbnail": {"pos": 0, "dest": "out/{{ asset.title }}.png"}},
        ],
    )


def test_errors_of_templates_show_the_line(house: House) -> None:
    plan = house.both(
        {"name": "a", "asset": {"select": EVERYTHING, "fields": {"comment": "{{ 1 // (asset.frames - 750) }}"}}}
    )
    assert plan.errors


SECRET = "hunter2-Kanal-5"


def test_secrets_are_found_wherever_they_are(house: House) -> None:
    name = "STUDIO_KEY"
    texts = {
        "comment": f"{{{{ env.{name} | secret }}}}",
        "user_0": f"{{{{ asset.title }}}} {{{{ env.{name} | secret }}}}",
    }
    task = {"select": {"folder": "Master", "recursive": True}, "fields": texts}
    plan = house.both({"name": "a", "asset": task}, env={name: SECRET})
    assert SECRET in plan.secrets.texts
    assert plan.requests


@pytest.mark.scale
@pytest.mark.parametrize("fault", ["", "status:401@GET .*"], ids=["dead", "unauthorized"])
def test_a_server_that_does_not_answer_gives_the_same_errors(house: House, fault: str) -> None:
    tasks = [{"name": f"t{n}", "asset": {"title": f"Film {n}", "fields": {"comment": "x"}}} for n in range(30)]
    if fault:
        house.sim.faults.add(fault)
    else:
        house.sim.stop()
    plans = [house.plan(on, *tasks, env={}) for on in (None, house.cluster.address)]
    assert [plan.errors for plan in plans] == [30, 30]
    assert plans[1].unreachable == plans[0].unreachable
    errors = [[target.error for target in plan.targets] for plan in plans]
    assert errors[1] == errors[0]
