"""The folder where a user's own data lies, and whose a folder is."""

from __future__ import annotations

import os
import sys


def user_folder() -> str:
    """The path of the user's data folder for Recallite; nothing is created."""
    if sys.platform == "linux":  # as platformdirs has it, whose import takes 10 ms
        data = os.environ.get("XDG_DATA_HOME", "").strip() or os.path.expanduser("~/.local/share")
        return os.path.join(data, "recallite")
    from platformdirs import user_data_dir

    return user_data_dir("recallite", appauthor=False)


def is_of_user(path: str | os.PathLike[str]) -> bool:
    """Whether a file is this user's, or this is the superuser; True if the system does not say. Raises OSError."""
    return sys.platform == "win32" or os.geteuid() in (0, os.stat(path).st_uid)
