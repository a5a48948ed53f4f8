"""The embedder without a network: its files, its words, its vectors, and a store that moves to it and back."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recallite.embedding import load
from recallite.embedding.instant import InstantEmbedder


@pytest.fixture(scope="module")
def embedder() -> InstantEmbedder:
    found = load("instant")
    assert isinstance(found, InstantEmbedder)
    return found


def test_onnxruntime_is_not_imported() -> None:
    code = (
        "import sys; from recallite.embedding import load; load('instant').embed(['a cat']); "
        "print(sorted({'onnxruntime', 'recallite.embedding.onnx'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
