"""Logs of the library, on standard error: all of it with RECALLITE_DEBUG=1, and what a server has to say."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_FORMAT = "%(levelname)s %(name)s: %(message)s"


@contextmanager
def debug_log() -> Iterator[None]:
    """With RECALLITE_DEBUG=1, everything that Recallite logs is shown."""
    if os.environ.get("RECALLITE_DEBUG") != "1":
        yield
        return
    shown, log = logging.StreamHandler(sys.stderr), logging.getLogger("recallite")
    shown.setFormatter(logging.Formatter(_FORMAT))
    level, propagate = log.level, log.propagate
    log.addHandler(shown)
    log.setLevel(logging.DEBUG)
    log.propagate = False  # else a server would show it again, with what other libraries log
    try:
        yield
    finally:
        log.removeHandler(shown)
        log.setLevel(level)
        log.propagate = propagate


def server_log() -> None:
    """Show the warnings of Recallite and the errors of all libraries: standard output may belong to a protocol."""
    debug = os.environ.get("RECALLITE_DEBUG") == "1"
    logging.basicConfig(level=logging.INFO if debug else logging.ERROR, stream=sys.stderr, format=_FORMAT)
    if not debug:
        logging.getLogger("recallite").setLevel(logging.WARNING)
