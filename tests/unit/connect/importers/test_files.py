"""The files below a folder, and the lines of one."""

from __future__ import annotations

from recallite_connect.importers.reading import lines_of


def test_lines_have_their_numbers_and_blank_ones_are_left_out(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\n  \ntwo")
    assert list(lines_of(path)) == [(1, b"one"), (4, b"two")]


def test_of_a_huge_line_the_beginning_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("recallite_connect.importers.reading.MAX_LINE_BYTES", 8)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"a" * 8 + b"\n" + b"b" * 8_000 + b"\nshort\n12345678")
    assert list(lines_of(path)) == [(1, b"a" * 8), (2, b"b" * 8), (3, b"short"), (4, b"12345678")]
