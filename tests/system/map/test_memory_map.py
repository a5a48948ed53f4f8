"""The map of memories: what it keeps near, what it leaves out, and when it is computed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.review.map import memory_map
from recallite.review.map.child import Child
from recallite.review.map.memory_map import MemoryMap
from recallite.store.map_file import POINT
from recallite.store.sqlite.keys import ciphers_version
from tests.conftest import PLAIN
from tests.system.map.support import EACH, GROUPS, distances, grouped, near, trustworthiness
from tests.unit.memory.support import WordEmbedder


@pytest.fixture
def store(path):
    """A file with groups of vectors, and their ids."""
    with Memory(path, embedder=WordEmbedder()) as opened:
        ids = grouped(opened)
        yield opened, ids


def computed(memory, method="pca"):
    """A map that is ready."""
    found = MemoryMap(memory)
    found.start(method)
    assert found.wait()
    assert found.state().status == "ready", found.state().failure
    return found


def places(points):
    return dict(zip(points.ids, zip(points.x.tolist(), points.y.tolist(), strict=True), strict=True))


def test_without_a_map_there_are_no_points(store):
    memory, ids = store
    found = MemoryMap(memory)
    assert found.state().status == "absent"
    points = found.points()
    assert (len(points), points.missing) == (0, len(ids))


def test_groups_stay_together(store):
    memory, ids = store
    found = computed(memory)
    points = found.points()
    assert points.ids == ids
    assert points.x.dtype == points.y.dtype == np.float32
    plane = np.stack([points.x, points.y], axis=1)
    assert plane.min() >= 0
    assert plane.max() <= 1
    group = np.array([int(points.scopes[number].removeprefix("/groups/")) for number in points.scope])
    assert group.tolist() == [number % GROUPS for number in range(len(ids))]
    apart = distances(plane)
    same = group[:, None] == group[None]
    assert apart[same].mean() < apart[~same].mean() / 3
    assert [points.sources[number] for number in points.source] == [f"source {number}" for number in group]
    assert points.kinds == ["memory"]
    state = found.state()
    assert (state.method, state.placed, state.added, state.failure) == ("pca", len(ids), 0, None)


def test_a_map_is_computed_the_same_again(store):
    memory, _ = store
    first = computed(memory).points()
    assert places(computed(memory).points()) == places(first)


def test_what_is_new_stands_among_its_neighbours(store):
    memory, _ = store
    found = computed(memory)
    before = places(found.points())
    new = memory.remember("a newcomer", vector=near(2, 77), scope="/groups/2").id
    points = found.points()
    after = places(points)
    assert {id: after[id] for id in before} == before
    plane = np.stack([points.x, points.y], axis=1)
    nearest = np.argsort(distances(plane)[points.ids.index(new)])[1:6]
    assert {points.scopes[points.scope[place]] for place in nearest} == {"/groups/2"}
    state = found.state()
    assert (state.placed, state.added) == (len(before) + 1, 1)


def test_a_new_text_moves_its_memory(store):
    memory, ids = store
    found = computed(memory)
    before = places(found.points())
    memory.update(ids[0], text="another text", vector=near(3, 5))
    after = places(found.points())
    group = {id: number % GROUPS for number, id in enumerate(ids)}

    def centre(number):
        return np.mean([after[id] for id in ids[1:] if group[id] == number], axis=0)

    moved = np.array(after[ids[0]])
    assert np.linalg.norm(moved - centre(3)) < np.linalg.norm(moved - centre(0)) / 3
    assert {id: after[id] for id in ids[1:]} == {id: before[id] for id in ids[1:]}


def test_the_map_is_kept(path, monkeypatch):
    with Memory(path, embedder=WordEmbedder()) as memory:
        grouped(memory)
        before = places(computed(memory).points())
    assert Path(path + "-map").stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(memory_map, "Child", None)  # nothing is computed
    with Memory(path, embedder=WordEmbedder()) as memory:
        found = MemoryMap(memory)
        assert found.state().status == "ready"
        assert places(found.points()) == before


def test_a_scoped_handle_sees_its_scope_alone(store):
    memory, ids = store
    found = computed(memory)
    inside = found.points(memory.scoped("/groups/1"))
    assert inside.ids == ids[1::GROUPS]
    assert inside.scopes == ["/"]
    assert inside.sources == ["source 1"]
    assert found.points(memory.scoped("/groups"), scope="/3").ids == ids[3::GROUPS]
    assert len(found.points(memory.scoped("/elsewhere"))) == 0
    assert MemoryMap(memory.scoped("/groups/2")).points().ids == ids[2::GROUPS]
    with Memory(":memory:", settings=PLAIN) as other, pytest.raises(InvalidInput, match="another store"):
        found.points(other)


def test_a_filter_chooses_points(store):
    memory, ids = store
    found = computed(memory)
    memory.update(ids[0], tags=["chosen"])
    assert found.points(tags=["chosen"]).ids == [ids[0]]
    successor = memory.remember("instead of it", vector=near(0, 3), scope="/groups/0", supersedes=ids[0]).id
    shown = found.points()
    assert successor in shown.ids
    assert ids[0] not in shown.ids
    assert ids[0] in found.points(include_superseded=True).ids
    with pytest.raises(InvalidInput, match="as_of"):
        found.points(as_of="2020-01-01")


def test_chunks_of_documents_have_their_kind(store):
    memory, _ = store
    memory.knowledge.ingest(b"# Boathouses\n\nThey stand by the water.\n", name="boathouses.md")
    points = computed(memory).points()
    assert [points.kinds[number] for number in points.kind].count("chunk") == memory.count(kinds="chunk") == 1


@pytest.mark.parametrize("receipt", [False, True])
@pytest.mark.parametrize("open_map", [False, True])
def test_a_forgotten_memory_leaves_the_map_and_its_file(path, receipt, open_map):
    with Memory(path, embedder=WordEmbedder()) as memory:
        ids = grouped(memory)
        found = computed(memory)
        before = places(found.points())
        x, y = before[ids[5]]
        with memory._engine.store.read() as reader:
            row_id = reader.records.find_ids([ids[5]], "/")[ids[5]]
        traces = [np.array([x, y], dtype="<f4").tobytes(), np.array([row_id], dtype="<i8").tobytes()]
        file = Path(path + "-map")
        assert all(trace in file.read_bytes() for trace in traces)
        if not open_map:
            del found
        gone = memory.forget(ids[5], receipt=receipt)
        assert [trace for trace in traces if trace in file.read_bytes()] == []
        if receipt:
            assert gone.receipt.complete
            assert file.name in gone.receipt.files
        again = found if open_map else MemoryMap(memory)
        assert places(again.points()) == {id: point for id, point in before.items() if id != ids[5]}
        assert [trace for trace in traces if trace in file.read_bytes()] == []


def test_a_purged_version_leaves_the_file(path):
    with Memory(path, embedder=WordEmbedder()) as memory:
        ids = grouped(memory)
        found = computed(memory)
        trace = np.array(places(found.points())[ids[0]], dtype="<f4").tobytes()
        file = Path(path + "-map")
        assert trace in file.read_bytes()
        memory.remember("instead of it", id=ids[0], vector=near(1, 9), on_existing="replace")
        assert trace not in file.read_bytes()


def test_a_damaged_file_is_as_good_as_none(path):
    with Memory(path, embedder=WordEmbedder()) as memory:
        grouped(memory)
        before = places(computed(memory).points())
        file = Path(path + "-map")
        whole = file.read_bytes()
        for damaged in (b"", whole[:30], b"X" + whole[1:], whole[:20] + b"~" + whole[21:]):
            file.write_bytes(damaged)
            assert MemoryMap(memory).state().status == "absent"
        assert places(computed(memory).points()) == before
        assert file.stat().st_size == len(whole)


def test_a_damaged_point_is_placed_again(path):
    with Memory(path, embedder=WordEmbedder()) as memory:
        ids = grouped(memory)
        before = places(computed(memory).points())
        file = Path(path + "-map")
        whole = file.read_bytes()
        first = len(whole) - POINT.itemsize * len(ids)
        file.write_bytes(whole[: first + 17] + bytes([whole[first + 17] ^ 1]) + whole[first + 18 :])
        found = MemoryMap(memory)
        after = places(found.points())
        assert {id: after[id] for id in ids[1:]} == {id: before[id] for id in ids[1:]}
        assert (found.state().placed, found.state().added) == (len(ids), 1)


def test_where_most_is_new_the_map_is_computed_again(store):
    memory, ids = store
    found = computed(memory)
    memory.remember_many({"text": f"later {number}", "vector": near(9, number)} for number in range(EACH * GROUPS + 1))
    assert len(found.points()) == len(ids)
    assert found.wait()
    state = found.state()
    assert (state.status, state.placed, state.added) == ("ready", 2 * len(ids) + 1, 0)


def test_a_map_of_another_embedder_is_none(path):
    with Memory(path, embedder=WordEmbedder()) as memory:
        grouped(memory)
        computed(memory)
    with Memory(path, embedder=WordEmbedder("others")) as memory:
        memory.store.reembed()
        found = MemoryMap(memory)
        assert found.state().status == "absent"
        assert len(found.points()) == 0


def test_without_vectors_it_says_so():
    with Memory(":memory:", settings=PLAIN) as memory:
        memory.remember("a text without a vector")
        found = MemoryMap(memory)
        found.start("pca")
        assert found.wait()
        state = found.state()
        assert (state.status, state.failure) == (
            "failed", "no memory has a vector: store some with an embedder first",
        )  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_memories_have_points_too(count):
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.remember_many({"text": f"text {number}", "vector": near(number, 0)} for number in range(count))
        found = computed(memory, None)
        assert len(found.points()) == count
        assert found.state().method == "pca"


def test_what_is_written_inside_a_transaction_is_placed_after_it(store):
    memory, ids = store
    found = computed(memory)
    with memory.transaction():
        memory.remember("not yet", vector=near(1, 50))
        assert (len(found.points()), found.points().missing) == (len(ids), 1)
    assert (len(found.points()), found.points().missing) == (len(ids) + 1, 0)


@pytest.mark.skipif(ciphers_version() is None, reason="apsw-sqlite3mc is not installed")
def test_an_encrypted_store_has_no_file_beside_it(path):
    with Memory(path, embedder=WordEmbedder(), key="a passphrase") as memory:
        ids = grouped(memory)
        found = computed(memory)
        memory.remember("a newcomer", vector=near(2, 77))
        assert len(found.points()) == len(ids) + 1
        assert not [file for file in Path(path).parent.iterdir() if "-map" in file.name]


@pytest.mark.skipif(ciphers_version() is None, reason="apsw-sqlite3mc is not installed")
def test_encrypting_a_store_removes_its_map(store):
    memory, ids = store
    found = computed(memory)
    file = Path(memory.path + "-map")
    assert file.exists()
    memory.store.rekey("a passphrase")
    assert not file.exists()
    memory.remember("a newcomer", vector=near(2, 77))
    assert len(found.points()) == len(ids) + 1
    assert not file.exists()


def test_without_umap_learn_it_is_principal_components(store, monkeypatch):
    memory, _ = store
    monkeypatch.setitem(sys.modules, "umap", None)
    assert computed(memory, None).state().method == "pca"
    with pytest.raises(InvalidInput, match=r"umap-learn is not installed: pip install '.\[map\]'"):
        MemoryMap(memory).start("umap")
    with pytest.raises(InvalidInput, match="method"):
        MemoryMap(memory).start("tsne")


def test_points_as_json_values(store):
    memory, ids = store
    points = computed(memory).points()
    said = points.to_dict()
    assert said["ids"] == ids
    for axis in "xy":
        assert said[axis] == [round(float(value), 4) for value in getattr(points, axis)]
    assert {len(said[name]) for name in ("ids", "x", "y", "scope", "kind", "source")} == {len(ids)}


@pytest.mark.skipif(importlib.util.find_spec("umap") is None, reason="umap-learn is not installed")
def test_umap_keeps_neighbours_better_than_principal_components():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        ids = grouped(memory, each=15, groups=8)
        found = computed(memory, "umap")
        assert found.state().method == "umap"
        vectors = memory.vectors(ids)
        stacked = np.stack([vectors[id][0] for id in ids])
        kept = {}
        for method in ("umap", "pca"):
            points = computed(memory, method).points() if method == "pca" else found.points()
            plane = np.stack([points.x, points.y], axis=1)
            kept[method] = trustworthiness(stacked, plane, 5)
        assert kept["umap"] > 0.9
        assert kept["umap"] > kept["pca"]


def test_a_handle_that_was_closed_computes_no_more(store):
    memory, _ = store
    found = MemoryMap(memory)
    found.close()
    found.close()
    assert found.start("pca").status == "absent"
    assert Child().pid is None
