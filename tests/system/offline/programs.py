"""What an offline process does: each function is run in a process of its own, in an empty folder of its own."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from recallite import AsyncMemory, Memory, Workspace
from recallite.model.environment import address_of
from recallite.remote import EndpointError, open_service
from recallite_server.memory_map import MemoryMap

# Kernels that are compiled already are loaded; nothing here waits for a compiler.
os.environ["RECALLITE_COMPILE_KERNELS"] = "0"
TEXTS = ["We migrated from PostgreSQL to MySQL last week", "The office plants are watered on Fridays"]


def default_store() -> None:
    """A memory without a path, in the user's data directory."""
    with Memory() as memory:
        memory.remember(TEXTS[0])
        assert memory.recall("What database are we using?")


def library() -> None:
    """Every verb that writes or reads a file, with the bundled model."""
    with Memory("agent.db") as memory:
        ids = memory.remember_many(TEXTS)
        assert memory.recall("What database are we using?", limit=1, purpose="explain")[0].id == ids[0]
        memory.link(ids[0], ids[1])
        memory.update(ids[1], text="The office plants are watered on Mondays")
        memory.procedures.save("deploy", "build, then push")
        memory.sessions.open("s1").append("user", "hello")
        memory.bootstrap(None, "deploy the database")
        for name in ("all.jsonl", "all.csv", "all.txt"):
            memory.transfer.export(name)
        memory.transfer.export_folder("months")
        memory.store.backup("copy.db")
        assert memory.store.rebuild().ok
        memory.forget(ids[1])
        memory.store.vacuum()
        assert memory.store.stats().embedder
    os.environ["RECALLITE_LOW_MEMORY"] = "1"
    with Memory("other.db", embedder="instant") as other:
        assert other.transfer.import_("all.jsonl").records
        assert other.recall("database")


def auditing() -> None:
    """What looks for secrets."""
    with Memory("agent.db") as memory:
        memory.remember("the key is AKIAIOSFODNN7EXAMPLQ")
        memory.review.audit()


def routing() -> None:
    """Models of providers, served on this machine; none of the answers says how many tokens it has."""
    Path(".env").write_text("RECALLITE_FROM_ENV_FILE=1\n")
    for model in ("groq/llama-3-8b-8192", "groq/llama-2-7b", "anthropic/claude-3-haiku", "cohere/command-r"):
        address = address_of(model, api_base=os.environ["RECALLITE_LLM_BASE_URL"], api_key="secret", timeout_seconds=60)
        assert address is not None
        service = open_service(address, ImportError, attempts=1, longest_wait_seconds=0)
        # The answer is one of OpenAI's form: of other providers it is an error after the request.
        with suppress(EndpointError):
            service.post("/chat/completions", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 9})
    assert "RECALLITE_FROM_ENV_FILE" not in os.environ


def asynchronous() -> None:
    """The asynchronous memory, whose event loop has a socket pair of its own."""

    async def use() -> None:
        async with AsyncMemory("agent.db") as memory:
            await memory.remember(TEXTS[0])
            assert await memory.recall("What database are we using?")

    asyncio.run(use())


def mapping() -> None:
    """The map of memories."""
    with Memory("agent.db") as memory:
        memory.remember_many(TEXTS)
        assert len(MemoryMap(memory).points()) == memory.count()


def documents() -> None:
    """Documents of every kind that stands in `documents`."""
    with Memory("agent.db") as memory:
        # A loaded machine needs longer for a document than the default.
        report = memory.knowledge.ingest("documents", seconds=900)
        assert len(report.documents) == len(list(Path("documents").iterdir())), report
        assert memory.knowledge.search("What replaced Redis?")


def workspace() -> None:
    """A folder of notes: indexed, searched, written to and watched."""
    Path("notes/memory").mkdir(parents=True)
    Path("notes/memory/stack.md").write_text("# Stack\n\nWe use FastAPI.\n\n## Caching\n\nValkey replaced Redis.\n")
    with Workspace("notes") as opened:
        assert opened.search("What replaced Redis?")
        assert opened.status().chunks
        if importlib.util.find_spec("watchfiles"):
            indexed = threading.Event()
            opened.start_watching(lambda _: indexed.set())
            assert indexed.wait(900)  # a last resort: the machine may be slow


def commands() -> None:
    """The command line, a process a command."""
    notes = Path("notes")
    notes.mkdir()
    (notes / "cache.md").write_text("# Caching\n\nValkey replaced Redis in March.\n")
    call = json.dumps({"action": "search", "query": "database"})
    for arguments in (
        ["remember", *TEXTS[:1]],
        ["recall", "What database are we using?"],
        ["tool", "memory", call],
        ["knowledge", "ingest", "notes"],
        ["workspace", "search", "-w", "notes", "What replaced Redis?"],
        ["demo"],
    ):
        command = [sys.executable, "-m", "recallite", "--db", "agent.db", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)


def compiling() -> None:
    """The kernels compiled for the first time, into the user's cache directory."""
    command = [sys.executable, "-m", "recallite", "--db", "agent.db", "warmup"]
    subprocess.run(command, capture_output=True, check=True)
