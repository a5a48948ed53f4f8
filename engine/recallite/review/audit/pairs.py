"""Pairs of memories: duplicates, contradictions, what supersedes what, and what waits to be judged.

Pairs that share a key of `text.statements` are judged by the rules that writing goes by. Writing with the default
policy has marked most of them already: the rest was written under another one, or is too unsure to mark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from recallite.engine import Engine
from recallite.model.authority import rank_of
from recallite.model.checks import now_us
from recallite.model.records import Link, Record
from recallite.model.reports import Finding
from recallite.model.settings import WritePolicy
from recallite.remember.relations import Claim, on_one_subject, which_stands
from recallite.review.audit.findings import MADE_ELSEWHERE, batches, finding_of_pair
from recallite.store.store import Progress
from recallite.store.transaction import Reader
from recallite.store.values import Sought
from recallite.text.statements import judge, several_valued, statement_of
from recallite.text.statements.keys import record_keys

# The newest records that share a key with one: "I live in" may begin thousands.
_MOST = 32
# With such a link, a person has said how they stand: both hold.
_BOTH_HOLD = ("elaborates", "supports", "sequential", "causal")
_CHOICE = "one supersedes the other, both hold (link them as elaborates), or one is wrong (forget)"


def duplicates(reader: Reader, ids: Sequence[int]) -> Iterator[Finding]:
    """Find memories with the same text in one scope and kind: all except the one that stays."""
    same: defaultdict[tuple[str, str, bytes], list[int]] = defaultdict(list)
    for row in reader.records.current(ids, now_us()):
        if row.kind not in MADE_ELSEWHERE:
            same[row.scope, row.kind, row.content_hash].append(row.record_id)
    for group in same.values():
        if len(group) > 1:
            remaining, *others = sorted(_records(reader, group).values(), key=_spared)
            for spare in others:
                yield _spare("duplicates", spare, remaining, "has the same text as an earlier memory")


def compared(
    engine: Engine, reader: Reader, ids: Sequence[int], wanted: Sequence[str], on_progress: Progress | None
) -> Iterator[Finding]:
    """Find near-duplicates and contradictions, by the links that writing made and by the rules."""
    run = _Comparison(engine, reader, ids, wanted)
    if "contradictions" in wanted:
        yield from run.linked()
    done = 0
    for batch in batches(ids):
        yield from run.judged(batch)
        done += len(batch)
        if on_progress is not None:
            on_progress(done, len(ids))


def superseded(reader: Reader, ids: Sequence[int]) -> Iterator[Finding]:
    """Find superseded memories, each with the one that stands in its place."""
    for batch in batches(ids):
        for old in _records(reader, batch).values():
            new_ids = reader.records.find_ids(old.superseded_by, "/")
            for new_id, new in _records(reader, new_ids.values()).items():
                links = reader.links.of(new_id, incoming=False, types=["supersedes"])
                (link,) = (link for link in links if link.target == old.id)
                detail = "" if link.reason is None else f", {link.reason}"
                until = "" if old.held_until is None else f" since {old.held_until:%Y-%m-%d}"
                reason = f"is superseded{until} ({link.strength:.2f}{detail}); restore undoes it"
                yield finding_of_pair("superseded", old, new, reason, None)


def unjudged(reader: Reader, ids: Sequence[int]) -> Iterator[Finding]:
    """Find pairs for which the rules leave open whether one supersedes the other."""
    within = {*ids}
    for batch in batches(reader.judgements.waiting(reader.judgements.count())):
        pairs = [pair for pair in batch if within.issuperset((pair.old_id, pair.new_id))]
        records = _records(reader, {row_id for pair in pairs for row_id in (pair.old_id, pair.new_id)})
        for pair in pairs:
            reason = f"may be superseded ({pair.confidence:.2f}, {pair.reason}): a language model can judge it"
            yield finding_of_pair("unjudged", records[pair.old_id], records[pair.new_id], reason, None)


class _Comparison:
    """The pairs of one audit, each once."""

    def __init__(self, engine: Engine, reader: Reader, ids: Sequence[int], wanted: Sequence[str]) -> None:
        policy, usual = engine.settings.write_policy, WritePolicy()
        self._reader, self._ids, self._wanted = reader, {*ids}, wanted
        self._several = several_valued(policy.several_values)
        self._supersedes = policy.supersede_confidence or usual.supersede_confidence or 1.0
        self._contradicts = policy.contradict_confidence or usual.contradict_confidence or 1.0
        self._embedder = reader.vectors.active_embedder()
        self._seen: set[tuple[int, int]] = set()
        # Near-duplicates so far: no other is one of them.
        self._gone: set[str] = set()

    def linked(self) -> Iterator[Finding]:
        """Find contradictions that were linked when they were written."""
        linked = [pair for pair in sorted(self._reader.links.contradicting()) if self._ids.issuperset(pair)]
        self._seen.update(linked)
        for pairs in batches(linked):
            records = _records(self._reader, {row_id for pair in pairs for row_id in pair})
            for pair in pairs:
                old, new = sorted((records[row_id] for row_id in pair), key=_begins)
                if not old.superseded_by and not new.superseded_by and not self._both_hold(pair):
                    reason = f"and a later one contradict each other{self._reason(pair)}: {_CHOICE}"
                    yield finding_of_pair("contradictions", old, new, reason, None)

    def judged(self, ids: Sequence[int]) -> Iterator[Finding]:
        """Find what the rules say of these records and those that share a key with them."""
        records = _records(self._reader, ids)
        sought = [
            Sought(record_keys(record.text, record.context).sought, record.scope, record.kind)
            for record in records.values()
        ]
        shared = self._reader.statements.candidates(sought, now_us(), _MOST)
        near = (
            (record_id, other.record_id)
            for record_id, others in zip(records, shared, strict=True)
            for other in others
            if other.record_id != record_id and other.record_id in self._ids
        )
        pairs = [pair for pair in dict.fromkeys((min(pair), max(pair)) for pair in near) if pair not in self._seen]
        self._seen.update(pairs)
        row_ids = {row_id for pair in pairs for row_id in pair}
        records |= _records(self._reader, row_ids - records.keys())
        vectors = self._vectors(row_ids)
        findings = (self._of_pair(pair, records, vectors) for pair in pairs)
        yield from (finding for finding in findings if finding is not None)

    def _vectors(self, ids: Collection[int]) -> dict[int, NDArray[np.float32]]:
        if self._embedder is None:
            return {}
        rows = self._reader.vectors.of_current(sorted(ids), self._embedder)
        return {record_id: parts[0] for record_id, _, _, _, parts in rows if len(parts) == 1}

    def _of_pair(
        self, pair: tuple[int, int], records: dict[int, Record], vectors: dict[int, NDArray[np.float32]]
    ) -> Finding | None:
        again = self._reader.occurrences.of(pair)
        claims = {row_id: Claim.of_record(records[row_id], again.get(row_id, ())) for row_id in pair}
        old_id, new_id = sorted(pair, key=lambda row_id: (claims[row_id].told_at[-1], _begins(records[row_id])))
        old, new = records[old_id], records[new_id]
        one, two = vectors.get(old_id), vectors.get(new_id)
        verdict = judge(
            statement_of(new.text, new.context),
            statement_of(old.text, old.context),
            cosine=None if one is None or two is None else float(one @ two),
            later=True,
            several=self._several,
        )
        if verdict.outcome == "same":
            return self._same(old, new)
        if "contradictions" not in self._wanted or verdict.outcome == "independent":
            return None
        if not on_one_subject((old.topic, new.topic), old.metadata, new.metadata):
            return None
        detail = f"{verdict.confidence:.2f}, {verdict.reason}"
        sure = verdict.outcome == "supersedes" and verdict.confidence >= self._supersedes
        if sure and which_stands(claims[old_id], claims[new_id]) is claims[new_id]:
            reason = f"is out of date by a later one ({detail})"
            return finding_of_pair("contradictions", old, new, reason, "supersede")
        if verdict.confidence < self._contradicts or self._both_hold(pair):
            return None
        reason = f"and a later one may contradict each other ({detail})"
        return finding_of_pair("contradictions", old, new, reason, "link")

    def _same(self, old: Record, new: Record) -> Finding | None:
        """Find a near-duplicate; the same text is a duplicate instead, and a turn of a transcript is neither."""
        apart = (old.text, old.context) == (new.text, new.context) or None not in (old.position, new.position)
        if "near-duplicates" not in self._wanted or apart or self._gone & {old.id, new.id}:
            return None
        remaining, spare = sorted((old, new), key=_spared)
        self._gone.add(spare.id)
        return _spare("near-duplicates", spare, remaining, "says what another memory says")

    def _both_hold(self, pair: tuple[int, int]) -> bool:
        return bool(self._links(pair, _BOTH_HOLD))

    def _reason(self, pair: tuple[int, int]) -> str:
        """Return the strength and reason of a contradiction, in brackets."""
        link = next(iter(self._links(pair, ("contradicts",))), None)
        return "" if link is None else f" ({link.strength:.2f}{f', {link.reason}' if link.reason else ''})"

    def _links(self, pair: tuple[int, int], types: Sequence[str]) -> list[Link]:
        ends = {record.id for record in _records(self._reader, pair).values()}
        return [
            link
            for incoming in (False, True)
            for link in self._reader.links.of(pair[0], incoming=incoming, types=types)
            if {link.source, link.target} == ends
        ]


def _records(reader: Reader, ids: Collection[int]) -> dict[int, Record]:
    return reader.records.by_row_ids(sorted(ids))


def _begins(record: Record) -> tuple[datetime, datetime, str]:
    """Order memories by the time from which they say what they do."""
    stated = None if record.valid_resolved else record.valid_from
    return stated or record.created_at, record.created_at, record.id


def _spared(record: Record) -> tuple[bool, int, bool, datetime, str]:
    """Order equal memories by which one stays: pinned, of the highest authority, that supersedes others, the first."""
    return not record.pinned, -rank_of(record.authority), not record.supersedes, record.created_at, record.id


def _spare(check: str, spare: Record, remaining: Record, reason: str) -> Finding:
    # Forgetting it would make what it supersedes current again; a lower authority repeats nothing of a higher one.
    stays = spare.pinned or spare.supersedes or spare.authority != remaining.authority
    verb = None if stays else "forget"
    return finding_of_pair(check, spare, remaining, reason, verb)
