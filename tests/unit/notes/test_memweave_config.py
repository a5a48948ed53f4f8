"""memweave's configuration is one nested dataclass, as its page says."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import pickle

import numpy as np
import pytest

from recallite import Workspace
from recallite.errors import InvalidInput
from recallite.model.configuration import declared
from recallite_notes import memweave
from recallite_notes.config import WorkspaceConfig
from recallite_notes.memweave import HybridConfig, MemoryConfig, MemWeave, QueryConfig, TemporalDecayConfig
from tests.unit.core.memory.support import WordEmbedder


def test_every_name_is_exported():
    names = {
        "MemWeave", "MemoryConfig", "EmbeddingConfig", "ChunkingConfig", "QueryConfig", "HybridConfig", "MMRConfig",
        "TemporalDecayConfig", "CacheConfig", "SyncConfig", "FlushConfig", "VectorConfig", "RawSearchRow",
    }  # fmt: skip
    assert names <= {*memweave.__all__}
    assert all(hasattr(memweave, name) for name in memweave.__all__)


def test_every_section_is_a_dataclass_with_the_same_fields_and_defaults():
    for name in memweave.__all__:
        kind = getattr(memweave, name)
        if name.endswith("Config"):
            assert dataclasses.is_dataclass(kind)
            assert [field.name for field in dataclasses.fields(kind)] == [*declared(kind.section)]
            assert kind().to_section() == kind.section()
    assert MemoryConfig().to_dict() == WorkspaceConfig().to_dict()


def test_replace_asdict_and_copies():
    shared = MemoryConfig(workspace_dir="notes", query=QueryConfig(max_results=4))
    own = dataclasses.replace(shared, query=dataclasses.replace(shared.query, max_results=9))
    assert (shared.query.max_results, own.query.max_results) == (4, 9)
    table = dataclasses.asdict(own)
    assert (table["workspace_dir"], table["query"]["max_results"]) == ("notes", 9)
    assert table["query"]["hybrid"] == {"vector_weight": 0.7, "text_weight": 0.3, "candidate_multiplier": 4}
    for other in (MemoryConfig.from_dict(own.to_dict()), copy.deepcopy(own), pickle.loads(pickle.dumps(own))):
        assert other == own
    assert own != shared
    assert MemoryConfig().evergreen_patterns is not MemoryConfig().evergreen_patterns


def test_attributes_are_set_and_checked(tmp_path):
    config = MemoryConfig()
    config.query.max_results = 3
    config.query.hybrid.vector_weight = 0.6
    config.query.hybrid.text_weight = 0.4
    config.extra_paths.append("docs")
    config.query.mmr = memweave.MMRConfig(enabled=True)
    section = config.to_section()
    assert (section.query.max_results, section.query.hybrid.text_weight, section.extra_paths) == (3, 0.4, ["docs"])
    with pytest.raises(InvalidInput, match=r"QueryConfig\.max_results is 0"):
        config.query.max_results = 0
    with pytest.raises(InvalidInput, match=r"MemoryConfig\.query is 3: give a QueryConfig"):
        config.query = 3
    with pytest.raises(AttributeError, match="QueryConfig has no field 'max_result'"):
        config.query.max_result = 3
    with pytest.raises(InvalidInput, match="sum to 1"):
        HybridConfig(vector_weight=0.9)
    config.save(tmp_path / "config.toml")
    assert MemoryConfig.load(tmp_path / "config.toml") == config


def test_a_key_is_not_shown():
    assert "secret" not in repr(memweave.EmbeddingConfig(model="text-embedding-3-small", api_key="secret"))


def test_the_configuration_is_read_when_it_is_opened(tmp_path):
    config = MemoryConfig(workspace_dir=tmp_path)

    async def main():
        mem = MemWeave(config, embedder=WordEmbedder(dimension=64))
        config.query.max_results = 1
        config.query.min_score = 0.0
        async with mem:
            assert mem.config is config
            for name in ("a", "b"):
                (tmp_path / f"{name}.md").write_text(f"The kiln of {name} is hot.")
            return await mem.search("kiln")

    assert len(asyncio.run(main())) == 1


def test_an_embedding_provider_is_asked_on_the_callers_loop(tmp_path):
    words, loops = WordEmbedder(dimension=64), set()

    class Provider:
        model = "words"

        async def embed_query(self, text):
            return (await self.embed_batch([text]))[0]

        async def embed_batch(self, texts):
            loops.add(asyncio.get_running_loop())
            return [(3 * np.asarray(vector)).tolist() for vector in words.embed(texts)]

    async def main():
        config = MemoryConfig(workspace_dir=tmp_path)
        async with MemWeave(config, embedding_provider=Provider()) as mem:
            (tmp_path / "a.md").write_text("The kiln is hot.")
            found = await mem.search("kiln", min_score=0.0)
            assert loops == {asyncio.get_running_loop()}
            return found, await mem.status()

    found, status = asyncio.run(main())
    assert found[0].vector_score > 0
    assert (status.provider, status.model) == ("custom", "words")
    with pytest.raises(InvalidInput, match="give one with embed_query and embed_batch"):
        MemWeave(embedding_provider=words)


def test_files_of_a_workspace_called_memory_are_memory(tmp_path):
    folder = tmp_path / "memory"
    (folder / "researcher").mkdir(parents=True)
    for name in ("plan.md", "2020-01-01.md", "researcher/found.md"):
        (folder / name).write_text(f"The kiln of {name} is hot.")
    decay = QueryConfig(min_score=0.0, temporal_decay=TemporalDecayConfig(enabled=True))

    async def main():
        async with MemWeave(MemoryConfig(workspace_dir=folder, query=decay), embedder="none") as mem:
            found = {result.path: result.score for result in await mem.search("kiln")}
            of_researcher = await mem.search("kiln", source_filter="researcher")
            return {file.path: (file.source, file.is_evergreen) for file in await mem.files()}, found, of_researcher

    files, found, of_researcher = asyncio.run(main())
    assert files == {
        "plan.md": ("memory", True), "2020-01-01.md": ("memory", False), "researcher/found.md": ("researcher", True),
    }  # fmt: skip
    assert found["2020-01-01.md"] < 0.01 < found["plan.md"]
    assert [result.path for result in of_researcher] == ["researcher/found.md"]


def test_a_half_life_of_0_is_no_decay(tmp_path):
    (tmp_path / "2020-01-01.md").write_text("The kiln is hot.")
    config = WorkspaceConfig.from_dict(
        {"query": {"min_score": 0.0, "temporal_decay": {"enabled": True, "half_life_days": 0}}}
    )
    with Workspace(tmp_path, config, embedder="none") as workspace:
        scores = [
            workspace.search("kiln", **options)[0].score
            for options in ({}, {"decay_half_life_days": 0}, {"temporal_decay": False}, {"decay_half_life_days": 30})
        ]
    assert scores[0] == scores[1] == scores[2] > 0.3 > scores[3]


@pytest.mark.parametrize("way", ["awaited", "entered", "iterated", "rows", "one"])
def test_a_strategy_reads_as_with_aiosqlite_or_plainly(tmp_path, way):
    class LongestFirst:
        async def search(self, db, query, query_vec, model, limit, *, source_filter=None):
            sql = "SELECT id, source, start_line, end_line, content FROM chunks ORDER BY length(content) DESC LIMIT ?"
            match way:
                case "awaited":
                    rows = await (await db.execute(sql, (limit,))).fetchall()
                case "entered":
                    async with db.execute(sql, (limit,)) as cursor:
                        rows = [row async for row in cursor]
                case "iterated":
                    rows = [row async for row in await db.execute(sql, (limit,))]
                case "rows":
                    rows = db.execute(sql, (limit,))
                case _:
                    cursor = await db.execute(sql, (limit,))
                    rows = [await cursor.fetchone(), await cursor.fetchone()]
                    assert await cursor.fetchone() is None
            return [
                memweave.RawSearchRow(id, path, "memory", *lines, text, score=0.9) for id, path, *lines, text in rows
            ]

    async def main():
        async with MemWeave(MemoryConfig(workspace_dir=tmp_path), embedder="none") as memory:
            memory.register_strategy("longest", LongestFirst())
            return [result.path for result in await memory.search("anything", strategy="longest")]

    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "short.md").write_text("Tea.")
    (tmp_path / "memory" / "long.md").write_text("The office is in Turin.")
    assert sorted(asyncio.run(main())) == ["memory/long.md", "memory/short.md"]
