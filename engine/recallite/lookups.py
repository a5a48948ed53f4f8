"""The methods of Memory that read memories without a query: by id, by filter, counted."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Unpack

from recallite import checks
from recallite.engine import Engine
from recallite.filters import Filter, FilterFields, bound_filter
from recallite.records import Record, Shown, as_seen
from recallite.remember.supersession import row_id, row_ids
from recallite.reports import ScopeCount, TagCount

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Lookups:
    """What is read of the memories that a handle may see."""

    _engine: Engine
    _scope: str

    def get(self, id: str) -> Record:
        """The memory with this id. Raises NotFound if there is none, or none that is visible here."""
        with self._engine.store.read() as reader:
            return self._seen(reader.records.get(row_id(reader, id, self._scope)))

    def get_many(self, ids: Iterable[str]) -> dict[str, Record]:
        """The memories with these ids, by id, in the order of the ids; those that are not visible here are absent."""
        names = listed(ids, "ids")
        with self._engine.store.read() as reader:
            found = row_ids(reader, names, self._scope)
            records = reader.records.by_row_ids([*found.values()])
            return {name: self._seen(records[found[name]]) for name in found}

    def vectors(self, ids: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of memories by id, float32 (parts, dimension): one unit vector for each part of a long text.

        They are those of the store's embedder; memories without one, or that are not visible here, are absent.
        """
        import numpy as np

        names = listed(ids, "ids")
        with self._engine.store.read() as reader:
            found = row_ids(reader, names, self._scope)
            active = reader.vectors.active_embedder()
            parts = {} if active is None else reader.vectors.values_of([*found.values()], active)
        return {
            name: np.stack([np.frombuffer(part, dtype="<f4") for part in parts[record_id]])
            for name, record_id in found.items()
            if record_id in parts
        }

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The unit vectors that queries with these texts have, float32 (texts, dimension), by this memory's embedder.

        Raises EmbedderMissing for a memory without one.
        """
        import numpy as np

        asked = [checks.check_query(text) for text in listed(texts, "texts", single=False)]
        found = self._engine.embedder.queries(asked)
        return np.stack([each.vector for each in found]) if found else np.empty((0, 0), dtype=np.float32)

    def list(
        self,
        *,
        filter: Filter | None = None,
        order: str = "newest",
        limit: int | None = 100,
        offset: int = 0,
        **fields: Unpack[FilterFields],
    ) -> builtins.list[Record]:
        """Memories that a filter (a `Filter`, or its fields) matches.

        `order` is "newest" or "oldest", by the order of storing, "created", by `created_at`, the latest first,
        "updated", the last changed first, or "importance".
        """
        order = checks.check_choice(order, "order", ("newest", "oldest", "created", "updated", "importance"))
        chosen = bound_filter(self._scope, filter, fields)
        most = None if limit is None else checks.check_count(limit, "limit")
        skipped = checks.check_count(offset, "offset", minimum=0)
        with self._engine.store.read() as reader:
            found = reader.records.find(chosen, checks.now_us(), order=order, limit=most, offset=skipped)
            return [*map(self._seen, found)]

    def count(self, *, filter: Filter | None = None, **fields: Unpack[FilterFields]) -> int:
        """How many memories a filter (a `Filter`, or its fields) matches."""
        chosen = bound_filter(self._scope, filter, fields)
        with self._engine.store.read() as reader:
            return reader.records.count(chosen, checks.now_us())

    def scopes(
        self, scope: str = "/", *, depth: int | None = None, kinds: str | Sequence[str] | None = None
    ) -> builtins.list[ScopeCount]:
        """The scopes that hold memories, in `scope` and below it, by path, each with how many `count` would find in it.

        With `depth`, at most so many levels below `scope`; what is deeper counts for the scope above it. With `kinds`,
        memories of these kinds alone count.
        """
        most = None if depth is None else checks.check_count(depth, "depth", minimum=0)
        path = checks.join_scopes(self._scope, scope) or "/"
        with self._engine.store.read() as reader:
            counts = reader.records.count_by_scope(Filter(kinds=kinds).within(path), checks.now_us())
        found: dict[str, int] = {}
        for each, count in counts:
            shown = _cut(each, path, most).removeprefix("" if self._scope == "/" else self._scope) or "/"
            found[shown] = found.get(shown, 0) + count
        return [ScopeCount(scope=each, memories=count) for each, count in sorted(found.items())]

    def tags(self, scope: str = "/") -> builtins.list[TagCount]:
        """The tags of the memories in `scope` and below it, by name, each with how many memories have it."""
        path = checks.join_scopes(self._scope, scope) or "/"
        with self._engine.store.read() as reader:
            counts = reader.records.count_by_tag(Filter().within(path), checks.now_us())
        return [TagCount(tag=tag, memories=count) for tag, count in sorted(counts)]

    def _seen(self, shown: Shown) -> Shown:
        """A record or hit as this handle shows it."""
        return as_seen(self._engine.counted(shown) if isinstance(shown, Record) else shown, self._scope)


def listed(values: object, name: str, *, single: bool = True) -> list[str]:
    """A list of str; a lone str becomes one where `single` allows it."""
    if isinstance(values, str) and single:
        return [values]
    return checks.check_list(values, name)


def _cut(scope: str, path: str, depth: int | None) -> str:
    """`scope`, which is `path` or below it, as the scope at most `depth` levels below `path`."""
    if depth is None:
        return scope
    above = "" if path == "/" else path
    levels = scope.removeprefix(above).split("/")[1:]
    return above + "".join(f"/{level}" for level in levels[:depth] if level) or "/"
