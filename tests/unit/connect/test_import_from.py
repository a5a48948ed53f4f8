"""`recallite import --from`."""

from __future__ import annotations


def test_fields_are_mapped_on_the_command_line(run, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"body": "Ada is on call", "user": {"id": "ada"}, "ts": 1774096200}\n{"bod": 1}\n')
    done = run("import", "--from", "jsonl", path, "--map", "text=body", "--map", "scope = user.id", "--json")
    assert (done.code, done.json["created"], done.json["troubles_total"]) == (1, 1, 1)
    (stored,) = run("list", "--json").json
    assert (stored["text"], stored["scope"]) == ("Ada is on call", "/ada")


def test_a_mapping_that_is_none_is_named(run, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text("")
    assert "give FIELD=PATH" in run("import", "--from", "jsonl", path, "--map", "text").err
    twice = run("import", "--from", "jsonl", path, "--map", "text=body", "--map", "text=title")
    assert "--map gives text twice" in twice.err
    assert "without --from" in run("import", path, "--map", "text=body").err


def test_memories_go_out_in_another_form_and_what_is_lost_is_said(run, remember, tmp_path):
    remember("Ada is on call", "--tag", "team")
    done = run("export", tmp_path / "memory.jsonl", "--to", "jsonl", "--map", "text=body")
    assert (done.code, done.out) == (0, "1\texported\n1\ttags, not in this form\n1\tcreated_at, not in this form\n")
    mapping = ("--map", "text=body", "--map", "tags=labels")
    assert run("export", tmp_path / "x.jsonl", "--to", "jsonl", *mapping, "--json").json["records"] == 1
    assert '"labels":["team"]' in (tmp_path / "x.jsonl").read_text()
    assert "jsonl" in run("export", "--to", "?").out
    assert "without --to jsonl" in run("export", tmp_path / "y.jsonl", "--map", "text=body").err


def test_options_that_would_not_be_read_are_refused(run, remember, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "Ada is on call"}\n')
    for option in (("--format", "csv"), ("--overwrite",), ("--forget-missing",)):
        done = run("import", "--from", "jsonl", path, *option)
        assert (done.code, f"{option[0]} has no meaning with --from" in done.err) == (2, True)
    remember("Ada is on call")
    for option in (("--format", "csv"), ("--overwrite",), ("--vectors",)):
        done = run("export", "--to", "jsonl", tmp_path / "out.jsonl", *option)
        assert (done.code, f"{option[0]} has no meaning with --to" in done.err) == (2, True)
    assert not (tmp_path / "out.jsonl").exists()


def test_an_export_in_another_form_needs_a_name(run, remember, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    remember("Ada is on call")
    for given in (["-"], []):
        assert "--to writes a file or a folder: name it" in run("export", "--to", "jsonl", *given).err
    assert not (tmp_path / "-").exists()
    assert "give a file, or - for standard output" in run("export").err


def test_a_dry_run_and_a_wrong_path_make_no_store(run, db, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "Ada is on call"}\n')
    assert run("import", "--from", "jsonl", path, "--dry-run", "--json").json["created"] == 1
    assert "there is no" in run("import", "--from", "chatgpt", tmp_path / "typo.zip").err
    assert "use one of" in run("import", "--from", "typo", path).err
    assert "there is no" in run("import", "--from", "codex", "--watch", tmp_path / "typo").err
    assert not db.exists()


def test_what_cannot_be_read_is_told_and_is_exit_code_1(run, tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"text": "Ada is on call"}\nno JSON\n')
    done = run("import", "--from", "jsonl", path)
    assert (done.code, done.err.count("notes.jsonl:2: ")) == (1, 1)
    path.write_text('{"text": "Ada is on call"}\n')
    assert run("import", "--from", "jsonl", path).code == 0
