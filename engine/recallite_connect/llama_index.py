"""LlamaIndex's `BaseMemoryBlock` and `BaseRetriever`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from recallite.memory import Memory
from recallite.model.checks import MAX_QUERY_CHARS
from recallite.model.records import Hit
from recallite_connect.common import OnMemory, in_thread, marks_of, needed, threaded
from recallite_connect.importers.reading import cleaned

with needed("llama-index"):
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage, TextBlock
    from llama_index.core.bridge.pydantic import Field, PrivateAttr
    from llama_index.core.memory.memory import BaseMemoryBlock
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.prompts import BasePromptTemplate
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from llama_index.core.utils import get_tokenizer

KIND = "message"
"""The kind of the records of messages."""

_SEPARATOR = "\n\n"


class RecalliteRetriever(OnMemory, BaseRetriever):
    """A `BaseRetriever` that recalls: what is remembered becomes nodes, best first.

    - memory: a Memory, or the path of a file, which `close` closes
    - similarity_top_k: how many nodes
    - options: those of `Memory.recall`, such as {"scope": "/users/ada", "token_budget": 500}

    The metadata of a node are those of the memory, with its scope, kind, created_at and confidence.
    """

    def __init__(
        self,
        memory: Memory | str | os.PathLike[str],
        *,
        similarity_top_k: int = 10,
        options: Mapping[str, Any] | None = None,
        **base: Any,
    ) -> None:
        OnMemory.__init__(self, memory)
        BaseRetriever.__init__(self, **base)
        self.similarity_top_k, self.options = similarity_top_k, dict(options or {})

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return _nodes(self.memory, query_bundle.query_str, self.similarity_top_k, self.options)

    _aretrieve = threaded(_retrieve)


class RecalliteMemoryBlock(BaseMemoryBlock[str]):
    """A `BaseMemoryBlock` that remembers the messages that leave the short-term memory, and recalls what fits the last.

    - memory: a Memory, or the path of a file, which `close` closes
    - scope: where messages are kept and searched, such as "/users/ada"; all else that is remembered there is found too
    - across_sessions: False recalls messages of the session alone
    - similarity_top_k: how many memories are recalled
    - retrieval_context_window: the last messages of the user that are the query
    - node_postprocessors, format_template: as in LlamaIndex's VectorMemoryBlock; the template has the variable `text`

    A message is a record of the kind "message": its text, the role as context, the session as source, and its position
    in it. A memory that is truncated loses what fits least.
    """

    name: str = "Recallite"
    memory: Any = Field(exclude=True)
    scope: str = "/"
    across_sessions: bool = True
    similarity_top_k: int = Field(default=5, ge=1)
    retrieval_context_window: int = Field(default=1, ge=1)
    node_postprocessors: list[BaseNodePostprocessor] = Field(default_factory=list)
    format_template: BasePromptTemplate | None = None
    _opened: OnMemory = PrivateAttr()
    _scoped: Memory = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Open the file, if a path was given."""
        self._opened = OnMemory(self.memory)
        self._scoped = self._opened.memory.scoped(self.scope)

    def close(self) -> None:
        """Close the file if it was opened here."""
        self._opened.close()

    async def _aget(
        self, messages: Sequence[ChatMessage] | None = None, session_id: str | None = None, **_: Any
    ) -> str:
        query = self._query(messages or ())
        if not query.strip():
            return ""
        options: dict[str, Any] = {"relevant": True}
        if not self.across_sessions and session_id is not None:
            options["where"] = {"source": session_id}
        nodes = await in_thread(_nodes, self._scoped, query, self.similarity_top_k, options)
        for postprocessor in self.node_postprocessors:
            nodes = await postprocessor.apostprocess_nodes(nodes, query_str=query)
        text = _SEPARATOR.join(node.node.get_content() for node in nodes)
        return text if self.format_template is None or not text else str(self.format_template.format(text=text))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Return the content without its last memories, as many as have this number of tokens; None if none is left."""
        tokens = get_tokenizer()
        parts = content.split(_SEPARATOR)
        removed = 0
        while parts and removed < tokens_to_truncate:
            removed += len(tokens(parts.pop()))
        return _SEPARATOR.join(parts) or None

    def _query(self, messages: Sequence[ChatMessage]) -> str:
        spoken = [message for message in messages if message.role == "user" and _text(message)]
        spoken = spoken or [message for message in messages if _text(message)]
        return "\n".join(map(_text, spoken[-self.retrieval_context_window :]))[-MAX_QUERY_CHARS:]

    def _remember(self, messages: Sequence[ChatMessage]) -> None:
        texts = [{"text": text, "context": message.role.value} for message in messages if (text := _text(message))]
        with self._scoped.transaction(embed=texts):
            items: list[dict[str, Any]] = []
            positions: dict[str, int] = {}
            for message in messages:
                text = _text(message)
                if not text:
                    continue
                session = message.additional_kwargs.get("session_id")
                item: dict[str, Any] = {"text": text, "kind": KIND, "context": message.role.value}
                if session is not None:
                    if session not in positions:
                        positions[session] = self._length(session)
                    item |= {"source": session, "position": positions[session]}
                    positions[session] += 1
                items.append(item)
            self._scoped.remember_many(items)

    _aput = threaded(_remember)

    def _length(self, session: str) -> int:
        """The position after the last message of a session."""
        last = self._scoped.list(kinds=KIND, where={"source": session}, limit=1, include_superseded=True)
        return 0 if not last or last[0].position is None else last[0].position + 1


def _nodes(memory: Memory, query: str, limit: int, options: Mapping[str, Any]) -> list[NodeWithScore]:
    return [_node(hit) for hit in memory.recall(query, limit=limit, **options)]


def _node(hit: Hit) -> NodeWithScore:
    metadata = {
        **hit.metadata, "scope": hit.scope, "kind": hit.kind, "created_at": hit.created_at.isoformat(),
        "confidence": hit.confidence,
    }  # fmt: skip
    if hit.context is not None:
        metadata["context"] = hit.context
    hidden = [*metadata]  # a model and an embedder see the text, and what it was replaced by
    node = TextNode(
        id_=hit.id, text=hit.text, metadata=metadata | marks_of(hit), excluded_llm_metadata_keys=hidden,
        excluded_embed_metadata_keys=hidden,
    )  # fmt: skip
    return NodeWithScore(node=node, score=hit.score)


def _text(message: ChatMessage) -> str:
    """The text of a message, without pictures and tool calls."""
    return cleaned(
        "\n".join(block.text for block in message.blocks if isinstance(block, TextBlock) and block.text.strip())
    )
