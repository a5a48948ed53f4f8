"""Return values of the methods that change, copy, check or evaluate a store."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from recallite.model.records import Plain


class ScopeCount(Plain, frozen=True, kw_only=True):
    """A scope and how many memories are in it."""

    scope: str
    memories: int


class TagCount(Plain, frozen=True, kw_only=True):
    """A tag and how many memories have it."""

    tag: str
    memories: int


class ErasureReceipt(Struct, frozen=True, kw_only=True):
    """Report of what `forget(..., receipt=True)` removed and how it was checked.

    - complete: nothing that was removed is left in the files, except for what `elsewhere` lists
    - erased_at: when the check ended, UTC; path: the store
    - ids: the memories forgotten
    - removed: how many rows fewer each table of the store has; what holds again gets rows of its own, and a table that
      gained more than it lost is not here
    - index_snapshot: whether the index snapshot was deleted
    - searched: how many byte sequences of the removed texts, fields and vectors were searched for; too_short: how many
      values were skipped because they have fewer than 8 bytes
    - files: the files of the store, which were searched, with their size in bytes; what `restore` put aside was too
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
    """Counts of what `forget` removed: records, versions, and rows of services (sessions, snapshots, experience)
    if a whole scope was forgotten; and the receipt, if one was requested. `holds_again` are the ids of memories that
    what was forgotten had superseded, and that hold again.
    """

    records: int
    versions: int = 0
    services: int = 0
    holds_again: tuple[str, ...] = ()
    receipt: ErasureReceipt | None = None

    @property
    def failed(self) -> bool:
        """Whether nothing was forgotten, or some text of it is left."""
        return not (self.records or self.services) or not (self.receipt is None or self.receipt.complete)


class Finding(Plain, frozen=True, kw_only=True):
    """Something that `audit` found.

    - check: the check that found it; id: the memory; text: the start of its text, with secrets redacted
    - reason: what was found; other: the memory it was compared with, other_text: the start of its text
    - verb: what fixes it: "forget", "redact", "expire" (recall no longer shows it, `purge_expired` removes it),
      "supersede" (by `other`), "link" (as "contradicts") or "purge_expired"; None where a person has to decide, and for
      a pinned memory that would have to be removed
    - at: when the store knew of it, of what is superseded; mended: whether this was done
    """

    check: str
    id: str
    text: str
    reason: str
    other: str | None = None
    other_text: str | None = None
    verb: str | None = None
    at: datetime | None = None
    mended: bool = False


class Audit(Plain, frozen=True, kw_only=True):
    """The result of `audit`: the number of memories checked, and the findings.

    `superseded` counts those that others have surely replaced, which lists leave out; `may_hold` those that others
    supersede and that may still hold.
    """

    records: int
    superseded: int = 0
    may_hold: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether something was found and not mended."""
        return not all(entry.mended for entry in self.findings)


class Imported(Plain, frozen=True, kw_only=True):
    """The result of `import_`: memories stored, memories skipped because they exist, and links restored.

    `warnings` are of lines that were not taken as they are, at most 1,000 of them; `warnings_total` counts all.
    """

    records: int
    skipped: int = 0
    links: int = 0
    warnings: tuple[str, ...] = ()
    warnings_total: int = 0


class Remembered(Plain, frozen=True, kw_only=True):
    """The result of a bulk write: memories stored, memories known by their id already, and texts left out as junk."""

    records: int = 0
    known: int = 0
    junk: int = 0

    def __add__(self, other: Remembered) -> Remembered:
        return Remembered(
            records=self.records + other.records, known=self.known + other.known, junk=self.junk + other.junk
        )


class UndonePair(Plain, frozen=True, kw_only=True):
    """Two texts of which a rule took the newer to replace the older, which `restore` undid.

    - old, new: the texts as they were then; old_id, new_id: their memories
    - reason, confidence: why, and how sure the rule was
    - undone_at: when it was undone
    """

    old: str
    new: str
    reason: str
    confidence: float
    undone_at: datetime
    old_id: str
    new_id: str


class Judged(Plain, frozen=True, kw_only=True):
    """Verdicts of a language model on pairs of statements, and the number of pairs that still wait."""

    superseded: int
    contradicting: int
    independent: int
    waiting: int


class FileTrouble(Plain, frozen=True, kw_only=True):
    """A problem with a file, or with a line of it: its path in the folder, the line, and the reason."""

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
    them. `left_out` are those that the files still have, and that were forgotten in the store since the last export or
    import. `problems` are files and memories that were skipped.
    """

    created: int
    updated: int = 0
    unchanged: int = 0
    links: int = 0
    missing: tuple[str, ...] = ()
    forgotten: int = 0
    left_out: tuple[str, ...] = ()
    problems: tuple[FileTrouble, ...] = ()


class SyncedDevice(Plain, frozen=True, kw_only=True):
    """A device of a folder.

    - device, name: its name in the folder, and that of its machine; this: whether it is this one
    - confirmed: whether it has merged all that this device has sent
    - forgettings: the number of things forgotten here, memories or links, that it has not confirmed to have forgotten
    - waiting: the number of its files that are not merged here
    """

    device: str
    name: str
    this: bool
    confirmed: bool
    forgettings: int
    waiting: int


class Synced(Plain, frozen=True, kw_only=True):
    """The result of `transfer.sync`.

    - device: the name of this device in the folder; None before its first run
    - sent: the number of memories, links and supersessions whose changes were sent, forgotten ones too
    - merged: the number of those that others had changed; forgotten: the memories among them that are forgotten here
    - diverged: the ids of memories whose text two devices had changed; the later one is current, and
      `review.audit("diverged")` shows both
    - devices: how far each device is; problems: the files that could not be merged, and why
    """

    device: str | None
    sent: int
    merged: int
    forgotten: int
    diverged: tuple[str, ...]
    devices: tuple[SyncedDevice, ...]
    problems: tuple[str, ...]


class Problem(Plain, frozen=True, kw_only=True):
    """One inconsistency that `verify` found: what, how many, examples, and the remedy."""

    name: str
    count: int
    examples: tuple[str, ...] = ()
    remedy: str = "recallite rebuild"


class Verification(Plain, frozen=True, kw_only=True):
    """The result of `verify`: the records and vectors checked, and the problems."""

    records: int
    vectors: int
    problems: tuple[Problem, ...] = ()

    @property
    def ok(self) -> bool:
        """True if there are no problems."""
        return not self.problems


class Stats(Plain, frozen=True, kw_only=True):
    """The state of a store, its index, embedder and kernels.

    Figures of the whole file, and its path, are None for a scoped handle.

    `superseded` records are among the `records`, and others have surely replaced them. `to_compare` ones were written
    many at a time and are compared in the background (`memory.store.catch_up`). `pending` ones have no vector yet;
    `refused` ones have a text that the embedder does not accept, or does not read. `behind_ms` is how far a standby is
    behind.
    """

    path: str | None
    records: int
    superseded: int
    versions: int
    to_compare: int | None
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
    database: str
    encrypted: bool
    vector_extension: str | None
    behind_ms: float | None
    embedder: str | None
    dimension: int | None
    vector_type: str | None
    kernels: str
    mode: str
    services: dict[str, int] = field(default_factory=dict)
    index: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


# How well recall finds what questions expect.
class Figures(Plain, frozen=True, kw_only=True):
    """Quality of the first k hits, as means over the questions with expected memories.

    - recall: the share of the expected memories that is found
    - hit: 1 if any expected memory is found, else 0
    - hit_at_1: 1 if the first hit is expected, else 0
    - mrr: 1 / the rank of the first expected hit, 0 without one
    - ndcg: normalised discounted cumulative gain with binary relevance
    """

    recall: float
    hit: float
    hit_at_1: float
    mrr: float
    ndcg: float


class ExpectedMemory(Plain, frozen=True, kw_only=True):
    """A memory that a question should find.

    - expected: how the question names it; id, text: the memory
    - rank: its place among the first k hits, from 1; None if it is lost; candidate_rank: its place by score among all
      candidates, where a lost one is a candidate
    - stage, reason: the stage of recall that dropped it and why, as `memory.review.explain` says; "returned" if it
      is found
    - confidence: its confidence, whether found or lost; None if a filter hides it
    """

    expected: str
    id: str
    text: str
    rank: int | None = None
    candidate_rank: int | None = None
    stage: str
    reason: str = ""
    confidence: float | None = None


class NotStored(Plain, frozen=True, kw_only=True):
    """An expected memory that cannot be told, and counts nowhere.

    `reason` says whether no memory or several have the text; `nearest` is the id and `nearest_text` the text of the
    most similar memory.
    """

    question: str
    expected: str
    reason: str
    nearest: str | None = None
    nearest_text: str | None = None


class AnsweredQuestion(Plain, frozen=True, kw_only=True):
    """A question of an evaluation.

    - id: the one given, else its number: the line of the file, or the place in the list from 1
    - expected: the memories to be found; hits: the ids of those that were, best first
    - figures: None for a question without expected memories, or with none that is stored
    - answerable: False if the question says that the store has no answer
    - confidence: the highest of the hits, 0 without one; best_text: the first hit
    """

    id: str
    question: str
    answerable: bool
    expected: tuple[ExpectedMemory, ...] = ()
    hits: tuple[str, ...] = ()
    figures: Figures | None = None
    confidence: float = 0.0
    best_text: str | None = None


class ThresholdCount(Plain, frozen=True, kw_only=True):
    """Effect of a `min_confidence`: right hits that stay, and questions without an answer that still get hits."""

    min_confidence: float
    right: int
    unanswerable: int


class ConfidenceReport(Plain, frozen=True, kw_only=True):
    """The confidence of expected memories that are hits, or that only a minimum drops.

    - right: how many there are; unanswerable: how many questions say that the store has no answer
    - thresholds: what is left of both at some values of `min_confidence`
    - keeps_95: the highest `min_confidence` that keeps at least 95 % of the right hits; None if there are none
    """

    right: int
    unanswerable: int
    thresholds: tuple[ThresholdCount, ...]
    keeps_95: float | None = None


class Comparison(Plain, frozen=True, kw_only=True):
    """Two runs over the same questions, by one of the `Figures`.

    - difference: the mean of the second run minus that of the first; low, high: its 95 % interval by the percentile
      bootstrap over questions (Efron 1979)
    - better, worse: the ids of the questions at which the second run is better and worse; equal: how many others
    - p: the probability of so uneven a split or a more uneven one if both were equally good (two-sided sign test)
    """

    figure: str
    difference: float
    low: float
    high: float
    better: tuple[str, ...]
    worse: tuple[str, ...]
    equal: int
    p: float

    @property
    def clear(self) -> bool:
        """Whether both the sign test (p < 0.05) and the interval (without 0) say that the runs differ."""
        return self.p < 0.05 and not self.low <= 0.0 <= self.high


class Evaluation(Plain, frozen=True, kw_only=True):
    """The result of `memory.review.evaluate`.

    - k: how many hits of a question count; options: the options of recall that were given
    - figures: means over the `counted` questions, which have an expected memory that is stored; None if there are none
    - lost: how many expected memories each stage dropped
    - results: each question, in the order given; not_stored: expected memories that the store does not have
    - against, comparisons: the second run, or the earlier report, and how it compares with this one, if requested

    `msgspec.json.decode(text, type=Evaluation)` reads back what `to_json` gives.
    """

    k: int
    options: dict[str, Any]
    counted: int
    figures: Figures | None
    lost: dict[str, int]
    confidence: ConfidenceReport
    results: tuple[AnsweredQuestion, ...]
    not_stored: tuple[NotStored, ...]
    against: Evaluation | None = None
    comparisons: tuple[Comparison, ...] = ()

    @property
    def missed(self) -> tuple[AnsweredQuestion, ...]:
        """The questions that lost an expected memory."""
        return tuple(result for result in self.results if any(one.rank is None for one in result.expected))
