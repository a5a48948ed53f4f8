from __future__ import annotations

from benchmarks.training.vocabulary import render


def test_terms_are_in_lines_by_level() -> None:
    assert render({"the": 0.5, "rome": 2.0**-10, "a": 0.52, "oslo": 2.0**-10}) == "4 a the\n40 oslo rome\n"
    assert render({}) == ""
