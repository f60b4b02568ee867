-- A job of which nothing is delivered may have its prices locked again, so its events may be several 'relock's.
-- SQLite cannot change a check: the table is written anew. Postings point at its rows, which all come back with
-- their numbers before the transaction ends.
PRAGMA defer_foreign_keys = ON;

CREATE TEMP TABLE events_before AS SELECT * FROM events;

DROP TABLE events;

CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    kind TEXT    NOT NULL CHECK (kind IN ('credit', 'hold', 'relock', 'settle')),
    job  BLOB    REFERENCES jobs (id),
    at   INTEGER NOT NULL
) STRICT;

INSERT INTO events SELECT * FROM events_before;

DROP TABLE events_before;

-- One hold and one settlement for a job, whatever the program does.
CREATE UNIQUE INDEX events_once ON events (kind, job) WHERE kind IN ('hold', 'settle');

CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
