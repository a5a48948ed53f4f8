"""Both ways of a small memory on a server are measured, and the tables have what was measured."""

from __future__ import annotations

import pytest

from benchmarks import corpus, dataset

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")

from benchmarks import postgres_candidates


def test_both_ways_are_measured_and_told(tmp_path, postgres_address):
    lines, vectors = corpus.read_lines(None, 1010), corpus.mixture(1010, 384)
    data = dataset.write(tmp_path / "data", lines[:1000], vectors[:1000], lines[1000:], vectors[1000:])
    found = postgres_candidates.measure(postgres_address, data, questions=3, log=lambda _: None)
    assert list(found["filters"]) == ["none", "10 %", "1 %", "0.1 %"]
    for figures in found["filters"].values():
        assert figures["memory"]["recall_at_10"] == figures["server"]["recall_at_10"] == 1.0
        assert figures["shared_hits_at_10"] == 1.0
    compared = postgres_candidates.formats(postgres_address, data, 500, questions=3, log=lambda _: None)
    assert {each["recall_at_10"] for name, each in compared.items() if name != "records"} == {1.0}
    described = {"processor": "P", "cores": 2, "load_before": 0.1, "commit": "abc", "date": "2026-11-23"}
    told = postgres_candidates.markdown({**described, **found, "formats": compared})
    assert "| 0.1 % | 1.000 | 1.000 | 1.000 |" in told
    assert "| halfvec of 8-bit codes |" in told
