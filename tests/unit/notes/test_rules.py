"""What a file's place and name say, as memweave's code has it."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from recallite_notes.note_files import age_days, dated, is_evergreen, source_label, written_at

DAY_NS = 86_400 * 10**9
NOON = int(datetime(2026, 3, 22, 12, tzinfo=UTC).timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("path", "label"),
    [
        ("memory/notes.md", "memory"),
        ("memory/2026-03-21.md", "memory"),
        ("memory/sessions/2026-04-03.md", "sessions"),
        ("memory/researcher_agent/findings.md", "researcher_agent"),
        ("memory/researcher_agent/sub/x.md", "researcher_agent"),
        ("MEMORY.md", "external"),
        ("memory", "external"),
        ("docs/memory/notes.md", "external"),
        ("memory2/notes.md", "external"),
        ("/elsewhere/memory/notes.md", "external"),
    ],
)
def test_source_labels(path, label):
    assert source_label(path) == label


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("MEMORY.md", "evergreen"),
        ("memory.md", "evergreen"),
        ("memory/MEMORY.md", "evergreen"),
        ("memory/architecture.md", "evergreen"),
        ("memory/agents/notes.md", "evergreen"),
        ("memory/sessions/deep/down/notes.md", "evergreen"),
        ("memory/2026-03-21.md", "name"),
        ("memory/sessions/2026-03-21.md", "name"),
        ("memory/a/b/c/2026-03-21.md", "name"),
        ("2026-03-21.md", "name"),
        ("memory/2026-03-21-notes.md", "evergreen"),
        ("memory/12026-03-21.md", "evergreen"),
        ("memory/2026-02-30.md", "mtime"),
        ("sessions/foo.md", "mtime"),
        ("README.md", "mtime"),
        ("/elsewhere/notes.md", "mtime"),
        ("/elsewhere/memory/notes.md", "mtime"),
    ],
)
def test_evergreen_and_dated_rules(path, source):
    assert is_evergreen(path) is (source == "evergreen")
    assert (age_days(path, None) is not None) is (source == "name")
    assert (age_days(path, 0) is not None) is (source != "evergreen")


def test_patterns_name_what_never_ages():
    patterns = ("README.md", "docs/*.md")
    assert is_evergreen("a/README.md", patterns)
    assert is_evergreen("docs/plan.md", patterns)
    assert not is_evergreen("plan.md", patterns)
    assert not is_evergreen("readme.md", patterns)
    assert is_evergreen("memory/2026-03-21.md", ("2026-*",))


def test_a_day_in_a_name():
    assert dated("memory/2026-03-21.md") == date(2026, 3, 21)
    assert dated("memory/2026-02-30.md") is None
    assert dated("memory/٢٠٢٦-03-21.md") is None


def test_a_dated_file_ages_by_whole_days_of_its_time_zone_whatever_its_mtime():
    for mtime in (0, NOON * 1000):
        assert age_days("memory/2026-03-21.md", mtime, now=NOON) == 1.0
        assert age_days("memory/2026-03-22.md", mtime, now=NOON) == 0.0
        assert age_days("memory/2026-03-25.md", mtime, now=NOON) == 0.0
        assert age_days("memory/2026-03-22.md", mtime, now=NOON, timezone="Pacific/Kiritimati") == 1.0


def test_other_files_age_from_their_last_change_and_evergreen_ones_never():
    assert age_days("sessions/foo.md", NOON * 1000 - 3 * DAY_NS // 2, now=NOON) == 1.5
    assert age_days("sessions/foo.md", NOON * 1000 + DAY_NS, now=NOON) == 0.0
    assert age_days("memory/notes.md", 0, now=NOON) is None
    assert age_days("notes.md", 0, now=NOON, patterns=("notes.md",)) is None


def test_when_a_file_was_written():
    assert written_at("memory/2026-03-21.md", 5) == datetime(2026, 3, 21, tzinfo=UTC).timestamp() * 1_000_000
    assert written_at("memory/2026-03-21.md", 5, "Asia/Tokyo") == (
        datetime(2026, 3, 20, 15, tzinfo=UTC).timestamp() * 1_000_000
    )
    assert written_at("memory/notes.md", 1_234_567) == 1_234
    assert written_at("0001-01-01.md", 5, "Asia/Tokyo") < 0
    assert written_at("9999-12-31.md", 5, "America/New_York") > 0
