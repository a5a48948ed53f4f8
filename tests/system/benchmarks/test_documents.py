"""The run on documents, on a few files made up: every figure is there, and what must hold does."""

from __future__ import annotations

import io
import json
import tarfile

import pytest

from benchmarks.cached_embedder import CachedEmbedder
from benchmarks.documents import embedders, indexing, pdfs, report, searching, small
from benchmarks.documents.__main__ import RESULTS, markdown_files
from recallite import Workspace

MADE_WITH = {"processor": "p", "cores": 2, "python": "3", "commit": "c", "date": "d"}
TEXT = "---\ntitle: Note {0}\n---\n# Note {0}\n\nFerry {0} to Lisbon leaves at nine, or at ten.\n\n## More\n\n{0}.\n"


@pytest.fixture
def files(tmp_path):
    made = []
    for number in range(20):
        path = tmp_path / "given" / f"note-{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEXT.format(number), "utf-8")
        made.append(path)
    return made


def test_an_index_is_told_beside_the_embedding_of_its_chunks(files, tmp_path):
    free = embedders.Free()
    first = indexing.first_index(files, tmp_path / "parts", free, lambda line: None)
    assert (first["files"], first["chunks"], len(first["parts"])) == (20, 40, 20)
    later = indexing.later_indexes(files, tmp_path, CachedEmbedder(free))
    assert (later["files"], later["chunks"]) == (20, 40)
    assert (later["changed_files"], later["chunks_created"], later["chunks_kept"], later["embedded"]) == (
        10,
        10,
        10,
        10,
    )
    assert "| first index of 20 files, 40 chunks |" in report.markdown(
        {"index": {"first": first, "later": later} | MADE_WITH}
    )


def test_many_small_files_are_indexed_with_and_without_an_embedder(tmp_path):
    indexed = small.evaluate([3, 6], tmp_path, lambda line: None)
    assert {name: list(sizes) for name, sizes in indexed.items()} == {"none": ["3", "6"], "free": ["3", "6"]}
    assert "| 6 |" in report.markdown({"small": {"indexed": indexed} | MADE_WITH})


def test_searches_are_timed_with_and_without_a_look_at_the_files(files, tmp_path):
    run = searching.evaluate(files, tmp_path, embedders.Free())
    assert (run["files"], run["chunks"]) == (20, 40)
    assert set(run["sync_on_search"]) == {"on", "off"}
    assert "| on |" in report.markdown({"search": run | MADE_WITH})


def test_documents_that_are_refused_are_named(tmp_path):
    pytest.importorskip("pypdfium2")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and nothing")
    (tmp_path / "page.pdf").write_bytes(_pdf())
    run = pdfs.evaluate(tmp_path)
    assert list(run["refused"]) == ["broken.pdf"]
    assert run["documents"]["page.pdf"]["pages"] == 1
    assert "| page.pdf | 1 |" in report.markdown({"pdf": run | MADE_WITH})


def test_the_archive_of_markdown_is_unpacked(tmp_path):
    with tarfile.open(tmp_path / "markdown.tar.gz", "w:gz") as packed:
        entry = tarfile.TarInfo("notes/a.md")
        entry.size = 3
        packed.addfile(entry, io.BytesIO(b"# A"))
    assert [path.read_text() for path in markdown_files(tmp_path, tmp_path / "scratch")] == ["# A"]
    with pytest.raises(SystemExit, match="no markdown"):
        markdown_files(tmp_path / "scratch", tmp_path)


def test_the_free_embedder_is_recorded(tmp_path):
    (tmp_path / "a.md").write_text("# A\n\nText.\n")
    recorded = embedders.Recorded(embedders.Free())
    with Workspace(tmp_path, embedder=recorded) as workspace:
        workspace.index()
    assert (recorded.texts, recorded.contexts) == (["# A\n\nText."], ["A"])


def _pdf() -> bytes:
    """The smallest page with a line of text, its table of places included."""
    content = b"BT /F1 12 Tf 72 720 Td (Hello from a page of a document) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length " + str(len(content)).encode() + b">>stream\n" + content + b"\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, held in enumerate(objects, 1):
        places.append(len(out))
        out += str(number).encode() + b" 0 obj" + held + b"endobj\n"
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        out + b"xref\n0 6\n0000000000 65535 f \n" + table
        + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n" + str(len(out)).encode() + b"\n%%EOF"
    )  # fmt: skip


def test_the_saved_result_renders():
    saved = json.loads(RESULTS.read_text("utf-8"))
    assert len(report.markdown(saved).split("\n\n")) >= 2 * len(saved)
