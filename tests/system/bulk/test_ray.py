"""Bulk work on two nodes of a Ray cluster that is started here: equal to one process, whatever happens to workers."""

from __future__ import annotations

import json

import pytest

from benchmarks.ray_nodes import two_nodes
from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.reports import Remembered
from recallite_bulk import recall as recall_here
from recallite_bulk import remember_many
from tests.system.bulk.test_bulk import Killing, lines, state

ray = pytest.importorskip("ray", reason="ray is not installed: the extra `ray`")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("ray.data", reason="ray[data] is not installed")

from recallite_bulk import on_ray  # noqa: E402
from recallite_bulk.arrow import new_records_table  # noqa: E402

INSTANT = Settings(embedder="instant")
WORKERS = 2
NOW = "2026-06-01T00:00:00Z"


@pytest.fixture(scope="module")
def cluster():
    """Two nodes on this machine."""
    with two_nodes() as nodes:
        yield nodes


@pytest.fixture
def corpus(tmp_path):
    """A file of 600 memories as JSON lines."""
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines(600)))
    return path


@pytest.fixture
def expected(tmp_path):
    """What one process stores of the corpus."""
    with Memory(tmp_path / "one.db", settings=INSTANT) as memory:
        remember_many(memory, lines(600), batch_size=100)
        return state(memory)


def test_two_nodes_store_what_one_process_stores_and_a_second_run_nothing(cluster, corpus, expected, tmp_path):
    assert len([each for each in ray.nodes() if each["Alive"]]) == 2
    store = tmp_path / "ray.db"
    done = []
    result = on_ray.remember(
        corpus, store, settings=INSTANT, workers=WORKERS, batch_size=100, on_progress=lambda *told: done.append(told[0])
    )
    assert result == Remembered(records=600)
    assert done == [100, 200, 300, 400, 500, 600]
    with Memory(store, settings=INSTANT) as memory:
        assert state(memory) == expected
        memory.forget(memory.list(limit=50)[7].id)
    again = on_ray.remember(corpus, store, settings=INSTANT, workers=WORKERS, batch_size=100)
    assert again == Remembered(records=1, known=599)


def test_a_worker_killed_in_the_middle_changes_nothing(cluster, corpus, tmp_path):
    allowed = tmp_path / "allowed"
    allowed.touch()
    embedder = Killing(str(allowed))
    done = on_ray.remember(corpus, tmp_path / "ray.db", embedder=embedder, workers=WORKERS, batch_size=100)
    assert not allowed.exists(), "no worker was killed"
    assert done == Remembered(records=600)
    with Memory(tmp_path / "one.db", embedder=embedder) as memory:
        remember_many(memory, lines(600), batch_size=100)
        expected = state(memory)
    with Memory(tmp_path / "ray.db", embedder=embedder) as memory:
        assert state(memory) == expected
        assert memory.store.verify().ok


def test_workers_of_two_nodes_write_to_a_server_themselves(cluster, corpus, expected, postgres_address):
    given = {"settings": INSTANT, "workers": WORKERS, "batch_size": 100}
    assert on_ray.remember(corpus, postgres_address, **given) == Remembered(records=600)
    with Memory(postgres_address, settings=INSTANT) as memory:
        stored = state(memory)
        memory.forget(stored[0][7]["id"])
    # Which batch comes first is not known, so the order and what supersedes what are not compared.
    assert {each["id"]: each["text"] for each in stored[0]} == {each["id"]: each["text"] for each in expected[0]}
    assert stored[1] == expected[1]
    assert on_ray.remember(corpus, postgres_address, **given) == Remembered(records=1, known=599)


def test_hits_are_those_of_one_process_byte_for_byte(cluster, ready_kernels, tmp_path):
    store = tmp_path / "one.db"
    with Memory(store, settings=INSTANT) as memory:
        remember_many(memory, lines(200))
    table = pa.table({
        "question": [f"q{number}" for number in range(90)],
        "query": [f"{each['text'][4:11]} number {number}" for number, each in enumerate(lines(90))],
        "answer": ["is passed over"] * 90,
    })  # fmt: skip
    with Memory(store, settings=INSTANT) as memory:
        memory.store.warmup()
        wanted = pa.concat_tables(
            recall_here(batch, memory, limit=3, now=NOW) for batch in table.to_batches(max_chunksize=32)
        )
    found = on_ray.recall(
        ray.data.from_arrow(table), store, settings=INSTANT, limit=3, now=NOW, workers=WORKERS, batch_size=32
    )
    blocks = [*found.iter_batches(batch_size=None, batch_format="pyarrow")]
    assert pa.concat_tables(blocks).to_pylist() == wanted.to_pylist()
    assert wanted.num_rows == 270


def test_embedded_records_can_be_kept_as_parquet_and_stored_later(cluster, tmp_path):
    records = ray.data.from_arrow(new_records_table(NewRecord(**each) for each in lines(50)))
    on_ray.embed(records, settings=INSTANT, workers=1, batch_size=25).write_parquet(str(tmp_path / "embedded"))
    with Memory(tmp_path / "a.db", settings=INSTANT) as memory, Memory(tmp_path / "b.db", settings=INSTANT) as other:
        assert on_ray.remember(sorted((tmp_path / "embedded").glob("*.parquet")), tmp_path / "a.db", settings=INSTANT,
                               workers=1).records == 50  # fmt: skip
        remember_many(other, lines(50), batch_size=25)
        assert state(memory)[1] == state(other)[1]


def test_what_is_wrong_in_a_worker_is_a_typed_error_here(cluster, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "fine"}\n{"text": 4}\n')
    with pytest.raises(InvalidInput, match="got `int` at `text`"):
        on_ray.remember(path, tmp_path / "a.db", settings=INSTANT, workers=1)
    questions = ray.data.from_arrow(pa.table({"query": ["a"]}))
    for store, message in ((tmp_path / "a.db", "no column question"), (tmp_path / "absent.db", "there is no store at")):
        hits = on_ray.recall(questions, store, settings=INSTANT, workers=1)
        with pytest.raises(ray.exceptions.RayError, match=message):
            hits.take_all()
    with pytest.raises(InvalidInput, match="embedder 'absent' is not known"):
        on_ray.remember(tmp_path / "bad.jsonl", tmp_path / "b.db", embedder="absent", workers=1)
    with pytest.raises(InvalidInput, match="of one kind"):
        on_ray.remember(["a.jsonl", "b.parquet"], tmp_path / "a.db", settings=INSTANT)
    with pytest.raises(InvalidInput, match="of one kind"):
        on_ray.remember("a.csv", tmp_path / "a.db", settings=INSTANT)
