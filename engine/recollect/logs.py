"""The loggers of Recollect. What they say holds no text of a memory, query or document, no key and no token."""

from __future__ import annotations

import logging

# A library leaves it to the application what is shown.
logging.getLogger("recollect").addHandler(logging.NullHandler())


def logger(module: str) -> logging.Logger:
    """The logger of a module, below `recollect`."""
    return logging.getLogger(module)
