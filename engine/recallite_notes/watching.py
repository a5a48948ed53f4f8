"""The watcher and the interval: two background threads that index."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any

from recallite.errors import InvalidInput, StoreClosed
from recallite.system.extras import install_command
from recallite.system.messages import fault_text
from recallite_notes.config import WorkspaceConfig
from recallite_notes.note_files import ENDINGS
from recallite_notes.results import IndexResult

# How often the watcher checks for quiet, and for its end.
_TICK_MS = 100
# Some network and container file systems do not report changes that others make.
_TRUSTED_SECONDS = 5.0
# A file that is written to without a pause is indexed after this many times the debounce.
_LONGEST_WAIT = 10


class Watcher:
    """Runs `sync` when Markdown files change, and at an interval. A failure is kept in `problem`; both go on."""

    def __init__(self, config: WorkspaceConfig, sync: Callable[[], IndexResult]) -> None:
        self._config = config
        self._sync = sync
        self._lock = threading.Lock()
        self._watching: _Thread | None = None
        self._interval: _Thread | None = None
        self.problem: str | None = None
        self.listed_at = -inf
        """The time at which all files were last listed and changes indexed, by `time.monotonic`."""
        self._unseen = True  # whether there are, or may be, changes that the watcher has not indexed

    @property
    def may_be_trusted(self) -> bool:
        """Whether it watches without a problem, has indexed every change that it saw, and all files were listed lately.

        When the system's queue overflows, the last changes still reach the watcher, which then lists every file.
        """
        recently = monotonic() - self.listed_at < _TRUSTED_SECONDS
        return self.active and recently and not self._unseen and self.problem is None

    @property
    def active(self) -> bool:
        """Whether files are watched."""
        return self._watching is not None and self._watching.is_alive()

    @property
    def interval_active(self) -> bool:
        """Whether files are indexed at an interval."""
        return self._interval is not None and self._interval.is_alive()

    def start(self, on_index: Callable[[IndexResult], None] | None = None) -> None:
        """Watch from now on, after one index run. Does nothing where it watches already.

        Raises InvalidInput if watchfiles is not installed.
        """
        try:
            from watchfiles import watch
        except ImportError:
            raise InvalidInput(f"watching needs watchfiles: {install_command('watch')}") from None
        with self._lock:
            if not self.active:
                self._unseen = True
                self._watching = _Thread("recallite-watch", lambda stop: self._watch(watch, stop, on_index))

    def start_interval(self) -> None:
        """Index every `interval_minutes` from now on."""
        with self._lock:
            if self._interval is None:
                self._interval = _Thread("recallite-interval", self._repeat)

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
                # After the first tick it watches: the run for earlier changes begins then, so that none is missed.
                due = latest = 0.0
                for change in changes:
                    now = monotonic()
                    if change:
                        self._unseen = True
                        due = now + quiet_ms / 1000
                        latest = min(latest, now + _LONGEST_WAIT * quiet_ms / 1000)
                    if now >= min(due, latest) and not stop.is_set():
                        due = latest = inf
                        # Not before the run: a search meanwhile would not wait for it.
                        self._unseen = not self._run(on_index)
            except Exception as fault:  # the folder is missing for now, or too many are watched
                self._unseen = True
                self.problem = f"watching failed: {fault_text(fault)}"
                stop.wait(1.0)

    def _repeat(self, stop: threading.Event) -> None:
        while not stop.wait(self._config.sync.interval_minutes * 60):
            self._run()

    def _run(self, on_index: Callable[[IndexResult], None] | None = None) -> bool:
        """Whether the run succeeded."""
        began = monotonic()
        try:
            result = self._sync()
            self.listed_at = began
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
        """Whether a change may concern the index: of a Markdown file, of a folder, or of something removed."""
        inside = os.path.relpath(path, self._config.folder).split(os.sep)
        if inside[0] != os.pardir and any(name.startswith(".") for name in inside):
            return False
        return path.lower().endswith(ENDINGS) or not os.path.isfile(path)

    def _placed(self, extra: str) -> str:
        return os.path.join(self._config.folder, os.path.expanduser(extra))


class _Thread(threading.Thread):
    """A daemon thread that an event stops."""

    def __init__(self, name: str, work: Callable[[threading.Event], None]) -> None:
        self._told = threading.Event()
        super().__init__(name=name, target=work, args=(self._told,), daemon=True)
        self.start()

    def stop(self) -> None:
        """Stop it, and wait for its end unless it is the calling thread."""
        self._told.set()
        if threading.current_thread() is not self:
            self.join()
