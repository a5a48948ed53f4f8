"""A snapshot that was damaged, or that was written wrong, is refused before a kernel reads through it."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.index import snapshot
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import scored, unit

FAST = Settings(embedder="none", durability="normal")
PLAIN = Settings(embedder="none", durability="normal", index_snapshot=False)
PREFIX = struct.Struct("<8sII")


@pytest.fixture
def stored(path, monkeypatch) -> Path:
    """The snapshot of a small store with sources, links and a changed record."""
    monkeypatch.setattr(snapshot, "_SMALLEST", 10)
    with Memory(path, settings=FAST) as memory:
        ids = memory.remember_many(
            [
                {"text": f"apple unique{number} {number % 5}", "vector": unit(number), "source": f"s{number % 4}"}
                for number in range(60)
            ]
        )
        memory.link(ids[3], ids[40], strength=0.5)
        memory.update(ids[5], text="apple changed", vector=unit(500))
        memory.recall("apple")
    return Path(f"{path}-index")


def answers(memory):
    questions = {"query": "apple unique7", "vector": unit(7)}, {"query": "changed"}, {"query": "4", "mode": "keyword"}
    return [
        scored(memory.recall(limit=20, **recall_arguments({**question, "half_life_days": 0}))) for question in questions
    ]


def contents(path):
    data = path.read_bytes()
    length = PREFIX.unpack(data[: PREFIX.size])[1]
    return msgspec.json.decode(data[PREFIX.size : PREFIX.size + length])


def test_every_flipped_byte_and_every_cut_is_seen(stored):
    whole = stored.read_bytes()
    intact = {name: each.array.tobytes() for name, each in snapshot.read(str(stored)).arrays.items()}
    sections = contents(stored)["sections"]
    filled = [
        (section["offset"], np.dtype(section["dtype"]).itemsize * int(np.prod(section["shape"])))
        for section in sections
    ]
    generator = np.random.default_rng(1)
    places = [int(generator.integers(begin, begin + size)) for begin, size in filled for _ in range(3) if size]
    places += generator.integers(0, PREFIX.size + 3000, 100).tolist()
    for place in places:
        spoilt = bytearray(whole)
        spoilt[place] ^= 1 << int(generator.integers(0, 8))
        stored.write_bytes(spoilt)
        found = snapshot.read(str(stored))
        # Only what no section fills may differ: it is never read.
        assert found is None or {name: each.array.tobytes() for name, each in found.arrays.items()} == intact
    assert all(place < len(whole) for place in places)
    for size in generator.integers(0, len(whole), 60).tolist():
        stored.write_bytes(whole)
        os.truncate(stored, size)
        assert snapshot.read(str(stored)) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": [10**9]}, {"shape": [-1]}, {"shape": []}, {"capacity": 1}, {"capacity": 10**12}, {"offset": -4096},
        {"offset": 10**12}, {"dtype": "O"}, {"dtype": "no type"}, {"dtype": "<f8"}, {"name": "words.unknown"},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_counts_in_a_header_with_the_right_checksum_are_seen(stored, path, changed):
    data, header = stored.read_bytes(), contents(stored)
    section = next(each for each in header["sections"] if each["name"] == "words._rows")
    encoded = msgspec.json.encode(header)
    section.update(changed)
    spoilt = msgspec.json.encode(header)
    spoilt += b" " * (len(encoded) - len(spoilt))
    prefix = PREFIX.pack(data[:8], len(spoilt), zlib.crc32(spoilt))
    room = min(each["offset"] for each in contents(stored)["sections"]) - len(prefix) - len(spoilt)
    assert room > 0
    stored.write_bytes(prefix + spoilt + bytes(room) + data[len(prefix) + len(spoilt) + room :])
    with Memory(path, settings=PLAIN) as memory:
        wanted = answers(memory)
    with Memory(path, settings=FAST) as memory:
        assert answers(memory) == wanted
        assert memory.store.stats().index["origin"] == "store"


def _first(value):
    def change(array):
        array[0] = value

    return change


def _reverse(array):
    array[:] = array[::-1].copy()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("words._rows", _first(10**6)), ("words._rows", _first(-1)), ("words._rows", _reverse),
        ("words._starts", _first(7)), ("words._starts", lambda starts: starts.__iadd__(1)),
        ("words._segments", _first(3)), ("words._segments", _first(10**6)),
        ("words._tail_offsets", lambda ends: ends.__iadd__(1)),
        ("graph._previous", _first(60_000)), ("graph._next", _first(-2)), ("graph._heads", _first(10**6)),
        ("graph._nexts", _first(10**6)), ("graph._targets", _first(10**6)), ("graph._next", _first(7)),
        ("vectors._owners", _first(10**6)), ("vectors._first_place", _first(10**6)), ("vectors._parts", _first(10**6)),
        ("vectors._parts", _first(-1)), ("vectors._run_places", _first(3)), ("tokens.bare", _first(5)),
        ("table.kind_numbers", _first(0)), ("table._recorded_until._rows", _first(10**6)), ("vectors.rows", _first(7)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_arrays_that_do_not_fit_together_are_seen_though_their_checksums_are_right(stored, path, name, change):
    found = snapshot.read(str(stored))
    arrays = {each: array.array.copy() for each, array in found.arrays.items()}
    assert arrays[name].size
    change(arrays[name])
    _written(stored, found.header, arrays, path)


@pytest.mark.parametrize(
    "name",
    [
        "words._lengths", "words._counts", "words._terms", "words._starts", "words._segments", "graph._nexts",
        "vectors._codes", "vectors._residuals", "table._ids", "table._frames", "table._standing", "table._positioned",
        "table._scopes",
    ],
)  # fmt: skip
def test_an_array_that_lacks_its_last_entry_is_seen(stored, path, name):
    found = snapshot.read(str(stored))
    arrays = {each: array.array.copy() for each, array in found.arrays.items()}
    arrays[name] = arrays[name][:-1]
    _written(stored, found.header, arrays, path)


def _written(stored, header, arrays, path):
    """Writes the snapshot, whose store answers as without it."""
    stored.unlink()
    snapshot.write(str(stored), header, arrays)
    assert snapshot.read(str(stored)) is not None
    with Memory(path, settings=PLAIN) as memory:
        wanted = answers(memory)
    with Memory(path, settings=FAST) as memory:
        assert answers(memory) == wanted
        assert memory.store.stats().index["origin"] == "store"
