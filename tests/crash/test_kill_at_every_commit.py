"""``kill -9`` at every commit of the ledger and at every request: the ledger opens, is true, and one goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from msauto.ledger import sqlite_store
from msauto.ledger.ledger import Ledger
from msauto.model.plan import Target
from msauto.model.result import Result
from msauto.plugins.postgres.postgres_store import PostgresStore
from tests.conftest import COUNTED
from tests.unit.applying.applying_world import Stage, apply, fields_target, marker_target, plan_of

pytestmark = pytest.mark.scale

TITLES = ("Film", "Other")


class Server:
    """A media server outside of the process that dies: what was done to it is in a file."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self.stage = Stage()
        self.targets = [
            fields_target(self.stage.world, title, 2, reported=title == "Film") for title in TITLES
        ]
        self.targets.append(marker_target(self.stage.world, "Clip"))
        self.done = log.read_text().splitlines() if log.exists() else []
        for path in self.done:
            self.stage.world.act(path)
        for path in [request.path for target in self.targets for request in target.requests]:
            self.stage.world.effects[path] = self._logged(path, self.stage.world.effects.get(path))

    def _logged(self, path: str, effect: Callable[..., object] | None) -> Callable[..., object]:
        def act(world: object) -> None:
            with self.log.open("a") as file:
                file.write(path + "\n")
            if effect is not None:
                effect(world)

        return act

    def planned_anew(self, ledger: Ledger) -> list[Target]:
        """What the next run plans: from what is there, or what is remembered where nothing shows."""
        targets = []
        for target in self.targets:
            known = ledger.memory().recall(target.id)
            left = [
                r
                for r in target.requests
                if not self._shows(target, r.path) and not _remembered(r, known)
            ]
            if left:
                targets.append(structs.replace(target, requests=tuple(left)))
        return targets

    def _shows(self, target: Target, path: str) -> bool:
        if target.name == "Other":  # the server does not report these fields
            return False
        return path in self.done

    def apply(self, ledger: Ledger, targets: list[Target]) -> Result:
        return asyncio.run(
            apply(
                plan_of(*targets),
                {"studio-a": self.stage.server()},
                ledger.journal,
                ledger.memory(),
                self.stage.world.clock,
                self.stage.events,
                forks=2,
            )
        )


def _remembered(request: object, known: object) -> bool:
    (effect,) = request.effects  # type: ignore[attr-defined]
    return f"field:{effect.key}" in known  # type: ignore[operator]


class Killer:
    """Counts moments, and kills the process at one of them."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0
        self.committing = False

    def moment(self) -> None:
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(self, statement: str) -> None:
        if self.committing:
            self.committing = False
            self.moment()  # just after a commit
        if statement == "COMMIT":
            self.moment()  # just before it
            self.committing = True


def run_and_die(folder: Path, place: Path | str, at: int) -> int:
    """Do a run in a child process that dies at the ``at``-th moment; return the number of moments it saw."""
    ends_read, ends_write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            killer = Killer(at)
            _run_in_child(folder, place, killer)
            os.write(ends_write, str(killer.count).encode())
        finally:
            os._exit(0)
    os.close(ends_write)
    _, status = os.waitpid(child, 0)
    told = os.read(ends_read, 20)
    os.close(ends_read)
    assert bool(told) != os.WIFSIGNALED(status)
    return int(told or b"0")


def _run_in_child(folder: Path, place: Path | str, killer: Killer) -> None:
    connect = sqlite3.connect

    def traced_connect(*values: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*values, **options)  # type: ignore[call-overload]
        connection.set_trace_callback(killer.traced)
        return connection

    sqlite_store.sqlite3.connect = traced_connect  # type: ignore[attr-defined]
    ask = PostgresStore._ask

    def killed_ask(store: PostgresStore, *values: Any, **options: Any) -> object:
        killer.moment()  # just before a round trip, and just after it
        found = ask(store, *values, **options)
        killer.moment()
        return found

    PostgresStore._ask = killed_ask  # type: ignore[method-assign, assignment]
    server = Server(folder / "log")
    server.stage.world.on_send = lambda path: killer.moment()
    for path, effect in list(server.stage.world.effects.items()):
        server.stage.world.effects[path] = _then(effect, killer.moment)
    with Ledger.open(place) as ledger:
        server.apply(ledger, server.targets)


def _then(effect: Callable[..., object], after: Callable[[], None]) -> Callable[..., object]:
    def act(world: object) -> None:
        effect(world)
        after()

    return act


def look_at_ledger(place: Path | str, done: list[str]) -> None:
    """The records of the ledger agree with the log of the server."""
    with Ledger.open(place, readonly=True) as ledger:
        history = ledger.history()
        while (
            history and history[0].status == "running"
        ):  # PostgreSQL has not noticed yet that the process is dead
            time.sleep(0.01)
            history = ledger.history()
        if not history:
            assert done == []  # nothing was sent before the run was in the ledger
            return
        (run,) = history
        details = ledger.run_details(run.run)
    assert run.status in {"died", "ok"}
    for record in details.targets:
        for request, known in zip(record.target.requests, record.requests, strict=True):
            sent = request.path in done
            assert known.state in {"planned", "sending", "done"}
            assert sent or known.state != "done"
            assert not sent or known.state != "planned"
        if record.outcome is not None:
            assert {known.state for known in record.requests} == {"done"}
        if any(known.state != "planned" for known in record.requests):
            assert record.begun


@pytest.mark.parametrize("kind", ["local", "shared"])
def test_kill_at_every_moment(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    kind: str,
    record_property: Callable[[str, object], None],
) -> None:
    """Die at one moment later each time, until a run survives: what is committed together differs by run."""
    for at in range(1, 200):
        folder = tmp_path / str(at)
        place = folder if kind == "local" else _new_shared_ledger(request)
        if run_and_die(folder, place, at):
            break
        log = folder / "log"
        server = Server(log)
        assert len(set(server.done)) == len(server.done)
        look_at_ledger(place, server.done)
        go_on(place, server)
    record_property(
        COUNTED,
        f"kill points of a run with a {kind} ledger (before and after each commit and each request): {at - 1}",
    )
    assert 20 < at < 199


def _new_shared_ledger(request: pytest.FixtureRequest) -> str:
    place: str = request.getfixturevalue("shared_place")
    request.getfixturevalue("postgres_server").empty(place.partition("?")[0].rpartition("/")[2])
    return place


def go_on(place: Path | str, server: Server) -> None:
    """The next run fixes what the killed run left, and does nothing twice that reading shows."""
    with Ledger.open(place) as ledger:
        targets = server.planned_anew(ledger)
        assert server.apply(ledger, targets).ok
        assert Server(server.log).planned_anew(ledger) == []
    after = Server(server.log)
    paths = set()
    for target in after.targets:
        paths |= {request.path for request in target.requests}
    assert set(after.done) == paths
    shown = [path for path in after.done if not path.startswith("/Other")]
    assert len(set(shown)) == len(shown)
    assert len(after.stage.world.assets["Clip"].markers) == 2


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path) -> None:
    for number in range(1, 200):
        (tmp_path / str(number)).mkdir()
