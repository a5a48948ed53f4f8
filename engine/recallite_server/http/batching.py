"""Concurrent recalls in one batch: while one is answered, those that arrive wait together, and are then asked at once.

A recall that comes alone begins at once. `recall_many` gives each query the hits that it would have alone. A batch of
several runs in a context of its own: its span is no part of any request's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextvars import Context, copy_context
from functools import partial
from typing import Any, NamedTuple, TypeVar

from recallite.errors import RecalliteError
from recallite.memory import Memory
from recallite.model.records import Hits
from recallite.plugin import engine_of

MAX_QUERIES = 64
"""The most queries of one batch."""
Answer = TypeVar("Answer")
InThread = Callable[[Callable[[], Answer]], Awaitable[Answer]]


class _Waiting(NamedTuple):
    memory: Memory
    query: str
    options: Mapping[str, Any]
    key: str
    answered: asyncio.Future[Hits]
    context: Context


class RecallBatcher:
    """Answers recalls in threads; those of the same scope and options together."""

    def __init__(self, run: InThread[Any], *, seen: Callable[[int], None] = lambda _: None) -> None:
        """Take `run`, which calls a function in a thread, and `seen`, which is called with the size of each batch."""
        self._run, self._seen = run, seen
        self._waiting: deque[_Waiting] = deque()
        self._working: asyncio.Task[None] | None = None

    async def recall(self, memory: Memory, scope: str, query: str, options: Mapping[str, Any]) -> Hits:
        """The hits of a query. `memory` is the handle of `scope`."""
        # A language model may be asked about a long query, for which the others shall not wait.
        if "vector" in options or engine_of(memory).core.language_model is not None:
            return await self._run(lambda: memory.recall(query, **options))  # type: ignore[no-any-return]
        key = repr((scope, sorted(options.items())))
        answered = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(memory, query, options, key, answered, copy_context()))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work(), context=Context())
        return await answered  # type: ignore[no-any-return]

    async def _work(self) -> None:
        while self._waiting:
            batch = self._next()
            if batch:
                self._seen(len(batch))
                await self._answer(batch)

    def _next(self) -> list[_Waiting]:
        """The first that waits, with others like it; those whose client has gone are dropped."""
        key, batch, others = self._waiting[0].key, list[_Waiting](), deque[_Waiting]()
        for recall in self._waiting:
            if recall.answered.done():
                continue
            (batch if recall.key == key and len(batch) < MAX_QUERIES else others).append(recall)
        self._waiting = others
        return batch

    async def _answer(self, batch: list[_Waiting]) -> None:
        first, queries = batch[0], [recall.query for recall in batch]
        try:
            answers = (
                [await self._run(partial(first.context.run, first.memory.recall, queries[0], **first.options))]
                if len(batch) == 1
                else await self._run(lambda: first.memory.recall_many(queries, **first.options))
            )
        except RecalliteError as fault:
            if len(batch) == 1:
                _set(first.answered, fault=fault)
                return
            for recall in batch:  # one query may be what is wrong: the others are answered
                await self._answer([recall])
            return
        except BaseException as fault:
            for recall in batch:
                _set(recall.answered, fault=fault if isinstance(fault, Exception) else RuntimeError("stopped"))
            if not isinstance(fault, Exception):
                raise
            return
        for recall, hits in zip(batch, answers, strict=True):
            _set(recall.answered, hits)


def _set(answered: asyncio.Future[Hits], hits: Hits | None = None, *, fault: Exception | None = None) -> None:
    if answered.done():  # the client has gone
        return
    if fault is not None:
        answered.set_exception(fault)
    else:
        assert hits is not None
        answered.set_result(hits)
