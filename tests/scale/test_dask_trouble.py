"""A Dask cluster in trouble: killed workers and commands, a lost scheduler, Ctrl-C; and no secret on its pages."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from msauto.plugins.simulator.embedded import Simulator, bulk_state
from msauto.secrets.redaction import encoded_forms
from tests.cli.command_line import Desk
from tests.cli.servers.test_cli_shared_ledger import machine, said
from tests.clusters import Cluster, SeparateCluster, process_cluster, separate_cluster
from tests.stage import news_with

pytestmark = [pytest.mark.scale, pytest.mark.xdist_group("dask")]

EVERYTHING = {"folder": "/", "recursive": True}
TITLES = [f"EP{number:03}" for number in range(40)]
IN_FLIGHT = 16
"""The connections of a server by default, and so its targets at a time."""


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator(state=news_with(TITLES)) as simulator:
        yield simulator


@pytest.fixture
def desks(sim: Simulator, tmp_path: Path, shared_place: str) -> Callable[[str], Desk]:
    def desk(name: str) -> Desk:
        made = machine(sim, tmp_path, name, shared_place)
        made.play(
            {"asset": {"title": "{{ item }}", "fields": {"comment": "Ready"}}, "loop": TITLES}
        )
        return made

    return desk


@pytest.fixture(scope="module")
def started_cluster() -> Iterator[Cluster]:
    with process_cluster(2) as found:
        yield found


@pytest.fixture
def cluster(started_cluster: Cluster) -> Cluster:
    """Two workers that run: a nanny starts a killed one again."""
    with started_cluster.cluster.get_client() as client:
        client.wait_for_workers(2, timeout=60)
    return started_cluster


@contextmanager
def applying(
    sim: Simulator, desk: Desk, address: str, writes: int = 5
) -> Iterator[subprocess.Popen[str]]:
    """A run on the cluster that has sent some of its writes, each of which takes a while."""
    sim.faults.add("delay:0.2@^POST")
    with desk.start("apply", "play.yml", "--yes", "--on", address, "--format", "json") as process:
        while len(sim.writes()) < writes and process.poll() is None:
            time.sleep(0.005)
        assert process.poll() is None, process.communicate()
        yield process


def check_rest(sim: Simulator, desk: Desk, *more: str) -> str:
    """Another machine does the rest; nothing was sent twice."""
    sim.faults.clear()
    told = desk.spawn("apply", "play.yml", "--yes", "--format", "json", *more)
    assert told.code == 0, told
    assert set(Counter(entry.line for entry in sim.writes()).values()) == {1}
    assert {sim.state.clip(title).home.fields["comment"] for title in TITLES} == {"Ready"}
    return told.err


def check_not_all(sim: Simulator, process: subprocess.Popen[str], code: int, why: str = "") -> None:
    told = said(process)
    assert told.code == code, told
    assert "Traceback" not in told.err
    outcomes = [each["result"]["outcome"] for each in told.json["targets"]]
    assert set(outcomes) <= {"changed", "unverified", "not attempted"}
    assert outcomes.count("not attempted") > 10
    assert outcomes.count("changed") >= 3
    assert len(outcomes) - outcomes.count("not attempted") >= len(sim.writes())
    messages = {each["result"]["message"] for each in told.json["targets"]}
    assert any(why in message for message in messages), messages


def test_ctrl_c_stops_the_workers(
    sim: Simulator, desks: Callable[[str], Desk], cluster: Cluster
) -> None:
    with applying(sim, desks("oslo"), cluster.address) as process:
        process.send_signal(signal.SIGINT)
        check_not_all(sim, process, 130)
    check_rest(sim, desks("bergen"))


def test_workers_of_a_killed_command_stop(
    sim: Simulator, desks: Callable[[str], Desk], cluster: Cluster
) -> None:
    with applying(sim, desks("oslo"), cluster.address) as process:
        process.send_signal(signal.SIGKILL)
    told = check_rest(sim, desks("bergen"), "--lock-timeout", "60")
    assert "died with" in told or "Warning" not in told


@pytest.mark.parametrize("number", [1, 30])
def test_killed_workers_lose_and_double_nothing(
    sim: Simulator, desks: Callable[[str], Desk], cluster: Cluster, number: int
) -> None:
    with applying(sim, desks("oslo"), cluster.address, number) as process:
        for nanny in cluster.cluster.workers.values():
            with suppress(ProcessLookupError, TypeError):
                os.kill(nanny.pid, signal.SIGKILL)
        told = said(process)
    outcomes = Counter(each["result"]["outcome"] for each in told.json["targets"])
    # A worker may die between the journal and the send. Reading cannot show that such a request will never arrive.
    assert outcomes["unverified"] <= IN_FLIGHT
    assert outcomes.keys() <= {"changed", "unverified", "not attempted"}
    check_rest(sim, desks("bergen"))


@pytest.fixture
def separate(tmp_path: Path) -> Iterator[SeparateCluster]:
    (tmp_path / "dask").mkdir()
    with separate_cluster(tmp_path / "dask", 2, "--resources", "site-oslo=1") as cluster:
        yield cluster


def test_a_lost_scheduler_ends_the_run(
    sim: Simulator, desks: Callable[[str], Desk], separate: SeparateCluster
) -> None:
    with applying(sim, desks("oslo"), separate.address) as process:
        separate.scheduler.kill()
        check_not_all(sim, process, 3, "the connection to the Dask scheduler")
    check_rest(sim, desks("bergen"), "--lock-timeout", "60")


# Secrets ---------------------------------------------------------------------------------------------------------

SECRET = "Kanal 5/æøå & hunter2?"
NAME = "STUDIO_KEY"


@contextmanager
def watched(pages: str) -> Iterator[list[str]]:
    """What the pages of a scheduler show meanwhile."""
    done, seen = threading.Event(), list[str]()

    def look() -> None:
        while not done.is_set():
            seen.append(pages_of(pages))

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield seen
    finally:
        done.set()
        looker.join()


@pytest.mark.parametrize("bad", [False, True], ids=["applied", "an error"])
def test_no_secret_shows_on_the_cluster(
    separate: SeparateCluster, tmp_path: Path, shared_place: str, bad: bool
) -> None:
    with Simulator(state=bulk_state(30)) as sim:
        desk = Desk(tmp_path / "desk", sim.url, environment={NAME: SECRET, "CALM": "calm-canary-7"})
        server = {"url": sim.url, "auth": {"bearer": f"{{{{ env.{NAME} }}}}"}}
        desk.inventory(
            {"studio": {"server": server, "database": "NEWS", "worker": {"site-oslo": 1}}}
        )
        desk.write("msauto.toml", f'inventory = "inventory.yml"\n[state]\nurl = "{shared_place}"\n')
        comment = (
            f"{{{{ asset.title // env.{NAME} }}}}"
            if bad
            else f"Bearer {{{{ env.{NAME} | secret }}}}"
        )
        desk.play(
            {
                "asset": {
                    "select": EVERYTHING,
                    "fields": {"comment": comment, "user_0": "{{ asset.title }}"},
                }
            }
        )
        command = ("apply", "play.yml", "--yes", "--on", separate.address, "--format", "json")
        with watched(separate.pages) as seen:
            told = desk.spawn(*command, "-v")
        again = desk.spawn(*command)
        sent = "".join(entry.body.decode() or entry.target for entry in sim.writes())
    assert told.code == again.code == (1 if bad else 0), told
    assert any(form in sent for form in encoded_forms(SECRET)) is not bad
    assert bad or again.json["summary"]["requests"] == 0
    with psycopg.connect(shared_place) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'msauto'"
        ).fetchall()
        rows = str(
            [connection.execute(f"SELECT * FROM msauto.{table}").fetchall() for (table,) in tables]
        )
    everything = "".join(
        [*seen, rows, pages_of(separate.pages), separate.logs(), told.out, told.err]
    )
    assert "msauto-server" in everything, "the pages show the names of tasks"
    for form in (SECRET, *encoded_forms(SECRET), "calm-canary-7"):
        assert form not in everything


def pages_of(address: str) -> str:
    """Return all pages of the scheduler, and those that they link to."""
    found: dict[str, str] = {}
    waiting = [
        *(
            "/info/main/workers.html",
            "/info/logs.html",
            "/json/counts.json",
            "/json/identity.json",
            "/json/index.html",
        ),
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
            r"""["']((?:\.\./|/)?(?:info|json|task|worker|logs|call-stack|main)[^"'#]*)["']""",
            found[page],
        )
        waiting += [
            f"/info/{link.lstrip('./')}"
            if "info" not in link and "json" not in link
            else f"/{link.lstrip('./')}"
            for link in links
        ]
    return "".join(found.values())
