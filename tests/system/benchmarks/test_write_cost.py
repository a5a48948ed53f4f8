"""The cost of detection, on a store of sixty lines."""

from __future__ import annotations

import pytest

from benchmarks import write_cost


def test_every_case_is_timed_with_and_without_detection_and_shown(tmp_path):
    run = write_cost.measure(None, records=60, real=8, writes=2, cache=None, folder=tmp_path)
    assert list(run["cases"]) == ["new", "changed", "the same state again", "new, from text"]
    assert all(list(found) == list(write_cost.POLICIES) for found in [*run["cases"].values(), run["many"]])
    text = write_cost.markdown(run)
    assert all(f"| {name} |" in text for name in run["cases"])


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("The bus leaves at 8 from gate 12.", "The bus leaves at 8 from gate 13."),
        ("The bus leaves late.", "The bus leaves elsewhere."),
    ],
)
def test_a_changed_line_has_another_last_number_or_word(line, other):
    assert write_cost.changed(line) == other
