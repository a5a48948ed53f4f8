"""Values of pickles, of which nothing is run."""

from __future__ import annotations

import pickle
import random

import pytest

from recallite.errors import InvalidInput
from recallite_connect.importers.mem0 import Opaque, plain_values

VALUE = {"a": [1, -5, 2**40, 2**70, 1.5, None, True, False, "é\n", b"x", "a"], "b": ({}, (1, 2, 3, 4), {7}), "a2": "a"}


class Dangerous:
    """Would write a file if it were unpickled."""

    def __reduce__(self):
        return (open, ("written-by-a-pickle", "w"))


class Stateful:
    """Has a state."""

    def __init__(self):
        self.payload = {"text": "kept"}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_are_as_they_were(protocol):
    expected = {**VALUE, "b": ({}, (1, 2, 3, 4), [7])}
    values = {name: value for name, value in VALUE.items() if protocol >= 4 or name != "b"}
    found = plain_values(pickle.dumps(values, protocol=protocol))
    if protocol == 2:  # which says bytes as a call
        assert isinstance(found["a"].pop(9), Opaque)
        expected["a"] = [each for each in VALUE["a"] if each != b"x"]
    assert found == {name: expected[name] for name in values}


def test_objects_have_their_state_and_nothing_is_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = plain_values(pickle.dumps([Stateful(), Dangerous()]))
    assert (found[0].state, found[1].state) == ({"payload": {"text": "kept"}}, None)
    assert list(tmp_path.iterdir()) == []


def test_what_would_grow_without_bound_is_refused():
    bomb = ["x"]
    for _ in range(40):
        bomb = [bomb, bomb]
    itself = []
    itself.append(itself)
    text = "x" * (1 << 20)
    for value in (bomb, itself, [text] * 100):
        with pytest.raises(InvalidInput, match="share values"):
            plain_values(pickle.dumps(value))
    with pytest.raises(InvalidInput, match="at most"):
        plain_values(bytes(17 << 20))


def test_what_is_no_pickle_is_refused():
    whole = pickle.dumps(VALUE)
    rng = random.Random(5)
    for _ in range(500):
        broken = bytearray(whole[: rng.randrange(len(whole))])
        for _ in range(rng.randrange(4)):
            broken[rng.randrange(len(broken) or 1) : 1] = bytes([rng.randrange(256)])
        with pytest.raises(InvalidInput):
            plain_values(bytes(broken))
    with pytest.raises(InvalidInput):
        plain_values(b"\x80\x04r\xff\xff\xff\xff.")
