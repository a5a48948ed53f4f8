"""Words of texts: what stands between separators, how often each word occurs, and the weights of n-grams.

Texts are bytes behind one another: text i is texts[offsets[i]:offsets[i + 1]], uint8 (t,) with int64 (n + 1,).
"""

from __future__ import annotations

from recallite_kernels import contract, dispatch
from recallite_kernels.contract import I8, I32, I64, U8, KernelError, array

SEPARATOR = 32
"""The byte that `folds` has for what stands between two chunks."""
MOST, TAG_ONLY, NAME = 63, 64, 128
"""The greatest count of a word's byte, and its flags."""
FIRST, FACTOR = 1, 0x9E3779B97F4A7C15
"""The hash of no characters, and what it is multiplied by with each; the latter is 2 ** 64 by the golden ratio."""
MOST_CHARACTERS = 16
"""The most characters of an n-gram."""
_MOST_ROWS = 2**24
_MOST_STATES = 2**31 - 1


def distinct_chunks(texts: U8, offsets: I64, folds: U8) -> tuple[U8, I32, I64]:
    """Return the chunks of texts, each once, and which of them each text has.

    A byte b is read as folds[b], uint8 (256,); a chunk is what stands between two that are read as `SEPARATOR`. A comma
    before a separator within the text is no part of a chunk, and neither is a full stop before that. Returns the chunks
    in order of first occurrence as they are read, a separator behind each, uint8; and the numbers of the chunks of each
    text in order, int32 (m,), with int64 (n + 1,) offsets.
    """
    check_texts(texts, offsets)
    array("folds", folds, contract.u8, 256)
    return dispatch.active.distinct_chunks(texts, offsets, folds)


def sum_ngrams(characters: I32, offsets: I64, weights: I8, shortest: int, longest: int) -> I64:
    """Return the sums of the weights of all n-grams of characters that each text has: int64 (n, classes).

    Text i is characters[offsets[i]:offsets[i + 1]], int32 (t,). An n-gram of `shortest` to `longest` characters has
    the row of `weights`, int8 (2 ** bits, classes) with 1 to 24 bits, that its hash names: the upper bits of h, which
    begins as `FIRST` and becomes (h ^ character) * `FACTOR` mod 2 ** 64 with each: multiplicative hashing (Knuth, TAOCP
    6.4).
    """
    array("characters", characters, contract.i32, None)
    contract.offsets("offsets", offsets, characters.shape[0])
    array("weights", weights, contract.i8, None, None)
    rows = weights.shape[0]
    if rows & (rows - 1) or not 2 <= rows <= _MOST_ROWS:
        raise KernelError(f"weights: {rows} rows; wanted a power of two from 2 to {_MOST_ROWS}")
    longest = contract.whole("longest", longest, 1, MOST_CHARACTERS)
    shortest = contract.whole("shortest", shortest, 1, longest)
    return dispatch.active.sum_ngrams(characters, offsets, weights, shortest, longest)


def count_words(
    entries: I32, offsets: I64, words: I32, word_offsets: I64, flags: U8, vocabulary: int
) -> tuple[I32, U8, I64]:
    """Return the distinct words of each record in order of first occurrence, with a byte for each.

    Record i has the entries entries[offsets[i]:offsets[i + 1]], int32 (m,), and entry e stands for the words
    words[word_offsets[e]:word_offsets[e + 1]], int32 (w,), each below `vocabulary`. flags uint8 (e,) says of an entry
    whether its words are of the text (0), of a tag (`TAG_ONLY`), or words of the record that are a name (`NAME`).

    The byte of a word is how often entries of text and tags have it, at most `MOST`, with `TAG_ONLY` if those of tags
    alone do, and with `NAME` if one of a name has it. Returns int32 (k,), uint8 (k,) and int64 (n + 1,).
    """
    array("entries", entries, contract.i32, None)
    contract.offsets("offsets", offsets, entries.shape[0])
    array("words", words, contract.i32, None)
    contract.offsets("word_offsets", word_offsets, words.shape[0])
    count = word_offsets.shape[0] - 1
    array("flags", flags, contract.u8, count)
    if ((flags != 0) & (flags != TAG_ONLY) & (flags != NAME)).any():
        raise KernelError(f"flags: holds others than 0, {TAG_ONLY} and {NAME}; wanted one of these for each entry")
    vocabulary = contract.whole("vocabulary", vocabulary, 0, _MOST_STATES)
    _within("entries", entries, count)
    _within("words", words, vocabulary)
    return dispatch.active.count_words(entries, offsets, words, word_offsets, flags, vocabulary)


def check_texts(texts: U8, offsets: I64) -> None:
    """Refuse bytes and offsets that are no texts."""
    array("texts", texts, contract.u8, None)
    contract.offsets("offsets", offsets, texts.shape[0])


def _within(name: str, value: I32, n: int) -> None:
    # As unsigned, a negative number is larger than any n.
    if value.size and int(value.view("uint32").max()) >= n:
        raise contract.out_of_range(name, value.astype("int64"), n)
