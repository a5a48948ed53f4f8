"""An index that followed every change answers as one loaded from the file: ids, order and scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite import Memory
from recallite.index import table
from recallite.index.memory_index import met_conditions
from recallite.index.table import RecordTable, RowFilter
from recallite.model.filters import Filter
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from recallite.store.sql.blocks import Columns
from recallite.store.sql.repository import NEVER
from tests.limits import examples
from tests.unit.core.index.support import told
from tests.unit.core.memory.support import PLAIN, scored, unit

WORDS = ["apple", "berry", "cherry", "date", "elder", "fig", "grape"]
# They leave frames, are a standing preference and a standing instruction, have no words, and are of a conversation.
STATING = ["I live in Berlin.", "My favourite fruit is the apple.", "I prefer tea.", "Always reply in French.", "!!!",
           "Ada: apple berry", "Bo: cherry"]  # fmt: skip
places = st.integers(0, 30)
texts = st.one_of(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), st.sampled_from(STATING))
changes = st.one_of(
    st.tuples(
        st.just("remember"),
        texts,
        st.sampled_from([None, "s", "t"]),
        st.sampled_from([None, 0, 1, 2, 3]),
        st.sampled_from(["/", "/a", "/a/b", "/ab"]),
        st.booleans(),
    ),
    st.tuples(st.just("text"), places, texts, st.booleans()),
    st.tuples(st.just("position"), places, st.sampled_from([None, 0, 1, 2, 9])),
    st.tuples(st.just("source"), places, st.sampled_from([None, "s", "t"])),
    st.tuples(st.just("scope"), places, st.sampled_from(["/", "/a", "/a/b", "/ab"])),
    st.tuples(st.just("kind"), places, st.sampled_from(["memory", "note", "episode"])),
    st.tuples(st.just("importance"), places, st.sampled_from([0.0, 0.5, 1.0])),
    st.tuples(st.just("link"), places, places, st.sampled_from([0.2, 0.7, 1.0])),
    st.tuples(st.just("tags"), places, st.sampled_from([[], ["red"], ["Red"], ["red", "the"], ["blue", "red"]])),
    st.tuples(st.just("metadata"), places, st.sampled_from([{}, {"k": 1}, {"k": 2}, {"l": "x"}])),
    st.tuples(st.just("topic"), places, st.sampled_from([None, "fruit", "tea"])),
    st.tuples(st.just("forget"), places),
    st.tuples(st.just("recall")),
)


def apply(memory: Memory, ids: list[str], seed: int, change: tuple) -> None:
    name, *rest = change
    if name == "recall":
        memory.recall("apple")
        return
    if name == "remember":
        text, source, position, scope, with_vector = rest
        record = NewRecord(
            text, source=source, position=position, scope=scope, vector=unit(seed, 8) if with_vector else None
        )
        ids[:] = dict.fromkeys([*ids, memory.remember(record).id])  # the same text again is the same record
        return
    if not ids:
        return
    chosen = ids[rest[0] % len(ids)]
    match name:
        case "text":
            given_vector = {"vector": unit(seed + 1000, 8)} if rest[2] else {}
            memory.update(chosen, text=rest[1], **given_vector)
        case "link":
            other = ids[rest[1] % len(ids)]
            if other != chosen:
                memory.link(chosen, other, strength=rest[2])
        case "forget":
            memory.forget(chosen)
            ids.remove(chosen)
        case _:
            memory.update(chosen, **{name: rest[1]})


QUESTIONS = [
    {"query": "apple berry"},
    {"query": "cherry", "vector": unit(7, 8)},
    {"query": "", "vector": unit(8, 8), "scope": "/a"},
    {"query": "fig grape date", "mode": "keyword", "scope": "/ab"},
    {"query": "elder", "vector": unit(9, 8), "diversify_by": "one_per_source"},
    {"query": "apple", "vector": unit(9, 8), "mmr_lambda": 0.5},
]


def answers(memory: Memory) -> list[list[tuple[str, float]]]:
    return [
        scored(memory.recall(limit=50, **recall_arguments({**question, "half_life_days": 0}))) for question in QUESTIONS
    ]


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(sequence=st.lists(changes, min_size=4, max_size=30))
def test_any_sequence_of_changes(tmp_path_factory, sequence):
    path = str(tmp_path_factory.mktemp("store") / "agent.db")
    ids: list[str] = []
    fast = type(PLAIN)(embedder="none", durability="normal")
    with Memory(path, settings=fast) as memory:
        for seed, change in enumerate(sequence):
            apply(memory, ids, seed, change)
        followed = answers(memory), told(memory)
        assert memory.store.verify().problems == ()
    with Memory(path, settings=fast) as reopened:
        assert (answers(reopened), told(reopened)) == followed
        assert {record.id for record in reopened.list(limit=None)} == set(ids)


FILTERS = [
    Filter(**fields)
    for fields in (
        {"tags": ["red"]},
        {"tags": ["the", "Red", "none"]},
        {"where": {"metadata.k": {"gte": 1}}},
        {"tags": ["red", "blue"], "where": {"metadata.k": {"ne": 1}, "topic": "fruit"}},
        {"where": {"or": [{"source": "s"}, {"kind": "note"}, {"tags": {"nin": ["red"]}, "topic": "tea"}]}},
        {"where": {"not": {"source": {"in": ["s", "t"]}, "kind": {"in": ["memory", "episode"]}}}},
        {"where": {"importance": {"gt": 0.5}}},
        {"where": {"or": [{"topic": "fruit"}, {"text": {"contains": "apple"}}, {"not": {"kind": "memory"}}]}},
        {"where": {"scope": {"in": ["/a", "/ab"]}}},
        {"where": {"source": None}},
    )
]


SPOKEN = st.tuples(st.just("remember"), st.just("Ada: an apple"), st.none(), st.none(), st.just("/a"), st.just(False))


@pytest.mark.parametrize("as_they_came", [0, 4096])
@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(sequence=st.lists(st.one_of(changes, SPOKEN), min_size=10, max_size=30))
def test_conditions_after_any_sequence_of_changes(as_they_came, sequence):
    """The index tells the rows that meet tags and other conditions as SQL does, after each change."""
    ids: list[str] = []
    fast = type(PLAIN)(embedder="none", durability="normal")
    with Memory(":memory:", settings=fast) as memory, pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "_TAGS_AS_THEY_CAME", as_they_came)
        for seed, change in enumerate(sequence):
            apply(memory, ids, seed, change)
            index = memory._engine.index
            with memory._engine.store.read() as reader, index.current(reader):
                for chosen in FILTERS:
                    for versions in ("open", "any"):
                        asked = (chosen.unindexed or chosen, 0)
                        mask = met_conditions(index, reader, *asked, versions) & (
                            index.table.open if versions == "open" else index.table.present
                        )
                        indexed = sorted(index.table.ids[mask == 1].tolist())
                        assert indexed == reader.records.matching_ids(*asked, versions=versions)


def test_what_a_record_states_follows_its_kind(path):
    """A change of kind is told as an update, which left the frames as they were."""
    with Memory(path, settings=PLAIN) as memory:
        stating = memory.remember("I live in Berlin.").id
        silent = memory.remember("My favourite fruit is the apple.", kind="episode").id
        memory.recall("apple")
        before = memory._engine.index.table.frames.any(axis=(1, 2)).tolist()
        memory.update(stating, kind="episode")
        memory.update(silent, kind="memory")
        memory.recall("apple")
        assert before == [True, False]
        assert memory._engine.index.table.frames.any(axis=(1, 2)).tolist() == [False, True]
        followed = told(memory)
    with Memory(path, settings=PLAIN) as reopened:
        reopened.recall("apple")
        assert told(reopened) == followed


def test_closed_versions_keep_what_they_stated(path):
    with Memory(path, settings=PLAIN) as memory:
        kept = memory.remember(NewRecord("I live in Berlin.", vector=unit(1))).id
        memory.recall("apple")
        memory.update(kept, text="Always reply in French.", vector=unit(2))
        gone = memory.remember(NewRecord("I prefer tea.", vector=unit(3))).id
        memory.recall("apple")
        memory.forget(gone)
        memory.recall("apple")
        table, followed = memory._engine.index.table, told(memory)
        assert followed["open"] == [1, 0]
        assert table.standing[np.flatnonzero(table.open)].tolist() == [2]
        with memory._engine.store.read() as reader:
            stored = dict(reader.statements.frames(np.array(followed["ids"], dtype=np.int64)))
        made = [np.array(each, dtype="<u4").tobytes() for each in followed["frames"]]
        assert [each.rstrip(b"\0") for each in made] == [stored.get(id, b"").rstrip(b"\0") for id in followed["ids"]]
        assert [any(map(any, each)) for each in followed["frames"]] == [False, True]
    with Memory(path, settings=PLAIN) as reopened:
        reopened.recall("apple")
        assert told(reopened) == followed


def chain(memory: Memory) -> dict[int, tuple[int, int]]:
    """Record ids before and after each record in its source."""
    index = memory._engine.index
    ids = index.table.ids
    rows = np.flatnonzero(index.table.open)

    def named(row: int) -> int:
        return -1 if row < 0 else int(ids[row])

    return {
        int(ids[row]): (named(int(index.graph.previous[row])), named(int(index.graph.next[row])))
        for row in rows.tolist()
    }


def test_two_records_of_a_source_that_move_before_one_recall(on_disk):
    """The second was put into the chain twice and became its own neighbour."""
    ids = on_disk.remember_many(
        [{"text": f"number{place} common", "source": "s", "position": place} for place in range(5)]
    )
    on_disk.recall("common")
    on_disk.update(ids[1], position=10)
    on_disk.update(ids[2], position=11)
    on_disk.recall("common")
    assert chain(on_disk) == {1: (-1, 4), 4: (1, 5), 5: (4, 2), 2: (5, 3), 3: (2, -1)}


@pytest.mark.parametrize("positions", [[0, 0, 0], [None, None, None], [2, None, 0], [1, 1, 0]])
def test_positions_may_repeat_or_be_missing(path, positions):
    with Memory(path, settings=PLAIN) as memory:
        memory.recall("common")
        for place, position in enumerate(positions):
            memory.remember(NewRecord(f"number{place} common", source="s", position=position))
            memory.recall("common")
        followed = chain(memory)
    with Memory(path, settings=PLAIN) as memory:
        memory.recall("common")
        assert chain(memory) == followed
    order = sorted(range(3), key=lambda place: (positions[place] is None, positions[place] or 0, place))
    assert [followed[place + 1] for place in order] == [
        (-1, order[1] + 1),
        (order[0] + 1, order[2] + 1),
        (order[1] + 1, -1),
    ]


def test_sources_of_one_name_in_two_scopes_are_two_sources(on_disk):
    on_disk.remember(NewRecord("apple one", source="s", position=0, scope="/a"))
    on_disk.remember(NewRecord("apple two", source="s", position=1, scope="/b"))
    on_disk.recall("apple")
    assert chain(on_disk) == {1: (-1, -1), 2: (-1, -1)}
    assert len(on_disk.recall("apple", diversify_by="one_per_source")) == 2
    assert on_disk.store.stats().sources == 2


def item(number: int) -> dict:
    words = " ".join(WORDS[(number * step) % 7] for step in (1, 2, 3)[: number % 3 + 1])
    return {
        "text": f"{words} unique{number}",
        "vector": unit(number, 16),
        "source": f"s{number // 9}" if number % 4 else None,
        "position": number % 9,
        "created_at": "2026-01-01T00:00:00Z",
    }


@pytest.mark.parametrize("step", [1, 7, 300])
def test_records_appended_in_small_steps_answer_as_loaded_at_once(path, step):
    """Tails are sealed at 512 records and segments merge; above 4,096 vectors sketches make the shortlist."""
    total = {1: 600, 7: 1100, 300: 5400}[step]
    fast = type(PLAIN)(embedder="none", durability="normal")
    with Memory(path, settings=fast) as memory:
        memory.recall("apple")
        for start in range(0, total, step):
            memory.remember_many([item(number) for number in range(start, min(start + step, total))])
            memory.recall("apple berry")
        questions = [
            ("apple unique7", unit(7)),
            (f"unique{total - 1} fig", None),
            ("berry", unit(total - 2)),
            ("cherry date", unit(400)),
        ]

        def all_answers(opened: Memory) -> list[list[tuple[str, float]]]:
            return [
                scored(opened.recall(query, vector=vector, limit=30, profile={"half_life_days": 0}), 4)
                for query, vector in questions
            ]

        followed = all_answers(memory)
        assert followed[0][0][0] == memory.list(where={"text": {"contains": "unique7"}}, order="oldest", limit=1)[0].id
    with Memory(path, settings=fast) as reopened:
        assert all_answers(reopened) == followed


def test_a_long_text_is_found_by_any_of_its_parts(embedded):
    filler = "The committee met again and discussed the minutes of the previous meeting at length. " * 30
    long = embedded.remember(filler + "The astronaut repaired the telescope in orbit. " + filler)
    embedded.remember_many(["A recipe for onion soup.", "The dog sleeps in the garden."])
    assert embedded.store.stats().vectors > 3
    best = embedded.recall("Who fixed the space telescope?", mode="vector", limit=1)[0]
    assert best.id == long.id
    assert len(embedded.recall("committee meeting", mode="vector", limit=10)) == 3, "one hit a record, not a part"
    embedded.update(long.id, text="Nothing of that is left.")
    assert embedded.store.stats().vectors - embedded.store.stats().versions > 0
    assert embedded.recall("space telescope", mode="vector", limit=1)[0].signals["cosine"] < 0.5
    embedded.forget(long.id)
    assert embedded.store.stats().vectors == 2


def test_many_parts_of_one_record_do_not_crowd_others_out(memory):
    """A record with very many near parts took all places of the shortlist."""
    near = unit(1)
    crowd = memory.remember(NewRecord("crowd", vector=near))
    others = memory.remember_many([{"text": f"other {number}", "vector": unit(number + 2)} for number in range(30)])
    with memory._engine.store.atomic() as writer:
        writer.connection.executemany(
            "INSERT INTO vector (record_id, part, embedder_id, value) SELECT record_id, ?, embedder_id, value "
            "FROM vector WHERE record_id = 1 AND part = 0",
            [(part,) for part in range(1, 3000)],
        )
    memory.store.rebuild()
    found = memory.recall("", vector=near, mode="vector", limit=31)
    assert found[0].id == crowd.id
    assert {hit.id for hit in found} == {crowd.id, *others}


def test_a_changed_text_is_found_by_its_row_again_and_again(on_disk):
    kept = on_disk.remember(NewRecord("version zero", vector=unit(0), source="s", position=0))
    on_disk.remember(NewRecord("beside it", vector=unit(100), source="s", position=1))
    for number in range(1, 30):
        on_disk.update(kept.id, text=f"version number{number}", vector=unit(number))
        hit = on_disk.recall(f"number{number}", vector=unit(number), limit=1)[0]
        assert (hit.id, hit.text) == (kept.id, f"version number{number}")
        assert on_disk.recall(f"number{number - 1}", mode="keyword") == []
    assert len(on_disk.history(kept.id)) == 30


def test_a_table_of_mostly_dead_rows_is_loaded_afresh(path):
    fast = type(PLAIN)(embedder="none", durability="normal")
    with Memory(path, settings=fast) as memory:
        ids = memory.remember_many([item(number) for number in range(3000)])
        memory.recall("apple")
        for start in range(0, 2800, 400):
            memory.forget(ids[start : start + 400])
            memory.recall("apple")
        table = memory._engine.index.table
        assert len(table) < 3000
        assert table.open_rows == 200
        assert {hit.id for hit in memory.recall("", vector=unit(3), limit=200, mode="vector")} == set(ids[2800:])


def test_links_spread_both_ways_and_follow_changes(memory):
    first, second, third = memory.remember_many(["apple", "berry", "cherry"])

    def reached(query: str) -> set[str]:
        return {hit.id for hit in memory.recall(query)}

    assert reached("apple") == {first}
    memory.link(first, second)
    memory.link(third, first, type="causal", strength=0.5)
    assert reached("apple") == {first, second, third}
    assert reached("berry") == {first, second}
    memory.update(second, text="blackberry")
    assert reached("apple") == {first, second, third}
    memory.forget(first)
    assert reached("blackberry") == {second}


def test_kinds_are_as_many_as_they_like():
    """They were numbered in 16 bits: the 32,768th kind ended every recall."""
    count = 40_000
    ids = np.arange(1, count + 1, dtype=np.int64)
    zeros = np.zeros(count, dtype=np.int64)
    never = np.full(count, NEVER, dtype=np.int64)
    records = RecordTable()
    records.append(
        Columns(
            ids=ids,
            scopes=zeros.astype(np.int32),
            kinds=np.arange(count, dtype=np.int32),
            sources=zeros - 1,
            positions=never,
            created_at=zeros,
            moments=zeros,
            moments_until=never,
            recorded_from=zeros,
            recorded_until=never,
            expires_at=never,
            superseded_at=never,
            held_until=never,
            importance=np.full(count, 0.5, dtype=np.float32),
            resolved=zeros.astype(np.uint8),
            authorities=zeros.astype(np.uint8),
            kind_numbers={f"kind {number}": number for number in range(count)},
            tagged=zeros[:0],
            tags=zeros[:0].astype(np.int32),
        )
    )
    assert np.flatnonzero(records.mask(RowFilter(now=1, kinds=("kind 39999", "kind 7")))).tolist() == [7, 39999]
