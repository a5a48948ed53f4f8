"""The client of chat completions against a real server: what it sends, what it survives, what it says when it fails."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.endpoint import Answer, said


def test_nothing_is_imported_where_nothing_is_named():
    code = """
import sys
from recallite import Memory
with Memory(":memory:") as memory:
    memory.remember("The ferry leaves at nine")
    assert memory.recall("When does the ferry leave?")
print(sorted({"httpx2", "stamina", "email.utils"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_retry_prints_nothing(server):
    server.script = [Answer({}, 429, {"Retry-After": "0"}), said("now")]
    code = """
import sys
from recallite.remote import OpenAICompatible
print(OpenAICompatible(sys.argv[1], "tiny").complete([{"role": "user", "content": "x"}]))
"""
    done = subprocess.run([sys.executable, "-c", code, server.url], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("now\n", "")


@pytest.mark.parametrize("missing", ["httpx2", "stamina"])
def test_a_missing_library_is_an_error_that_names_the_extra(missing):
    code = f"""
import sys
sys.modules[{missing!r}] = None
from recallite import Memory
from recallite.embedding.remote_embedder import RemoteEmbedder
from recallite.errors import EmbedderError, LanguageModelError
from recallite.remote import OpenAICompatible
for make, error in ((OpenAICompatible, LanguageModelError), (RemoteEmbedder, EmbedderError)):
    try:
        make("http://127.0.0.1:9/v1", "tiny")
    except error as fault:
        assert fault.reason in (None, "missing")
        print(fault)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert [f"needs {missing}: pip install '.[llm]'" in line for line in lines] == [True, True]
