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
_numbers = st.one_of(st.integers(0, 300), st.integers(0, 2**31 - 1))
lists_of = st.lists(st.lists(_numbers, max_size=6).map(sorted), max_size=5)


def behind(lists):
    """Lists one behind the other, and where each begins."""
    return np.array([*chain(*lists)], np.int32), np.array([0, *accumulate(map(len, lists))], np.int64)


@holds(lists=lists_of)
def test_pack_ascending_is_the_definition(lists):
    packed, offsets = kernels.pack_ascending(*behind(lists))
    assert (packed.dtype, offsets.dtype) == (np.uint8, np.int64)
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


@pytest.mark.parametrize("numbers", [[3, 2], [-1, 4]])
def test_numbers_that_do_not_ascend_are_refused(numbers):
    with pytest.raises(KernelError, match="wanted ascending numbers"):
        kernels.pack_ascending(*behind([numbers]))


@pytest.mark.parametrize(
    ("packed", "offsets"),
    [
        (b"\x01\x02", [0, 1]),  # a byte too many
        (b"\x01\x82", [0, 2]),  # the last one is cut
        (b"\x81\x02", [0, 2]),  # a number too few
        (b"\x81\x80\x80\x80\x80\x00", [0, 1]),  # six bytes
        (b"\xff\xff\xff\xff\x08", [0, 1]),  # 2^31 and more
        (b"\xff\xff\xff\xff\x07\x01", [0, 2]),
    ],
)
def test_bytes_that_were_not_packed_are_refused(packed, offsets):
    with pytest.raises(KernelError, match=r"packed: not \d numbers of int32; wanted what pack_ascending returns"):
        kernels.unpack_ascending(np.frombuffer(packed, np.uint8), np.array(offsets))


def test_more_numbers_than_bytes_are_refused():
    with pytest.raises(KernelError, match="offsets: not those of lists in 2 bytes"):
        kernels.unpack_ascending(np.zeros(2, np.uint8), np.array([0, 3]))
