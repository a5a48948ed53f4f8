"""What mem0 exports and stores."""

from __future__ import annotations

import json
import pickle
import sys
import types
from datetime import UTC, datetime

import apsw
import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from

ADA = {
    "id": "e0ad2fab-91ee-45c4-9530-63f1071d58b3", "memory": "Ada works on payments",
    "hash": "b5e765226e7d958a5a9a95330abe54fc", "metadata": {"project": "x"}, "score": None,
    "created_at": "2026-03-21T09:44:59.926401+00:00", "updated_at": "2026-03-21T09:44:59.988808+00:00",
    "user_id": "ada", "agent_id": "bot", "actor_id": "Ada L.", "role": "user", "categories": ["work"],
}  # fmt: skip
BO = {"id": "3e0998ab", "memory": "Bo lives in Oslo", "created_at": "2026-03-20T17:00:00-07:00", "user_id": "bo"}
HISTORY = """CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
    created_at DATETIME, updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT)"""
EVENTS = [
    ("1", "m1", None, "Ada works on billing", "ADD", "2026-03-21T09:00:00+00:00", None, 0, "ada", "user"),
    ("2", "m2", None, "Noted", "ADD", "2026-03-21T09:00:00+00:00", None, 0, None, "assistant"),
    ("3", "m1", "Ada works on billing", "Ada works on payments", "UPDATE", "2026-03-21T09:00:00+00:00", None, 0, "ada",
     "user"),
    ("4", "m2", "Noted", None, "DELETE", "2026-03-21T09:00:00+00:00", None, 1, None, "assistant"),
]  # fmt: skip


class PointStruct:
    """Pickled as qdrant-client pickles its model of the same name."""

    def __init__(self, id, payload):
        self.fields = {"id": id, "vector": {"": [0.25, 0.5]}, "payload": payload}

    def __getstate__(self):
        return {
            "__dict__": self.fields, "__pydantic_extra__": None, "__pydantic_fields_set__": {"id", "vector", "payload"},
            "__pydantic_private__": None,
        }  # fmt: skip


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


@pytest.fixture
def qdrant(tmp_path, monkeypatch):
    module = "qdrant_client.http.models.models"
    for name in ("qdrant_client", "qdrant_client.http", "qdrant_client.http.models", module):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setattr(sys.modules[module], "PointStruct", PointStruct, raising=False)
    monkeypatch.setattr(PointStruct, "__module__", module)
    payloads = [
        {**{name: value for name, value in item.items() if name not in {"id", "memory", "metadata", "score"}},
         "data": item["memory"], "text_lemmatized": item["memory"].lower(), **(item.get("metadata") or {})}
        for item in (ADA, BO)
    ]  # fmt: skip
    points = [PointStruct(item["id"], payload) for item, payload in zip((ADA, BO), payloads, strict=True)]
    for collection, rows in {"mem0": points, "mem0_entities": [PointStruct("e", {"data": "Ada"})]}.items():
        folder = tmp_path / "qdrant" / "collection" / collection
        folder.mkdir(parents=True)
        database = apsw.Connection(str(folder / "storage.sqlite"))
        database.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
        for place, point in enumerate(rows):
            database.execute("INSERT INTO points VALUES (?, ?)", (str(place), pickle.dumps(point, protocol=4)))
        database.close()
    return tmp_path / "qdrant"


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda items: items,
        lambda items: {"results": items},
        lambda items: {"count": 2, "next": None, "results": items},
        lambda items: {"status": "success", "command": "list", "data": items},
    ],
)
def test_memories_of_get_all(memory, tmp_path, wrapped):
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps(wrapped([ADA, BO]), indent=1))
    done = import_from(memory, "mem0", path)
    assert (done.created, done.troubles) == (2, ())
    ada, bo = memory.get(f"mem0:{ADA['id']}"), memory.get("mem0:3e0998ab")
    assert (ada.text, ada.scope, ada.context, ada.tags) == ("Ada works on payments", "/ada", "Ada L.", ("work",))
    assert ada.created_at == datetime(2026, 3, 21, 9, 44, 59, 926401, tzinfo=UTC)
    assert ada.metadata == {
        "project": "x", "updated_at": ADA["updated_at"], "user_id": "ada", "agent_id": "bot", "actor_id": "Ada L.",
        "role": "user",
    }  # fmt: skip
    assert (bo.scope, bo.created_at) == ("/bo", datetime(2026, 3, 21, tzinfo=UTC))


def test_a_backup_of_openmemory(memory, tmp_path):
    backup = {"user": {"id": "u"}, "memories": [
        {"id": "1", "user_id": "u", "content": "Ada likes tea", "state": "active", "created_at": None, "metadata": {}},
        {"id": "2", "user_id": "u", "content": "gone", "state": "deleted", "created_at": None, "metadata": {}},
    ]}  # fmt: skip
    path = tmp_path / "memories.json"
    path.write_text(json.dumps(backup))
    done = import_from(memory, "mem0", path)
    assert (done.created, done.left_out) == (1, {"deleted memories": 1})


def test_points_of_a_local_qdrant_folder_equal_the_export(memory, tmp_path, qdrant):
    done = import_from(memory, "mem0", qdrant)
    assert (done.created, done.troubles) == (2, ())
    path = tmp_path / "mem0.json"
    path.write_text(json.dumps([ADA, BO]))
    assert import_from(memory, "mem0", path).unchanged == 2
    assert import_from(memory, "mem0", tmp_path).unchanged == 2  # found below it


def test_a_point_that_is_none_is_reported(memory, qdrant):
    database = apsw.Connection(str(qdrant / "collection/mem0/storage.sqlite"))
    database.execute("INSERT INTO points VALUES ('a', x'80'), ('b', NULL), ('c', ?)", (pickle.dumps([1]),))
    database.close()
    done = import_from(memory, "mem0", qdrant)
    assert done.created == 2
    assert [each.reason.split(":")[0] for each in done.troubles] == ["point 3", "point 4", "point 5"]


def test_the_history_has_what_memories_were_last(memory, tmp_path):
    database = apsw.Connection(str(tmp_path / "history.db"))
    database.execute(HISTORY)
    database.executemany("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", EVENTS)
    database.close()
    done = import_from(memory, "mem0", tmp_path)
    assert (done.created, done.left_out, done.troubles) == (1, {"deleted memories": 1}, ())
    assert [(each.id, each.text, each.context) for each in memory.list()] == [
        ("mem0:m1", "Ada works on payments", "ada"),
    ]  # fmt: skip
    assert sorted(each.name for each in tmp_path.iterdir()) == ["history.db"]


def test_what_is_malformed_is_reported(memory, tmp_path):
    path = tmp_path / "mem0.json"
    path.write_text('{"results": [\n{"id": "1", "memory": "kept"},\n{"id": "2"},\n7,\n{"memory": "no id"},\n{"id')
    done = import_from(memory, "mem0", path)
    assert done.created == 1
    assert [(each.line, each.reason) for each in done.troubles] == [
        (3, "memory 2: it has no text"),
        (4, "memory 3: it is no object"),
        (5, "memory 4: it has no id"),
        (5, "memory 5: the file ends before the array does"),
    ]


def test_a_folder_without_a_store_says_what_to_do(memory, tmp_path):
    with pytest.raises(InvalidInput, match="get_all"):
        import_from(memory, "mem0", tmp_path)


@pytest.mark.parametrize("text", ["no JSON", '{"other": [{"id": "1", "memory": "Ada"}]}', json.dumps(ADA)])
def test_a_file_without_a_list_of_memories_says_so(memory, tmp_path, text):
    path = tmp_path / "mem0.json"
    path.write_text(text)
    done = import_from(memory, "mem0", path)
    assert (done.created, [each.path for each in done.troubles]) == (0, ["mem0.json"])
    assert "results or memories or data" in done.troubles[0].reason


def test_a_value_that_is_nested_too_deeply_is_reported(memory, tmp_path):
    path = tmp_path / "mem0.json"
    deep = "[" * 900 + "]" * 900
    path.write_text('{"results": [{"id": "1", "memory": "deep", "x": ' + deep + '}, {"id": "2", "memory": "plain"}]}')
    done = import_from(memory, "mem0", path)
    assert (done.created, [each.line for each in done.troubles]) == (1, [1])


def test_a_history_of_another_program_is_refused(memory, tmp_path):
    connection = apsw.Connection(str(tmp_path / "history.db"))
    connection.execute("CREATE TABLE history (memory_id TEXT, url TEXT); INSERT INTO history VALUES ('1', 'x')")
    connection.close()
    with pytest.raises(InvalidInput, match="neither points of Qdrant nor a history of mem0"):
        import_from(memory, "mem0", tmp_path / "history.db")
