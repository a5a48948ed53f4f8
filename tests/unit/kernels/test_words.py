from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import KernelError
from recallite_kernels.words import MOST_STRING_BYTES
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


@holds(texts=texts_of, strings=st.lists(_pieces.map(b"".join), max_size=5))
def test_find_strings_is_the_definition(texts, strings):
    marks = (1 << np.arange(len(strings)) % 3).astype(np.uint64)
    found = kernels.find_strings(*behind(texts), *behind(strings), marks)
    assert found.dtype == np.uint64
    assert found.tolist() == oracle.find_strings(texts, strings, marks.tolist())


def test_a_string_is_not_found_across_two_texts():
    found = kernels.find_strings(*behind([b"xab", b"cab", b"abc"]), *behind([b"abc"]), np.array([4], np.uint64))
    assert found.tolist() == [0, 0, 4]


def test_too_many_strings_are_refused():
    strings = behind([bytes(MOST_STRING_BYTES + 1)])
    with pytest.raises(KernelError, match="strings: 4097 bytes; wanted at most 4096"):
        kernels.find_strings(*behind([b"a"]), *strings, np.ones(1, np.uint64))


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
