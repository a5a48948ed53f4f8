"""Memories to test on. `memory` takes given vectors; `embedded` is the bundled model, one session for all tests."""

from __future__ import annotations

import os

import pytest

from recollect import Memory, Settings

PLAIN = Settings(embedder="none")
# No kernel runs in what these test: the run with Python kernels passes them over.
_WITHOUT_KERNELS = (
    "benchmarks", "llm", "text", "knowledge/test_fetching.py", "knowledge/test_files.py", "knowledge/test_formats.py",
    "knowledge/test_parser.py", "knowledge/test_pdf.py",
)  # fmt: skip
collect_ignore = list(_WITHOUT_KERNELS) if os.environ.get("RECOLLECT_KERNELS") == "python" else []


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
