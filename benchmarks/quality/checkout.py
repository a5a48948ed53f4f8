"""Files of a public repository, from a folder or from a git repository without a work tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["names", "read"]


def names(root: Path, folder: str) -> list[str]:
    """The names in a folder of it, sorted."""
    if (root / folder).is_dir():
        return sorted(path.name for path in (root / folder).iterdir())
    listed = _git(root, "ls-tree", "--name-only", f"HEAD:{folder}").decode("utf-8")
    return sorted(listed.splitlines())


def read(root: Path, path: str) -> str:
    """The text of a file, by its path in the repository."""
    if (root / path).is_file():
        return (root / path).read_text(encoding="utf-8")
    return _git(root, "show", f"HEAD:{path}").decode("utf-8")


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True).stdout
