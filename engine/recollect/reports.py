"""Return values of the methods that change, copy or check a store."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from recollect.records import Plain

__all__ = [
    "Audit",
    "ErasureReceipt",
    "Exported",
    "FileTrouble",
    "Finding",
    "Forgotten",
    "Imported",
    "Problem",
    "Restored",
    "Stats",
    "Verification",
]


class ErasureReceipt(Struct, frozen=True, kw_only=True):
    """What `forget(..., receipt=True)` removed and how it was checked.

    - complete: nothing that was removed is left in the files, except for what `elsewhere` lists
    - erased_at: when the check ended, UTC; path: the store
    - ids: the memories forgotten
    - removed: the number of rows removed from each table of the store
    - index_snapshot: whether the index snapshot was deleted
    - searched: how many byte sequences of the removed texts, fields and vectors were searched for; too_short: how many
      values were skipped because they have fewer than 8 bytes
    - files: the files searched, with their size in bytes
    - elsewhere: rows that were not forgotten and contain some of the same bytes, e.g. {"session_message.content": 2}
    - problems: what could not be erased or verified, and what to do
    """

    complete: bool
    erased_at: datetime
    path: str
    ids: tuple[str, ...]
    removed: dict[str, int]
    index_snapshot: bool
    searched: int
    too_short: int
    files: dict[str, int]
    elsewhere: dict[str, int]
    problems: tuple[str, ...]


class Forgotten(Plain, frozen=True, kw_only=True):
    """What `forget` removed: records, their versions, and rows of services (sessions, snapshots, experience and others)
    if a whole scope was forgotten; and the receipt, if one was requested.
    """

    records: int
    versions: int = 0
    services: int = 0
    receipt: ErasureReceipt | None = None


class Finding(Plain, frozen=True, kw_only=True):
    """Something that `audit` found.

    - check: the check that found it; id: the memory; text: the start of its text, with secrets redacted
    - reason: what was found; other: the memory it was compared with
    - verb: what fixes it: "forget", "redact", "expire" (recall no longer shows it, `purge_expired` removes it), "link"
      (as "contradicts") or "purge_expired"; None for a pinned memory that would have to be removed
    - mended: whether this was done
    """

    check: str
    id: str
    text: str
    reason: str
    other: str | None = None
    verb: str | None = None
    mended: bool = False


class Audit(Plain, frozen=True, kw_only=True):
    """The result of `audit`: the number of memories checked, the findings, and the checks skipped with the reason."""

    records: int
    findings: tuple[Finding, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)


class Imported(Plain, frozen=True, kw_only=True):
    """The result of `import_`: memories stored, memories skipped because they exist, and links restored."""

    records: int
    skipped: int = 0
    links: int = 0


class FileTrouble(Plain, frozen=True, kw_only=True):
    """A problem with a file, or with one memory in it: its path in the folder, the line, and the reason."""

    path: str
    line: int | None = None
    reason: str


class Exported(Plain, frozen=True, kw_only=True):
    """The result of `export_folder`: memories in the files, paths of the files written and removed, and how many files
    did not change. `conflicts` are files that were not overwritten.
    """

    records: int
    written: tuple[str, ...] = ()
    unchanged: int = 0
    removed: tuple[str, ...] = ()
    conflicts: tuple[FileTrouble, ...] = ()


class Restored(Plain, frozen=True, kw_only=True):
    """The result of `import_folder`: memories stored, updated and unchanged, and links created.

    `missing` are the ids of memories that are no longer in the files; they are still stored, unless `forgotten` counts
    them. `problems` are files and memories that were skipped.
    """

    created: int
    updated: int = 0
    unchanged: int = 0
    links: int = 0
    missing: tuple[str, ...] = ()
    forgotten: int = 0
    problems: tuple[FileTrouble, ...] = ()


class Problem(Plain, frozen=True, kw_only=True):
    """One inconsistency that `verify` found: what, how many, examples, and the remedy."""

    name: str
    count: int
    examples: tuple[str, ...] = ()
    remedy: str = "recollect rebuild"


class Verification(Plain, frozen=True, kw_only=True):
    """What `verify` checked and found."""

    records: int
    vectors: int
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """True if there are no problems."""
        return not self.problems


class Stats(Plain, frozen=True, kw_only=True):
    """The state of a store, its index, embedder and kernels; figures of the whole file are None for a scoped handle.

    `pending` records have no vector yet; `refused` ones have a text that the embedder does not accept.
    """

    path: str
    records: int
    versions: int
    pending: int
    refused: int
    vectors: int
    token_codes: int
    token_code_bytes: int
    links: int
    sources: int
    terms: int | None
    kinds: dict[str, int]
    bytes_on_disk: int | None
    schema_version: int
    sequence: int | None
    sqlite_version: str
    encrypted: bool
    sqlite_vec: str | None
    embedder: str | None
    dimension: int | None
    kernels: str
    mode: str
    services: dict[str, int] = field(default_factory=dict)
    index: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
