"""LangChain's `VectorStore`, `BaseRetriever` and `BaseChatMessageHistory`."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from recallite.errors import InvalidInput, NotFound
from recallite.memory import Memory
from recallite.model.authority import speaking_as
from recallite.model.checks import check_str
from recallite.model.records import Hit, Record
from recallite.recall.request import recall_arguments
from recallite.system.messages import shown
from recallite_connect.common import (
    RANKED_ALONE,
    OnMemory,
    as_given,
    blank_as_dash,
    compared,
    hashed_id,
    in_thread,
    marks_of,
    needed,
    restorable,
    restored,
    stored_messages,
    threaded,
)  # fmt: skip
from recallite_connect.importers.reading import cleaned, cleaned_json
from recallite_connect.langchain_embedder import LangChainEmbedder

with needed("langchain"):
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.messages import BaseMessage, convert_to_messages, messages_from_dict
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore
    from pydantic import ConfigDict, Field, PrivateAttr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KIND = "document"
"""The kind of the records of a vector store."""

Mode = Literal["hybrid", "vector", "keyword"]

_OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains")
_ROLES = {"human": "user", "ai": "assistant"}
# The scope of a store, without those below it.
_HERE = {"scope": "/"}


class RecalliteVectorStore(OnMemory, VectorStore):
    """A `VectorStore` over a Memory, or over the file at a path.

    A document is a record of the kind "document" in `scope`; the store sees no others, nor those of a scope below. Its
    id is unique in its scope, and is in the metadata of the record beside those of the document. What is added under an
    id replaces what it had.

    - embedding: LangChain's `Embeddings` for a file that is opened here, by default the memory's own embedder; a Memory
      given with it has to be opened with `LangChainEmbedder(embedding, dimension)`
    - dimension: the components of its vectors; None has it embed a word to see
    - mode: "hybrid" ranks by vectors and words, "vector" and "keyword" by one of them
    """

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        embedding: Embeddings | None = None,
        *,
        scope: str = "/",
        mode: Mode = "hybrid",
        dimension: int | None = None,
    ) -> None:
        embedder = None
        if embedding is not None:
            size = len(embedding.embed_query("dimension")) if dimension is None else dimension
            embedder = LangChainEmbedder(embedding, size)
        super().__init__(memory, embedder=embedder)
        if embedder is not None:
            embedder.check(self.memory)
        self._embedding, self._mode = embedding, mode
        self._documents = self.memory.scoped(scope)

    @property
    def embeddings(self) -> Embeddings | None:
        """The embeddings that were given."""
        return self._embedding

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        memory: Memory | str | os.PathLike[str] = ":memory:",
        **options: Any,
    ) -> RecalliteVectorStore:
        """A store with these texts; `memory` and the options are those of the class."""
        store = cls(memory, embedding, **options)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    # ── write ──────────────────────────────────────────────────────────────────────────────────────────────────

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[str]:
        """Add texts, all or none, and return their ids: those given, and UUIDs for those that are None."""
        listed = [*texts]
        beside: Sequence[dict[str, Any]] = metadatas or [{}] * len(listed)
        named = [str(uuid.uuid4()) if id is None else id for id in ids or [None] * len(listed)]
        if not len(listed) == len(beside) == len(named):
            raise InvalidInput(f"{len(listed)} texts with {len(beside)} metadatas and {len(named)} ids: give one each")
        items = {self._id(id): _item(text, id, data) for text, data, id in zip(listed, beside, named, strict=True)}
        with speaking_as("document"):
            self._documents.remember_many(
                [{"id": id, **item} for id, item in items.items()], batch_size=max(1, len(items)),
                policy=as_given(self.memory), on_existing="replace",
            )  # fmt: skip
        return named

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Purge documents; those that are not there are passed over. None purges all."""
        if ids is None:
            self._documents.forget(kinds=KIND, where=_HERE)
        else:
            self._documents.forget([*map(self._id, ids)], missing_ok=True)
        return True

    # ── read ───────────────────────────────────────────────────────────────────────────────────────────────────

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, in their order; those that are not there are absent."""
        return [*map(_document, self._documents.get(map(self._id, ids)).values())]

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """The k best documents; `filter` compares their metadata, other options are those of `Memory.recall`.

        A filter is {"key": value} or {"key": {"$gt": value}}, with $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin and
        $contains, and $and, $or and $not around such.
        """
        return [_document(hit) for hit in self._found(query, k, **options)]

    def similarity_search_with_score(self, query: str, k: int = 4, **options: Any) -> list[tuple[Document, float]]:
        """`similarity_search` with scores from 0 to 1, higher is better."""
        return [(_document(hit), hit.score) for hit in self._found(query, k, **options)]

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **options: Any) -> list[Document]:
        """The k documents nearest to a vector."""
        return [_document(hit) for hit in self._found("", k, vector=embedding, **options)]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Any
    ) -> list[Document]:
        """K of the best `fetch_k` documents, chosen for relevance (lambda_mult 1) and against likeness (0)."""
        return self._diverse(self._found(query, max(k, fetch_k), **options), k, lambda_mult)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Any
    ) -> list[Document]:
        """`max_marginal_relevance_search` near a vector."""
        return self._diverse(self._found("", max(k, fetch_k), vector=embedding, **options), k, lambda_mult)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return float

    def _id(self, id: str) -> str:
        check_str(id, "id")
        return hashed_id("document", self._documents.scope, id)

    def _found(
        self,
        query: str,
        k: int,
        *,
        filter: Mapping[str, Any] | None = None,
        vector: Sequence[float] | None = None,
        where: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> list[Hit]:
        if "scope" in options:
            raise InvalidInput(f"this store has the documents of {self._documents.scope} alone: open one of the scope")
        mode = self._mode if vector is None else "vector"
        arguments = recall_arguments({"mode": mode, "purpose": "inspect", **RANKED_ALONE, **options})
        condition = {"and": [_HERE, where_of(filter) or {}, where or {}]}
        return [*self._documents.recall(query, limit=k, vector=vector, kinds=KIND, where=condition, **arguments)]

    def _diverse(self, hits: list[Hit], k: int, relevance_share: float) -> list[Document]:
        import numpy as np

        known = self._documents.vectors(hit.id for hit in hits)
        size = next((parts.shape[1] for parts in known.values()), 1)
        means = [known[hit.id].mean(axis=0) if hit.id in known else np.zeros(size, np.float32) for hit in hits]
        relevance = np.array([hit.score for hit in hits])
        return [_document(hits[i]) for i in _marginal(relevance, means, k, relevance_share)]


def _marginal(
    relevance: NDArray[np.float64], vectors: list[NDArray[np.float32]], k: int, relevance_share: float
) -> list[int]:
    """The indices of k candidates, each the best by relevance less its greatest cosine with the ones chosen before.

    Carbonell and Goldstein, 1998.
    """
    import numpy as np

    if not vectors:
        return []
    unit = np.stack(vectors).astype(np.float64)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    selected: list[int] = []
    nearest = np.zeros(len(vectors))
    while len(selected) < min(k, len(vectors)):
        gain = relevance_share * relevance - (1 - relevance_share) * nearest
        gain[selected] = -np.inf
        selected.append(int(gain.argmax()))
        likeness = unit @ unit[selected[-1]]
        nearest = likeness if len(selected) == 1 else np.maximum(nearest, likeness)
    return selected


def where_of(filter: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A filter of LangChain's stores on metadata as a `where`; InvalidInput names what is wrong."""
    if filter is None:
        return None
    if not isinstance(filter, Mapping):
        raise InvalidInput(f"filter is {shown(filter)}: give a dict such as {{'year': {{'$gte': 2024}}}}", "filter")
    parts: list[dict[str, Any]] = []
    for key, value in filter.items():
        if key in ("$and", "$or"):
            if not isinstance(value, list | tuple):
                raise InvalidInput(f"filter.{key} is {shown(value)}: give a list of filters", "filter")
            parts.append({key[1:]: [*map(where_of, value)]})
        elif key == "$not":
            parts.append({"not": where_of(value)})
        elif not isinstance(key, str) or key.startswith("$"):
            raise InvalidInput(f"filter has {shown(key)}: give a key of the metadata, $and, $or or $not", "filter")
        else:
            parts += [
                compared(("metadata", key), operator, operand) for operator, operand in _comparisons(key, value).items()
            ]
    return {"and": parts} if parts else {}


def _comparisons(key: str, value: Any) -> dict[str, Any]:
    """The operators on what is under a key, each with its operand; times and UUIDs are compared as texts."""
    if not isinstance(value, Mapping):
        return {"eq": restorable(value).json}
    if unknown := [operator for operator in value if operator not in {f"${operator}" for operator in _OPERATORS}]:
        named = ", ".join(f"${operator}" for operator in _OPERATORS)
        raise InvalidInput(f"filter.{key} has the operator {shown(unknown[0])}: use {named}", "filter")
    return {operator[1:]: restorable(operand).json for operator, operand in value.items()}


def _item(text: str, id: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """A document for `remember_many`."""
    stored, types = restorable({"id": id, "metadata": metadata, **({} if text.strip() else {"text": text})})
    return blank_as_dash(
        {"text": cleaned(text), "metadata": stored | ({"types": types} if types else {}), "kind": KIND}
    )  # fmt: skip


def _document(memory: Record | Hit) -> Document:
    """A document as it was added, or another memory as a document."""
    if memory.kind == KIND and {"id", "metadata"} <= memory.metadata.keys() <= {"id", "metadata", "text", "types"}:
        added = restored(memory.metadata, memory.metadata.get("types", ()))
        return Document(id=added["id"], page_content=added.get("text", memory.text), metadata=added["metadata"])
    named = {"scope": memory.scope, "kind": memory.kind, "created_at": memory.created_at.isoformat()}
    return Document(id=memory.id, page_content=memory.text, metadata={**memory.metadata, **named})


class RecalliteRetriever(BaseRetriever):
    """A `BaseRetriever` that recalls: what is remembered becomes documents, best first.

    - memory: a Memory, or the path of a file, which `close` closes
    - k: how many documents; also an argument of `invoke`
    - options: those of `Memory.recall`, such as {"scope": "/users/ada", "token_budget": 500}

    The metadata of a document are those of the memory, with its scope, kind, created_at, score and confidence.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Any
    k: int = 10
    options: dict[str, Any] = Field(default_factory=dict)
    _opened: OnMemory = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Open the file, if a path was given."""
        self._opened = OnMemory(self.memory)

    def close(self) -> None:
        """Close the file if it was opened here."""
        self._opened.close()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun | None = None, **changes: Any
    ) -> list[Document]:
        options = {**self.options, **changes}
        hits = self._opened.memory.recall(query, limit=options.pop("k", self.k), **options)
        documents = []
        for hit in hits:
            document = _document(hit)
            document.metadata = {
                **document.metadata, "score": hit.score, "confidence": hit.confidence, **marks_of(hit),
            }  # fmt: skip
            documents.append(document)
        return documents

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun | None = None, **changes: Any
    ) -> list[Document]:
        return await in_thread(self._get_relevant_documents, query, **changes)


class RecalliteChatMessageHistory(OnMemory, BaseChatMessageHistory):
    """A `BaseChatMessageHistory` over a session of `Memory.sessions`, which is made with the first message.

    - session_id: any short text; sessions of different agents are apart
    - limit: the most `messages`, the last ones; None is all

    `Memory.sessions.search` finds its messages, and other programs read them with a role and a content.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | str | os.PathLike[str],
        *,
        agent: str | None = None,
        limit: int | None = None,
    ) -> None:
        OnMemory.__init__(self, memory)
        self.session_id, self.agent, self.limit = session_id, agent, limit

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages, oldest first."""
        stored = stored_messages(self.memory.sessions, self.session_id, agent=self.agent, limit=self.limit)
        return [*map(_as_message, stored)]

    async def aget_messages(self) -> list[BaseMessage]:
        """`messages`, in a thread."""
        return await in_thread(lambda: self.messages)

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages at the end, all or none; when this returns, they survive power loss."""
        if stored := [_stored(message) for message in messages]:
            self.memory.sessions.open(self.session_id, agent=self.agent, provider="langchain").extend(stored)

    aadd_messages = threaded(add_messages)

    def clear(self) -> None:
        """Remove the session with its messages."""
        with suppress(NotFound):
            self.memory.sessions.get(self.session_id, agent=self.agent).end()

    aclear = threaded(clear)


def _stored(message: BaseMessage) -> dict[str, Any]:
    if not isinstance(message, BaseMessage):
        raise InvalidInput(f"a message is {shown(message)}: give a message of langchain_core.messages")
    stored: dict[str, Any] = cleaned_json(message.model_dump(mode="json"))
    return {"role": _ROLES.get(message.type, message.type), **stored}


def _as_message(stored: dict[str, Any]) -> BaseMessage:
    kind = stored.get("type")
    if "additional_kwargs" not in stored or not isinstance(kind, str):  # not stored here
        return convert_to_messages([stored])[0]
    data = stored if kind.lower().startswith("chat") else {key: stored[key] for key in stored if key != "role"}
    return messages_from_dict([{"type": kind, "data": data}])[0]
