"""Folders: what is read, what is left out and why; nothing outside is opened, and no file is read while it changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recallite.errors import DocumentError, InvalidInput
from recallite.system import folders
from recallite_documents.ingesting import FoundFile, Walk, find_file, read_file
from tests.raising import raises

posix = pytest.mark.skipif(os.name != "posix", reason="such files are those of POSIX")


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "docs"
    for name in ("a.md", "b.txt", "sub/c.html", "sub/deep/d.pdf", "e.bin", "LICENSE", ".hidden.md", ".git/f.md",
                 "node_modules/g.md"):  # fmt: skip
        path = made / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "secret.md").write_text("outside")
    return made


def walked(folder, include=(), exclude=(), *, recursive=True):
    walk = Walk(folder, include, exclude, recursive=recursive)
    found = [os.path.relpath(file.source, folder) for file in walk]
    return found, {os.path.relpath(each.source, folder): each.reason for each in walk.skipped}


def test_documents_by_name_without_hidden_and_generated_ones(folder):
    found, skipped = walked(folder)
    assert found == ["a.md", "b.txt", "sub/c.html", "sub/deep/d.pdf"]
    assert set(skipped) == {"e.bin", "LICENSE", ".hidden.md", ".git", "node_modules"}
    assert skipped["e.bin"] == "no PDF, DOCX, HTML, Markdown or text by its name: name it in include to read it"
    assert skipped[".git"] == "hidden and generated files and folders are left out"


@pytest.mark.parametrize(
    ("include", "exclude", "found"),
    [
        (["*.md"], [], ["a.md"]),
        (["LICENSE", "*.bin"], [], ["LICENSE", "e.bin"]),
        (["sub/"], [], ["sub/c.html", "sub/deep/d.pdf"]),
        (["**/*.pdf"], [], ["sub/deep/d.pdf"]),
        ([], ["*.txt", "sub/deep/"], ["a.md", "sub/c.html"]),
        ([], ["/sub"], ["a.md", "b.txt"]),
        ("*.md", "b.txt", ["a.md"]),
    ],
)
def test_patterns_are_those_of_gitignore(folder, include, exclude, found):
    assert walked(folder, include, exclude)[0] == found


def test_without_recursion_and_what_is_no_pattern(folder):
    found, skipped = walked(folder, recursive=False)
    assert (found, skipped["sub"]) == (
        ["a.md", "b.txt"],
        "subfolders are left out, as requested (not recursive)",
    )
    with pytest.raises(InvalidInput, match=r"exclude .* has an invalid pattern"):
        walked(folder, exclude=[7])


@posix
def test_links_are_left_out_wherever_they_lead(folder, tmp_path):
    (folder / "inside.md").symlink_to(folder / "a.md")
    (folder / "outside.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    (folder / "sub" / "loop").symlink_to(folder / "sub")
    (folder / "again").symlink_to(folder / "sub")
    (folder / "dangling.md").symlink_to(folder / "nothing.md")
    links = {"inside.md", "outside.md", "up", "sub/loop", "again", "dangling.md"}
    found, skipped = walked(folder)
    assert not links & set(found)
    assert links <= set(skipped)
    assert all("symbolic link" in skipped[name] for name in links)


@posix
def test_a_file_that_becomes_a_link_after_it_was_found_is_not_followed(folder, tmp_path):
    (found,) = list(Walk(folder, ["a.md"], [], recursive=True))
    (folder / "a.md").unlink()
    (folder / "a.md").symlink_to(tmp_path / "secret.md")
    with raises(DocumentError, "unreadable", match="cannot be read"):
        read_file(found, 1000)
    (deep,) = list(Walk(folder, ["d.pdf"], [], recursive=True))
    (folder / "sub" / "deep").rename(tmp_path / "deep")
    (folder / "sub" / "deep").symlink_to(tmp_path / "deep")
    with raises(DocumentError, "unreadable", match="cannot be read"):
        read_file(deep, 1000)


@posix
def test_special_files_are_named_and_not_waited_for(folder):
    os.mkfifo(folder / "fifo.md")
    assert walked(folder)[1]["fifo.md"] == "it is a FIFO, not a file"
    with raises(DocumentError, "unreadable", match="it is a FIFO, not a file"):
        find_file(folder / "fifo.md", None)
    with raises(DocumentError, "unreadable", match="it is a FIFO, not a file"):
        read_file(FoundFile("x", folder, "fifo.md"), 1000)
    with raises(DocumentError, "unreadable", match="it is a device"):
        find_file(Path("/dev/null"), None)


@posix
def test_what_may_not_be_read_is_reported(folder, monkeypatch):
    def refuse(root, path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(folders, "open_file", refuse)
    with raises(DocumentError, "unreadable", match="it cannot be read: Permission denied"):
        read_file(FoundFile("x", folder, "a.md"), 1000)


def test_a_file_that_changes_while_it_is_read_is_read_again_or_not_at_all(folder, monkeypatch):
    path, read = folder / "a.md", os.read
    changes = iter([b"longer than it was", None])

    def meddling(descriptor, length):
        data = read(descriptor, length)
        if (change := next(changes, None)) is not None:
            path.write_bytes(change)
        return data

    monkeypatch.setattr(os, "read", meddling)
    assert read_file(FoundFile("x", folder, "a.md"), 1000)[0] == b"longer than it was"
    changes = (b"x" * length for length in range(100, 1000))
    with raises(DocumentError, "unreadable", match="it changes while it is read"):
        read_file(FoundFile("x", folder, "a.md"), 1000)


def test_a_file_that_grows_past_the_limit(folder):
    with raises(DocumentError, "too_large", match=r"it has 4 bytes; max_bytes is 3"):
        read_file(FoundFile("x", folder, "a.md"), 3)


@posix
def test_two_names_that_differ_in_case_are_both_read_and_reported(folder):
    (folder / "A.md").write_text("other")
    found = list(Walk(folder, ["*.md"], [], recursive=False))
    assert [file.inner for file in found] == ["A.md", "a.md"]
    assert found[1].warnings == ("its name and that of A.md differ only in case",)


@posix
def test_names_that_are_no_text_and_folders_that_are_nested_deeply(folder):
    with open(os.fsencode(folder) + b"/\xff.md", "w"):
        pass
    deep = folder
    for _ in range(70):
        deep = deep / "n"
    deep.mkdir(parents=True)
    _, skipped = walked(folder)
    assert skipped["\ufffd.md"] == "its name is not UTF-8: rename it"
    assert "it is nested deeper than 64 folders" in skipped.values()


def test_only_what_is_in_the_root(folder, tmp_path):
    for path in ("a.md", "sub/../a.md", str(folder / "a.md")):
        assert find_file(Path(path), folder).inner == "a.md"
    for path in ("../secret.md", "sub/../../secret.md", str(tmp_path / "secret.md"), "/etc/passwd"):
        with raises(DocumentError, "refused", match="it is not in"):
            find_file(Path(path), folder)


@posix
def test_no_link_in_the_root_is_followed(folder, tmp_path):
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "up").symlink_to(tmp_path)
    for path in ("link.md", "up/secret.md"):
        with raises(DocumentError, "refused", match="a symbolic link, which is not followed here"):
            find_file(Path(path), folder)


def test_a_walk_while_files_go_away(folder):
    """A folder that is emptied by another program is read as far as it is there."""
    walk = Walk(folder, [], [], recursive=True)
    found = iter(walk)
    first = next(found)
    for path in folder.rglob("*"):
        if path.is_file():
            path.unlink()
    assert list(found) == []
    assert {"it is not there"} <= {each.reason for each in walk.skipped}
    with raises(DocumentError, "unreadable", match="it is not there"):
        read_file(first, 1000)
