"""LlamaIndex's tests of VectorMemoryBlock with ours in the place of theirs."""

from __future__ import annotations

from types import SimpleNamespace

import llama_index.core.memory.memory_blocks.vector

from recallite_connect.llama_index import RecalliteMemoryBlock


class VectorMemoryBlock(RecalliteMemoryBlock):
    """Ours on a memory of its own, which takes the place of the vector store and the embedding model that are given."""

    def __init__(self, *, vector_store, embed_model, **fields):
        assert vector_store is not None
        assert embed_model is not None
        super().__init__(memory=":memory:", **fields)

    @property
    def vector_store(self):
        return SimpleNamespace(nodes={record.id: record for record in self._scoped.list()})


llama_index.core.memory.memory_blocks.vector.VectorMemoryBlock = VectorMemoryBlock
