"""What verbs that change, copy or check a store report."""

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

    - complete: nothing of what was removed stands in the files, but for what `elsewhere` names
    - erased_at: when the check ended, UTC; path: the store
    - ids: of the memories forgotten
    - removed: rows gone, by table of the store
    - index_snapshot: whether the index snapshot was deleted
    - searched: how many byte sequences of the removed texts, fields and vectors were looked for; too_short: how many
      values were not, being shorter than 8 bytes
    - files: those that were searched, from first to last byte, with their size in bytes
    - elsewhere: rows of memories or services that were not forgotten and hold some of the same bytes, as
      {"session_message.content": 2}
    - problems: what could not be erased or shown, and what to do
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
    """What `forget` did: how many records are gone, with their versions, and how many rows of services (sessions,
    snapshots, experience and the like) where a whole scope was forgotten. `receipt` is there where it was asked for.
    """

    records: int
    versions: int = 0
    services: int = 0
    receipt: ErasureReceipt | None = None


class Finding(Plain, frozen=True, kw_only=True):
    """Something that `audit` found.

    - check: the check that found it; id: the memory; text: its text, cut short, secrets blacked out
    - reason: what was found; other: the memory it was compared with
    - verb: what mends it: "forget", "redact", "expire" (no recall shows it, `purge_expired` removes it), "link" (as
      "contradicts") or "purge_expired"; None for a pinned memory that would have to go
    - mended: whether that was done
    """

    check: str
    id: str
    text: str
    reason: str
    other: str | None = None
    verb: str | None = None
    mended: bool = False


class Audit(Plain, frozen=True, kw_only=True):
    """What `audit` found: how many memories were looked at, the findings, and why checks could not be made."""

    records: int
    findings: tuple[Finding, ...] = ()
    skipped: dict[str, str] = field(default_factory=dict)


class Imported(Plain, frozen=True, kw_only=True):
    """Receipt of `import_`: memories stored, memories that were here already, links restored."""

    records: int
    skipped: int = 0
    links: int = 0


class FileTrouble(Plain, frozen=True, kw_only=True):
    """What stands in the way of a file, or of one memory in it: its path in the folder, the line, and the reason."""

    path: str
    line: int | None = None
    reason: str


class Exported(Plain, frozen=True, kw_only=True):
    """Receipt of `export_folder`: memories in the files, files written and removed by path, and how many were right
    already. `conflicts` are files that were left as they are.
    """

    records: int
    written: tuple[str, ...] = ()
    unchanged: int = 0
    removed: tuple[str, ...] = ()
    conflicts: tuple[FileTrouble, ...] = ()


class Restored(Plain, frozen=True, kw_only=True):
    """Receipt of `import_folder`: memories that were stored, changed, and right already, and links made.

    `missing` are the ids of memories that the files held before and hold no longer: still stored, unless `forgotten`
    counts them. `problems` are files and memories that were left out.
    """

    created: int
    updated: int = 0
    unchanged: int = 0
    links: int = 0
    missing: tuple[str, ...] = ()
    forgotten: int = 0
    problems: tuple[FileTrouble, ...] = ()


class Problem(Plain, frozen=True, kw_only=True):
    """One divergence that `verify` found: what, how many, examples, and the remedy."""

    name: str
    count: int
    examples: tuple[str, ...] = ()
    remedy: str = "recollect rebuild"


class Verification(Plain, frozen=True, kw_only=True):
    """What `verify` checked and found; clean when `problems` is empty."""

    records: int
    vectors: int
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """True when nothing diverges."""
        return not self.problems


class Stats(Plain, frozen=True, kw_only=True):
    """The state of a store and of the machinery that serves it; a scoped handle has no figures of the whole file.

    `pending` records wait for a vector; `refused` ones are texts that the embedder does not take.
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
