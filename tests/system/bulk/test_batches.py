"""The functions over Arrow batches, without any framework: embed, write, recall."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.errors import EmbedderMismatch, InvalidInput
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite_bulk import Embed, Recall, Write, recall
from recallite_bulk.stages import KnownIds
from tests.system.bulk.test_bulk import lines, state

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from recallite_bulk.arrow import hit_schema, new_records, new_records_table  # noqa: E402

INSTANT = Settings(embedder="instant")
NOW = "2026-06-01T00:00:00Z"


def table(count):
    return new_records_table(NewRecord(**each) for each in lines(count))


def counts(done):
    return done.to_pylist()[0]


def test_an_embedded_batch_is_stored_as_the_store_would_embed_it(tmp_path):
    batch = Embed(settings=INSTANT)(table(30))
    assert all(name.startswith("content-") for name in batch.column("id").to_pylist())
    with Write(tmp_path / "a.db", settings=INSTANT) as written:
        assert counts(written(batch)) == {"records": 30, "known": 0, "junk": 0}
        assert counts(written(batch)) == {"records": 0, "known": 30, "junk": 0}
    with Memory(tmp_path / "a.db", settings=INSTANT) as memory, Memory(":memory:", settings=INSTANT) as other:
        other.remember_many([{**each, "id": id} for each, id in zip(lines(30), batch["id"].to_pylist(), strict=True)])
        assert state(memory) == state(other)


def test_what_was_embedded_for_another_embedder_is_refused(tmp_path):
    batch = Embed(settings=INSTANT)(table(2))
    with Write(tmp_path / "a.db") as written, pytest.raises(EmbedderMismatch, match="this store takes"):
        written(batch)
    with Write(tmp_path / "b.db", settings=Settings(embedder="none")) as written:
        assert counts(written(batch))["records"] == 2  # a store without an embedder takes the first that comes


def test_records_that_are_known_are_not_embedded(memory):
    memory.remember_many([{**each, "id": str(number)} for number, each in enumerate(lines(20))])
    memory.forget("7")
    known = KnownIds.of(memory)
    assert len(known) == 19
    assert known([str(number) for number in range(21)]) == {str(number) for number in range(20)} - {"7"}
    records = [NewRecord(text="x", id=id) for id in ("3", "7", "new")]
    assert [each.id for each in Embed(settings=INSTANT, known=known).records(records)] == ["7", "new"]
    assert KnownIds.of(memory.scoped("/elsewhere"))(["3"]) == set()


def test_what_is_redacted_does_not_leave_the_worker():
    secret = "4111 1111 1111 1111"
    record = NewRecord(text=f"My card is {secret}", context=f"card {secret}", metadata={"card": secret})
    batch = Embed(settings=INSTANT, policy=WritePolicy(redact="secrets"))(new_records_table([record]))
    assert secret not in str(batch.to_pylist())
    (made,) = new_records(batch)
    assert made.text == "My card is [redacted: card number]"


def test_a_batch_of_questions_has_the_hits_of_recall_many(tmp_path, ready_kernels):
    path = tmp_path / "a.db"
    with Memory(path, settings=INSTANT) as memory:
        memory.remember_many([{**each, "scope": f"/{number % 2}"} for number, each in enumerate(lines(40))])
    batch = pa.table({"question": ["b", "a"], "query": ["library number 8", "tunnel number 6"], "other": [1, 2]})
    with Recall(path, settings=INSTANT, limit=2, now=NOW, options={"scope": "/0"}) as asked:
        hits = asked(batch)
        assert asked(batch).equals(hits)
        assert asked(batch.slice(0, 0)).num_rows == 0
    assert hits.schema == hit_schema(pa.string())
    assert hits.column("question").to_pylist() == ["b", "b", "a", "a"]
    assert set(hits.column("scope").to_pylist()) == {"/0"}
    with Memory(path, settings=INSTANT) as memory:
        plain = memory.recall_many(batch["query"].to_pylist(), limit=2, scope="/0")
        assert hits.column("id").to_pylist() == [hit.id for found in plain for hit in found]
        inside = recall(batch.slice(1), memory.scoped("/0"), limit=1)
        assert inside.select(["question", "rank", "scope"]).to_pylist() == [{"question": "a", "rank": 1, "scope": "/"}]


def test_a_query_may_bring_its_vector(memory):
    memory.remember_many(
        [{"text": "one", "id": "1", "vector": [1.0, 0.0]}, {"text": "two", "id": "2", "vector": [0.0, 1.0]}]
    )
    batch = pa.table({"query": ["which", "which"], "vector": [[0.0, 2.0], [2.0, 0.0]]})
    hits = recall(batch, memory, limit=1, mode="vector")
    assert [(row["question"], row["id"]) for row in hits.to_pylist()] == [(0, "2"), (1, "1")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a"]}, "no column query, only text"),
        ({"query": ["a", None]}, "row 2: its question or query is None"),
        ({"query": ["a"], "question": pa.array([None], pa.int64())}, "row 1: its question or query is None"),
        ({"query": ["a"], "vector": [["x"]]}, "no list of numbers"),
    ],
)
def test_bad_questions_are_named(memory, columns, message):
    with pytest.raises(InvalidInput, match=message):
        recall(pa.table(columns), memory)


def test_a_mistyped_path_is_no_empty_store(tmp_path):
    with pytest.raises(InvalidInput, match="there is no store at"):
        Recall(tmp_path / "absent.db")
    assert list(tmp_path.iterdir()) == []


def test_a_bad_row_is_named():
    with pytest.raises(InvalidInput, match="row 2: importance is 2"):
        Embed(settings=INSTANT)(pa.table({"text": ["a", "b"], "importance": [0.5, 2.0]}))
