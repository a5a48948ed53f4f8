"""The map of memories: what it keeps near, and whom it shows."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite_server import memory_map
from recallite_server.memory_map import MemoryMap, principal_axes
from tests.conftest import PLAIN
from tests.unit.core.memory.support import WordEmbedder, unit

GROUPS, PER_GROUP = 4, 12


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=WordEmbedder()) as opened:
        yield opened


@pytest.fixture
def ids(memory):
    """Memories of each group in turn, each group in a scope and a source of its own."""
    return memory.remember_many(
        {
            "text": f"memory {number} of group {number % GROUPS}", "vector": near(number % GROUPS, number),
            "scope": f"/groups/{number % GROUPS}", "source": f"source {number % GROUPS}",
        }
        for number in range(PER_GROUP * GROUPS)
    )  # fmt: skip


def near(group, seed, noise=0.15):
    """A unit vector near the centre of a group."""
    vector = unit(group) + noise * unit(1_000 + seed)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def distances(points):
    plane = np.stack([points.x, points.y], axis=1).astype(np.float64)
    return np.sqrt(((plane[:, None] - plane[None]) ** 2).sum(axis=2))


def places(points):
    return dict(zip(points.ids, zip(points.x.tolist(), points.y.tolist(), strict=True), strict=True))


def test_groups_stay_together(memory, ids):
    points = MemoryMap(memory).points()
    assert points.ids == ids
    assert points.x.dtype == points.y.dtype == np.float32
    assert (points.x.min(), points.x.max()) == pytest.approx((0, 1), abs=1e-6)  # the wider direction
    assert 0 <= points.y.min() < points.y.max() <= 1
    group = np.array([int(points.scopes[number].removeprefix("/groups/")) for number in points.scope])
    assert group.tolist() == [number % GROUPS for number in range(len(ids))]
    same = group[:, None] == group[None]
    assert distances(points)[same].mean() < distances(points)[~same].mean() / 3
    assert [points.sources[number] for number in points.source] == [f"source {number}" for number in group]
    assert (points.kinds, set(points.kind.tolist())) == (["memory"], {0})
    assert (points.total, points.sampled) == (len(ids), False)
    together = [set(points.cluster[group == number].tolist()) for number in range(GROUPS)]
    assert sorted(map(len, together)) == [1] * GROUPS
    assert len(set.union(*together)) == len(points.clusters) == GROUPS


def test_the_same_memories_have_the_same_places(memory, ids):
    assert places(MemoryMap(memory).points()) == places(MemoryMap(memory).points())


def test_a_scope_is_placed_again_only_after_a_change(memory, ids, monkeypatch):
    calls = []

    def counted(sample):
        calls.append(len(sample))
        return principal_axes(sample)

    monkeypatch.setattr(memory_map, "principal_axes", counted)
    plane = MemoryMap(memory)
    inside = memory.scoped("/groups/2")
    for _ in range(2):
        assert len(plane.points()) == len(ids)
        assert plane.points(inside).ids == ids[2::GROUPS]
    assert calls == [len(ids), PER_GROUP]
    new = memory.remember(NewRecord("a newcomer", vector=near(2, 77), scope="/groups/2")).id
    points = plane.points()
    nearest = np.argsort(distances(points)[points.ids.index(new)])[1:6]
    assert {points.scopes[points.scope[place]] for place in nearest} == {"/groups/2"}
    memory.forget(ids[5])
    assert set(plane.points().ids) == {*ids, new} - {ids[5]}
    assert calls == [len(ids), PER_GROUP, len(ids) + 1, len(ids)]


def test_few_scopes_are_kept(memory, ids, monkeypatch):
    monkeypatch.setattr(memory_map, "_MAX_SCOPES", 2)
    plane = MemoryMap(memory)
    for scope in ("/groups/0", "/groups/1", "/groups/2"):
        plane.points(memory.scoped(scope))
    assert [*plane._planes] == ["/groups/1", "/groups/2"]


def test_a_scoped_handle_sees_its_scope_alone(memory, ids):
    plane = MemoryMap(memory)
    inside = plane.points(memory.scoped("/groups/1"))
    assert (inside.ids, inside.scopes, inside.sources) == (ids[1::GROUPS], ["/"], ["source 1"])
    assert plane.points(memory.scoped("/groups"), scope="/3").ids == ids[3::GROUPS]
    assert len(plane.points(memory.scoped("/elsewhere"))) == 0
    assert MemoryMap(memory.scoped("/groups/2")).points().ids == ids[2::GROUPS]
    with Memory(":memory:", settings=PLAIN) as other, pytest.raises(InvalidInput, match="another store"):
        plane.points(other)


def test_a_filter_selects_points(memory, ids):
    plane = MemoryMap(memory)
    memory.update(ids[0], tags=["chosen"])
    assert plane.points(tags=["chosen"]).ids == [ids[0]]
    successor = memory.remember(NewRecord("instead of it", vector=near(0, 3), scope="/groups/0", supersedes=ids[0])).id
    assert successor in plane.points().ids
    assert ids[0] not in plane.points().ids
    assert ids[0] in plane.points(include_superseded=True).ids
    with pytest.raises(InvalidInput, match="as_of"):
        plane.points(as_of="2020-01-01")


def test_chunks_of_documents_have_their_kind(memory, ids):
    memory.knowledge.ingest(b"# Boathouses\n\nThey stand by the water.\n", name="boathouses.md")
    points = MemoryMap(memory).points()
    assert [points.kinds[number] for number in points.kind].count("chunk") == memory.count(kinds="chunk") == 1


def test_of_many_memories_a_sample_has_points(memory, ids, monkeypatch):
    monkeypatch.setattr(memory_map, "MAX_POINTS", 20)
    points = MemoryMap(memory).points()
    assert (points.ids, points.total, points.sampled) == (ids[::3], len(ids), True)


def test_a_memory_without_a_vector_has_no_point():
    with Memory(":memory:", settings=PLAIN) as memory:
        memory.remember("a text without a vector")
        points = MemoryMap(memory).points()
        assert (points.ids, points.total) == ([], 1)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_few_memories_have_points_too(memory, count):
    memory.remember_many({"text": f"text {number}", "vector": near(number, 0)} for number in range(count))
    points = MemoryMap(memory).points()
    assert len(points) == count
    assert np.isfinite(points.x).all()


def test_what_a_transaction_has_written_is_shown_inside_it(memory, ids):
    plane = MemoryMap(memory)
    with suppress(ZeroDivisionError), memory.transaction():
        memory.remember(NewRecord("not yet", vector=near(1, 50)))
        assert len(plane.points()) == len(ids) + 1
        raise ZeroDivisionError
    assert len(plane.points()) == len(ids)


def test_points_as_json_values(memory, ids):
    points = MemoryMap(memory).points()
    values = points.to_dict()
    assert values["ids"] == ids
    for axis in "xy":
        assert values[axis] == [round(float(value), 4) for value in getattr(points, axis)]
    assert {len(values[name]) for name in ("ids", "x", "y", "scope", "kind", "source")} == {len(ids)}


@pytest.mark.parametrize(("count", "dimension"), [(200, 48), (3, 48), (40, 3), (40, 2), (40, 1)])
def test_the_axes_are_those_of_the_covariance(count, dimension):
    vectors = np.random.default_rng(1).normal(size=(count, dimension)) * np.linspace(3, 1, dimension) ** 2
    axes = principal_axes(vectors.astype(np.float32))
    wanted = np.linalg.eigh(np.cov(vectors.T).reshape(dimension, dimension)).eigenvectors[:, ::-1][:, :2]
    alike = np.abs((axes[:, : wanted.shape[1]] * wanted).sum(axis=0))
    assert alike == pytest.approx(np.ones(wanted.shape[1]), abs=1e-3)
    assert axes.shape == (dimension, 2)
    assert (axes.sum(axis=0)[wanted.shape[1] :] == 0).all()


def test_vectors_that_are_all_the_same_stand_in_the_middle(memory):
    memory.remember_many({"text": f"text {number}", "vector": unit(1)} for number in range(5))
    points = MemoryMap(memory).points()
    assert {*points.x.tolist(), *points.y.tolist()} == {0.5}


def test_what_may_still_hold_is_marked_and_what_was_surely_replaced_is_counted(memory):
    memory.remember("Dana lives in Oslo")
    memory.remember("Dana lives in Bergen now")
    jenkins = memory.remember("We use Jenkins").id
    assert memory.remember("We use GitHub Actions now").supersedes == (jenkins,)
    points = MemoryMap(memory).points()
    assert [points.ids[place] for place in points.superseded] == [jenkins]
    assert (points.left_out, points.total) == (1, 3)
    everything = MemoryMap(memory).points(include_superseded=True)
    assert (everything.left_out, everything.total, len(everything.superseded)) == (0, 4, 1)
