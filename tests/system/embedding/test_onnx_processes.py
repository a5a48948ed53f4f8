"""The ONNX embedder: batches, parts, threads, forks, long texts."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from recallite.embedding.onnx import OnnxEmbedder
from tests.unit.core.embedding.test_onnx import embedder, texts  # noqa: F401

WORDS = Path(__file__).with_name("test_onnx_processes.py").read_text("utf-8").split()


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
