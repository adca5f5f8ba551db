"""Commands with a shared ledger: machines that share locks and history, and sessions that are lost in mid-run."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from msauto.errors import LedgerError
from msauto.plugins.postgres import postgres_store
from msauto.plugins.simulator.embedded import Simulator
from tests import postgres
from tests.cli.command_line import Desk, Said
from tests.conftest import require_postgres
from tests.stage import news_with
from tests.unit.ledger.test_shared_ledger import end_sessions

TITLES = [f"EP{number:03}" for number in range(6)]


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator(state=news_with(TITLES)) as simulator:
        yield simulator


def machine(sim: Simulator, folder: Path, name: str, url: str, more: str = "") -> Desk:
    """A machine with a host name, a working directory and a state folder of its own."""
    folder = folder / name
    folder.mkdir()
    desk = Desk(folder, sim.url)
    source = desk.surroundings()["PYTHONPATH"]
    desk.write("site/sitecustomize.py", f"import socket\nsocket.gethostname = lambda: {name!r}\n")
    desk.environment |= {"PYTHONPATH": f"{folder / 'site'}:{source}"}
    desk.write("msauto.toml", f'inventory = "inventory.yml"\n[state]\nurl = "{url}"\n{more}')
    task = {"asset": {"title": "{{ item }}", "fields": {"comment": "Ready"}}, "loop": TITLES}
    desk.play(task)
    return desk


@pytest.fixture
def oslo(sim: Simulator, tmp_path: Path, shared_place: str) -> Desk:
    return machine(sim, tmp_path, "oslo", shared_place)


@pytest.fixture
def bergen(sim: Simulator, tmp_path: Path, shared_place: str) -> Desk:
    return machine(sim, tmp_path, "bergen", shared_place)


APPLY = ("apply", "play.yml", "--yes", "--forks", "1")


@pytest.mark.scale
def test_two_machines_have_one_history_and_one_memory(oslo: Desk, bergen: Desk) -> None:
    assert oslo.spawn(*APPLY).code == 0
    told = bergen.run(*APPLY, "--state-dir", "elsewhere", "--format", "json")
    assert (told.code, told.json["summary"]["requests"]) == (0, 0)
    rows = bergen.run("history", "--all", "--format", "json").json
    assert {row["host"] for row in rows} >= {"oslo"}
    assert len(rows) == 2
    assert not list(oslo.folder.rglob("ledger.sqlite")) + list(bergen.folder.rglob("ledger.sqlite"))


@pytest.mark.scale
def test_another_machine_is_told_who_writes(sim: Simulator, oslo: Desk, bergen: Desk) -> None:
    with busy(sim, oslo) as process:
        with stopped(process):
            told = bergen.run(*APPLY, "--state-dir", "elsewhere")
            assert told.code == 5
            (*_, run) = bergen.run("history", "--all", "--format", "json").json
            assert f"NEWS is locked by run {run['run']}, process {process.pid} on " in told.err
            assert "@oslo, since" in told.err
        said(process)
    assert process.returncode == 0
    assert bergen.spawn(*APPLY).code == 0
    assert [row["status"] for row in bergen.run("history", "--all", "--format", "json").json] == [
        "ok",
        "locked",
        "ok",
    ]


@contextmanager
def busy(
    sim: Simulator, desk: Desk, write: int = 2, kind: str = "delay:0.7"
) -> Iterator[subprocess.Popen[str]]:
    """A run during its n-th write, which takes a while."""
    sim.faults.add(f"{kind}@^POST*1+{write - 1}")
    with desk.start(*APPLY, "--format", "json") as process:
        while len(sim.writes()) < write and process.poll() is None:
            time.sleep(0.005)
        assert process.poll() is None, process.communicate()
        yield process


@contextmanager
def stopped(process: subprocess.Popen[str]) -> Iterator[None]:
    """Let a process wait meanwhile."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def said(process: subprocess.Popen[str]) -> Said:
    out, err = process.communicate(timeout=100)
    return Said(process.returncode, out, err)


def check_lost(sim: Simulator, told: Said, *, sent: int) -> None:
    """Requests under way are finished, the rest was not attempted, and the message names the reason."""
    assert told.code == 3, told
    assert "Traceback" not in told.err
    assert "msauto itself failed" not in told.err
    outcomes = [each["result"]["outcome"] for each in told.json["targets"]]
    assert outcomes == ["changed"] * sent + ["not attempted"] * (len(TITLES) - sent)
    messages = {each["result"]["message"] for each in told.json["targets"][sent:]}
    assert any(
        "the session with the ledger postgresql:///" in each and "is lost" in each
        for each in messages
    ), messages
    assert len(sim.writes()) == sent


def check_settled(sim: Simulator, desk: Desk, *, sent: int) -> None:
    """The next run, from any machine, reads what was left and does the rest once."""
    told = desk.spawn(*APPLY, "--format", "json")
    assert told.code == 0, told.err
    assert "died with 1 target in progress" in told.err
    assert " on oslo)" in told.err
    assert told.json["summary"]["requests"] == len(TITLES) - sent
    assert len(sim.writes()) == len(TITLES)
    for title in TITLES:
        assert sim.state.clip(title).home.fields["comment"] == "Ready"
    newer, older = desk.run("history", "--all", "--format", "json").json
    assert newer["status"] == "ok"
    assert older["status"] == "interrupted"


@pytest.mark.scale
def test_a_run_whose_session_is_ended_stops_sending(
    sim: Simulator, oslo: Desk, bergen: Desk, shared_place: str
) -> None:
    with busy(sim, oslo) as process:
        with stopped(process):
            end_sessions(shared_place)
        check_lost(sim, said(process), sent=2)
    sim.faults.clear()
    check_settled(sim, bergen, sent=2)


def test_a_password_is_shown_nowhere(oslo: Desk, tmp_path: Path) -> None:
    settings = (oslo.folder / "msauto.toml").read_text()
    for url in (
        "postgresql://msauto:swordfish@localhost/x",
        "postgresql://localhost/x?password=swordfish",
    ):
        oslo.write("msauto.toml", f'[state]\nurl = "{url}"\n')
        told = oslo.run("history")
        assert told.code == 1
        told.one_error("must not contain a password", "password_env", "msauto.toml:2")
        assert "swordfish" not in told.out + told.err
    oslo.write("secret", "swordfish\n")
    for key, value in (("password_env", "LEDGER_PASSWORD"), ("password_file", "secret")):
        oslo.environment["LEDGER_PASSWORD"] = "swordfish"
        oslo.write("msauto.toml", f'{settings}{key} = "{value}"\n')
        told = oslo.run("plan", "play.yml", "-vv")
        assert told.code == 0, told.err
        assert "swordfish" not in told.out + told.err
        oslo.write(
            "msauto.toml",
            '[state]\nurl = "postgresql://msauto@127.0.0.1:1/x"\n' + f'{key} = "{value}"\n',
        )
        told = oslo.run("history")
        told.one_error("the ledger postgresql://msauto@127.0.0.1:1/x cannot be used: ", "refused")
        assert "swordfish" not in told.out + told.err
    oslo.write("msauto.toml", f'{settings}password_env = "NO_SUCH"\n')
    oslo.run("history").one_error("the password of the ledger: the variable NO_SUCH is not set")
    oslo.write("msauto.toml", f'{settings}password_env = "A"\npassword_file = "b"\n')
    oslo.run("history").one_error("has both password_env and password_file")
    oslo.write("msauto.toml", '[state]\npassword_env = "A"\n')
    oslo.run("history").one_error("has a password but no url")


def test_without_the_package_one_error_says_what_to_install(
    oslo: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    told = oslo.run("plan", "play.yml")
    assert told.code == 1
    told.one_error("needs the package psycopg", "pip install 'psycopg[binary]'")
    with pytest.raises(LedgerError):
        postgres_store.load_psycopg()


# Servers of their own ---------------------------------------------------------------------------------------------


class Proxy:
    """A network between a session and the server, which can be cut: silently, or with an end of each connection."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._dropping = threading.Event()
        self._serve(self._accept)

    def cut(self, *, silently: bool) -> None:
        """Pass on nothing more."""
        self._dropping.set()
        if not silently:
            self.close()

    def close(self) -> None:
        for each in (*self._sockets, self._listener):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _serve(self, work: Callable[..., None], *args: Any) -> None:
        threading.Thread(target=work, args=args, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                self._serve(self._pass_on, near, far)
                self._serve(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self._dropping.is_set():
                    target.sendall(data)


@pytest.fixture
def server() -> Iterator[postgres.PostgresServer]:
    require_postgres()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with postgres.own_server("listen_addresses=127.0.0.1", port=port) as made:
        yield made


@pytest.mark.scale
@pytest.mark.parametrize("silently", [False, True])
def test_a_network_that_is_cut(
    sim: Simulator, tmp_path: Path, server: postgres.PostgresServer, silently: bool
) -> None:
    proxy = Proxy(server.port)
    try:
        far = machine(sim, tmp_path, "oslo", f"postgresql://msauto@127.0.0.1:{proxy.port}/ledger")
        near = machine(sim, tmp_path, "bergen", server.url("ledger"))
        with busy(sim, far) as process:
            proxy.cut(silently=silently)
            began = time.monotonic()
            told = said(process)
            assert time.monotonic() - began < postgres_store.SILENCE + 15
        assert told.code == 3, told
        assert "Traceback" not in told.err
        outcomes = [each["result"]["outcome"] for each in told.json["targets"]]
        assert outcomes == ["changed"] * 2 + ["not attempted"] * (len(TITLES) - 2)
        assert len(sim.writes()) == 2
        if silently:
            locked = near.spawn(*APPLY)
            assert locked.code == 5, "the proxy still holds the session"
            assert "@oslo" in locked.err
    finally:
        proxy.close()
    sim.faults.clear()
    until = time.monotonic() + 30
    while (
        near.spawn("plan", "play.yml").code == 0 and "running" in near.run("history", "--all").out
    ):
        assert time.monotonic() < until
    told = near.spawn(*APPLY, "--format", "json", "--lock-timeout", "30")
    assert told.code == 0, told.err
    assert "died with 1 target in progress" in told.err
    assert len(sim.writes()) == len(TITLES)


@pytest.mark.scale
def test_a_server_that_restarts_in_mid_run(
    sim: Simulator, tmp_path: Path, server: postgres.PostgresServer
) -> None:
    """As after a crash, from which the server repairs itself: what was committed is there."""
    oslo, bergen = (
        machine(sim, tmp_path, name, server.url("ledger")) for name in ("oslo", "bergen")
    )
    with busy(sim, oslo) as process:
        server.stop(signal.SIGQUIT)
        server.start("listen_addresses=127.0.0.1", "fsync=on")
        check_lost(sim, said(process), sent=2)
    sim.faults.clear()
    check_settled(sim, bergen, sent=2)


@pytest.mark.scale
def test_two_machines_at_once(sim: Simulator, oslo: Desk, bergen: Desk) -> None:
    """They take turns, and every request is sent once."""
    sim.faults.add("delay:0.05@^POST")
    with ExitStack() as stack:
        flags = ("--lock-timeout", "60", "--format", "json")
        processes = [
            stack.enter_context(desk.start(*APPLY, *flags)) for desk in (oslo, bergen, oslo, bergen)
        ]
        results = [said(process) for process in processes]
    assert [each.code for each in results] == [0] * 4, results
    assert sorted(each.json["summary"]["requests"] for each in results) == [0, 0, 0, len(TITLES)]
    assert len(sim.writes()) == len(TITLES)
    hosts = [row["host"] for row in oslo.run("history", "--all", "--format", "json").json]
    assert sorted(hosts) == ["bergen", "bergen", "oslo", "oslo"]
