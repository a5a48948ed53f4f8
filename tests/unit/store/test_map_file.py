"""The file of the map: what is written is read, what is erased is gone, and damage is noticed."""

from __future__ import annotations

import os

import numpy as np
import pytest

from recallite.store import map_file
from recallite.store.map_file import POINT, MapHeader

HEADER = MapHeader(method="pca", asked="umap", computed_at=1_750_000_000_000_000, fingerprint="model:16")


def points(count):
    rows = np.zeros(count, dtype=POINT)
    rows["id"] = np.arange(1, count + 1) * 3
    rows["recorded_from"] = 1_750_000_000_000_000 + np.arange(count)
    rows["x"], rows["y"] = np.linspace(0, 1, count), np.linspace(1, 0, count)
    rows["added"] = np.arange(count) % 2
    return rows


FIELDS = ["id", "recorded_from", "x", "y", "added"]


@pytest.fixture
def written(path):
    map_file.write(path, HEADER, points(50))
    return path


def content(path):
    with open(path, "rb") as file:
        return file.read()


def test_what_is_written_is_read(written):
    found = map_file.read(written)
    assert found.header == HEADER
    assert (found.points[FIELDS] == points(50)[FIELDS]).all()
    assert len(content(written)) < 200 + 50 * POINT.itemsize


def test_a_file_is_not_overwritten(written):
    with pytest.raises(FileExistsError):
        map_file.write(written, HEADER, points(1))


def test_there_may_be_no_points_and_no_file(path):
    assert map_file.read(path) is None
    map_file.erase(path, [1])
    map_file.write(path, HEADER, points(0))
    assert len(map_file.read(path).points) == 0


def test_erased_points_are_overwritten(written):
    gone = points(50)[[0, 7, 49]]
    traces = [row.tobytes()[:24] for row in gone]
    before = content(written)
    assert all(trace in before for trace in traces)
    map_file.erase(written, [*gone["id"].tolist(), 1, 10**12])
    after = content(written)
    assert len(after) == len(before)
    assert not any(row[each].tobytes() in after for row in gone for each in ("id", "recorded_from"))
    assert map_file.read(written).points["id"].tolist() == [
        number for number in points(50)["id"].tolist() if number not in gone["id"]
    ]


def test_every_damaged_byte_costs_one_point_or_the_file(written):
    before = content(written)
    whole = points(50)
    start = len(before) - 50 * POINT.itemsize
    for place in range(0, len(before), 5):
        with open(written, "wb") as file:
            file.write(before[:place] + bytes([before[place] ^ 0x40]) + before[place + 1 :])
        found = map_file.read(written)
        if place < start:
            assert found is None, place
        else:
            kept = np.delete(whole, (place - start) // POINT.itemsize)
            assert (found.points[FIELDS] == kept[FIELDS]).all(), place


@pytest.mark.parametrize("length", [0, 5, 16, 40])
def test_a_truncated_header_is_no_map(written, length):
    before = content(written)
    with open(written, "wb") as file:
        file.write(before[:length])
    assert map_file.read(written) is None
    map_file.erase(written, [3])  # what cannot be read cannot be overwritten in part
    assert not os.path.exists(written)


def test_a_truncated_file_has_its_first_points(written):
    before = content(written)
    with open(written, "wb") as file:
        file.write(before[: -2 * POINT.itemsize - 3])
    assert map_file.read(written).points["id"].tolist() == points(50)["id"].tolist()[:47]
