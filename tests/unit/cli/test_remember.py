"""remember, update, forget, link, and what they print."""

import apsw
import pytest


def test_remember_prints_the_id_and_nothing_else(run):
    done = run("remember", "We moved to MySQL")
    assert (done.code, done.err) == (0, "")
    assert run("get", done.out.strip(), "--json").json["text"] == "We moved to MySQL"


def test_remember_takes_every_field(run):
    record = run(
        "remember", "日本 text 🎉", "--scope", "/a/b", "--kind", "note", "--tag", "x", "--tag", "y", "--importance",
        "0.8",
        "--metadata", '{"k": [1]}', "--context", "Caroline", "--topic", "db", "--source", "chat", "--position", "3",
        "--created-at", "2020-01-01T00:00:00Z", "--valid-from", "2019-01-01T01:00:00+01:00", "--expires-at",
        "2999-01-01T00:00:00Z", "--pinned", "--vector", "[3, 4]", "--json",
    ).json  # fmt: skip
    wanted = {
        "text": "日本 text 🎉", "scope": "/a/b", "kind": "note", "tags": ["x", "y"], "importance": 0.8,
        "metadata": {"k": [1]}, "context": "Caroline", "topic": "db", "source": "chat", "position": 3,
        "created_at": "2020-01-01T00:00:00Z", "valid_from": "2019-01-01T00:00:00Z",
        "expires_at": "2999-01-01T00:00:00Z",
        "pinned": True, "embedding_state": "embedded", "outcome": "created",
    }  # fmt: skip
    assert {name: record[name] for name in wanted} == wanted


def test_remember_reads_standard_input_as_one_memory(run):
    for arguments in ((), ("-",)):
        record = run("remember", *arguments, "--json", stdin="two\nlines é\n").json
        assert record["text"] == "two\nlines é"


def test_remember_stores_each_argument(run):
    assert run("remember", "one", "two").out.count("\n") == 2
    assert [each["text"] for each in run("remember", "three", "four", "--json").json] == ["three", "four"]
    assert run("count").out == "4\n"


def test_update_changes_and_clears(run, remember):
    id = remember("old text", "--tag", "t", "--topic", "x", "--context", "c")
    record = run("update", id, "--text", "new text", "--importance", "1", "--clear", "tags", "--clear", "topic",
                 "--pinned", "--json").json  # fmt: skip
    assert (record["text"], record["tags"], record["topic"], record["context"]) == ("new text", [], None, "c")
    assert (record["importance"], record["pinned"], record["outcome"]) == (1.0, True, "updated")
    assert run("update", id, "--text", "-", "--unpinned", stdin="from stdin").out.strip() == id
    versions = run("history", id, "--json").json
    assert [each["text"] for each in versions] == ["old text", "new text", "from stdin"]
    assert versions[0]["recorded_until"] == versions[1]["recorded_from"]
    assert versions[2]["recorded_until"] is None
    assert run("history", id).out.splitlines()[0].endswith("\told text")


def test_input_in_another_encoding_is_read_or_refused_with_the_place(run, tmp_path):
    said, utf_16 = "Übung für Zoë", "Übung für Zoë\r\n".encode("utf-16")
    assert run("remember", "-", "--json", stdin=utf_16).json["text"] == said
    (tmp_path / "queries.txt").write_bytes(utf_16)
    for given in ({"stdin": utf_16}, {"stdin": b""}):
        file = () if given["stdin"] else ("--file", str(tmp_path / "queries.txt"))
        assert said in run("recall", *file, **given).out
    for command in ("remember -", "recall --file -"):
        done = run(*command.split(), stdin="Zoë und Jörg".encode("latin-1"))
        assert (done.code, done.out) == (2, "")
        assert "standard input is not UTF-8: the byte 0xeb at 2 is no part of a character" in done.err


def test_update_refuses_what_is_unclear(run, remember):
    id = remember("text")
    assert run("update", id).code == 2
    assert "use one of context" in run("update", id, "--clear", "text").err
    assert "given and cleared" in run("update", id, "--topic", "a", "--clear", "topic").err


def test_links_are_made_and_shown(run, remember):
    first, second = remember("one"), remember("two")
    assert run("link", first, second, "--type", "causal", "--strength", "0.5", "--json").json == {
        "source": first, "target": second, "type": "causal", "strength": 0.5,
    }  # fmt: skip
    (link,) = run("neighbors", second, "--json").json
    assert (link["source"], link["target"], link["type"], link["strength"]) == (first, second, "causal", 0.5)
    assert run("neighbors", first).out == f"{first}\t{second}\tcausal\t0.5\n"
    assert run("neighbors", first, "--direction", "in").code == 1
    assert run("neighbors", first, "--type", "similar", "--json").out == "[]\n"
    assert run("link", first, first).code == 2
    assert run("link", first, "nobody").code == 1


def test_forget_by_id_and_by_filter(run, remember):
    first = remember("one", "--scope", "/a")
    remember("two", "--scope", "/a", "--kind", "note")
    remember("three", "--scope", "/b", "--tag", "t")
    assert run("forget", first, "--json").json == {
        "records": 1, "versions": 0, "services": 0, "holds_again": [], "receipt": None,
    }  # fmt: skip
    assert run("forget", first).code == 1
    assert run("forget", "--kind", "note", "--yes").out == "1\tforgotten\n"
    assert run("forget", "--where", '{"tags": {"contains": "t"}}', "--yes", "--json").json["records"] == 1
    assert run("forget", "--scope", "/a", "--json") == (
        1, '{"records":0,"versions":0,"services":0,"holds_again":[],"receipt":null}\n', "",
    )  # fmt: skip
    assert run("forget").code == 2
    assert run("forget", first, "--scope", "/a").code == 2


@pytest.mark.parametrize(("answer", "left"), [("n\n", "3"), ("y\n", "0"), ("", "3")])
def test_forget_asks_before_more_than_one_goes(run, remember, answer, left):
    for text in ("one", "two", "three"):
        remember(text)
    done = run("forget", "--scope", "/", stdin=answer, terminal=True)
    assert "Forget 3 memories for good?" in done.err
    assert "Forget" not in done.out
    assert run("count").out.strip() == left
    assert done.code == {"n\n": 1, "y\n": 0, "": 130}[answer]


@pytest.mark.parametrize("selection", [("--scope", "/"), ("one", "two"), ("--tag", "t")])
def test_without_a_terminal_forget_needs_yes(run, remember, selection):
    for id in ("one", "two"):
        remember(f"number {id}", "--id", id, *(("--tag", "t") if id == "one" else ()))
    refused = run("forget", *selection)
    assert (refused.code, refused.out) == (2, "")
    assert "for good? This needs --yes where nobody can be asked" in refused.err
    assert run("count").out == "2\n"
    assert run("forget", *selection, "--yes").code == 0


def test_forget_does_not_ask_for_one_or_with_yes(run, remember):
    first = remember("one")
    assert run("forget", first, terminal=True).err == ""
    remember("two")
    remember("three")
    assert run("forget", "--scope", "/", "--yes", terminal=True) == (0, "2\tforgotten\n", "")


def test_a_terminal_without_text_is_told_what_to_type(run):
    done = run("remember", terminal=True)
    assert done.code == 2
    assert "no text was given" in done.err


def test_forget_with_a_receipt(run, remember, db):
    id = remember("The key is under the Quuxington stone")
    done = run("forget", id, "--receipt")
    assert done.code == 0
    lines = dict(line.split("\t") for line in done.out.splitlines()[1:])
    assert (lines["memories and versions removed"], lines["words removed"]) == ("1", "6")
    assert lines["searched m.db"] == f"{db.stat().st_size:,} bytes"
    assert lines["erased completely"] == "yes"
    assert b"uuxington" not in db.read_bytes()
    receipt = run("forget", remember("Another one"), "--receipt", "--json").json["receipt"]
    assert receipt["complete"] is True
    assert receipt["removed"]["record"] == 1


def test_forget_with_an_incomplete_receipt_fails(run, remember, db):
    id = remember("The key is under the Quuxington stone")
    reader = apsw.Connection(str(db))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchall()
    done = run("forget", id, "--receipt")
    assert done.code == 1
    assert "erased completely\tno" in done.out
    assert "its WAL could not be emptied" in done.err
    reader.close()
