"""A server to ask, no environment that names another, and retries without pauses."""

from __future__ import annotations

import pytest
import stamina

from tests.endpoint import serving

NAMES = (
    "RECALLITE_LLM_BASE_URL", "RECALLITE_LLM_MODEL", "RECALLITE_LLM_API_KEY", "EMBEDDING_PROVIDER", "EMBEDDING_MODEL",
    "EMBEDDING_BASE_URL", "EMBEDDING_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "RECALLITE_EMBEDDER",
)  # fmt: skip


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with stamina.set_testing(True, attempts=3, cap=True):
        yield


@pytest.fixture
def server():
    with serving() as running:
        yield running
