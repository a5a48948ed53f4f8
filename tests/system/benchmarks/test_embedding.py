"""What the embedding benchmark embeds, and how its saved result reads."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

from benchmarks.corpus import synthetic_lines
from benchmarks.embedding import RESULTS, markdown, workloads
from recallite.embedding import load


def test_texts_have_the_lengths_that_their_names_say() -> None:
    embedder: Any = load()
    texts = workloads(list(islice(synthetic_lines(), 400)), embedder)
    assert all(1 <= len(query.split()) <= 12 for query in texts["one query"])
    turns = embedder.count_tokens(texts["chat turns"])
    assert turns
    assert all(25 <= tokens + 2 < 42 for tokens in turns)
    windows = embedder.count_tokens(texts["full windows"])
    assert windows
    assert all(tokens + 2 >= embedder.max_tokens for tokens in windows)


def test_the_saved_result_renders_a_row_a_case() -> None:
    rows = markdown(json.loads(RESULTS.read_text("utf-8"))).splitlines()
    assert [row.split("|")[1].strip() for row in rows] == ["case", "---", "one query", "chat turns", "full windows"]
