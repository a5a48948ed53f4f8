from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the extra server is not installed")
pytest.importorskip("prometheus_client", reason="the extra server is not installed")

import httpx2

from recollect.client import Client
from tests.server.serving import serving


@pytest.fixture
def url(on_disk):
    """The address of a server of a store without an embedder."""
    with serving(on_disk) as address:
        yield address


@pytest.fixture
def http(url):
    """What asks it."""
    with httpx2.Client(base_url=url, verify=False, trust_env=False) as client:
        yield client


@pytest.fixture
def client(url):
    with Client(url) as opened:
        yield opened
