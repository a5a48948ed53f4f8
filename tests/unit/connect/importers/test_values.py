"""Values of other systems as fields of a memory."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recallite_connect.importers.reading import cleaned, label_of, scope_of, tags_of, time_of

NOON = datetime(2026, 3, 21, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-03-21T12:30:00Z", "2026-03-21T14:30:00+02:00", "2026-03-21 12:30:00", NOON.timestamp(), "1774096200",
        NOON.timestamp() * 1000, int(NOON.timestamp() * 1_000_000), str(int(NOON.timestamp()) * 1_000_000_000), NOON,
        NOON.replace(tzinfo=None),
    ],
)  # fmt: skip
def test_a_moment_is_understood_however_it_is_written(value):
    assert time_of(value) == NOON


@pytest.mark.parametrize(
    "value", [None, "", "yesterday", True, float("nan"), [], "99999-01-01", "0001-01-01T00:00+23:00"]
)
def test_what_is_no_moment_is_none(value):
    assert time_of(value) is None


def test_a_date_is_its_first_moment():
    assert time_of("2026-03-21") == datetime(2026, 3, 21, tzinfo=UTC)


def test_names_become_scopes_of_plain_segments():
    assert scope_of("ada/../x", " ", None, "..", 7) == "/ada-..-x/-/7"
    assert scope_of() == "/"


def test_labels_and_tags_are_single_lines():
    assert label_of(" a\nb\x00 ") == "a b\ufffd"
    assert label_of(" ") is None
    assert label_of({"a": 1}) is None
    assert tags_of("#a, b  a") == ("a", "b")
    assert tags_of(["two words", 7, None, "#x"]) == ("two words", "7", "x")
    assert tags_of(7) == ()


def test_what_is_no_character_is_replaced():
    assert cleaned("a\ud800\x00b") == "a\ufffd\ufffdb"
