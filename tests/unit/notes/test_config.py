"""Configuration of a workspace: the seed's fields and defaults, refused where wrong, the same after a round trip."""

from __future__ import annotations

import stat

import pytest

from recallite.errors import InvalidInput
from recallite_notes.config import (
    CacheConfig,
    ChunkingConfig,
    EmbeddingConfig,
    FlushConfig,
    HybridConfig,
    MMRConfig,
    QueryConfig,
    SyncConfig,
    TemporalDecayConfig,
    VectorConfig,
    WorkspaceConfig,
)

CHANGED = WorkspaceConfig(
    workspace_dir="notes",
    db_path="elsewhere/index.db",
    timezone="Europe/Berlin",
    embedding=EmbeddingConfig(
        model="ollama/nomic-embed-text", api_base="http://localhost:11434", api_key="sk-1", timeout=5, batch_size=7
    ),
    chunking=ChunkingConfig(tokens=200, overlap=0),
    query=QueryConfig(
        strategy="vector",
        max_results=10,
        min_score=0.5,
        snippet_max_chars=80,
        hybrid=HybridConfig(vector_weight=0.25, text_weight=0.75, candidate_multiplier=2),
        mmr=MMRConfig(enabled=True, lambda_param=0.5),
        temporal_decay=TemporalDecayConfig(enabled=True, half_life_days=7.5),
    ),
    cache=CacheConfig(enabled=False, max_entries=9),
    sync=SyncConfig(on_search=False, watch=True, watch_debounce_ms=500, interval_minutes=5),
    flush=FlushConfig(enabled=False, model="gpt-4o-mini", max_tokens=5, temperature=1.5, system_prompt="Ünïcode\n”"),
    vector=VectorConfig(enabled=False),
    progress=False,
    extra_paths=("../shared",),
    skip_folders=("vendor",),
    exclude=("drafts/", "*.tmp.md"),
    bootstrap_files=(),
    evergreen_patterns=("README.md",),
    max_file_bytes=5,
)


def test_the_defaults_are_memweaves():
    config = WorkspaceConfig()
    assert (config.query.strategy, config.query.max_results, config.query.min_score) == ("hybrid", 6, None)
    assert config.query.snippet_max_chars == 700
    assert config.query.hybrid == HybridConfig(vector_weight=0.7, text_weight=0.3, candidate_multiplier=4)
    assert config.query.mmr == MMRConfig(enabled=False, lambda_param=0.7)
    assert config.query.temporal_decay == TemporalDecayConfig(enabled=False, half_life_days=30.0)
    assert config.chunking == ChunkingConfig(tokens=400, overlap=80)
    assert config.cache == CacheConfig(enabled=True, max_entries=None)
    assert config.sync == SyncConfig(on_search=True, watch=False, watch_debounce_ms=1500, interval_minutes=0)
    assert (config.embedding.timeout, config.embedding.batch_size) == (60.0, 64)
    assert (config.flush.enabled, config.flush.max_tokens, config.flush.temperature) == (True, 1024, 0.0)
    assert config.evergreen_patterns == ("MEMORY.md", "memory.md")
    assert config.bootstrap_files == ("MEMORY.md",)
    assert config.timezone == "UTC"


@pytest.mark.parametrize("config", [WorkspaceConfig(), CHANGED], ids=["defaults", "changed"])
@pytest.mark.parametrize("ending", ["toml", "json", "jsonc", "json5", "yaml", "yml"])
def test_config_objects_round_trip_through_dict_and_file(tmp_path, config, ending):
    assert WorkspaceConfig.from_dict(config.to_dict()) == config
    file = tmp_path / f"workspace.{ending}"
    config.save(file)
    assert WorkspaceConfig.load(file) == config
    WorkspaceConfig().save(file)
    assert WorkspaceConfig.load(file) == WorkspaceConfig()
    assert [each.name for each in tmp_path.iterdir()] == [file.name]


def test_every_field_of_the_changed_configuration_is_changed():
    plain, changed = WorkspaceConfig().to_dict(), CHANGED.to_dict()
    same = [name for name in plain if plain[name] == changed[name]]
    assert same == []


def test_a_saved_file_is_for_its_owner_alone(tmp_path):
    CHANGED.save(tmp_path / "workspace.toml")
    assert stat.S_IMODE((tmp_path / "workspace.toml").stat().st_mode) == 0o600


def test_a_key_is_not_shown():
    assert "sk-1" not in repr(CHANGED)
    with pytest.raises(InvalidInput) as refused:
        EmbeddingConfig(model="x", api_key="sk-secret\n")
    assert "secret" not in str(refused.value)


def test_extra_paths_come_back_as_given():
    given = ["../shared", "~/notes"]
    config = WorkspaceConfig(extra_paths=given)
    assert config.extra_paths == given
    assert [*config.extra_paths, "more"] == config.extra_paths + ["more"]  # noqa: RUF005
    assert config.to_dict()["extra_paths"] == WorkspaceConfig.from_dict(config.to_dict()).extra_paths == given
    given.append("later")
    assert "later" not in config.extra_paths


def test_a_table_names_only_what_it_changes():
    config = WorkspaceConfig.from_dict({"query": {"mmr": {"enabled": True}}, "extra_paths": ["a"]})
    assert config == WorkspaceConfig(query=QueryConfig(mmr=MMRConfig(enabled=True)), extra_paths=("a",))


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"quarry": {}}, "'quarry' is no setting"),
        ({"query": {"min_scor": 1}}, "'query.min_scor' is no setting"),
        ({"query": {"mmr": {"lambda": 1}}}, "'query.mmr.lambda' is no setting"),
        ({"query": {"mmr": 5}}, "query.mmr is 5"),
        ({"query": None}, "query is None"),
        ({"query": {"min_score": 2}}, "query.min_score is 2"),
        ({"query": {"max_results": 0}}, "query.max_results is 0"),
        ({"query": {"hybrid": {"vector_weight": 0.5}}}, "query.hybrid.vector_weight 0.5 and text_weight 0.3"),
        ({"query": {"temporal_decay": {"half_life_days": -1}}}, "query.temporal_decay.half_life_days is -1"),
        ({"query": {"temporal_decay": {"half_life_days": float("nan")}}}, "query.temporal_decay.half_life_days is nan"),
        ({"chunking": {"tokens": 80}}, "chunking.overlap is 80"),
        ({"chunking": {"tokens": True}}, "chunking.tokens is True"),
        ({"embedding": {"batch_size": 0}}, "embedding.batch_size is 0"),
        ({"embedding": {"model": ""}}, "embedding.model is ''"),
        ({"embedding": {"api_base": "http://x"}}, "embedding.api_base is 'http://x': name the model"),
        ({"cache": {"max_entries": 0}}, "cache.max_entries is 0"),
        ({"sync": {"watch": "yes"}}, "sync.watch is 'yes'"),
        ({"sync": {"interval_minutes": -1}}, "sync.interval_minutes is -1"),
        ({"flush": {"temperature": 3}}, "flush.temperature is 3"),
        ({"vector": {"extension_path": "/lib/vec0.so"}}, "vector.extension_path is '/lib/vec0.so'"),
        ({"timezone": "Mars/Base"}, "timezone is 'Mars/Base'"),
        ({"timezone": "../etc"}, "timezone is '../etc'"),
        ({"workspace_dir": None}, "workspace_dir is None"),
        ({"extra_paths": "docs"}, "extra_paths is 'docs'"),
        ({"exclude": [3]}, "exclude[0] is 3"),
        ({"max_file_bytes": 0}, "max_file_bytes is 0"),
    ],
)
def test_what_is_wrong_is_named(table, said):
    with pytest.raises(InvalidInput) as refused:
        WorkspaceConfig.from_dict(table)
    assert str(refused.value).startswith(said)


def test_a_field_that_is_wrong_is_named_with_its_class():
    for make, said in (
        (lambda: QueryConfig(min_score=2), "QueryConfig.min_score is 2: give a number from 0 to 1"),
        (lambda: WorkspaceConfig(query=3), "WorkspaceConfig.query is 3: give QueryConfig(...)"),
        (lambda: WorkspaceConfig(extra_paths=["a", 3]), "WorkspaceConfig.extra_paths[1] is 3"),
        (lambda: ChunkingConfig(tokens=5), "ChunkingConfig.overlap is 80"),
    ):
        with pytest.raises(InvalidInput) as refused:
            make()
        assert str(refused.value).startswith(said)


def test_a_wrong_file_is_named(tmp_path):
    file = tmp_path / "workspace.toml"
    file.write_text("[query]\nmin_scor = 1\n")
    with pytest.raises(InvalidInput, match=r"workspace\.toml: 'query\.min_scor'"):
        WorkspaceConfig.load(file)
    with pytest.raises(InvalidInput, match="is written as one of"):
        WorkspaceConfig().save(tmp_path / "workspace.ini")
    with pytest.raises(InvalidInput, match="cannot be written"):
        WorkspaceConfig().save(tmp_path / "no" / "workspace.toml")


def test_keyword_strategy_and_vectors_off_embed_nothing():
    assert WorkspaceConfig().embeds
    assert not WorkspaceConfig(query=QueryConfig(strategy="keyword")).embeds
    assert not WorkspaceConfig(vector=VectorConfig(enabled=False)).embeds
