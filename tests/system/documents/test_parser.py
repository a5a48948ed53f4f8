"""Foreign formats are read in a process of its own: a hostile file costs its own reading and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from recallite.documents.document import Limits
from recallite.errors import DocumentError
from recallite.system.processes import refusing
from recallite_documents import parser as worker
from recallite_documents.parser import Parser, Request
from tests.limits import LAST_RESORT_SECONDS, until
from tests.raising import raises
from tests.unit.documents.support import Put, endless_pdf, pdf, swelling_pdf, word, word_bomb

GOOD = pdf([Put(72, 700, "good words")])
LIMITS = Limits(seconds=LAST_RESORT_SECONDS)
posix = pytest.mark.skipif(os.name != "posix", reason="limits of resources are those of POSIX")


@pytest.fixture
def parser():
    with Parser(LIMITS) as opened:
        yield opened


def pid(parser):
    return parser._worker.process.pid


def gone(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{process_id}/stat") as status:
        return status.read().rpartition(")")[2].split()[0] == "Z"


def test_one_process_reads_many_documents(parser):
    assert parser.load(GOOD, "a.pdf").text == "good words"
    first = pid(parser)
    assert parser.load(b"<p>page</p>", "a.html").text == "page"
    assert parser.load(word(("Normal", "letter")), "a.docx").text == "letter"
    with raises(DocumentError, "unreadable", match="damaged"):
        parser.load(b"%PDF-1.7 no more", "b.pdf")
    assert pid(parser) == first


def test_text_and_markdown_need_no_process(parser):
    assert parser.load(b"# x", "a.md").markdown
    assert not parser.load(b"x", "a.txt").markdown
    assert parser._worker is None


def test_more_bytes_than_the_limit_are_not_looked_at():
    with Parser(Limits(max_bytes=10)) as parser, raises(DocumentError, "too_large", match="has 11 bytes"):
        parser.load(b"x" * 11, "a.txt")


@posix
def test_a_pdf_that_expands_without_end_takes_its_seconds_and_no_more():
    with Parser(Limits(seconds=1.0)) as strict:
        with pytest.raises(DocumentError, match=r"longer than 1 s|MB of memory|no text"):
            strict.load(endless_pdf(), "endless.pdf")
        strict._limits = LIMITS  # its start counts too
        assert strict.load(b"<p>the next one</p>", "a.html").text == "the next one"


@posix
def test_a_pdf_that_swells_has_its_memory_and_no_more():
    with Parser(Limits(memory_mb=150)) as strict:
        with pytest.raises(DocumentError):
            strict.load(swelling_pdf(250), "swelling.pdf")
        assert strict.load(GOOD, "a.pdf").text == "good words"


@posix
def test_a_word_document_that_swells_within_its_bytes_has_its_memory_and_no_more():
    with Parser(Limits(memory_mb=150, max_bytes=10**9, seconds=3.0)) as strict:
        with pytest.raises(DocumentError, match=r"more than 150 MB of memory|longer than 3 s"):
            strict.load(word_bomb(15, b"<w:p><w:r><w:t>x</w:t></w:r></w:p>"), "bomb.docx")
        strict._limits = LIMITS
        assert strict.load(GOOD, "a.pdf").text == "good words"


@posix
def test_a_process_that_dies_is_replaced(parser):
    parser.load(GOOD, "a.pdf")
    os.kill(pid(parser), signal.SIGSEGV)
    with raises(DocumentError, "unreadable", match="its reader ended with signal 11"):
        parser.load(GOOD, "a.pdf")
    assert parser.load(GOOD, "a.pdf").text == "good words"


@posix
def test_a_process_that_hangs_is_ended():
    with Parser(LIMITS) as strict:
        strict.load(GOOD, "a.pdf")
        # Stopped, it uses no time of the processor: only the clock on the wall tells.
        os.kill(pid(strict), signal.SIGSTOP)
        strict._limits = Limits(seconds=0.2)
        with raises(DocumentError, "too_large", match=r"longer than 0\.2 s"):
            strict.load(GOOD, "a.pdf")
        assert strict._worker is None


def test_an_answer_that_is_too_long_ends_the_process(monkeypatch):
    monkeypatch.setattr("recallite_documents.parser._BYTES_PER_CHAR", 0)
    monkeypatch.setattr("recallite_documents.parser._OVERHEAD_BYTES", 10)
    with Parser(LIMITS) as strict, raises(DocumentError, "too_large", match="its text is longer"):
        strict.load(GOOD, "a.pdf")


def test_many_threads_share_it(parser):
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda number: parser.load(f"<p>{number}</p>".encode(), "a.html").text, range(40)))
    assert said == [str(number) for number in range(40)]


def test_closing_ends_the_process(parser):
    parser.load(GOOD, "a.pdf")
    process = parser._worker.process
    parser.close()
    parser.close()
    assert process.returncode is not None


SCRIPT = """
    from recallite.documents.document import Limits
    from recallite_documents.parser import Parser
    parser = Parser(Limits())
    print(parser.load(b"<p>from a script</p>", "a.html").text, parser._worker.process.pid, flush=True)
"""


def run(arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=LAST_RESORT_SECONDS, **options
    )


def test_it_works_from_a_command_from_standard_input_and_from_a_script_without_a_guard(tmp_path):
    code = textwrap.dedent(SCRIPT)
    script = tmp_path / "script.py"
    script.write_text(code)
    # A file of the working folder must not stand in for a module of the child.
    (tmp_path / "msgspec.py").write_text("raise SystemExit('the wrong msgspec')")
    (tmp_path / "elsewhere").mkdir()
    for done in (
        run(["-c", code], cwd=tmp_path / "elsewhere"),
        run(["-"], input=code, cwd=tmp_path / "elsewhere"),
        run(["-i", "-q"], input=code, cwd=tmp_path / "elsewhere"),
        run(["-P", str(script)], cwd=tmp_path),
    ):
        assert "from a script" in done.stdout, done.stderr


@posix
@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="processes are looked up in /proc")
def test_it_dies_with_its_parent():
    code = textwrap.dedent(SCRIPT) + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = run(["-c", code])
    process_id = int(done.stdout.split()[-1])
    until(lambda: gone(process_id))


def test_the_process_has_no_network_no_programs_and_writes_no_files():
    refuse = refusing("the reader of documents")
    for event, arguments in (
        ("socket.connect", ()), ("socket.getaddrinfo", ()), ("subprocess.Popen", ()), ("os.system", ()),
        ("open", ("x", "w", 0)), ("open", ("x", None, os.O_WRONLY | os.O_CREAT)),
    ):  # fmt: skip
        with pytest.raises(PermissionError, match="may not"):
            refuse(event, arguments)
    refuse("open", ("x", "r", 0))
    refuse("import", ())


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch):
    for library, kind in (
        ("pypdfium2", "pdf"),
        ("selectolax.lexbor", "html"),
        ("html_to_markdown", "html"),
        ("mammoth", "docx"),
    ):
        for name in ("pdf", "html", "docx"):
            monkeypatch.delitem(sys.modules, f"recallite_documents.{name}", raising=False)
        monkeypatch.setitem(sys.modules, library, None)
        failure = worker._answer(Request(kind, GOOD, LIMITS))
        assert failure.reason == "parser_missing"
        assert library in failure.message
        assert "pip install '.[documents]'" in failure.message
        monkeypatch.undo()


def test_a_missing_guesser_is_named(monkeypatch, parser):
    monkeypatch.setitem(sys.modules, "chardet", None)
    with raises(DocumentError, "parser_missing", match=r"pip install '\.\[documents\]'"):
        parser.load("Größe und Schönheit".encode("latin-1"), "a.txt")
    assert parser.load("Größe".encode(), "a.txt").text == "Größe"
