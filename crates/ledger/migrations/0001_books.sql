-- Amounts are nano-USD, prices nano-USD per million tokens, times milliseconds since 1970-01-01 UTC.

-- 'available' and 'held' belong to a consumer, 'payable' to an owner, the rest to the platform.
-- 'outside' is the world that money comes from; 'absorption' is what the platform adds: both only go down.
CREATE TABLE accounts (
    id      INTEGER PRIMARY KEY,
    kind    TEXT    NOT NULL CHECK (kind IN ('available', 'held', 'payable', 'fee', 'absorption', 'outside')),
    name    TEXT    NOT NULL,
    balance INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, name),
    CHECK (balance >= 0 OR kind IN ('outside', 'absorption'))
) STRICT;

CREATE TABLE events (
    id   INTEGER PRIMARY KEY,
    kind TEXT    NOT NULL CHECK (kind IN ('credit', 'hold', 'settle')),
    job  BLOB    REFERENCES jobs (id),
    at   INTEGER NOT NULL,
    -- One hold and one settlement for a job, whatever the program does.
    UNIQUE (kind, job)
) STRICT;

CREATE TABLE postings (
    id      INTEGER PRIMARY KEY,
    event   INTEGER NOT NULL REFERENCES events (id),
    account INTEGER NOT NULL REFERENCES accounts (id),
    amount  INTEGER NOT NULL
) STRICT;
CREATE INDEX postings_by_event ON postings (event);

CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER postings_stay BEFORE UPDATE ON postings BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;
CREATE TRIGGER postings_remain BEFORE DELETE ON postings BEGIN SELECT RAISE(ABORT, 'postings are append-only'); END;

CREATE TABLE keys (
    id         INTEGER PRIMARY KEY,
    -- SHA-256 of the whole key. Keys are 32 random bytes, so no salt and no slow hash is needed.
    hash       BLOB    NOT NULL UNIQUE CHECK (length(hash) = 32),
    account    TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE owners (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE nodes (
    key           BLOB    PRIMARY KEY CHECK (length(key) = 32),
    owner         INTEGER NOT NULL REFERENCES owners (id),
    registered_at INTEGER NOT NULL,
    -- The sequence of the node's latest receipt.
    sequence      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE invites (
    hash       BLOB    PRIMARY KEY CHECK (length(hash) = 32),
    owner      INTEGER NOT NULL REFERENCES owners (id),
    created_at INTEGER NOT NULL,
    used_by    BLOB    REFERENCES nodes (key),
    used_at    INTEGER
) STRICT;

CREATE TABLE jobs (
    id            BLOB    PRIMARY KEY CHECK (length(id) = 16),
    key           INTEGER NOT NULL REFERENCES keys (id),
    account       TEXT    NOT NULL,
    model         BLOB    NOT NULL CHECK (length(model) = 32),
    model_name    TEXT    NOT NULL,
    prompt_tokens INTEGER NOT NULL CHECK (prompt_tokens >= 0),
    token_limit   INTEGER NOT NULL CHECK (token_limit > 0),
    -- The prices that the consumer pays, locked at the first match.
    input_price   INTEGER NOT NULL CHECK (input_price >= 0),
    output_price  INTEGER NOT NULL CHECK (output_price >= 0),
    -- Positions that the consumer has for certain; exact once settled.
    delivered     INTEGER NOT NULL DEFAULT 0 CHECK (delivered BETWEEN 0 AND token_limit),
    state         TEXT    NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'settled')),
    created_at    INTEGER NOT NULL,
    settled_at    INTEGER,
    finish        TEXT    CHECK (finish IN ('stop', 'length', 'cancelled', 'failed', 'refused', 'interrupted')),
    charge        INTEGER,
    fee           INTEGER,
    absorption    INTEGER,
    CHECK ((state = 'settled') = (charge IS NOT NULL AND finish IS NOT NULL AND settled_at IS NOT NULL))
) STRICT;
CREATE INDEX jobs_open ON jobs (state) WHERE state = 'open';

CREATE TABLE holds (
    job      BLOB    PRIMARY KEY REFERENCES jobs (id),
    amount   INTEGER NOT NULL CHECK (amount >= 0),
    state    TEXT    NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'captured', 'voided')),
    captured INTEGER NOT NULL DEFAULT 0 CHECK (captured BETWEEN 0 AND amount)
) STRICT;

CREATE TABLE attempts (
    job            BLOB    NOT NULL REFERENCES jobs (id),
    attempt        INTEGER NOT NULL CHECK (attempt > 0),
    node           BLOB    NOT NULL REFERENCES nodes (key),
    input_price    INTEGER NOT NULL CHECK (input_price >= 0),
    output_price   INTEGER NOT NULL CHECK (output_price >= 0),
    -- An attempt has the positions from its own first one to that of the next attempt.
    first_position INTEGER NOT NULL CHECK (first_position >= 0),
    input_tokens   INTEGER NOT NULL CHECK (input_tokens >= 0),
    positions      INTEGER,
    pay            INTEGER,
    PRIMARY KEY (job, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
    node           BLOB    NOT NULL REFERENCES nodes (key),
    sequence       INTEGER NOT NULL CHECK (sequence > 0),
    job            BLOB    NOT NULL,
    attempt        INTEGER NOT NULL,
    -- The signed message as it is sent.
    bytes          BLOB    NOT NULL,
    acked_at       INTEGER,
    node_signature BLOB,
    PRIMARY KEY (node, sequence),
    UNIQUE (job, attempt),
    FOREIGN KEY (job, attempt) REFERENCES attempts (job, attempt)
) STRICT, WITHOUT ROWID;
