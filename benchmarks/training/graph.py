"""The ONNX graph of all-MiniLM-L6-v2 and of what was trained from it, written node by node: no torch, no exporter.

Two forms of one graph: `float32` (the reference) and `int8` (what ships). Both have one input,
`input_ids` int64 (batch, tokens), and two outputs: `sentence_embedding` float32 (batch, 384), mean pooled and
of unit length, and `token_embeddings` float32 (batch, tokens, 384). There is no attention mask on purpose: rows
of a batch have the same number of tokens, so there is no padding to mask.

Choices of the int8 form; figures are of one core, AVX-512 VNNI, chat turns of 33 tokens, ratios of one run:
- Activations are quantised with fixed, per-channel smoothed scales (SmoothQuant, arXiv:2211.10438). Cosine to
  float32 0.998 against 0.994 of dynamic quantisation, at the same speed, and a vector does not depend on its
  batch: with dynamic scales the same text alone and in a batch agree to a cosine of 0.992 only.
- Add and LayerNormalization, not com.microsoft.SkipLayerNormalization: that took 19 % of a run, these 5 %.
- Gelu behind the bias of the matrix product, not BiasGelu: half the time of the operator (11 % of a run).
- Three products on one quantised input and MultiHeadAttention without a mask: 1.12 times QAttention's rate on
  passages of 256 tokens, 1.02 times on chat turns, the same on one query.
- Weights are int8 per output column: one scale per tensor drops the cosine to 0.960.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
Ranges = Mapping[str, Array]

OPSET = 17
IR_VERSION = 9
WIDTH, HEADS, LAYERS = 384, 12, 6
MAX_TOKENS = 256
EPSILON = 1e-12
CONTRIB = "com.microsoft"
SEPARATOR = 102


class Graph:
    """Nodes and constants in the order they are added."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}
        self.constants: dict[str, Any] = {}

    def constant(self, name: str, values: Array) -> str:
        """Add a constant once; returns its name."""
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output once; returns the output's name."""
        if output not in self.nodes:
            self.nodes[output] = helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes)
        return output


def smoothing(low: Array, high: Array) -> tuple[Array, float, int]:
    """Divisor per channel, scale and zero point of uint8 for activations seen within [low, high] per channel.

    The divisor is the channel's largest magnitude to the power 3/4: on paragraphs of `pydoc_data.topics` 1, 3/4,
    0.7 and 0.5 gave a mean cosine of 0.9976, 0.9983, 0.9983 and 0.9976. Square roots only, so that every machine
    computes the same bits. Ranges are used as seen: 0.9, 1.1 and 1.25 times as wide gave 0.9949, 0.9981 and 0.9979.
    """
    largest = np.maximum(np.maximum(np.abs(low), np.abs(high)), 1e-3).astype(np.float32)
    divisor = np.sqrt(largest * np.sqrt(largest))
    bottom, top = min(float((low / divisor).min()), 0.0), max(float((high / divisor).max()), 0.0)
    scale = float(np.float32((top - bottom) / 255))
    return divisor, scale, int(np.clip(round(-bottom / scale), 0, 255))


def quantise_rows(weights: Array) -> tuple[Array, Array]:
    """Symmetric int8 with one float32 scale per row: (values, scales (rows, 1))."""
    scales = (np.abs(weights).max(axis=1, keepdims=True) / 127).astype(np.float32)
    return np.clip(np.round(weights / scales), -127, 127).astype(np.int8), scales


class MiniLM:
    """Writes the graph from the weights of the checkpoint; `ranges` None keeps everything float32.

    `first` is the first layer whose ranges are the model's own.
    """

    first, layers = 0, LAYERS

    def __init__(self, weights: Mapping[str, Array], ranges: Ranges | None) -> None:
        self.graph = Graph()
        self.weights = weights
        self.ranges = ranges
        self.sites: dict[str, str] = {}

    def get(self, name: str) -> Array:
        return self.weights[name].astype(np.float32)

    def normalise(self, summed: str, source: str, output: str) -> str:
        gamma = self.graph.constant(f"{output}.gamma", self.get(f"{source}.weight"))
        beta = self.graph.constant(f"{output}.beta", self.get(f"{source}.bias"))
        return self.graph.node("LayerNormalization", [summed, gamma, beta], output, axis=-1, epsilon=EPSILON)

    def word_rows(self) -> str:
        """The word embeddings of the tokens."""
        g, words = self.graph, self.get("embeddings.word_embeddings.weight")
        if self.ranges is None:
            return g.node("Gather", [g.constant("words", words), "input_ids"], "word_rows")
        values, scales = quantise_rows(words)
        codes = g.node("Gather", [g.constant("words", values), "input_ids"], "word_codes")
        codes = g.node("Cast", [codes], "word_floats", to=TensorProto.FLOAT)
        steps = g.node("Gather", [g.constant("word_scales", scales), "input_ids"], "word_steps")
        return g.node("Mul", [codes, steps], "word_rows")

    def embed(self) -> str:
        g = self.graph
        # Every text is of token type 0, so its row joins the positions.
        places = self.get("embeddings.position_embeddings.weight")[:MAX_TOKENS]
        places = places + self.get("embeddings.token_type_embeddings.weight")[0]
        rows = self.word_rows()
        shape = g.node("Shape", ["input_ids"], "shape")
        one = g.constant("one", np.array([1], np.int64))
        tokens = g.node("Gather", [shape, one], "tokens")
        start = g.constant("zero", np.array([0], np.int64))
        positions = g.node("Slice", [g.constant("positions", places), start, tokens], "position_rows")
        summed = self.typed(g.node("Add", [rows, positions], "embedding_sum"))
        return self.normalise(summed, "embeddings.LayerNorm", "embedded")

    def typed(self, summed: str) -> str:
        """The embeddings with the types of tokens; those of one text are of type 0, which is in the positions."""
        return summed

    def divide(self, x: str, site: str) -> str:
        """Smooth the channels of `x` ahead of quantisation."""
        if self.ranges is None:
            return x
        divisor = smoothing(*self.ranges[site])[0]
        return self.graph.node("Mul", [x, self.graph.constant(f"{site}.inverse", 1 / divisor)], f"{site}.smooth")

    def quantise(self, x: str, site: str) -> str:
        self.sites[site] = x
        if self.ranges is None:
            return x
        _, scale, zero = smoothing(*self.ranges[site])
        parts = [
            self.graph.constant(f"{site}.scale", np.array(scale, np.float32)),
            self.graph.constant(f"{site}.zero", np.array(zero, np.uint8)),
        ]
        return self.graph.node("QuantizeLinear", [x, *parts], f"{site}.codes")

    def product(self, x: str, site: str, weights: Array, bias: Array, output: str) -> str:
        """`x @ weights + bias`, `x` as `quantise` left it."""
        g = self.graph
        offset = g.constant(f"{output}.bias", bias)
        if self.ranges is None:
            return g.node(
                "Add",
                [g.node("MatMul", [x, g.constant(f"{output}.w", weights)], f"{output}.xw"), offset],
                output,
            )
        divisor = smoothing(*self.ranges[site])[0]
        values, scales = quantise_rows((weights * divisor[:, None]).T)
        inputs = [
            x,
            g.constant(f"{output}.w", values.T),
            f"{site}.scale",
            g.constant(f"{output}.scales", scales[:, 0]),
            f"{site}.zero",
            "",
            offset,
        ]
        return g.node("MatMulIntegerToFloat", inputs, output, CONTRIB)

    def linear(self, source: str) -> tuple[Array, Array]:
        return self.get(f"{source}.weight").T, self.get(f"{source}.bias")

    def wanted(self, x: str, layer: int) -> str:
        """The tokens of `x` whose outputs of a layer are needed: all."""
        return x

    def attend(self, x: str, layer: int, source: str) -> str:
        site, out_site = f"{layer}.projected", f"{layer}.attended"
        codes = self.quantise(self.divide(x, site), site)
        projections = []
        for role in ("query", "key", "value"):
            weights, bias = self.linear(f"{source}.attention.self.{role}")
            if role == "value" and self.ranges is not None:
                # Attention averages values, so their channels can be smoothed in the weights for nothing.
                divisor = smoothing(*self.ranges[out_site])[0]
                weights, bias = weights / divisor, bias / divisor
            read = self.wanted(codes, layer) if role == "query" else codes
            projections.append(self.product(read, site, weights, bias, f"{layer}.{role}"))
        mixed = self.graph.node("MultiHeadAttention", projections, f"{layer}.mixed", CONTRIB, num_heads=HEADS)
        weights, bias = self.linear(f"{source}.attention.output.dense")
        return self.product(self.quantise(mixed, out_site), out_site, weights, bias, f"{layer}.attention")

    def widen(self, x: str, layer: int, source: str) -> str:
        site, inner_site = f"{layer}.widened", f"{layer}.activated"
        weights, bias = self.linear(f"{source}.intermediate.dense")
        wide = self.product(self.quantise(self.divide(x, site), site), site, weights, bias, f"{layer}.wide")
        active = self.graph.node("Gelu", [wide], f"{layer}.gelu", CONTRIB)
        weights, bias = self.linear(f"{source}.output.dense")
        codes = self.quantise(self.divide(active, inner_site), inner_site)
        return self.product(codes, inner_site, weights, bias, f"{layer}.narrow")

    def encode(self) -> str:
        """The outputs of the last layer."""
        g = self.graph
        x = self.embed()
        for layer in range(self.layers):
            source = f"encoder.layer.{layer}"
            summed = g.node("Add", [self.wanted(x, layer), self.attend(x, layer, source)], f"{layer}.sum1")
            x = self.normalise(summed, f"{source}.attention.output.LayerNorm", f"{layer}.norm1")
            summed = g.node("Add", [x, self.widen(x, layer, source)], f"{layer}.sum2")
            last = layer == self.layers - 1
            x = self.normalise(summed, f"{source}.output.LayerNorm", "token_embeddings" if last else f"{layer}.norm2")
        return x

    def outputs(self) -> list[Any]:
        """Add the nodes behind the last layer; returns what they give."""
        mean = self.graph.node("ReduceMean", [self.encode()], "mean", axes=[1], keepdims=0)
        self.graph.node("LpNormalization", [mean], "sentence_embedding", axis=-1, p=2)
        return [
            helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["batch", WIDTH]),
            helper.make_tensor_value_info("token_embeddings", TensorProto.FLOAT, ["batch", "tokens", WIDTH]),
        ]

    def model(self, name: str, *, expose: bool = False) -> Any:
        """The finished model; `expose` adds the inputs of every product as outputs (for calibration)."""
        g, outputs = self.graph, self.outputs()
        if expose:
            extra = dict.fromkeys(self.sites.values())
            outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in extra]
        ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])
        graph = helper.make_graph([*g.nodes.values()], name, [ids], outputs, list(g.constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="recallite")


class Reader(MiniLM):
    """Writes the graph of the reader: whether a text answers a question, both read together.

    A row of `input_ids` is "[CLS] question [SEP] text [SEP]", and the output `answers` float32 (batch, 1) a logit. The
    word embeddings and the lower layers are those of recallite-minilm, with their scales; tokens of the text have a
    type. The weights have `reader.type`, `reader.head` and `reader.bias` too.
    """

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

    def wanted(self, x: str, layer: int) -> str:
        """The first token alone of the last layer, as the answer is read from it."""
        if layer < self.layers - 1:
            return x
        g = self.graph
        ends = [g.constant(f"first_{end}", np.array([at], np.int64)) for end, at in (("begin", 0), ("end", 1))]
        return g.node("Slice", [x, *ends, g.constant("places", np.array([1], np.int64))], f"{x}.first")

    def outputs(self) -> list[Any]:
        g = self.graph
        product = g.node("MatMul", [self.encode(), g.constant("head", self.get("reader.head"))], "product")
        g.node("Add", [product, g.constant("bias", self.get("reader.bias"))], "answers")
        return [helper.make_tensor_value_info("answers", TensorProto.FLOAT, ["batch", 1])]
