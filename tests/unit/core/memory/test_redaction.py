"""Secrets: found by audit, and kept out at the door."""

from __future__ import annotations

import io
import json

import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite.model.settings import WritePolicy

GITHUB = "ghp_" + "aB3d" * 9
AWS = "AKIAIOSFODNN7EXAMPLE"
CARD = "4111 1111 1111 1111"
HIDING = Settings(embedder="none", write=WritePolicy(redact="secrets"))


def test_every_door_is_watched(path, tmp_path):
    said = f"use {GITHUB} and {CARD}"
    with Memory(path, settings=HIDING) as memory:
        record = memory.remember(said, context=f"key {AWS}", metadata={"deep": [{"card": CARD}]})
        assert record.text == "use [redacted: GitHub token] and [redacted: card number]"
        assert record.metadata == {"deep": [{"card": "[redacted: card number]"}]}
        memory.remember_many([said])
        memory.update(record.id, text=f"now {AWS}", metadata={"k": AWS})
        memory.semantic.add(said)
        memory.episodes.log(said)
        memory.episodes.snapshot(messages=[{"role": "user", "content": said}], summary=said, key_decisions=[said])
        memory.procedures.save("deploy", said, pattern=said)
        memory.experience.record_recovery(tool="http", error=said, recovery=said)
        session = memory.sessions.open("s")
        session.append({"role": "user", "content": [{"type": "text", "text": said}], "extra": {"key": AWS}})
        memory.working.add(said)
        memory.working.save()
        memory.knowledge.ingest(f"# Keys\n\n{said}\n".encode(), name="keys.md", metadata={"by": AWS})
        memory.transfer.import_(io.StringIO(json.dumps({"text": said})), format="jsonl")
        assert memory.sessions.search("redacted")
    held = b"".join(file.read_bytes() for file in tmp_path.glob("agent.db*"))
    assert [secret for secret in (GITHUB, AWS, CARD) if secret.encode() in held] == []


def test_a_policy_of_one_call_redacts_that_call(memory):
    assert memory.remember(f"key {AWS}", policy=WritePolicy(redact="secrets")).text == "key [redacted: AWS access key]"
    assert memory.remember(f"key {AWS}").text == f"key {AWS}"


def test_audit_finds_and_redacts_what_is_there(path, tmp_path):
    with Memory(path, settings=Settings(embedder="none")) as memory:
        first = memory.remember(f"pay with {CARD}", metadata={"key": AWS})
        second = memory.remember(f"token {GITHUB}")
        memory.update(second.id, text="the token is in the vault")
        findings = memory.review.audit(["secrets"]).findings
        assert [(each.id, each.text, each.reason) for each in findings] == [
            (first.id, "pay with [redacted: card number]", "holds AWS access key, card number"),
            (second.id, "token [redacted: GitHub token]", "an earlier version holds GitHub token"),
        ]
        assert all(each.mended for each in memory.review.audit(["secrets"], mend=True).findings)
        assert memory.review.audit(["secrets"]).findings == ()
        assert memory.get(first.id).metadata == {"key": "[redacted: AWS access key]"}
        assert len(memory.history(second.id)) == 1
        memory.store.vacuum()
    held = b"".join(file.read_bytes() for file in tmp_path.glob("agent.db*"))
    assert [secret for secret in (GITHUB, AWS, CARD) if secret.encode() in held] == []


def test_a_chunk_is_left_to_its_document(memory):
    memory.knowledge.ingest(f"card {CARD}\n".encode(), name="cards.md")
    (finding,) = memory.review.audit(["secrets"]).findings
    assert finding.verb is None


def test_a_policy_redacts_secrets_and_nothing_else():
    with pytest.raises(InvalidInput, match="redact is 'all'"):
        WritePolicy(redact="all")


def test_a_settings_file_can_ask_for_it(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('[write]\nredact = "secrets"\n')
    assert Settings.load(file).write_policy.redact == "secrets"


def test_a_field_that_is_named_for_a_secret_is_redacted(memory):
    given = {"db": {"password": "grouse", "port": 5432}, "api_keys": ["k3Jd8sLq0Zx7Vb2Nm5Pw"], "note": "grouse"}
    record = memory.remember("The settings of the shop", metadata=given, policy=WritePolicy(redact="secrets"))
    assert record.metadata == {
        "db": {"password": "[redacted: password]", "port": 5432},
        "api_keys": ["[redacted: key or token]"],
        "note": "grouse",
    }


def test_documents_are_redacted_by_the_policy_of_one_ingest(memory):
    memory.knowledge.ingest(f"The key is {AWS}\n".encode(), name="keys.md", policy=WritePolicy(redact="secrets"))
    assert [chunk.text for chunk in memory.list(kinds=["chunk"])] == ["The key is [redacted: AWS access key]"]
