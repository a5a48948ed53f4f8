"""A user's own model folder, without a manifest of ours."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recallite_models
from recallite.embedding import load
from recallite.embedding.load import read_folder, verified_sha256
from recallite.embedding.onnx import OnnxEmbedder
from recallite.embedding.protocol import Prefixes
from recallite.errors import EmbedderError
from tests.raising import raises
from tests.unit.core.embedding.token_vectors import token_vectors

TEXTS = ["a cat sat", "hello", "the quick brown fox jumps over the lazy dog again and again"]


@pytest.fixture
def unlabelled(tmp_path: Path) -> Path:
    bundled = recallite_models.path().with_suffix(".onnx")
    folder = tmp_path / "my-model"
    folder.mkdir()
    shutil.copy(bundled, folder / "model.onnx")
    for name in ("weights.bin", "tokenizer.json"):
        shutil.copy(bundled.with_name(name), folder)
    return folder


def write_tiny(folder: Path, *, pooling: str, output: str = "last_hidden_state", width: int = 8) -> None:
    """A model whose token vector is a fixed row of the vocabulary, with the three inputs of BERT."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    rows = np.random.default_rng(3).normal(size=(30522, width)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["rows", "input_ids"], ["words"]),
        helper.make_node("Add", ["attention_mask", "token_type_ids"], ["both"]),
        helper.make_node("Cast", ["both"], ["weights"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["weights", "last"], ["column"]),
        helper.make_node("Mul", ["words", "column"], ["masked"]),
        # Padding must not count even where a model leaves something there.
        helper.make_node("Add", ["masked", "one"], [output]),
    ]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"]) for name in names]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["b", "t", "w"])]
    constants = {"rows": rows, "last": np.array([2], np.int64), "one": np.array(1, np.float32)}
    initial = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initial)
    (folder / "onnx").mkdir(parents=True)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / "onnx" / "model.onnx")
    shutil.copy(recallite_models.path().with_name("tokenizer.json"), folder)
    write_json(
        folder / "1_Pooling" / "config.json", {f"pooling_mode_{pooling}": True, "word_embedding_dimension": width}
    )


def write_json(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def test_a_folder_without_manifest_loads_by_path(unlabelled: Path) -> None:
    mine, bundled = load(unlabelled), load()
    assert (mine.name, mine.dimension) == ("my-model", 384)
    assert mine.fingerprint != bundled.fingerprint
    (unlabelled / "sentence_bert_config.json").write_text('{"max_seq_length": 128}', "utf-8")
    assert read_folder(unlabelled).max_tokens == 128
    np.testing.assert_allclose(mine.embed(TEXTS), bundled.embed(TEXTS), atol=2e-2)


@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token"])
@pytest.mark.parametrize("output", ["last_hidden_state", "token_embeddings"])
def test_token_outputs_are_pooled_without_padding(tmp_path: Path, pooling: str, output: str) -> None:
    write_tiny(tmp_path / "tiny", pooling=pooling, output=output)
    embedder = OnnxEmbedder(tmp_path / "tiny")
    assert embedder.dimension == 8
    together = embedder.embed(TEXTS)
    for row, text, tokens in zip(together, TEXTS, token_vectors(embedder, TEXTS), strict=True):
        pooled = tokens.mean(axis=0) if pooling == "mean_tokens" else tokens[0]
        np.testing.assert_allclose(row, pooled / np.linalg.norm(pooled), atol=1e-5)
        np.testing.assert_allclose(row, embedder.embed([text])[0], atol=1e-5)


def test_pooling_and_window_change_the_fingerprint(tmp_path: Path) -> None:
    prints = set()
    for pooling in ("mean_tokens", "cls_token"):
        write_tiny(tmp_path / pooling, pooling=pooling)
        prints.add(OnnxEmbedder(tmp_path / pooling).fingerprint)
        write_json(tmp_path / pooling / "config.json", {"max_position_embeddings": 64})
        assert read_folder(tmp_path / pooling).max_tokens == 64
        prints.add(OnnxEmbedder(tmp_path / pooling).fingerprint)
    assert len(prints) == 4


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ({}, 512),
        ({"tokenizer_config.json": {"model_max_length": 10**30}}, 512),
        ({"config.json": {"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}}, 512),
        ({"sentence_bert_config.json": {"max_seq_length": 256}, "config.json": {"max_position_embeddings": 512}}, 256),
    ],
)
def test_the_window_is_the_smallest_stated(unlabelled: Path, configs: dict[str, Any], expected: int) -> None:
    for name, value in configs.items():
        write_json(unlabelled / name, value)
    assert read_folder(unlabelled).max_tokens == expected


def test_weights_in_a_file_of_their_own_are_part_of_the_fingerprint(unlabelled: Path) -> None:
    alone = verified_sha256(read_folder(unlabelled))
    (unlabelled / "model.onnx_data").write_bytes(b"weights")
    first = verified_sha256(read_folder(unlabelled))
    (unlabelled / "model.onnx_data").write_bytes(b"weights, trained further")
    assert len({alone, first, verified_sha256(read_folder(unlabelled))}) == 3


def test_other_pooling_is_refused(unlabelled: Path) -> None:
    write_json(unlabelled / "1_Pooling" / "config.json", {"pooling_mode_max_tokens": True})
    with raises(EmbedderError, "invalid_model", match="knows mean and cls"):
        OnnxEmbedder(unlabelled)


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with raises(EmbedderError, "invalid_model", match=r"model\.onnx is absent"):
        load(tmp_path)
    with raises(EmbedderError, "invalid_model", match="no folder"):
        load(tmp_path / "absent")


def test_a_broken_model_is_refused(unlabelled: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (unlabelled / "model.onnx").write_bytes(b"not onnx")
    with raises(EmbedderError, "invalid_model", match="cannot be loaded by ONNX Runtime"):
        load(unlabelled)
    assert capfd.readouterr().out == ""
    (unlabelled / "tokenizer.json").write_text("{}", "utf-8")
    with raises(EmbedderError, "invalid_model", match="no tokenizer that can be read"):
        load(unlabelled)


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_an_absent_package_is_named_with_the_remedy(
    unlabelled: Path, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with raises(EmbedderError, "missing", match=f"cannot embed without {package}: pip install"):
        load(unlabelled)


def test_prompts_of_sentence_transformers_go_before_texts_unless_others_are_given(unlabelled: Path) -> None:
    plain = load(unlabelled)
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    (unlabelled / "config_sentence_transformers.json").write_text(json.dumps(prompts), "utf-8")
    prompted = load(unlabelled)
    assert prompted.fingerprint != plain.fingerprint
    # A prefix has the tokens that it would have in the text.
    np.testing.assert_allclose(prompted.embed(["a cat sat"]), plain.embed(["query: a cat sat"]), atol=1e-5)
    documents = prompted.embed_documents(["a cat sat"], ["Ada"]).vectors
    np.testing.assert_allclose(documents, plain.embed_documents(["passage: Ada: a cat sat"], [None]).vectors, atol=1e-5)
    other = load(unlabelled, prefixes=Prefixes("ask ", ""))
    np.testing.assert_allclose(other.embed(["a cat sat"]), plain.embed(["ask a cat sat"]), atol=1e-5)


def test_the_hash_of_a_file_is_kept_for_its_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loading = import_module("recallite.embedding.load")
    monkeypatch.setenv("RECALLITE_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "model.onnx"
    file.write_bytes(b"one")
    loading.known_sha256(file)
    assert not (tmp_path / "cache").exists()  # it may still change within a tick
    monkeypatch.setattr(loading, "_STEADY_NS", 0)
    loading.known_sha256(file)
    (kept,) = (tmp_path / "cache" / "models").iterdir()
    kept.write_bytes(b"0" * 64 + kept.read_bytes()[64:])
    assert loading.known_sha256(file) == "0" * 64
    kept.parent.chmod(0o755)
    assert loading.known_sha256(file) == hashlib.sha256(b"one").hexdigest()
    kept.parent.chmod(0o700)
    file.write_bytes(b"two")
    assert loading.known_sha256(file) == hashlib.sha256(b"two").hexdigest()
    # One is kept for a file, whatever states it was in, and none for a file that is gone.
    assert [*kept.parent.iterdir()] == [kept]
    moved = file.rename(tmp_path / "moved.onnx")
    assert loading.known_sha256(moved) == hashlib.sha256(b"two").hexdigest()
    assert len([*kept.parent.iterdir()]) == 1
    assert not kept.exists()
