"""Where tokens begin: the measure of chunks, the same whether or not a model can be loaded."""

from __future__ import annotations

import sys


def test_no_model_is_loaded_for_it():
    import subprocess

    code = (
        "import sys; from recallite.embedding.handle import EmbedderHandle; "
        "EmbedderHandle('default', query_cache_size=1).token_starts(['a b c']); print('onnxruntime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
