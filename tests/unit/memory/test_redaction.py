"""Secrets: found by audit, and kept out at the door."""

from __future__ import annotations

import io
import json

import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite.model.policies import WritePolicy

pytest.importorskip("detect_secrets", reason="detect-secrets finds the secrets")

from recallite.text import secrets
from recallite.text.secrets import find_secrets, redact

GITHUB = "ghp_" + "aB3d" * 9
AWS = "AKIAIOSFODNN7EXAMPLE"
CARD = "4111 1111 1111 1111"
HIDING = Settings(embedder="none", write=WritePolicy(redact="secrets"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"the key is {AWS}.", "the key is [redacted: AWS Access Key]."),
        (f"token {GITHUB}, expires", "token [redacted: GitHub Token], expires"),
        ("postgres://ada:pa55w0rd@db/x", "postgres://ada:[redacted: Basic Auth Credentials]@db/x"),
        (f"card {CARD} of Ada", "card [redacted: card number] of Ada"),
        ("to DE89 3704 0044 0532 0130 00 please", "to [redacted: IBAN] please"),
        ("GB82WEST12345698765432", "[redacted: IBAN]"),
        ("DB_PASSWORD=Sup3rS3cret99", "DB_PASSWORD=[redacted: password or key]"),
        (
            "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPx",
            "export AWS_SECRET_ACCESS_KEY=[redacted: password or key]",
        ),
        ("STRIPE_KEY=sk_test_51Hq8ZtKx93mVbNcR7LpWdYf2 for now", "STRIPE_KEY=[redacted: API key] for now"),
        (
            "password for the registry is Tr0ub4dor&3, user ci",
            "password for the registry is [redacted: password or key], user ci",
        ),
        ("password: hunter2!x, user: ada", "password: [redacted: password or key], user: ada"),
        ("the password is Tr0ub4dor&3.", "the password is [redacted: password or key]."),
        ("my api key is 9f8e7d6c5b4a39281706", "my api key is [redacted: password or key]"),
        ("key sk-ant-api03-" + "Ab1_" * 12, "key [redacted: API key]"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "a [redacted: private key] b"),
        ("-----BEGIN PRIVATE KEY-----\nMII", "[redacted: private key]"),
    ],
)
def test_secrets_are_replaced_by_their_kind(text, kept):
    assert redact(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "card 4111 1111 1111 1112 has a wrong check digit", "to DE88 3704 0044 0532 0130 00 is a wrong IBAN",
        "call 415-555-2671 or +49 30 1234567",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "id 01a200f4-ac15-72b6-ad8b-e9846e2cfc78 at 2026-11-22T12:13:14Z",
        "We reset the password flow last week", "password: see the vault", "the password is in the vault",
        "the token of the issuer is rotated", "the password for staging is the one of 2019",
        "token budget: 800", "Which API key is used?", "passwords=two",
        "version 1.2.3, build 1234567890123, 10.0.0.1:8080",
    ],
)  # fmt: skip
def test_what_only_looks_like_one_stays(text):
    assert find_secrets(text) == []


def test_a_secret_is_found_wherever_it_stands_in_a_long_line():
    for place in (0, 3000, 4090, 6144, 9999):
        text = "x " * (place // 2) + GITHUB + " y" * 3000
        (secret,) = find_secrets(text)
        assert text[secret.start : secret.stop] == GITHUB


def test_every_door_is_watched(path, tmp_path):
    said = f"use {GITHUB} and {CARD}"
    with Memory(path, settings=HIDING) as memory:
        record = memory.remember(said, context=f"key {AWS}", metadata={"deep": [{"card": CARD}]})
        assert record.text == "use [redacted: GitHub Token] and [redacted: card number]"
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
    assert memory.remember(f"key {AWS}", policy=WritePolicy(redact="secrets")).text == "key [redacted: AWS Access Key]"
    assert memory.remember(f"key {AWS}").text == f"key {AWS}"


def test_audit_finds_and_redacts_what_is_there(path, tmp_path):
    with Memory(path, settings=Settings(embedder="none")) as memory:
        first = memory.remember(f"pay with {CARD}", metadata={"key": AWS})
        second = memory.remember(f"token {GITHUB}")
        memory.update(second.id, text="the token is in the vault")
        findings = memory.review.audit(["secrets"]).findings
        assert [(each.id, each.text, each.reason) for each in findings] == [
            (first.id, "pay with [redacted: card number]", "holds AWS Access Key, card number"),
            (second.id, "token [redacted: GitHub Token]", "an earlier version holds GitHub Token"),
        ]
        assert all(each.mended for each in memory.review.audit(["secrets"], mend=True).findings)
        assert memory.review.audit(["secrets"]).findings == ()
        assert memory.get(first.id).metadata == {"key": "[redacted: AWS Access Key]"}
        assert len(memory.history(second.id)) == 1
        memory.store.vacuum()
    held = b"".join(file.read_bytes() for file in tmp_path.glob("agent.db*"))
    assert [secret for secret in (GITHUB, AWS, CARD) if secret.encode() in held] == []


def test_a_chunk_is_left_to_its_document(memory):
    memory.knowledge.ingest(f"card {CARD}\n".encode(), name="cards.md")
    (finding,) = memory.review.audit(["secrets"]).findings
    assert finding.verb is None


def test_without_the_detector_the_policy_is_refused(monkeypatch):
    monkeypatch.setattr(secrets.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install '\.\[audit\]'"):
        WritePolicy(redact="secrets")
    with pytest.raises(InvalidInput, match="redact is 'all'"):
        WritePolicy(redact="all")
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        assert "not installed" in memory.review.audit().skipped["secrets"]
        with pytest.raises(InvalidInput, match="not installed"):
            memory.review.audit(["secrets"])


def test_a_settings_file_can_ask_for_it(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('[write]\nredact = "secrets"\n')
    assert Settings.load(file).write_policy.redact == "secrets"
