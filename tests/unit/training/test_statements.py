"""What is judged to be replaced is, on the pairs of the repository."""

from __future__ import annotations

import pytest

from benchmarks.training.statements import FILES, figures, pairs

# The least share of replacements that are found. The pairs of `changes` are of talk: most name the topic otherwise.
RECALL = {"statements": 0.5, "changes": 0.14}


@pytest.mark.parametrize("name", FILES)
def test_nearly_all_that_is_superseded_was_replaced(name: str) -> None:
    found = figures(pairs(name))
    assert found["supersedes"]["precision"] >= 0.98
    assert found["certain"]["precision"] >= 0.98
    assert found["supersedes"]["recall"] >= RECALL[name]
