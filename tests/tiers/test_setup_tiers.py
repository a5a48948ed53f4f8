"""Tiers of set-up (seed 002): "standard" loads no model and needs no onnxruntime; "enhanced" has vectors as well."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from tests.memory.support import run

_ALL = """
import sys
for name in ("onnxruntime", "tokenizers"):
    sys.modules[name] = None  # importing it now fails, as where it is not installed
from recallite import Memory, Settings
with Memory(sys.argv[1], settings=Settings(tier="standard")) as memory:
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
    print(memory.recall("orders")[0].text, memory.stats().mode, memory.stats().vectors)
    print(memory.verify().ok, "recallite.embedding.onnx" in sys.modules)
"""


def test_standard_loads_no_model_and_every_service_works_without_onnxruntime(path):
    assert run(_ALL, path).splitlines() == [
        "1",
        "3",
        "1 3 1 1 True",
        "MySQL serves the orders keyword 0",
        "True False",
    ]


def test_enhanced_is_the_default_and_has_vectors():
    assert Settings().tier == "enhanced"
    with Memory(":memory:", settings=Settings(tier="enhanced")) as memory:
        memory.semantic.add("The film was wonderful")
        assert memory.stats().vectors == 1
        assert memory.stats().mode == "hybrid"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tier": "premium"}, "Settings.tier is 'premium': use 'standard' or 'enhanced'"),
        ({"tier": "1"}, "tier is '1'"),
        ({"tier": "standard", "embedder": "default"}, "Settings.tier 'standard' loads no embedder"),
    ],
)
def test_bad_tiers_are_refused(fields, message):
    with pytest.raises(InvalidInput, match=message):
        Settings(**fields)
