"""A store with rows in every table, as the public methods make them, and writers where those need a model."""

from __future__ import annotations

from datetime import timedelta

from recallite import Memory, Settings
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite.remember.pending import policy_json
from recallite.store.columns import Parts
from recallite.store.sql.meta import AccessTokenRow
from recallite.store.sql.relations import Judgement
from tests.unit.core.memory.support import unit

NOW = 1_750_000_000_000_000
_MACHINES = ("gateway", "scheduler", "archive")


def fill(path: str, folder, notes: int = 120) -> None:
    """Everything that a store can hold, in several scopes."""
    with Memory(path, settings=Settings(index_snapshot=False)) as memory:
        _remember(memory, notes)
        memory.store.catch_up()
        memory._engine.comparing.stop()
        _use_services(memory)
        document = folder / "guide.md"
        document.write_text("# Deploying\n\nRestart the gateway first.\n\n# Rolling back\n\nStop the workers.\n")
        memory.knowledge.ingest(str(document), scope="/docs")
        store = memory._engine.store
        first, second = memory.list(scope="/team", limit=2)
        with store.atomic() as writer:
            ids = writer.records.find_ids([first.id, second.id], "/")
            old, new = sorted(ids.values())
            writer.comparisons.add([new], policy_json(WritePolicy()))
            writer.comparisons.put_pairs([Judgement(old, new, 0.5, "may be the same", NOW)])
            embedder = writer.vectors.active_embedder()
            writer.vectors.add_refusals(embedder.id, {old: "too long"})
            writer.embedding_cache.keep(embedder, {b"h" * 32: Parts((unit(1, embedder.dimension).tobytes(),))}, None)
            writer.access_tokens.add(
                AccessTokenRow("t1", "phone", "/team", '["/handbook"]', True, 0, NOW, None), b"s" * 32
            )
            writer.meta.put_identity("identity-of-this-store")


def _remember(memory: Memory, notes: int) -> None:
    ids = memory.remember_many(
        {
            "text": f"Note {number}: the {_MACHINES[number % 3]} was restarted {number} times",
            "scope": ("/team", "/team/ada", "/other")[number % 3],
            "tags": [f"tag{number % 4}", "ops"],
            "importance": 0.2 + 0.01 * (number % 50),
            "metadata": {"number": number, "é": [1.5, None]},
            "source": f"log {number % 2}" if number % 2 else None,
            "created_at": f"2026-01-{1 + number % 28:02}T08:00:00Z",
        }
        for number in range(notes)
    )
    memory.update(ids[3], text="Note 3: the gateway was replaced")
    memory.update(ids[4], tags=["moved"], pinned=True)
    memory.forget(ids[-1])
    memory.link(ids[0], ids[3], type="causal", strength=0.25)
    lives = memory.remember("Ada lives in Paris", scope="/team/ada")
    memory.remember(NewRecord("Ada lives in Oslo", scope="/team/ada", supersedes=lives.id))
    worked = memory.remember("Ada works for Globex", scope="/team/ada")
    memory.remember(NewRecord("Ada works for Initech", scope="/team/ada", supersedes=worked.id))
    memory.restore(worked.id)
    memory.remember("Grace likes tea", scope="/team", created_at="2026-01-01T00:00:00Z")
    memory.remember("Grace likes tea!", scope="/team", created_at="2026-01-02T00:00:00Z")
    memory.remember("Always answer in French", scope="/team", kind="instruction")
    memory.remember("It expires", scope="/team", expires_at=timedelta(days=9000))
    memory.remember(NewRecord("Kept out of recall", scope="/team", indexed=False))
    memory.recall("gateway", limit=3)


def _use_services(memory: Memory) -> None:
    session = memory.sessions.open("chat", agent="ada", provider="test")
    session.extend(
        [{"role": "user", "content": "Where is the gateway?"}, {"role": "assistant", "content": "In rack 4"}]
    )
    memory.episodes.log("Restarted the gateway", agent="ada", task_id="t")
    memory.episodes.snapshot("chat", agent="ada", summary="about the gateway", key_decisions=["rack 4"], total_cost=0.1)
    memory.procedures.save("restart", "how to restart", pattern="stop; start", agent="ada")
    memory.procedures.record_outcome("restart", True, agent="ada")
    memory.experience.record(task_type="deploy", tools=["git", "make"], success=True, steps=3, agent="ada")
    memory.experience.record_recovery(tool="git", error="conflict in a.txt", recovery="rebase", agent="ada")
    memory.consolidator.run(agent="ada")
    working = memory.working.agent("ada")
    working.add("the gateway is in rack 4")
    working.save()
