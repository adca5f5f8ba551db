-- The tables of the ledger, local and shared: msauto/ledger/store.py. Raise VERSION with each change.
-- A shared ledger has the same, with three replacements: TEXT, INTEGER PRIMARY KEY and WITHOUT ROWID are not those of
-- PostgreSQL (msauto/ledger/postgres_store.py).

CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    started TEXT NOT NULL,
    ended TEXT,
    status TEXT NOT NULL CHECK (status IN ('running', 'ok', 'failed', 'interrupted')),
    playbooks TEXT NOT NULL,
    summary TEXT NOT NULL,
    msauto TEXT NOT NULL,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL
);

-- A row may have megabytes. WITHOUT ROWID, each reference to it from `request` would read all of it.
CREATE TABLE target (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    server TEXT NOT NULL,
    database TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    planned TEXT NOT NULL,
    PRIMARY KEY (run, position)
);

-- What came of a target: its row is written once the target has ended. `requests` has the state of each of its requests,
-- `sent` is how many were sent.
CREATE TABLE record (
    run INTEGER NOT NULL,
    target INTEGER NOT NULL,
    begun TEXT,
    sent INTEGER NOT NULL,
    requests TEXT NOT NULL,
    outcome TEXT,
    message TEXT NOT NULL,
    differences TEXT NOT NULL,
    left_as TEXT NOT NULL,
    notes TEXT NOT NULL,
    PRIMARY KEY (run, target),
    FOREIGN KEY (run, target) REFERENCES target (run, position) ON DELETE CASCADE
) WITHOUT ROWID;

-- How far a target in progress has come: a row for each request that was begun, written before it is sent and after it.
-- Once the target has ended, its rows are deleted.
CREATE TABLE request (
    run INTEGER NOT NULL,
    target INTEGER NOT NULL,
    position INTEGER NOT NULL,
    known TEXT NOT NULL,
    PRIMARY KEY (run, target, position),
    FOREIGN KEY (run, target) REFERENCES target (run, position) ON DELETE CASCADE
) WITHOUT ROWID;

CREATE TABLE memory (
    server TEXT NOT NULL,
    database TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    link_id TEXT NOT NULL,
    create_time TEXT NOT NULL,
    item TEXT NOT NULL,
    value TEXT NOT NULL,
    written TEXT NOT NULL,
    PRIMARY KEY (server, database, kind, name, link_id, create_time, item)
) WITHOUT ROWID;

-- The clips of which something is remembered: the key of their rows in `memory`, which stays as it is and of which
-- create_time is any text; and the title and the sighting (msauto/model/identity.py) as the last run that wrote to it left
-- them, with digests of what it showed. The sighting that an older ledger kept is in the key alone.
CREATE TABLE clip (
    server TEXT NOT NULL,
    database TEXT NOT NULL,
    name TEXT NOT NULL,
    link_id TEXT NOT NULL,
    create_time TEXT NOT NULL,
    title TEXT NOT NULL,
    sighting TEXT NOT NULL,
    run TEXT NOT NULL,
    seen TEXT NOT NULL,
    PRIMARY KEY (server, database, name, link_id, create_time)
) WITHOUT ROWID;

CREATE INDEX clip_title ON clip (server, database, title);

CREATE TABLE note (
    run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;

CREATE TABLE attempt (
    name TEXT PRIMARY KEY,
    started TEXT NOT NULL,
    summary TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE batch (
    name TEXT PRIMARY KEY,
    batch TEXT NOT NULL,
    started TEXT NOT NULL,
    ran INTEGER NOT NULL,
    summary TEXT NOT NULL,
    record TEXT NOT NULL
) WITHOUT ROWID;

-- The order in which runs, attempts and batches were entered: no clock decides it.
CREATE TABLE entered (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE INDEX run_started ON run (started);

-- Who holds a lock of a shared ledger. Whether it is held is known by the server alone; `session` is its process there.
CREATE TABLE holder (
    lock TEXT NOT NULL,
    session INTEGER NOT NULL,
    run TEXT NOT NULL,
    pid INTEGER NOT NULL,
    "user" TEXT NOT NULL,
    host TEXT NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (lock, session)
) WITHOUT ROWID;
