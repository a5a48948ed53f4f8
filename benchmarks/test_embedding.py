"""Texts to vectors: pytest benchmarks/test_embedding.py."""

from __future__ import annotations

import pytest

from recallite.embedding import embed_documents

CHAT_TURNS, PASSAGES = 128, 16


def test_embed_one_query(benchmark, embedder, questions, turn):
    benchmark(lambda: embedder.embed([questions[turn(len(questions))]]))


def test_embed_chat_turns(benchmark, embedder, lines):
    """128 turns of about 33 tokens."""
    turns = [" ".join(line.split()[:24]) for line in lines[:CHAT_TURNS]]
    benchmark.extra_info["texts"] = len(turns)
    benchmark.pedantic(embed_documents, args=(embedder, turns, ["Ada"] * len(turns)), rounds=5, warmup_rounds=1)


def test_embed_full_windows(benchmark, embedder, lines):
    """16 passages that fill the model's window."""
    passages = [_filled(lines[40 * i : 40 * (i + 1)], embedder) for i in range(PASSAGES)]
    benchmark.extra_info["texts"] = len(passages)
    benchmark.pedantic(embedder.embed, args=(passages,), rounds=5, warmup_rounds=1)


def test_embed_one_long_document(benchmark, embedder, lines):
    """One text of many parts."""
    text = " ".join(lines[:200])
    benchmark.pedantic(embed_documents, args=(embedder, [text], [None]), rounds=3, warmup_rounds=1)


def test_count_tokens(benchmark, embedder, lines):
    if not hasattr(embedder, "count_tokens"):
        pytest.skip(f"{embedder.name} counts no tokens")
    benchmark(embedder.count_tokens, lines[:1000])


def _filled(lines, embedder):
    return " ".join(" ".join(lines).split()[: embedder.max_tokens])
