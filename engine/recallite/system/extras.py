"""The command that installs an extra."""

from __future__ import annotations


def install_command(extra: str) -> str:
    """The command that installs an extra from a checkout: Recallite is not published yet."""
    return f"pip install '.[{extra}]' in a checkout of Recallite"
