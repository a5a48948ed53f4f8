"""The services on each tier of set-up: keyword only, and with the bundled model."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings


@pytest.fixture(params=["none", "default"], ids=["standard", "enhanced"])
def either(request):
    """In RAM, keyword only or with the bundled model."""
    with Memory(":memory:", settings=Settings(embedder=request.param)) as opened:
        yield opened
