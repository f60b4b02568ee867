-- The owner's log. Times are milliseconds since 1970-01-01 UTC, money is nano-USD, ids are raw bytes.

-- Single facts about this log: when the node was last alive, which broker key is pinned.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What people call the models whose digests appear below.
CREATE TABLE models (
    digest BLOB PRIMARY KEY,
    name   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One stay with a broker.
CREATE TABLE sessions (
    id      INTEGER PRIMARY KEY,
    broker  BLOB NOT NULL,
    session BLOB NOT NULL,
    began   INTEGER NOT NULL,
    ended   INTEGER,
    -- Why it ended, for the owner's own reading.
    cause   TEXT
) STRICT;

-- Every try at a job, paid or not.
CREATE TABLE attempts (
    job            BLOB NOT NULL,
    attempt        INTEGER NOT NULL,
    broker         BLOB NOT NULL,
    model          BLOB NOT NULL,
    -- Prompt tokens plus what earlier attempts had emitted.
    input_tokens   INTEGER NOT NULL,
    first_position INTEGER NOT NULL,
    -- Positions sent; only final once the attempt has ended in another way than `interrupted`.
    sent           INTEGER NOT NULL DEFAULT 0,
    input_price    INTEGER NOT NULL,
    output_price   INTEGER NOT NULL,
    began          INTEGER NOT NULL,
    ended          INTEGER,
    finish         TEXT,
    PRIMARY KEY (job, attempt)
) STRICT, WITHOUT ROWID;
CREATE INDEX attempts_by_time ON attempts (began);

-- What was earned. A sequence counts for one node at one broker; an attempt earns once.
CREATE TABLE receipts (
    broker           BLOB NOT NULL,
    node             BLOB NOT NULL,
    sequence         INTEGER NOT NULL,
    job              BLOB NOT NULL,
    attempt          INTEGER NOT NULL,
    model            BLOB NOT NULL,
    first_position   INTEGER NOT NULL,
    positions        INTEGER NOT NULL,
    input_tokens     INTEGER NOT NULL,
    input_price      INTEGER NOT NULL,
    output_price     INTEGER NOT NULL,
    share            INTEGER NOT NULL,
    pay              INTEGER NOT NULL,
    settled_at       INTEGER NOT NULL,
    broker_signature BLOB NOT NULL,
    node_signature   BLOB NOT NULL,
    -- The receipt as it came, broker's signature included: the proof.
    raw              BLOB NOT NULL,
    stored_at        INTEGER NOT NULL,
    PRIMARY KEY (broker, node, sequence),
    UNIQUE (broker, job, attempt)
) STRICT;
CREATE INDEX receipts_by_time ON receipts (settled_at);

-- Receipts that contradict a stored one, or that we could not agree with. Kept as evidence, never counted.
CREATE TABLE refused_receipts (
    raw     BLOB PRIMARY KEY,
    broker  BLOB NOT NULL,
    cause   TEXT NOT NULL,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What the machine was doing and why. The sentence is put together from `status` when it is read.
CREATE TABLE spans (
    id     INTEGER PRIMARY KEY,
    began  INTEGER NOT NULL,
    ended  INTEGER,
    shape  TEXT NOT NULL,
    -- The status and its numbers as JSON.
    status TEXT NOT NULL
) STRICT;
CREATE INDEX spans_by_time ON spans (began);

-- Each time that the machine was given back.
CREATE TABLE hand_overs (
    id               INTEGER PRIMARY KEY,
    at               INTEGER NOT NULL,
    given_to         TEXT NOT NULL,
    stopped_ms       INTEGER NOT NULL,
    worker_gone_ms   INTEGER NOT NULL,
    memory_back_ms   INTEGER NOT NULL,
    vram_left_mib    INTEGER,
    jobs_handed_back INTEGER NOT NULL
) STRICT;
