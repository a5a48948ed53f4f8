"""Tiers of set-up (seed 002): "standard" loads no model and needs no onnxruntime; "enhanced" has vectors as well."""

from __future__ import annotations

from tests.unit.core.memory.support import run

_ALL = """
import sys
for name in ("onnxruntime", "tokenizers"):
    sys.modules[name] = None  # importing it now fails, as where it is not installed
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(embedder="none")) as memory:
    memory.working.add("in mind")
    memory.working.promote(memory.working.evict().item)
    memory.semantic.add("MySQL serves the orders", agent="ada")
    for number in range(3):
        memory.episodes.log(f"episode {number}", agent="ada")
        memory.experience.record(task_type="query", tools=["x"], success=True)
    memory.procedures.save("deploy", "How to deploy", agent="ada")
    memory.procedures.record_outcome("deploy", True, agent="ada")
    session = memory.sessions.open("s", agent="ada")
    session.append("user", "which database")
    print(len(memory.sessions.search("databases")))
    session.end(snapshot=True)
    print(memory.consolidator.run("ada").compressed)
    ready = memory.bootstrap("ada", "orders", 500)
    print(len(ready.records), len(ready.episodes), len(ready.procedures), len(ready.tips), ready.snapshot is not None)
    print(memory.recall("orders")[0].text, memory.store.stats().mode, memory.store.stats().vectors)
    print(memory.store.verify().ok, "recallite.embedding.onnx" in sys.modules)
"""


def test_standard_loads_no_model_and_every_service_works_without_onnxruntime(path):
    assert run(_ALL, path).splitlines() == [
        "1",
        "3",
        "1 3 1 1 True",
        "MySQL serves the orders keyword 0",
        "True False",
    ]
