"""Tiers of set-up (seed 002): "standard" loads no model and needs no onnxruntime; "enhanced" has vectors as well."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput


def test_enhanced_is_the_default_and_has_vectors():
    assert Settings().tier == "enhanced"
    with Memory(":memory:", settings=Settings(tier="enhanced")) as memory:
        memory.semantic.add("The film was wonderful")
        assert memory.store.stats().vectors == 1
        assert memory.store.stats().mode == "hybrid"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tier": "premium"}, "Settings.tier is 'premium': use 'standard' or 'enhanced'"),
        ({"tier": "1"}, "tier is '1'"),
        ({"tier": "standard", "embedder": "default"}, "Settings.tier 'standard' loads no embedder"),
    ],
)
def test_bad_tiers_are_refused(fields, message):
    with pytest.raises(InvalidInput, match=message):
        Settings(**fields)
