"""URLs that try to reach what is not public."""

import pytest

from tests.attacks.attacks import ATTACKS


@pytest.fixture(autouse=True)
def _httpx2():
    pytest.importorskip("httpx2", reason="documents are fetched with httpx2")


def test_no_url_leads_to_an_address_that_is_not_public():
    outcome = ATTACKS["ssrf"](400, 1)
    assert not outcome.failures, outcome.examples
    assert outcome.figures["good_urls_arrived"] == 20


def test_the_attack_sees_a_leak(monkeypatch):
    from recallite_documents import fetching

    monkeypatch.setattr(fetching, "is_public", lambda address: True)
    monkeypatch.setattr(fetching, "is_metadata", lambda address: False)
    assert ATTACKS["ssrf"](50, 1).failures["leak"] > 5
