"""Tiers of set-up (seed 002): "standard" loads no model and needs no onnxruntime; "enhanced" has vectors as well."""

from __future__ import annotations

from recallite import Memory, Settings


def test_enhanced_is_the_default_and_has_vectors():
    with Memory(":memory:") as memory:
        memory.semantic.add("The film was wonderful")
        assert memory.store.stats().vectors == 1
        assert memory.store.stats().mode == "hybrid"


def test_without_an_embedder_there_are_keywords_alone():
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        memory.semantic.add("The film was wonderful")
        assert memory.store.stats().vectors == 0
        assert [hit.text for hit in memory.semantic.search("film")] == ["The film was wonderful"]
