"""Texts are embedded, files read and models asked before the store is locked, on every path that writes.

The embedder and the language model of these tests ask whether others could write just then, on another connection.
"""

from __future__ import annotations

import json
from io import StringIO

import apsw
import pytest

from recallite import Memory, NewRecord, Settings
from recallite.agents.consolidation import Fact
from recallite.doors import calls
from recallite.model.settings import WritePolicy
from recallite.remember.pending import embed_pending
from recallite_connect.mem0 import Memory as Mem0
from recallite_server.hooks.events import answer
from tests.unit.core.memory.support import WordEmbedder


class Asking(WordEmbedder):
    """An embedder, and a language model, that note each call for which other writers would have waited."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path, self.calls, self.locked = path, 0, []
        self.answers: list[str] = []

    def embed(self, texts):
        self._look(texts)
        return super().embed(texts)

    def complete(self, messages, *, schema=None, max_tokens=None):
        self._look(messages)
        return self.answers.pop(0) if self.answers else "{}"

    def _look(self, what) -> None:
        self.calls += 1
        connection = apsw.Connection(self.path)
        try:
            connection.execute("BEGIN IMMEDIATE; ROLLBACK").fetchall()
        except apsw.BusyError:
            self.locked.append(what)
        finally:
            connection.close()


@pytest.fixture
def asking(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = str(tmp_path / "agent.db")
    Memory(path, settings=Settings(embedder="none")).close()
    return Asking(path)


@pytest.fixture
def memory(asking):
    settings = Settings(write=WritePolicy(link_cosine=0.8, judge=True))
    with Memory(asking.path, embedder=asking, language_model=asking, settings=settings) as opened:
        opened._engine.comparing.stop()  # a turn of the background would look like a lock of the caller's
        opened._engine.background.stop()
        yield opened


def hook(memory, folder, event, **fields):
    return answer(memory, event, "gemini-cli", {"session_id": "s1", "cwd": str(folder), **fields}, None)


def transcript(folder):
    lines = [
        {"type": role, "uuid": f"u{place}", "sessionId": "s1", "cwd": str(folder),
         "timestamp": f"2026-04-01T10:0{place}:00Z", "message": {"role": role, "content": f"{role} says {place} plums"}}
        for place, role in enumerate(["user", "assistant"] * 3)
    ]  # fmt: skip
    path = folder / "s1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return str(path)


def exported(memory, vectors=False):
    target = StringIO()
    memory.transfer.export(target, vectors=vectors)
    return target.getvalue()


LINES = "".join(json.dumps({"text": f"Shelf {n} holds plums"}) + "\n" for n in range(70))


def consolidated(memory, folder):
    memory.episodes.log("Grace moved the plums to the attic", agent="a")
    episode = memory.episodes.list(agent="a")[0]
    memory.consolidator.run("a", extract=lambda _: [Fact(content="The plums are in the attic", episodes=[episode.id])])


def edited_folder(memory, folder):
    memory.remember("The pears are in the cellar")
    memory.transfer.export_folder(folder / "notes")
    (page,) = (folder / "notes").rglob("*.md")
    page.write_text(page.read_text("utf-8").replace("cellar", "shed") + "\n\nThe figs are in a jar.\n", "utf-8")
    memory.transfer.import_folder(folder / "notes")


def synced(memory, folder):
    (folder / "exchange").mkdir()
    memory.remember("The quinces are boiled")
    memory.transfer.sync(folder / "exchange")
    with Memory(folder / "other.db", settings=Settings(embedder="none")) as other:
        other.remember("The medlars are bletted")
        other.transfer.sync(folder / "exchange")
    memory.transfer.sync(folder / "exchange")
    assert memory.count() == 2


def again(memory, folder):
    memory._engine.embedder.get().fail = "raises"
    memory.remember("Written while the embedder is down")
    memory._engine.embedder.get().fail = None
    with memory.transaction(embed=["And in a transaction"]):
        memory.remember("And in a transaction")
    embed_pending(memory._engine)
    assert memory.store.stats().pending == 0


def of_a_page(memory, folder):
    (folder / "page.md").write_text("# Plums\n\nThey ripen in August.\n", "utf-8")
    memory.knowledge.ingest(folder / "page.md")
    (folder / "page.md").write_text("# Plums\n\nThey ripen in September.\n", "utf-8")
    memory.knowledge.ingest(folder / "page.md")


def restored(memory, folder):
    record = memory.remember("The plums are ripe")
    memory.update(record.id, text="The plums are eaten", context="user")
    memory.restore(record.id, 0)


def several(memory, folder):
    with memory.transaction(embed=["The cellar is dry", NewRecord("The attic is damp", context="user")]):
        memory.remember("The cellar is dry")
        memory.remember("The attic is damp", context="user")


def promoted(memory, folder):
    memory.working.add("The plums need sugar", importance=0.9)
    memory.working.promote(memory.working.items()[0])


def judged(memory, folder):
    memory.remember("Grace lives in Porto", created_at="2026-01-01")
    memory.remember("Grace has been seen in Lyon with all her boxes", created_at="2026-02-01")
    memory.review.judge()


def as_mem0(memory, folder):
    client = Mem0(memory=memory)
    (added,) = client.add("Grace dries plums", user_id="grace", infer=False)["results"]
    client.update(added["id"], text="Grace dries pears")


PATHS = {
    "remember": lambda memory, folder: memory.remember("Plums keep for a week"),
    "remember many": lambda memory, folder: memory.remember_many([f"Jar {n} of plums" for n in range(80)]),
    "a transaction": several,
    "update and restore": restored,
    "what waits for vectors": again,
    "a session": lambda memory, folder: memory.sessions.open("s").append("user", "Where are the plums?"),
    "an episode": lambda memory, folder: memory.episodes.log("The plums were boiled"),
    "a fact": lambda memory, folder: memory.semantic.add("Plums are stone fruit", summary="fruit"),
    "a procedure": lambda memory, folder: memory.procedures.save("boil", "Boil the plums for an hour"),
    "working memory": promoted,
    "consolidation": consolidated,
    "a document": of_a_page,
    "an import": lambda memory, folder: memory.transfer.import_(StringIO(LINES)),
    "a sent import": lambda memory, folder: calls.import_(memory, body=LINES.encode()),
    "items that were sent": lambda memory, folder: calls.remember_many(memory, ["One plum", {"text": "Two plums"}]),
    "a folder of memories": edited_folder,
    "devices": synced,
    "mem0": as_mem0,
    "reembed": lambda memory, folder: (memory.remember("Plums"), memory.store.reembed()),
    "rebuild": lambda memory, folder: (memory.remember("Plums"), memory.store.rebuild()),
    "judging": judged,
    "a turn with its event": lambda memory, folder: hook(
        memory, folder, "turn", prompt="The plums belong to Grace", prompt_response="Noted.", timestamp="1"
    ),
    "a transcript": lambda memory, folder: answer(
        memory, "turn", "claude-code",
        {"session_id": "s1", "cwd": str(folder), "transcript_path": transcript(folder)}, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_others_can_write_while_a_text_is_embedded_or_a_model_asked(memory, asking, tmp_path, path):
    PATHS[path](memory, tmp_path)
    assert asking.locked == []
    assert asking.calls or path == "a session"
