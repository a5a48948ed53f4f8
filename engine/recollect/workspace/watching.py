"""The watcher and the interval: two threads that index while the program does something else."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from recollect.checks import fault_text
from recollect.errors import InvalidInput, StoreClosed
from recollect.extras import install_command
from recollect.workspace.looking import ENDINGS

if TYPE_CHECKING:
    from recollect.workspace.config import WorkspaceConfig
    from recollect.workspace.results import IndexResult

__all__ = ["Watcher"]

# How often the watcher looks whether it is quiet, and whether it is to stop.
_TICK_MS = 100
# Some network and container file systems tell of no changes that others make.
_TRUSTED_SECONDS = 5.0
# A file that is written to all the time is indexed after so many times the debounce.
_LONGEST_WAIT = 10


class Watcher:
    """Runs `sync` when Markdown files change, and every so many minutes. A failure stays in `problem`, and neither
    ends for it.
    """

    def __init__(self, config: WorkspaceConfig, sync: Callable[[], IndexResult]) -> None:
        self._config = config
        self._sync = sync
        self._lock = threading.Lock()
        self._watching: _Thread | None = None
        self._interval: _Thread | None = None
        self.problem: str | None = None
        self.looked_at = -inf
        """When somebody last looked at all files and indexed what had changed, by `time.monotonic`."""
        self._unseen = True  # whether there are changes that the watcher has not indexed yet, or may be

    @property
    def may_be_trusted(self) -> bool:
        """Whether it watches, met no problem, has indexed every change that it saw, and all files were looked at not
        long ago. A burst of changes that the system's queue has no room for is seen all the same: the last of it
        reaches the watcher, which then looks at every file.
        """
        recently = monotonic() - self.looked_at < _TRUSTED_SECONDS
        return self.active and recently and not self._unseen and self.problem is None

    @property
    def active(self) -> bool:
        """Whether files are watched."""
        return self._watching is not None and self._watching.is_alive()

    def start(self, on_index: Callable[[IndexResult], None] | None = None) -> None:
        """Watch from now on, and look once for what changed before. While it watches already, nothing changes.

        Raises InvalidInput where watchfiles is not installed.
        """
        try:
            from watchfiles import watch
        except ImportError:
            raise InvalidInput(f"watching needs watchfiles: {install_command('watch')}") from None
        with self._lock:
            if not self.active:
                self._unseen = True
                self._watching = _Thread("recollect-watch", lambda stop: self._watch(watch, stop, on_index))

    def start_interval(self) -> None:
        """Index every `interval_minutes` from now on."""
        with self._lock:
            if self._interval is None:
                self._interval = _Thread("recollect-interval", self._repeat)

    def stop(self) -> None:
        """Stop watching; the interval goes on."""
        with self._lock:
            thread, self._watching = self._watching, None
        if thread is not None:
            thread.stop()

    def close(self) -> None:
        """Stop both."""
        self.stop()
        with self._lock:
            thread, self._interval = self._interval, None
        if thread is not None:
            thread.stop()

    def _watch(
        self, watch: Callable[..., Any], stop: threading.Event, on_index: Callable[[IndexResult], None] | None
    ) -> None:
        folders = [self._config.folder, *filter(os.path.exists, map(self._placed, self._config.extra_paths))]
        quiet_ms = self._config.sync.watch_debounce_ms
        tick_ms = max(1, min(_TICK_MS, quiet_ms))
        while not stop.is_set():
            try:
                changes = watch(
                    *folders, watch_filter=self._concerns, step=tick_ms, debounce=tick_ms, rust_timeout=tick_ms,
                    yield_on_timeout=True, stop_event=stop, raise_interrupt=False,
                )  # fmt: skip
                # The first tick says that it watches: what changed before is looked for then, and nothing missed.
                due = latest = 0.0
                for found in changes:
                    now = monotonic()
                    if found:
                        self._unseen = True
                        due = now + quiet_ms / 1000
                        latest = min(latest, now + _LONGEST_WAIT * quiet_ms / 1000)
                    if now >= min(due, latest) and not stop.is_set():
                        due = latest = inf
                        # Not before: a search during the run would not wait for it.
                        self._unseen = not self._run(on_index)
            except Exception as fault:  # the folder is gone for now, or too many are watched
                self._unseen = True
                self.problem = f"watching failed: {fault_text(fault)}"
                stop.wait(1.0)

    def _repeat(self, stop: threading.Event) -> None:
        while not stop.wait(self._config.sync.interval_minutes * 60):
            self._run()

    def _run(self, on_index: Callable[[IndexResult], None] | None = None) -> bool:
        """Whether it indexed what had changed."""
        began = monotonic()
        try:
            result = self._sync()
            self.looked_at = began
            if on_index is not None:
                on_index(result)
        except StoreClosed:
            return False
        except Exception as fault:
            self._unseen = True
            self.problem = fault_text(fault)
            return False
        return True

    def _concerns(self, _: object, path: str) -> bool:
        """Whether a change may concern the index: of a Markdown file, or of what is gone or a folder."""
        inside = os.path.relpath(path, self._config.folder).split(os.sep)
        if inside[0] != os.pardir and any(name.startswith(".") for name in inside):
            return False
        return path.lower().endswith(ENDINGS) or not os.path.isfile(path)

    def _placed(self, extra: str) -> str:
        return os.path.join(self._config.folder, os.path.expanduser(extra))


class _Thread(threading.Thread):
    """A daemon thread that is told to stop by an event."""

    def __init__(self, name: str, work: Callable[[threading.Event], None]) -> None:
        self._told = threading.Event()
        super().__init__(name=name, target=work, args=(self._told,), daemon=True)
        self.start()

    def stop(self) -> None:
        """Tell it, and wait for it unless it is the caller itself."""
        self._told.set()
        if threading.current_thread() is not self:
            self.join()
