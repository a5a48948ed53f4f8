"""import and export: files and pipes, what stays when they are stopped."""

import io
import json
import sys

from recallite_server.main import main


def test_a_store_moves_through_a_pipe_byte_for_byte(run, remember, tmp_path):
    first, second = remember("one é 日本", "--scope", "/a"), remember("two\nlines")
    run("update", first, "--text", "one, changed")
    run("link", first, second)
    done = run("export", "-")
    assert (done.code, done.err) == (0, "2 memories exported\n")
    other = tmp_path / "other.db"
    receipt = run("import", "-", "--json", stdin=done.out, store=other)
    counts = {"records": 2, "skipped": 0, "links": 1, "warnings": [], "warnings_total": 0}
    assert (receipt.json, receipt.err) == (counts, "")
    assert run("export", "-", store=other).out == done.out
    assert run("import", "-", stdin=done.out, store=other).out == "0\timported\n2\talready in the store\n0\tlinks\n"


def test_files_go_by_their_ending_and_by_format(run, remember, tmp_path):
    remember("a, \"b\"", "--tag", "t")  # fmt: skip
    for name, options in (("x.jsonl", ()), ("x.csv", ()), ("x.txt", ()), ("x.dat", ("--format", "csv"))):
        path, other = tmp_path / name, tmp_path / f"{name}.db"
        assert run("export", path, *options, "--json").json == {"records": 1, "path": str(path)}
        assert run("import", path, *options, "--scope", "/in", "--json", store=other).json["records"] == 1
        assert run("list", "--json", store=other).json[0]["scope"] == "/in"
    assert run("export", tmp_path / "y.dat").code == 2
    assert run("export", tmp_path / "no" / "y.csv").code == 2
    assert run("import", tmp_path / "missing.csv").code == 2
    assert run("import", tmp_path).code == 2


def test_export_takes_filters_and_vectors(run, remember):
    remember("kept", "--kind", "note", "--vector", "[3, 4]")
    remember("left", "--importance", "0.1")
    lines = [json.loads(line) for line in run("export", "-", "--kind", "note", "--vectors").out.splitlines()]
    assert [each.get("text") for each in lines] == [None, "kept"]
    assert len(lines[1]["vectors"]) == 1
    assert run("export", "-", "--format", "text", "--where", '{"importance": {"lt": 0.2}}').out == "left\n"


def test_a_bad_line_is_named_and_earlier_batches_stay(run, tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text('{"text": "one"}\n{"text": "two"}\n{"text": "three"}\n{"text": 4}\n')
    done = run("import", path, "--batch-size", "2")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("recallite: InvalidItem: line 4: Expected `str | null`, got `int` at `text` (2 memories")
    assert run("count").out == "2\n"
    assert run("import", path, "--batch-size", "0").code == 2


def test_bytes_that_are_not_utf8_are_named(run):
    done = run("import", "-", "--format", "text", stdin=b"fine\ncaf\xe9\n")
    assert done.code == 2
    assert "line 2: the byte 0xe9 at character 4 is not UTF-8" in done.err


def test_an_interrupted_import_keeps_earlier_batches(run, db, monkeypatch, capfd):
    class Stopped(io.StringIO):
        """Lines, and then Ctrl-C."""

        def readline(self, size=-1):
            line = super().readline(size)
            if not line:
                raise KeyboardInterrupt
            return line

    monkeypatch.setattr(sys, "stdin", Stopped("".join(f"memory {n}\n" for n in range(5))))
    assert main(["--db", str(db), "import", "-", "--format", "text", "--batch-size", "2"]) == 130
    assert capfd.readouterr() == (
        "",
        "recallite: Interrupted: stopped; what is stored stays, and is not stored twice if you run it again\n",
    )
    assert run("count").out == "4\n"


def test_many_thousand_lines_come_in(run):
    lines = "".join(json.dumps({"text": f"Memory {n} of many", "tags": ["bulk"]}) + "\n" for n in range(20_000))
    assert run("import", "-", "--json", stdin=lines).json["records"] == 20_000
    assert run("count", "--tag", "bulk").out == "20000\n"


def test_a_store_is_copied_and_nothing_is_written_over(run, remember, db, tmp_path):
    remember("one", "--scope", "/a")
    remember("two", "--scope", "/b")
    part, whole = tmp_path / "part.db", tmp_path / "whole.db"
    done = run("copy", db, part, "--scope", "/a", "--json", store=None)
    assert (done.code, done.json["records"], done.json["problems"]) == (0, 1, [])
    done = run("copy", db, whole, "--no-verify", store=None)
    assert done.code == 0
    assert done.out.startswith("2\tmemories")
    assert run("list", "--json", store=whole).json == run("list", "--json").json
    again = run("copy", db, whole, store=None)
    assert (again.code, again.out) == (2, "")
    assert "is not empty" in again.err
    assert run("copy", tmp_path / "none.db", part, store=None).code == 2
    assert run("copy", db, tmp_path / "c.db", "--scope", "/c", store=None).code == 2
    assert not (tmp_path / "c.db").exists()
