"""The snippets of memweave's page, with `recallite_notes.memweave` for `memweave`."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path

import pytest

from recallite import AsyncWorkspace, Workspace
from recallite.errors import InvalidInput, StoreClosed
from recallite.remote import OpenAICompatible
from recallite_notes.memweave import (
    EmbeddingConfig,
    FlushConfig,
    HybridConfig,
    MemoryConfig,
    MemWeave,
    MMRConfig,
    QueryConfig,
    RawSearchRow,
    SyncConfig,
    TemporalDecayConfig,
)
from tests.endpoint import said, serving
from tests.unit.core.memory.support import WordEmbedder


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RECALLITE_EMBEDDER", raising=False)


def verbs(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_verb_of_workspace_can_be_awaited():
    assert verbs(AsyncWorkspace) - {"open"} == verbs(Workspace)
    assert inspect.signature(AsyncWorkspace) == inspect.signature(Workspace)
    for name in verbs(Workspace) - {"register_strategy", "register_postprocessor", "close", "config", "folder"}:
        ours, theirs = getattr(AsyncWorkspace, name), getattr(Workspace, name)
        assert inspect.signature(ours) == inspect.signature(theirs), name
        assert inspect.iscoroutinefunction(ours), name


def test_quickstart():
    async def main():
        async with MemWeave(MemoryConfig(workspace_dir=".")) as mem:
            memory_file = Path("memory/preferences.md")
            memory_file.parent.mkdir(exist_ok=True)
            memory_file.write_text("The user prefers dark mode and concise answers.")
            await mem.add(memory_file)
            results = await mem.search("What is the user preference?", min_score=0.0)
            return [(r.snippet, r.path, r.start_line, r.score) for r in results]

    ((snippet, path, line, score),) = asyncio.run(main())
    assert (snippet, path, line) == ("The user prefers dark mode and concise answers.", "memory/preferences.md", 1)
    assert 0.35 <= score <= 1


def test_single_agent():
    async def main():
        async with MemWeave(MemoryConfig(workspace_dir="./my_project")) as mem:
            memory_dir = Path("my_project/memory")
            memory_dir.mkdir(parents=True, exist_ok=True)
            (memory_dir / "stack.md").write_text("User's preferred stack: FastAPI + PostgreSQL + Redis.")
            (memory_dir / "guidelines.md").write_text("Avoid using global state in this codebase.")
            await mem.index()
            return await mem.search("database recommendations", min_score=0.0, max_results=2)

    results = asyncio.run(main())
    assert [each.path for each in results] == ["memory/stack.md", "memory/guidelines.md"]


def test_multi_agent_with_shared_and_isolated_namespaces():
    async def main():
        researcher = MemWeave(MemoryConfig(workspace_dir="./project"))
        writer = MemWeave(MemoryConfig(workspace_dir="./project"))
        async with researcher, writer:
            memory_dir = Path("project/memory/researcher_agent")
            memory_dir.mkdir(parents=True, exist_ok=True)
            (memory_dir / "mars_habitat.md").write_text(
                "Mars surface pressure is ~0.6% of Earth's, requiring fully pressurised habitats. "
                "NASA's MOXIE experiment on Perseverance successfully produced oxygen from CO2 in 2021, "
                "validating in-situ resource utilisation (ISRU) as a viable strategy for long-duration missions."
            )
            (memory_dir / "artemis_mission.md").write_text(
                "Artemis III aims to land the first woman and next man near the lunar south pole. "
                "Permanently shadowed craters there hold water ice deposits confirmed by LCROSS in 2009. "
                "Ice can be electrolysed into hydrogen and oxygen, serving as breathable air and rocket propellant."
            )
            (memory_dir / "deep_space_propulsion.md").write_text(
                "Ion drives expel charged xenon atoms at ~90,000 km/h, achieving far higher specific impulse "
                "than chemical rockets, though thrust is measured in millinewtons. NASA's Dawn spacecraft used "
                "ion propulsion to orbit both Vesta and Ceres — the first mission to orbit two extraterrestrial bodies."
            )
            Path("project/memory/other.md").write_text("How do astronauts get oxygen on Mars? Nobody here knows.")
            await researcher.index()
            queries = [
                "how do astronauts get oxygen on Mars",
                "water ice on the Moon",
                "spacecraft propulsion beyond chemical rockets",
            ]
            return [
                await writer.search(query, source_filter="researcher_agent", min_score=0.0, max_results=1)
                for query in queries
            ]

    found = asyncio.run(main())
    assert [each[0].path for each in found] == [
        "memory/researcher_agent/mars_habitat.md", "memory/researcher_agent/artemis_mission.md",
        "memory/researcher_agent/deep_space_propulsion.md",
    ]  # fmt: skip


def test_flush():
    conversation = [
        {"role": "user", "content": "We just decided to use Valkey instead of Redis for caching."},
        {"role": "assistant", "content": "Got it. I'll note that Valkey is the new caching layer."},
        {"role": "user", "content": "Also, we're targeting a 5ms p99 latency SLA for the cache."},
    ]
    facts = "- Valkey replaced Redis for caching.\n- The cache has a 5 ms p99 latency SLA."

    async def main(url):
        model = OpenAICompatible(url, "small")
        async with MemWeave(MemoryConfig(workspace_dir="workspace"), language_model=model) as mem:
            extracted = await mem.flush(conversation=conversation)
            return extracted, await mem.search("Valkey caching latency", min_score=0.0)

    with serving() as server:
        server.script = [said(facts)]
        extracted, results = asyncio.run(main(server.url))
    assert extracted == facts
    assert results[0].snippet == facts


def test_decay_and_mmr_and_the_whole_configuration():
    config = MemoryConfig(
        workspace_dir="./memory",
        embedding=EmbeddingConfig(batch_size=100),
        query=QueryConfig(
            strategy="hybrid",
            max_results=10,
            min_score=0.35,
            hybrid=HybridConfig(vector_weight=0.7, text_weight=0.3),
            mmr=MMRConfig(enabled=True, lambda_param=0.5),
            temporal_decay=TemporalDecayConfig(enabled=True, half_life_days=30.0),
        ),
        sync=SyncConfig(on_search=True, watch=False, watch_debounce_ms=500),
        flush=FlushConfig(enabled=True, model="gpt-4o-mini"),
    )

    async def main():
        async with MemWeave(config, embedder=WordEmbedder(dimension=64)) as mem:
            for name in ("2020-01-01", "MEMORY"):
                file = mem.folder / "memory" / f"{name}.md"
                file.parent.mkdir(exist_ok=True)
                file.write_text("The database is MySQL.")
            results = await mem.search("database choice")
            diverse = await mem.search("database choice", mmr_lambda=0.3)
            return results, diverse

    for found in asyncio.run(main()):
        assert [each.path for each in found] == ["memory/MEMORY.md", "memory/2020-01-01.md"]
        assert found[1].score < found[0].score / 100


def test_a_custom_strategy_runs_on_the_callers_loop():
    class RecencyBoostStrategy:
        async def search(
            self, db, query, query_vec, model, limit, *, source_filter=None,
        ) -> list[RawSearchRow]:  # fmt: skip
            self.loop = asyncio.get_running_loop()
            await asyncio.sleep(0)
            cursor = await db.execute("SELECT id, source, start_line, end_line, content FROM chunks")
            rows = await cursor.fetchall()
            return [RawSearchRow(id, path, "memory", a, b, text, score=0.9) for id, path, a, b, text in rows]

    class Shout:
        async def apply(self, rows, query, **kwargs):
            self.loop = asyncio.get_running_loop()
            return rows

    strategy, processor = RecencyBoostStrategy(), Shout()

    async def main():
        async with MemWeave(MemoryConfig(workspace_dir="."), embedder="none") as mem:
            Path("memory").mkdir()
            Path("memory/a.md").write_text("Any text.")
            mem.register_strategy("recency", strategy)
            mem.register_postprocessor(processor)
            found = await mem.search("recent decisions", strategy="recency")
            assert strategy.loop is processor.loop is asyncio.get_running_loop()
            return found

    assert [each.path for each in asyncio.run(main())] == ["memory/a.md"]


def test_status_and_files():
    async def main():
        async with MemWeave() as mem:
            Path("memory").mkdir()
            Path("memory/MEMORY.md").write_text("Evergreen.")
            before = await mem.status()
            await mem.index()
            return before, await mem.status(), await mem.files()

    before, status, files = asyncio.run(main())
    assert (before.dirty, status.dirty, status.files, status.chunks, status.search_mode) == (
        True,
        False,
        1,
        1,
        "hybrid",
    )
    assert [(f.path, f.chunks, f.is_evergreen, f.source) for f in files] == [("memory/MEMORY.md", 1, True, "memory")]


def test_the_watcher_stops_on_exit():
    async def main():
        async with MemWeave(embedder="none") as mem:
            await mem.start_watching()
            assert (await mem.status()).watcher_active
            return mem

    before = set(threading.enumerate())
    mem = asyncio.run(main())
    assert mem._twin is not None
    assert not mem._twin._watcher.active
    assert [thread for thread in threading.enumerate() if thread not in before and thread.is_alive()] == []


def test_searches_run_side_by_side_without_blocking_the_loop():
    async def main():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        async with MemWeave(embedder=WordEmbedder()) as mem:
            Path("memory").mkdir()
            for n in range(50):
                Path(f"memory/{n}.md").write_text(f"Fact number {n} about the cache.")
            ticking = asyncio.create_task(tick())
            await mem.index()
            found = await asyncio.gather(*(mem.search(f"fact {n}", min_score=0.0) for n in range(20)))
            ticking.cancel()
            return ticks, found

    ticks, found = asyncio.run(main())
    assert ticks > 10
    assert all(len(each) == 6 for each in found)


def test_before_it_is_open_and_after_it_is_closed():
    async def main():
        mem = MemWeave(embedder="none")
        with pytest.raises(StoreClosed):
            mem.folder  # noqa: B018
        await mem.search("opens by itself")
        await mem.close()
        await mem.close()
        with pytest.raises(StoreClosed):
            await mem.search("x")
        with pytest.raises(InvalidInput):
            await MemWeave(3).open()

    asyncio.run(main())
