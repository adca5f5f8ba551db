"""The ports of the ledger: the write-ahead journal of runs, and the memory of what runs wrote.

Every request is recorded before it is sent, and its outcome after it. What was last written of a target is remembered
if the server does not report it, and how each thing was left, so that the next plan finds what others have changed.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, NoReturn

from msgspec import UNSET, Struct, structs
from msgspec.json import decode

from msauto.codec import dump, from_json, load, to_json
from msauto.errors import LedgerError
from msauto.ledger.history import count_sent, read_targets, run_id
from msauto.ledger.locks import Lock, Locks, this_process
from msauto.ledger.store import ENTER, Row, Store, Upsert
from msauto.model.identity import (
    Answer,
    ClipIdentity,
    compare_clips,
    identifying_values,
    is_remembered,
)
from msauto.model.plan import Plan, Target, TargetId
from msauto.model.ports import Remembered
from msauto.model.result import (
    RequestRecord,
    RequestResult,
    Result,
    TargetRecord,
    TargetResult,
    format_time,
)
from msauto.model.snapshot import Json
from msauto.primitives.normal_form import normal_form

_TARGETS = 500  # targets that are written at a time
_RECORD = Upsert.of(
    "record", "run, target", "begun, sent, requests, outcome, message, differences, left_as, notes"
)
_RECORD_OF = """
    SELECT r.run, r.target, r.left_as, t.planned FROM record r
    JOIN target t ON t.run = r.run AND t.position = r.target
    WHERE r.run IN (SELECT id FROM run WHERE name = ?)
    AND t.server = ? AND t.database = ? AND t.kind = ?"""
_TARGET = """
    INSERT INTO target (run, position, server, database, kind, name, planned)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_COMPLETE = "UPDATE record SET left_as = ? WHERE run = ? AND target = ?"
_REQUEST = Upsert.of("request", "run, target, position", "known")


class LedgerJournal:
    """Implements the port ``Journal``. The whole plan is written when a run starts, so that the run can be resumed.

    ``notes`` are recorded with the next run, for example why a freeze was overridden.
    """

    def __init__(self, store: Store, locks: Locks, now: Callable[[], datetime]) -> None:
        self._store = store
        self._locks = locks
        self._now = now
        self._runs: dict[str, _JournalledRun] = {}
        self.together = store.together
        self.commit = store.commit
        self.check = store.check
        self.next_run = new_run_name(now())
        self.notes: dict[str, str] = {}

    def start(self, plan: Plan, playbooks: Sequence[str]) -> str:
        """Open a run with its plan; return the run's name, which was ``next_run`` until now."""
        with ExitStack() as unless_started:
            with self._store.together():
                lock = self._hold_next()
                unless_started.callback(lock.release)
                name = self.next_run
                texts = (json.dumps(playbooks, ensure_ascii=False), dump(plan.summary))
                self._store.write(
                    "INSERT INTO run (name, started, status, playbooks, summary, msauto, pid, host)"
                    " VALUES (?, ?, 'running', ?, ?, ?, ?, ?)",
                    (
                        name,
                        format_time(self._now()),
                        *texts,
                        plan.msauto,
                        os.getpid(),
                        socket.gethostname(),
                    ),
                )
                self._store.write(ENTER, (name,))
                targets = dict(enumerate(plan.targets))
                run = _JournalledRun(run_id(self._store, name), lock, targets)
                self._write_targets(run.id, plan.targets)
                notes = ((run.id, *note) for note in self.notes.items())
                self._store.write("INSERT INTO note (run, name, text) VALUES (?, ?, ?)", *notes)
            unless_started.pop_all()
        self.notes = {}
        self.next_run = new_run_name(self._now())
        self._runs[name] = run
        return name

    def _hold_next(self) -> Lock:
        """Hold the lock of the next run; its name becomes one that nothing recorded has, nor gets meanwhile."""
        while True:
            lock = self._locks.run(self.next_run)
            if lock.try_hold(this_process(self.next_run, format_time(self._now()))):
                if not self._store.read("SELECT 1 FROM entered WHERE name = ?", (self.next_run,)):
                    return lock
                lock.release()
            self.next_run = new_run_name(self._now())

    def adopt(self, target: TargetId, thing: str, key: str, left: Json) -> None:
        """Complete the record of an earlier run: a thing that it made is seen. ``left``: the value, and that run."""
        value, run = from_json(tuple[Json, str], left)
        names = (target.server, target.database, target.kind)
        for number, position, text, planned in self._store.read(_RECORD_OF, (run, *names)):
            if _was_of(load(Target, planned), target):
                known = {**json.loads(text or "{}"), thing: [key, value]}
                self._store.write(_COMPLETE, (dump(known), number, position))

    def reopen(self, run: str, targets: Sequence[Target]) -> bool:
        """Continue the record of a run that died; no other process can until it is ended, or left."""
        lock = self._locks.run(run)
        if not lock.try_hold(this_process(run, format_time(self._now()))):
            return False
        number = run_id(self._store, run)
        journalled = self._runs[run] = _JournalledRun(number, lock, dict(enumerate(targets)))
        with self._store.decoding():
            journalled.go_on(read_targets(self._store, journalled.id, begun=True))
        return True

    def attach(
        self, run: str, targets: dict[int, Target], begun: Mapping[int, TargetRecord]
    ) -> None:
        """Write to the record of a run that another process has started: to these targets, by their positions.

        ``begun``: the records of those that another process has begun. The caller takes part in the run:
        :meth:`msauto.ledger.ledger.Ledger.join`. It cannot end the run.
        """
        journalled = self._runs[run] = _JournalledRun(run_id(self._store, run), None, targets)
        journalled.go_on(begun)

    def keep(self, run: str, lock: Lock) -> bool:
        """Hold another lock until a run is ended or left; return whether it was free."""
        was_free = lock.try_hold(this_process(run, format_time(self._now())))
        if was_free:
            self._runs[run].kept.append(lock)
        return was_free

    def leave(self, run: str) -> None:
        """Release a run that was reopened and is not closed, or to which this process is attached."""
        self._runs.pop(run).release()

    def sending(self, run: str, target: Target, index: int) -> None:
        """Record that a request is about to be sent. With its first one, a target is begun."""
        progress = self._progress(run, target)
        now = format_time(self._now())
        progress.begun = progress.begun or now
        record = progress.requests[index]
        record = structs.replace(record, state="sending", tries=record.tries + 1, sent=now)
        self._write_request(progress, index, record)

    def settled(self, run: str, target: Target, index: int, result: RequestResult) -> None:
        """Record the outcome of a request."""
        progress = self._progress(run, target)
        record = structs.replace(
            progress.requests[index],
            state=result.outcome,
            status=result.status,
            message=result.message,
            settled=format_time(self._now()),
        )
        self._write_request(progress, index, record)

    def _write_request(
        self, progress: _JournalledTarget, index: int, record: RequestRecord
    ) -> None:
        progress.requests[index] = record
        progress.written.add(index)
        self._store.put(_REQUEST, ((*progress.key, index), (dump(record),)))

    def finished(self, run: str, result: TargetResult) -> None:
        """Record the outcome of a target, and of its requests that are not settled yet."""
        progress = self._progress(run, result.target)
        _, position = progress.key
        del self._runs[run].in_progress[position]
        requests = progress.requests
        # A target that was not begun may have none.
        for index, settled in enumerate(result.requests):
            is_open = requests[index].state in {"planned", "sending"}
            if settled.outcome == "not sent" and is_open:
                requests[index] = structs.replace(
                    requests[index], state="not sent", message=settled.message
                )
        sent = 0
        for request in requests:
            sent += request.tries > 0 and request.state != "not sent"
        values = (
            progress.begun,
            sent,
            dump(requests),
            result.outcome,
            result.message,
            dump(result.differences),
            dump(result.left),
            dump(result.notes),
        )
        self._store.put(_RECORD, (progress.key, values))
        self._store.put(_REQUEST, *(((*progress.key, index), None) for index in progress.written))

    def end(self, run: str, result: Result) -> None:
        """Close the run."""
        number = self._runs[run].id
        status = "ok" if result.ok else "failed"
        if result.interrupted:
            status = "interrupted"
        with self._store.together():
            for target in result.targets:
                if target.outcome == "not attempted":
                    self.finished(run, target)
            summary: dict[str, int] = to_json(result.plan.summary)
            summary["sent"] = count_sent(self._store, number)
            summary |= result.counts
            self._store.write(
                "UPDATE run SET ended = ?, status = ?, summary = ? WHERE id = ?",
                (format_time(self._now()), status, json.dumps(summary), number),
            )
        self._runs.pop(run).release()

    def close(self) -> None:
        """Release the runs that were not ended: they are reported as died."""
        for run in self._runs.values():
            run.release()
        self._runs.clear()

    def _write_targets(self, run: int, targets: Sequence[Target]) -> None:
        """Write the targets of a plan, and their requests."""
        rows = []
        for position, target in enumerate(targets):
            planned = dump(structs.replace(target, holding=UNSET))
            rows.append(
                (run, position, target.server, target.database, target.kind, target.name, planned)
            )
            if len(rows) == _TARGETS or position == len(targets) - 1:
                self._store.write(_TARGET, *rows)
                rows = []

    def _progress(self, run: str, target: Target) -> _JournalledTarget:
        """Return how far a target of a run has come, which is in progress from now on."""
        journalled = self._runs[run]
        position = journalled.positions.get(id(target))
        if position is None:
            raise LedgerError(
                f"{target.name} is not among the targets of this run", remedy="an error in msauto"
            )
        if position not in journalled.in_progress:
            key = (journalled.id, position)
            not_begun = [RequestRecord("planned")] * len(target.requests)
            journalled.in_progress[position] = _JournalledTarget(key, None, not_begun)
        return journalled.in_progress[position]


def _was_of(then: Target, now: TargetId) -> bool:
    """Return whether a target of a run was surely the same clip or channel, under its title before the run or after."""
    for title in (then.name, then.title_after):
        if is_remembered(then.clip, title, now.clip, now.name) == "same":
            return True
    return False


@dataclass(slots=True)
class _JournalledTarget:
    """How far a target in progress has come; ``key``: its run and position, ``written``: the requests with a row."""

    key: tuple[int, int]
    begun: str | None
    requests: list[RequestRecord]
    written: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _JournalledRun:
    """A run in progress: its id in the ledger, its lock, its targets, and how far those in progress have come.

    ``lock`` is ``None`` if another process has started the run. ``positions`` are by the ids of the targets, which are
    kept, so that no other value gets the id of one of them.
    """

    id: int
    lock: Lock | None
    targets: dict[int, Target]
    kept: list[Lock] = field(default_factory=list)
    in_progress: dict[int, _JournalledTarget] = field(default_factory=dict)
    positions: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.positions = {id(target): position for position, target in self.targets.items()}

    def go_on(self, begun: Mapping[int, TargetRecord]) -> None:
        """Take over the targets that another process has begun."""
        for position, record in begun.items():
            known = set(range(len(record.requests)))
            self.in_progress[position] = _JournalledTarget(
                (self.id, position), record.begun, [*record.requests], known
            )

    def release(self) -> None:
        """Release its locks, that of the run first: without it, no worker begins."""
        for lock in (self.lock, *self.kept):
            if lock is not None:
                lock.release()


def new_run_name(now: datetime) -> str:
    """Return a name for a run, e.g. ``20261120T101500Z-ab12``: names sort by time."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


_KEY = "server, database, kind, name, link_id, create_time"
_CLIP_KEY = "server, database, name, link_id, create_time"  # without the kind
_RECALL = """
    SELECT item, value FROM memory
    WHERE server = ? AND database = ? AND kind = ? AND name = ? AND link_id = ? AND create_time = ?"""
_RECALL_SERVER = f"SELECT {_KEY}, item, value FROM memory WHERE server IN (?, '')"  # noqa: S608
_RECALL_DATABASE = """
    SELECT kind, name, link_id, create_time, item, value FROM memory WHERE server = ? AND database = ? LIMIT ?"""
_CLIPS = f"SELECT {_CLIP_KEY}, title, sighting, run, seen FROM clip WHERE server = ?"  # noqa: S608
_CLIPS_OF_DATABASE = f"{_CLIPS} AND database = ?"
# For the plain condition, SQLite would read all clips of the database; for a subquery, PostgreSQL would.
_CLIPS_TITLED = f"""
    SELECT {_CLIP_KEY}, clip.title, sighting, run, seen
    FROM (SELECT {_CLIP_KEY}, title FROM clip WHERE server = ? AND database = ? AND title = ?) AS titled
    JOIN clip USING ({_CLIP_KEY})"""  # noqa: S608
_MOST_KEYS = 1000  # of targets that are used again soon; others are looked up again
_FEW = 32  # targets of a database that are read one by one
_MOST = 100_000  # rows of a database that are read at once
_MOST_ALIKE = 100  # clips of equal values: on such a server these identify nothing
_ITEM = Upsert.of("memory", f"{_KEY}, item", "value, written")
_CLIP = Upsert.of("clip", _CLIP_KEY, "title, sighting, run, seen")
_FORGET_ASSETS = "DELETE FROM memory WHERE server = ? AND database = ? AND kind = 'asset' AND substr(item, 1, ?) = ?"
_FORGET_CLIP = """
    DELETE FROM memory
    WHERE server = ? AND database = ? AND kind = ? AND name = ? AND link_id = ? AND create_time = ?"""
_PENDING = """
    SELECT DISTINCT m.database, c.title FROM memory m JOIN clip c ON c.server = m.server AND c.database = m.database
    AND c.name = m.name AND c.link_id = m.link_id AND c.create_time = m.create_time
    WHERE m.server = ? AND m.kind = 'asset' AND substr(m.item, 1, 8) = 'pending:'"""


_Database = tuple[str, str]
"""A server and a database: the first two values of a key."""


class _Key(NamedTuple):
    """Under which the ledger writes what it remembers of a target; that of a clip ends with what no other key has."""

    server: str
    database: str
    kind: str
    name: str
    link_id: str = ""
    created: str = ""

    @property
    def in_database(self) -> _Database:
        """The server and the database."""
        return self.server, self.database

    @property
    def of_clip(self) -> tuple[str, ...]:
        """The key of a row of a clip, which has no kind."""
        return self.server, self.database, self.name, self.link_id, self.created


class _KeptClip(Struct, frozen=True):
    """A clip of which something is remembered: its key, and what of it was kept last (``Remembered``)."""

    key: _Key
    title: str
    clip: ClipIdentity
    run: str
    seen: Mapping[str, str]

    @classmethod
    def of(cls, row: Row) -> _KeptClip:
        """Return the clip of a row; an older ledger kept two values of the sighting, in the key."""
        server, database, name, link_id, created, title, sighting, run, seen = row
        clip = ClipIdentity(int(link_id) if link_id else None, created or None)
        if sighting:
            clip = load(ClipIdentity, sighting)
        key = _Key(server, database, "asset", name, link_id, created)
        return cls(key, title, clip, run, load(dict[str, str], seen))


_Clips = dict[_Key, _KeptClip]


class _ClipIndex:
    """The clips of one database, by their titles and by each value that they report."""

    def __init__(self) -> None:
        self.titled = defaultdict[str, _Clips](dict)
        self._reporting = defaultdict[tuple[str, object], _Clips](dict)
        self._places: dict[_Key, tuple[_Clips, ...]] = {}  # of each clip

    def add(self, kept: _KeptClip) -> None:
        """Add a clip, in place of what was kept of it before."""
        self.remove(kept.key)
        values = identifying_values(kept.clip).items()
        places = (self.titled[kept.title], *[self._reporting[value] for value in values])
        self._places[kept.key] = places
        for clips in places:
            clips[kept.key] = kept

    def remove(self, key: _Key) -> None:
        """Remove a clip."""
        for clips in self._places.pop(key, ()):
            del clips[key]

    def like(self, clip: ClipIdentity) -> tuple[Sequence[_KeptClip], bool]:
        """Return those that agree with a clip in a value: of its values, the one that the fewest have finds them.

        Also return whether so many have each of its values that only its ``link_id`` finds any.
        """
        if not self._places:
            return [], False
        values = identifying_values(clip)
        link_id = values.pop("link_id")
        reported = {name: value for name, value in values.items() if value is not None}
        candidates = self._fewest(reported)
        is_crowd = bool(reported) and not candidates
        like: list[_KeptClip] = []
        for clips in candidates:
            like += [kept for kept in clips.values() if compare_clips(kept.clip, clip).equal]
        if link_id is not None:
            like += self._reporting.get(("link_id", link_id), {}).values()
        return like, is_crowd

    def _fewest(self, reported: Mapping[str, object]) -> tuple[_Clips, ...]:
        """Return the clips that may have a value: of the value that the fewest have; none if very many have each.

        Clips may be one whose lengths are only nearly equal, so a length finds clips only where nothing else does.
        """
        fewest: tuple[_Clips, ...] = ()
        fewest_count = _MOST_ALIKE + 1
        for name, value in reported.items():
            if name == "frames" and fewest:
                continue
            having = self._reporting.get((name, value), {})
            not_reporting = self._reporting.get((name, None), {})
            count = len(having) + len(not_reporting)
            if count < fewest_count:
                fewest, fewest_count = (having, not_reporting), count
        return fewest


class ClipMemory(ABC):
    """What is remembered, wherever it is read from: of an asset by its clip, which is compared as everywhere.

    Titles are compared as in planning: after Unicode NFC. Servers are identified by their URLs, so that a host renamed
    in the inventory is the same server.
    """

    def __init__(self, urls: Mapping[str, str]) -> None:
        self.urls = urls
        self._indexes: dict[_Database, _ClipIndex] = {}
        self._keys: dict[TargetId, _Key] = {}  # of some targets

    @abstractmethod
    def _items(self, key: _Key) -> Mapping[str, Json]: ...

    @abstractmethod
    def _clips(self, database: _Database, title: str | None = None) -> Iterable[_KeptClip]:
        """Return the clips of a server and database, all or those of a title."""

    def recall(self, target: TargetId) -> Mapping[str, Json]:
        """Return the items remembered of a target, surely of the same clip."""
        items: dict[str, Json] = {}
        for record in self.records(target):
            if record.answer == "same":
                items |= record.items
        return items

    def records(self, target: TargetId, titles: Iterable[str] = ()) -> Sequence[Remembered]:
        """Return what may be remembered of a target, the surest last: its title and its values find candidates."""
        database = (self.urls.get(target.server, target.server), target.database)
        if target.kind != "asset":
            items = self._items(_Key(*database, target.kind, normal_form(target.name)))
            return [Remembered(target, items)] if items else []
        if len(self._keys) > _MOST_KEYS:
            self._keys.clear()
        found: dict[_Key, tuple[_KeptClip, Answer]] = {}
        is_found = is_crowd = False
        for title in dict.fromkeys((target.name, *titles)):
            for kept in self._titled(database, normal_form(title)):
                answer = is_remembered(kept.clip, title, target.clip, title)
                found.setdefault(kept.key, (kept, answer))
                is_found = is_found or answer == "same"
        if not is_found:
            like, is_crowd = self._index(database).like(target.clip)
            for kept in like:
                answer = compare_clips(kept.clip, target.clip).answer
                found.setdefault(kept.key, (kept, answer))
        unknown = [Remembered(target, {}, answer="unknown", is_crowd=True)] if is_crowd else []
        same = []
        for kept, answer in reversed(found.values()):  # what was found first is the surest
            if answer == "other":
                continue
            known = structs.replace(target, name=kept.title, clip=kept.clip)
            self._keys[known] = kept.key
            record = Remembered(known, self._items(kept.key), kept.run, kept.seen, answer)
            if answer == "same":
                same.append(record)
            else:
                unknown.append(record)
        return unknown + same

    def _titled(self, database: _Database, title: str) -> Iterable[_KeptClip]:
        """Return the clips of a title: from all clips of its database once these are compared by their values."""
        if database in self._indexes:
            return self._indexes[database].titled.get(title, {}).values()
        return self._clips(database, title)

    def _index(self, database: _Database) -> _ClipIndex:
        if database not in self._indexes:
            index = _ClipIndex()
            for kept in self._clips(database):
                index.add(kept)
            self._indexes[database] = index
        return self._indexes[database]

    def clips_of(self, server: str, database: str, title: str) -> Sequence[Remembered]:
        """Return what is remembered of each clip that had a title when it was kept last."""
        place = (self.urls.get(server, server), database)
        records = []
        for kept in self._titled(place, normal_form(title)):
            known = TargetId(server, database, "asset", title, clip=kept.clip)
            records.append(Remembered(known, self._items(kept.key), kept.run))
        return records


class LedgerMemory(ClipMemory):
    """Implements the port ``Memory`` for servers of these URLs, by their names."""

    def __init__(self, store: Store, now: Callable[[], datetime], urls: Mapping[str, str]) -> None:
        super().__init__(urls)
        self._store = store
        self._now = now
        self._rollbacks = store.rollbacks

    def _items(self, key: _Key) -> Mapping[str, Json]:
        rows = self._rows(key)
        if not rows:
            return {}
        with self._store.decoding():
            return {str(item): decode(str(value)) for item, value in rows}

    def _rows(self, key: _Key) -> list[Row]:
        return self._store.read(_RECALL, key)

    def _clips(self, database: _Database, title: str | None = None) -> list[_KeptClip]:
        if title is None:
            rows = self._store.read(_CLIPS_OF_DATABASE, database)
        else:
            rows = self._store.read(_CLIPS_TITLED, (*database, title))
        if not rows:
            return []
        with self._store.decoding():
            return list(map(_KeptClip.of, rows))

    def of_server(self, server: str) -> ServerMemory:
        """Return what is remembered of a server, and what is of none, as a value."""
        url = self.urls.get(server, server)
        items = defaultdict[_Key, dict[str, Json]](dict)
        remembered = self._store.read(_RECALL_SERVER, (url,))
        clips = self._store.read(_CLIPS, (url,))
        with self._store.decoding():
            for row in remembered:
                *key, item, value = row
                items[_Key(*key)][item] = decode(value)
            kept = list(map(_KeptClip.of, clips))
        return ServerMemory({server: url}, dict(items), kept)

    def forget_assets(self, server: str, database: str, prefix: str) -> None:
        """Forget the items of all assets of a database that start with ``prefix``."""
        self._store.write(
            _FORGET_ASSETS, (self.urls.get(server, server), database, len(prefix), prefix)
        )

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets that have a ``pending:…`` item."""
        rows = self._store.read(_PENDING, (self.urls.get(server, server),))
        return frozenset((str(database), str(name)) for database, name in rows)

    def remember(self, target: TargetId, items: Mapping[str, Json]) -> None:
        """Remember items of a target, as it was kept; a value of ``None`` forgets the item."""
        key, now = self._kept_key(target), format_time(self._now())
        rows = []
        for item, value in items.items():
            values = None if value is None else (dump(value), now)
            rows.append(((*key, item), values))
        self._store.put(_ITEM, *rows)

    def keep_clip(self, kept: TargetId, now: TargetId, run: str, seen: Mapping[str, str]) -> None:
        """Keep what a clip is now, the run that wrote to it, and digests of what it shows."""
        self._write_clip(self._kept_key(kept), now, run, seen)

    def forget_clip(self, kept: TargetId) -> None:
        """Forget a clip: it is deleted."""
        key = self._kept_key(kept)
        self._store.write(_FORGET_CLIP, key)
        self._store.put(_CLIP, (key.of_clip, None))
        self._keys.clear()
        index = self._indexes.get(key.in_database)
        if index is not None:
            index.remove(key)

    def _kept_key(self, target: TargetId) -> _Key:
        """Return the key of a target as it was kept; a clip of which nothing was remembered gets a new one."""
        if self._rollbacks != self._store.rollbacks:  # a new key may be gone
            self._rollbacks = self._store.rollbacks
            self._keys.clear()
            self._indexes.clear()
        if target in self._keys:
            return self._keys[target]
        server = self.urls.get(target.server, target.server)
        key = _Key(server, target.database, target.kind, normal_form(target.name))
        if target.kind != "asset":
            return key
        for kept in self._titled(key.in_database, key.name):
            if kept.clip == target.clip:
                self._keys[target] = kept.key
        if target not in self._keys:
            new_key = key._replace(created=secrets.token_hex(8))
            self._write_clip(new_key, target, "", {})
        return self._keys[target]

    def _write_clip(self, key: _Key, clip: TargetId, run: str, seen: Mapping[str, str]) -> None:
        self._keys[clip] = key
        kept = _KeptClip(key, normal_form(clip.name), clip.clip, run, seen)
        values = (kept.title, dump(kept.clip), run, dump(seen))
        self._store.put(_CLIP, (key.of_clip, values))
        index = self._indexes.get(key.in_database)
        if index is not None:
            index.add(kept)


class ServerMemory(ClipMemory):
    """Implements the port ``Memory`` for a worker that plans one server, away from the ledger; it writes nothing."""

    def __init__(
        self,
        urls: Mapping[str, str],
        items: Mapping[_Key, Mapping[str, Json]],
        clips: Sequence[_KeptClip],
    ) -> None:
        super().__init__(urls)
        self._items_by_key = items
        self._kept_clips = clips

    def _items(self, key: _Key) -> Mapping[str, Json]:
        return self._items_by_key.get(key, {})

    def _clips(self, database: _Database, title: str | None = None) -> list[_KeptClip]:
        found = []
        for kept in self._kept_clips:
            if kept.key.in_database == database and title in {None, kept.title}:
                found.append(kept)
        return found

    def pending(self, server: str) -> frozenset[tuple[str, str]]:
        """Return database and title of the assets that have a ``pending:…`` item."""
        url = self.urls.get(server, server)
        assets: set[tuple[str, str]] = set()
        for kept in self._kept_clips:
            if kept.key.server == url and any(
                item.startswith("pending:") for item in self._items(kept.key)
            ):
                assets.add((kept.key.database, kept.title))
        return frozenset(assets)

    def _refuse(self, *written: object, **named: object) -> NoReturn:
        """Raise ``LedgerError``."""
        raise LedgerError(f"{written} {named}: a worker that plans writes nothing")

    remember = forget_assets = keep_clip = forget_clip = _refuse


class PlanMemory(LedgerMemory):
    """The memory of a shared ledger while one plan is made, so that not each target costs a round trip.

    A few targets of a database are read one by one, then all of them at once, unless it has too many. What is written
    after that is not seen: a run holds the locks of its databases.
    """

    def __init__(self, store: Store, now: Callable[[], datetime], urls: Mapping[str, str]) -> None:
        super().__init__(store, now, urls)
        self._reads: Counter[_Database] = Counter()
        self._rows_of_databases: dict[_Database, dict[_Key, list[Row]]] = {}

    def _rows(self, key: _Key) -> list[Row]:
        database = key.in_database
        if database not in self._rows_of_databases:
            self._reads[database] += 1
            if self._reads[database] != _FEW:
                return super()._rows(key)
            rows = self._store.read(_RECALL_DATABASE, (*database, _MOST + 1))
            if len(rows) > _MOST:
                return super()._rows(key)
            self._index(database)
            rows_by_key = self._rows_of_databases[database] = defaultdict(list)
            for *rest_of_key, item, value in rows:
                rows_by_key[_Key(*database, *rest_of_key)].append((item, value))
        return self._rows_of_databases[database].get(key, [])
