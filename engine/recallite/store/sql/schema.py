"""The tables of a store, declared once; each database renders them in its own types.

A line declares columns, a constraint or an index. Types: SERIAL numbers rows and gives no number twice, NEW_ID has the
numbers of `Writer.new_ids`, ID numbers rows, FLAG is true or false, and INTEGER (64 bits), REAL, TEXT and BLOB are what
they are called.

`record` holds one row per version of a memory. The open version (`recorded_until IS NULL`) keeps its row id for life,
so links, tags and access counts stay with it; a changed text moves the old version to a row of its own. Times are
microseconds since 1970 UTC.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

_COLUMNS = re.compile(r"([a-z_]+(?:, *[a-z_]+)*) +([A-Z]\S*)(.*)")
_INDEX = re.compile(r"(UNIQUE )?INDEX (\w+)(.*)")


class Table(NamedTuple):
    """A table: its columns as type and constraints by name, constraints of several columns, and indexes by name.

    `derived`: `rebuild` makes the rows anew from the records.
    """

    name: str
    columns: dict[str, tuple[str, str]]
    constraints: list[str]
    indexes: dict[str, str]
    derived: bool = False

    @property
    def key(self) -> str:
        """The columns of its primary key."""
        for constraint in self.constraints:
            if constraint.startswith("PRIMARY KEY ("):
                return constraint[len("PRIMARY KEY (") : -1]
        return next(
            name
            for name, (kind, constraints) in self.columns.items()
            if kind in ("ID", "NEW_ID", "SERIAL") or "PRIMARY KEY" in constraints
        )

    def may_be_null(self, column: str) -> bool:
        """Whether a column may be NULL."""
        kind, constraints = self.columns[column]
        return kind != "FLAG" and "NOT NULL" not in constraints and column not in self.key.split(", ")

    def references_to(self, other: str) -> list[str]:
        """The columns that refer to rows of another table."""
        return [name for name, (_, constraints) in self.columns.items() if f"REFERENCES {other}(" in constraints]

    def also(self, lines: str) -> Table:
        """The same table with further columns and indexes; they replace any of the same name."""
        more = table(self.name, lines)
        return self._replace(columns=self.columns | more.columns, indexes=self.indexes | more.indexes)

    def create_sql(self, types: Mapping[str, str], *, unnumbered: str = "") -> str:
        """The statements that create it; `unnumbered` ends the one of a table without row numbers."""
        columns = [
            f"    {name} {types.get(kind, kind).format(name=name)}{constraints}"
            for name, (kind, constraints) in self.columns.items()
        ]
        lines = ",\n".join(columns + [f"    {constraint}" for constraint in self.constraints])
        ending = unnumbered if any(line.startswith("PRIMARY KEY") for line in self.constraints) else ""
        return "\n".join([f"CREATE TABLE {self.name} (\n{lines}\n){ending};", *self.indexes.values(), ""])


def table(name: str, lines: str, *, derived: bool = False) -> Table:
    """The table that these lines declare."""
    declared = Table(name, {}, [], {}, derived)
    for line in map(str.strip, lines.strip().splitlines()):
        if index := _INDEX.fullmatch(line):
            declared.indexes[index[2]] = f"CREATE {index[1] or ''}INDEX {index[2]} ON {name}{index[3]};"
        elif columns := _COLUMNS.fullmatch(line):
            declared.columns.update(dict.fromkeys(columns[1].split(", "), (columns[2], columns[3])))
        elif not line.startswith("--"):
            declared.constraints.append(line)
    return declared


TABLES = (
    table("meta", """
        key TEXT
        value TEXT NOT NULL
        PRIMARY KEY (key)
    """),
    table("scope", """
        id ID
        path TEXT NOT NULL UNIQUE
    """),
    table("source", """
        id SERIAL
        scope_id INTEGER NOT NULL REFERENCES scope(id)
        name TEXT NOT NULL
        metadata TEXT
        UNIQUE INDEX source_of_scope (scope_id, name)
        INDEX source_name (name)
    """),
    table("record", """
        id NEW_ID
        public_id, kind TEXT NOT NULL
        scope_id INTEGER NOT NULL REFERENCES scope(id)
        text TEXT NOT NULL
        context TEXT
        importance REAL NOT NULL DEFAULT 0.5 CHECK (importance BETWEEN 0 AND 1)
        -- The importance that ranking uses, if consolidation has lowered `importance`; recency applies at query time.
        base_importance REAL CHECK (base_importance BETWEEN 0 AND 1)
        pinned FLAG DEFAULT false
        -- The rank of who said it: 0 the user, -1 an agent, -2 a tool, -3 a document, -4 the web.
        authority INTEGER NOT NULL DEFAULT 0 CHECK (authority BETWEEN -4 AND 0)
        topic TEXT
        source_id INTEGER REFERENCES source(id)
        position INTEGER
        created_at INTEGER NOT NULL
        -- From when and until when the text holds (the end is excluded); NULL: from created_at; for a moment, or open.
        valid_from, valid_until INTEGER
        -- Whether both were found in the text, and not given.
        valid_resolved FLAG DEFAULT false
        updated_at INTEGER NOT NULL
        expires_at INTEGER
        -- How long it lives from when it is touched, in microseconds; NULL: expires_at does not slide.
        expires_after INTEGER CHECK (expires_after > 0)
        recorded_from INTEGER NOT NULL
        recorded_until INTEGER
        -- Derived from `supersession`, for all versions of a record: since when the store knows that it is superseded,
        -- until when (NULL: no successor expires), and when it stopped to hold (NULL: nothing surely replaced it).
        superseded_at, superseded_until, held_until INTEGER
        metadata TEXT
        content_hash BLOB NOT NULL
        embedding_state TEXT NOT NULL CHECK (embedding_state IN ('embedded', 'pending', 'refused', 'none'))
        -- If false, recall leaves it out. Nothing is derived from it, so that no index has it.
        indexed FLAG DEFAULT true
        UNIQUE INDEX record_public_id (public_id) WHERE recorded_until IS NULL
        INDEX record_version (public_id, recorded_until) WHERE recorded_until IS NOT NULL
        -- With what says whether a version is current, so that the records of scopes are counted in the index alone.
        INDEX record_scope (scope_id, kind, recorded_until, expires_at, superseded_at, superseded_until, held_until)
        INDEX record_source (source_id, position) WHERE source_id IS NOT NULL
        INDEX record_topic (topic) WHERE topic IS NOT NULL
        INDEX record_expires (expires_at) WHERE expires_at IS NOT NULL
        INDEX record_unembedded (id) WHERE embedding_state != 'embedded'
        INDEX record_superseded (superseded_until) WHERE superseded_until IS NOT NULL
        -- Which authorities below the user have said something.
        INDEX record_lower (authority) WHERE authority < 0 AND kind != 'chunk'
    """),
    table("access", """
        record_id INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE
        count, accessed_at INTEGER NOT NULL
    """),
    table("tag", """
        id ID
        name TEXT NOT NULL UNIQUE
    """),
    table("record_tag", """
        record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE
        place INTEGER NOT NULL
        tag_id INTEGER NOT NULL REFERENCES tag(id)
        PRIMARY KEY (record_id, place)
        INDEX record_tag_by_tag (tag_id, record_id)
    """),
    table("link", """
        source_id, target_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE
        type TEXT NOT NULL
        strength REAL NOT NULL CHECK (strength BETWEEN 0 AND 1)
        created_at INTEGER NOT NULL
        reason TEXT
        PRIMARY KEY (source_id, target_id, type)
        INDEX link_target (target_id)
        INDEX link_contradicts (source_id) WHERE type = 'contradicts'
    """),
    # One record in the place of another, by the row ids of their open versions. It stands while `known_until` is NULL;
    # undone, it stays, for `as_of`. With one that stands there is a link "supersedes" from the new record to the old.
    table("supersession", """
        id ID
        old_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE
        new_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE CHECK (new_id != old_id)
        -- The valid time from which the new record holds in place of the old.
        holds_from, known_from INTEGER NOT NULL
        known_until INTEGER
        reason TEXT
        strength REAL NOT NULL CHECK (strength BETWEEN 0 AND 1)
        -- Whether the old record surely no longer holds: as a caller said, or both texts do.
        certain FLAG DEFAULT true
        -- Whether rules or a language model found it; else a caller said it.
        by_rule FLAG DEFAULT false
        UNIQUE INDEX supersession_standing (old_id, new_id) WHERE known_until IS NULL
        INDEX supersession_old (old_id)
        INDEX supersession_new (new_id)
        INDEX supersession_undone (known_until) WHERE known_until IS NOT NULL
    """),
    # Further times at which the same statement was remembered; `text` only if it differs from the record's.
    table("occurrence", """
        id ID
        record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE
        at INTEGER NOT NULL
        text TEXT
        INDEX occurrence_record (record_id, at)
    """),
    # Pairs for a language model: the rules do not say whether the new one supersedes the old.
    table("judgement", """
        old_id, new_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE
        confidence REAL NOT NULL
        reason TEXT NOT NULL
        created_at INTEGER NOT NULL
        PRIMARY KEY (old_id, new_id)
        INDEX judgement_new (new_id)
    """),
    # Records that were stored in bulk and whose statements are read and compared later, under the policy of that write
    # (JSON): the row ids first..last.
    table("uncompared", """
        first_id INTEGER PRIMARY KEY
        last_id INTEGER NOT NULL CHECK (last_id >= first_id)
        policy TEXT NOT NULL
    """),
    # What each statement speaks of, as `text/statements` has it: its keys (int64), its frames (pairs of uint32: the
    # thing, its value) and its outline (uint16), little-endian. Episodes, chunks and procedures have none.
    table("statement", """
        record_id INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE
        keys, frames, outline BLOB NOT NULL
    """, derived=True),
    table("embedder", """
        id ID
        fingerprint TEXT NOT NULL UNIQUE
        name TEXT NOT NULL
        dimension INTEGER NOT NULL
        vector_type TEXT NOT NULL DEFAULT 'float32' CHECK (vector_type IN ('float32', 'float16'))
        active FLAG DEFAULT false
    """),
    # The original vectors, little-endian: float32, as sqlite-vec reads them, or float16 if the embedder's row says so.
    # A text longer than the embedder's window has several parts.
    table("vector", """
        id NEW_ID
        record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE
        part INTEGER NOT NULL
        embedder_id INTEGER NOT NULL REFERENCES embedder(id)
        value BLOB NOT NULL
        UNIQUE INDEX vector_record (record_id, part, embedder_id)
    """),
    # Texts that an embedder refused; they are not sent to it again.
    table("refusal", """
        record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE
        embedder_id INTEGER NOT NULL REFERENCES embedder(id) ON DELETE CASCADE
        reason TEXT NOT NULL
        PRIMARY KEY (record_id, embedder_id)
    """),
    # Kinds with a number. A write numbers the kinds of new records.
    table("kind", """
        id ID
        name TEXT NOT NULL UNIQUE
    """, derived=True),
    # For late interaction, 1 bit per component of the vector of each token, in order; may be absent. The index is for
    # counts and sizes without reading the codes.
    table("token_code", """
        vector_id INTEGER PRIMARY KEY REFERENCES vector(id) ON DELETE CASCADE
        codes BLOB NOT NULL
        INDEX token_code_size (length(codes))
    """),
    # Words, numbered within an epoch, and for each record its words (ascending, packed as `derived.py` does) with their
    # counts and flags (uint8), as `text/reading.py` has them.
    table("term", """
        id ID
        text TEXT NOT NULL UNIQUE
    """, derived=True),
    table("record_terms", """
        record_id INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE
        terms, counts BLOB NOT NULL
    """, derived=True),
    # The records that are standing instructions ("instruction") or preferences ("preference").
    table("standing", """
        record_id INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE
        name TEXT NOT NULL
    """, derived=True),
    # The change feed: what an in-memory index has to read again. A row covers the ids first..last. The last row stays.
    table("feed", """
        sequence ID
        first_id, last_id INTEGER NOT NULL
        operation TEXT NOT NULL CHECK (operation IN ('insert', 'text', 'update', 'delete', 'link', 'frames', 'reload'))
    """),
    # Digests and stamps of what `sync` has exchanged (msgpack), by a digest of its name (JSON), which goes with what is
    # forgotten. `number`: the file of this device that has it, or 0; `diverged`: when the texts of a memory that two
    # devices had changed were stored, the current one last.
    table("synced", """
        key TEXT
        name, diverged TEXT
        state BLOB NOT NULL
        number INTEGER NOT NULL
        PRIMARY KEY (key)
        INDEX synced_number (number)
        INDEX synced_diverged (diverged) WHERE diverged IS NOT NULL
    """),
    # Conversations. A message is a row: appending is one small insert, and two processes can append. Its text is a
    # record, by which it is found: of kind "session_message", with its role as context, the session as source and its
    # position. One without text has none.
    table("session", """
        id SERIAL
        scope_id INTEGER NOT NULL REFERENCES scope(id)
        name TEXT NOT NULL
        provider TEXT
        created_at INTEGER NOT NULL
        UNIQUE (scope_id, name)
    """),
    table("session_message", """
        id SERIAL
        session_id INTEGER NOT NULL REFERENCES session(id) ON DELETE CASCADE
        position INTEGER NOT NULL
        record_id INTEGER REFERENCES record(id) ON DELETE CASCADE
        message TEXT NOT NULL
        created_at INTEGER NOT NULL
        UNIQUE (session_id, position)
        INDEX session_message_record (record_id) WHERE record_id IS NOT NULL
    """),
    table("session_snapshot", """
        id SERIAL
        public_id TEXT NOT NULL UNIQUE
        scope_id INTEGER NOT NULL REFERENCES scope(id)
        session TEXT
        messages, summary, key_decisions, task_ids TEXT NOT NULL
        started_at INTEGER
        ended_at INTEGER NOT NULL
        total_cost REAL NOT NULL
        total_tokens INTEGER NOT NULL
        INDEX session_snapshot_scope (scope_id, ended_at)
    """),
    # How often a procedure was used; its record has name, description and pattern.
    table("procedure_use", """
        record_id INTEGER PRIMARY KEY REFERENCES record(id) ON DELETE CASCADE
        success_rate REAL NOT NULL CHECK (success_rate BETWEEN 0 AND 1)
        use_count, success_count INTEGER NOT NULL DEFAULT 0
    """),
    # Sums of integers, so that averages are exact; `measured` counts the runs with a figure.
    table("tool_pattern", """
        scope_id INTEGER NOT NULL REFERENCES scope(id)
        task_type, pattern TEXT NOT NULL
        total_count, success_count, total_steps, steps_measured, total_tokens, tokens_measured INTEGER NOT NULL
        created_at, updated_at INTEGER NOT NULL
        PRIMARY KEY (scope_id, task_type, pattern)
    """),
    table("error_recovery", """
        scope_id INTEGER NOT NULL REFERENCES scope(id)
        tool, error_pattern, error, recovery TEXT NOT NULL
        total_count, created_at, updated_at INTEGER NOT NULL
        PRIMARY KEY (scope_id, tool, error_pattern)
    """),
    # What each cycle did; `trigger_id` is the row id of the last episode it saw, `replayed_id` of the last that it
    # replayed with success.
    table("consolidation", """
        id SERIAL
        scope_id INTEGER NOT NULL REFERENCES scope(id)
        trigger_id, replayed_id, created_at, compressed, pruned, replayed, promoted INTEGER NOT NULL
        error TEXT
        UNIQUE (scope_id, trigger_id)
    """),
    table("working_state", """
        scope_id INTEGER PRIMARY KEY REFERENCES scope(id)
        items TEXT NOT NULL
        updated_at INTEGER NOT NULL
    """),
    # Documents: the bytes that were read, and how they were chunked. Chunks are records of kind "chunk".
    table("document", """
        id SERIAL
        public_id TEXT NOT NULL UNIQUE
        source_id INTEGER NOT NULL UNIQUE REFERENCES source(id)
        title TEXT
        media_type TEXT NOT NULL
        content_hash BLOB NOT NULL
        chunking TEXT NOT NULL
        size_bytes INTEGER NOT NULL
        mtime_ns, inode INTEGER
        read_at INTEGER NOT NULL
        metadata TEXT
        -- The part of the metadata that the caller gave; it is kept when the bytes change.
        caller_metadata TEXT
        problem TEXT
        chunks, created_at, updated_at INTEGER NOT NULL
        INDEX document_hash (content_hash)
    """),
    # Access tokens of `recallite serve`. Only the SHA-256 of a token is stored; each is confined to a scope, and to
    # further ones that it only reads (JSON).
    table("access_token", """
        id SERIAL
        public_id TEXT NOT NULL UNIQUE
        name TEXT
        hash BLOB NOT NULL UNIQUE
        scope, reads TEXT NOT NULL
        read_only FLAG DEFAULT false
        authority INTEGER NOT NULL DEFAULT 0 CHECK (authority BETWEEN -4 AND 0)
        created_at INTEGER NOT NULL
        expires_at INTEGER
    """),
    # Vectors by the hash of text and context, so that no text is embedded twice. `used` is a counter; the lowest is the
    # least recently used.
    table("embedding_cache", """
        id ID
        content_hash BLOB NOT NULL
        embedder_id INTEGER NOT NULL REFERENCES embedder(id) ON DELETE CASCADE
        parts BLOB NOT NULL
        codes BLOB
        used INTEGER NOT NULL
        UNIQUE (content_hash, embedder_id)
        INDEX embedding_cache_used (used)
    """),
)  # fmt: skip
"""Each after those that its rows refer to."""


def columns_of(name: str, *, without: Collection[str] = ()) -> tuple[str, ...]:
    """The names of the columns of a table, in their order, without some."""
    (columns,) = (table.columns for table in TABLES if table.name == name)
    return tuple(column for column in columns if column not in without)
