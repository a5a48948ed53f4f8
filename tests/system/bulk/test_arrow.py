"""Records and hits as Arrow tables, and Arrow data as records: nothing is lost, and bad data is named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import EmbedderMismatch, InvalidInput, InvalidItem
from recallite.model.records import NewRecord
from recallite.remember.embed import EmbeddedText
from recallite_bulk.arrow import hits_table, new_records, new_records_table, record_schema, records_table
from tests.raising import raises
from tests.unit.core.memory.support import unit

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")

PLAIN = Settings(embedder="none")
FULL = {
    "text": "Ada 日本 prefers green tea", "id": "ada-1", "scope": "/users/ada", "kind": "note", "tags": ("tea", "ada"),
    "importance": 0.75, "metadata": {"turn": 3, "deep": {"a": [1, None, "x"]}}, "context": "Ada", "topic": "drinks",
    "source": "chat-7", "position": 4, "created_at": "2026-01-02T03:04:05.678901Z",
    "valid_from": "2025-12-31T23:00:00Z",
    "valid_until": "2026-06-01T00:00:00+02:00", "expires_at": "2100-01-01T00:00:00Z", "pinned": True,
}  # fmt: skip
# What a store sets when it stores a record.
KEPT_BY_THE_STORE = {"updated_at": None, "outcome": "stored"}


def as_stored(record):
    return {**record.to_dict(), **KEPT_BY_THE_STORE}


def test_records_come_back_from_a_table_as_they_were(memory):
    memory.remember_many([FULL, {"text": "bare", "id": "b"}, {"text": "Not searched", "id": "c", "indexed": False}])
    memory.remember("Slides", id="d", expires_at=timedelta(days=3, microseconds=5))
    table = records_table(memory.list(order="oldest"))
    assert table.schema == record_schema()
    with Memory(":memory:", settings=PLAIN) as other:
        assert other.remember_many(new_records(table)) == ["ada-1", "b", "c", "d"]
        for id in ("ada-1", "b", "c"):
            assert as_stored(other.get(id)) == as_stored(memory.get(id))
        assert other.get("d").expires_after == timedelta(days=3, microseconds=5)


def test_columns_have_the_types_that_data_tools_read(memory):
    memory.remember_many([FULL])
    table = records_table(memory.list())
    kinds = {field.name: field.type for field in table.schema}
    assert kinds["created_at"] == kinds["valid_until"] == pa.timestamp("us", tz="UTC")
    assert kinds["tags"] == pa.list_(pa.string())
    assert kinds["metadata"] == pa.string()
    row = table.to_pylist()[0]
    assert row["created_at"] == datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert row["metadata"] == '{"turn":3,"deep":{"a":[1,null,"x"]}}'
    assert records_table([]).schema == record_schema()


def test_vectors_of_several_parts_come_back_byte_for_byte(memory):
    memory.remember(NewRecord("one", id="one", vector=unit(1)))
    memory.remember(NewRecord("two", id="two", vector=np.stack([unit(2), unit(3)])))
    memory.remember(NewRecord("none", id="none", indexed=False))
    vectors = memory.vectors(["one", "two", "none"])
    table = records_table(memory.list(order="oldest"), vectors=vectors)
    assert table.schema.field("vectors").type == pa.list_(pa.list_(pa.float32(), 16))
    with Memory(":memory:", settings=PLAIN) as other:
        other.remember_many(new_records(table))
        again = other.vectors(["one", "two", "none"])
    assert {id: each.tobytes() for id, each in again.items()} == {id: each.tobytes() for id, each in vectors.items()}


def test_a_parquet_file_is_read_in_batches(memory, tmp_path):
    records = [NewRecord(text=f"line {number}", id=str(number), metadata={"n": number}) for number in range(10)]
    parquet.write_table(new_records_table(records), tmp_path / "new.parquet")
    read = list(new_records(tmp_path / "new.parquet", batch_rows=3))
    assert [(each.text, each.id, each.metadata) for each in read] == [
        (each.text, each.id, each.metadata) for each in records
    ]
    assert memory.remember_many(new_records(str(tmp_path / "new.parquet"))) == [str(number) for number in range(10)]


def test_arrow_data_is_taken_in_every_form():
    table = pa.table({"text": ["a", "b", "c"]})

    class Stream:  # as a Polars frame or a DuckDB relation is
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    batches = table.to_batches(max_chunksize=2)
    for source in (table, Stream(), batches, iter(batches), pa.RecordBatchReader.from_batches(table.schema, batches)):
        assert [each.text for each in new_records(source)] == ["a", "b", "c"]
    assert [each.text for each in new_records(batches[0])] == ["a", "b"]
    for wrong in (7, {"text": ["a"]}, ["a"], b"a"):
        with pytest.raises(InvalidInput, match=r"Arrow data|record batches"):
            list(new_records(wrong))


def test_numbers_times_and_structs_of_other_tools_are_read():
    table = pa.table({
        "text": pa.array(["x"]).dictionary_encode(), "position": pa.array([3], pa.int8()),
        "created_at": pa.array([1_767_323_045_678_901_000], pa.timestamp("ns", tz="Europe/Berlin")),
        "metadata": pa.array([{"a": 1}]), "vector": pa.array([[3.0, 4.0]], pa.list_(pa.float64())),
        "topic": pa.nulls(1),
    })  # fmt: skip
    (record,) = new_records(table)
    assert record == NewRecord(
        text="x", position=3, created_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), metadata={"a": 1},
        vector=record.vector,
    )  # fmt: skip
    assert record.vector.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a"], "colour": ["red"]}, "the table has the column 'colour': use text, scope"),
        ({"body": ["a"]}, "the table has the column 'body'"),
        ({"id": ["a"]}, "the table has no column text"),
        ({"text": ["a", None]}, "row 2: the text is null"),
        ({"text": ["a"], "metadata": ["[1]"]}, "row 1: metadata is '\\[1\\]': give a JSON object"),
        ({"text": ["a"], "vector": [["x"]]}, "a vector is no list of numbers"),
        ({"text": ["a"], "embedder": ["{}"], "vector": [[1.0]]}, "embedder is '{}'"),
    ],
)
def test_bad_data_is_named(columns, message):
    with pytest.raises(InvalidInput, match=message):
        list(new_records(pa.table(columns)))


def test_a_file_that_is_no_parquet_is_refused(tmp_path):
    (tmp_path / "x.parquet").write_text("text")
    for name in ("x.parquet", "absent.parquet"):
        with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
            list(new_records(tmp_path / name))


def test_closed_versions_are_passed_over(memory):
    memory.remember("old", id="a")
    memory.update("a", text="new")
    table = records_table(memory.history("a"))
    assert table.num_rows == 2
    assert [each.text for each in new_records(table)] == ["new"]


def test_hits_are_a_table_with_the_number_of_their_question(memory):
    memory.remember_many([{**FULL, "expires_at": None, "valid_until": None}, {"text": "Tea is served at four"}])
    answers = memory.recall_many(["green tea", "submarine", "tea"])
    table = hits_table(answers)
    assert [(row["question"], row["query"], row["rank"], row["id"]) for row in table.to_pylist()] == [
        (number, hits.query, rank, hit.id) for number, hits in enumerate(answers) for rank, hit in enumerate(hits, 1)
    ]
    assert table.column("score").to_pylist() == [hit.score for hits in answers for hit in hits]
    first = next(row for row in table.to_pylist() if row["id"] == "ada-1")
    assert (first["source"], first["position"], first["tags"]) == ("chat-7", 4, ["tea", "ada"])
    named = hits_table(answers, questions=["a", "b", "c"])
    assert set(named.column("question").to_pylist()) == {"a", "c"}
    assert hits_table(answers[0]).column("question").to_pylist() == [0] * len(answers[0])
    with pytest.raises(InvalidInput, match="questions has 1 entries for the hits of 3"):
        hits_table(answers, questions=["a"])


def test_what_an_embedder_made_elsewhere_is_stored_as_if_made_here():
    settings = Settings(embedder="instant")
    texts = ["Ada prefers green tea", "word " * 2_000]
    with Memory(":memory:", settings=settings) as memory, Memory(":memory:", settings=settings) as other:
        memory.remember_many([{"text": text, "id": text[:3]} for text in texts])
        identity = memory._engine.embedder.identity()
        with memory._engine.store.read() as reader:
            rows = reader.records.find_ids(["Ada", "wor"], "/")
            made = {id: reader.vectors.of_record(row) for id, row in rows.items()}
        assert len(made["wor"].values) > 1
        records = [
            NewRecord(text=text, id=text[:3], vector=EmbeddedText(identity, *made[text[:3]][:2])) for text in texts
        ]
        other.remember_many(new_records(new_records_table(records)))
        with other._engine.store.read() as reader:
            rows = reader.records.find_ids(["Ada", "wor"], "/")
            assert {id: reader.vectors.of_record(row) for id, row in rows.items()} == made
        assert other.store.verify().ok


def test_what_another_embedder_made_or_what_is_damaged_is_refused():
    with Memory(":memory:", settings=Settings(embedder="instant")) as memory:
        identity = memory._engine.embedder.identity()
        unit_bytes = memory._engine.embedder.documents(["x"], [None])[0].vectors[0].astype("<f4").tobytes()
        other = EmbeddedText(identity._replace(fingerprint="other"), (unit_bytes,))
        with pytest.raises(EmbedderMismatch, match="the text was embedded by"):
            memory.remember(NewRecord("x", vector=other))
        damaged = [
            EmbeddedText(identity, (unit_bytes[:-4],)), EmbeddedText(identity, ()),
            EmbeddedText(identity, (unit_bytes,), (b"123",)), EmbeddedText(identity, (unit_bytes,), (b"", b"")),
            EmbeddedText(identity, (b"\x00" * len(unit_bytes),)), EmbeddedText(identity, (b"\xff" * len(unit_bytes),)),
        ]  # fmt: skip
        for vector in damaged:
            with raises(InvalidInput, "vector"):
                memory.remember(NewRecord("x", vector=vector))
        with pytest.raises(InvalidItem) as caught:
            memory.remember_many(["a", {"text": "x", "vector": damaged[0]}])
        assert caught.value.position == 1
        refused = memory.remember(NewRecord("y", vector=EmbeddedText(identity, (), refused="too long")))
        assert refused.embedding_state == "refused"
        assert memory.count() == 1
