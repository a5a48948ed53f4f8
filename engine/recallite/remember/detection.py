"""Detection: what a new statement does to those of its scope and kind: repeat, supersede or contradict them.

Candidates share a key of `text.statements` with the text. They are read inside the write transaction, without the
in-memory index: a record that another process has just written is among them. Rows of one batch see those before them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from recallite.model.checks import now_us, to_datetime
from recallite.model.policies import WritePolicy
from recallite.store.columns import RowColumns
from recallite.store.supersession_values import (
    Sought,
    SoughtText,
    Standpoint,
    StatementCandidate,
    beginning,
    telling,
)
from recallite.store.transaction import Writer
from recallite.store.values import EmbedderRow, Row
from recallite.text.normalise import KEY_BYTES
from recallite.text.statements import Statement, Verdict, judge, may_judge, several_valued, statement_of
from recallite.text.statements.stored_keys import sought_keys, stored_keys
from recallite.text.topics import same_topic
from recallite.text.whose import whose

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Records that a row is compared with: parsing one takes 60 us. "I live in" may begin thousands, of which so many of the
# newest are looked at.
_MOST = 6
_MOST_OF_A_KEY = 32
# Rows whose candidates are read by one statement.
_AT_ONCE = 256
# Kinds of what happened, what a file says and how to do something: no later text changes it.
_UNCHANGING = ("episode", "chunk", "procedure")
Known: TypeAlias = Row | StatementCandidate
"""A record that a row is compared with: a row of the batch, or a stored one."""


class Relation(NamedTuple):
    """How a row stands to another record."""

    other: Known
    verdict: Verdict
    cosine: float | None


class Detected(NamedTuple):
    """What a row does to other records, by the thresholds of the policy.

    `successors` hold since a later time than the row, which was written late: they supersede it. `undecided` are those
    of which a language model may say more than the rules.
    """

    same: Relation | None = None
    superseded: Sequence[Relation] = ()
    successors: Sequence[Relation] = ()
    contradicted: Sequence[Relation] = ()
    undecided: Sequence[Relation] = ()


NOTHING = Detected()


class Detection:
    """Compares the rows of a batch, in order, with the stored records and the rows before them."""

    def __init__(self, writer: Writer, rows: Sequence[Row], policy: WritePolicy) -> None:
        self._writer, self._rows, self._policy = writer, rows, policy
        self._now = now_us()
        self._several = several_valued(policy.several_values)
        self._embedder = writer.vectors.active_embedder()
        # The rows already written, as places, by scope, kind and key.
        self._by_key: dict[tuple[str, str, Hashable], deque[int]] = {}
        # Ids of records that this batch has superseded, and of those to which it has given another text.
        self._superseded: set[str] = set()
        self._changed: set[str] = set()
        # Those candidates of rows to come that the store holds, read ahead; dropped where the batch changes one.
        self._ahead: dict[int, list[StatementCandidate]] = {}
        self._read_to = 0

    def compared(self, place: int) -> Detected:
        """What a row does to the records before it."""
        row = self._rows[place]
        if not self._compares(row):
            return NOTHING
        others = self._candidates(place, row)
        if not others:
            return NOTHING
        statement = statement_of(row.text, row.context)
        cosines = _Cosines(self._writer, self._embedder, row, others)
        found: dict[str, list[Relation]] = {}
        same: Relation | None = None
        for other in others:
            relation = self._relation(row, statement, other, cosines)
            if relation is None:
                continue
            if relation.verdict.outcome == "same":
                counted = same is None and self._policy.duplicates == "count"
                if counted and _adds_nothing(row, other) and _on_one_subject(row, other):
                    same = relation
            elif relation.verdict.outcome != "independent" and _on_one_subject(row, other):
                for name in self._effects(row, relation):
                    found.setdefault(name, []).append(relation)
        if same is not None:
            if not self._is_said_again(row, same, [*found.get("superseded", ()), *found.get("contradicted", ())]):
                return Detected(same)
            again = same.verdict._replace(outcome="supersedes", reason="said again after another value")
            found.setdefault("superseded", []).append(same._replace(verdict=again))
        for some in found.values():
            some.sort(key=lambda each: -each.verdict.confidence)
        return Detected(
            None,
            found.get("superseded", ()),
            # Of several that hold later, the next in time stands in its place.
            sorted(found.get("successors", ()), key=lambda each: stated_at(each.other))[:1],
            found.get("contradicted", ()),
            found.get("undecided", ()),
        )

    def wrote(self, place: int) -> None:
        """Compare the rows after this one with it."""
        row = self._rows[place]
        if self._compares(row):
            for key in self._stored_keys(row):
                self._by_key.setdefault((row.scope, row.kind, key), deque(maxlen=_MOST_OF_A_KEY)).append(place)

    def _compares(self, row: Row) -> bool:
        """Whether a row may change others. A turn of a transcript is evidence; recall puts what it says in order."""
        return self._policy.compares and row.kind not in _UNCHANGING and row.position is None

    def _is_compared(self, place: int) -> bool:
        return self._compares(self._rows[place])

    def superseded(self, public_id: str) -> None:
        """Compare no row with this record any more."""
        self._superseded.add(public_id)

    def changed(self, public_id: str) -> None:
        """Compare rows with what the store has of this record now, not with its row of this batch."""
        self._changed.add(public_id)
        self.read_again()

    def read_again(self) -> None:
        """Read again what was read ahead: the store has changed."""
        self._ahead.clear()

    def around(self, row: Row, successor_id: int) -> tuple[Standpoint, list[Standpoint]]:
        """Where a row stands that was written late: the first that supersedes it of a chain, and those that it does."""
        ids = self._writer.supersessions.chain(successor_id)
        points, records = self._writer.supersessions.standpoints(ids), self._writer.records.by_row_ids(sorted(ids))
        own, moment = statement_of(row.text, row.context), to_datetime(stated_at(row))

        def stated(record_id: int) -> datetime:
            record = records[record_id]
            given = None if record.valid_resolved else record.valid_from
            return record.created_at if given is None else min(given, record.created_at)

        def supersedes(record_id: int, *, later: bool) -> bool:
            other = statement_of(records[record_id].text, records[record_id].context)
            new, old = (other, own) if later else (own, other)
            verdict = judge(new, old, cosine=None, later=True, several=self._several)
            return verdict.outcome == "supersedes" and self._is_sure(verdict)

        later = [each for each in ids if stated(each) > moment and supersedes(each, later=True)]
        first = min(later, key=stated, default=successor_id)
        before = [each.old_id for each in self._writer.supersessions.of_new([first])]
        earlier = [each for each in before if stated(each) <= moment and supersedes(each, later=False)]
        return points[first], [points[each] for each in earlier]

    def _is_said_again(self, row: Row, same: Relation, others: Sequence[Relation]) -> bool:
        """Whether something else was said between a statement and its repetition, which then is the last word."""
        least = self._policy.supersede_confidence
        between = range(stated_at(same.other) + 1, stated_at(row) + 1)
        return least is not None and any(stated_at(each.other) in between for each in others)

    def _is_sure(self, verdict: Verdict) -> bool:
        """Whether the policy has a supersession of this confidence marked."""
        least = self._policy.supersede_confidence
        return least is not None and verdict.confidence >= least

    def _candidates(self, place: int, row: Row) -> list[Known]:
        """The records that share most of the keys, the first of which count most; of equals the newest."""
        keys, scope, kind = self._sought_keys(row), row.scope, row.kind
        shared: dict[int, int] = {}
        for place_of_key, key in enumerate(keys):
            weight = len(keys) - place_of_key
            for before in self._by_key.get((scope, kind, key), ()):
                shared[before] = shared.get(before, 0) + weight
        stored = self._stored(place)
        if not shared and not stored:
            return []
        found: list[tuple[int, int, Known]] = []
        known = set()
        for weight, before in sorted([(weight, before) for before, weight in shared.items()], reverse=True)[
            : 2 * _MOST
        ]:
            public_id = self._rows[before].public_id
            if public_id not in self._superseded and public_id not in self._changed:
                found.append((weight, before, self._rows[before]))
                known.add(public_id)
        found += (
            (each.shared, -rank, each)
            for rank, each in enumerate(stored, 1)
            if each.position is None
            and each.public_id not in known
            and each.public_id not in self._superseded
            and each.public_id != row.public_id
        )
        found.sort(key=lambda each: each[:2], reverse=True)
        return [each for _, _, each in found[:_MOST]]

    def _stored(self, place: int) -> Sequence[StatementCandidate]:
        """The candidates of a row that the store holds."""
        if place >= self._read_to:
            self._read_to = place + _AT_ONCE
            ahead = range(place, min(self._read_to, len(self._rows)))
            places = [each for each in ahead if self._is_compared(each)]
            self._ahead = dict(zip(places, self._read(places, _MOST), strict=True))
        found = self._ahead.pop(place, None)
        if found is None or any(each.public_id in self._superseded for each in found):
            (found,) = self._read([place], 2 * _MOST if self._superseded else _MOST)
        return found

    def _read(self, places: Sequence[int], most: int) -> list[list[StatementCandidate]]:
        rows = [self._rows[place] for place in places]
        sought = [Sought(sought_keys(row.text, row.context), row.scope, row.kind) for row in rows]
        return self._writer.statements.candidates(sought, self._now, most)

    def _stored_keys(self, row: Row) -> Sequence[Hashable]:
        """The keys that a row is found by."""
        return stored_keys(row.text, row.context)

    def _sought_keys(self, row: Row) -> Sequence[Hashable]:
        """The keys by which a row finds others, the first of which count most."""
        return sought_keys(row.text, row.context)

    def _relation(self, row: Row, statement: Statement, other: Known, cosines: _Cosines) -> Relation | None:
        """What the rules say of the one that begins to hold later, the row or the other, and the earlier one.

        None if both may certainly hold, which `may_judge` finds for most pairs in a fifth of the time. Of two of one
        moment neither is later: at most they contradict each other.
        """
        new, old = statement, statement_of(other.text, other.context)
        said, before = stated_at(row), stated_at(other)
        if said < before:
            new, old = old, new
        if not may_judge(new, old, self._several):
            return None
        verdict = judge(new, old, cosine=lambda: cosines.of(other), later=said != before, several=self._several)
        # That of an independent one is of no use.
        return Relation(other, verdict, None if verdict.outcome == "independent" else cosines.of(other))

    def _effects(self, row: Row, relation: Relation) -> Sequence[str]:
        """The fields of `Detected` that a relation belongs to."""
        other, verdict, _ = relation
        policy = self._policy
        late = stated_at(row) < stated_at(other)
        new, old = (other, row) if late else (row, other)
        # What expires would leave nothing in the place of what does not.
        allowed = new.expires_at is None or old.expires_at is not None
        if verdict.outcome == "supersedes" and allowed and self._is_sure(verdict) and not _was_before(new, old):
            return ("successors" if late else "superseded",)
        effects = ["undecided"] if allowed and policy.judge else []
        if policy.contradict_confidence is not None and verdict.confidence >= policy.contradict_confidence:
            effects.append("contradicted")
        return effects


class TextDetection(Detection):
    """Compares rows only with those of the same text: no statement is parsed."""

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
            key not in shared or not indexed or position is not None or kind in _UNCHANGING
            for key, indexed, position, kind in zip(keys, rows.indexed, rows.position, rows.kind, strict=True)
        ]
        return self._alone

    def _is_compared(self, place: int) -> bool:
        return not self._alone[place] and super()._is_compared(place)

    def _read(self, places: Sequence[int], most: int) -> list[list[StatementCandidate]]:
        rows = [self._rows[place] for place in places]
        sought = [SoughtText(row.content_hash[:KEY_BYTES], row.scope, row.kind) for row in rows]
        return [found[-most:] for found in self._writer.statements.of_text(sought, self._now)]

    def _stored_keys(self, row: Row) -> Sequence[Hashable]:
        return (row.content_hash[:KEY_BYTES],)

    _sought_keys = _stored_keys


class _Cosines:
    """The cosines of a row to its candidates, of which few are needed: read when the first is."""

    def __init__(self, writer: Writer, embedder: EmbedderRow | None, row: Row, others: Sequence[Known]) -> None:
        self._writer, self._row, self._others = writer, row, others
        self._embedder = embedder if len(row.vectors) == 1 else None
        self._stored: dict[int, NDArray[np.float32]] | None = None

    def of(self, other: Known) -> float | None:
        """The cosine to a record, where both were embedded in one part."""
        if self._embedder is None:
            return None
        if isinstance(other, StatementCandidate):
            vector = self._read().get(other.record_id)
        else:
            vector = np.frombuffer(other.vectors[0], dtype="<f4") if len(other.vectors) == 1 else None
        return None if vector is None else float(np.frombuffer(self._row.vectors[0], dtype="<f4") @ vector)

    def _read(self) -> dict[int, NDArray[np.float32]]:
        if self._stored is None:
            assert self._embedder is not None
            ids = [other.record_id for other in self._others if isinstance(other, StatementCandidate)]
            found = self._writer.vectors.of_current(ids, self._embedder)
            self._stored = {record_id: parts[0] for record_id, _, _, _, parts in found if len(parts) == 1}
        return self._stored


def begins_at(known: Known | Standpoint) -> int:
    """When what a record says begins to hold."""
    if isinstance(known, Row):
        return beginning(known.created_at, known.valid_from, resolved=known.valid_resolved)
    return known.begins_at


def stated_at(known: Known) -> int:
    """The time as of which a record says what it does: a date in its text is that of an event, which may be to come.

    "The exam is on 4 May" was said before "the exam is on 3 May", which supersedes it. What is to come was announced.
    """
    return telling(known.created_at, known.valid_from, resolved=known.valid_resolved)


def _was_before(new: Known, old: Known) -> bool:
    """Whether what a later text tells of was over when the older one was told: "I moved to Rome in 2010"."""
    return bool(new.valid_resolved and new.valid_until is not None and new.valid_until <= stated_at(old))


def _adds_nothing(row: Row, other: Known) -> bool:
    """Whether a record has all that a row of the same statement gives.

    At another valid time it is another event.
    """
    return (
        row.context == other.context
        and (row.valid_from, row.valid_until, row.expires_at) == (other.valid_from, other.valid_until, other.expires_at)
        and row.topic in (None, other.topic) and row.source in (None, other.source)
        and row.metadata in (None, other.metadata) and row.tags in ((), other.tags)
        and row.pinned <= other.pinned and (row.text == other.text or same_topic(row.text, other.text))
    )  # fmt: skip


def _on_one_subject(row: Row, other: Known) -> bool:
    if row.metadata == other.metadata:
        return on_one_subject((row.topic, other.topic), {}, {})
    one, two = (msgspec.json.decode(each.metadata or b"{}") for each in (row, other))
    return on_one_subject((row.topic, other.topic), one, two)


def on_one_subject(topics: tuple[str | None, str | None], one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether neither the topics nor the metadata of two records say that they are about different things."""
    if None not in topics and topics[0] != topics[1]:
        return False
    return whose(one) == whose(two)
