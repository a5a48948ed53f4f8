"""Models named by their provider: asked through litellm, each in its own protocol, of a server on this machine."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.fixture
def litellm():
    return pytest.importorskip("litellm", reason="needs the extra providers")


def test_opening_a_memory_imports_no_router():
    program = """
import sys, types, importlib.machinery
from recallite import Memory
from recallite.model import environment as model_address
model_address.find_spec = lambda name: importlib.machinery.ModuleSpec(name, None)
with Memory(":memory:", embedder="voyage/voyage-3", language_model="gemini/gemini-2.0-flash"):
    print("litellm" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "False\n", ran.stderr
