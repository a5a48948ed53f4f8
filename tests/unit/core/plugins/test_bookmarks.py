"""The importer of `examples/plugin`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from recallite_connect.importers import import_from

SOURCES = Path(__file__).resolve().parents[4] / "examples" / "plugin" / "src"


@pytest.fixture
def take(install, memory, tmp_path, monkeypatch):
    """Import a file of bookmarks and return the report."""
    monkeypatch.syspath_prepend(SOURCES)
    install("recallite-example", "importers", "bookmarks", "recallite_example.bookmarks:SOURCE")

    def taken(html):
        path = tmp_path / "bookmarks.html"
        path.write_text(html)
        return import_from(memory, "bookmarks", path)

    return taken


def test_words_of_a_title_stay_apart(take, memory):
    take('<A HREF="https://a.b" ADD_DATE="1700000000">Write-ahead <b>logging</b>\n  in SQLite &amp; more</A>')
    (stored,) = memory.list()
    assert stored.text == "Write-ahead logging in SQLite & more"
    assert stored.created_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)


def test_a_title_at_the_end_of_a_file_that_was_cut_off_is_kept(take, memory):
    take('<A HREF="https://a.b">Letters of AT&T')
    assert [each.text for each in memory.list()] == ["Letters of AT&T"]


@pytest.mark.parametrize("date", ["99999999999999999999", "999999999999", "9" * 5000, "²", "soon"])
def test_a_date_that_is_none_is_reported_with_its_line(take, memory, date):
    done = take(f'<A HREF="https://a.b">One</A>\n<A HREF="https://c.d" ADD_DATE="{date}">Two</A>')
    ((path, line, reason),) = [(each.path, each.line, each.reason) for each in done.troubles]
    assert (path, line) == ("bookmarks.html", 2)
    assert reason == f"ADD_DATE is {date[:20]!r}: no time in seconds"
    assert [each.text for each in memory.list()] == ["One"]


def test_an_address_that_is_there_twice_is_one_memory_that_does_not_change(take, memory):
    html = '<A HREF="https://a.b">One</A><A HREF="https://a.b">Another</A>'
    for created in (1, 0):
        done = take(html)
        assert (done.created, done.updated, sum(done.left_out.values())) == (created, 0, 1)
    assert [each.text for each in memory.list()] == ["One"]


def test_a_folder_is_reported(install, memory, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(SOURCES)
    install("recallite-example", "importers", "bookmarks", "recallite_example.bookmarks:SOURCE")
    assert "cannot be read" in import_from(memory, "bookmarks", tmp_path).troubles[0].reason
