"""The folder where a user's own data lies."""

from __future__ import annotations


def user_folder() -> str:
    """The path of the user's data folder for Recallite; nothing is created."""
    from platformdirs import user_data_dir

    return user_data_dir("recallite", appauthor=False)
