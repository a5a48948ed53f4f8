"""The cost of a recall's parts, on a store of sixty lines."""

from __future__ import annotations

from benchmarks import recall_cost
from recallite import Memory, Settings
from recallite.embedding import load


def test_every_variant_is_timed_and_shown():
    run = recall_cost.measure(None, records=60, real=8, count=5, cache=None)
    assert list(run["variants"]) == list(recall_cost.VARIANTS)
    assert run["variants"]["all turned off"]["extra_p50_ms"] == 0.0
    text = recall_cost.markdown(run)
    assert all(f"| {name} |" in text for name in recall_cost.VARIANTS)


def test_lines_past_the_real_ones_have_their_codes_and_vectors_near_theirs():
    lines = ["The kettle leaks.", "Ada mended the violin.", "Bob sold it."]
    prepared = recall_cost.Prepared(load(), lines, ["Who sold the violin?"], real=2)
    embedded, codes = prepared.embed_document_tokens(lines, [None] * 3)
    assert codes[2] == codes[0] != codes[1]
    assert 0.5 < float(embedded.vectors[2] @ embedded.vectors[0]) < 0.95
    with Memory(":memory:", embedder=prepared, settings=Settings(token_codes=True)) as memory:
        memory.remember_many(recall_cost.sessions(lines))
        hit = memory.recall("Who sold the violin?")[0]
    assert hit.source.id == "session 0"
    assert hit.context in recall_cost._SPEAKERS
