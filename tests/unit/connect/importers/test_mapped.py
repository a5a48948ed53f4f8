"""JSON lines, arrays and CSV whose names are mapped to the fields of a memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite_connect.importers import import_from

ITEMS = [
    {"uid": 7, "body": "Ada is on call", "user": {"id": "ada/b"}, "ts": 1774096200, "labels": ["on-call", "#team"],
     "info": {"channel": "chat"}, "weight": 0.9},
    {"uid": 8, "body": "Bo writes Go", "user": {"id": 5}, "ts": "2026-03-21T12:30:00+00:00", "labels": "go, code",
     "info": {"channel": None}},
]  # fmt: skip
MAPPING = {
    "text": "body", "id": "uid", "scope": "user.id", "created_at": "ts", "tags": "labels", "metadata": "info",
    "metadata.first": "labels.0", "importance": "weight",
}  # fmt: skip


@pytest.fixture
def memory():
    with Memory(":memory:") as opened:
        yield opened


def _written(path, kind):
    text = json.dumps(ITEMS, indent=1) if kind == "array" else "\n".join(map(json.dumps, ITEMS))
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", ["array", "lines"])
def test_fields_come_from_the_paths_that_the_mapping_names(memory, tmp_path, kind):
    path = _written(tmp_path / "notes.json", kind)
    done = import_from(memory, "jsonl", path, scope="/old", mapping=MAPPING)
    assert (done.created, done.troubles) == (2, ())
    ada, bo = memory.get("jsonl:/old/7"), memory.get("jsonl:/old/8")
    noon = datetime(2026, 3, 21, 12, 30, tzinfo=UTC)
    assert (ada.text, ada.scope, ada.created_at, ada.importance) == ("Ada is on call", "/old/ada-b", noon, 0.9)
    assert (ada.tags, ada.metadata) == (("on-call", "team"), {"channel": "chat", "first": "on-call"})
    assert (bo.scope, bo.created_at, bo.tags, bo.metadata) == ("/old/5", noon, ("go", "code"), {"channel": None})


def test_columns_of_csv_are_paths(memory, tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text('note,user.id,pin\n"Ada, on call",ada,true\nBo,,\nonly one\n')
    done = import_from(memory, "jsonl", path, mapping={"text": "note", "scope": "user.id", "pinned": "pin"})
    assert (done.created, [each.line for each in done.troubles]) == (2, [4])
    assert {(each.text, each.scope, each.pinned) for each in memory.list()} == {
        ("Ada, on call", "/ada", True), ("Bo", "/", False),
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="no column 'user', which scope is mapped to: it has 'note'"):
        import_from(memory, "jsonl", path, mapping={"text": "note", "scope": "user"})


@pytest.mark.parametrize(
    ("delimiter", "name", "encoding", "doubts"),
    [(";", "a.csv", "cp1252", 1), (",", "a.csv", "utf-16", 0), ("\t", "a.tsv", "utf-8-sig", 0)],
)
def test_csv_as_spreadsheets_write_it(memory, tmp_path, delimiter, name, encoding, doubts):
    rows = [("note", "by"), ('"Café; closed,\nfor the été"', "Zoé")]
    (tmp_path / name).write_bytes("\r\n".join(map(delimiter.join, rows)).encode(encoding))
    done = import_from(memory, "jsonl", tmp_path / name, mapping={"text": "note", "metadata.by": "by"})
    (record,) = memory.list()
    assert (record.text, record.metadata) == ("Café; closed,\nfor the été", {"by": "Zoé"})
    assert len(done.troubles) == doubts


def test_items_without_an_id_are_known_again_by_what_they_say(memory, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "a", "n": 1}\n{"n": 1, "text": "a"}\n{"text": "a", "n": 2}\n')
    assert import_from(memory, "jsonl", path).created == 2
    with path.open("a") as more:
        more.write('{"text": "b"}\n')
    assert import_from(memory, "jsonl", path).created == 1


def test_a_text_that_changed_under_its_id_is_a_version(memory, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"id": "x", "text": "Ada is on call"}')
    import_from(memory, "jsonl", path)
    path.write_text('{"id": "x", "text": "Bo is on call"}')
    assert import_from(memory, "jsonl", path).updated == 1
    assert [version.text for version in memory.history("jsonl:x")] == ["Ada is on call", "Bo is on call"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"txt": "body"}, "map names the field 'txt': use text, id, scope"),
        ({"text": "a..b"}, "map has 'a..b' for text: give the path"),
        ({"vector": "v"}, "map names the field 'vector'"),
    ],
)
def test_a_mapping_that_cannot_be_right_is_refused(memory, tmp_path, mapping, message):
    with pytest.raises(InvalidInput, match=message):
        import_from(memory, "jsonl", _written(tmp_path / "a.json", "lines"), mapping=mapping)


def test_a_path_that_no_item_has_is_reported(memory, tmp_path):
    mapping = {"text": "body", "id": "uid", "scope": "user.name"}
    done = import_from(memory, "jsonl", _written(tmp_path / "a.json", "lines"), mapping=mapping)
    assert done.created == 2
    assert [each.reason for each in done.troubles] == ["no item has 'user.name', which scope is mapped to"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"text": "a", "at": "soon"}', "created_at is 'soon': give a date that means one day"),
        ('{"text": "a", "meta": 3}', "metadata is 3: give an object"),
        ('{"text": 3}', "text is 3: give a text"),
        ('{"body": "a"}', "the item has no 'text', which is to be the text"),
        ("[1]x", "'[1]x' is not JSON"),
        ("7", "7 is not a JSON object"),
        ('{"text": " "}', "nothing to remember"),
        ('{"text": "a", "meta": {"n": 1e999}}', "JSON has no such number"),
        ('{"text": "a", "meta": ' + '{"a":' * 200 + "1" + "}" * 200 + "}", "nested more than"),
    ],
)
def test_an_item_that_cannot_be_taken_is_reported_with_its_line(memory, tmp_path, line, reason):
    path = tmp_path / "a.jsonl"
    path.write_text(f'{{"text": "good", "at": 1700000000, "meta": {{}}}}\n{line}\n{{"text": "better \\ud800"}}\n')
    done = import_from(memory, "jsonl", path, mapping={"created_at": "at", "metadata": "meta"})
    assert [(each.path, each.line) for each in done.troubles] == [("a.jsonl", 2)]
    assert reason in done.troubles[0].reason
    assert {each.text for each in memory.list()} == {"good", "better \ufffd"}


def test_other_systems_have_nothing_to_map(memory, tmp_path):
    path = tmp_path / "memory.jsonl"
    path.write_text("")
    with pytest.raises(InvalidInput, match="nothing to map here: leave it out, or import from jsonl"):
        import_from(memory, "server-memory", path, mapping={"text": "a"})


def test_an_item_that_is_nested_too_deeply_is_reported(memory, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "deep", "x": ' + "[" * 100_000 + "]" * 100_000 + '}\n{"text": "plain"}\n')
    done = import_from(memory, "jsonl", path)
    assert (done.created, [each.line for each in done.troubles]) == (1, [1])


@pytest.mark.parametrize(("other", "day"), [("25/12/2021", (2021, 7, 2)), ("12/25/2021", (2021, 2, 7)), ("soon", None)])
def test_other_times_of_a_file_tell_whether_the_day_comes_first(memory, tmp_path, other, day):
    path = tmp_path / "log.csv"
    path.write_text(f"text,at\nThe boat was sold,02/07/2021 16:05\nThe barn was painted,{other}\n")
    done = import_from(memory, "jsonl", path, mapping={"created_at": "at"})
    dates = [record.created_at for record in memory.list(where={"text": {"contains": "boat"}})]
    assert dates == ([] if day is None else [datetime(*day, 16, 5, tzinfo=UTC)])
    assert [trouble.line for trouble in done.troubles] == ([2, 3] if day is None else [])


def test_a_day_that_ends_something_is_meant_whole(memory, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("text,until,gone\nThe permit holds,2999-03-05,5 March 2999\n")
    import_from(memory, "jsonl", path, mapping={"valid_until": "until", "expires_at": "gone"})
    (record,) = memory.list()
    assert record.valid_until == record.expires_at == datetime(2999, 3, 6, tzinfo=UTC)
