"""The tables of what superseded what, of repeated statements, and of the keys by which statements are found."""

SUPERSESSION_SCHEMA = """
-- One record in the place of another, by the row ids of their open versions. It stands while `known_until` is NULL;
-- undone, it stays, for `as_of`. With one that stands there is a link "supersedes" from the new record to the old.
CREATE TABLE supersession (
    id          INTEGER PRIMARY KEY,
    old_id      INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    new_id      INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE CHECK (new_id != old_id),
    -- The valid time from which the new record holds in place of the old.
    holds_from  INTEGER NOT NULL,
    known_from  INTEGER NOT NULL,
    known_until INTEGER,
    reason      TEXT,
    strength    REAL NOT NULL CHECK (strength BETWEEN 0 AND 1)
);
CREATE UNIQUE INDEX supersession_standing ON supersession(old_id, new_id) WHERE known_until IS NULL;
CREATE INDEX supersession_old ON supersession(old_id);
CREATE INDEX supersession_new ON supersession(new_id);
CREATE INDEX supersession_undone ON supersession(known_until) WHERE known_until IS NOT NULL;

-- Further times at which the same statement was remembered; `text` only where it differs from the record's.
CREATE TABLE occurrence (
    id        INTEGER PRIMARY KEY,
    record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    at        INTEGER NOT NULL,
    text      TEXT
);
CREATE INDEX occurrence_record ON occurrence(record_id, at);

-- Pairs of which the rules do not say whether the new one supersedes the old, for a language model.
CREATE TABLE judgement (
    old_id     INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    new_id     INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
    confidence REAL NOT NULL,
    reason     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (old_id, new_id)
) WITHOUT ROWID;
CREATE INDEX judgement_new ON judgement(new_id);

-- Records that many were stored with and whose statements are read and compared later, under the policy of that write
-- (JSON): the row ids first..last.
CREATE TABLE uncompared (
    first_id INTEGER PRIMARY KEY,
    last_id  INTEGER NOT NULL CHECK (last_id >= first_id),
    policy   TEXT NOT NULL
);

-- Derived: what each statement speaks of, as `text/statements` has it: its keys (int64) and its frames (pairs of
-- uint32: the thing, its value), both little-endian. Episodes, chunks and procedures have none.
CREATE TABLE statement (
    record_id INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE,
    keys      BLOB NOT NULL,
    frames    BLOB NOT NULL
);
"""
