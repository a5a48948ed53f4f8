"""`recollect import --from`."""

from __future__ import annotations


def test_fields_are_mapped_on_the_command_line(run, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"body": "Ada is on call", "user": {"id": "ada"}, "ts": 1774096200}\n{"bod": 1}\n')
    done = run("import", "--from", "jsonl", path, "--map", "text=body", "--map", "scope = user.id", "--json")
    assert (done.code, done.json["created"]) == (0, 1)
    (stored,) = run("list", "--json").json
    assert (stored["text"], stored["scope"]) == ("Ada is on call", "/ada")


def test_a_mapping_that_is_none_is_named(run, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("")
    assert "give FIELD=PATH" in run("import", "--from", "jsonl", path, "--map", "text").err
    assert "without --from jsonl" in run("import", path, "--map", "text=body").err
