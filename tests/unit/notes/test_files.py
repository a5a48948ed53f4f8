"""What is found and read: everything meant, nothing outside, each fault told for its file while the rest goes on."""

from __future__ import annotations

import errno
import os
import socket
import threading

import msgspec
import pytest

from recallite import Workspace
from recallite.errors import InvalidInput
from recallite.system import folders
from recallite_documents.front_matter import decode
from recallite_notes import indexing, note_files
from recallite_notes.note_files import FileProblem, Selection, Unreadable, problem_of, read_file
from recallite_notes.workspace import unread
from tests.limits import LAST_RESORT_SECONDS
from tests.unit.notes.support import config, counts, dump, index_all, write


@pytest.fixture(params=["descriptors", "paths"])
def folder(tmp_path, request, monkeypatch):
    """A workspace's folder, looked at in both ways: as here, and as where no folder can be held open."""
    if request.param == "paths":
        monkeypatch.setattr(folders, "_BY_DESCRIPTOR", False)
    made = tmp_path / "notes"
    made.mkdir()
    return made


def scan(folder, **fields):
    return Selection(config(workspace_dir=str(folder), **fields)).scan()


def problems(found):
    return {each.path: each.reason for each in found.problems}


def test_every_markdown_file_below_the_folder_is_found(folder):
    for path in ("MEMORY.md", "memory/a.md", "memory/deep/down/b.MD", "docs/c.markdown", "x.txt", "md", "d.md.bak"):
        write(folder, path, "text")
    assert list(scan(folder).files) == ["MEMORY.md", "docs/c.markdown", "memory/a.md", "memory/deep/down/b.MD"]


def test_hidden_folders_and_what_is_excluded_are_left_out(folder):
    for path in (".git/a.md", ".recallite/b.md", "node_modules/c.md", "x/node_modules/d.md", ".hidden.md",
                 "drafts/e.md", "drafts/keep.md", "x/f.tmp.md", "x/g.md", "h.md"):  # fmt: skip
        write(folder, path, "text")
    found = scan(folder, exclude=["drafts/*", "!drafts/keep.md", "*.tmp.md", "/h.md"])
    assert list(found.files) == ["drafts/keep.md", "x/g.md"]
    assert found.problems == []


def test_folders_of_other_peoples_files_are_left_out_unless_the_configuration_says_otherwise(folder):
    for path in ("venv/a.md", ".venv/b.md", "x/node_modules/c.md", "x/__pycache__/d.md", "site-packages/e.md",
                 "env/f.md", "env/lib/g.md", "vendor/h.md", "i.md"):  # fmt: skip
        write(folder, path, "text")
    write(folder, "env/pyvenv.cfg", "home = /usr/bin")
    write(folder, "pyvenv.cfg", "home = /usr/bin")  # the workspace itself is named
    assert list(scan(folder).files) == ["i.md", "vendor/h.md"]
    assert list(scan(folder, skip_folders=["vendor"]).files) == [
        "i.md", "site-packages/e.md", "venv/a.md", "x/__pycache__/d.md", "x/node_modules/c.md",
    ]  # fmt: skip
    everything = list(scan(folder, skip_folders=[]).files)
    assert len(everything) == 8
    assert ".venv/b.md" not in everything
    for path in ("venv/a.md", "x/node_modules/c.md"):
        with pytest.raises(Unreadable, match="skip_folders"):
            Selection(config(workspace_dir=str(folder))).find(path)


def test_extra_paths_are_read_because_they_are_named(folder, tmp_path):
    write(tmp_path, "shared/a.md", "text")
    write(tmp_path, "shared/deep/b.md", "text")
    write(tmp_path, "one.md", "text")
    write(tmp_path, "one.txt", "text")
    write(folder, ".github/c.md", "text")
    (tmp_path / "link").symlink_to(tmp_path / "shared")
    found = scan(
        folder, extra_paths=[str(tmp_path / "shared"), "../one.md", "../one.txt", ".github", "../gone", "../link", "."]
    )
    outside = tmp_path.as_posix()
    assert sorted(found.files) == sorted(
        [".github/c.md", f"{outside}/link/a.md", f"{outside}/link/deep/b.md", f"{outside}/one.md",
         f"{outside}/shared/a.md", f"{outside}/shared/deep/b.md"]
    )  # fmt: skip
    assert sorted(problems(found)) == [f"{outside}/gone", f"{outside}/one.txt"]
    assert "extra_paths names it" in problems(found)[f"{outside}/gone"]
    for file in found.files.values():
        assert read_file(file)[0] == b"text"


def test_symbolic_links_are_told_and_never_followed(folder, tmp_path):
    write(tmp_path, "secret/s.md", "secret")
    write(folder, "a.md", "text")
    (folder / "link.md").symlink_to(tmp_path / "secret/s.md")
    (folder / "inside.md").symlink_to(folder / "a.md")
    (folder / "folder").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("..")
    (folder / "nowhere.md").symlink_to("no such file")
    found = scan(folder)
    assert list(found.files) == ["a.md"]
    assert sorted(problems(found)) == ["folder", "inside.md", "link.md", "nowhere.md", "up"]
    assert all("symbolic link" in reason for reason in problems(found).values())


def test_the_folder_itself_may_be_a_link(folder, tmp_path):
    write(folder, "a.md", "text")
    (tmp_path / "by").symlink_to(folder)
    found = scan(tmp_path / "by")
    assert read_file(found.files["a.md"])[0] == b"text"


def test_a_folder_that_becomes_a_link_after_the_scan_is_not_followed(folder, tmp_path):
    write(folder, "memory/a.md", "text")
    write(tmp_path, "secret/a.md", "secret")
    found = scan(folder)
    (folder / "memory").rename(folder / "was")
    (folder / "memory").symlink_to(tmp_path / "secret")
    with pytest.raises(Unreadable, match=r"cannot be read|symbolic link"):
        read_file(found.files["memory/a.md"])


def test_a_file_that_becomes_a_link_or_a_fifo_after_the_scan_is_not_read(folder, tmp_path):
    write(folder, "a.md", "text")
    write(folder, "b.md", "text")
    write(tmp_path, "secret.md", "secret")
    found = scan(folder)
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to(tmp_path / "secret.md")
    (folder / "b.md").unlink()
    os.mkfifo(folder / "b.md")
    for name in ("a.md", "b.md"):
        with pytest.raises(Unreadable):
            read_file(found.files[name])


def test_what_is_no_file_is_told(folder):
    write(folder, "a.md", "text")
    os.mkfifo(folder / "fifo.md")
    (folder / "folder.md").mkdir()
    write(folder, "folder.md/inside.md", "text")
    bound = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    try:
        os.chdir(folder)  # the path of a socket is short
        bound.bind("socket.md")
    finally:
        os.chdir(before)
        bound.close()
    found = scan(folder)
    assert list(found.files) == ["a.md", "folder.md/inside.md"]
    assert problems(found) == {"fifo.md": "it is a FIFO, no file", "socket.md": "it is a socket, no file"}


def test_names_that_cannot_be_stored_are_told_and_the_rest_goes_on(folder):
    write(folder, "a.md", "text")
    (folder / os.fsdecode(b"b\xff.md")).write_text("text")
    (folder / os.fsdecode(b"dir\xfe")).mkdir()
    (folder / os.fsdecode(b"dir\xfe") / "c.md").write_text("text")
    write(folder, "line\nbreak.md", "text")
    deep = "/".join("n" * 100 for _ in range(6)) + "/a.md"
    write(folder, deep, "text")
    result = index_all(folder)
    assert counts(result)[:2] == (3, 1)
    said = {each.path: each.reason for each in result.problems}
    assert said["b�.md"] == said["dir�/c.md"] == "its name is not UTF-8: rename it"
    assert "control character" in said["line\nbreak.md"]
    assert "512" in said[deep]
    assert counts(index_all(folder))[:2] == (3, 0)


def test_deep_nesting_ends_and_is_told(folder):
    deep = folder.joinpath(*["d"] * 70)
    deep.mkdir(parents=True)
    (deep / "a.md").write_text("text")
    write(folder, "d/b.md", "text")
    found = scan(folder)
    assert list(found.files) == ["d/b.md"]
    assert [each.reason for each in found.problems] == ["it is nested deeper than 64 folders: left out"]


def test_two_names_that_differ_only_in_case_are_both_indexed_and_told(folder):
    write(folder, "Note.md", "One thing.")
    write(folder, "note.md", "Another thing.")
    if len(os.listdir(folder)) == 1:
        pytest.skip("they are one file here")
    result = index_all(folder)
    assert result.files_indexed == 2
    ((path, indexed),) = [(each.path, each.indexed) for each in result.problems]
    assert (path, indexed) == ("note.md", True)


def test_a_large_file_is_told_and_a_sparse_gigabyte_is_not_read(folder):
    write(folder, "a.md", "text")
    with (folder / "huge.md").open("wb") as huge:
        huge.truncate(1 << 30)
    result = index_all(folder)
    assert counts(result)[:2] == (1, 1)
    ((path, reason),) = [(each.path, each.reason) for each in result.problems]
    assert path == "huge.md"
    assert reason == "it has 1,073,741,824 bytes and WorkspaceConfig.max_file_bytes is 10,000,000"


def test_a_file_that_grows_too_large_leaves_the_index(folder):
    write(folder, "a.md", "text")
    index_all(folder, max_file_bytes=10)
    write(folder, "a.md", "a longer text")
    assert counts(index_all(folder, max_file_bytes=10)) == (0, 0, 1, 0)


def test_a_very_long_line_is_cut_and_stays_within_the_size(folder, tmp_path):
    """memweave's chunks of long lines are of any length."""
    write(folder, "long.md", "word " * 100_000)
    write(folder, "wide.md", "x" * 200_000)
    write(folder, "cjk.md", "記憶は流れる川のようだ" * 5_000)
    with Workspace(folder, config(), embedder="none") as workspace:
        workspace.index()
        from recallite.embedding.tokens import measure_of

        texts = [row[2] for row in dump(workspace)["chunks"]]
        assert len(texts) > 300
        assert max(len(starts) for starts in measure_of("none")(texts)) <= 400


def test_an_unreadable_file_keeps_what_is_indexed_and_the_rest_goes_on(folder, monkeypatch):
    write(folder, "a.md", "One thing.")
    write(folder, "b.md", "Another thing.")
    index_all(folder)
    write(folder, "a.md", "Changed now.")
    write(folder, "b.md", "Changed as well.")
    opened = os.open

    def refuse(path, *arguments, **options):
        if str(path).endswith("a.md"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    result = index_all(folder)
    assert counts(result) == (2, 1, 0, 0)
    assert [(each.path, each.reason) for each in result.problems] == [("a.md", "it cannot be read: Permission denied")]
    with Workspace(folder, config(), embedder="none") as workspace:
        assert [row[2] for row in dump(workspace)["chunks"]] == ["One thing.", "Changed as well."]


def test_a_folder_that_cannot_be_listed_keeps_what_is_indexed(folder, monkeypatch):
    write(folder, "memory/a.md", "One thing.")
    write(folder, "b.md", "Another thing.")
    index_all(folder)
    for kind in (folders.Folder, folders._FolderByPath):

        def refuse(self, name, kind=kind):
            raise PermissionError(errno.EACCES, "Permission denied", name)

        monkeypatch.setattr(kind, "enter", refuse)
    result = index_all(folder)
    assert counts(result) == (1, 0, 0, 0)
    assert [each.path for each in result.problems] == ["memory"]
    with Workspace(folder, embedder="none") as workspace:
        found = workspace.search("thing", min_score=0.0)
        assert {each.path for each in found} == {"b.md", "memory/a.md"}
        assert found.problems == ("memory: it cannot be read: Permission denied",)
        monkeypatch.undo()
        assert workspace.search("thing", min_score=0.0).problems == ()


def test_what_is_left_out_for_good_is_no_problem_of_a_search(folder):
    write(folder, "a.md", "One thing.")
    (folder / "link.md").symlink_to(folder / "a.md")
    with Workspace(folder, embedder="none") as workspace:
        assert workspace.search("thing", min_score=0.0).problems == ()
        assert [each.path for each in workspace.status().problems] == ["link.md"]


def test_many_unread_files_are_counted_in_a_search():
    problems = [problem_of(f"{each}.md", "no", unread=True) for each in range(12)] + [problem_of("x.md", "never")]
    assert unread(problems) == (*(f"{each}.md: no" for each in range(5)), "and 7 more: status() names them")


def test_a_file_that_changes_while_it_is_read_is_read_again(folder, monkeypatch):
    file = write(folder, "a.md", "one " * 1000)
    found = scan(folder).files["a.md"]
    times = []
    opened = os.read

    def read(descriptor, size):
        data = opened(descriptor, size)
        if len(times) < 2:
            times.append(1)
            file.write_text(f"changed {len(times)} " * 500)
        return data

    monkeypatch.setattr(note_files.os, "read", read)
    assert read_file(found)[0] == b"changed 2 " * 500


def test_a_file_that_changes_all_the_time_is_told(folder, monkeypatch):
    file = write(folder, "a.md", "one")
    write(folder, "b.md", "two")
    opened = os.read
    grown = []

    def read(descriptor, size):
        data = opened(descriptor, size)
        if data.startswith(b"one"):
            grown.append(1)
            file.write_text("one" * (len(grown) + 1))
        return data

    monkeypatch.setattr(note_files.os, "read", read)
    result = index_all(folder)
    assert result.files_indexed == 1
    assert [each.path for each in result.problems] == ["a.md"]
    assert "changes while it is read" in result.problems[0].reason


@pytest.mark.parametrize(
    ("data", "text", "problem"),
    [
        (b"plain", "plain", None),
        (b"", "", None),
        ("Füße".encode(), "Füße", None),
        (b"\xef\xbb\xbfmark", "mark", None),
        ("Füße".encode("utf-16"), "Füße", None),
        ("Füße".encode("utf-16-be").join([b"\xfe\xff", b""]), "Füße", None),
        (b"a\r\nb\r\n", "a\r\nb\r\n", None),
        (b"caf\xe9 au lait", "caf� au lait", "byte 3 is not UTF-8"),
        (b"\xff\xfea", "�", "byte 2 is not UTF-16"),
        (b"a\x00b", "a�b", "character 1 is NUL"),
        (b"\xed\xa0\x80", "���", "byte 0 is not UTF-8"),
    ],
)
def test_bytes_become_text(data, text, problem):
    found, said = decode(data)
    assert found == text
    assert said is None if problem is None else said.startswith(problem)


def test_invalid_utf8_is_indexed_all_the_same_and_told(folder):
    write(folder, "latin.md", b"# Caf\xe9\n\nau lait\n")
    write(folder, "nul.md", b"a\x00b")
    with Workspace(folder, config(), embedder="none") as workspace:
        result = workspace.index()
        assert result.files_indexed == 2
        assert [(each.path, each.indexed) for each in result.problems] == [("latin.md", True), ("nul.md", True)]
        workspace.index()
        # It stays so, and status goes on saying so.
        assert [each.path for each in workspace.status().problems] == ["latin.md", "nul.md"]


def test_line_ends_and_a_byte_order_mark_change_no_lines(folder):
    write(folder, "unix.md", "# One\n\ntext\n\n# Two\n\nmore\n")
    write(folder, "windows.md", b"\xef\xbb\xbf# One\r\n\r\ntext\r\n\r\n# Two\r\n\r\nmore\r\n")
    with Workspace(folder, config(), embedder="none") as workspace:
        workspace.index()
        chunks = dump(workspace)["chunks"]
    by_file = [[(row[3], row[4]["lines"]) for row in chunks if row[0] == name] for name in ("unix.md", "windows.md")]
    assert by_file[0] == by_file[1] == [("One", [1, 3]), ("Two", [5, 7])]


def test_add_stays_in_the_folder(folder, tmp_path, monkeypatch):
    """memweave's add follows `..` and symbolic links out of the workspace."""
    write(tmp_path, "secret.md", "secret")
    write(tmp_path, "notes2/a.md", "secret")
    write(folder, "a.md", "text")
    write(folder, ".hidden/b.md", "text")
    write(folder, "c.txt", "text")
    write(folder, "drafts/d.md", "text")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "fifo.md")
    with Workspace(folder, config(exclude=["drafts/"]), embedder="none") as workspace:
        for path in ("../secret.md", tmp_path / "secret.md", "memory/../../secret.md", tmp_path / "notes2/a.md",
                     "link.md", "up/secret.md", "up/notes2/a.md", "fifo.md", "gone.md", ".hidden/b.md", "c.txt",
                     "drafts/d.md", "", ".", folder, "a\x00.md", "/etc/passwd"):  # fmt: skip
            with pytest.raises(InvalidInput):
                workspace.add(path)
        assert workspace.files() == []
        for path in ("a.md", folder / "a.md", "memory/../a.md"):
            workspace.add(path)
        monkeypatch.chdir(folder.parent)
        workspace.add("notes/a.md")
        assert [each.path for each in workspace.files()] == ["a.md"]


def test_a_folder_that_is_gone_keeps_its_index(folder, tmp_path):
    write(folder, "a.md", "text")
    with Workspace(folder, config(db_path=str(tmp_path / "i.db")), embedder="none") as workspace:
        workspace.index()
        folder.rename(tmp_path / "away")
        with pytest.raises(InvalidInput, match="cannot be read"):
            workspace.index()
        (tmp_path / "away").rename(folder)
        assert counts(workspace.index()) == (1, 0, 0, 0)


def test_a_pattern_that_is_none_is_refused(folder):
    with pytest.raises(InvalidInput, match="exclude"):
        Workspace(folder, config(exclude=["!"]), embedder="none")


def test_a_fifo_that_appears_between_scan_and_read_holds_nothing_up(folder):
    write(folder, "a.md", "text")
    found = scan(folder).files["a.md"]
    (folder / "a.md").unlink()
    os.mkfifo(folder / "a.md")
    done = threading.Event()

    def read():
        with pytest.raises(Unreadable):
            read_file(found)
        done.set()

    threading.Thread(target=read, daemon=True).start()
    assert done.wait(LAST_RESORT_SECONDS)


@pytest.mark.parametrize("year", [-2000, 1500, 1969, 2263, 2300, 9999])
def test_a_file_of_any_time_is_indexed_and_found(folder, year):
    """A time after 2262 is more nanoseconds than the store has numbers for."""
    write(folder, "a.md", "A text.")
    seconds = round((year - 1970) * 365.2425 * 86_400)
    os.utime(write(folder, "odd.md", "A zebra."), ns=(0, seconds * 10**9))
    with Workspace(folder, config(), embedder="none") as workspace:
        assert workspace.index().files_indexed == 2
        assert workspace.index().files_indexed == 0
        assert workspace.search("zebra", min_score=0.0, decay_half_life_days=30)[0].path == "odd.md"
        assert not workspace.status().dirty
        assert len(workspace.files()) == 2


def test_add_refuses_what_no_file_can_be_called(folder):
    with Workspace(folder, config(), embedder="none") as workspace, pytest.raises(InvalidInput, match="called"):
        workspace.add("\ud800.md")


def test_add_refuses_what_index_would_leave_out_as_nested_too_deep(folder):
    deep = "/".join(["d"] * 65)
    write(folder, f"{deep}/a.md", "Too deep.")
    write(folder, f"{deep[2:]}/b.md", "Just so deep.")
    with Workspace(folder, config(), embedder="none") as workspace:
        with pytest.raises(InvalidInput, match="64 folders"):
            workspace.add(f"{deep}/a.md")
        workspace.add(f"{deep[2:]}/b.md")
        assert (workspace.index().files_deleted, len(workspace.files())) == (0, 1)


def test_whatever_one_file_makes_a_parser_do_the_rest_goes_on(folder, monkeypatch):
    write(folder, "a.md", "The zebra one.")
    write(folder, "b.md", "The bad one.")
    write(folder, "c.md", "The zebra two.")
    sound = indexing.chunk_markdown

    def parse(text, *arguments, **options):
        if "bad" in text:
            raise AttributeError("no group")
        return sound(text, *arguments, **options)

    monkeypatch.setattr("recallite_notes.indexing.chunk_markdown", parse)
    with Workspace(folder, config(), embedder="none") as workspace:
        result = workspace.index()
        assert result.problems == (FileProblem("b.md", "it cannot be parsed: AttributeError: no group"),)
        assert {each.path for each in workspace.search("zebra", min_score=0.0)} == {"a.md", "c.md"}
        assert workspace.status().problems == result.problems
        with pytest.raises(InvalidInput, match=r"b\.md: it cannot be parsed: AttributeError"):
            workspace.add("b.md")


@pytest.mark.parametrize(
    "head",
    [
        "---\ntitle: " + "long " * 10_000 + "\n---\n",
        '---\ntitle: "a\\0b"\nnote: "c\\0d"\n---\n',
        "# " + "long " * 10_000 + "\n\n",
        "# a\n" + "## " + "x" * 300_000 + "\n### y\n",
    ],
)
def test_no_title_or_heading_leaves_a_file_out(folder, head):
    write(folder, "odd.md", head + "\nA zebra.\n")
    with Workspace(folder, config(), embedder="none") as workspace:
        assert workspace.index().problems == ()
        assert [each.path for each in workspace.search("zebra", min_score=0.0)][:1] == ["odd.md"]


def test_front_matter_is_not_multiplied_by_chunks(folder):
    """60 KB of front matter and 1,500 headings made an index of 93 MB."""
    head = "".join(f"key{each}: {'v' * 50}\n" for each in range(1000))
    write(folder, "big.md", f"---\nowner: Ann\n{head}---\n" + "# h\n\nx\n\n" * 1500)
    with Workspace(folder, config(), embedder="none") as workspace:
        workspace.index()
        with workspace._index.engine().store.read() as reader:
            held = reader.connection.execute("SELECT metadata, length(metadata) FROM record ORDER BY length(metadata)")
            most = held.fetchall()[-1]
        assert most[1] < 5_000
        assert msgspec.json.decode(most[0])["owner"] == "Ann"
