"""A browser for tests of the page, and what it must not do: run what is stored, ask other hosts, report faults."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

# A last resort; nothing here takes seconds on a machine that is not busy.
_WAIT_MS = 120_000
sync_api.expect.set_options(timeout=_WAIT_MS)

_NAMES = ("chromium", "chromium-browser", "google-chrome")
# Each violation of the policy becomes an error on the console with this start.
_REPORT = "addEventListener('securitypolicyviolation', e => console.error('CSP', e.violatedDirective, e.blockedURI))"
# Chromium says so of every answer that is an error, also of one that the page shows, and of a server that is gone.
_REFUSED = (
    "Failed to load resource: the server responded with a status of",
    "Failed to load resource: net::ERR_FAILED",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A Chromium of the system, or playwright's own; skips where there is none."""
    with sync_api.sync_playwright() as playwright:
        found = next(filter(None, map(shutil.which, _NAMES)), None)
        if found is None and not os.path.exists(playwright.chromium.executable_path):
            pytest.skip("no Chromium is installed")
        root = hasattr(os, "geteuid") and os.geteuid() == 0
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"] if root else [])
        yield browser
        browser.close()


class Tab:
    """A tab, and all that it reported."""

    def __init__(self, context: Any, address: str) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(_WAIT_MS)
        self.address = address
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.page.add_init_script(_REPORT)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda fault: self.faults.append(str(fault)))
        self.page.on("dialog", self._asked)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
            self.faults.append(message.text)

    def _asked(self, dialog: Any) -> None:
        self.faults.append(f"a dialog said {dialog.message}")
        dialog.dismiss()

    @property
    def foreign(self) -> list[str]:
        """Requests to other hosts."""
        return [url for url in self.requests if urlsplit(url).netloc != urlsplit(self.address).netloc]
