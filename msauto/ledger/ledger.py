"""The ledger as a whole: opening it, its ports, queries, what it is, and copying it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from pathlib import Path

from msgspec import Struct, structs

from msauto import sockets
from msauto.codec import dump
from msauto.concurrency import SystemClock
from msauto.errors import LedgerError, LockedError, MsautoError, RefusedError
from msauto.file_access import may_be_file
from msauto.ledger import history, locks
from msauto.ledger.journal import LedgerJournal, LedgerMemory, PlanMemory, new_run_name
from msauto.ledger.locks import FileLocks, Locks, LockScope, SharedLocks, this_process
from msauto.ledger.sqlite_store import SqliteStore
from msauto.ledger.store import ENTER, Properties, Row, Store, Upsert
from msauto.model.ledger_url import LedgerUrl, is_ledger_url, parse_ledger_url
from msauto.model.ports import Clock
from msauto.model.result import RunDetails, RunSummary, TargetRecord, format_time
from msauto.model.server import ServerSpec

LedgerPlace = Path | LedgerUrl
FILE = "ledger.sqlite"
_NOTE = """
    INSERT INTO note (run, name, text) SELECT id, ?, ? FROM run WHERE name = ?
    ON CONFLICT (run, name) DO UPDATE SET text = excluded.text"""
_BATCH = Upsert.of("batch", "name", "batch, started, ran, summary, record")
_CHANGED = """
    SELECT t.server, t.database, t.name FROM run u JOIN target t ON t.run = u.id
    JOIN record r ON r.run = t.run AND r.target = t.position
    WHERE u.name = ? AND r.outcome = 'changed' ORDER BY t.position"""
_UNTIL_FREE = 120.0
"""Seconds to wait for the session of a lost worker to end: longer than PostgreSQL takes to notice."""


class Ledger:
    """Our own record; ``journal`` and ``memory`` are its ports.

    It is local, in a folder, or shared by machines. Open it with :meth:`open`, as a context manager. Errors are
    ``LedgerError``, with its name, cause and remedy.
    """

    def __init__(self, store: Store, ledger_locks: Locks, now: Callable[[], datetime]) -> None:
        self._store = store
        self._locks = ledger_locks
        self._now = now
        self._memory: LedgerMemory | None = None  # which one run uses for the plan and to apply it
        self.decoding = store.decoding
        self.name = store.name
        """The file, or the URL without a password."""
        self.warnings = store.warnings
        """What others could do on the way to a shared ledger."""
        self.journal = LedgerJournal(store, ledger_locks, now)

    @classmethod
    def open(
        cls,
        place: LedgerPlace | str,
        *,
        readonly: bool = False,
        now: Callable[[], datetime] = SystemClock.now,
    ) -> Ledger:
        """Open the ledger of a folder, or a shared one by its URL; ``now`` returns the time in UTC.

        ``readonly`` creates no file, no folder and no tables; a missing ledger is empty.
        """
        if isinstance(place, str) and is_ledger_url(place):
            try:
                place = parse_ledger_url(place)
            except MsautoError as error:
                raise LedgerError(
                    f"the URL of the ledger {error.message}", remedy=error.remedy
                ) from None
        if not readonly:
            locks.require_file_locks()
        if isinstance(place, LedgerUrl):
            return cls(*_open_shared(place, readonly=readonly), now)
        folder = Path(place)
        return cls(SqliteStore(folder / FILE, readonly=readonly), FileLocks(folder), now)

    @staticmethod
    def exists(place: LedgerPlace) -> bool:
        """Return whether there is a ledger, without creating one."""
        if isinstance(place, Path):
            return may_be_file(place / FILE)
        store, _ = _open_shared(place, readonly=True)
        store.close()
        return store.exists

    @property
    def empty(self) -> bool:
        """No run is recorded: a new ledger, or a folder that is not mounted."""
        return not self._store.read("SELECT 1 FROM run LIMIT 1")

    def memory(self, specs: Iterable[ServerSpec] = (), *, for_plan: bool = False) -> LedgerMemory:
        """Return the memory of the servers of an inventory, by their URLs; other names of servers are URLs.

        ``for_plan``: with a shared ledger, not each target costs a round trip.
        """
        urls = {spec.name: spec.url for spec in specs}
        if for_plan and not isinstance(self._locks, FileLocks):
            return PlanMemory(self._store, self._now, urls)
        if self._memory is None or self._memory.urls != urls:
            self._memory = LedgerMemory(self._store, self._now, urls)
        return self._memory

    def history(self) -> list[RunSummary]:
        """Return all runs, newest first."""
        return history.read_history(self._store, self._locks)

    def died_runs(self) -> list[str]:
        """Return the runs that were not ended, and whose process is not alive, newest first."""
        rows = self._store.read("SELECT name FROM run WHERE ended IS NULL ORDER BY id DESC")
        runs = [str(name) for (name,) in rows]
        alive = self._locks.alive(runs)
        return [run for run in runs if run not in alive]

    def attempts(self) -> list[RunSummary]:
        """Return all attempts to apply, newest first: the runs, the attempts that wrote nothing, and the batches."""
        batches = [summary for summary, _ in self.batches()]
        all_of_them = [*self.history(), *history.read_attempts(self._store), *batches]
        places: dict[str, int] = dict(self._store.read("SELECT name, id FROM entered"))
        all_of_them.sort(
            key=lambda attempt: (places.get(attempt.run, 0), attempt.started), reverse=True
        )
        return all_of_them

    def find(self, name: str, repository: Path | None = None) -> RunSummary:
        """Return the attempt of that name, or with the only name that starts so.

        ``last`` is the newest, of this repository if one is given. Raises ``LedgerError`` if none is found, or more
        than one.
        """
        attempts = self.attempts()
        if name == "last":
            return self._newest(attempts, repository)
        matching = [attempt for attempt in attempts if attempt.run == name]
        matching = matching or [attempt for attempt in attempts if attempt.run.startswith(name)]
        if len(matching) == 1:
            return matching[0]
        if matching and name:
            some = ", ".join(attempt.run for attempt in matching[:3])
            raise LedgerError(
                f"{name} matches {len(matching)} runs: {some}",
                remedy="give more characters of the name",
            )
        raise LedgerError(f"run {name} not found in the ledger {self.name}", remedy=history.HISTORY)

    def run_details(self, run: str, repository: Path | None = None) -> RunDetails:
        """Return everything about one run, by its name or the start of it; ``last`` as for :meth:`find`.

        Raises ``LedgerError`` if it is not found, and ``RefusedError`` for an attempt that wrote nothing.
        """
        summary = self._newest(self.history(), repository) if run == "last" else self.find(run)
        if not self.is_run(summary.run):
            nothing = ": ".join(filter(None, ("wrote nothing", summary.reason)))
            why = "is a batch, not a run" if summary.is_batch else nothing
            raise RefusedError(f"{summary.run} {why}", remedy=history.HISTORY)
        return history.read_run(self._store, self._locks, summary.run)

    def is_run(self, name: str) -> bool:
        """Return whether an attempt is a run, which may have sent requests."""
        return bool(self._store.read("SELECT 1 FROM run WHERE name = ?", (name,)))

    def names_changed(self, run: str) -> list[Row]:
        """Return server, database and name of each target that a run changed."""
        return self._store.read(_CHANGED, (run,))

    def record(self, attempt: RunSummary) -> None:
        """Record an attempt that wrote nothing; it gets another name if something recorded has its name."""
        with self._store.together():
            while self._store.read("SELECT 1 FROM entered WHERE name = ?", (attempt.run,)):
                attempt = structs.replace(attempt, run=new_run_name(self._now()))
            row = (attempt.run, attempt.started, dump(attempt))
            self._store.write("INSERT INTO attempt VALUES (?, ?, ?)", row)
            self._store.write(ENTER, (attempt.run,))

    def record_batch(self, summary: RunSummary, record: str, *, ran: bool) -> None:
        """Record a batch, or what has become of it; ``ran``: its jobs were started."""
        batch = f"{summary.batch} {summary.repository}"
        row = (batch, summary.started, int(ran), dump(summary), record)
        with self._store.together():
            self._store.put(_BATCH, ((summary.run,), row))
            self._store.write(ENTER, (summary.run,))

    def batches(self) -> list[tuple[RunSummary, str]]:
        """Return all batches with their records, newest first."""
        return history.read_batches(self._store, self._locks)

    @contextmanager
    def running_batch(self, batch: tuple[str, str], run: str) -> Iterator[None]:
        """Hold the lock of a batch, by its name and repository, and that of this run; raises ``LockedError``.

        Only one run of a batch can. The locks of a shared ledger end with its session, so the ledger must stay open.
        """
        me = this_process(run, format_time(self._now()))
        name, repository = batch
        place = hashlib.sha256(repository.encode("utf-8", "surrogateescape")).hexdigest()[:8]
        lock, alive = self._locks.batch(f"{name}-{place}"), self._locks.run(run)
        if not lock.try_hold(me):
            remedy = "wait until it has ended"
            raise LockedError(
                f"the batch {name} is running already: {lock.holder()}", remedy=remedy
            )
        with ExitStack() as held:
            held.callback(lock.release)
            held.callback(alive.release)
            alive.try_hold(me)
            yield

    def note_end(self, run: str, notes: Mapping[str, str]) -> None:
        """Add notes to a run that has ended; one that is not in the ledger is ignored."""
        self._store.write(_NOTE, *[(name, text, run) for name, text in notes.items()])

    def last_note(self, name: str) -> str:
        """Return the text of a note of the newest run that has one of this name; empty without one."""
        query = "SELECT text FROM note WHERE name = ? ORDER BY run DESC LIMIT 1"
        rows = self._store.read(query, (name,))
        return str(rows[0][0]) if rows else ""

    def _newest(self, runs: list[RunSummary], repository: Path | None) -> RunSummary:
        for run in runs:
            if repository is None or run.is_of(repository):
                return run
        remedy = "to use another ledger, give its folder with --state-dir"
        if runs:
            why = f"the ledger {self.name} contains no runs of the repository {repository}"
            raise LedgerError(
                why, remedy="name the run: `msauto history --all` lists those of other repositories"
            )
        what = "contains no runs" if self._store.exists else "does not exist"
        raise LedgerError(f"the ledger {self.name} {what}", remedy=remedy)

    def prune(self, *, keep_runs: int | None = None, keep_days: int | None = None) -> int:
        """Delete old runs, as :func:`.history.prune`; return their number. What is remembered of assets stays."""
        return history.prune(self._store, self._now(), keep_runs=keep_runs, keep_days=keep_days)

    @asynccontextmanager
    async def hold(
        self, scopes: Iterable[LockScope], clock: Clock, *, lock_timeout: float = 0.0
    ) -> AsyncIterator[None]:
        """Hold the locks of all scopes for the next run; raise ``LockedError`` if one is not free in time.

        Every run takes them in the same order, so that no two runs wait for each other.
        """
        until = clock.monotonic() + lock_timeout
        with ExitStack() as held:
            for scope in sorted(set(scopes)):
                lock = self._locks.scope(scope)
                if not await locks.take(lock, clock, self.journal.next_run, until):
                    raise LockedError(
                        f"{scope} is locked by {lock.holder()}",
                        remedy="wait until that run has ended, or give --lock-timeout SECONDS",
                    )
                held.callback(lock.release)
            yield

    def facts(self, monotonic: Callable[[], float]) -> LedgerFacts:
        """Return what this ledger is; ``monotonic`` measures how long a commit takes."""
        return LedgerFacts(
            **structs.asdict(self._store.properties()),
            ledger=self.name,
            rows=count_rows(self._store),
            commit_seconds=commit_seconds(self._store, monotonic),
            locks=tuple(HeldLock(lock, holder) for lock, holder in self._locks.held()),
            died=tuple(self.died_runs()),
        )

    def copy_to(self, target: Ledger) -> dict[str, int]:
        """Copy everything to an empty ledger, and verify it; return the number of rows of each table.

        Raises ``RefusedError`` if a process uses this one, or if the other is not empty.
        """
        if self._store.identity() == target._store.identity():
            raise RefusedError(
                f"the ledger {target.name} is the same", remedy="copy to another folder or database"
            )
        busy = [f"{lock}: {holder}" for lock, holder in self._locks.held()]
        busy += [f"run {run.run}" for run in self.attempts() if run.status == "running"]
        if busy:
            raise RefusedError(
                f"the ledger {self.name} is in use: {busy[0]}",
                remedy="wait until all runs have ended",
            )
        return copy_tables(self._store, target._store)

    def copy_memory_to(self, target: Ledger, urls: Mapping[str, str]) -> None:
        """Copy what is remembered of some servers to another ledger, each by the URL that it has there."""
        for url, new_url in {**urls, "": ""}.items():  # what is of no server is of all of them
            for table in ("memory", "clip"):
                rows = self._store.read(f"SELECT * FROM {table} WHERE server = ?", (url,))  # noqa: S608
                _insert(target._store, table, [(new_url, *row[1:]) for row in rows])

    # Workers on other machines: with a shared ledger only --------------------------------------------------------

    def admit_workers(self) -> tuple[LedgerUrl, int]:
        """Let workers take part in the runs of this process; return where they open the ledger, and its session.

        Call it before :meth:`hold`. Raises ``LedgerError`` if the ledger is local.
        """
        shared = self._shared_locks()
        shared.admits = True
        return shared.session

    @asynccontextmanager
    async def join(
        self, run: str, session: int, server: str, scopes: Iterable[LockScope], clock: Clock
    ) -> AsyncIterator[None]:
        """Take part in a run of another process, whose session is given, as the only worker that applies a server.

        No later run gets the scopes before. Waits for the session of a worker that was lost. Raises ``LedgerError`` if
        the run has ended, or its session is lost: then nothing may be sent.
        """
        shared = self._shared_locks()
        alone = shared.worker(run, server)
        if not await locks.take(alone, clock, run, clock.monotonic() + _UNTIL_FREE):
            remedy = "end that worker: the next run settles what it left"
            raise LedgerError(f"{server} is still held by {alone.holder()}", remedy=remedy)
        with ExitStack() as held:
            held.callback(alone.release)
            held.enter_context(shared.join(run, session, scopes))
            yield

    def bar_worker(self, run: str, server: str) -> bool:
        """Let no worker apply a server in a run that this process has started; return whether none does now."""
        return self.journal.keep(run, self._shared_locks().worker(run, server))

    def is_alive(self, run: str) -> bool:
        """Return whether the process that started a run, or a worker of it, is alive and has its session."""
        return run in self._locks.alive([run])

    def target_records(
        self, run: str, positions: Collection[int], *, begun: bool = False
    ) -> dict[int, TargetRecord]:
        """Return what is recorded of these targets of a run, by their positions; ``begun``: of those that began."""
        self._shared_locks()
        number = history.run_id(self._store, run)
        with self._store.decoding():
            return history.read_targets(self._store, number, positions, begun=begun)

    def runs_on(self, is_meant: Callable[[str], bool]) -> set[str]:
        """Return the runs that have a target of a server that is meant."""
        rows = "SELECT DISTINCT run.name, target.server FROM target JOIN run ON run.id = target.run"
        return {run for run, server in self._store.read(rows) if is_meant(server)}

    def assets_called(
        self, is_meant: Callable[[str, str], bool]
    ) -> Iterator[tuple[str, TargetRecord]]:
        """Yield each run, newest first, with its records of the assets whose server and title are meant."""
        for run, number in self._store.read("SELECT name, id FROM run ORDER BY id DESC"):
            named = "SELECT position, server, name FROM target WHERE run = ? AND kind = 'asset'"
            rows = self._store.read(named, (number,))
            positions = {position for position, server, name in rows if is_meant(server, name)}
            with self._store.decoding():
                records = history.read_targets(self._store, number, positions) if positions else {}
            yield from ((run, records[position]) for position in sorted(records))

    def _shared_locks(self) -> SharedLocks:
        if isinstance(self._locks, FileLocks):
            raise LedgerError(
                f"the ledger {self.name} is local, and workers on other machines cannot write to it",
                remedy="apply on Dask needs a shared ledger: url in [state] of msauto.toml",
            )
        return self._locks

    def close(self) -> None:
        """Close; closing twice does nothing."""
        self.journal.close()
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _open_shared(url: LedgerUrl, *, readonly: bool) -> tuple[Store, SharedLocks]:
    """Open a shared ledger by what brings the scheme of its URL."""
    open_store = sockets.find("stores", url.scheme)
    opened: tuple[Store, SharedLocks] = open_store(url, readonly=readonly)
    return opened


# What a ledger is -----------------------------------------------------------------------------------------------------

TABLES: Mapping[str, tuple[str, ...]] = {
    "run": ("id",),
    "target": ("run", "position"),
    "record": ("run", "target"),
    "request": ("run", "target", "position"),
    "memory": ("server", "database", "kind", "name", "link_id", "create_time", "item"),
    "clip": ("server", "database", "name", "link_id", "create_time"),
    "note": ("run", "name"),
    "attempt": ("name",),
    "batch": ("name",),
    "entered": ("id",),
}
"""The tables that hold the record, each after those that it refers to, with their keys: the first columns."""

_TRIES = 5


class HeldLock(Struct, frozen=True):
    """A lock that a process holds now; ``holder`` is a text such as ``run R, process 7 on ada@oslo, since T``."""

    lock: str
    holder: str


class LedgerFacts(Properties, frozen=True, kw_only=True):
    """What ``msauto state check`` shows.

    ``commit_seconds`` is the median of some commits, ``bytes`` the size of the tables, ``rows`` those of each table.
    ``died`` are the runs that did.
    """

    ledger: str
    rows: dict[str, int]
    commit_seconds: float
    locks: tuple[HeldLock, ...] = ()
    died: tuple[str, ...] = ()


def count_rows(store: Store) -> dict[str, int]:
    """Return the number of rows of each table."""
    counts = {}
    for table in TABLES:
        ((counts[table],),) = store.read(f"SELECT count(*) FROM {table}")  # noqa: S608 - our own names
    return counts


def commit_seconds(store: Store, monotonic: Callable[[], float]) -> float:
    """Return how long a commit takes, by some that leave nothing."""
    times = []
    for number in range(_TRIES):
        began = monotonic()
        store.put(locks.HOLDER, (("check", 0), ("", 0, "", "", str(number))))
        times.append(monotonic() - began)
    store.put(locks.HOLDER, (("check", 0), None))
    return sorted(times)[_TRIES // 2]


# Copying: all of it, in one transaction, or nothing -------------------------------------------------------------------

_CHUNK = 1000


def copy_tables(source: Store, target: Store) -> dict[str, int]:
    """Copy all rows to an empty ledger, and read both again; return the number of rows of each table.

    Raises ``RefusedError`` if the target is not empty, and ``LedgerError`` if what is read again differs.
    """
    with source.together(alone=True), target.together(alone=True):
        if any(count_rows(target).values()):
            remedy = "copy to an empty folder, or to an empty database"
            raise RefusedError(f"the ledger {target.name} is not empty", remedy=remedy)
        for table in TABLES:
            for rows in _chunks(source, table):
                _insert(target, table, rows)
        target.continue_numbers()
        for table in TABLES:
            if _digest(source, table) != _digest(target, table):
                raise LedgerError(
                    f"the copy of the table {table} in {target.name} differs from {source.name}: nothing was copied",
                    remedy="copy again while no msauto runs; if it fails again, a disk is damaged",
                )
        return count_rows(target)


def _insert(store: Store, table: str, rows: list[Row]) -> None:
    """Write whole rows of a table."""
    if rows:
        places = ", ".join("?" * len(rows[0]))
        store.write(f"INSERT INTO {table} VALUES ({places})", *rows)  # noqa: S608 - our own names


def _chunks(store: Store, table: str) -> Iterator[list[Row]]:
    """Yield the rows of a table, some at a time, in the order of its key."""
    keys = TABLES[table]
    columns = ", ".join(keys)
    first = f"SELECT * FROM {table} ORDER BY {columns} LIMIT {_CHUNK}"  # noqa: S608 - our own names
    after = f"({', '.join('?' * len(keys))})"
    following = (
        f"SELECT * FROM {table} WHERE ({columns}) > {after} ORDER BY {columns} LIMIT {_CHUNK}"  # noqa: S608
    )
    rows = store.read(first)
    while rows:
        yield rows
        rows = store.read(following, rows[-1][: len(keys)])


def _digest(store: Store, table: str) -> tuple[int, int]:
    """Return the number of rows of a table, and a sum over every value of each row."""
    count = total = 0
    for rows in _chunks(store, table):
        count += len(rows)
        for row in rows:
            total += int.from_bytes(hashlib.sha256(json.dumps(row).encode()).digest())
    return count, total
