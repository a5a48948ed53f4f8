"""Reading the texts of records: their words and, for a whole batch at once, what they cannot be.

The words of a record in the keyword index come from its context, text and tags. A word has a count of one byte: its
occurrences, at most `MOST`, and two flags. `TAG_ONLY` marks a word that only tags have: it is found like any other, but
is no part of the text where texts are compared. `NAME` marks the first and the last word of a context that is a name,
such as "Anna" or "Anna Smith".

`read_texts` finds the words by kernels over the bytes of the batch: for 2,048 texts all of it takes less time than the
words alone, read text by text. Python folds what is not ASCII, and reads each distinct chunk.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from recallite.system.numerics import kernels
from recallite.text.dates.languages import DOTTED_CENTURIES, time_terms
from recallite.text.dates.stated import LONGEST_TEXT
from recallite.text.patterns import lazily
from recallite.text.words import ASCII_FOLDS, foldable, terms_of_chunks, tokenize
from recallite_kernels.words import MOST as MOST
from recallite_kernels.words import NAME as NAME
from recallite_kernels.words import TAG_ONLY as TAG_ONLY

if TYPE_CHECKING:
    from numpy.typing import NDArray


# One to three words of letters. Longer contexts are headings.
_NAME = lazily(r"[^\W\d_][\w.'\u2019-]*(?:[ \t]+[^\W\d_][\w.'\u2019-]*){0,2}")
_TITLES = frozenset(["dr", "mr", "mrs", "ms", "miss", "prof", "professor", "sir"])
# Roles are no names: every conversation has them, and questions use the words for other things.
ROLES = frozenset(
    tokenize(
        "user assistant system human ai bot chatbot agent tool function model developer speaker customer client guest "
        "everyone everybody all me myself you unknown anonymous narrator note notes message chat other"
    )
)
_LEAST_LETTERS = 3


def word_counts(words: Sequence[str], context: str | None, tags: Iterable[str]) -> dict[str, int]:
    """The byte of each word of a record with these `written_words` in context and text."""
    written, tagged = Counter(words), Counter(chain.from_iterable(map(name_terms, tags)))
    counts = {word: min(count + tagged[word], MOST) for word, count in written.items()}
    for word, count in tagged.items():
        if word not in written:
            counts[word] = min(count, MOST) | TAG_ONLY
    for word in () if context is None else name_words(context):
        counts[word] |= NAME
    return counts


def written_words(text: str, context: str | None) -> list[str]:
    """The index terms of a context and a text."""
    return tokenize(text) if context is None else tokenize(context) + tokenize(text)


@lru_cache(maxsize=4096)
def name_words(context: str) -> tuple[str, ...]:
    """The first and the last word of a context, as index terms, if it is a name; titles do not count.

    A name of several words is written with capitals, or in a script without them. Words of one or two Latin letters
    are no names: too many questions have them.
    """
    if len(context) > 60 or _NAME.fullmatch(context.strip()) is None:
        return ()
    words = [word for word in context.split() if word.casefold().strip(".") not in _TITLES]
    if len(words) > 1 and any(word[0].islower() for word in words):
        return ()
    terms = [term for word in words for term in tokenize(word)]
    ends = dict.fromkeys(terms[:1] + terms[-1:])
    return tuple(term for term in ends if term not in ROLES and (len(term) >= _LEAST_LETTERS or not term.isascii()))


@lru_cache(maxsize=4096)
def name_terms(name: str) -> tuple[str, ...]:
    """The index terms of a tag or a title."""
    return tuple(tokenize(name))


_FOLDS = np.frombuffer(ASCII_FOLDS, np.uint8)
_FEWEST = 16
"""Fewer texts are read one by one: 30 us each, where the kernels take 230 us and 13 us for each."""


class Reading(NamedTuple):
    """The result of `read_texts` for n texts.

    Text i has the words vocabulary[p] for p in indices[offsets[i]:offsets[i + 1]], each once, in order of first
    occurrence, with `counts` as `word_counts` has them: indices int32 (m,), counts uint8 (m,), offsets int64
    (n + 1,). `may_have_dates` bool (n,) is False only where `stated_interval` finds nothing.
    """

    vocabulary: Sequence[str]
    indices: NDArray[np.int32]
    counts: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    may_have_dates: NDArray[np.bool_]

    def words(self, text: int) -> list[str]:
        """The distinct words of a text and its context, as `stated_interval` takes them."""
        span = slice(self.offsets[text], self.offsets[text + 1])
        written = self.indices[span][self.counts[span] & TAG_ONLY == 0]
        return list(map(self.vocabulary.__getitem__, written.tolist()))


def read_texts(
    texts: Sequence[str], contexts: Sequence[str | None] | None = None, tags: Sequence[Collection[str]] | None = None
) -> Reading:
    """Read texts with the context and the tags of each; None if no text has any."""
    if len(texts) < _FEWEST:
        return _read_few(texts, contexts or repeat(None), tags or repeat(()))
    folded = [text if text.isascii() else foldable(text) for text in texts]
    if contexts is not None:
        folded = [
            text if context is None else f"{foldable(context)} {text}"
            for context, text in zip(contexts, folded, strict=True)
        ]
    encoded = list(map(str.encode, folded, repeat("utf-8"), repeat("surrogatepass")))
    data, offsets = np.frombuffer(b"".join(encoded), np.uint8), _ends_of(map(len, encoded), len(encoded))
    chunks, entries, ends = kernels.distinct_chunks(data, offsets, _FOLDS)
    terms = terms_of_chunks(chunks.tobytes().decode("utf-8", "surrogatepass").split(" ")[:-1])
    flags = np.zeros(len(terms), np.uint8)
    beside = [(i, tuple(chain(*map(tokenize, some))), TAG_ONLY) for i, some in enumerate(tags or ()) if some]
    beside += [
        (i, names, NAME)
        for i, context in enumerate(contexts or ())
        if context is not None and (names := name_words(context))
    ]
    if beside:
        entries, ends, flags = _with_lists(entries, ends, terms, beside)
    vocabulary: defaultdict[str, int] = defaultdict()
    vocabulary.default_factory = vocabulary.__len__
    words = np.fromiter(map(vocabulary.__getitem__, chain.from_iterable(terms)), np.int32)
    indices, counts, offsets = kernels.count_words(
        entries, ends, words, _ends_of(map(len, terms), len(terms)), flags, len(vocabulary)
    )
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    timely = np.zeros(len(vocabulary), np.bool_)
    timely[[vocabulary[term] for term in time_terms() if term in vocabulary]] = True
    passed = np.concatenate([[0], np.cumsum(timely[indices])])
    named = passed[offsets[1:]] > passed[offsets[:-1]]
    named |= [any(map(text.__contains__, DOTTED_CENTURIES)) for text in texts]
    return Reading([*vocabulary], indices, counts, offsets, named & (lengths <= LONGEST_TEXT))


def _read_few(texts: Sequence[str], contexts: Iterable[str | None], tags: Iterable[Collection[str]]) -> Reading:
    """Read a few texts one by one."""
    vocabulary: dict[str, int] = {}
    indices: list[int] = []
    counts: list[int] = []
    ends, timely, dated = [0], time_terms(), []
    for text, context, text_tags in zip(texts, contexts, tags, strict=False):
        counted = word_counts(written_words(text, context), context, text_tags)
        indices += [vocabulary.setdefault(word, len(vocabulary)) for word in counted]
        counts += counted.values()
        ends.append(len(indices))
        named = not timely.isdisjoint(counted) or DOTTED_CENTURIES[0] in text or DOTTED_CENTURIES[1] in text
        dated.append(named and len(text) <= LONGEST_TEXT)
    arrays = np.array(indices, np.int32), np.array(counts, np.uint8), np.array(ends, np.int64)
    return Reading([*vocabulary], *arrays, np.array(dated, np.bool_))


# Words of tags, or of a context that is a name, which are not read in the chunks of a text: its index, and their flag.
_Beside = tuple[int, tuple[str, ...], int]


def _with_lists(
    entries: NDArray[np.int32], ends: NDArray[np.int64], terms: list[tuple[str, ...]], beside: list[_Beside]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint8]]:
    """Add the terms of `beside` to `terms`; returns entries and their ends with them, and the flags of all."""
    first = len(terms)
    numbers: dict[tuple[tuple[str, ...], int], int] = {}
    added = [numbers.setdefault((words, flag), first + len(numbers)) for _, words, flag in beside]
    terms += [listed for listed, _ in numbers]
    flags = np.zeros(len(terms), np.uint8)
    flags[first:] = [flag for _, flag in numbers]
    owners = np.array([i for i, _, _ in beside])
    entries = np.insert(entries, ends[owners + 1], np.array(added, np.int32))
    ends = ends + np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(ends) - 1))])
    return entries, ends, flags


def _ends_of(lengths: map[int], count: int) -> NDArray[np.int64]:
    ends = np.zeros(count + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, count), out=ends[1:])
    return ends
