"""Objects with the protocol, documents of a plain embedder, names, the query cache."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ("numpy", "onnxruntime", "tokenizers")
    code = f"import sys, recallite.embedding; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
