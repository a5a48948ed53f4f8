"""Memories in the forms of other systems, and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.transfer.exporters import export_to, targets
from recallite_connect.importers import import_from

MAPPING = {
    "text": "body", "id": "uid", "scope": "user.id", "tags": "labels", "created_at": "ts", "metadata": "info",
    "metadata.channel": "user.channel", "importance": "weight", "kind": "type", "topic": "about", "context": "who",
    "source": "from", "pinned": "pin",
}  # fmt: skip
QUESTIONS = ["Who is on call?", "Which cache do we use?", "How should answers be?", "Where does Bo live?"]
MARCH = datetime(2026, 3, 21, 14, 2, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "here.db") as opened:
        ada = opened.remember(
            NewRecord(
                "Ada is on call for billing", scope="/team", topic="Ada", tags=["on call", "billing"], created_at=MARCH
            )
        )
        bo = opened.remember("Bo lives in Oslo,\n\nnear the sea", context="Bo", importance=0.8, source="chat-7",
                             metadata={"channel": "chat"}, created_at=MARCH)  # fmt: skip
        opened.link(ada.id, bo.id, type="supports")
        opened.remember(NewRecord("Answer in short sentences", pinned=True, kind="preference", created_at=MARCH))
        old = opened.remember("We cache in Redis", created_at=MARCH)
        opened.remember(NewRecord("We cache in Valkey", supersedes=old.id, created_at=MARCH.replace(month=4)))
        yield opened


def _hits(memory):
    return [[(hit.id, hit.text, round(hit.score, 4)) for hit in memory.recall(question)] for question in QUESTIONS]


def _texts(memory):
    return sorted(record.text for record in memory.list())


def test_our_own_form_moves_a_store_with_equal_hits(memory, tmp_path):
    memory.transfer.export(tmp_path / "all.jsonl")
    with Memory(tmp_path / "there.db") as there:
        there.transfer.import_(tmp_path / "all.jsonl")
        there.transfer.export(tmp_path / "back.jsonl")
        assert (tmp_path / "back.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()
        assert _hits(there) == _hits(memory)


def test_all_links_of_a_memory_are_written(tmp_path):
    with Memory(tmp_path / "here.db", embedder="none") as memory:
        hub, *spokes = memory.remember_many([{"text": f"memory {number}"} for number in range(102)])
        for spoke in spokes:
            memory.link(hub, spoke)
        assert len(memory.neighbors(hub)) == 100
        assert len(memory.neighbors(hub, limit=None)) == 101
        assert export_to(memory, "jsonl", tmp_path / "out.jsonl", mapping={"text": "text"}).lost["links"] == 101


LOST = {
    "basic-memory": {"scope": 1, "kind": 1, "importance": 1, "metadata": 1, "context": 1, "pinned": 1, "superseded": 1},
    "jsonl": {"links": 1, "superseded": 1},
    "obsidian": {"superseded": 1},
    "openclaw": {
        "scope": 1, "topic": 1, "created_at": 4, "links": 1, "metadata": 1, "context": 1, "kind": 1, "superseded": 1,
    },
    "server-memory": {
        "scope": 1, "tags": 1, "created_at": 4, "importance": 1, "metadata": 1, "pinned": 1, "superseded": 1,
        "context": 1, "kind": 1, "source": 1,
    },
}  # fmt: skip


@pytest.mark.parametrize("target", sorted(targets()))
def test_texts_move_to_another_form_and_back_with_the_loss_that_is_stated(memory, tmp_path, target):
    mapping = MAPPING if target == "jsonl" else {}
    done = export_to(memory, target, tmp_path / "out", mapping=mapping)
    assert (done.records, done.lost) == (4, LOST[target])
    with Memory(tmp_path / "there.db") as there:
        back = import_from(there, target, tmp_path / "out", mapping=mapping)
        assert back.troubles == ()
        found = "\n".join(_texts(there))
        for text in ("Ada is on call for billing", "Bo lives in Oslo", "short sentences", "We cache in Valkey"):
            assert text in found
        assert "Redis" not in found
        # What was written from memories of that system is the same again.
        again = export_to(there, target, tmp_path / "again", mapping=mapping)
        assert again.records == there.count()
        with Memory(tmp_path / "third.db") as third:
            import_from(third, target, tmp_path / "again", mapping=mapping)
            assert _texts(third) == _texts(there)
            assert {record.id for record in third.list()} == {record.id for record in there.list()}


def test_fields_are_written_where_the_mapping_says(memory, tmp_path):
    export_to(memory, "jsonl", tmp_path / "out.jsonl", mapping=MAPPING, scope="/team")
    (line,) = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert line.pop("uid")
    assert line == {
        "body": "Ada is on call for billing", "user": {"id": "/team"}, "labels": ["on call", "billing"],
        "ts": "2026-03-21T14:02:00+00:00", "info": {}, "weight": 0.5, "type": "memory", "about": "Ada", "pin": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"text": "."}, "only metadata can be the whole item"),
        ({"tags": "labels.0"}, "a place in a list"),
        ({"text": "a", "scope": "a.b"}, "one place for text and scope"),
        ({"vector": "v"}, "names the field 'vector'"),
    ],
)
def test_a_mapping_that_cannot_be_written_is_refused(memory, tmp_path, mapping, message):
    with pytest.raises(InvalidInput, match=message):
        export_to(memory, "jsonl", tmp_path / "out.jsonl", mapping=mapping)
    assert not (tmp_path / "out.jsonl").exists()


def test_observations_are_those_of_their_entity(memory, tmp_path):
    export_to(memory, "server-memory", tmp_path / "memory.jsonl")
    lines = list(map(json.loads, (tmp_path / "memory.jsonl").read_text().splitlines()))
    assert lines[0] == {
        "type": "entity", "name": "Ada", "entityType": "memory", "observations": ["Ada is on call for billing"],
    }  # fmt: skip
    assert lines[-1] == {"type": "relation", "from": "Ada", "to": "Bo", "relationType": "supports"}


def test_a_graph_becomes_notes_and_a_graph_again(tmp_path):
    graph = tmp_path / "memory.jsonl"
    graph.write_text(
        '{"type":"entity","name":"Ada","entityType":"memory","observations":["lives in Oslo","leads billing"]}\n'
        '{"type":"entity","name":"billing","entityType":"memory","observations":["written in Go"]}\n'
        '{"type":"relation","from":"Ada","to":"billing","relationType":"leads"}\n'
    )
    with Memory(":memory:") as memory:
        import_from(memory, "server-memory", graph)
        export_to(memory, "server-memory", tmp_path / "same.jsonl")
        assert (tmp_path / "same.jsonl").read_text() == graph.read_text()
        export_to(memory, "basic-memory", tmp_path / "notes")
    assert sorted(path.name for path in (tmp_path / "notes").iterdir()) == ["Ada.md", "billing.md"]
    body = (tmp_path / "notes" / "Ada.md").read_text().partition("---\n\n")[2]
    assert body == (
        "# Ada\n\n## Observations\n- [memory] lives in Oslo\n- [memory] leads billing\n\n"
        "## Relations\n- leads [[billing]]\n"
    )


def test_a_vault_is_written_as_it_was_read(tmp_path):
    vault = tmp_path / "vault"
    vault.mkdir()
    text = "---\ncreated: '2026-03-21T14:02:00+00:00'\ntags:\n- team\nstatus: active\nlinks:\n- '[[Bo]]'\n---\n\n"
    text += "First, see [[Bo]].\n\n## On call\n\nAda is.\n\n## Cache\n\nValkey.\n"
    (vault / "Team.md").write_text(text)
    (vault / "Bo.md").write_text("---\ncreated: '2026-03-21T14:02:00+00:00'\n---\n\nBo lives in Oslo.\n")
    with Memory(":memory:") as memory:
        import_from(memory, "obsidian", vault)
        assert export_to(memory, "obsidian", tmp_path / "again").lost == {}
    assert {path.name: path.read_text() for path in (tmp_path / "again").iterdir()} == {
        path.name: path.read_text() for path in vault.iterdir()
    }


def test_paths_stay_in_the_folder(tmp_path):
    with Memory(":memory:") as memory:
        for place, path in enumerate(["../up.md", "/etc/x.md", ".obsidian/x.md", "a//b.md", "CON.md", "a:b?.md"]):
            memory.remember(f"text {place}", id=f"obsidian:{place}", metadata={"path": path, "headings": []})
        memory.remember("../../.. what", scope="/a/..hidden")
        done = export_to(memory, "obsidian", tmp_path / "out")
    written = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.md"))
    assert done.records == len(written) == 7
    assert all(path.startswith("out/") for path in written)
    assert {"out/CON_.md", "out/a b.md"} <= set(written)
    assert not any(part.startswith(".") for path in written for part in path.split("/"))


def test_a_folder_with_files_and_the_store_itself_are_left_alone(memory, tmp_path):
    with pytest.raises(InvalidInput, match="is there already"):
        export_to(memory, "obsidian", tmp_path)
    with pytest.raises(InvalidInput, match="is the store itself"):
        export_to(memory, "server-memory", tmp_path / "here.db")
    with pytest.raises(InvalidInput, match="use one of"):
        export_to(memory, "nothing", tmp_path / "out")
    with pytest.raises(InvalidInput, match="nothing to map here: leave it out, or export to jsonl"):
        export_to(memory, "obsidian", tmp_path / "out", mapping={"text": "a"})


def test_metadata_does_not_replace_the_fields_of_a_note(tmp_path):
    with Memory(":memory:") as memory:
        memory.remember(
            "Ada is on call", tags=["team"], metadata={"tags": ["other"], "created": "1999", "channel": "a"}
        )
        assert export_to(memory, "obsidian", tmp_path / "vault").lost == {"metadata": 1}
    with Memory(":memory:") as memory:
        import_from(memory, "obsidian", tmp_path / "vault")
        (record,) = memory.list()
        assert (record.tags, record.metadata["channel"]) == (("team",), "a")


def test_a_text_that_begins_with_a_tag_is_an_entry_of_its_own(tmp_path):
    with Memory(":memory:") as memory:
        memory.remember("Bo is in Oslo", tags=["a-->b", "c,d"], created_at=MARCH)
        memory.remember("#rota Ada is on call", created_at=MARCH)
        assert export_to(memory, "openclaw", tmp_path / "workspace").lost["tags"] == 1
    with Memory(":memory:") as memory:
        import_from(memory, "openclaw", tmp_path / "workspace")
        entries = [text.partition("## 14:02\n\n")[2] for text in _texts(memory)]
        assert sorted(entries) == ["#rota Ada is on call", "Bo is in Oslo"]


@pytest.mark.parametrize("system", ["obsidian", "basic-memory"])
def test_what_properties_say_comes_back_as_it_was(tmp_path, system):
    vault = tmp_path / "vault"
    vault.mkdir()
    for name, text in {
        "Only": "---\ntitle: Only\nforge: Nygata 4\ntags: [smith]\n---\n",
        "Long": f"---\ntitle: Long\nsummary: {'how the ferry is moored ' * 20}\n---\n# Long\n\nAsk the master.\n",
        "First": "---\ntitle: First\nowner: Bo\n---\n# First\n\nIt hums.\n\n## Oil\n\n- [kind] thin\n- [use] monthly\n",
    }.items():
        (vault / f"{name}.md").write_text(text)
    stored = []
    for folder, to in ((vault, tmp_path / "one"), (tmp_path / "one", tmp_path / "two")):
        with Memory(":memory:", embedder="none") as memory:
            import_from(memory, system, folder)
            stored.append({(record.id, record.text, record.context) for record in memory.list()})
            export_to(memory, system, to)
    assert stored[0] == stored[1]
    assert len(stored[0]) == (6 if system == "basic-memory" else 5)
