"""`memory.transfer`: memories written to files and read from them; and `restore_store`, which puts a backup back."""

from __future__ import annotations

import os
from typing import IO, Unpack

from recallite import transfer
from recallite.derivation import derive
from recallite.engine import Namespace
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.authority import Authority, check_authority, speaking_as
from recallite.model.checks import check_flag, is_address
from recallite.model.environment import named_key
from recallite.model.filters import Filter, FilterFields, bound_filter
from recallite.model.records import Plain
from recallite.model.reports import Exported, Imported, Problem, Restored, Synced
from recallite.model.settings import Settings
from recallite.store.opening import discard, put_back
from recallite.store.store import Progress
from recallite.system import plugins
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.telemetry import traced


class MemoryTransfer(Namespace):
    """Exports and imports of the memories in the scope of a handle."""

    def export(
        self,
        target: str | os.PathLike[str] | IO[str],
        *,
        format: str | None = None,
        filter: Filter | None = None,
        vectors: bool = False,
        on_progress: Progress | None = None,
        **fields: Unpack[FilterFields],
    ) -> int:
        """Write memories to a file or a text stream; returns how many.

        Format "jsonl" has everything of memories and documents (versions, links, times, access counts; vectors with
        `vectors`), "csv" one row per memory and "text" one line; None chooses by the extension of the file. Sessions,
        working memory, snapshots and experience are in none: `store.backup` and `copy_store` carry them. An existing
        file is replaced only after the export has been written completely.
        """
        selected = bound_filter(self._scope, filter, fields, takes_as_of=False)
        return transfer.export(self._engine, target, selected, format=format, vectors=vectors, on_progress=on_progress)

    def import_(
        self,
        source: str | os.PathLike[str] | IO[str],
        *,
        format: str | None = None,
        scope: str = "/",
        authority: Authority = "user",
        batch_size: int | None = None,
        whole: bool = False,
        on_progress: Progress | None = None,
    ) -> Imported:
        """Read memories from a file or a text stream, one transaction per batch; formats as for `export`.

        Without a `batch_size` a transaction takes 10 to 20 ms, so that others write meanwhile. With `whole` all is read
        first, and stored in one transaction or not at all.

        The ids of JSON lines are kept, and a memory without one gets that of its content; one whose id exists already
        is skipped and counted, so an import that was stopped goes on when it is run again. A `created_at` that is to
        come is taken as now, and told in `warnings`. `scope` is put before the scopes of the file. No memory becomes
        the word of a higher `authority`: give "web" for a file of somebody else. InvalidItem names the line at which
        the import stopped; earlier batches stay.

        A scoped handle replaces an id that exists outside its scope by another, the same at every import, also in the
        links; the result does not reveal it.
        """
        with speaking_as(check_authority(authority, "authority")):
            return transfer.import_(
                self._engine, source, base=checks.join_scopes(self._scope, scope) or "/", sight=self._scope,
                format=format, batch_size=None if batch_size is None else checks.check_count(batch_size, "batch_size"),
                whole=checks.check_flag(whole, "whole"), on_progress=on_progress,
            )  # fmt: skip

    def export_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        filter: Filter | None = None,
        overwrite: bool = False,
        on_progress: Progress | None = None,
        **fields: Unpack[FilterFields],
    ) -> Exported:
        """Write memories as Markdown files for reading and editing, one file for each.

        `import_folder` reads them back. They contain all fields, times and links, but no closed versions and access
        counts. A file that was changed since it was written or imported is a conflict and is kept, unless `overwrite`;
        files of another origin are always kept. Files whose memories are all gone are removed.
        """
        selected = bound_filter(self._scope, filter, fields, takes_as_of=False)
        exported: Exported = plugins.load("functions", "export_folder")(
            self._engine, folder, selected, overwrite=overwrite, on_progress=on_progress
        )
        return exported

    def import_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        forget_missing: bool = False,
        on_progress: Progress | None = None,
    ) -> Restored:
        """Read back the files of `export_folder`, with the edits, additions and deletions since.

        Edited memories are updated under their ids; one that has changed in the store too is kept and reported as a
        problem, unless `overwrite`. New files become memories. Memories whose files were deleted are reported as
        missing, and forgotten only with `forget_missing`. Memories forgotten in the store since the last export or
        import stay forgotten: `Restored.left_out` names them, and `overwrite` stores them again.
        """
        restored: Restored = plugins.load("functions", "import_folder")(
            self._engine, folder, base=self._scope, overwrite=overwrite, forget_missing=forget_missing,
            on_progress=on_progress,
        )  # fmt: skip
        return restored

    def sync(self, folder: str | os.PathLike[str], *, status: bool = False) -> Synced:
        """Exchange what was changed with the other devices of a folder that Syncthing, Dropbox, git or a stick carries.

        Each device writes to files of its own and merges those of the others: memories with their versions, links,
        supersessions, and what was forgotten. Of two changes of a field the later one counts; a text that two devices
        changed is kept in both versions. Documents, sessions and access counts stay where they are. With `status`
        nothing is changed; the report says how far each device is.

        Raises InvalidInput for a handle of a scope, a server and a folder that is not there, and WrongKey for files
        that were encrypted with another key.
        """
        self._require_whole("transfer.sync")
        sync = plugins.load("functions", "sync")
        synced: Synced = sync(self._engine, folder, status=checks.check_flag(status, "status"))
        return synced


class AsyncMemoryTransfer(AsyncService[MemoryTransfer]):
    """`MemoryTransfer` for asyncio: the same methods, awaited."""

    export = awaited(MemoryTransfer.export)
    import_ = awaited(MemoryTransfer.import_)
    export_folder = awaited(MemoryTransfer.export_folder)
    import_folder = awaited(MemoryTransfer.import_folder)
    sync = awaited(MemoryTransfer.sync)


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
    done = put_back(
        backup, target, key, busy_timeout_ms=settings.busy_timeout_ms, derive=derive, on_progress=on_progress
    )
    if discard_old and done.old_path is not None:
        discard(done.old_path)
    return RestoreReport(
        path=os.fspath(target), backup=os.fspath(backup), records=done.records,
        replaced=None if discard_old else done.old_path, problems=done.problems,
    )  # fmt: skip
