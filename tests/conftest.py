"""How long a test may take, how property tests run, and what tests have counted, reported when a run ends.

What each worker does for each module and each test is kept short: see :func:`pytest_ignore_collect` and
:func:`pytest_runtest_protocol`.

Property tests (Hypothesis) have no deadline for one example, because machines differ. `make test` runs the same
examples on every machine. `make explore` tries ten times as many from random seeds. It prints an example that fails,
and keeps it in `.hypothesis` for its next run.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings
from hypothesis.database import DirectoryBasedExampleDatabase

from msauto.plugins.simulator.embedded import Simulator, empty_state
from tests import postgres, tables
from tests.examples import EXPLORE

# Under nohup, or in the background of a shell, these are ignored, and so by each command that a test starts and ends.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

settings.register_profile(
    "same", derandomize=True, database=None, deadline=None, print_blob=True, max_examples=10
)
settings.register_profile(
    EXPLORE,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    deadline=None,
    print_blob=True,
    max_examples=100,
)
settings.load_profile("same")

COUNTED = "counted"
"""The property under which a test records a count: ``record_property(COUNTED, "kill points: 65")``."""


gc.set_threshold(50_000, 20, 100)  # as the command line does: what is collected stays to the end

_ONLY_FAST = "not scale"
_ALL_ARE_SLOW = re.compile(r"^pytestmark = .*pytest\.mark\.scale", re.MULTILINE)
_SLOW = 1200  # seconds for a test marked `scale`
_SHRINKING = 480  # seconds for a property test: Hypothesis takes up to 300 to find the smallest example that fails


def pytest_configure(config: pytest.Config) -> None:
    """Set whether tables need rows of slow tests."""
    tables.only_fast = config.option.markexpr == _ONLY_FAST


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules of slow tests where none of these runs: each worker imports what it collects."""
    if not tables.only_fast or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    return True if _ALL_ARE_SLOW.search(text) else None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Of a test that passes, let a worker report the call alone: a message takes it longer than many a test."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            report.keywords = {}
            item.ihook.pytest_runtest_logreport(report=report)
    return True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give slow tests and property tests their own time limits: default is `timeout` in pyproject.toml."""
    for item in items:
        is_property = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        if item.get_closest_marker("timeout") is not None:
            continue
        if item.get_closest_marker("scale") is not None:
            item.add_marker(pytest.mark.timeout(_SLOW))
        elif is_property:
            item.add_marker(pytest.mark.timeout(_SHRINKING))
    gc.freeze()  # the collector need not visit tests and modules again and again


@pytest.fixture
def in_oslo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of this machine is that of Oslo."""
    with monkeypatch.context() as context:
        context.setenv("TZ", "Europe/Oslo")
        time.tzset()
        yield
    time.tzset()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the counts, each once."""
    if any(
        postgres.ABSENT in str(report.longrepr)
        for report in terminalreporter.stats.get("skipped", [])
    ):
        terminalreporter.write_line(f"SKIPPED: {postgres.ABSENT}", red=True, bold=True)
    told = list(dict.fromkeys(_counts(terminalreporter)))
    if told:
        terminalreporter.section("counted")
        for line in told:
            terminalreporter.write_line(line)


def _counts(reporter: pytest.TerminalReporter) -> Iterator[str]:
    for reports in reporter.stats.values():
        for report in reports:
            properties: list[tuple[str, Any]] = getattr(report, "user_properties", [])
            yield from (str(value) for name, value in properties if name == COUNTED)


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    """A server without content, for the tests of a module."""
    with Simulator(state=empty_state()) as simulator:
        yield simulator


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[postgres.PostgresServer]:
    """A PostgreSQL server, shared by all tests of a run; in CI it must be there."""
    require_postgres()
    base = tmp_path_factory.getbasetemp()
    with postgres.common_server(
        base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    ) as server:
        yield server


def require_postgres() -> None:
    """Skip the test where PostgreSQL is not installed; in CI, fail."""
    if postgres.binaries() is None:
        if os.environ.get("CI"):
            pytest.fail(postgres.ABSENT)
        pytest.skip(postgres.ABSENT)


@pytest.fixture(scope="session")
def _postgres_databases() -> list[str]:
    """The databases of this worker that no test uses now."""
    return []


def _shared_ledger(postgres_server: postgres.PostgresServer, free: list[str]) -> Iterator[str]:
    database = free.pop() if free else postgres_server.new_database()
    yield postgres_server.url(database)
    postgres_server.empty(database)
    free.append(database)


@pytest.fixture
def shared_place(
    postgres_server: postgres.PostgresServer, _postgres_databases: list[str]
) -> Iterator[str]:
    """The URL of a shared ledger that does not exist yet."""
    yield from _shared_ledger(postgres_server, _postgres_databases)


@pytest.fixture
def second_shared_place(
    postgres_server: postgres.PostgresServer, _postgres_databases: list[str]
) -> Iterator[str]:
    """The URL of another one."""
    yield from _shared_ledger(postgres_server, _postgres_databases)


@pytest.fixture(params=["local", "shared"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger is: the test runs with a local and with a shared one."""
    return tmp_path if request.param == "local" else str(request.getfixturevalue("shared_place"))
