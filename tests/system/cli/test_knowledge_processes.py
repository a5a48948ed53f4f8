"""Documents on the command line."""

from __future__ import annotations

from tests.unit.cli.test_knowledge import folder  # noqa: F401
from tests.unit.documents.support import Put, encrypted, pdf


def test_ingest_search_list_delete(run, folder):
    done = run("knowledge", "ingest", folder)
    assert (done.code, [line.split("\t")[1] for line in done.out.splitlines()]) == (0, ["created", "created"])
    assert (
        done.err == f"skipped {folder}/image.pdf: it holds images and no text: it needs text recognition (OCR) before\n"
    )
    found = run("knowledge", "search", "penguins")
    assert found.out.splitlines()[0].split("\t")[2:] == [
        f"{folder}/guide.md:5", "Guide > Birds", "## Birds Penguins swim.",
    ]  # fmt: skip
    assert run("knowledge", "search", "volcanoes").out.split("\t")[2] == f"{folder}/report.pdf p. 1"
    listed = run("knowledge", "list", "--json").json
    assert [each["title"] for each in listed] == ["Guide", "report"]
    deleted = run("knowledge", "delete", f"{folder}/guide.md", listed[1]["id"], "--yes")
    assert deleted.out.count("deleted with") == 2
    assert run("knowledge", "list").code == run("knowledge", "search", "penguins").code == 1
    assert run("knowledge", "delete", listed[1]["id"]).code == 1


def test_a_document_is_deleted_by_an_unambiguous_end_of_its_id(run, folder):
    run("knowledge", "ingest", folder)
    kept, gone = run("knowledge", "list", "--json").json
    shared = run("knowledge", "delete", "doc_")
    assert (shared.code, "is part of several ids: " in shared.err) == (2, True)
    assert run("knowledge", "delete", gone["id"][-12:], "--json").json[0]["id"] == gone["id"]
    assert [each["id"] for each in run("knowledge", "list", "--json").json] == [kept["id"]]


def test_standard_input_and_a_password(run):
    locked = encrypted(pdf([Put(72, 700, "secret words")]), "sesame")
    failed = run("knowledge", "ingest", "-", "--name", "locked.pdf", stdin=locked)
    assert (failed.code, failed.err) == (
        2, "recallite: DocumentError: locked.pdf: it is encrypted: give its password\n",
    )  # fmt: skip
    assert run("knowledge", "ingest", "-", "--name", "locked.pdf", "--password", "sesame", stdin=locked).code == 0
    assert run("knowledge", "search", "secret").code == 0
