from __future__ import annotations

from itertools import accumulate, chain

import numpy as np
import pytest
from hypothesis import strategies as st

import recallite_kernels as kernels
from recallite_kernels import KernelError
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import holds

pytestmark = pytest.mark.usefixtures("backend")
_numbers = st.one_of(st.integers(1, 300), st.integers(65_534, 131_072), st.integers(2**31 - 9, 2**31 - 1))
lists_of = st.lists(st.lists(_numbers, max_size=6, unique=True).map(sorted), max_size=5)


def behind(lists):
    """Lists one behind the other, and where each begins."""
    return np.array([*chain(*lists)], np.int32), np.array([0, *accumulate(map(len, lists))], np.int64)


@holds(lists=lists_of)
def test_pack_ascending_is_the_definition(lists):
    packed, offsets = kernels.pack_ascending(*behind(lists))
    assert (packed.dtype, offsets.dtype) == (np.uint16, np.int64)
    wanted = [oracle.pack_ascending(each) for each in lists]
    assert [*packed] == [*chain(*wanted)]
    assert offsets.tolist() == [0, *accumulate(map(len, wanted))]


@holds(lists=lists_of)
def test_what_is_unpacked_is_what_was_packed(lists):
    numbers, offsets = behind(lists)
    packed, _ = kernels.pack_ascending(numbers, offsets)
    unpacked = kernels.unpack_ascending(packed, offsets)
    assert unpacked.dtype == np.int32
    assert unpacked.tolist() == numbers.tolist()


@pytest.mark.parametrize("numbers", [[3, 2], [-1, 4], [0, 4], [5, 5]])
def test_numbers_that_do_not_ascend_are_refused(numbers):
    with pytest.raises(KernelError, match="wanted ascending numbers"):
        kernels.pack_ascending(*behind([numbers]))


@pytest.mark.parametrize(
    ("packed", "offsets"),
    [
        ([1, 2], [0, 1]),  # a difference too many
        ([1, 0], [0, 1]),
        ([1, 0], [0, 2]),  # the last one is cut
        ([0, 2], [0, 2]),  # a number too few
        ([*(0,) * 32_768, 32_768], [0, 1]),  # 2^31
        ([65_535] * 32_769, [0, 32_769]),
    ],
)
def test_what_was_not_packed_are_refused(packed, offsets):
    with pytest.raises(KernelError, match=r"packed: not \d+ numbers of int32; wanted what pack_ascending returns"):
        kernels.unpack_ascending(np.array(packed, np.uint16), np.array(offsets))


def test_more_numbers_than_bytes_are_refused():
    with pytest.raises(KernelError, match="offsets: not those of lists in 2 differences"):
        kernels.unpack_ascending(np.ones(2, np.uint16), np.array([0, 3]))


def test_the_greatest_number_and_a_long_list():
    for numbers in ([2**31 - 1], [*range(1, 40_000)], [*range(65_535, 2**31 - 1, 65_535)]):
        packed, _ = kernels.pack_ascending(*behind([[5], numbers]))
        assert kernels.unpack_ascending(packed, np.array([0, 1, 1 + len(numbers)])).tolist() == [5, *numbers]
