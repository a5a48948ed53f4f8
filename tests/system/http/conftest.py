from __future__ import annotations

import pytest

from tests.limits import LAST_RESORT_SECONDS

# What a server is made of is imported by the tests that have found it installed.


@pytest.fixture
def url(on_disk):
    """The address of a server of a store without an embedder."""
    from tests.system.http.serving import serving

    with serving(on_disk) as address:
        yield address


@pytest.fixture
def http(url):
    """What asks it."""
    import httpx2

    with httpx2.Client(base_url=url, trust_env=False, verify=False, timeout=LAST_RESORT_SECONDS) as client:
        yield client


@pytest.fixture
def client(url):
    from recallite_server.client import Client

    with Client(url) as opened:
        yield opened
