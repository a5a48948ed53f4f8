"""PostgreSQL beside a file and beside pgvector, on a hundred lines."""

from __future__ import annotations

from itertools import islice

import pytest

from benchmarks import corpus, dataset
from benchmarks.cached_embedder import CachedEmbedder
from tests.attacks.workload import Embedder

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")

from benchmarks import postgres


@pytest.mark.parametrize(("records", "copied"), [(80, False), (70, True)])
def test_both_stores_find_the_same_and_every_figure_is_shown(postgres_server, tmp_path, monkeypatch, records, copied):
    few = {"_MANY": 12, "_SINGLE": 3, "_QUESTIONS": 5, "_WARM_UP": 1, "_ROUNDS": 1}
    for name, count in {**few, "_MOST_LOADED": 0 if copied else records}.items():
        monkeypatch.setattr(postgres, name, count)
    embedder = CachedEmbedder(Embedder())
    lines = [*islice(corpus.synthetic_lines(), records + 27)]
    questions = corpus.queries(lines[records:], 7)
    vectors = embedder.embed(lines)
    data = dataset.write(tmp_path / "data", lines, vectors, questions, embedder.embed(questions))
    loaded: list[str] = []
    found = postgres._size(postgres_server, data, embedder, loaded.append)
    assert loaded == [f"{records} records are loaded"]
    assert found["same_hits"] == found["questions"] == 5
    measured = {"postgresql": "18", "commit": "c", "date": "d", "cores": 2, "load_before": 0, "load_after": 0}
    text = postgres.markdown({str(records): found | measured})
    shown = {key for key, name in postgres._ROWS.items() if f"| {name} |" in text}
    assert shown == set(postgres._ROWS) - (set() if copied else {"copy_records_s"})


def test_pgvector_fuses_what_is_near_with_what_holds_every_word(postgres_server):
    from benchmarks.pgvector_hybrid import PgvectorHybrid

    embedder, texts = Embedder(), ["a violin in a case", "the cello", "a violin and its bow"]
    hybrid = PgvectorHybrid(postgres_server.address(), "hybrid", embedder.dimension)
    try:
        hybrid.fill(texts, embedder.embed(texts))
        (asked,) = embedder.embed(["violin bow"])
        assert hybrid.recall("violin bow", asked, 2)[0] == 2
        assert hybrid.size() > 0
    finally:
        hybrid.close()
