"""Files of public data sets: packed JSON in a folder, and a repository's, with or without a work tree."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["names", "packed", "read", "table"]


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


def packed(folder: Path, pattern: str) -> Any:
    """The value of the first file that matches, JSON in gzip."""
    (path,) = sorted(folder.glob(pattern))[:1]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def table(path: Path) -> list[dict[str, Any]]:
    """Objects of a file with one on each line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True).stdout
