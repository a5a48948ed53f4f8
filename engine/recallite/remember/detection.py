"""Detection: which statements of its scope and kind a new one repeats, supersedes or contradicts.

Candidates share a key of `text.statements` with the text. They are read inside the write transaction, without the
in-memory index: a record that another process has just written is among them. Rows of one batch see those before them.
`TextDetection` finds only records with the same text. `Effects` collects what is found while records are written, and
stores it once they have row ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, field

from recallite.model.checks import now_us
from recallite.model.settings import WritePolicy
from recallite.remember.relations import (
    KINDS_THAT_LAST,
    Claim,
    Known,
    adds_nothing,
    of_one_subject,
    of_two_days,
    outranks,
    said_after,
    which_stands,
    without_future,
    written_at,
)
from recallite.store.columns import Row, RowColumns, stated_at
from recallite.store.sql.derived import Sought, SoughtText, StatementCandidate
from recallite.store.sql.relations import Judgement, LinkRow, Supersession
from recallite.store.sql.repository import NEVER
from recallite.store.transaction import Reader, Writer
from recallite.system.turnstile import paced
from recallite.text.standing import standing_of_each
from recallite.text.statements import (
    Pair,
    Verdict,
    cosine_of_one_topic,
    judge,
    judge_all,
    may_replace,
    outline_of,
    several_valued,
    statement_of,
)
from recallite.text.statements.keys import RecordKeys, record_keys
from recallite.text.words import KEY_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Records that a row is compared with: parsing one takes 60 us. "I live in" may begin thousands, of
# which a few of the newest are looked at.
_MOST = 6
_MOST_OF_A_KEY = 32
# How many rows have their candidates read by one statement.
_AT_ONCE = 256


_PairKey: TypeAlias = tuple[str, str, str, str, bool, frozenset[str]]
Verdicts: TypeAlias = dict[_PairKey, Verdict]
"""Verdicts on pairs, which depend on nothing but the pair and the policy."""
# The index of the last row that has a key, and those before it: the garbage collector does not traverse tuples of
# numbers, as it would a list for each key.
_Holders: TypeAlias = "tuple[int, _Holders] | None"


ONE_TOPIC = Verdict("supersedes", 0.85, "one topic")
"""The verdict on two statements of one topic, of which the policy keeps the latest."""


class Relation(NamedTuple):
    """The relation of a row to another record."""

    other: Known
    verdict: Verdict
    cosine: float | None


class Detected(NamedTuple):
    """The effects of a row on other records, by the thresholds of the policy.

    If it repeats `same`, that record has the effects. `successors` were told later than the row, which was written
    late: they supersede it. `undecided` are the relations that a language model may judge better than the rules.
    """

    same: Relation | None = None
    superseded: Sequence[Relation] = ()
    successors: Sequence[Relation] = ()
    contradicted: Sequence[Relation] = ()
    undecided: Sequence[Relation] = ()


NOTHING = Detected()


class _Compared(Struct, gc=False):
    """A row, the records that it was compared with, the indices of rows among them, and its relations to some."""

    row: Row
    others: Sequence[Known]
    indices: Sequence[int]
    relations: tuple[Relation, ...] = ()
    # The further times at which the texts of the row and of others were said before it, by public id.
    times: dict[str, set[int]] = field(default_factory=dict)
    told_at: tuple[int, ...] = ()


class Detection:
    """Compares the rows of a batch, in order, with the stored records and the rows before them.

    A block of rows is judged at once, as if each of its rows were written and superseded nothing; a row that this does
    not hold for is judged again.
    """

    def __init__(
        self,
        writer: Reader,
        rows: Sequence[Row],
        policy: WritePolicy,
        verdicts: Verdicts | None = None,
    ) -> None:
        """`verdicts` are kept for others that judge the same."""
        self._writer, self._rows, self._policy = writer, rows, policy
        self._verdicts: Verdicts = {} if verdicts is None else verdicts
        self.now, self._compares = now_us(), policy.compares
        self._several = several_valued(policy.several_values)
        # The indices of the rows read, by scope, kind and authority, then by key; and of the rows written.
        self._by_key: dict[tuple[str, str, int], dict[int, _Holders]] = {}
        self._authorities: set[int] = set()
        self._written: set[int] = set()
        # The rows of the block that was read last which may change others.
        self._block: dict[int, Row] = {}
        # Records that this batch has superseded, by the keys of their texts, their ids, and the ids of records to which
        # it has given another text.
        self._formers: dict[bytes, list[Known]] = {}
        self._superseded: set[str] = set()
        self._changed: set[str] = set()
        # The times at which rows of this batch said records again, and the ids of the records that were said again
        # since rows were judged ahead.
        self._again: dict[str, set[int]] = {}
        self._told_again: set[str] = set()
        # What was found for rows to come, and the index up to which rows were read.
        self._ahead: dict[int, _Compared] = {}
        self._read_to = 0
        # What the present row was compared with.
        self._present: _Compared | None = None

    def compared(self, i: int) -> Detected:
        """The effects of a row on the records before it."""
        if i >= self._read_to:
            self._read(i)
        row = self._block.get(i)
        if row is None:
            return NOTHING
        effects: dict[str, list[Relation]] = {}
        same: Relation | None = None
        for relation in self._relations(i, row):
            other = relation.other
            if relation.verdict.outcome == "same":
                # A record with a caller's id repeats no other.
                counted = same is None and self._policy.duplicates == "count" and not row.named
                if counted and adds_nothing(row, other) and of_one_subject(row, other):
                    same = relation
            elif of_one_subject(row, other):
                for name in self._effects(row, relation):
                    effects.setdefault(name, []).append(relation)
        if same is None and not effects:
            return NOTHING
        if same is not None:
            # If something else was said between a statement and its repetition, the repetition is the last word.
            between = range(self.told_at(same.other) + 1, self.told_at(row) + 1)
            said_again = self._policy.supersede_confidence is not None and any(
                self.told_at(relation.other) in between and outranks(relation.other.authority, row.authority)
                for relation in (*effects.get("superseded", ()), *effects.get("contradicted", ()))
            )
            if same.other.pinned or not said_again:
                return Detected(same, effects.get("superseded", ()))
            again = same.verdict._replace(outcome="supersedes", reason="said again after another value")
            effects.setdefault("superseded", []).append(same._replace(verdict=again))
        for relations in effects.values():
            relations.sort(key=lambda relation: -relation.verdict.confidence)
        return Detected(
            None,
            effects.get("superseded", ()),
            # Of several that were told later, the next in time stands in its place.
            sorted(effects.get("successors", ()), key=lambda relation: self.told_at(relation.other))[:1],
            effects.get("contradicted", ()),
            effects.get("undecided", ()),
        )

    def wrote(self, i: int) -> None:
        """Compare the rows after this one with it."""
        if i >= self._read_to:
            self._read(i)
        self._written.add(i)

    def basis(self, i: int) -> Iterator[int]:
        """Yield what the row that was compared last was by: its keys, the stored records, the keys of all texts."""
        if (row := self._block.get(i)) is not None:
            yield from self._keys(row).sought
            for other in (row, *(self._present.others if self._present else ())):
                yield text_number(other)
                if isinstance(other, StatementCandidate):
                    yield other.row_id

    def _is_compared(self, i: int, row: Row) -> bool:
        """Whether a row may change others. A turn of a transcript is evidence; recall puts what it says in order."""
        return self._compares and row.kind not in KINDS_THAT_LAST and row.position is None

    def claim(self, known: Known) -> Claim:
        """Return the claim of a record, with the times at which its text was said before the present row."""
        return Claim.of(known, self._told(known, self._present))

    def told_at(self, known: Known) -> int:
        """Return the time at which a record was said last, in microseconds."""
        return self._told(known, self._present)[-1]

    def _told(self, known: Known, compared: _Compared | None, *, with_earlier: bool = True) -> tuple[int, ...]:
        """Return all times at which a record was said, ascending; for one of a clock ahead when it was written."""
        told_at = stated_at(known.created_at, known.recorded_from, known.valid_from, resolved=known.valid_resolved)
        further: Sequence[int]
        if isinstance(known, StatementCandidate):
            further = known.repeated_at
        else:
            further = [moment for moment, _ in known.repeated] if known.repeated else ()
        again = self._again.get(known.public_id, ())
        earlier = compared.times.get(known.public_id, ()) if compared is not None and with_earlier else ()
        times = {told_at, *further, *again, *earlier}
        if compared is not None and max(times) > self.now:
            times = without_future(times, self.now, self._written_at(compared) - (known is not compared.row))
        return tuple(sorted(times))

    def _written_at(self, compared: _Compared) -> int:
        """Return when a row was written; if its clock was ahead, before what was written since, as the row ids tell."""
        row = compared.row
        if row.updated_at <= self.now:
            return row.updated_at
        row_id = self._writer.records.find_ids([row.public_id], "/").get(row.public_id, NEVER)
        stored = [other.row_id for other in compared.others if isinstance(other, StatementCandidate)]
        return written_at(self._writer, row_id, row.updated_at, self.now, stored)

    def said_again(self, known: Known, row: Row) -> None:
        """Compare rows with a record as one that was said again whenever a row was."""
        self._again.setdefault(known.public_id, set()).update(self._told(row, self._present))
        self._told_again.add(known.public_id)

    def superseded(self, known: Known) -> None:
        """Compare no row with this record any more."""
        self._superseded.add(known.public_id)
        self._formers.setdefault(known.content_hash[:KEY_BYTES], []).append(known)

    def changed(self, public_id: str) -> None:
        """Compare rows with what the store has of this record now, not with its row of this batch."""
        self._changed.add(public_id)
        self.read_again()

    def read_again(self) -> None:
        """Judge again what was judged ahead: the store has changed."""
        self._ahead.clear()

    def around(self, row: Row, successor_id: int) -> tuple[Known, list[Known]]:
        """Return the first record of a chain that supersedes a row written late, and what the row supersedes.

        `successor_id` is the row id of one of the chain, which does.
        """
        chain = self._writer.statements.of_ids(self._writer.supersessions.chain(successor_id))
        later = [other for other in chain.values() if self._replaces(other, row)]
        first = min(later, key=self.told_at, default=chain[successor_id])
        before = [link.old_id for link in self._writer.supersessions.of_new([first.row_id])]
        formers = self._writer.statements.of_ids(before).values()
        return first, [former for former in formers if self._replaces(row, former)]

    def _replaces(self, new: Known, old: Known) -> bool:
        """Whether the rules are sure that one record stands in the place of another."""
        claims = self.claim(new), self.claim(old)
        if which_stands(*claims) is not claims[0]:
            return False
        statements = statement_of(new.text, new.context), statement_of(old.text, old.context)
        verdict = judge(*statements, later=True, several=self._several)
        return verdict.outcome == "supersedes" and self._is_sure(verdict)

    def _is_sure(self, verdict: Verdict) -> bool:
        least = self._policy.supersede_confidence
        return least is not None and verdict.confidence >= least

    def _relations(self, i: int, row: Row) -> Sequence[Relation]:
        """The relations of a row to the records before it, without the records that hold beside it."""
        compared = self._ahead.pop(i, None)
        gone = self._superseded | self._told_again if self._told_again else self._superseded
        # The rows that it was compared with must have been written, and none superseded or said again since.
        others = [other.public_id for other in compared.others] if gone and compared is not None else ()
        if compared is None or not self._written.issuperset(compared.indices) or not gone.isdisjoint(others):
            (stored,) = self._stored([row], 2 * _MOST if self._superseded else _MOST)
            compared = self._candidates(i, row, stored, i)
            self._judge([compared])
        self._present = compared
        return compared.relations

    def _read(self, i: int) -> None:
        """Read and judge the rows of a block, which begins with this one."""
        begin, self._read_to = self._read_to, min(i + _AT_ONCE, len(self._rows))
        self._block, sought = {}, {}
        for earlier in range(begin, self._read_to):
            row = self._rows[earlier]
            if self._is_compared(earlier, row):
                self._block[earlier] = row
                if earlier >= i:
                    sought[earlier] = row
        if len(sought) > 1:  # all at once, where keys ask for each
            standing_of_each([("", row.text, None) for row in sought.values()])
        stored = dict(zip(sought, self._stored([*sought.values()], _MOST), strict=True))
        self._ahead, self._told_again = {}, set()
        for earlier, row in paced(self._block.items()):
            if earlier in stored:
                self._ahead[earlier] = self._candidates(earlier, row, stored[earlier], i)
            self._authorities.add(row.authority)
            by_key = self._by_key.setdefault((row.scope, row.kind, row.authority), {})
            for key in self._keys(row).stored:
                by_key[key] = earlier, by_key.get(key)
        self._judge([*self._ahead.values()])

    def _candidates(self, i: int, row: Row, stored: Sequence[StatementCandidate], done: int) -> _Compared:
        """The records of each authority that share most keys, where the first keys count most; of equals the newest.

        Earlier rows of the batch count as written from `done` on.
        """
        known, gone = {row.public_id}, self._superseded
        ranked: list[tuple[int, int, Known]] = []
        for authority in self._authorities:
            shared = self._shared(i, row, authority, done)
            for weight, earlier in sorted(zip(shared.values(), shared, strict=True), reverse=True)[: 2 * _MOST]:
                other = self._rows[earlier]
                if other.public_id not in gone and other.public_id not in self._changed:
                    ranked.append((weight, earlier, other))
                    known.add(other.public_id)
        of_batch = len(ranked)
        for rank, found in enumerate(stored, 1):
            if found.position is None and found.public_id not in known and found.public_id not in gone:
                ranked.append((found.shared, -rank, found))
        if of_batch:
            ranked.sort(key=lambda candidate: candidate[:2], reverse=True)
        others: list[Known] = []
        indices: list[int] = []
        counts: dict[int, int] = {}
        for _, earlier, candidate in ranked:
            counts[candidate.authority] = counts.get(candidate.authority, 0) + 1
            if counts[candidate.authority] <= _MOST:
                others.append(candidate)
                if earlier >= 0:
                    indices.append(earlier)
        return _Compared(row, others, indices)

    def _shared(self, i: int, row: Row, authority: int, done: int) -> dict[int, int]:
        """The weight of the keys that a row shares with each of the rows before it that have this authority."""
        written, keys = self._written, self._keys(row).sought
        shared: dict[int, int] = {}
        by_key = self._by_key.get((row.scope, row.kind, authority), {})
        for weight, key in zip(range(len(keys), 0, -1), keys, strict=True):
            holders, left = by_key.get(key), _MOST_OF_A_KEY
            while holders is not None and left:
                earlier, holders = holders
                if (
                    earlier < i
                    and (earlier >= done or earlier in written)
                    and self._rows[earlier].public_id not in self._superseded
                ):
                    shared[earlier] = shared.get(earlier, 0) + weight
                    left -= 1
        return shared

    def _judge(self, rows: Sequence[_Compared]) -> None:
        """Find the relations of rows to their candidates, of all at once.

        Of two texts the one that was told last is the newer. Of one moment neither is later: at most they contradict
        each other. What was said before another and again after it is judged both ways: if that replaced it, it now
        replaces that.
        """
        near: list[tuple[_Compared, Known, tuple[bool, bool]]] = []
        for compared in paced(rows):
            if not compared.others:
                continue
            outline = outline_of(compared.row.text, compared.row.context)
            outlines = [
                (isinstance(other, StatementCandidate) and other.outline) or outline_of(other.text, other.context)
                for other in compared.others
            ]
            for other, ways in zip(compared.others, may_replace(outline, outlines), strict=True):
                if any(ways):
                    near.append((compared, other, ways))
        if not near:
            return
        self._find_said_before(near)
        judged: list[tuple[_Compared, Known, _PairKey]] = []
        unknown: dict[_PairKey, Pair] = {}
        for compared, other, ways in paced(near):
            told_at = compared.told_at = compared.told_at or self._told(compared.row, compared)
            other_told_at = self._told(other, compared)
            is_newer, apart = told_at[-1] >= other_told_at[-1], told_at[-1] != other_told_at[-1]
            later, earlier = (told_at, other_told_at) if is_newer else (other_told_at, told_at)
            both_ways = apart and later[0] <= earlier[-1]
            mine, his = statement_of(compared.row.text, compared.row.context), statement_of(other.text, other.context)
            for row_is_new in (is_newer, not is_newer)[: 1 + both_ways]:
                if ways[not row_is_new]:
                    new, old = (mine, his) if row_is_new else (his, mine)
                    key = new.text, new.speaker, old.text, old.speaker, apart, self._several
                    judged.append((compared, other, key))
                    if key not in self._verdicts:
                        unknown[key] = Pair(new, old, apart)
        if unknown:
            self._verdicts.update(zip(unknown, judge_all(paced(unknown.values()), self._several), strict=True))
        found: dict[tuple[str, str], tuple[_Compared, Known, Verdict]] = {}
        for compared, other, key in judged:
            ends, verdict = (compared.row.public_id, other.public_id), self._verdicts[key]
            before = found.get(ends)
            replaces = verdict.outcome == "supersedes"
            if before is None or (replaces and before[2].outcome not in ("supersedes", "same")):
                found[ends] = compared, other, verdict
        related: list[tuple[_Compared, Known, Verdict, float | None]] = []
        for compared, other, verdict in found.values():
            least = None
            if verdict.outcome == "independent":
                # The latest of a topic is wanted, or both hold.
                appends = self._policy.merge_strategy == "append"
                least = None if appends else self._cosine_of_topic(compared, other)
                if least is None:
                    continue
            related.append((compared, other, verdict, least))
        cosines = self._cosines([(compared.row, other) for compared, other, *_ in related]) if related else ()
        for (compared, other, verdict, least), cosine in zip(related, cosines, strict=True):
            if least is None:
                compared.relations += (Relation(other, verdict, cosine),)
            elif cosine is not None and cosine >= least:
                compared.relations += (Relation(other, ONE_TOPIC, cosine),)

    def _cosine_of_topic(self, compared: _Compared, other: Known) -> float | None:
        """The least cosine at which two that hold beside each other are of one topic."""
        old, new = sorted((compared.row, other), key=lambda known: self._told(known, compared))
        return cosine_of_one_topic(
            statement_of(new.text, new.context), statement_of(old.text, old.context), self._several
        )

    def _find_said_before(self, near: Sequence[tuple[_Compared, Known, object]]) -> None:
        """Add the times at which records before each row had the same text, superseded ones among them."""
        keys: dict[str, tuple[_Compared, list[bytes]]] = {}
        sought: set[SoughtText] = set()
        stored: set[int] = set()
        for compared, *_ in paced(near):
            row = compared.row
            if row.public_id not in keys or keys[row.public_id][0] is not compared:
                its_keys: list[bytes] = []
                keys[row.public_id] = compared, its_keys
                for known in (row, *compared.others):
                    its_keys.append(known.content_hash[:KEY_BYTES])
                    sought.add(SoughtText(its_keys[-1], row.scope, row.kind))
                    if isinstance(known, StatementCandidate):
                        stored.add(known.row_id)
        before: dict[bytes, list[Known]] = {}
        for former in self._writer.statements.superseded_of_text([*sought], stored):
            before.setdefault(former.content_hash[:KEY_BYTES], []).append(former)
        for compared, its_keys in keys.values():
            alike = len({*its_keys}) < len(its_keys)
            if not alike and before.keys().isdisjoint(its_keys) and self._formers.keys().isdisjoint(its_keys):
                continue
            for key, known in zip(its_keys, (compared.row, *compared.others), strict=True):
                others = (other for other, of in zip(compared.others, its_keys[1:], strict=True) if of == key)
                for other in (*others, *before.get(key, ()), *self._formers.get(key, ())):
                    # One statement of one subject by one authority.
                    same = (known.context, known.authority, known.topic, known.metadata) == (
                        other.context, other.authority, other.topic, other.metadata,
                    )  # fmt: skip
                    if same and known.public_id != other.public_id:
                        compared.times.setdefault(known.public_id, set()).update(
                            self._told(other, compared, with_earlier=False)
                        )

    def _cosines(self, pairs: Sequence[tuple[Row, Known]]) -> list[float | None]:
        """The cosine of each pair where both texts were embedded in one part."""
        ids = {other.row_id for _, other in pairs if isinstance(other, StatementCandidate)}
        stored: dict[int, NDArray[np.float32]] = {}
        embedder = self._writer.vectors.active_embedder() if ids else None
        if embedder is not None:
            read = self._writer.vectors.of_current(sorted(ids), embedder)
            stored = {row_id: parts[0] for row_id, *_, parts in read if len(parts) == 1}

        def vector(known: Known) -> NDArray[np.float32] | None:
            if isinstance(known, StatementCandidate):
                return stored.get(known.row_id)
            return np.frombuffer(known.vectors[0], dtype="<f4") if len(known.vectors) == 1 else None

        vectors = [(vector(row), vector(other)) for row, other in pairs]
        return [None if one is None or two is None else float(one @ two) for one, two in vectors]

    def _stored(self, rows: Sequence[Row], most: int) -> list[list[StatementCandidate]]:
        """The candidates that the store holds of each row."""
        sought = [Sought(self._keys(row).sought, row.scope, row.kind) for row in paced(rows)]
        return self._writer.statements.candidates(sought, self.now, most)

    def _keys(self, row: Row) -> RecordKeys:
        """The keys by which a row finds others, in descending weight, and by which it is found."""
        return record_keys(row.text, row.context)

    def _effects(self, row: Row, relation: Relation) -> Sequence[str]:
        """The fields of `Detected` that a relation belongs to."""
        other, verdict, _ = relation
        if verdict.outcome == "contradicts" and of_two_days(row, other):
            return ()
        policy = self._policy
        claims = self.claim(row), self.claim(other)
        stands = which_stands(*claims)
        if stands is not None and verdict.outcome == "supersedes" and self._is_sure(verdict):
            return ("superseded" if stands is claims[0] else "successors",)
        effects = ["undecided"] if stands is not None and policy.judge else []
        if policy.contradict_confidence is not None and verdict.confidence >= policy.contradict_confidence:
            effects.append("contradicted")
        return effects


def holds_instead_from(new: Known, old: Known, now: int, again: int = 0) -> int:
    """The time from which one record holds instead of another; `again`: said again then.

    A future date in its text is when the change happens. If the old text names a date too, a date replaces a date: "The
    exam is on 5 May", not on the 4th. What is said again holds from then on. What a clock ahead has written has begun.
    """
    dated = new.valid_resolved and not old.valid_resolved
    begun = [min(one.begins_at, now) if one.begins_at == one.created_at else one.begins_at for one in (new, old)]
    return max(*begun, again, (new.valid_from or 0) if dated else 0)


class TextDetection(Detection):
    """Compares rows only with records of the same text: no statement is parsed."""

    def __init__(self, writer: Writer, rows: RowColumns, policy: WritePolicy) -> None:
        super().__init__(writer, rows, policy)
        self._columns, self._alone = rows, [False] * len(rows)

    def alone(self) -> list[bool]:
        """Whether each row is compared with no other: no record, of whatever scope, and no other row has its text."""
        rows = self._columns
        if not self._policy.compares:
            return [True] * len(rows)
        keys = [content_hash[:KEY_BYTES] for content_hash in rows.content_hash]
        times = Counter(keys)
        shared = {key for key, count in times.items() if count > 1}
        shared.update(self._writer.records.ids_by_text([*times]).values())
        self._alone = [
            key not in shared or not indexed or position is not None or kind in KINDS_THAT_LAST
            for key, indexed, position, kind in zip(keys, rows.indexed, rows.position, rows.kind, strict=True)
        ]
        return self._alone

    def _find_said_before(self, near: Sequence[tuple[_Compared, Known, object]]) -> None:
        """Add no times: of one text, none replaces another."""

    def said_again(self, known: Known, row: Row) -> None:
        """Add no times: of one text, none replaces another."""

    def _is_compared(self, i: int, row: Row) -> bool:
        return not self._alone[i] and super()._is_compared(i, row)

    def _stored(self, rows: Sequence[Row], most: int) -> list[list[StatementCandidate]]:
        sought = [SoughtText(row.content_hash[:KEY_BYTES], row.scope, row.kind) for row in rows]
        stored = self._writer.statements.of_text(sought, self.now)
        for row, records in zip(rows, stored, strict=True):
            records.sort(key=lambda record: record.authority == row.authority)  # no other repeats it
        return [records[-most:] for records in stored]

    def _keys(self, row: Row) -> RecordKeys:
        keys = (text_number(row),)
        return RecordKeys(keys, keys)


def text_number(known: Known) -> int:
    """Return the key of a text as one of the keys of its record."""
    return int.from_bytes(known.content_hash[:KEY_BYTES], "little", signed=True)


class Effects:
    """Supersessions, contradictions and pairs that a language model judges.

    `row_id` tells the row id of a record, and `insert` gives row ids to all that are new; without it all rows are
    stored, and one that repeats another is superseded by it. What has no successors may be added before there is a
    `writer`.
    """

    def __init__(
        self,
        writer: Writer | None,
        detection: Detection,
        row_id: Callable[[Known], int],
        insert: Callable[[], None] | None,
        *,
        asks: bool,
    ) -> None:
        """`asks` has a language model judge what the rules leave open."""
        self.writer, self._detection, self._now, self._asks = writer, detection, detection.now, asks
        self._row_id, self._insert = row_id, insert
        # Old and new records; with the time at which the new one was said again, if it was said before the old one.
        self._superseded: list[tuple[Known, Known, Relation, int]] = []
        self._added: list[tuple[Row, Detected]] = []
        # Pairs that wait for a language model.
        self.undecided: list[tuple[Known, Known, Verdict]] = []

    @property
    def are_any(self) -> bool:
        """Whether any record that was added does anything to others."""
        return any(any(detected) for _, detected in self._added)

    def add(self, row: Row, detected: Detected) -> None:
        """Keep what a new record does to others, or, if it repeats one, what that one does."""
        new: Known = row
        self._added.append((row, detected))
        if detected.same is not None:
            new = detected.same.other
            self._detection.said_again(new, row)
        for relation in detected.superseded:
            self._replace(relation.other, new, relation)
            self._detection.superseded(relation.other)
        for relation in detected.successors:  # it was written late: put it into the chain
            if self._insert is not None:
                self._insert()
            self._supersede()
            next_, before = self._detection.around(row, self._row_id(relation.other))
            self._replace(row, next_, relation)
            for former in before:
                self._replace(former, row, relation)
            self._detection.superseded(row)
        for other, verdict, _ in detected.undecided if self._asks else ():
            old, new = sorted((row, other), key=self._detection.told_at)
            self.undecided.append((old, new, verdict))
        if self._insert is None and detected.same is not None:
            self._replace(row, detected.same.other, detected.same)
            self._detection.superseded(row)

    def _replace(self, old: Known, new: Known, relation: Relation) -> None:
        """Keep a supersession; if the new one was said before the old one, with the time at which it was said again."""
        claims = self._detection.claim(new), self._detection.claim(old)
        again = said_after(*claims) if claims[0].told_at[0] <= claims[1].told_at[-1] else None
        self._superseded.append((old, new, relation, again or 0))

    def store(self) -> None:
        """Store all that was added; the records are stored."""
        assert self.writer is not None
        if self._superseded:
            self._supersede()
        occurrences, links = [], []
        for row, detected in self._added:
            if detected.same is not None:
                known = detected.same.other
                for told_at, text in ((row.created_at, None), *row.repeated):
                    said = text or row.text
                    occurrences.append((self._row_id(known), told_at, None if said == known.text else said))
            for other, verdict, _ in detected.contradicted:
                ends = self._row_id(row), self._row_id(other)
                links.append(LinkRow(*ends, "contradicts", verdict.confidence, self._now, verdict.reason))
        if occurrences:
            self.writer.comparisons.add_occurrences(occurrences)
        if links:
            self.writer.links.put(links)
        if self.undecided:
            self.writer.comparisons.put_pairs(
                Judgement(self._row_id(old), self._row_id(new), verdict.confidence, verdict.reason, self._now)
                for old, new, verdict in self.undecided
            )

    def _supersede(self) -> None:
        """Store the supersessions."""
        assert self.writer is not None
        rows = []
        for old, new, relation, again in self._superseded:
            known_from = max(min(max(new.recorded_from, old.recorded_from), self._now), again)
            verdict, ids = relation.verdict, (self._row_id(old), self._row_id(new))
            certain = verdict.certain or verdict.outcome == "same"
            holds_from = holds_instead_from(new, old, self._now, again)
            row = Supersession(*ids, holds_from, known_from, None, verdict.reason, verdict.confidence, certain)
            rows.append(row._replace(by_rule=True))
        self.writer.supersessions.put(rows)
        self._superseded = []
