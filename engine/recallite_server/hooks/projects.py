"""The project of a folder, known by what stays the same if its repository is moved or cloned again, and its scope."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from recallite.system.folders import is_of_user, read_regular

USER = "/user"
"""The scope that all projects of a user see beside their own."""
PROJECT = "project"
"""Word for the scope of the project in whose folder the process was started."""
_PROJECTS = "/projects"
_GIT_SECONDS = 5.0
# A repository's own configuration may name a program to fetch missing objects with: nothing is fetched.
_NO_FETCH = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
_SECTION = re.compile(r'\s*\[remote\s+"(.*)"\]')
_URL = re.compile(r"\s*url\s*=\s*(\S.*)")
_USUAL_PORTS = {"ssh": "22", "https": "443", "http": "80", "git": "9418"}
_UNNAMED = re.compile(r"[^a-z0-9._-]+")
_MOST_INDEX_BYTES, _MOST_WALKED = 64 << 20, 2_000
_first_commits: dict[tuple[str, int], str | None] = {}


class Project(NamedTuple):
    """A project: its scope, and what it is known by: a remote, a first commit, or a folder."""

    scope: str
    known_by: str

    @property
    def scopes(self) -> list[str]:
        """The scopes that its sessions see."""
        return list(dict.fromkeys((self.scope, USER)))


def project_of(folder: str, shared: str | None = None) -> Project:
    """The project of a folder, or the scope that all projects share."""
    if shared is not None:
        return Project(shared, "the scope that projects share")
    root, git = _repository(folder)
    if git is not None:
        if remote := _remote(git, root):
            return Project(_scope(f"remote {remote}", remote.rpartition("/")[2]), f"remote {remote}")
        if commit := _first_commit(git):
            return Project(_scope(f"commit {commit}", ""), f"first commit {commit[:12]}")
    return Project(_scope(f"folder {root}", ""), f"folder {root}")


def files_of(folder: str, names: Sequence[str]) -> list[Path]:
    """The files of these names in a project's folder, by their real paths, without missing ones.

    A link leads to another Markdown file of the same repository, or it is left out: one that a stranger has packed
    would name a private file. A repository that holds the user's home is none of theirs.
    """
    root, git = _repository(folder)
    if git is None or Path.home().resolve().is_relative_to(root):
        root = Path(os.path.realpath(folder))
    paths = [(Path(folder) / name, Path(os.path.realpath(Path(folder) / name))) for name in names]
    return [
        real for path, real in paths
        if real.is_file() and real.is_relative_to(root) and (real.suffix == path.suffix)
    ]  # fmt: skip


def root_of(folder: str) -> Path:
    """The root of the repository that a folder is in; without one, the folder itself."""
    return _repository(folder)[0]


def namesakes(root: Path) -> Callable[[str], int]:
    """Return what counts the files of a project whose path ends so: see `_paths`, which are read once."""
    read = cache(partial(_paths, root))

    @cache
    def count(path: str) -> int:
        paths = read()
        return 2 if paths is None else paths.count(os.fsencode(f"/{path}\0")) + (root / path).is_file()

    return count


def _paths(root: Path) -> bytes | None:
    """The paths of a project's files, between a slash and a null: Git's index, or, without one, those of its folder.

    Those at its root have no slash. None for a folder with too many files.
    """
    git = _git_folder(root)
    with suppress(OSError):
        if git is not None:
            return read_regular(git / "index", _MOST_INDEX_BYTES)
    files = (Path(folder, name).relative_to(root).as_posix() for folder, _, names in os.walk(root) for name in names)
    some = [*islice(files, _MOST_WALKED)]
    return os.fsencode("".join(f"{file}\0" for file in some)) if len(some) < _MOST_WALKED else None


def scope_named(scope: str) -> str:
    """A scope as it is, or the one of the project of this folder."""
    return project_of(os.getcwd()).scope if scope == PROJECT else scope


def _scope(identity: str, name: str) -> str:
    digest = blake2b(identity.encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()
    name = _UNNAMED.sub("-", name.lower()).strip("-.")[:40]
    return f"{_PROJECTS}/{name}-{digest}" if name else f"{_PROJECTS}/{digest}"


def _repository(folder: str) -> tuple[Path, Path | None]:
    """The root of the repository that a folder is in, and of its objects; without one, the folder itself and None."""
    path = Path(os.path.realpath(folder))
    repositories = ((root, _git_folder(root)) for root in (path, *path.parents))
    return next(((root, git) for root, git in repositories if git is not None), (path, None))


def _git_folder(root: Path) -> Path | None:
    """The folder of a repository's objects and configuration, which all its work trees share.

    None if it is another user's, or belongs to another folder: an unpacked archive may name any as its own. None also
    if its configuration is a device, a FIFO or endless: Git would read it too.
    """
    git = link = root / ".git"
    try:
        if link.is_file():  # a work tree, or a submodule
            git = root / _text(link).partition("gitdir:")[2].strip()
            if os.path.realpath(_work_tree(git)) != os.path.realpath(root):
                return None
            if (common := git / "commondir").is_file():
                git = git / _text(common).strip()
        if not (git / "HEAD").is_file() or not is_of_user(git):
            return None
        _config(git)
        return Path(os.path.realpath(git))
    except (OSError, ValueError):
        return None


def _text(path: Path) -> str:
    return read_regular(path).decode("utf-8", "replace")


def _config(git: Path) -> str:
    """The configuration of a repository, which may have none. Raises OSError if it is no file, or too large."""
    path = git / "config"
    return _text(path) if os.path.lexists(path) else ""


def _work_tree(git: Path) -> Path:
    """The folder that a repository says is its work tree."""
    if (back := git / "gitdir").is_file():
        return (git / _text(back).strip()).parent
    named = re.search(r"^\s*worktree\s*=\s*(\S.*)", _config(git), re.MULTILINE)
    return git / named[1].rstrip().strip('"') if named else git.parent


def _remote(git: Path, root: Path) -> str | None:
    """The address of `origin`, or else of the first remote: without scheme, its usual port, user and `.git`."""
    remotes = dict(_remotes(_config(git)))
    url = remotes.get("origin") or next(iter(remotes.values()), None)
    if url is None:
        return None
    if scheme := re.match(r"(\w[\w+.-]*)://", url):
        host, _, path = url[scheme.end() :].rpartition("@")[2].partition("/")
        host = host.removesuffix(":").removesuffix(f":{_USUAL_PORTS.get(scheme[1].lower())}")
        address = f"{host}/{path}" if host else path
    elif (scp := re.match(r"(?:[^/@\s]+@)?([^/:\s]{2,}):(?!//)(.+)", url)) is not None:
        address = f"{scp[1]}/{scp[2].lstrip('/')}"
    else:
        address = os.path.realpath(root / url)
    return address.rstrip("/").removesuffix(".git").lower()


def _remotes(config: str) -> Iterator[tuple[str, str]]:
    name = None
    for line in config.splitlines():
        if line.lstrip().startswith("["):
            section = _SECTION.match(line)
            name = None if section is None else section[1]
        elif name is not None and (url := _URL.match(line)):
            yield name, url[1].rstrip().strip('"')
            name = None


def _first_commit(git: Path) -> str | None:
    """The oldest commit without a parent. It is looked up once for a repository, since it takes time in a long one.

    One that takes too long is not looked up again: a stranger's may be made to, and every prompt would wait for it.
    """
    key = str(git), git.stat().st_ino
    if key not in _first_commits:
        command = ["git", "--git-dir", str(git), "rev-list", "--max-parents=0", "HEAD"]
        try:
            ran = subprocess.run(
                command, capture_output=True, timeout=_GIT_SECONDS, check=True, encoding="ascii",
                env={**os.environ, **_NO_FETCH},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            _first_commits[key] = None
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
        else:
            if commits := ran.stdout.split():
                _first_commits[key] = commits[-1]
    return _first_commits.get(key)
