"""The frameworks that Recallite is integrated with, and the tests of theirs that the integrations pass.

`test_NAME.py` are tests of ours. Tests of a framework are not kept here: they come from its source distribution on PyPI
or from a checkout of its repository, and run with `theirs/NAME.py` as a plugin of pytest, which puts our store in the
place of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Theirs(NamedTuple):
    """Tests of a framework: where they are, and which of them are left out, with the reason.

    `repository` is its address on GitHub, checked out at the tag that `tag` makes of the version; where `sdist` is
    named, that source distribution of PyPI is unpacked in place of it. `within` is the folder of the checkout that is
    distributed so. `paths` are files in either. A key of `left_out` is the end of a test's id, as
    `test_store.py::test_sql` or `test_sql[case]`, or a whole class.
    """

    paths: tuple[str, ...]
    repository: str
    tag: str = "{version}"
    sdist: str | None = None
    within: str = ""
    needs: tuple[str, ...] = ()
    left_out: Mapping[str, str] = MappingProxyType({})


class Framework(NamedTuple):
    """A framework: the distribution whose version counts, the extra of ours, and what the tests need beside it.

    Its page is `docs/integrations/NAME.md`, its module `recallite_connect.MODULE`.
    """

    title: str
    module: str
    package: str | None
    extra: str | None
    interfaces: str
    needs: tuple[str, ...] = ()
    theirs: tuple[Theirs, ...] = ()


FRAMEWORKS: dict[str, Framework] = {
    "langgraph": Framework(
        "LangGraph", "langgraph", "langgraph", "langgraph", "`BaseStore`",
        needs=("langgraph", "langgraph-checkpoint-sqlite"),
        theirs=(
            Theirs(
                ("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py"),
                "langchain-ai/langgraph", sdist="langgraph-checkpoint-sqlite", within="libs/checkpoint-sqlite",
                needs=("langgraph-checkpoint-sqlite",),
                left_out=dict.fromkeys(
                    (
                        "test_store.py::test_vector_store_initialization", "test_nonnull_migrations",
                        "test_escape_glob_literal", "test_namespace_match_pattern",
                        "test_list_namespaces_prefix_uses_indexable_condition",
                    ),
                    "it reads the tables, the SQL or the patterns inside SqliteStore",
                ),
            ),
            Theirs(
                ("tests/test_store.py",), "langchain-ai/langgraph", sdist="langgraph-checkpoint",
                within="libs/checkpoint", needs=("pytest-mock",),
            ),
        ),
    ),
    "langchain": Framework(
        "LangChain", "langchain", "langchain-core", "langchain",
        "`VectorStore`, `BaseRetriever`, `BaseChatMessageHistory`", needs=("langchain-tests",),
    ),
    "openai-agents": Framework(
        "OpenAI Agents", "openai_agents", "openai-agents", "openai-agents", "`Session`, a tool, instructions",
        theirs=(
            Theirs(
                ("tests/memory/test_session.py", "tests/memory/test_session_limit.py"),
                "openai/openai-agents-python", tag="v{version}", sdist="openai-agents=={version}",
                left_out=dict.fromkeys(
                    (
                        "test_sqlite_session_close_closes_worker_thread_connections",
                        "test_sqlite_session_reaps_connections_from_exited_worker_threads",
                        "test_sqlite_session_closes_retired_connections_before_the_next_allocation",
                        "test_sqlite_session_keeps_connections_of_live_worker_threads",
                        "test_sqlite_session_rollback_failure_evicts_connection",
                        "test_sqlite_session_close_retries_quarantined_connection",
                        "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome",
                        "test_sqlite_session_file_lock_is_shared_across_instances",
                    ),
                    "it inspects or replaces the connections and locks inside SQLiteSession",
                )
                | dict.fromkeys(
                    (
                        "test_sqlite_session_pop_item_skips_corrupt_most_recent",
                        "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows",
                        "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows",
                        "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows",
                        "test_sqlite_session_failed_add_items_releases_write_lock",
                        "test_sqlite_session_failed_clear_session_rolls_back",
                        "test_sqlite_session_failed_pop_item_releases_write_lock",
                    ),
                    "it runs SQL on the tables of SQLiteSession",
                ),
            ),
        ),
    ),
    "crewai": Framework(
        "CrewAI", "crewai", "crewai", "crewai", "`StorageBackend`",
        theirs=(
            Theirs(
                tuple(
                    f"tests/memory/test_{name}.py"
                    for name in (
                        "unified_memory", "memory_root_scope", "dimension_mismatch", "storage_factory",
                        "lancedb_update", "lancedb_filter_escaping", "qdrant_edge_storage",
                    )
                ),
                "crewAIInc/crewAI", sdist="crewai=={version}",
                left_out={
                    "test_percent_underscore_and_backslash_in_scope_names_match_literally":
                        "it takes a part of a name for a scope prefix: `/share` and a backslash for `/share\\docs`",
                }
                | dict.fromkeys(
                    ("test_flush_to_central", "test_dual_shard_search", "test_orphaned_shard_cleanup"),
                    "it looks into the shards of Qdrant",
                ),
            ),
        ),
    ),
    "anthropic": Framework(
        "Anthropic memory tool", "anthropic", "anthropic", "anthropic", "`BetaAbstractMemoryTool`",
        theirs=(
            Theirs(
                ("tests/lib/tools/memory_tools/test_filesystem.py",), "anthropics/anthropic-sdk-python", "v{version}",
                sdist="anthropic=={version}", needs=("inline-snapshot", "http-snapshot[httpx]"),
            ),
        ),
    ),
    "claude-agent-sdk": Framework(
        "Claude Agent SDK", "claude_agent_sdk", "claude-agent-sdk", "claude-agent-sdk", "`SessionStore`",
        theirs=(
            Theirs(
                (
                    "tests/test_session_store_conformance.py", "tests/test_session_store_anyio.py",
                    "tests/test_session_helpers_store.py", "tests/test_session_resume.py",
                    "tests/test_session_import.py", "tests/test_session_mutations.py",
                    "tests/test_session_summary.py", "tests/test_transcript_mirror.py",
                ),
                "anthropics/claude-agent-sdk-python", "v{version}", sdist="claude-agent-sdk=={version}",
                needs=("trio",), left_out=dict.fromkeys((
                    "test_load_concurrency_is_bounded", "test_gap_fill_bounded_concurrency",
                    "test_cancelled_after_mkdtemp_cleans_temp_dir",
                    "test_eager_flush_mode_appends_per_frame_before_result",
                ), "it gives a store a fixed number of turns of the event loop to answer, and ours answers from disk"),
            ),
        ),
    ),
    "hermes": Framework("Hermes agent", "hermes", "hermes-agent", "hermes", "`MemoryProvider`"),
    "google-adk": Framework(
        "Google ADK", "google_adk", "google-adk", "google-adk", "`BaseMemoryService`",
        theirs=(
            Theirs(
                ("tests/unittests/memory/test_in_memory_memory_service.py",), "google/adk-python", "v{version}",
                left_out=dict.fromkeys((
                    "test_add_session_to_memory", "test_add_events_to_memory_with_explicit_events",
                    "test_add_events_to_memory_without_session_id_uses_default_bucket",
                    "test_add_events_to_memory_alias_is_supported",
                    "test_add_events_to_memory_appends_without_replacing",
                    "test_add_events_to_memory_deduplicates_event_ids", "test_add_session_with_no_events_to_memory",
                ), "it reads the dictionaries inside InMemoryMemoryService"),
            ),
        ),
    ),
    "llama-index": Framework(
        "LlamaIndex", "llama_index", "llama-index-core", "llama-index", "`BaseMemoryBlock`, `BaseRetriever`",
        theirs=(
            Theirs(
                ("tests/memory/blocks/test_vector.py",), "run-llama/llama_index", tag="v{version}",
                within="llama-index-core",
                left_out=dict.fromkeys(
                    ("test_vector_memory_block_put", "test_put_does_not_mutate_message_additional_kwargs"),
                    "it reads the one node in which VectorMemoryBlock stores messages",
                )
                | dict.fromkeys(
                    (
                        "test_session_id_filter_is_per_call", "test_session_id_filter_does_not_mutate_query_kwargs",
                        "test_explicit_session_id_filter_is_not_overridden",
                    ),
                    "it reads the queries that VectorMemoryBlock sends to a vector store",
                )
                | {
                    "test_retrieval_context_window":
                        "it asks for what no message answers, and its vector store answers every query with all it has",
                },
            ),
        ),
    ),
    "agent-framework": Framework(
        "Microsoft agent framework", "agent_framework", "agent-framework-core", "agent-framework",
        "`ContextProvider`, `HistoryProvider`",
        theirs=(
            Theirs(
                tuple(
                    f"python/packages/core/tests/core/test_sessions.py::{name}"
                    for name in (
                        "TestInMemoryHistoryProvider",
                        "TestFileHistoryProvider::test_missing_session_file_returns_empty_messages",
                        "TestFileHistoryProvider::test_preserves_non_finite_json_values",
                        "TestFileHistoryProvider::test_skip_excluded_omits_excluded_messages",
                    )
                ),
                "microsoft/agent-framework", tag="python-{version}", needs=("opentelemetry-sdk",),
                left_out={
                    "TestInMemoryHistoryProvider::test_state_is_serializable":
                        "it looks for the messages in the session, where InMemoryHistoryProvider keeps them",
                },
            ),
        ),
    ),
    "pydantic-ai": Framework(
        "Pydantic AI", "pydantic_ai", "pydantic-ai-slim", "pydantic-ai", "a toolset",
        needs=("pydantic-ai-slim[mcp]", "mcp>=2.3,<3", "tomlkit"),
    ),
    "mem0": Framework("mem0", "mem0", "mem0ai", None, "a facade with its verbs", needs=("mem0ai",)),
}  # fmt: skip
"""By name, in the order of the matrix. Those whose module is not written yet are not tried."""
