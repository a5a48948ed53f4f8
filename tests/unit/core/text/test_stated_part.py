"""What a turn states, apart from what it asks, wants done or tells of how it went."""

from __future__ import annotations

import pytest

from recallite.text.statements.keys import stated_part


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("minimum is 3.12 now", "minimum is 3.12 now"),
        ("Why does it fail? The port is 8081 now. Restart it.", "The port is 8081 now."),
        ("The staging server moved to Frankfurt. Rename the table. Our line length is 100",
         "The staging server moved to Frankfurt. … Our line length is 100"),
        ("We decided to store sessions in Redis instead of Postgres.",
         "We decided to store sessions in Redis instead of Postgres."),
        ("Python 3.10 support is dropped", "Python 3.10 support is dropped"),
        ("Fix the flaky test in test_queue.py", ""),
        ("Which Python do we support?", ""),
        ("It still fails with a KeyError", ""),
        ("I'm getting an error when running make", ""),
        ("Maybe we could use Redis", ""),
        ("looks good", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_sentences_that_say_what_is_so(text, stated):
    assert stated_part(text, "user") == stated
