"""Memories to test on. `memory` takes given vectors; `embedded` is the bundled model, one session for all tests."""

from __future__ import annotations

import pytest

from recollect import Memory, Settings

PLAIN = Settings(embedder="none")


@pytest.fixture
def path(tmp_path):
    """A file that does not exist yet."""
    return str(tmp_path / "agent.db")


@pytest.fixture
def memory():
    """In RAM, without an embedder."""
    with Memory(":memory:", settings=PLAIN) as opened:
        yield opened


@pytest.fixture
def on_disk(path):
    """In a file, without an embedder."""
    with Memory(path, settings=PLAIN) as opened:
        yield opened


@pytest.fixture
def embedded():
    """In RAM, with the bundled model."""
    with Memory(":memory:") as opened:
        yield opened
