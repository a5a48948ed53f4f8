"""Makes Python on Linux lack what another system lacks, and uses a memory there: python other_system.py NAME FOLDER.

What the standard library and the libraries are made of is imported before, as they find it.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import mmap
import os
import pathlib
import signal
import subprocess
import sys
import types

# What `recallite` imports, here for Linux.
for library in ("asyncio", "concurrent.futures", "multiprocessing.context", "shutil", "socket", "tempfile", "uuid",
                "apsw", "msgspec", "numba", "numpy", "onnxruntime", "platformdirs", "tokenizers", "yaml"):  # fmt: skip
    importlib.import_module(library)

NOT_ON_MACOS = {
    os: ("copy_file_range", "posix_fallocate", "posix_fadvise", "sched_getaffinity", "preadv", "pwritev"),
    mmap: ("MADV_HUGEPAGE",),
}
NOT_ON_WINDOWS = {
    os: (
        *NOT_ON_MACOS[os], "fork", "register_at_fork", "pread", "pwrite", "nice", "geteuid", "getuid", "fchmod",
        "statvfs", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_DIRECTORY", "O_NOCTTY",
    ),
    mmap: (*NOT_ON_MACOS[mmap], "MAP_PRIVATE", "MAP_ANONYMOUS"),
    signal: ("pthread_sigmask", "SIGXCPU", "SIGKILL", "SIG_BLOCK", "SIG_UNBLOCK"),
}  # fmt: skip


def become_macos() -> None:
    """Lack what macOS lacks; setting space aside by fcntl does nothing, as if there were enough."""
    sys.platform = "darwin"
    _lack(NOT_ON_MACOS)
    fcntl.fcntl = lambda descriptor, command, argument=0: argument


def become_windows() -> None:
    """Lack what Windows lacks; locks of files always succeed."""
    sys.platform = "win32"
    _lack(NOT_ON_WINDOWS)
    for name in ("fcntl", "resource", "termios", "pwd", "grp"):
        sys.modules[name] = None
    locks = types.ModuleType("msvcrt")
    locks.LK_NBLCK, locks.locking = 2, lambda descriptor, mode, size: os.fstat(descriptor)
    sys.modules["msvcrt"] = locks
    subprocess.CREATE_NO_WINDOW = subprocess.BELOW_NORMAL_PRIORITY_CLASS = 0
    os.supports_dir_fd, os.supports_fd = set(), set()


def _lack(names: dict[types.ModuleType, tuple[str, ...]]) -> None:
    for module, each in names.items():
        for name in each:
            delattr(module, name)


def use_a_memory(folder: pathlib.Path) -> dict[str, object]:
    """What a memory says of itself after it was used."""
    import numpy as np

    from recallite import Memory
    from recallite.index import snapshot
    from recallite.index.growable import Growable
    from recallite.store.sql.meta import Commit

    found: dict[str, object] = {}
    os.environ["RECALLITE_LOW_MEMORY"] = "1"
    with Memory(folder / "a.db") as memory:
        for each in range(20):
            memory.remember(f"note {each} about tea", scope="/a")
        found["recalled"] = memory.recall("note 7", limit=1)[0].text
        memory.store.backup(folder / "b.db")
        memory.transfer.export_folder(folder / "notes")
    (note,) = (each for each in (folder / "notes").rglob("*.md") if "note 7" in each.read_text())
    note.write_text(note.read_text().replace("about tea", "about coffee"))
    with Memory(folder / "b.db") as memory:
        found["imported"] = memory.transfer.import_folder(folder / "notes").updated
        found["edited"] = memory.recall("coffee", limit=1)[0].text

    header = snapshot.Header(token="t", commit=Commit("1"), lexicon_epoch="e", fingerprint="f", dimension=0)
    numbers = np.arange(500_000)
    snapshot.write(str(folder / "index"), header, {"numbers": numbers})
    saved = snapshot.read(str(folder / "index"))
    found["read"] = saved is not None and bool((saved.arrays["numbers"].array == numbers).all())
    for name, where in (("grown", None), ("on disk", str(folder))):
        growing = Growable(np.int64)
        if where:
            growing.folder = where
        growing.extend(numbers)
        found[name] = bool((growing.array == numbers).all()) and growing.folder == where

    found["files"] = sorted(each.name for each in folder.iterdir())
    return found


if __name__ == "__main__":
    {"darwin": become_macos, "win32": become_windows, "linux": lambda: None}[sys.argv[1]]()
    print(json.dumps(use_a_memory(pathlib.Path(sys.argv[2]))))
