"""stats, verify, rebuild, vacuum, backup, reembed, warmup, demo, version and help."""

import json
import re

import apsw
import click
import pytest

import recallite
import recallite_kernels
from recallite_cli import output, printers
from recallite_cli.other_commands import MEMORIES, QUESTIONS
from recallite_cli.run import app, own_names


def test_stats_names_the_state(run, remember, db):
    remember("one")
    figures = run("stats", "--json").json
    assert (figures["records"], figures["path"], figures["mode"]) == (1, str(db), "keyword")
    assert "records\t1\n" in run("stats").out


def test_stats_of_a_process_that_has_loaded_no_index_say_nothing_of_one(run, remember):
    remember("one")
    assert "index" not in [line.split("\t")[0] for line in run("stats").out.splitlines()]


def test_verify_and_rebuild_agree(run, remember, db):
    remember("one two")
    clean = run("verify", "--json")
    assert (clean.code, clean.json) == (0, {"ok": True, "records": 1, "vectors": 0, "problems": []})
    assert run("verify").err == "1 records and 0 vectors: clean\n"
    connection = apsw.Connection(str(db))
    connection.execute("DELETE FROM record_terms")
    connection.close()
    broken = run("verify", "--json")
    assert (broken.code, broken.json["ok"]) == (1, False)
    assert {"name", "count", "examples", "remedy"} == set(broken.json["problems"][0])
    assert "recallite rebuild" in run("verify").out
    assert run("rebuild", "--json").json["ok"] is True
    assert run("verify").code == 0


def test_restore_puts_a_backup_back(run, remember, tmp_path, monkeypatch, db):
    monkeypatch.chdir(tmp_path)
    remember("The lamp is blue")
    assert run("backup", "nightly.db").code == 0
    remember("The chair is red")
    done = run("restore", "nightly.db")
    assert (done.code, done.out) == (0, f"1\tmemories, with their versions and chunks, are in {db}\n")
    (old,) = tmp_path.glob(f"**/{db.name}-before-*")
    assert str(old) in done.err
    assert run("list", "--json").json[0]["text"] == "The lamp is blue"
    assert run("count").out == "1\n"
    assert run("restore", old, "--discard").code == 2, "it asks, and nobody can answer"
    assert run("restore", old, "--discard", "--yes", "--json").json["replaced"] is None
    assert run("count").out == "2\n"


def test_restore_tells_a_backup_from_a_memory(run, remember, tmp_path, monkeypatch, db):
    monkeypatch.chdir(tmp_path)
    id = remember("The lamp is blue", "--id", "lamp")
    run("update", id, "--text", "The lamp is green")
    assert run("restore", "lamp", "--to", "0").out == "lamp\tThe lamp is blue\n"
    assert run("backup", "lamp").code == 0
    both = run("restore", "lamp")
    assert (both.code, "lamp is a memory and a file: give ./lamp" in both.err) == (2, True)
    assert run("restore", "lamp", "--to", "1").out == "lamp\tThe lamp is green\n"
    assert run("restore", "./lamp").code == 0
    assert run("get", "lamp").out.count("blue") == 1
    missing = run("restore", "./nowhere.db")
    assert (missing.code, "there is no backup at" in missing.err) == (2, True)
    assert run("restore", "nothing").code == 1
    assert run("restore", "lamp", "--to", "0", "--discard").code == 2


def test_restore_of_a_store_that_cannot_be_opened(run, remember, tmp_path, monkeypatch, db):
    monkeypatch.chdir(tmp_path)
    remember("The lamp is blue")
    run("backup", "nightly.db")
    db.write_bytes(bytes(9000))
    broken = run("list")
    assert (broken.code, f"recallite --db {db} restore BACKUP" in broken.err) == (3, True)
    assert run("restore", "nightly.db").code == 0
    assert run("verify").code == 0


def test_vacuum_and_backup(run, remember, tmp_path):
    id = remember("kept")
    assert set(run("vacuum", "--json").json) == {"bytes_freed"}
    copy = tmp_path / "copy.db"
    assert run("backup", copy, "--json").json == {"path": str(copy)}
    assert run("get", id, "--json", store=copy).json["text"] == "kept"
    assert run("backup", copy).code == 2
    assert run("backup", tmp_path / "no" / "copy.db").code == 3


def test_without_an_embedder_reembed_is_exit_4(run, remember):
    remember("one")
    assert run("reembed").err.startswith("recallite: EmbedderError: ")
    done = run("reembed", "--json")
    assert (done.code, done.out) == (4, "")
    assert json.loads(done.err)["error"]["reason"] == "missing"


def test_reembed_moves_a_store_to_the_embedder_that_it_names(run, remember):
    remember("Der Server steht in Frankfurt")
    assert run("reembed", "--to", "nothing-of-this-name").code == 2
    moved = run("reembed", "--to", "instant")
    assert (moved.code, moved.out) == (0, "1\tembedded\n")
    assert "RECALLITE_EMBEDDER=instant" in moved.err
    assert run("stats", "--json").json["embedder"] == "instant"
    assert run("reembed", "--to", "instant", "--json").json == {"embedded": 0}


def test_a_model_that_is_not_there_is_exit_4(run, remember, monkeypatch, tmp_path):
    remember("one")
    monkeypatch.setenv("RECALLITE_EMBEDDER", str(tmp_path))
    assert run("reembed").code == 4
    assert run("recall", "one", "--json").code == 0


@pytest.mark.usefixtures("ready_kernels")
def test_warmup_prints_the_seconds_it_took(run):
    found = run("warmup", "--json").json
    assert set(found["seconds"]) == {"embedder", "index", "kernels"}
    assert found["kernels"] in ("numba", "python")
    assert "\tkernels\n" in run("warmup").out


def test_a_kernel_failure_is_exit_4(run, monkeypatch):
    def refuse(on_progress=None):
        raise recallite_kernels.KernelError("warmup: numba cannot be used")

    monkeypatch.setattr(recallite_kernels, "warmup", refuse)
    assert run("warmup") == (4, "", "recallite: KernelError: warmup: numba cannot be used\n")


def test_the_demo_answers_from_its_memories_and_hides_figures(run, db):
    shown = run("demo", "--json").json
    assert shown["memories"] == len(MEMORIES)
    assert [each["query"] for each in shown["questions"]] == list(QUESTIONS)
    best = shown["questions"][0]
    assert best["hits"][0]["text"] == MEMORIES[0]
    assert best["hits"][0]["signals"]["bm25"] > 0
    assert set(best["stages"]) >= {"embed", "search"}
    assert shown["questions"][-1]["evidence_gaps"]
    plain = run("demo").out
    assert all(text in plain for text in (*MEMORIES, *QUESTIONS))
    assert re.search(r"Why: .*\d+ ms\.", plain)
    assert "I don't know." in plain
    assert f"  {MEMORIES[-1]}\n  Before: {MEMORIES[-2]}\n" in plain
    assert "bm25" not in plain
    explained = run("demo", "--explain")
    assert re.search(r"^ {8}shares .*\n {8}.*words \d\.\d+ \(#1\)", explained.out, re.MULTILINE)
    assert re.search(r"^  embed .*search \d+\.\d ms", explained.out, re.MULTILINE)
    assert max(map(len, explained.out.splitlines())) < 200
    assert "ms" not in explained.err
    assert not db.exists()


def test_the_demo_says_i_do_not_know_where_the_engine_finds_evidence_missing(run):
    shown, plain = run("demo", "--json").json, run("demo").out
    missing = [each for each in shown["questions"] if each["evidence_gaps"]]
    assert plain.count("I don't know.") == len(missing) > 0
    assert all(gap in plain for each in missing for gap in each["evidence_gaps"])


def test_demo_with_the_bundled_model(run, monkeypatch):
    monkeypatch.delenv("RECALLITE_EMBEDDER")
    shown = run("demo", "--json").json
    if shown["mode"] != "hybrid":
        pytest.skip("the bundled model is not installed")
    *answered, unknown = shown["questions"]
    assert [each["hits"][0]["text"] for each in answered] == [*MEMORIES[:3], MEMORIES[-1]]
    assert all(each["hits"][0]["confidence"] > 0.5 and not each["evidence_gaps"] for each in answered)
    assert unknown["hits"][0]["confidence"] < 0.3
    assert unknown["evidence_gaps"]
    plain = run("demo").out
    assert plain.count("I don't know.") == 1
    assert "Why: closest in meaning; shares 'Ana', 'release'" in plain


def is_group(command):
    return isinstance(app.get_command(None, command), click.Group)


def test_version_and_help(run):
    assert run("--version", store=None) == (0, f"recallite {recallite.__version__}\n", "")
    shown = run("--help", store=None)
    assert shown.code == 0
    for text in (
        "Exit codes:",
        "130",
        "RECALLITE_DB",
        "NO_COLOR",
        *own_names(),
    ):
        assert text in shown.out
    for command in own_names():
        assert run(command, "--help").code == 0


def test_help_has_a_whole_line_for_every_command(run):
    groups = [(), *((name,) for name in own_names() if is_group(name))]
    assert ("workspace",) in groups
    for group in groups:
        commands = run(*group, "--help", store=None).out.partition("Commands:")[2].partition("Exit codes:")[0]
        assert commands.strip()
        assert "..." not in commands, group


def test_every_command_takes_json(run):
    for command in own_names():
        assert is_group(command) or "--json" in run(command, "--help").out, command


def test_bars_are_for_terminals_only_and_for_what_takes_longer(capsys, monkeypatch):
    with output.progress("working", "things") as report:
        assert report is None
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with output.progress("working", "things", after_s=0) as report:
        report(500, 1000)
        report(1000, None)
    assert "working" in capsys.readouterr().err
    with output.progress("working", "things", after_s=1e6) as report:
        report(500, 1000)
    assert "working" not in capsys.readouterr().err


def test_audit_proposes_and_mends(run, remember):
    remember("hello")
    remember("We use MySQL")
    done = run("audit", "junk")
    assert done.code == 1
    assert done.out.split("\t")[:2] == ["junk", "forget"]
    assert "needs --yes" in run("audit", "junk", "--mend").err
    assert run("audit", "--mend", "--yes").code == 2
    assert run("audit", "junk", "--mend", "--yes", "--json").json["findings"][0]["mended"] is True
    clean = run("audit", "junk")
    assert (clean.code, clean.out, clean.err) == (0, "", "1 memories were checked: nothing was found\n")


def test_audit_shows_both_of_a_pair_and_what_is_superseded(run, remember):
    one, two = remember("The roof is flat"), remember("It has a ridge and gables")
    run("link", two, one, "--type", "contradicts")
    (line,) = run("audit", "contradictions").out.splitlines()
    assert line.split("\t")[:3] == ["contradictions", "", one]
    assert line.split("\t")[4:] == [f"{two} It has a ridge and gables", "The roof is flat"]
    run("supersede", one, two)
    assert "1 of them is superseded: audit superseded shows by what" in run("audit", "contradictions").err
    (shown,) = run("audit", "superseded", "--json").json["findings"]
    assert (shown["id"], shown["other"], shown["verb"]) == (one, two, None)


def test_judging_needs_a_language_model(run, remember):
    remember("The roof is flat")
    done = run("judge-changes")
    assert (done.code, "language model" in done.err) == (2, True)


def test_audit_names_every_check(run):
    from recallite_eval.audit import CHECKS

    assert set(printers._REMEDIES) == {*CHECKS.values(), "link"} - {None}
    assert set(CHECKS) <= set(re.findall(r"[a-z-]+", re.sub(r"-\s+", "-", run("audit", "--help").out)))
