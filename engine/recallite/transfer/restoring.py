"""Put a backup back: `restore_store`, the counterpart of `Memory.store.backup`."""

from __future__ import annotations

import os

from recallite.errors import InvalidInput
from recallite.model.checks import check_flag, is_address
from recallite.model.environment import named_key
from recallite.model.records import Plain
from recallite.model.reports import Problem
from recallite.model.settings import Settings
from recallite.store.opening import discard, put_back
from recallite.store.store import Progress
from recallite.system.telemetry import traced

__all__ = ["RestoreReport", "restore_store"]


class RestoreReport(Plain, frozen=True, kw_only=True):
    """The result of `restore_store`.

    - path: the store; backup: the file that it is a copy of now
    - records: the memories in it, with their versions and chunks
    - replaced: the path of the old file, None if there was none or it was discarded
    - problems: what `rebuild` mends, derived data alone
    """

    path: str
    backup: str
    records: int
    replaced: str | None
    problems: tuple[Problem, ...] = ()


@traced("restore_store", lambda done: {"records": done.records})
def restore_store(
    backup: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    key: str | None = None,
    discard_old: bool = False,
    settings: Settings | None = None,
    on_progress: Progress | None = None,
) -> RestoreReport:
    """Put a backup in the place of a store, which may be damaged, missing or in use.

    The backup is only read. It is copied beside the store and verified; then the copy takes the store's name in one
    step, while nobody can write. Memories that have the store open, in this process and in others, go on with the
    backup's content. The old file stays beside it as `<target>-before-<time>`, unless it is to be discarded: then it is
    removed in the end. `key` opens both, and `on_progress(done, total)` counts pages.

    Raises InvalidInput if there is no backup, StoreCorrupt if it is damaged, and other errors of stores for what it is
    instead of one; nothing is changed then.
    """
    check_flag(discard_old, "discard_old")
    for path in (backup, target):
        if is_address(path) or path == ":memory:":
            what = "the address of a server" if is_address(path) else ":memory:"
            raise InvalidInput(f"{what} is no file: restore what the database server has backed up there")
    settings = settings or Settings()
    key = named_key(settings.key_file) if key is None else key
    done = put_back(backup, target, key, busy_timeout_ms=settings.busy_timeout_ms, on_progress=on_progress)
    if discard_old and done.old_path is not None:
        discard(done.old_path)
    return RestoreReport(
        path=os.fspath(target),
        backup=os.fspath(backup),
        records=done.records,
        replaced=None if discard_old else done.old_path,
        problems=done.problems,
    )
