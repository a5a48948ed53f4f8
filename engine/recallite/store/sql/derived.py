"""What is derived from the texts of records: words, and the keys, frames and outlines of statements.

It comes as a `Derivation`, by the function that the store was opened with, and is stored as it comes: nothing here
reads a text. `rebuild` has all of it derived again.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, pairwise, starmap
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recallite.errors import StoreCorrupt
from recallite.model.authority import LOWEST_RANK
from recallite.model.filters import CHUNK_KIND
from recallite.store.columns import StatementForm, Texts, Words, beginning
from recallite.store.sql.repository import IN_ARRAY, TAGS_SQL, Repository, json_list, read_rows
from recallite.system.numerics import distinct, kernels
from recallite.system.turnstile import paced

if TYPE_CHECKING:
    from recallite.store.sqlite.key_lists import KeyLists
    from recallite.store.transaction import Writer

# Term lists as `record_terms` has them: the numbers of a record's words, ascending and packed, and a byte for each.
# Packed numbers take two bytes each: see `recallite_kernels.pack_ascending`.

CHANGED = (
    "the words of a record are not what was stored: another program, or the disk, changed them. Run: recallite rebuild"
)


def packed_lists(
    numbers: NDArray[np.int32], counts: NDArray[np.uint8], offsets: NDArray[np.int64]
) -> list[tuple[bytes, bytes]]:
    """The values `terms` and `counts` of records: record i has numbers[offsets[i]:offsets[i + 1]] in any order."""
    # By record, then by number, in one sort.
    keys = np.repeat(np.arange(len(offsets) - 1, dtype=np.int64) << 40, np.diff(offsets))
    keys |= numbers.astype(np.int64) << 8 | counts
    keys.sort()
    packed, ends = kernels.pack_ascending((keys >> 8 & 0x7FFFFFFF).astype(np.int32), offsets)
    terms, sorted_counts = packed.astype("<u2", copy=False).tobytes(), keys.astype(np.uint8).tobytes()
    return [
        (terms[2 * begin : 2 * end], sorted_counts[start:stop])
        for (begin, end), (start, stop) in zip(pairwise(ends.tolist()), pairwise(offsets.tolist()), strict=True)
    ]


def unpacked(terms: bytes, offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Unpack term lists that stand one behind the other, given the offsets of their numbers."""
    try:
        return kernels.unpack_ascending(np.frombuffer(terms, "<u2"), offsets)
    except ValueError:  # an odd number of bytes, or KernelError
        raise StoreCorrupt(CHANGED) from None


def numbers_in(lists: Sequence[bytes]) -> NDArray[np.int32]:
    """The numbers in values of `terms`, each once."""
    packed = b"".join(lists)
    if any(len(numbers) % 2 for numbers in lists):
        raise StoreCorrupt(CHANGED)
    ends = np.cumsum([0, *(len(numbers) // 2 for numbers in lists)])
    # A 0 is only part of a number.
    ended = np.concatenate([[0], np.cumsum(np.frombuffer(packed, "<u2") != 0)])
    return distinct(unpacked(packed, ended[ends]))


# Words and their numbers. A record's words are stored once, as numbers, and never tokenised again at open.

_CACHE_WORDS = 250_000


class WordNumbers:
    """The numbers of words that one store has seen, for all of its transactions.

    They hold for an epoch: `vacuum` may drop unused words and begins a new one.
    """

    def __init__(self) -> None:
        self.written: dict[str, int] = {}
        self.epoch = -1
        self.asked: dict[str, int] = {}
        self.asked_at: int | None = None

    def forget(self) -> None:
        """Drop the numbers that were written: the transaction that added words was rolled back."""
        self.written.clear()
        self.epoch = -1


class Lexicon(Repository):
    """The words of the store; `record_terms` is derived from them."""

    def lookup(self, words: Sequence[str]) -> dict[str, int]:
        """The numbers of words; a word that no record ever had is absent."""
        if not words:
            return {}
        return dict(self._execute(f"SELECT text, id FROM term WHERE text {IN_ARRAY}", (self._array(words),)))

    def size(self) -> int | None:
        """The number of words; None if it is not to be known."""
        return self._number("SELECT count(*) FROM term")

    def recalled(self, words: Sequence[str], generation: int) -> dict[str, int]:
        """`lookup` with a cache, for queries. `generation` is another whenever numbers may have changed."""
        cache = self._tx.numbers
        if cache.asked_at != generation or len(cache.asked) > _CACHE_WORDS:
            cache.asked, cache.asked_at = {}, generation
        numbers = cache.asked
        if missing := {*words}.difference(numbers):
            numbers.update(self.lookup([*missing]))
        return {word: numbers[word] for word in words if word in numbers}

    def put(self, ids: Sequence[int], words: Words) -> None:
        """Store the words of records, adding new words: ids[i] gets those of text i."""
        cache = self._tx.numbers
        stored = "SELECT value FROM meta WHERE key = 'lexicon_epoch'"
        epoch = self._tx.known("lexicon_epoch", lambda: int(self._execute(stored).get or 0))
        if epoch != cache.epoch or len(cache.written) > _CACHE_WORDS:
            cache.written.clear()
            cache.epoch = epoch
        if sought := {*words.vocabulary}.difference(cache.written):
            known = self.lookup(sorted(sought))
            if new := sorted(sought - known.keys()):
                known |= self._tx.add_names("term", "text", new) or self.lookup(new)
            cache.written.update(known)
        numbers = np.array([*map(cache.written.__getitem__, words.vocabulary)], np.int32)
        lists = packed_lists(numbers[words.indices], words.counts, words.offsets)
        self._insert_many(
            "record_terms",
            "record_id, terms, counts",
            [(row_id, *packed) for row_id, packed in zip(ids, lists, strict=True)],
        )

    def copy(self, row_id: int, to_id: int) -> None:
        """Give a record the words of another."""
        self._execute(
            "INSERT INTO record_terms SELECT ?, terms, counts FROM record_terms WHERE record_id = ?", (to_id, row_id)
        )

    def drop(self, ids: Sequence[int]) -> None:
        """Remove the words of records."""
        self._execute(f"DELETE FROM record_terms WHERE record_id {IN_ARRAY}", (self._id_array(ids),))


# Statements: their keys and frames.

# The further times at which a record was remembered, as JSON.
_REPEATED_SQL = json_list("again.at", "again.at", "occurrence again WHERE again.record_id = r.id")
KEY = struct.Struct("<q")
KEY_BYTES = KEY.size
"""The first bytes of a `content_hash` are the key of a text."""
_FRAME = struct.Struct("<II")
STORED_TEXT = (
    "r.id, r.scope_id, r.superseded_at, r.kind, r.authority, r.position, r.recorded_until, r.text, r.context, "
    f"{TAGS_SQL}"
)
"""The columns of `StoredText`."""
_CANDIDATES = (
    "SELECT r.kind, r.scope_id, r.id, r.public_id, r.text, r.context, r.content_hash, r.topic, o.name, r.position, "
    "r.pinned, r.authority, r.created_at, r.valid_from, r.valid_until, r.valid_resolved, r.expires_at, "
    f"r.recorded_from, r.metadata, q.outline, {TAGS_SQL}, {_REPEATED_SQL} FROM record r "
    "LEFT JOIN source o ON o.id = r.source_id LEFT JOIN statement q ON q.record_id = r.id"
)
_CURRENT = "AND r.superseded_at IS NULL AND (r.expires_at IS NULL OR r.expires_at > ?)"
# The newest records of a key that are looked at, and how many more are read than are wanted: some may have expired, or
# be of another kind.
_NEWEST_OF_A_KEY = 32
_SPARE = 8
_ID_BITS = 63
_ANY_ID = (1 << _ID_BITS) - 1


KeysOf = tuple[int, bytes]
"""The row id of a record and its keys, as `statement` has them."""


class StoredText(NamedTuple):
    """The fields of a version that all else is derived from, and what its keys are stored under."""

    row_id: int
    scope_id: int
    superseded_at: int | None
    kind: str
    authority: int
    position: int | None
    recorded_until: int | None
    text: str
    context: str | None
    tags: str


class Stored(NamedTuple):
    """Versions as columns: what is derived from them, and what their keys are stored under."""

    ids: Sequence[int]
    scopes: Sequence[int]
    superseded_at: Sequence[int | None]
    texts: Texts

    @classmethod
    def of(cls, rows: Sequence[StoredText]) -> Stored:
        """The columns of these versions."""
        columns: Iterable[Any] = zip(*rows, strict=True) if rows else [()] * len(StoredText._fields)
        ids, scopes, superseded_at, *fields, tags = columns
        return cls(ids, scopes, superseded_at, Texts._make([*fields, [*map(msgspec.json.decode, tags)]]))

    def part(self, part: slice) -> Stored:
        """Some of these versions."""
        ids, scopes, superseded_at, texts = self
        return Stored(ids[part], scopes[part], superseded_at[part], Texts._make([column[part] for column in texts]))


class StatementRow(NamedTuple):
    """The statement of a version as it is stored."""

    row_id: int
    keys: bytes
    frames: bytes
    outline: bytes


class Sought(NamedTuple):
    """A search for records of exactly this scope and kind that share a key; the first keys count most."""

    keys: Sequence[int]
    scope: str
    kind: str


class SoughtText(NamedTuple):
    """A search for records of exactly this scope and kind with this `text_key`."""

    key: bytes
    scope: str
    kind: str


class StatementCandidate(Struct, frozen=True, gc=False):
    """An open record, neither expired nor superseded, that a new statement may repeat, supersede or contradict."""

    row_id: int
    public_id: str
    text: str
    context: str | None
    content_hash: bytes
    topic: str | None
    source: str | None
    position: int | None
    pinned: bool
    authority: int
    created_at: int
    valid_from: int | None
    valid_until: int | None
    valid_resolved: bool
    expires_at: int | None
    recorded_from: int
    metadata: str | None
    # The outline of its statement, empty where the store has none: it waits to be compared, or is no statement.
    outline: bytes
    tags: tuple[str, ...]
    # Further times at which it was remembered.
    repeated_at: tuple[int, ...]
    # The weight of the keys that it was found by; the first keys asked for weigh most.
    shared: int

    @property
    def begins_at(self) -> int:
        """The time when it begins to hold."""
        return beginning(self.created_at, self.valid_from, resolved=self.valid_resolved)


class StatementKeys(Repository):
    """The table `statement_key`: the records by the keys of their statements. SQLite has `KeyLists` in its place."""

    def all(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the record and the key of each listed entry, ordered by both."""
        rows = self._rows("SELECT record_id, key FROM statement_key ORDER BY record_id, key")
        pairs = np.array(rows, dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]

    def clear(self) -> None:
        """Unlist everything."""
        self._execute("DELETE FROM statement_key")

    def add(self, rows: Sequence[KeysOf], newest: int = 0) -> None:
        """List records by their keys; none of them is listed yet. `newest` is the last one stored, listed or not."""
        self._insert_many("statement_key", "key, record_id", pairs_of(rows))

    def remove(self, rows: Sequence[KeysOf], *, erase: bool) -> None:
        """Unlist records; `erase` leaves nothing of their keys in the file."""
        self._execute_many("DELETE FROM statement_key WHERE key = ? AND record_id = ?", pairs_of(rows))

    def newest(self, keys: Collection[int], count: int) -> dict[int, list[int]]:
        """The newest records of each key; one statement for all keys takes half the time of one for each."""
        # They are at the end of the range of a key, whatever its length.
        rows = self._execute(
            "SELECT wanted.value, (SELECT json_group_array(newest.record_id) FROM (SELECT k.record_id "
            "FROM statement_key k WHERE k.key = wanted.value ORDER BY k.record_id DESC LIMIT ?) newest) "
            "FROM carray(?) wanted",
            (count, self._id_array([*keys])),
        )
        return {key: msgspec.json.decode(row_ids) for key, row_ids in rows}


class Statements(Repository):
    """The table `statement`, and the lists of its keys."""

    def __init__(self, transaction: Writer) -> None:
        super().__init__(transaction)
        self.listed = self._lists(transaction)

    def _lists(self, transaction: Any) -> StatementKeys | KeyLists:
        return StatementKeys(transaction)

    def put(self, stored: Stored, forms: Sequence[StatementForm | None]) -> None:
        """Store the statements of versions, a form for each; most texts have few keys, long ones none."""
        rows, current, lower_ranks = [], [], set()
        for i, form in enumerate(forms):
            if form is not None:
                row = statement_row(stored, i, form)
                rows.append(row)
                if stored.superseded_at[i] is None and row.keys:
                    current.append((row.row_id, row.keys))
                if stored.texts.authorities[i] < 0:
                    lower_ranks.add(stored.texts.authorities[i])
        if rows:
            self._insert_many("statement", "record_id, keys, frames, outline", rows)
            self.listed.add(current, max(stored.ids))
        if lower_ranks and not lower_ranks.issubset(self._lower_ranks()):
            self._tx.forget_known()

    def drop(self, ids: Sequence[int]) -> None:
        """Remove the keys and frames of versions."""
        self.listed.remove(self._keys(ids), erase=True)
        self._execute(f"DELETE FROM statement WHERE record_id {IN_ARRAY}", (self._id_array(ids),))

    def derive(self, ids: Sequence[int]) -> None:
        """Make the keys and frames of these records again from what is stored of them.

        Records that wait to be compared have none: nothing is compared with them before their turn.
        """
        self.drop(ids)
        stored = self.stored(self._tx.comparisons.without(ids))
        self.put(stored, [*self.forms(stored)])

    def stored(self, ids: Sequence[int] | NDArray[np.int64], *, indexed: bool = True) -> Stored:
        """These versions by row id, the `indexed` ones or all, with the fields that all else is derived from."""
        rows = self._execute(
            f"SELECT {STORED_TEXT} FROM record r WHERE {'r.indexed AND ' if indexed else ''}r.id {IN_ARRAY} "
            "ORDER BY r.id",
            (self._id_array(ids),),
        )
        return Stored.of(read_rows(paced(rows), StoredText, "record"))

    def forms(self, stored: Stored) -> Iterator[StatementForm | None]:
        """Derive the form of the statement of each of these versions."""
        return map(self._tx.derive(stored.texts).statement, range(len(stored.ids)))

    def list_keys(self, ids: Sequence[int]) -> None:
        """List the keys of these open records if they are not superseded, else unlist them."""
        rows = self._keys(ids)
        self.listed.remove(rows, erase=False)
        superseded = set(
            self._column(
                f"SELECT id FROM record WHERE superseded_at IS NOT NULL AND id {IN_ARRAY}", (self._id_array(ids),)
            )
        )
        self.listed.add([row for row in rows if row[0] not in superseded], max(ids, default=0))

    def keys_and_outlines(self, ids: Sequence[int]) -> list[tuple[list[int], bytes]]:
        """The keys by which others find each of these records, as `Sought` has them, and its outline."""
        rows = self._rows(
            "SELECT r.scope_id, r.authority, s.keys, s.outline FROM statement s JOIN record r ON r.id = s.record_id "
            f"WHERE s.record_id {IN_ARRAY}",
            (self._id_array(ids),),
        )
        return [
            (_within([key for (key,) in KEY.iter_unpack(keys)], scope_id, rank), outline)  # twice mixed is plain
            for scope_id, rank, keys, outline in rows
        ]

    def _keys(self, ids: Sequence[int]) -> list[KeysOf]:
        return self._rows(
            f"SELECT record_id, keys FROM statement WHERE length(keys) > 0 AND record_id {IN_ARRAY}",
            (self._id_array(ids),),
        )

    def candidates(self, sought: Sequence[Sought], now: int, limit: int) -> list[list[StatementCandidate]]:
        """List for each query at most `limit` records of each authority that share a key, among the newest of the key.

        Records that share the most keys come first, where the first keys weigh most; of equals the newest. Closed,
        superseded and expired ones are none. However much a web page says, it takes no place of what the user said.
        """
        if not sought:
            return []
        ranks = (0, *self._lower_ranks())
        scopes = self._tx.scopes.ids([*{*map(_scope_of, sought)}])
        stored, kinds = [], []
        for query in sought:
            for rank in ranks:
                stored.append(_within(query.keys, scopes[query.scope], rank) if query.scope in scopes else [])
                kinds.append((query.kind, scopes.get(query.scope)))
        wanted = {*chain(*stored)}
        holders = self.listed.newest(wanted, _NEWEST_OF_A_KEY) if wanted else {}
        ranked, first, more = [], set[int](), set[int]()
        for keys in paced(stored):
            # Weight and row id in one number: sorted as pairs, the candidates of a row took twice the time.
            shared: dict[int, int] = {}
            for weight, key in zip(range(len(keys), 0, -1), keys, strict=True):
                for row_id in holders.get(key, ()):
                    shared[row_id] = shared.get(row_id, row_id) + (weight << _ID_BITS)
            numbers = sorted(shared.values(), reverse=True)[: limit + _SPARE]
            best = [(number >> _ID_BITS, number & _ANY_ID) for number in numbers]
            ranked.append(best)
            first.update(map(_row_id, best[:limit]))
        current = self._open(first, _CURRENT, now)
        # Some have expired, or are of another kind: what follows them is read only then.
        for kind, best in zip(kinds, ranked, strict=True):
            for _, row_id in best[:limit]:
                if row_id not in current or current[row_id][0] != kind:
                    more.update(map(_row_id, best[limit:]))
        if more:
            current |= self._open(more, _CURRENT, now)
        candidates: list[list[StatementCandidate]] = [[] for _ in sought]
        for i, (kind, best) in enumerate(paced(zip(kinds, ranked, strict=True))):
            found = [
                StatementCandidate(*(*current[row_id][1], weight))
                for weight, row_id in best
                if row_id in current and current[row_id][0] == kind
            ]
            candidates[i // len(ranks)] += found[:limit]
        return candidates

    def _lower_ranks(self) -> list[int]:
        """The ranks below the user's of records that may state something, and perhaps of some that are gone."""

        def read() -> list[int]:
            return self._column(
                "SELECT c.value FROM carray(?) c WHERE EXISTS (SELECT 1 FROM record r WHERE r.authority = c.value "
                f"AND r.authority < 0 AND r.kind != '{CHUNK_KIND}')",
                (self._id_array([*range(-1, LOWEST_RANK - 1, -1)]),),
            )

        return self._tx.known("lower ranks", read)

    def of_text(self, sought: Sequence[SoughtText], now: int) -> list[list[StatementCandidate]]:
        """List for each query the records of its text, in no order, that `candidates` would also find."""
        keys = {*map(_key_of, sought)}
        if not keys:
            return []
        alike = self._tx.records.ids_by_text([*keys])
        scopes = self._tx.scopes.ids([*{*map(_scope_of, sought)}]) if alike else {}
        by_text: dict[tuple[bytes, str, int | None], list[StatementCandidate]] = {}
        for row_id, ((kind, scope_id), fields) in self._open(alike, _CURRENT, now).items():
            text = alike[row_id], kind, scope_id
            by_text.setdefault(text, []).append(StatementCandidate(*(*fields, 1)))
        return [
            by_text.get((query.key, query.kind, scopes.get(query.scope)), []) if by_text else [] for query in sought
        ]

    def of_ids(self, row_ids: Collection[int]) -> dict[int, StatementCandidate]:
        """Return these open records by row id, superseded and expired ones too."""
        return {row_id: StatementCandidate(*(*fields, 0)) for row_id, (_, fields) in self._open(row_ids).items()}

    def superseded_of_text(self, sought: Sequence[SoughtText], without: Collection[int]) -> list[StatementCandidate]:
        """List the superseded records of these texts, scopes and kinds, except `without`."""
        alike = self._tx.records.ids_by_text([*{*map(_key_of, sought)}])
        superseded = self._open(alike.keys() - without, "AND r.superseded_at IS NOT NULL")
        if not superseded:
            return []
        scopes = self._tx.scopes.ids([*{*map(_scope_of, sought)}])
        texts = {(query.key, query.kind, scopes.get(query.scope)) for query in sought}
        return [
            StatementCandidate(*(*fields, 0))
            for row_id, (where, fields) in superseded.items()
            if (alike[row_id], *where) in texts
        ]

    def _open(
        self, row_ids: Collection[int], condition: str = "", *bound: int
    ) -> dict[int, tuple[tuple[str, int], tuple[Any, ...]]]:
        """The kind and scope of open records, and their fields as candidates but for the weight, by row id."""
        candidates: dict[int, tuple[tuple[str, int], tuple[Any, ...]]] = {}
        if not row_ids:
            return candidates
        rows = self._execute(
            f"{_CANDIDATES} WHERE r.id {IN_ARRAY} AND r.recorded_until IS NULL {condition}",
            (self._id_array(sorted(row_ids)), *bound),
        )
        for kind, scope_id, *fields, outline, tags, repeated_at in paced(rows):
            for i in _FLAGS:
                fields[i] = bool(fields[i])
            fields.append(outline or b"")
            fields.append(() if tags == "[]" else tuple(msgspec.json.decode(tags)))
            fields.append(() if repeated_at == "[]" else tuple(msgspec.json.decode(repeated_at)))
            candidates[fields[0]] = (kind, scope_id), tuple(fields)
        return candidates

    def frames(self, row_ids: NDArray[np.int64], *, of_texts: bool = False) -> list[tuple[int, bytes]]:
        """The frames of these versions, as pairs of uint32 (frame, value), by row id; versions without any are absent.

        `of_texts` derives them, of records that wait to be compared: some 50 us each.
        """
        if of_texts:
            stored = self.stored(row_ids)
            every = map(self._tx.derive(stored.texts).frames, range(len(stored.ids)))
            return [(row_id, _packed(frames)) for row_id, frames in zip(stored.ids, every, strict=True) if frames]
        if not len(row_ids):
            return []
        first, last = int(row_ids.min()), int(row_ids.max())
        if last - first >= 2 * len(row_ids):
            return self._rows(
                "SELECT s.record_id, s.frames FROM carray(?) c CROSS JOIN statement s ON s.record_id = c.value "
                "WHERE length(s.frames) > 0",
                (self._id_array(row_ids),),
            )
        # 20,000 versions without frames take 1.3 ms; looked up one by one, 7.5.
        asked = set(row_ids.tolist())
        rows = self._rows(
            "SELECT record_id, frames FROM statement WHERE record_id BETWEEN ? AND ? AND length(frames) > 0",
            (first, last),
        )
        return [row for row in rows if row[0] in asked]


_row_id, _scope_of, _key_of = itemgetter(1), attrgetter("scope"), attrgetter("key")
_FLAGS = tuple(StatementCandidate.__struct_fields__.index(name) for name in ("pinned", "valid_resolved"))


def statement_row(stored: Stored, i: int, form: StatementForm) -> StatementRow:
    """The row of a version whose statement has this form."""
    keys = _within(form.keys, stored.scopes[i], stored.texts.authorities[i])
    return StatementRow(stored.ids[i], b"".join(map(KEY.pack, keys)), _packed(form.frames), form.outline)


def _packed(frames: Iterable[tuple[int, int]]) -> bytes:
    return b"".join(starmap(_FRAME.pack, frames))


def key_array(keys: bytes) -> NDArray[np.int64]:
    """The keys of a record, or of several, ascending."""
    return np.sort(np.frombuffer(keys, dtype="<i8"))


def pairs_of(rows: Sequence[KeysOf]) -> list[tuple[int, int]]:
    """The keys of records, each with its record."""
    return [(key, row_id) for row_id, keys in rows for (key,) in KEY.iter_unpack(keys)]


def _within(keys: Sequence[int], scope_id: int, rank: int) -> list[int]:
    """Keys as they are stored: mixed with the scope and the authority, so that what others hold is never read."""
    return [*map(_salt(scope_id, rank).__xor__, keys)]


@lru_cache(maxsize=4096)
def _salt(scope_id: int, rank: int) -> int:
    return int.from_bytes(blake2b(f"{scope_id}{rank or ''}".encode(), digest_size=8).digest(), "little", signed=True)
