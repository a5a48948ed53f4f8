"""LangGraph's `BaseStore`: long-term memory that the threads of a graph share."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model.checks import MAX_QUERY_CHARS, check_str
from recallite.model.filters import Filter
from recallite.model.records import Hit, Record
from recallite.system.messages import shown
from recallite_connect.common import (
    RANKED_ALONE,
    OnMemory,
    Sweeper,
    as_given,
    compared,
    hashed_id,
    in_thread,
    needed,
    restorable,
    restored,
)
from recallite_connect.langchain_embedder import LangChainEmbedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


with needed("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        ensure_embeddings,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )  # fmt: skip
    from langgraph.store.base.batch import AsyncBatchedBaseStore

_SWEEP_MINUTES = 5.0
INDEXED, UNINDEXED = "item", "item-unindexed"
"""The kinds of the records of items: those that a search with a query ranks, and the others."""
KINDS = (INDEXED, UNINDEXED)

_UNSAFE = re.compile(r"[%/\x00-\x1f\x7f\ud800-\udfff]|^\s+|\s+$|^\.{1,2}$")
_QUOTED = re.compile("%([0-9a-f]{4,6});")
_FILTER_KEY = re.compile(r"[^\"\x00]+")
_OPERATORS = {"$eq": "eq", "$ne": "ne", "$gt": "gt", "$gte": "gte", "$lt": "lt", "$lte": "lte"}


class _Plan(NamedTuple):
    """The operations of a batch, what it puts by id, the metadata and texts of that, and what it asks."""

    ops: list[Op]
    puts: dict[str, PutOp]
    metadata: dict[str, dict[str, Any]]
    texts: dict[str, list[str]]
    queries: list[str]


class _Vectors(NamedTuple):
    """Unit vectors by text, without vectors of all zeros."""

    texts: dict[str, NDArray[np.float32]]
    queries: dict[str, NDArray[np.float32]]


class RecalliteStore(OnMemory, BaseStore):
    """A `BaseStore` over a Memory, or over the file at a path; its methods may be called from any thread.

    An item is a record: the namespace ("users", "ada") is the scope /users/ada below `scope`, its id is made of
    namespace and key, its value is in the metadata, and its text is what `index` names. A batch is one transaction.

    - index: what `search(query=...)` finds items by. None: the whole value, by the memory's own embedder, words and
      vectors together. An `IndexConfig` with `embed` and `dims`: the nearest of the vectors of its fields, with the
      cosine as score; a Memory given with it has to be opened with `LangChainEmbedder(embed, dims)`. One with `fields`
      alone: these fields, by the memory's own embedder. False: nothing is indexed, and a query changes nothing
    - ttl: a `TTLConfig`. Expired items are not shown, and `sweep_ttl` removes them
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        *,
        scope: str = "/",
        index: IndexConfig | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        if index is not None and index is not False and not isinstance(index, dict):
            raise InvalidInput(f"index is {shown(index)}: give an IndexConfig, False or None")
        self.index_config = dict(index) if index else None
        self.embeddings = ensure_embeddings(index["embed"]) if index and "embed" in index else None
        self.ttl_config = ttl
        self._embedder = None
        if self.embeddings is not None:
            if "dims" not in (index or {}):
                raise InvalidInput("index has embed without dims: give the components of its vectors, such as 1536")
            self._embedder = LangChainEmbedder(self.embeddings, index["dims"])  # type: ignore[index]
        self._fields, self._ranks = Fields(index or None), index is not False
        super().__init__(memory, embedder=self._embedder)
        if self._embedder is not None:
            self._embedder.check(self.memory)
        self._items = self.memory.scoped(scope)
        self._policy = as_given(self.memory)
        self._sweeper = Sweeper(self.sweep_ttl)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        scope: str = "/",
        index: IndexConfig | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
    ) -> Iterator[Self]:
        """The store of the file at a path, closed at the end."""
        with cls(conn_string, scope=scope, index=index, ttl=ttl) as store:
            yield store

    def close(self) -> None:
        """End the sweeper, and close the memory if it was opened here."""
        self.stop_ttl_sweeper()
        super().close()

    # ── operations ─────────────────────────────────────────────────────────────────────────────────────────────

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations in one transaction; reads see what was there before the batch."""
        plan, vectors = self._planned(ops), None
        if self.embeddings is not None:
            texts = _flat(plan.texts)
            rows = self.embeddings.embed_documents(texts) if texts else []
            vectors = self._as_vectors(texts, rows, plan.queries, [*map(self.embeddings.embed_query, plan.queries)])
        return self._done(plan, vectors)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, in a thread; the embeddings are awaited."""
        plan, vectors = self._planned(ops), None
        if self.embeddings is not None:
            texts = _flat(plan.texts)
            rows = await self.embeddings.aembed_documents(texts) if texts else []
            query_rows = await asyncio.gather(*map(self.embeddings.aembed_query, plan.queries))
            vectors = self._as_vectors(texts, rows, plan.queries, query_rows)
        return await in_thread(self._done, plan, vectors)

    def _planned(self, ops: Iterable[Op]) -> _Plan:
        plan = _Plan([*ops], {}, {}, {}, [])
        for op in plan.ops:
            if not isinstance(op, GetOp | SearchOp | PutOp | ListNamespacesOp):
                raise InvalidInput(f"an operation is {shown(op)}: give GetOp, SearchOp, PutOp or ListNamespacesOp")
            validate_op_namespace(op)
            if isinstance(op, PutOp):
                plan.puts[self._id(op)] = op  # the last of a key wins
            elif isinstance(op, SearchOp) and op.query and self._ranks:
                plan.queries.append(op.query)
        for id, op in plan.puts.items():
            if op.value is not None:
                value = dict(op.value)
                if (other := next((key for key in value if not isinstance(key, str)), None)) is not None:
                    raise InvalidInput(f"the value of {shown(op.key)} has the key {shown(other)}: keys are str")
                stored, types = restorable({"key": op.key, "value": value})
                metadata = plan.metadata[id] = {**stored, "types": types} if types else {**stored}
                plan.texts[id] = self._fields.texts(op, metadata["value"]) if self._ranks else []
        return plan

    def _as_vectors(
        self, texts: list[str], rows: Sequence[Any], queries: list[str], query_rows: Sequence[Any]
    ) -> _Vectors:
        assert self._embedder is not None
        unit = self._embedder.unit

        def by_text(names: list[str], vectors: Sequence[Any]) -> dict[str, NDArray[np.float32]]:
            if len(names) != len(vectors):
                raise InvalidInput(f"embed gave {len(vectors)} vectors for {len(names)} texts")
            return {name: row for name, row in zip(names, unit(vectors), strict=True) if row.any()}

        return _Vectors(by_text(texts, rows), by_text(queries, query_rows))

    def _done(self, plan: _Plan, vectors: _Vectors | None) -> list[Result]:
        """Carry out the operations, with their vectors, and return the results."""
        renews = (self.ttl_config or {}).get("refresh_on_read", False)
        writes = bool(plan.puts) or renews
        items = [
            self._item(id, plan.puts[id], metadata, plan.texts[id], vectors) for id, metadata in plan.metadata.items()
        ]
        if writes and plan.queries and vectors is None:
            self._items.embed(plan.queries)  # so that the searches find them embedded
        transaction: AbstractContextManager[None] = self._items.transaction(embed=items) if writes else nullcontext()
        with transaction:
            read: list[str] = []
            got = self._got([op for op in plan.ops if isinstance(op, GetOp)])
            results: list[Result] = []
            for op in plan.ops:
                records: Sequence[Record | Hit] = ()
                if isinstance(op, GetOp):
                    item = got.get(self._id(op))
                    records = [] if item is None else [item]
                    results.append(None if item is None else Item(**_fields(item)))
                elif isinstance(op, SearchOp):
                    ranked = self._searched(op, vectors)
                    records = [record for record, _ in ranked]
                    results.append([SearchItem(**_fields(record), score=score) for record, score in ranked])
                else:
                    results.append(self._namespaces(op) if isinstance(op, ListNamespacesOp) else None)
                if records and op.refresh_ttl and renews:
                    read += [record.id for record in records]
            if read:
                self._items.update(read, renew=True)
            self._put(plan, items)
        return results

    def _id(self, op: GetOp | PutOp) -> str:
        return id_of(self._items.scope, op.namespace, op.key)

    def _got(self, ops: list[GetOp]) -> dict[str, Record]:
        if not ops:
            return {}
        now = datetime.now(UTC)
        records = self._items.get(map(self._id, ops))
        return {id: record for id, record in records.items() if record.expires_at is None or record.expires_at > now}

    def _put(self, plan: _Plan, items: list[dict[str, Any]]) -> None:
        if gone := [id for id, op in plan.puts.items() if op.value is None]:
            self._items.forget(gone, missing_ok=True)
        if items:
            self._items.remember_many(items, policy=self._policy, on_existing="replace")

    def _item(
        self, id: str, op: PutOp, metadata: dict[str, Any], texts: list[str], vectors: _Vectors | None
    ) -> dict[str, Any]:
        import numpy as np

        item: dict[str, Any] = {
            "id": id, "scope": scope_of(op.namespace), "metadata": metadata,
            "expires_at": None if op.ttl is None else timedelta(minutes=op.ttl),
        }  # fmt: skip
        if vectors is not None:
            parts = [vectors.texts[text] for text in texts if text in vectors.texts]
            texts = texts if parts else []
            item["vector"] = np.stack(parts) if parts else None
        text = "\n\n".join(texts)[: self.memory.settings.max_text_chars]
        text = text if text.strip() else metadata["key"]
        item["text"] = text if text.strip() else "-"
        return item | {"indexed": bool(texts), "kind": INDEXED if texts else UNINDEXED}

    # ── search ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _searched(self, op: SearchOp, vectors: _Vectors | None) -> list[tuple[Record | Hit, float | None]]:
        if op.limit <= 0:
            return []
        conditions = parse_filter(op.filter)
        where = conditions.where
        scope = scope_of(op.namespace_prefix) if op.namespace_prefix else None
        if conditions.tests:
            every = self._items.list(filter=Filter(scope=scope, where=where, kinds=KINDS), limit=None)
            passed = [record.id for record in every if all(test(_stored(record)["value"]) for test in conditions.tests)]
            where = {"id": {"in": passed}}
        vector = None if vectors is None else vectors.queries.get(op.query or "")
        if not self._ranks or not op.query or (vectors is not None and vector is None):
            listed = Filter(scope=scope, where=where, kinds=KINDS)
            return [(record, None) for record in self._listed(listed, op.limit, op.offset)]
        indexed = Filter(scope=scope, where=where, kinds=INDEXED)
        wanted = op.offset + op.limit
        hits = self._items.recall(
            op.query[:MAX_QUERY_CHARS], vector=vector, mode="hybrid" if vector is None else "vector", filter=indexed,
            limit=wanted, profile=RANKED_ALONE, purpose="inspect",
        )  # fmt: skip
        results: list[tuple[Record | Hit, float | None]] = [
            (hit, hit.score if vector is None else hit.signals["cosine"]) for hit in hits[op.offset :]
        ]
        if len(results) < op.limit:  # after all that are ranked, those that are not
            others = Filter(scope=scope, where=where, kinds=UNINDEXED)
            rest = self._listed(others, op.limit - len(results), max(op.offset - len(hits), 0))
            results += [(record, None) for record in rest]
        return results

    def _listed(self, filter: Filter, limit: int, offset: int) -> list[Record]:
        return self._items.list(filter=filter, order="updated", limit=limit, offset=offset)

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = [condition for condition in op.match_conditions or () if condition.path]
        namespaces = [namespace_of(entry.scope) for entry in self._items.scopes(kinds=KINDS)]
        matching = [path for path in namespaces if all(matches(condition, path) for condition in conditions)]
        cut = sorted({path[: op.max_depth] for path in matching})
        return cut[op.offset : op.offset + op.limit]

    # ── expired items ──────────────────────────────────────────────────────────────────────────────────────────

    def sweep_ttl(self) -> int:
        """Purge what has expired in the scope of the store; returns how many items that were."""
        return self._items.store.purge_expired().records

    def setup(self) -> None:
        """Do nothing, as the file has its tables when it is open: for programs that were written for another store."""

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> Future[None]:
        """Sweep in a thread, by default as often as the `TTLConfig` says, else every 5 minutes.

        Returns a future that ends with the sweeper; cancelling it ends the sweeper. Without a `TTLConfig` none starts.
        """
        if not self.ttl_config:
            ended: Future[None] = Future()
            ended.set_result(None)
            return ended
        minutes = sweep_interval_minutes or self.ttl_config.get("sweep_interval_minutes") or _SWEEP_MINUTES
        return self._sweeper.start(float(minutes))

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """End the sweeper, if there is one, waiting at most `timeout` seconds; returns whether it has ended."""
        return self._sweeper.stop(timeout)


class AsyncRecalliteStore(AsyncBatchedBaseStore):
    """`RecalliteStore` for asyncio: calls that are awaited together are one batch, and one transaction.

    Methods without await are for other threads than that of the event loop, in which they raise InvalidStateError.
    Open the file at a path with `async with AsyncRecalliteStore.from_conn_string(path) as store:`.
    """

    supports_ttl = True

    def __init__(self, store: RecalliteStore) -> None:
        super().__init__()
        self.store = store
        self.index_config, self.embeddings, self.ttl_config = store.index_config, store.embeddings, store.ttl_config

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        scope: str = "/",
        index: IndexConfig | Literal[False] | None = None,
        ttl: TTLConfig | None = None,
    ) -> AsyncIterator[Self]:
        """The store of the file at a path, closed at the end."""
        opened = await in_thread(RecalliteStore, conn_string, scope=scope, index=index, ttl=ttl)
        async with cls(opened) as store:
            yield store

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do several operations in one transaction; reads see what was there before the batch."""
        return await self.store.abatch(ops)

    async def sweep_ttl(self) -> int:
        """`RecalliteStore.sweep_ttl`."""
        return await in_thread(self.store.sweep_ttl)

    async def setup(self) -> None:
        """`RecalliteStore.setup`."""

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Future[None]:
        """`RecalliteStore.start_ttl_sweeper`; the future is one of asyncio."""
        return asyncio.wrap_future(self.store.start_ttl_sweeper(sweep_interval_minutes))

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """`RecalliteStore.stop_ttl_sweeper`."""
        return await in_thread(self.store.stop_ttl_sweeper, timeout)

    async def aclose(self) -> None:
        """Close the store."""
        await in_thread(self.store.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _flat(texts: dict[str, list[str]]) -> list[str]:
    """Every text, once."""
    return [*dict.fromkeys(text for parts in texts.values() for text in parts)]


def _stored(record: Record | Hit) -> dict[str, Any]:
    """The key and the value of an item as they were put."""
    restored_item: dict[str, Any] = restored(record.metadata, record.metadata.get("types", ()))
    return restored_item


def _fields(record: Record | Hit) -> dict[str, Any]:
    item = _stored(record)
    return {
        "namespace": namespace_of(record.scope), "key": item["key"], "value": item["value"],
        "created_at": record.created_at, "updated_at": record.updated_at,
    }  # fmt: skip


def scope_of(namespace: Sequence[str]) -> str:
    """The scope of a namespace; what a scope refuses in a label is quoted, such as "/" as "%002f;"."""

    def quoted(match: re.Match[str]) -> str:
        return "".join(f"%{ord(character):04x};" for character in match[0])

    return "/" + "/".join(_UNSAFE.sub(quoted, label) for label in namespace)


def namespace_of(scope: str) -> tuple[str, ...]:
    """The namespace of a scope."""
    labels = scope[1:].split("/") if scope != "/" else []
    return tuple(_QUOTED.sub(lambda code: chr(int(code[1], 16)), label) for label in labels)


def id_of(base: str, namespace: Sequence[str], key: str) -> str:
    """The id of the item with a key: of its scope in the file, so that a store of a scope above has the same item."""
    check_str(key, "key")
    return hashed_id("item", f"{base.rstrip('/')}{scope_of(namespace)}", key)


def matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace begins or ends with a path, in which "*" is any label."""
    path, length = condition.path, len(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise InvalidInput(f"match_type is {shown(condition.match_type)}: use 'prefix' or 'suffix'")
    part = namespace[:length] if condition.match_type == "prefix" else namespace[max(len(namespace) - length, 0) :]
    return len(part) == length and all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


class Fields:
    """The texts by which a value is found: those of the fields of an `IndexConfig`, or all of it."""

    def __init__(self, index: IndexConfig | None) -> None:
        config = index or {}
        paths = config.get("fields") or config.get("text_fields")  # the latter is how SqliteStore calls them
        if index is not None and paths is None:
            paths = ["$"]
        self._paths = None if paths is None else _tokenized(paths)

    def texts(self, op: PutOp, value: dict[str, Any]) -> list[str]:
        """The texts of a value that is put, as JSON; without any it is not indexed."""
        if op.index is False:
            return []
        paths = self._paths if op.index is None else _tokenized(op.index)
        if paths is not None:
            texts = [text for path in paths for text in get_text_at_path(value, path)]
        elif len(value) == 1 and isinstance(only := next(iter(value.values())), str):
            texts = [only]
        else:  # a line of each field
            texts = ["\n".join(f"{key}: {text}" for key in value for text in get_text_at_path(value, [key]))]
        return [text for text in texts if text.strip()]


def _tokenized(paths: object) -> list[Any]:
    listed = [paths] if isinstance(paths, str) else paths
    if not isinstance(listed, list | tuple) or not all(isinstance(path, str) for path in listed):
        raise InvalidInput(f"fields are {shown(paths)}: give a list of paths, such as ['text', 'items[*].name']")
    return [path if path == "$" else tokenize_path(path) for path in listed]


Test = Callable[[Any], bool]


class Filters(NamedTuple):
    """A filter of LangGraph: the part that the store compares, and tests of values for the rest."""

    where: dict[str, Any]
    tests: list[Test]


def parse_filter(filter: Mapping[str, Any] | None) -> Filters:
    """Split a filter into what a `where` can say and tests; InvalidInput names what is wrong.

    Lists, infinite numbers and whole numbers of more than 64 bits are compared by tests. Times and UUIDs are compared
    as the texts that are stored of them.
    """
    conditions: list[dict[str, Any]] = []
    tests: list[Test] = []
    for path, operator, operand in _comparisons(filter or {}, ()):
        plain, types = restorable(operand)
        exact = not any(name in ("str", "float", "int") for name, *_ in types)
        if exact and (plain is None or isinstance(plain, str | int | float)):
            conditions.append(compared(("value", *path), _OPERATORS[operator], plain))
        else:
            tests.append(_test(path, operator, operand))
    return Filters({"and": conditions} if conditions else {}, tests)


def _comparisons(filter: Mapping[Any, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str, Any]]:
    for key, value in filter.items():
        if not isinstance(key, str) or not _FILTER_KEY.fullmatch(key) or not all(key.split(".")):
            raise InvalidInput(
                f"Invalid filter key: {shown(key)}: give the name of a field, or names joined by '.'", "filter"
            )
        here = (*path, key)
        if not isinstance(value, Mapping) or not value:
            yield here, "$eq", value
        elif any(isinstance(name, str) and name.startswith("$") for name in value):
            for operator, operand in value.items():
                if operator not in _OPERATORS:
                    raise InvalidInput(f"Unsupported operator: {operator}: use {', '.join(_OPERATORS)}", "filter")
                yield here, operator, operand
        else:
            yield from _comparisons(value, here)


def _test(path: Sequence[str], operator: str, operand: Any) -> Test:
    def holds(value: Any) -> bool:
        for key in path:
            value = _under(value, key)
        if operator in ("$eq", "$ne"):
            return (value == _plain_lists(operand)) is (operator == "$eq")
        if not isinstance(value, int | float):
            return False
        if not isinstance(operand, int | float):
            raise InvalidInput(f"{'.'.join(path)}.{operator} is {shown(operand)}: give a number or a str", "filter")
        return {"$gt": value > operand, "$gte": value >= operand, "$lt": value < operand, "$lte": value <= operand}[
            operator
        ]

    return holds


def _under(value: Any, key: str) -> Any:
    """The value under a key or, if there is none, under the keys between its dots."""
    if not isinstance(value, Mapping) or key in value or "." not in key:
        return value.get(key) if isinstance(value, Mapping) else None
    first, _, rest = key.partition(".")
    return _under(value.get(first), rest)


def _plain_lists(value: Any) -> Any:
    """A value with lists for tuples, as JSON gives it back."""
    if isinstance(value, list | tuple):
        return [_plain_lists(item) for item in value]
    return {key: _plain_lists(item) for key, item in value.items()} if isinstance(value, Mapping) else value
