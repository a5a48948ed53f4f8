"""An embedder that fails loses nothing; another embedder's vectors are never mixed in; reembed can be resumed."""

from __future__ import annotations

import pytest

from recallite import Memory
from tests.unit.core.memory.support import WordEmbedder, run, spawn

_REEMBED = """
import os, sys
from recallite import Memory
from tests.unit.core.memory.support import WordEmbedder
with Memory(sys.argv[1], embedder=WordEmbedder("other", 24)) as memory:
    def told(done, total):
        print(done, flush=True)
        if done >= 512:
            sys.stdin.readline()
    memory.store.reembed(on_progress=told)
"""


def test_a_killed_reembed_is_resumed_and_the_old_vectors_serve_meanwhile(path):
    with Memory(path, embedder=WordEmbedder()) as memory:
        ids = memory.remember_many([f"word{number} common" for number in range(1000)])
        process = spawn(_REEMBED, path)
        while (line := process.stdout.readline()) and int(line) < 512:
            pass
        assert line, process.stderr.read()
        before = memory.recall("word7 common", limit=1)[0]
        assert (before.id, memory.store.stats().embedder) == (ids[7], "words")
        new = memory.remember("written meanwhile")
        memory.update(ids[3], text="changed meanwhile")
        memory.forget(ids[4])
        assert memory.recall("word7", mode="vector", limit=1)[0].id == ids[7]
        process.kill()
        process.communicate()
        assert memory.recall("word8", mode="vector", limit=1)[0].id == ids[8]
        assert memory.store.verify().problems == ()
    other = WordEmbedder("other", 24)
    with Memory(path, embedder=other) as memory:
        done = memory.store.reembed()
        assert not [text for text in other.texts if text.startswith("word7 ")], "made before the kill"
        assert 0 < done <= 1002 - 512 + 1
        assert (memory.store.stats().embedder, memory.store.stats().pending) == ("other", 0)
        assert memory.store.verify().problems == ()
        for query, wanted in (("word7 common", ids[7]), ("written meanwhile", new.id), ("changed meanwhile", ids[3])):
            assert memory.recall(query, mode="vector", limit=1)[0].id == wanted


_WITHOUT = """
import sys
for name in sys.argv[2].split(","):
    sys.modules[name] = None
from recallite import Memory
with Memory(sys.argv[1]) as memory:
    stored = memory.remember("We migrated to MySQL", tags=["database"])
    other = memory.remember_many(["Lunch is at noon"])[0]
    memory.link(stored.id, other)
    memory.update(other, text="Lunch is at one")
    print([hit.id == stored.id for hit in memory.recall("MySQL", limit=1)])
    print(memory.store.verify().ok, memory.store.rebuild().ok, memory.store.verify().ok, memory.store.vacuum() >= 0)
    memory.forget(other)
    figures = memory.store.stats()
    print(figures.mode, figures.kernels, figures.vector_extension is None, memory.get(stored.id).embedding_state)
    print(" | ".join(figures.notes))
"""


@pytest.mark.parametrize(
    ("missing", "mode", "noted"),
    [
        ("onnxruntime", "keyword", "onnxruntime"),
        ("tokenizers", "keyword", "tokenizers"),
        ("recallite_models", "keyword", "models"),
        ("sqlite_vec", "hybrid", "sqlite-vec"),
        ("numba", "hybrid", "Python"),
        ("onnxruntime,tokenizers,sqlite_vec,numba", "keyword", "sqlite-vec"),
    ],
)
def test_without_an_optional_part_the_engine_works_and_says_so(path, missing, mode, noted):
    environment = {} if "numba" not in missing else {"RECALLITE_KERNELS": ""}
    said = run(_WITHOUT, path, missing, **environment).splitlines()
    assert said[:2] == ["[True]", "True True True True"]
    found, kernels, no_vec, embedding = said[2].split()
    assert (found, kernels, no_vec) == (mode, "python", str("sqlite_vec" in missing))
    assert embedding == ("embedded" if mode == "hybrid" else "pending")
    assert noted.lower() in said[3].lower()
    with Memory(path) as memory:  # everything is installed here: what waited is embedded
        assert memory.store.verify().problems == ()
        memory.store.rebuild()
        assert memory.store.stats().pending == 0
        assert memory.recall("database migration", mode="vector", limit=1)[0].text == "We migrated to MySQL"
