"""What models are shown of the tools, in the shapes that providers take."""

from __future__ import annotations

import subprocess
import sys


def test_the_tools_load_neither_a_compiler_nor_a_model():
    code = """
import sys
import recallite_tools
recallite_tools.schemas()
print(sorted({"numba", "onnxruntime", "httpx2"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
