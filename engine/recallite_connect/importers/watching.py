"""An import that goes on: new lines of session files are taken as they are written."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress

from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.system.extras import install_command
from recallite_connect.importers.running import ImportReport, Run
from recallite_connect.importers.sources import source_named, sources

# Changes that are not reported, as on some network file systems, are found by listing the files so often.
_LIST_EVERY_MS = 5_000
_QUIET_MS = 400
_TICK_MS = 100


def watch_from(
    memory: Memory,
    source: str,
    path: str | os.PathLike[str] | None = None,
    *,
    scope: str = "/",
    batch_size: int | None = None,
    on_import: Callable[[ImportReport], None] | None = None,
    stop: threading.Event | None = None,
) -> ImportReport:
    """Import what there is, as `import_from`, then what is written from now on, until Ctrl-C or `stop`.

    Of sources whose files grow: "claude-code" and "codex". A last line that is only half written waits for its rest.
    `on_import` is called with the counts so far, first for what there is, then after each change. Returns the counts of
    all. InvalidInput for another source, and if the extra `watch` is not installed.
    """
    try:
        from watchfiles import watch
    except ImportError:
        raise InvalidInput(f"watching needs watchfiles: {install_command('watch')}") from None
    source_system = source_named(source)
    if source_system.growing is None:
        growing = ", ".join(sorted(name for name, other in sources().items() if other.growing))
        raise InvalidInput(f"{source} cannot be watched: files grow of {growing}")
    run = Run(memory, source, source_system, scope, batch_size=batch_size)
    sessions = source_system.growing(source_system.folder_or_file(path))
    folder = sessions.path if sessions.path.is_dir() else sessions.path.parent
    last_report: ImportReport | None = None
    with suppress(KeyboardInterrupt):
        # It yields at once if a change came, else after a while: files are listed either way.
        changes = watch(
            folder, watch_filter=None, debounce=_QUIET_MS, step=_TICK_MS, rust_timeout=_LIST_EVERY_MS,
            yield_on_timeout=True, stop_event=stop, raise_interrupt=False,
        )  # fmt: skip
        while True:
            run.take(sessions.entries(growing=True))
            if on_import is not None and (now := run.report()) != last_report:
                last_report = now
                on_import(now)
            if next(changes, None) is None:
                break
    return run.report()
