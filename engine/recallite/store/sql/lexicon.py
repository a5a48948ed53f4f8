"""Words and their numbers. A record's words are stored once, as numbers, and never tokenised again at open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from recallite.store.sql.repository import IN_ARRAY, Repository
from recallite.store.sql.term_lists import packed_lists
from recallite.text.reading import Reading

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
        """The numbers of words; those that no record ever had are absent."""
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
        missing = [word for word in words if word not in numbers]
        if missing:
            numbers.update(self.lookup(missing))
        return {word: numbers[word] for word in words if word in numbers}

    def put_reading(self, ids: Sequence[int], reading: Reading, texts: Sequence[int] | None = None) -> None:
        """Store the words of records, adding new ones: for ids[i] those of text i of the reading, or of texts[i]."""
        places, counts, offsets = reading.words_of(texts)
        self._check_epoch()
        numbers = self._numbers_of(reading.vocabulary, None if texts is None else np.unique(places))[places]
        lists = packed_lists(numbers, counts, offsets)
        self._insert_many(
            "record_terms",
            "record_id, terms, counts",
            [(record_id, *packed) for record_id, packed in zip(ids, lists, strict=True)],
        )

    def _numbers_of(self, words: Sequence[str], used: NDArray[np.int32] | None) -> NDArray[np.int32]:
        """Return the number of each word; unknown ones are added if their places are `used`, and are 0 else."""
        numbers = list(map(self._tx.numbers.written.get, words))
        wanted = range(len(words)) if used is None else used.tolist()
        missing = [place for place in wanted if numbers[place] is None]
        if missing:
            self._add_missing([words[place] for place in missing])
            for place in missing:
                numbers[place] = self._tx.numbers.written[words[place]]
        return np.array([number or 0 for number in numbers], np.int32)

    def copy(self, record_id: int, to_id: int) -> None:
        """Give a record the words of another."""
        self._execute(
            "INSERT INTO record_terms SELECT ?, terms, counts FROM record_terms WHERE record_id = ?",
            (to_id, record_id),
        )

    def drop(self, ids: Sequence[int]) -> None:
        """Remove the words of records."""
        self._execute(f"DELETE FROM record_terms WHERE record_id {IN_ARRAY}", (self._id_array(ids),))

    def _read_epoch(self) -> int:
        return int(self._execute("SELECT value FROM meta WHERE key = 'lexicon_epoch'").get or 0)

    def _check_epoch(self) -> None:
        epoch = self._tx.known("lexicon_epoch", self._read_epoch)
        cache = self._tx.numbers
        if epoch != cache.epoch or len(cache.written) > _CACHE_WORDS:
            cache.written.clear()
            cache.epoch = epoch

    def _add_missing(self, words: Iterable[str]) -> None:
        """Number these words, none of which is in the cache."""
        cache = self._tx.numbers
        missing = sorted(words)
        if not missing:
            return
        known = self.lookup(missing)
        new = [word for word in missing if word not in known]
        if new:
            self._tx.add_names("term", "text", new)
            known.update(self.lookup(new))
        cache.written.update(known)
