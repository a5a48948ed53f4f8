"""Documents on the command line."""

from __future__ import annotations

import pytest

from tests.unit.documents.support import Put, image_pdf, pdf


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "docs"
    made.mkdir()
    (made / "guide.md").write_text("# Guide\n\nIntroduction.\n\n## Birds\n\nPenguins swim.\n")
    (made / "report.pdf").write_bytes(pdf([Put(72, 700, "a report of volcanoes")]))
    (made / "image.pdf").write_bytes(image_pdf())
    return made


def test_as_json(run, folder):
    done = run("knowledge", "ingest", folder, "--metadata", '{"team": "a"}', "--exclude", "*.pdf", "--json").json
    assert done["counts"] == {"created": 1, "skipped": 2}
    assert {each["reason"] for each in done["skipped"]} == {"exclude leaves it out"}
    (hit, *_) = run("knowledge", "search", "penguins", "--where", '{"metadata.team": {"eq": "a"}}', "--json").json
    assert (hit["source"]["path"], hit["source"]["lines"]) == (f"{folder}/guide.md", [5, 7])
    assert "Penguins" in run("knowledge", "search", "penguins", "--budget", "200").out


def test_nothing_to_read_is_said(run, tmp_path, monkeypatch):
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run("knowledge", "ingest", empty)
    assert (done.code, done.out, done.err.splitlines()) == (1, "", [
        f"skipped {empty}: no document is in it: PDF, DOCX, HTML, Markdown and text are read",
        "nothing was ingested: no document that can be read was found",
    ])  # fmt: skip
    (empty / "x.md").write_text("")
    (empty / "x.xyz").write_text("words")
    done = run("knowledge", "ingest", empty)
    assert (done.code, done.err.splitlines()) == (1, [
        f"skipped {empty}/x.xyz: no PDF, DOCX, HTML, Markdown or text by its name: name it in include to read it",
        f"skipped {empty}/x.md: it is empty",
        "nothing was ingested: no document that can be read was found",
    ])  # fmt: skip
    assert run("knowledge", "ingest", empty, "--include", "*.xyz").code == 0
    for source, said in ((empty / "x.md", f"{empty}/x.md: it is empty"), ("absent.md", "absent.md: it is not there")):
        done = run("knowledge", "ingest", source)
        assert (done.code, done.err) == (2, f"recallite: DocumentError: {said}\n")
    monkeypatch.chdir(empty)
    done = run("knowledge", "ingest", "")
    assert (done.code, done.err) == (
        2, "recallite: InvalidInput: source is blank: give a path ('.' is this folder) or a URL\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["absent.pdf"], 2),
        (["http://127.0.0.1:9/"], 2),
        (["-", "other"], 2),
        (["absent.pdf", "neither.pdf"], 1),
        (["x.md", "--metadata", "[]"], 2),
    ],
)
def test_exit_codes(run, arguments, code):
    assert run("knowledge", "ingest", *arguments).code == code
