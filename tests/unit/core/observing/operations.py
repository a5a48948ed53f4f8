"""Every operation that is traced, on a store whose texts, names and keys all hold one word."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from recallite import Memory, Settings
from recallite.errors import InvalidInput, LanguageModelError, NotFound, RecalliteError, StoreError
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.unit.core.memory.support import WordEmbedder

WORD = "Zyxomma"
LONG = f"Which tea does {WORD} like to drink now, and also when does the ferry that {WORD} takes to Lisbon leave?"


class Quoting(WordEmbedder):
    """When it fails, its message has the texts."""

    def embed(self, texts: Any) -> Any:
        if self.fail:
            raise RuntimeError(f"cannot embed {texts}")
        return super().embed(texts)


class Model:
    """A language model that answers what it is asked for, or fails with what it was asked."""

    failing = False

    def complete(self, messages: Any, *, schema: Any = None, max_tokens: Any = None) -> str:
        if self.failing:
            raise LanguageModelError(f"no answer to {messages}")
        if "answers" in schema["properties"]:
            pairs = json.loads(messages[1]["content"])
            return json.dumps({"answers": [{"pair": each["pair"], "outcome": "independent"} for each in pairs]})
        return json.dumps({"queries": [f"{WORD} tea", f"{WORD} ferry"], "scopes": []})


def run_everything(folder: Path) -> None:
    """Each operation once or more, with some that fail."""
    embedder, model = Quoting(), Model()
    settings = Settings(write=WritePolicy(judge=False))
    with Memory(folder / "agent.db", embedder=embedder, language_model=model, settings=settings) as memory:
        _write(memory)
        _ask(memory)
        _fail(memory, embedder, model)
        _keep(memory, folder)
    with suppress(StoreError, InvalidInput):
        Memory(folder / "encrypted.db", embedder="none", key=WORD).close()


def _write(memory: Memory) -> None:
    tea = memory.remember(
        NewRecord(
            f"{WORD} likes tea",
            id=f"{WORD}-1",
            scope=f"/{WORD}",
            tags=[WORD],
            metadata={WORD: WORD},
            context=WORD,
            topic=WORD,
            source=WORD,
            expires_at="2020-01-01T00:00:00Z",
            created_at="2019-01-01T00:00:00Z",
        )
    )
    old, new, third = memory.remember_many([f"{WORD} lives in Paris", f"The ferry of {WORD} leaves", f"{WORD} sings"])
    memory.update(third, text=f"{WORD} dances", metadata={"who": WORD})
    memory.update([third], renew=True)
    memory.supersede(old, new, reason=WORD)
    memory.restore(old)
    memory.forget(third)
    assert memory.store.purge_expired().records == 1, tea
    memory.remember(f"{WORD} likes coffee")
    memory.remember(f"{WORD} does not like coffee")
    memory.review.judge()
    memory.episodes.log(f"{WORD} drank tea", agent=WORD)
    memory.consolidator.run(WORD)
    memory.knowledge.ingest(f"# {WORD}\n\n{WORD} is a dragonfly.".encode(), name=f"{WORD}.md", title=WORD)


def _ask(memory: Memory) -> None:
    memory.recall(f"What does {WORD} like?", scope="/")
    memory.recall(f"Where was the author of {WORD} born?")
    memory.recall_many([WORD, f"tea of {WORD}"], limit=3)
    memory.recall(LONG, profile={"long_query_chars": 40})
    memory.knowledge.search(WORD)


def _fail(memory: Memory, embedder: Quoting, model: Model) -> None:
    with suppress(NotFound):
        memory.forget(f"{WORD}-none")
    with suppress(RecalliteError):
        memory.recall(WORD, vector=[WORD])
    with suppress(RecalliteError):
        memory.update(f"{WORD}-none", text=WORD)
    model.failing = True
    memory.recall(LONG, profile={"long_query_chars": 40})
    memory.remember(f"{WORD} likes milk")
    memory.remember(f"{WORD} does not like milk", policy=WritePolicy(judge=True))
    memory._engine.background.wait(60)
    memory.episodes.log(f"{WORD} drank milk", agent=WORD)
    memory.consolidator.run(WORD, extract=True)
    embedder.fail = "raises"
    memory.remember(f"{WORD} waits")
    memory.recall(f"Does {WORD} wait?")
    embedder.fail = None


def _keep(memory: Memory, folder: Path) -> None:
    assert memory.store.reembed() == 1
    assert memory.transfer.export(folder / "all.jsonl") > 5
    memory.transfer.import_(folder / "all.jsonl")
    memory.transfer.export_folder(folder / "notes")
    memory.transfer.import_folder(folder / "notes")
    memory.store.rebuild()
    memory.store.vacuum()
    memory.store.backup(folder / "copy.db")
    with suppress(RecalliteError):
        memory.store.rekey(WORD)
