"""The loggers of Recallite. What they say holds no text of a memory, query or document, no key and no token."""

from __future__ import annotations

import logging

# A library leaves it to the application what is shown.
logging.getLogger("recallite").addHandler(logging.NullHandler())


def logger(module: str) -> logging.Logger:
    """The logger of a module, below `recallite`: that of `recallite_server.warm` is `recallite.server.warm`."""
    return logging.getLogger(module.replace("recallite_", "recallite.", 1))
