"""Copy a memory to another place, with everything in it: files and PostgreSQL servers, in any direction.

Rows are copied table by table in the order of their keys, with their row ids, a block in each transaction. The target
says in itself that it is an unfinished copy, so that nobody uses it and the same call goes on where it stopped: the
rows that it has are compared with the source, and only the others are written. If the source has changed meanwhile, the
copy begins again. In the end the target is read back and compared, and questions are asked of both stores.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from uuid import uuid4

import numpy as np
from msgspec import structs

from recallite.derivation import derive
from recallite.engine import Engine
from recallite.errors import InvalidInput, StoreUnavailable
from recallite.model.checks import check_flag, check_scope, is_address
from recallite.model.environment import named_key
from recallite.model.records import Hits, Plain
from recallite.model.settings import Settings
from recallite.recall.pipeline import recall_queries
from recallite.recall.request import build_request
from recallite.store.opening import open_store, shown_path, store_exists
from recallite.store.sql.meta import CopyMark
from recallite.store.store import Progress, Store
from recallite.store.transaction import Reader, Writer
from recallite.system.messages import shown
from recallite.system.telemetry import traced
from recallite_postgres.copied_rows import rows_of

__all__ = ["CopyReport", "copy_store"]

_QUESTIONS = 16
_QUESTION_CHARS = 500
_KEYWORDS = 6
_HITS = 10
_SHOWN_DIFFERENCES = 5
# Scores are sums of float32, in the order of each store.
_TOLERANCE = 1e-5


class CopyReport(Plain, frozen=True, kw_only=True):
    """The result of `copy_store`.

    - source, target: the two stores, without a password; scope: the part of the source that was copied
    - records: the memories with all their versions and chunks; rows: the rows of each table that has any
    - resumed: the rows that an earlier call had copied
    - recalls: the questions that were asked of both stores
    - source_changed: whether the source was written to during the copy, which has it as it was at the beginning
    - problems: differences between both
    """

    source: str
    target: str
    scope: str
    records: int
    rows: dict[str, int]
    resumed: int
    recalls: int
    source_changed: bool
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing differs."""
        return not self.problems


@traced("copy", lambda done: {"records": done.records})
def copy_store(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    scope: str = "/",
    access_tokens: bool = False,
    verify: bool = True,
    key: str | None = None,
    target_key: str | None = None,
    settings: Settings | None = None,
    on_progress: Progress | None = None,
) -> CopyReport:
    """Copy a memory to another file or server; each is the path of a file or an address `postgresql://...`.

    Everything goes over as it is, without embedding anything: versions, times, ids, links, supersessions, vectors,
    access counts, documents, sessions and the other services. With `scope` only that scope and those below it do, under
    their paths, with the links within. `access_tokens` takes along the tokens that admit to `recallite serve`; without
    it they stay behind, so that a copy does not admit those whom the source admits. The source is only read.

    The target must not exist, or be empty, or be the unfinished copy that an earlier call with these arguments left:
    that is finished. With `verify` the rows are read back and compared, and some texts are asked of both stores; the
    report names what differs. `key` opens or encrypts files, and `target_key` a target with another key. `settings` are
    those of both stores. `on_progress(done, total)` counts rows.

    Raises InvalidInput if there is no source, or the target holds memories, and StoreError for faults of either.
    """
    scope = check_scope(scope)
    check_flag(access_tokens, "access_tokens")
    check_flag(verify, "verify")
    if target == ":memory:":
        raise InvalidInput("target is ':memory:': what is copied there is gone when this returns")
    settings = settings or Settings()
    key = named_key(settings.key_file) if key is None else key
    if source == ":memory:" or not store_exists(source):
        raise InvalidInput(f"there is no store at {shown_path(source)}: give the source of the copy")
    with closing(_opened(source, settings, key)) as origin:
        _check_owner(origin)
        with origin.read() as reader:  # before the target is created
            if scope != "/" and not rows_of(reader).count("scope", scope):
                raise InvalidInput(f"{origin.path} has no scope {scope}: see recallite scopes")
        with closing(_opened(target, settings, target_key or key, unfinished=True)) as copy:
            _check_owner(copy)
            if copy.path == origin.path:
                raise InvalidInput(f"{origin.path} is source and target: give two places")
            mark = CopyMark(origin.path, scope, access_tokens, uuid4().hex)
            return _Copy(origin, copy, mark, on_progress).run(verify=verify)


def _opened(path: str | os.PathLike[str], settings: Settings, key: str | None, *, unfinished: bool = False) -> Store:
    return open_store(
        path,
        busy_timeout_ms=settings.busy_timeout_ms,
        durability=settings.durability,
        vector_type=settings.vectors,
        key=None if is_address(path) else key,
        unfinished=unfinished,
        derive=derive,
    )


def _check_owner(store: Store) -> None:
    """Words, for one, are nobody's but the owner's."""
    if store.confined_to is not None:
        raise InvalidInput(
            f"{store.path}: this role is confined to {store.confined_to}, and a copy needs the owner of the memory "
            f"(with --scope {store.confined_to}, for that part); export needs no more than the role may read"
        )


class _Copy:
    def __init__(self, source: Store, target: Store, mark: CopyMark, on_progress: Progress | None) -> None:
        self._source, self._target, self._mark, self._on_progress = source, target, mark, on_progress
        self._counts: dict[str, int] = {}
        self._done = self._total = self._resumed = 0
        self._sample: list[int] = []

    def run(self, *, verify: bool) -> CopyReport:
        """Copy the rows that are not there yet, and compare."""
        scope = self._mark.scope
        with self._source.read() as reader:
            began = reader.changes.commit()
            rows = rows_of(reader)
            rows.lift_time_limits()
            tables = rows.tables(scope, access_tokens=self._mark.access_tokens)
            self._counts = {table: rows.count(table, scope) for table in tables}
            self._total = sum(self._counts.values()) * (2 if verify else 1)
            if not self._copy(reader, resuming=self._begin()):
                self._begin(anew=True)
                self._copy(reader, resuming=False)
            with self._marked() as writer:
                rows_of(writer).finish(rows.last_ids())
            problems = self._differences(reader) if verify else []
        with self._source.read() as reader:
            changed = not reader.changes.matches(began)
        recalls = 0
        if not problems:
            if verify and not changed:
                recalls, problems = _other_answers(self._source, self._target, self._sample, scope)
            with self._marked() as writer:
                rows_of(writer).place()
                rows_of(writer).set_mark(None)
        return CopyReport(
            source=self._source.path,
            target=self._target.path,
            scope=scope,
            records=self._counts["record"],
            rows={table: count for table, count in self._counts.items() if count},
            resumed=self._resumed,
            recalls=recalls,
            source_changed=changed,
            problems=tuple(problems),
        )

    def _begin(self, *, anew: bool = False) -> bool:
        """Mark the target; returns whether it has a part of the copy. Raises InvalidInput if it has anything else."""
        tokens = self._mark.access_tokens
        with self._target.atomic() as writer:
            mark = writer.meta.copy_mark()
            if mark is None:
                content = rows_of(writer).content(access_tokens=tokens)
                if content is not None:
                    raise InvalidInput(
                        f"{self._target.path} is not empty (it has rows of {content}): give a place where there is no "
                        "memory yet; nothing was changed"
                    )
            elif mark[:-1] != self._mark[:-1]:
                raise InvalidInput(
                    f"{self._target.path} is an unfinished copy of {mark.source}, scope {mark.scope}"
                    f"{', with access tokens' * mark.access_tokens}: finish that, or give another place"
                )
            resuming = mark is not None and not anew
            if not resuming:
                rows_of(writer).clear(access_tokens=tokens)
            rows_of(writer).set_mark(self._mark)
            return resuming

    def _copy(self, reader: Reader, *, resuming: bool) -> bool:
        """Write the rows that the target does not have; False if it has rows that the source has not."""
        self._done = self._resumed = 0
        self._sample = []
        for table, count in self._counts.items():
            columns = rows_of(reader).columns(table)
            behind, last = resuming, None
            for block in rows_of(reader).blocks(table, columns, self._mark.scope):
                # A table that lacks a part of a block has nothing after it.
                present = self._present(table, columns, last) if behind else []
                if present != block[: len(present)]:
                    return False
                behind = len(present) == len(block)
                missing = block[len(present) :]
                if missing:
                    with self._marked() as writer:
                        rows_of(writer).put(table, columns, missing)
                if table == "record":
                    id = columns.index("id")
                    self._sample += [row[id] for row in block[:: max(1, count // (2 * _QUESTIONS))]]
                self._resumed += len(present)
                self._advance(len(block))
                last = block[-1] if block else None
        return True

    def _present(self, table: str, columns: Sequence[str], after: tuple[Any, ...] | None) -> list[tuple[Any, ...]]:
        with self._target.read() as reader:
            return next(rows_of(reader).blocks(table, columns, "/", after))

    def _differences(self, reader: Reader) -> list[str]:
        """The tables that differ between target and source."""
        problems = []
        with self._target.read() as target:
            rows_of(target).lift_time_limits()
            for table, count in self._counts.items():
                copied = rows_of(target).count(table, "/")
                if copied != count:
                    problems.append(f"{table}: {count:,} rows in the source, {copied:,} in the target")
                    continue
                columns = rows_of(reader).columns(table)
                both = zip(
                    rows_of(reader).blocks(table, columns, self._mark.scope),
                    rows_of(target).blocks(table, columns, "/"),
                    strict=True,
                )
                for original, copy in both:
                    self._advance(len(original))
                    if original != copy:
                        problems.append(f"{table}: {count:,} rows in both, and some are not the same")
                        break
        return problems

    @contextmanager
    def _marked(self) -> Iterator[Writer]:
        """A transaction of the target, if no other copy has begun to write to it."""
        with self._target.atomic() as writer:
            if writer.meta.copy_mark() != self._mark:
                raise StoreUnavailable(
                    f"{self._target.path} is written by another copy that began later: let that finish"
                )
            yield writer

    def _advance(self, rows: int) -> None:
        self._done += rows
        if self._on_progress is not None:
            self._on_progress(self._done, max(self._total, self._done))


def _other_answers(source: Store, target: Store, row_ids: list[int], scope: str) -> tuple[int, list[str]]:
    """The number of questions that were asked of both stores, and the questions with other hits.

    The questions are texts of these records; those with a vector are asked with it, so that nothing is embedded.
    """
    settings = Settings(embedder="none", index_snapshot=False)
    texts, vectors, keywords = _questions(source, row_ids)
    by_vector = build_request(scope, settings.profile, limit=_HITS, purpose="inspect")
    by_words = build_request(scope, settings.profile, limit=_HITS, mode="keyword", purpose="inspect")

    def answers(store: Store) -> list[Hits]:
        engine = Engine(store.path, None, settings, store=store)
        engine.tuning = structs.replace(engine.tuning, compile_kernels=False)
        hits = recall_queries(engine, texts, vectors, by_vector) if texts else []
        return [*hits, *(recall_queries(engine, keywords, None, by_words) if keywords else [])]

    # One after the other: each has its index in memory.
    both = zip([*texts, *keywords], answers(source), answers(target), strict=True)
    other = [text for text, original, copy in both if not _alike(original, copy)]
    problems = [f"recall of {shown(text)} has other hits, or other scores" for text in other[:_SHOWN_DIFFERENCES]]
    return len(texts) + len(keywords), problems


def _questions(store: Store, row_ids: list[int]) -> tuple[list[str], list[Any], list[str]]:
    """Texts of records that have a vector, their vectors, and the first words of records."""
    texts: list[str] = []
    vectors: list[Any] = []
    keywords: list[str] = []
    with store.read() as reader:
        embedder = reader.vectors.active_embedder()
        # Twice as many as are asked: some are closed versions.
        row_ids = row_ids[:: max(1, len(row_ids) // (2 * _QUESTIONS))]
        for row_id, record in zip(row_ids, reader.records.get_many(row_ids), strict=True):
            text = record.text[:_QUESTION_CHARS].strip()
            if record.recorded_until is not None or not text or len(keywords) == _QUESTIONS:
                continue
            keywords.append(" ".join(text.split()[:_KEYWORDS]))
            parts = {} if embedder is None else reader.vectors.values_of([row_id], embedder)
            if parts:
                texts.append(text)
                vectors.append(np.frombuffer(parts[row_id][0], dtype="<f4"))
    return texts, vectors, keywords


def _alike(original: Hits, copy: Hits) -> bool:
    return [hit.id for hit in original] == [hit.id for hit in copy] and all(
        math.isclose(one.score, two.score, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
        for one, two in zip(original, copy, strict=True)
    )
