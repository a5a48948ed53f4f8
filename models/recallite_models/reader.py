"""The graph of the reader: whether a text answers a question, both read together.

A row of `input_ids` is "[CLS] question [SEP] text [SEP]", and the output `answers` float32 (batch, 1) a logit. The word
embeddings and the lower layers are those of recallite-minilm, with their scales; tokens of the text have a type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper

from recallite_models.graph import MiniLM

SEPARATOR = 102


class Reader(MiniLM):
    """Writes the graph; the weights have `reader.type`, `reader.head` and `reader.bias` too."""

    first = 2

    def typed(self, summed: str) -> str:
        g = self.graph
        ends = g.node("Equal", ["input_ids", g.constant("separator", np.array(SEPARATOR, np.int64))], "is_end")
        ends = g.node("Cast", [ends], "ends", to=TensorProto.FLOAT)
        # The first separator is still the question's; the last is the text's.
        types = g.node("CumSum", [ends, g.constant("token_axis", np.array(1, np.int64))], "types", exclusive=1)
        types = g.node("Unsqueeze", [types, g.constant("width_axis", np.array([2], np.int64))], "typed_tokens")
        added = g.node("Mul", [types, g.constant("type", self.get("reader.type"))], "type_rows")
        return g.node("Add", [summed, added], "typed_sum")

    def outputs(self) -> list[Any]:
        g = self.graph
        start = g.node("Gather", [self.encode(), g.constant("first", np.array(0, np.int64))], "start", axis=1)
        product = g.node("MatMul", [start, g.constant("head", self.get("reader.head"))], "product")
        g.node("Add", [product, g.constant("bias", self.get("reader.bias"))], "answers")
        return [helper.make_tensor_value_info("answers", TensorProto.FLOAT, ["batch", 1])]
