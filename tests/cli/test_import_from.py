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
    assert "without --from" in run("import", path, "--map", "text=body").err


def test_memories_go_out_in_another_form_and_what_is_lost_is_said(run, remember, tmp_path):
    remember("Ada is on call", "--tag", "team")
    done = run("export", tmp_path / "memory.jsonl", "--to", "server-memory")
    assert (done.code, done.out) == (0, "1\texported\n1\ttags, not in this form\n1\tcreated_at, not in this form\n")
    mapping = ("--map", "text=body", "--map", "tags=labels")
    assert run("export", tmp_path / "x.jsonl", "--to", "jsonl", *mapping, "--json").json["records"] == 1
    assert '"labels":["team"]' in (tmp_path / "x.jsonl").read_text()
    assert "obsidian" in run("export", "-", "--to", "?").out
    assert "without --to jsonl" in run("export", tmp_path / "y.jsonl", "--map", "text=body").err
