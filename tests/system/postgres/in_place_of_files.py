"""Every memory of a test run on PostgreSQL: `pytest -p tests.system.postgres.in_place_of_files tests/unit/core/memory`.

A path is a schema of its own, which is dropped after the test. Left out is what is about files themselves, and what
opens a path in another process. tests/unit/core/{recall,agents,documents} run so, too.
"""

from __future__ import annotations

import contextlib
import itertools
import os

import pytest

import recallite.engine
from recallite.model.checks import is_address
from recallite.store.opening import open_store
from tests.system.postgres.server import PostgresServer

_numbers = itertools.count(1)
# Rows that another program edits, and the views of SQL.
_ALL_ABOUT_FILES = ("test_edited_rows.py", "test_inspection.py")
_ABOUT_FILES = (
    "test_what_another_process_has_written_is_superseded", "test_the_views_are_read_by_hand",
    "test_paths_that_cannot_be_used_are_refused",
    "test_a_killed_reembed_is_resumed_and_the_old_vectors_serve_meanwhile",
    "test_without_an_optional_part_the_engine_works_and_says_so", "test_what_is_no_path_is_told_as_such",
    "test_a_folder_is_no_file", "test_what_a_run_of_calls_has_found", "test_two_processes_put_the_same_ids",
    "test_recalled_text_is_recognised_in_another_process", "test_neighbours_that_another_process_has_written_are_seen",
    "test_a_file_of_the_store_is_copied_encrypted_and_embedded_again_with_it", "test_sql_shows_it",
    "test_of_processes_that_supersede_one_memory_one_does", "test_it_survives_export_rebuild_and_a_backup",
    "test_verify_names_a_wrong_mark_and_rebuild_mends_it",
    "test_a_large_index_waits_for_them_unless_its_snapshot_is_there",
    "test_two_processes_that_pop_get_every_message_once", "test_two_processes_on_one_session_lose_no_message",
    "test_rebuild_makes_the_words_of_messages_again", "test_limits_count_intact_messages",
    "test_the_model_is_asked_outside_the_transaction_with_episodes_as_data",
    "test_every_message_whose_append_returned_survives_a_kill",
    "test_a_malformed_row_is_named_and_nothing_else_is_lost",
    "test_a_session_is_restored_by_its_id_in_the_next_process", "test_a_backup_carries_the_services",
    "test_two_processes_count_every_outcome_and_save_one_procedure", "test_two_processes_count_every_run",
    "test_sums_that_another_program_made_huge_are_averaged_all_the_same",
    "test_a_locked_store_leaves_working_memory_as_it_was",
    "test_two_processes_that_log_run_each_cycle_once", "test_a_locked_store_leaves_the_cycle_to_the_next_episode",
    # Receipts, which on a server are never complete.
    "test_nothing_is_left_in_any_byte_of_the_files", "test_what_others_hold_of_it_is_named",
    "test_a_reader_of_an_older_state_makes_it_incomplete", "test_a_scope_goes_with_its_services_and_its_name",
    "test_another_handle_finds_what_is_left", "test_in_memory_there_is_no_file_to_search",
    "test_where_the_file_cannot_be_compacted_the_receipt_says_so", "test_an_index_snapshot_goes",
    "test_an_index_snapshot_that_another_handle_takes_away_meanwhile_is_no_error",
    "test_a_receipt_covers_reasons_repeated_texts_and_statements",
)  # fmt: skip
_servers: list[PostgresServer] = []
_schemas: dict[str, str] = {}


def _server() -> PostgresServer:
    if not _servers:
        _servers.append(PostgresServer.started(fsync=False, settings={"max_connections": "300"}))
    return _servers[0]


def _opened(path, *, key=None, **settings):
    if is_address(path) or key is not None or not isinstance(path, str | os.PathLike):
        return open_store(path, key=key, **settings)
    in_memory = path == ":memory:"
    schema = None if in_memory else _schemas.get(os.fspath(path))
    if schema is None:
        schema = f"t_{next(_numbers)}"
        if not in_memory:
            _schemas[os.fspath(path)] = schema
    store = open_store(_server().address(schema=schema), **settings)
    if in_memory:
        close = store.close

        def close_and_drop():
            if not store.closed:
                close()
                _drop(schema)

        store.close = close_and_drop
    return store


def _drop(schema):
    import psycopg

    with contextlib.suppress(psycopg.errors.LockNotAvailable):
        _server().execute(f"SET lock_timeout = 1000; DROP SCHEMA IF EXISTS {schema} CASCADE")


def pytest_configure(config):
    recallite.engine.open_store = _opened


def pytest_collection_modifyitems(items):
    for item in items:
        if item.function.__name__ in _ABOUT_FILES or item.path.name in _ALL_ABOUT_FILES:
            item.add_marker(pytest.mark.skip(reason="it is about files"))


def pytest_unconfigure(config):
    for server in _servers:
        server.remove()


@pytest.fixture(autouse=True)
def _schemas_of_a_test():
    # What fixtures of a module have opened stays.
    kept = set(_schemas)
    yield
    for path in set(_schemas) - kept:
        _drop(_schemas.pop(path))
