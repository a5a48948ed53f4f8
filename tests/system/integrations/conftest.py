"""What the tests of integrations share."""

from __future__ import annotations

import socket

import pytest


@pytest.fixture
def offline(monkeypatch):
    """A connection to another machine fails the test, whoever opens it."""
    connect = socket.socket.connect

    def refused(self, address):
        assert self.family not in (socket.AF_INET, socket.AF_INET6) or address[0] in ("127.0.0.1", "::1"), address
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refused)
