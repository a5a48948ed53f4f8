"""Rows and embedders for the contract."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite.store.columns import Parts, Row
from recallite.text.standing import standing_of
from recallite.text.words import content_hash
from tests.unit.core.memory.support import DIMENSION, unit

NOW = 1_750_000_000_000_000
KEY = "a passphrase"
EMBEDDER = {"fingerprint": f"contract:{DIMENSION}", "name": "contract", "dimension": DIMENSION}


def row(public_id: str, text: str | None = None, **values: Any) -> Row:
    """A record as a service would write it."""
    text = f"text of {public_id}" if text is None else text
    given = {
        "kind": "note", "scope": "/", "context": None, "importance": 0.5, "pinned": False, "topic": None,
        "source": None, "position": None, "created_at": NOW, "valid_from": None, "updated_at": NOW, "expires_at": None,
        "recorded_from": NOW, "metadata": None,
    } | values  # fmt: skip
    return Row(
        public_id=public_id, text=text, content_hash=content_hash(text, given["context"]),
        standing=standing_of(given["kind"], text, given["context"]), **given,
    )  # fmt: skip


def vector(seed: int) -> bytes:
    return unit(seed).tobytes()


def parts(*seeds: int) -> Parts:
    return Parts(tuple(map(vector, seeds)))


def matrix(*seeds: int) -> np.ndarray:
    return np.array([unit(seed) for seed in seeds])
