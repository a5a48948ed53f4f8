from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import KernelError
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import holds, rng, seeds

pytestmark = pytest.mark.usefixtures("backend")
LOWER = np.frombuffer(
    bytes(32 if chr(b) in " !\n" else ord(chr(b).lower()) if b < 128 else b for b in range(256)), np.uint8
)
_pieces = st.lists(
    st.sampled_from([b"a", b"B", b"ab", b",", b".", b" ", b"!", b"\n", b"\xc3\xa9", b"c++"]), max_size=12
)
texts_of = st.lists(_pieces.map(b"".join), max_size=6)


def behind(texts):
    """Texts one behind the other, and where each begins."""
    return np.frombuffer(b"".join(texts), np.uint8), np.array([0, *accumulate(map(len, texts))], np.int64)


def lists(*some):
    """Lists of numbers one behind the other, and where each begins."""
    return np.array([number for each in some for number in each], np.int32), behind(
        some and [bytes(len(each)) for each in some]
    )[1]


def chunks_of(*texts):
    chunks, numbers, offsets = kernels.distinct_chunks(*behind(texts), LOWER)
    return chunks.tobytes(), numbers.tolist(), offsets.tolist()


@holds(texts=texts_of)
def test_distinct_chunks_is_the_definition(texts):
    chunks, numbers, offsets = kernels.distinct_chunks(*behind(texts), LOWER)
    assert (chunks.dtype, numbers.dtype, offsets.dtype) == (np.uint8, np.int32, np.int64)
    wanted = oracle.distinct_chunks([[*text] for text in texts], LOWER.tolist())
    assert ([*chunks], numbers.tolist(), offsets.tolist()) == wanted


def test_a_comma_and_then_a_full_stop_before_a_separator_are_no_part_of_a_chunk():
    assert chunks_of(b"one., two. 3. one, two.") == (b"one two 3 two. ", [0, 1, 2, 0, 3], [0, 5])


def test_more_distinct_chunks_than_texts_of_this_length_have():
    texts = [b" ".join(b"%x" % number for number in range(5000))]
    chunks, numbers, _ = kernels.distinct_chunks(*behind(texts), LOWER)
    assert chunks.tobytes() == texts[0] + b" "
    assert numbers.tolist() == [*range(5000)]


@holds(
    texts=st.lists(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=9), max_size=5), seed=seeds,
    rows=st.sampled_from([2, 16, 1024]), classes=st.integers(0, 3), sizes=st.sampled_from([(1, 1), (2, 5), (3, 16)]),
)  # fmt: skip
def test_sum_ngrams_is_the_definition(texts, seed, rows, classes, sizes):
    weights = rng(seed).integers(-128, 128, (rows, classes)).astype(np.int8)
    sums = kernels.sum_ngrams(*lists(*texts), weights, *sizes)
    assert (sums.dtype, sums.shape) == (np.int64, (len(texts), classes))
    assert sums.tolist() == oracle.sum_ngrams(texts, weights.tolist(), *sizes)


def test_an_ngram_is_of_one_text():
    weights = np.ones((4, 1), np.int8)
    assert kernels.sum_ngrams(*lists([1, 2, 3], [], [4, 5]), weights, 2, 2).tolist() == [[2], [0], [1]]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weights": np.zeros((3, 1), np.int8)}, "weights: 3 rows; wanted a power of two from 2 to 16777216"),
        ({"longest": 17}, "longest: 17; wanted from 1 to 16"),
        ({"shortest": 6}, "shortest: 6; wanted from 1 to 5"),
    ],
)
def test_weights_and_sizes_that_do_not_fit_are_refused(changed, message):
    characters, offsets = lists([1, 2, 3])
    fitting = {"weights": np.zeros((4, 1), np.int8), "shortest": 2, "longest": 5}
    with pytest.raises(KernelError, match=message):
        kernels.sum_ngrams(characters, offsets, **{**fitting, **changed})


@holds(seed=seeds, records=st.integers(0, 5), entries=st.integers(1, 6), vocabulary=st.sampled_from([1, 4, 30]))
def test_count_words_is_the_definition(seed, records, entries, vocabulary):
    generator = rng(seed)
    of_entries = [generator.integers(0, vocabulary, generator.integers(0, 4)).tolist() for _ in range(entries)]
    of_records = [generator.integers(0, entries, generator.integers(0, 90)).tolist() for _ in range(records)]
    flags = generator.choice(np.array([0, 0, 64, 128], np.uint8), entries)
    places, counts, offsets = kernels.count_words(*lists(*of_records), *lists(*of_entries), flags, vocabulary)
    assert (places.dtype, counts.dtype, offsets.dtype) == (np.int32, np.uint8, np.int64)
    wanted = oracle.count_words(of_records, of_entries, flags.tolist())
    assert offsets.tolist() == [0, *accumulate(map(len, wanted))]
    assert list(zip(places.tolist(), counts.tolist(), strict=True)) == [
        pair for each in wanted for pair in each.items()
    ]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"entries": np.array([2], np.int32)}, "entries: holds 2; wanted 0 to 1"),
        ({"words": np.array([0, -1], np.int32)}, "words: holds -1; wanted 0 to 2"),
        ({"flags": np.array([0, 3], np.uint8)}, "flags: holds others than 0, 64 and 128"),
    ],
)
def test_words_that_do_not_fit_are_refused(changed, message):
    fitting = {
        "entries": np.zeros(1, np.int32), "offsets": np.array([0, 1]), "words": np.zeros(2, np.int32),
        "word_offsets": np.array([0, 1, 2]), "flags": np.zeros(2, np.uint8), "vocabulary": 3,
    }  # fmt: skip
    with pytest.raises(KernelError, match=message):
        kernels.count_words(**{**fitting, **changed})
