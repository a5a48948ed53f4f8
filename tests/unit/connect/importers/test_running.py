"""What the runner promises of every source."""

from __future__ import annotations

import errno
import json
import os
from datetime import UTC, datetime

import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from, reading, running


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


def graph(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def entity(name, *observations):
    return {"type": "entity", "name": name, "entityType": "person", "observations": list(observations)}


def relation(one, other):
    return {"type": "relation", "from": one, "to": other, "relationType": "knows"}


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_dry_run_refuses_what_a_run_refuses(tmp_path, dry_run):
    path = graph(tmp_path / "memory.jsonl", entity("Ada", "x" * 101, "lives in Oslo"), relation("Ada", "Bo"))
    with Memory(":memory:", settings=Settings(max_text_chars=100)) as memory:
        done = import_from(memory, "server-memory", path, dry_run=dry_run)
        # The relation is linked to the first observation, which was refused.
        assert (done.created, done.links, done.troubles_total) == (2, 0, 2)
        assert [each.line for each in done.troubles] == [1, 2]
        assert memory.count() == (0 if dry_run else 2)


@pytest.mark.parametrize("dry_run", [True, False])
def test_links_are_counted_alike(memory, tmp_path, dry_run):
    path = graph(
        tmp_path / "memory.jsonl", entity("Ada", "lives in Oslo"), entity("Bo", "is new"), relation("Ada", "Bo")
    )
    assert import_from(memory, "server-memory", path, dry_run=dry_run, batch_size=1).links == 2


@pytest.mark.parametrize("dry_run", [True, False])
def test_an_edited_memory_is_a_version_whatever_the_batches(memory, tmp_path, dry_run):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"id": "a", "text": "one"}\n{"id": "a", "text": "two"}\n{"id": "a", "text": "two"}\n')
    for batch_size in (1, 2, 100):
        done = import_from(memory, "jsonl", path, scope=f"/{batch_size}", dry_run=True, batch_size=batch_size)
        assert (done.created, done.updated, done.unchanged) == (1, 1, 1)
    done = import_from(memory, "jsonl", path, dry_run=dry_run)
    assert (done.created, done.updated, done.unchanged) == (1, 1, 1)


def test_what_is_redacted_is_not_taken_for_an_edit(tmp_path):
    path = graph(tmp_path / "memory.jsonl", entity("Ada", "pays with 4111 1111 1111 1111"))
    with Memory(":memory:") as memory:  # an import redacts by itself
        assert import_from(memory, "server-memory", path).created == 1
        assert memory.list()[0].text.endswith("pays with [redacted: card number]")
        assert import_from(memory, "server-memory", path).unchanged == 1


def test_batches_are_bounded_by_their_text(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "_MAX_BATCH_CHARS", 100)
    path = graph(tmp_path / "memory.jsonl", entity("Ada", *(f"{number} {'x' * 60}" for number in range(6))))
    told = []
    import_from(memory, "server-memory", path, on_progress=lambda done, total: told.append(done))
    assert told == [2, 4, 6]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_refused(memory, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="neither a file nor a folder"):
        import_from(memory, "chatgpt", tmp_path / "pipe")


@pytest.mark.skipif(os.name == "nt", reason="names of files are text on Windows")
def test_names_of_files_are_shown_without_what_moves_a_cursor(memory, tmp_path):
    (tmp_path / "\x1b[2Ja\udcff.jsonl").write_bytes(b"{")
    (trouble,) = import_from(memory, "claude-code", tmp_path).troubles
    assert trouble.path == "\ufffd[2Ja\ufffd.jsonl"


def test_vaults_with_a_note_of_one_name_do_not_replace_each_other(memory, tmp_path):
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "Todo.md").write_text(f"Tidy up at {name}.")
        assert import_from(memory, "obsidian", tmp_path / name, scope=f"/{name}").created == 1
        assert import_from(memory, "obsidian", tmp_path / name, scope=f"/{name}").unchanged == 1
        assert memory.get(f"obsidian:/{name}/Todo.md").text == f"Tidy up at {name}."
    assert memory.count() == 2


@pytest.mark.parametrize("dry_run", [True, False])
def test_scoped_handles_take_the_same_file_each(memory, tmp_path, dry_run):
    path = tmp_path / "mem0.json"
    path.write_text('[{"id": "1", "memory": "Ada lives in Oslo"}]')
    for name in ("a", "b"):
        done = import_from(memory.scoped(f"/{name}"), "mem0", path, dry_run=dry_run)
        assert (done.created, done.troubles) == (1, ())
    assert memory.count() == (0 if dry_run else 2)


def test_a_local_id_is_the_same_for_a_scope_and_a_handle_of_it(memory, tmp_path):
    path = graph(tmp_path / "memory.jsonl", entity("Ada", "x" * 300))
    assert import_from(memory, "server-memory", path, scope="/a/b").created == 1
    assert import_from(memory.scoped("/a"), "server-memory", path, scope="/b").unchanged == 1


def test_what_another_process_stores_meanwhile_is_in_the_store_already(memory, tmp_path, monkeypatch):
    path = tmp_path / "notes.jsonl"
    path.write_text("".join(f'{{"id": "{each}", "text": "memory {each}"}}\n' for each in range(3)))
    import_from(memory, "jsonl", path)
    path.write_text(path.read_text() + '{"id": "3", "text": "memory 3"}\n')
    answers = [{}]  # as it was before the other process wrote
    get = Memory.get
    monkeypatch.setattr(Memory, "get", lambda self, ids: answers.pop() if answers else get(self, ids))
    done = import_from(memory, "jsonl", path)
    assert (done.created, done.unchanged, done.troubles) == (1, 3, ())


def test_a_disk_that_fails_in_the_middle_of_a_file_is_reported_and_what_was_read_is_stored(
    memory, tmp_path, monkeypatch
):
    path = graph(tmp_path / "memory.jsonl", entity("Ada", "lives in Oslo"), entity("Bo", "is new"))
    next_line, lines = reading.next_line, []

    def failing(stream):
        if lines:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        lines.append(next_line(stream))
        return lines[0]

    monkeypatch.setattr("recallite_connect.importers.reading.next_line", failing)
    done = import_from(memory, "server-memory", path)
    assert done.created == 1
    assert [(trouble.path, trouble.reason) for trouble in done.troubles] == [
        ("memory.jsonl", "it cannot be read further: Input/output error")
    ]


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_is_dated_later_than_now_is_taken_as_now_as_from_an_export(memory, tmp_path, dry_run):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"id": "a", "text": "one", "created_at": "2999-01-01"}\n{"id": "b", "text": "two"}\n')
    mapping = {name: name for name in ("id", "text", "created_at")}
    done = import_from(memory, "jsonl", path, mapping=mapping, dry_run=dry_run)
    assert (done.created, done.troubles, done.left_out) == (2, (), {"times to come": 1})
    assert import_from(memory, "jsonl", path, mapping=mapping, dry_run=dry_run).unchanged == (0 if dry_run else 2)
    assert all(record.created_at <= datetime.now(UTC) for record in memory.list())
