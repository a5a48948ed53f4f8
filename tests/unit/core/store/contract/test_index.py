"""What an in-memory index reads of any store: changes, blocks of arrays, vectors, links."""

from __future__ import annotations

import numpy as np
import pytest

from recallite.errors import EmbedderMismatch
from recallite.model.filters import Filter
from recallite.store.columns import Parts
from recallite.store.sql.repository import NEVER
from tests.unit.core.memory.support import unit
from tests.unit.core.store.contract.support import EMBEDDER, NOW, matrix, parts, row, vector


def test_changes_are_runs_of_ids_and_end_where_they_were_read(store):
    with store.atomic() as writer:
        ids = writer.records.insert([row(str(number)) for number in range(10)], None)
    with store.read() as reader:
        start = reader.changes.commit()
        assert reader.changes.since(start) == []
    with store.atomic() as writer:
        writer.records.delete([*ids[1:4], ids[7]])
    with store.read() as reader:
        changes = reader.changes.since(start)
        assert [(each.first_id, each.last_id, each.operation) for each in changes] == [
            (ids[1], ids[3], "delete"), (ids[7], ids[7], "delete"),
        ]  # fmt: skip
        assert reader.changes.since(reader.changes.commit()) == []


def test_who_asks_since_an_unknown_commit_or_past_a_reload_has_to_load_again(store):
    with store.atomic() as writer:
        writer.records.insert([row("a")], None)
    with store.read() as reader:
        start = reader.changes.commit()
    store.rebuild()
    with store.read() as reader:
        assert reader.changes.since(start) is None
        assert reader.changes.since(reader.changes.commit() + "0") is None


def test_each_write_names_its_operation(store):
    with store.atomic() as writer:
        first, second = writer.records.insert([row("a"), row("b")], None)
        start = writer.changes.commit()
        writer.records.change_columns(first, {"importance": 0.9}, None)
        writer.records.change_text(first, row("a", "new"), None, keep_version=False)
        writer.links.put([(first, second, "about", 1.0, NOW)])
        assert [each.operation for each in writer.changes.since(start)] == ["update", "text", "link"]


def test_columns_by_id_and_by_range_are_the_same(store):
    with store.atomic() as writer:
        ids = writer.records.insert(
            [
                row("a", scope="/s", kind="fact", importance=0.25, position=4, source="doc"),
                row("b", valid_from=NOW - 5, expires_at=NOW + 9),
            ],
            None,
        )
    with store.read() as reader:
        by_id = reader.blocks.columns(ids)
        ranges = [reader.blocks.column_range(bounds) for bounds in reader.blocks.ranges("columns")]
        scope = reader.scopes.ids(["/s"])["/s"]
    assert [block.ids.tolist() for block in ranges if len(block.ids)] == [ids]
    assert by_id.ids.tolist() == ids
    assert by_id.scopes[0] == scope
    assert by_id.importance.tolist() == [0.25, 0.5]
    assert by_id.positions.tolist() == [4, NEVER]
    assert by_id.moments.tolist() == [NOW, NOW - 5]
    assert by_id.expires_at.tolist() == [NEVER, NOW + 9]
    assert by_id.kinds.tolist() == [by_id.kind_numbers["fact"], by_id.kind_numbers["note"]]


def test_terms_by_id_and_by_range_are_the_same(store):
    with store.atomic() as writer:
        ids = writer.records.insert([row("a", "blue blue sky"), row("b", "sky")], None)
        numbers = writer.lexicon.lookup(["blue", "sky", "unknown"])
    with store.read() as reader:
        by_id = reader.blocks.terms(ids)
        (bounds, *_) = reader.blocks.ranges("terms")
        in_range = reader.blocks.term_range(bounds)
        assert reader.lexicon.recalled(["sky", "unknown"], 1) == {"sky": numbers["sky"]}
    assert sorted(numbers) == ["blue", "sky"]
    for block in (by_id, in_range):
        assert block.ids.tolist() == ids
        assert block.offsets.tolist() == [0, 2, 3]
        assert dict(zip(block.terms[:2].tolist(), block.counts[:2].tolist(), strict=True)) == {
            numbers["blue"]: 2, numbers["sky"]: 1,
        }  # fmt: skip


def test_cosines_are_of_the_nearest_part_in_the_order_asked(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        first, second, without = writer.records.insert(
            [row("a", vectors=(vector(1), vector(2))), row("b", vectors=(vector(3),)), row("c")], embedder
        )
        query = unit(4)
        inside = writer.vectors.cosines(embedder, query, [second])
    with store.read() as reader:
        asked = [second, without + 7, first, without, second]
        found = reader.vectors.cosines(embedder, query, asked)
        assert reader.vectors.cosines(embedder, query, []).tolist() == []
        assert reader.vectors.cosines(embedder, unit(2), [first]).tolist() == pytest.approx([1.0], abs=1e-6)
    exact = matrix(1, 2, 3).astype(np.float64) @ query.astype(np.float64)
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([exact[2], 0, max(exact[:2]), 0, exact[2]], abs=1e-6)
    assert inside[0] == found[0]


def test_the_cosine_of_a_vector_to_itself_is_one(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        ids = writer.records.insert([row(str(i), vectors=(vector(i),)) for i in range(20)], embedder)
        cosines = [writer.vectors.cosines(embedder, unit(i), [row_id])[0] for i, row_id in enumerate(ids)]
    assert cosines == [1.0] * 20


def test_a_part_that_is_not_sound_is_not_the_nearest(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        unsound = np.full(len(unit(1)), np.inf, dtype="<f4").tobytes()
        ids = writer.records.insert([row("a", vectors=(vector(1), unsound))], embedder)
        assert writer.vectors.cosines(embedder, -unit(1), ids).tolist() == [-1.0]


def test_vectors_come_back_packed(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        ids = writer.records.insert(
            [row("a", vectors=(vector(1), vector(2))), row("b", vectors=(vector(3),))], embedder
        )
    with store.read() as reader:
        packed = reader.blocks.vectors(embedder.id, embedder.dimension, ids)
        ranges = [reader.blocks.vector_range(embedder, bounds) for bounds in reader.blocks.ranges("vectors")]
        current = reader.vectors.of_current(ids, embedder)
        assert reader.vectors.of_record(ids[0]) == parts(1, 2)
    assert packed.owners.tolist() == [ids[0], ids[0], ids[1]]
    assert np.concatenate([block.codes for block in ranges]).tolist() == packed.codes.tolist()
    assert [(row_id, values.tolist()) for row_id, _, _, _, values in current] == [
        (ids[0], matrix(1, 2).tolist()), (ids[1], matrix(3).tolist()),
    ]  # fmt: skip


def test_a_store_has_one_active_embedder(store):
    with store.atomic() as writer:
        assert writer.vectors.active_embedder() is None
        first = writer.vectors.register_embedder(**EMBEDDER)
        assert writer.vectors.register_embedder(**EMBEDDER) == first
        with pytest.raises(EmbedderMismatch, match="reembed"):
            writer.vectors.register_embedder(fingerprint="other", name="other", dimension=4)
        other = writer.vectors.add_embedder(fingerprint="other", name="other", dimension=4)
        assert writer.vectors.active_embedder() == first
        writer.vectors.start_over(other)
        assert writer.vectors.active_embedder() == other


def test_new_vectors_replace_the_old_at_once(store):
    with store.atomic() as writer:
        old = writer.vectors.register_embedder(**EMBEDDER)
        ids = writer.records.insert([row("a", vectors=(vector(1),)), row("b", vectors=(vector(2),))], old)
        new = writer.vectors.add_embedder(**(EMBEDDER | {"fingerprint": "new"}))
        writer.vectors.set(new, {ids[0]: parts(3), ids[1]: Parts((), problem="no", refused=True)}, active=False)
        assert writer.vectors.of_record(ids[0]) == parts(1)
        before = writer.changes.commit()
        writer.vectors.switch_to(new)
        assert writer.vectors.active_embedder() == new
        assert [writer.vectors.of_record(each) for each in ids] == [parts(3), parts()]
        assert writer.vectors.refused("/", 5) == [("b", None, "no")]
        assert writer.changes.since(before) is None


def test_a_commit_contains_those_before_it(store):
    with store.atomic() as writer:
        writer.records.insert([row("a")], None)
    with store.read() as reader:
        first = reader.changes.commit()
        assert reader.changes.contained_in(first)
    with store.atomic() as writer:
        writer.records.insert([row("b")], None)
    with store.read() as reader:
        assert not reader.changes.contained_in(first)
        assert reader.changes.contained_in(reader.changes.commit())


def test_records_wait_until_they_have_a_vector_or_are_refused(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        first, second = writer.records.insert([row("a", pending=True), row("b", scope="/s", pending=True)], embedder)
        waiting = writer.vectors.waiting(10)
        assert [row_id for row_id, *_ in waiting] == [first, second]
        assert writer.vectors.count_waiting() == writer.vectors.count_lacking(embedder) == 2
        made = {first: parts(1), second: Parts((), problem="too long", refused=True)}
        writer.vectors.set(embedder, writer.vectors.unchanged(waiting, made), active=True)
        assert writer.vectors.count_waiting() == 0
        assert writer.vectors.lacking(embedder, 10) == []
        assert (writer.vectors.count_refused("/"), writer.vectors.count_refused("/other")) == (1, 0)
        assert writer.vectors.refused("/s", 5) == [("b", None, "too long")]
        writer.vectors.forget_refusals(embedder.id)
        assert [row_id for row_id, *_ in writer.vectors.waiting(10)] == [second]


def test_a_vector_of_a_text_that_has_changed_is_left_out(store):
    with store.atomic() as writer:
        (row_id,) = writer.records.insert([row("a", pending=True)], None)
        waiting = writer.vectors.waiting(10)
        writer.records.change_text(row_id, row("a", "new", pending=True), None)
        assert writer.vectors.unchanged(waiting, {row_id: parts(1)}) == {}


def test_token_codes_belong_to_vectors(store):
    with store.atomic() as writer:
        embedder = writer.vectors.register_embedder(**EMBEDDER)
        ids = writer.records.insert([row("a", vectors=(vector(1), vector(2))), row("b")], embedder)
        assert not writer.vectors.has_token_codes()
        assert [each[0] for each in writer.vectors.lacking_token_codes(embedder.id, 0, 9)] == [ids[0]]
        assert writer.vectors.add_token_codes(embedder.id, {ids[0]: (b"12345678",)}) == 0  # of two parts
        assert writer.vectors.add_token_codes(embedder.id, {ids[0]: (b"12345678", b"87654321")}) == 1
        (bounds,) = writer.blocks.ranges("vectors")
        for block in (writer.blocks.token_code_range(bounds), writer.blocks.token_codes(np.array([2, 9, 1]))):
            assert (block.ids.tolist(), block.counts.tolist()) == ([1, 2], [1, 1])
            assert block.codes.tobytes() == b"1234567887654321"
        writer.vectors.drop_token_codes()
        assert not writer.vectors.has_token_codes()


def test_links_are_strengthened_walked_and_dropped(store):
    with store.atomic() as writer:
        a, b, c = writer.records.insert([row("a"), row("b", scope="/s"), row("c")], None)
        writer.links.put([(a, b, "about", 0.5, NOW), (b, c, "contradicts", 1.0, NOW)])
        writer.links.put([(a, b, "about", 0.75, NOW + 1)])
        assert [(link.source, link.target, link.strength) for link in writer.links.of(a, incoming=False, types=())] == [
            ("a", "b", 0.75)
        ]
        assert writer.links.of(c, incoming=True, types=["about"]) == []
        assert writer.links.contradicting() == {(b, c)}
        everywhere, elsewhere = Filter(), Filter(scope="/other")
        assert {step[:2] for step in writer.links.steps([b], "both", (), everywhere, NOW)} == {
            (b, c), (b, a),
        }  # fmt: skip
        assert writer.links.steps([b], "both", (), elsewhere, NOW) == []
        assert writer.links.missing([(a, b, "about", 1.0, NOW), (a, c, "about", 1.0, NOW)]) == [
            (a, c, "about", 1.0, NOW)
        ]
        assert len(list(writer.links.between(everywhere))) == 2
        block = writer.blocks.links([a])
        assert (block.sources.tolist(), block.targets.tolist(), block.strengths.tolist()) == ([a], [b], [0.75])
        assert writer.links.drop(a, b, ["contradicts"]) == 0
        assert writer.links.drop(a, b, ()) == 1
        assert len(writer.blocks.links().sources) == 0  # what contradicts a record raises nothing


def test_an_index_snapshot_never_outlives_what_it_was_made_from(store):
    moved = []
    with store.atomic() as writer:
        ids = writer.records.insert([row("a"), row("b")], None)
        identity, token = writer.snapshot.identity(), writer.changes.commit()
        assert writer.snapshot.publish(identity, "first", token, lambda: moved.append("first"))
        writer.records.insert([row("c")], None)
        assert writer.snapshot.publish(identity, "second", token, lambda: moved.append("second"))
        writer.records.delete(ids[:1])
        assert not writer.snapshot.publish(identity, "third", token, lambda: moved.append("third"))
    assert moved == ["first", "second"]


def test_labels_of_many_records(store):
    with store.atomic() as writer:
        ids = writer.records.insert(
            [row("a", scope="/x"), row("b", kind="chunk", source="s"), row("c", expires_at=NOW - 1), row("d")], None
        )
        found = writer.records.labels(Filter(), NOW)
        inside = writer.records.labels(Filter(scope="/x"), NOW)
        assert writer.records.labels(Filter(kinds="none"), NOW).public_ids == []
    assert found.ids.tolist() == [ids[0], ids[1], ids[3]]
    assert (found.public_ids, found.kinds) == (["a", "b", "d"], ["note", "chunk", "note"])
    assert [found.scope_names[scope] for scope in found.scopes.tolist()] == ["/x", "/", "/"]
    assert [found.source_names.get(source) for source in found.sources.tolist()] == [None, "s", None]
    assert inside.public_ids == ["a"]


def test_days_that_records_tell_of(store):
    day = 86_400_000_000
    with store.atomic() as writer:
        writer.records.insert(
            [
                row("a", valid_from=-1),
                row("b", valid_from=0),
                row("c", valid_from=day - 1),
                row("d"),
                row("e", scope="/x"),
            ],
            None,
        )
        assert writer.records.count_by_day(Filter(), NOW) == [(-1, 1), (0, 2), (NOW // day, 2)]
        assert writer.records.count_by_day(Filter(scope="/x"), NOW) == [(NOW // day, 1)]
