"""Folders that cannot be read, also by root."""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager

import pytest


@pytest.fixture
def refusing_folder(monkeypatch):
    """A context in which one folder cannot be read."""
    real = os.scandir

    @contextmanager
    def refusing(folder):
        def scandir(path="."):
            if os.path.samestat(os.stat(path), os.stat(folder)):
                raise PermissionError(errno.EACCES, "Permission denied", os.fspath(folder))
            return real(path)

        with monkeypatch.context() as patched:
            patched.setattr(os, "scandir", scandir)
            yield

    return refusing
