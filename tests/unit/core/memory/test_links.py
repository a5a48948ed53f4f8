"""Links: made and removed, listed from both ends, walked along."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta

import pytest

from recallite import AsyncMemory, Memory
from recallite.errors import InvalidInput, NotFound
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import PLAIN, scored, unit

NOBODY = "01234567-89ab-7def-8123-456789abcdef"


@pytest.fixture
def chain(memory):
    """Five records in a row, a to e, each linked to the next at 0.5."""
    ids = memory.remember_many([{"text": name} for name in "abcde"])
    for source, target in itertools.pairwise(ids):
        memory.link(source, target, type="sequential", strength=0.5)
    return ids


def names(reached):
    return [(each.record.text, each.distance, each.strength) for each in reached]


def pairs(memory, links):
    return {(memory.get(link.source).text, memory.get(link.target).text, link.type) for link in links}


def test_every_type_of_link_can_be_made_and_listed_from_both_ends(memory):
    a, b = memory.remember_many(["a", "b"])
    types = {"similar", "sequential", "causal", "contradicts", "supports", "elaborates"}
    for type in types:
        memory.link(a, b, type=type, strength=0.25)
    for links in (
        memory.neighbors(a),
        memory.neighbors(b),
        memory.neighbors(a, direction="out"),
        memory.neighbors(b, direction="in"),
    ):
        assert {(link.source, link.target, link.type, link.strength) for link in links} == {
            (a, b, type, 0.25) for type in types
        }
    assert memory.neighbors(a, direction="in") == memory.neighbors(b, direction="out") == []
    assert [link.type for link in memory.neighbors(b, types=["causal"], direction="in")] == ["causal"]


def test_unlink_removes_one_type_or_all_in_one_direction(memory):
    a, b = memory.remember_many(["a", "b"])
    for type in ("similar", "causal", "supports"):
        memory.link(a, b, type=type)
    memory.link(b, a)
    assert memory.unlink(a, b, "causal") == 1
    assert memory.unlink(a, b, "causal") == 0
    assert {link.type for link in memory.neighbors(b, direction="in")} == {"similar", "supports"}
    assert memory.unlink(a, b) == 2
    assert pairs(memory, memory.neighbors(a)) == {("b", "a", "similar")}
    assert memory.unlink(a, b) == 0


def test_a_removed_link_leaves_the_others_of_both_ends(on_disk):
    ids = on_disk.remember_many([{"text": f"text {n}", "vector": unit(n)} for n in range(30)])
    chosen = random.Random(2)
    links = {tuple(chosen.sample(ids, 2)) for _ in range(90)}
    on_disk.recall("text", vector=unit(0))
    for source, target in sorted(links):
        on_disk.link(source, target, strength=chosen.random())
    on_disk.recall("text", vector=unit(0))
    for source, target in sorted(links)[::2]:
        assert on_disk.unlink(source, target) == 1
    with Memory(on_disk.path, settings=PLAIN) as fresh:
        for n in range(30):
            asked = {"vector": unit(n), "limit": 30, "half_life_days": 0}
            assert scored(on_disk.recall("text", **recall_arguments(asked))) == scored(
                fresh.recall("text", **recall_arguments(asked))
            )
    assert on_disk.store.verify().problems == ()


def test_traverse_gives_distance_and_strength_nearest_first(memory, chain):
    a, _, c, *_ = chain
    assert names(memory.neighbors(a, depth=2)) == [("b", 1, 0.5), ("c", 2, 0.25)]
    assert names(memory.neighbors(a, depth=9)) == [("b", 1, 0.5), ("c", 2, 0.25), ("d", 3, 0.125), ("e", 4, 0.0625)]
    assert names(memory.neighbors(c, depth=2)) == [("b", 1, 0.5), ("d", 1, 0.5), ("a", 2, 0.25), ("e", 2, 0.25)]
    assert names(memory.neighbors(c, depth=2, direction="out")) == [("d", 1, 0.5), ("e", 2, 0.25)]
    assert names(memory.neighbors(c, direction="in", depth=1)) == [("b", 1, 0.5)]
    assert names(memory.neighbors(a, depth=2, types=["causal"])) == []
    assert names(memory.neighbors(a, types=["sequential", "causal"], depth=1)) == [("b", 1, 0.5)]
    assert names(memory.neighbors(c, depth=2, limit=3)) == [("b", 1, 0.5), ("d", 1, 0.5), ("a", 2, 0.25)]


def test_traverse_ends_in_cycles_and_takes_the_strongest_of_the_shortest_ways(memory):
    a, b, c, d = memory.remember_many(["a", "b", "c", "d"])
    for source, target, strength in [(a, b, 0.9), (a, c, 0.5), (b, d, 0.1), (d, c, 1.0), (d, a, 0.0), (c, b, 1.0)]:
        memory.link(source, target, strength=strength)
    assert names(memory.neighbors(a, depth=100, direction="out")) == [("b", 1, 0.9), ("c", 1, 0.5), ("d", 2, 0.9 * 0.1)]
    assert names(memory.neighbors(a, depth=2)) == [("b", 1, 0.9), ("c", 1, 0.5), ("d", 1, 0.0)]


def test_traverse_agrees_with_a_walk_over_all_links(memory):
    chosen = random.Random(7)
    ids = memory.remember_many([f"text {n}" for n in range(60)])
    strengths = {}
    for _ in range(110):
        source, target = chosen.sample(ids, 2)
        strengths[source, target] = chosen.random()
        memory.link(source, target, strength=strengths[source, target])
    for start in ids[::7]:
        for direction in ("out", "in", "both"):
            level, best = {start: 1.0}, {start: (0, 1.0)}
            for distance in range(1, 4):
                following = {}
                for (source, target), strength in strengths.items():
                    ways = {"out": [(source, target)], "in": [(target, source)]}
                    for near, far in ways.get(direction, [(source, target), (target, source)]):
                        if near in level and far not in best:
                            following[far] = max(following.get(far, 0), level[near] * strength)
                best |= {far: (distance, strength) for far, strength in following.items()}
                level = following
            del best[start]
            wanted = sorted(best, key=lambda far: (best[far][0], -best[far][1], far))
            found = memory.neighbors(start, depth=3, direction=direction, limit=None)
            assert [each.record.id for each in found] == wanted
            assert [(each.distance, each.strength) for each in found] == [best[far] for far in wanted]


def test_a_walk_never_leaves_the_scope_nor_passes_through_what_has_expired(memory):
    a, b, c = (memory.remember(name, scope=scope).id for name, scope in [("a", "/x"), ("b", "/y"), ("c", "/x/z")])
    memory.link(a, b)
    memory.link(b, c)
    scoped = memory.scoped("/x")
    assert scoped.neighbors(a, depth=5) == []
    assert names(memory.neighbors(a, depth=2)) == [("b", 1, 1.0), ("c", 2, 1.0)]
    memory.link(a, c)
    (found,) = scoped.neighbors(a, depth=2)
    assert (found.record.text, found.record.scope) == ("c", "/z")
    past = datetime.now(UTC) - timedelta(days=1)
    memory.update(b, expires_at=past)
    memory.unlink(a, c)
    assert memory.neighbors(a, depth=5) == []


def test_links_of_a_foreign_id_are_those_of_a_missing_one(memory):
    a, b = memory.remember("a", scope="/x").id, memory.remember("b", scope="/y").id
    memory.link(a, b)
    scoped = memory.scoped("/x")
    for id in (b, NOBODY, "", None, 7):
        for use in (
            lambda id: scoped.unlink(a, id),
            lambda id: scoped.unlink(id, a),
            lambda id: scoped.neighbors(id, depth=2),
            lambda id: scoped.neighbors(id, direction="in"),
        ):
            with pytest.raises(NotFound, match="no memory"):
                use(id)
    assert scoped.neighbors(a) == []
    assert len(memory.neighbors(a)) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"depth": 0}, "depth is 0"),
        ({"depth": -1}, "depth is -1"),
        ({"depth": "2"}, "depth is '2'"),
        ({"depth": 1.5}, "depth is 1.5"),
        ({"depth": True}, "depth is True"),
        ({"limit": 0}, "limit is 0"),
        (
            {"types": ["friend"]},
            "'similar', 'sequential', 'causal', 'contradicts', 'supports', 'elaborates' or 'supersedes'",
        ),
        ({"types": 7}, "types is 7"),
        ({"direction": "sideways"}, "direction is 'sideways'"),
        ({"direction": None}, "direction is None"),
        ({"direction": ["in"]}, "direction is"),
    ],
    ids=repr,
)
def test_a_walk_names_the_option_that_is_wrong(memory, chain, options, said):
    with pytest.raises(InvalidInput, match=said):
        memory.neighbors(chain[0], **{"depth": 2} | options)


def test_unlink_names_a_type_that_is_wrong(memory, chain):
    with pytest.raises(InvalidInput, match="type is 'friend'"):
        memory.unlink(chain[0], chain[1], "friend")
    assert len(memory.neighbors(chain[0])) == 1


def test_export_and_import_keep_links_topics_and_versions(memory, tmp_path):
    from recallite.model.settings import WritePolicy

    policy = WritePolicy(merge_strategy="latest", link_cosine=0.5)
    memory.remember(NewRecord("one", topic="t", vector=unit(1)), policy=policy)
    memory.remember(NewRecord("two", topic="t", vector=unit(2)), policy=policy)
    memory.remember(NewRecord("three", vector=unit(2) + 0.1), policy=policy)
    (tmp_path / "out").mkdir()
    target = tmp_path / "out" / "all.jsonl"
    memory.transfer.export(target, vectors=True)
    with Memory(tmp_path / "new.db", settings=PLAIN) as new:
        new.transfer.import_(target)
        for record in memory.list():
            assert new.get(record.id) == record
            assert new.history(record.id) == memory.history(record.id)
            assert new.neighbors(record.id) == memory.neighbors(record.id)
            assert new.neighbors(record.id, depth=2) == memory.neighbors(record.id, depth=2)
        again = new.remember(NewRecord("four", topic="t"), policy=policy)
        assert (again.outcome, len(new.history(again.id))) == ("merged", 3)


async def _async_verbs(path):
    async with AsyncMemory(path, settings=PLAIN) as memory:
        a = (await memory.remember("a")).id
        b = (await memory.remember("b", created_at="2019-01-01", expires_at="2020-01-01T00:00:00Z")).id
        await memory.link(a, b)
        assert await memory.neighbors(a, depth=2) == []
        assert [link.source for link in await memory.neighbors(b, direction="in")] == [a]
        assert await memory.unlink(a, b) == 1
        await memory.update(a, text="c")
        assert (await memory.restore(a, 0)).text == "a"
        assert (await memory.store.purge_expired()).records == 1


def test_the_async_memory_has_the_new_verbs(path):
    import asyncio

    asyncio.run(_async_verbs(path))
