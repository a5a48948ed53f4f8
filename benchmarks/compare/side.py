"""One of the two that are compared: a source tree, its store, and the process that asks it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from benchmarks.isolated_process import QUIET, Failed

__all__ = ["ROOT", "Side", "checked_out"]

ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("engine", "kernels", "models")


class Side:
    """A process that runs the packages of `tree`; its store and its compiled kernels are in `folder`.

    A store that is there already is taken if this code wrote it from this data, and is written anew if not.
    """

    def __init__(self, name: str, tree: Path, folder: Path, data: Path) -> None:
        self.name, self.tree = name, tree.resolve()
        self._store = folder / data.name
        written_by, fingerprint = self._store / "written_by", _fingerprint(self.tree, data)
        if not written_by.exists() or written_by.read_text("ascii") != fingerprint:
            shutil.rmtree(self._store, ignore_errors=True)
            self._store.mkdir(parents=True)
        self._errors = self._store / "errors.txt"
        arguments = json.dumps({"engine": _engine(self.tree), "data": str(data), "store": str(self._store)})
        with self._errors.open("w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.compare.asking", arguments],
                env=_environment(self.tree, folder / "kernels"),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )
        try:
            self.opened = self.ask("open")
            for file in self.opened["packages"]:
                if not Path(file).resolve().is_relative_to(self.tree):
                    raise Failed(f"{name} imports {file}, which is not of {self.tree}: uninstall that package")
        except BaseException:
            self._end()
            raise
        written_by.write_text(fingerprint, "ascii")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._process.poll() is None:
                self.ask("close")
        finally:
            self._end()

    def ask(self, command: str, **arguments: Any) -> Any:
        """Return the process's answer to a command of `asking.Store`. Raises Failed if it ended instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps({"do": command, **arguments}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            written = self._errors.read_text("utf-8", errors="replace").strip()
            last = (written or f"it ended with {self._process.returncode}").splitlines()[-1]
            raise Failed(f"{self.name}: {command}: {last}")
        return json.loads(line)

    def _end(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def checked_out(revision: str) -> Iterator[tuple[str, Path]]:
    """The short hash and a temporary tree of a revision of this checkout; it ends the program where there is none."""
    try:
        commit = _git("rev-parse", "--short", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(f"{revision} is no commit here: give a branch, tag or hash of this git checkout") from None
    with tempfile.TemporaryDirectory(prefix="recallite-") as scratch:
        tree = Path(scratch) / "base"
        _git("worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            yield commit, tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def _engine(tree: Path) -> str:
    """Name of the one package under `engine/`, which was another once."""
    (package,) = (path.parent.name for path in (tree / "engine").glob("*/_version.py"))
    return package


def _fingerprint(tree: Path, data: Path) -> str:
    """Hash the code and the data that a store is written with."""
    code = (file for package in _PACKAGES for file in sorted((tree / package).rglob("*")) if file.is_file())
    here, digest = Path(__file__).parent, hashlib.sha256()
    asking = (here / "asking.py", here.parent / "at_hand.py", data / "lines.txt", data / "vectors.npy")
    for file in (*(file for file in code if file.suffix != ".pyc"), *asking):
        with file.open("rb") as stream:
            digest.update(file.name.encode() + hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _environment(tree: Path, kernels: Path) -> dict[str, str]:
    """Copy the environment without settings of stores, keys and models, but with the choice of kernels."""
    prefix = _engine(tree).upper()
    inherited = {name: value for name, value in os.environ.items() if not re.match(r"RECALLITE_(?!KERNELS$)", name)}
    path = os.pathsep.join(str(tree / package) for package in _PACKAGES)
    added = {f"{prefix}_CACHE_DIR": str(kernels), f"{prefix}_QUERY_CACHE_SIZE": "0"}
    if backend := os.environ.get("RECALLITE_KERNELS"):
        added[f"{prefix}_KERNELS"] = backend
    return {**inherited, **QUIET, "PYTHONPATH": path, **added}
