from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from recallite_kernels.arguments import Statements
from recallite_kernels.python_backend.changes import order_changes
from tests.unit.kernels import oracle
from tests.unit.kernels.cases import holds, rng, seeds, statements

NOW = np.iinfo(np.int64).max


def stated(*pairs, moments=None):
    """One query's candidates, best first, with a (frame, value) each, told one after another if not said."""
    m = len(pairs)
    frames, values = np.array(pairs, np.uint32).reshape(m, 1, 2).transpose(2, 0, 1).copy()
    moments = np.arange(m) if moments is None else np.array(moments, np.int64)
    return Statements(frames, values, moments, np.arange(m))


def asked(moment=NOW, former=False):
    return moment, int(former)


def order_of(some, when):
    return list(order_changes(some, *when))


@holds(
    seed=seeds, size=st.sampled_from([0, 1, 2, 5, 20]), slots=st.integers(0, 3), frames=st.sampled_from([1, 3, 40]),
    former=st.integers(0, 1),
)  # fmt: skip
def test_the_order_is_the_definition(seed, size, slots, frames, former):
    generator = rng(seed)
    some = statements(generator, size, slots, frames)
    moment = int(generator.integers(-1, 7))
    pairs = [list(zip(*each, strict=True)) for each in zip(some.frames.tolist(), some.values.tolist(), strict=True)]
    began = list(zip(some.moments.tolist(), some.keys.tolist(), strict=True))
    assert order_changes(some, moment, former) == oracle.order_changes(pairs, began, moment, former)


def test_what_holds_now_goes_directly_before_what_it_replaced():
    # Oslo, something else, Bergen: Bergen takes the first place and Oslo follows.
    assert order_of(stated((7, 1), (0, 0), (7, 2)), asked()) == [[2, 0, 1], [2, -1, -1]]


def test_of_two_of_one_moment_the_one_with_the_greater_key_is_later():
    assert order_of(stated((7, 1), (7, 2), moments=[5, 5]), asked()) == [[1, 0], [1, -1]]


def test_the_same_value_again_changes_nothing():
    assert order_of(stated((7, 1), (7, 1), (8, 2)), asked()) == [[0, 1, 2], [-1, -1, -1]]


def test_what_returned_holds_again_and_is_not_replaced():
    # Oslo, Bergen, Oslo again.
    assert order_of(stated((7, 1), (7, 2), (7, 1)), asked()) == [[2, 1, 0], [-1, 2, -1]]


def test_a_moment_asked_about_brings_what_held_then():
    some = stated((7, 1), (7, 2), (7, 3), moments=[10, 20, 30])
    assert order_of(some, asked(25)) == [[1, 0, 2], [2, 2, -1]]
    assert order_of(some, asked(5)) == [[0, 1, 2], [2, 2, -1]]


def test_what_is_former_goes_before_what_holds_the_latest_first():
    assert order_of(stated((7, 3), (7, 2), (7, 1), moments=[30, 20, 10]), asked(former=True))[0] == [1, 2, 0]


def test_what_states_something_else_too_is_not_replaced():
    frames, values = np.array([[7, 8], [7, 0]], np.uint32), np.array([[1, 1], [2, 0]], np.uint32)
    some = Statements(frames, values, np.arange(2), np.arange(2))
    assert order_of(some, asked()) == [[1, 0], [-1, -1]]
