"""A Dask cluster in trouble: killed workers, a lost scheduler, Ctrl-C; and no secret on its pages or in its logs."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from msauto.secrets.redaction import encoded_forms
from msauto.simulator import Simulator, bulk_state
from tests.cli.command_line import Desk
from tests.clusters import Cluster, SeparateCluster, process_cluster, separate_cluster
from tests.whole_way.test_plans_on_dask import EVERYTHING, House

pytestmark = [pytest.mark.scale, pytest.mark.xdist_group("dask")]

CLIPS = 400
COMMENTS = {"name": "x", "asset": {"select": EVERYTHING, "fields": {"comment": "{{ asset.title }} {{ asset.frames }}"}}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with process_cluster(workers=2) as cluster:
        yield cluster


@pytest.mark.parametrize("reads", [1, 40, 250, 395])
def test_a_worker_killed_at_any_moment_changes_nothing(cluster: Cluster, tmp_path: Path, reads: int) -> None:
    with Simulator(state=bulk_state(CLIPS), faults=["delay:0.02@GET .*"]) as sim:
        house = House(sim, tmp_path, cluster)
        before = len(sim.log)
        expected = house.plan(None, COMMENTS, env={})
        needed = len(sim.log) - before
        start = len(sim.log)

        def kill() -> None:
            while len(sim.log) - start < reads:
                time.sleep(0.002)
            os.kill(cluster.cluster.workers[reads % 2].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        assert house.plan(cluster.address, COMMENTS, env={}) == expected
        killer.join()
        assert needed <= len(sim.log) - start <= 2 * needed


@pytest.fixture
def separate(tmp_path: Path) -> Iterator[SeparateCluster]:
    (tmp_path / "dask").mkdir()
    with separate_cluster(tmp_path / "dask", 2, "--resources", "site-oslo=1") as cluster:
        yield cluster


SECRET = "Kanal 5/æøå & hunter2?"
HOST = {"database": "NEWS", "worker": {"site-oslo": 1}}


def desk_of(folder: Path, sim: Simulator) -> Desk:
    desk = Desk(folder / "desk", sim.url)
    desk.inventory({"studio": {"server": {"url": sim.url}, **HOST}})
    desk.play({"asset": {"select": EVERYTHING, "fields": {"comment": "{{ asset.title }} {{ asset.frames }}"}}})
    return desk


def test_ctrl_c_ends_the_reading_on_all_workers(separate: SeparateCluster, tmp_path: Path) -> None:
    with Simulator(state=bulk_state(3000), faults=["delay:0.05@GET .*"]) as sim:
        desk = desk_of(tmp_path, sim)
        process = desk.start("plan", "play.yml", "-i", "inventory.yml", "--on", separate.address)
        while len(sim.log) < 60:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, "nothing was sent" in err, "Traceback" in err) == (130, True, False), err
        while separate.busy():
            time.sleep(0.05)
        assert len(sim.log) < 1500


def test_a_lost_scheduler_is_one_error(separate: SeparateCluster, tmp_path: Path) -> None:
    with Simulator(state=bulk_state(3000), faults=["delay:0.05@GET .*"]) as sim:
        desk = desk_of(tmp_path, sim)
        process = desk.start("plan", "play.yml", "-i", "inventory.yml", "--on", separate.address, "--progress", "none")
        while len(sim.log) < 60:
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        separate.scheduler.kill()
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert err == (
        f"Error: the connection to the Dask scheduler {separate.address} was lost\n"
        "  → check that the scheduler runs, and run msauto again\n"
    )


@pytest.mark.parametrize("bad", [False, True], ids=["a plan", "an error"])
def test_no_secret_shows_on_the_cluster(separate: SeparateCluster, tmp_path: Path, bad: bool) -> None:
    name = "STUDIO_KEY"
    with Simulator(state=bulk_state(100)) as sim:
        desk = Desk(tmp_path / "desk", sim.url, environment={name: SECRET, "CALM": "calm-canary-7"})
        auth = {"bearer": f"{{{{ env.{name} }}}}"}
        desk.inventory({"studio": {"server": {"url": sim.url, "auth": auth}, **HOST}})
        where = f"{{{{ asset.title // env.{name} }}}}" if bad else f"Bearer {{{{ env.{name} | secret }}}}"
        desk.play({"asset": {"select": EVERYTHING, "fields": {"comment": where, "user_0": "{{ asset.title }}"}}})
        shown = threading.Event()
        seen: list[str] = []

        def look() -> None:
            while not shown.is_set():
                seen.append(pages_of(separate.pages))

        looker = threading.Thread(target=look)
        looker.start()
        said = desk.spawn("plan", "play.yml", "-i", "inventory.yml", "--on", separate.address)
        shown.set()
        looker.join()
    assert said.code == (1 if bad else 0), said
    everything = "".join([*seen, pages_of(separate.pages), separate.logs()])
    assert "msauto-server" in everything, "the pages show the names of tasks"
    for form in (SECRET, *encoded_forms(SECRET), "calm-canary-7"):
        assert form not in everything
    assert SECRET not in said.out + said.err


def test_no_secret_of_an_apply_shows(separate: SeparateCluster, tmp_path: Path, shared_place: str) -> None:
    name = "STUDIO_KEY"
    with Simulator(state=bulk_state(30)) as sim:
        desk = Desk(tmp_path / "desk", sim.url, environment={name: SECRET})
        desk.inventory({"studio": {"server": {"url": sim.url, "auth": {"bearer": f"{{{{ env.{name} }}}}"}}, **HOST}})
        desk.write("msauto.toml", f'inventory = "inventory.yml"\n[state]\nurl = "{shared_place}"\n')
        comment = f"Key {{{{ env.{name} | secret }}}}"
        desk.play({"asset": {"select": EVERYTHING, "fields": {"comment": comment, "user_0": "{{ asset.title }}"}}})
        told = desk.spawn("apply", "play.yml", "--yes", "--on", separate.address, "--format", "json", "-v")
        again = desk.spawn("apply", "play.yml", "--yes", "--on", separate.address, "--format", "json")
        comments = {entry.body or entry.target for entry in sim.writes()}
    assert (told.code, again.code, again.json["summary"]["requests"]) == (0, 0, 0), told
    assert any(form in text for form in encoded_forms(SECRET) for text in map(str, comments)), comments
    with psycopg.connect(shared_place) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'msauto'").fetchall()
        rows = str([connection.execute(f"SELECT * FROM msauto.{table}").fetchall() for (table,) in tables])
    everything = "".join([rows, pages_of(separate.pages), separate.logs(), told.out, told.err])
    for form in (SECRET, *encoded_forms(SECRET)):
        assert form not in everything


def pages_of(address: str) -> str:
    """Return all pages of the scheduler, and those that they link to."""
    found: dict[str, str] = {}
    waiting = [
        *("/info/main/workers.html", "/info/logs.html", "/json/counts.json", "/json/identity.json", "/json/index.html"),
        *("/info/main/events.html", "/metrics", "/health", "/sitemap.json"),
    ]
    while waiting and len(found) < 60:
        page = waiting.pop()
        if page in found:
            continue
        try:
            with urllib.request.urlopen(address + page, timeout=10) as answer:
                found[page] = answer.read().decode("utf-8", "replace")
        except OSError:
            found[page] = ""
        links = re.findall(
            r"""["']((?:\.\./|/)?(?:info|json|task|worker|logs|call-stack|main)[^"'#]*)["']""", found[page]
        )
        waiting += [
            f"/info/{link.lstrip('./')}" if "info" not in link and "json" not in link else f"/{link.lstrip('./')}"
            for link in links
        ]
    return "".join(found.values())
