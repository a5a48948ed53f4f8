"""Models that share their weights: small graphs beside one file of constants.

The file holds the large constants of one model, the base. A graph refers to those that it has unchanged, as ONNX
external data. An int8 matrix that differs from the base's is stored as its difference, which takes 40 % of the space
in a zip archive; the graph adds the two, once, as ONNX Runtime loads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

WEIGHTS = "weights.bin"
_SMALLEST_BYTES = 1024
_ALIGNMENT_BYTES = 64
_BASE, _CHANGE, _WIDE = ".base", ".change", ".int32"


def weights_of(base: Any) -> tuple[bytes, dict[str, tuple[int, bytes]]]:
    """The file of the base's large constants, and the offset and bytes of each by its name."""
    content, places = bytearray(), {}
    for constant in base.graph.initializer:
        if len(constant.raw_data) >= _SMALLEST_BYTES:
            content += bytes(-len(content) % _ALIGNMENT_BYTES)
            places[constant.name] = (len(content), constant.raw_data)
            content += constant.raw_data
    return bytes(content), places


def split(model: Any, places: Mapping[str, tuple[int, bytes]]) -> Any:
    """The model with references to the file of `weights_of` in place of its constants; `model` is changed."""
    changes, sums = [], []
    for constant in model.graph.initializer:
        offset, shared = places.get(constant.name, (0, b""))
        if constant.raw_data != shared:
            if constant.data_type != TensorProto.INT8 or len(constant.raw_data) != len(shared):
                continue
            name, change = constant.name, np.frombuffer(constant.raw_data, np.int8).astype(np.int16)
            change -= np.frombuffer(shared, np.int8)
            if np.abs(change).max() > 127:
                continue
            changes.append(numpy_helper.from_array(change.astype(np.int8).reshape(constant.dims), name + _CHANGE))
            # QLinearAdd would need no casts, but ONNX Runtime does not fold it: it took a quarter of every run.
            parts = [name + _BASE, name + _CHANGE]
            sums += [helper.make_node("Cast", [part], [part + _WIDE], to=TensorProto.INT32) for part in parts]
            sums.append(helper.make_node("Add", [part + _WIDE for part in parts], [name + _WIDE]))
            sums.append(helper.make_node("Cast", [name + _WIDE], [name], to=TensorProto.INT8))
            constant.name = name + _BASE
        constant.ClearField("raw_data")
        constant.data_location = TensorProto.EXTERNAL
        for key, value in (("location", WEIGHTS), ("offset", offset), ("length", len(shared))):
            constant.external_data.add(key=key, value=str(value))
    nodes = [*sums, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(changes)
    return model


def join(file: Path) -> Any:
    """The whole model that `split` took apart: with its own constants and no sums."""
    import onnx

    model = onnx.load(file)
    changes = {}
    for constant in list(model.graph.initializer):
        constant.ClearField("data_location")
        if constant.name.endswith(_CHANGE):
            changes[constant.name.removesuffix(_CHANGE)] = numpy_helper.to_array(constant)
            model.graph.initializer.remove(constant)
    for constant in model.graph.initializer:
        name = constant.name.removesuffix(_BASE)
        if name in changes:
            constant.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(constant) + changes[name], name))
    nodes = [node for node in model.graph.node if not any(_WIDE in name for name in (*node.input, *node.output))]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model
