"""The ONNX embedder: batches, parts, threads, forks, long texts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import recallite_models
from recallite.embedding.onnx import OnnxEmbedder

WORDS = Path(__file__).with_name("test_onnx_processes.py").read_text("utf-8").split()


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder(recallite_models.path())


def texts(count: int, seed: int = 7) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(1, 60))) for _ in range(count)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_embeds_with_its_own_session(embedder: OnnxEmbedder) -> None:
    batch = texts(40)
    expected = embedder.embed(batch)
    child = os.fork()
    if child == 0:
        same = False
        try:
            same = bool(np.allclose(embedder.embed(batch), expected, atol=1e-5))
        finally:
            os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
