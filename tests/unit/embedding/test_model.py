"""The bundled models: their vectors, their manifests, and that the build script makes these very files."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import recallite_models
from recallite import Memory, Settings
from recallite.embedding.onnx import OnnxEmbedder
from recallite.errors import EmbedderError, EmbedderMismatch
from tests.raising import raises

# Published for sentence-transformers/all-MiniLM-L6-v2 (float32).
PAIRS = [
    ("The new movie is awesome", "The new movie is so great", 0.8939),
    ("The cat sits outside", "The dog plays in the garden", 0.2838),
    ("A man is playing guitar", "A woman watches TV", -0.0327),
]
MODELS = (recallite_models.DEFAULT, recallite_models.ORIGINAL)
# Vectors of the float32 models, five decimals.
GOLDEN = json.loads((Path(__file__).parent / "golden.json").read_text("utf-8"))


@pytest.fixture(scope="module", params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def embedder(model: str) -> OnnxEmbedder:
    return OnnxEmbedder(recallite_models.path(model))


@pytest.fixture
def model_copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(recallite_models.path(), tmp_path / "model"))


def weights() -> Path:
    """The folder of the float32 weights, named by RECALLITE_TEST_WEIGHTS."""
    pytest.importorskip("onnx")
    pytest.importorskip("safetensors")
    folder = os.environ.get("RECALLITE_TEST_WEIGHTS")
    if folder is None:
        pytest.skip("set RECALLITE_TEST_WEIGHTS to a folder with model.safetensors and tokenizer.json")
    return Path(folder)


@pytest.mark.parametrize(("first", "second", "published"), PAIRS)
def test_reference_pairs_within_tolerance(first: str, second: str, published: float) -> None:
    a, b = OnnxEmbedder(recallite_models.path(recallite_models.ORIGINAL)).embed([first, second])
    assert float(a @ b) == pytest.approx(published, abs=0.015)


def test_vectors_agree_with_the_float32_model(model: str, embedder: OnnxEmbedder) -> None:
    vectors = embedder.embed(list(GOLDEN[model]))
    golden = np.array(list(GOLDEN[model].values()), np.float32)
    assert golden.shape == vectors.shape
    cosines = np.einsum("ij,ij->i", vectors, golden) / np.linalg.norm(golden, axis=1)
    assert cosines.mean() > 0.995
    assert cosines.min() > 0.98


def test_the_files_match_their_manifest(model: str) -> None:
    from recallite_models.build import manifest

    folder = recallite_models.path(model)
    stated = json.loads((folder / "manifest.json").read_text("utf-8"))
    for name, entry in stated["files"].items():
        assert (folder / name).stat().st_size == entry["size"]
    pytest.importorskip("onnx")
    assert manifest(folder, model) == stated


def test_the_trained_model_names_its_data_and_their_licences() -> None:
    from recallite_models.training.data import sources

    stated = json.loads((recallite_models.path() / "manifest.json").read_text("utf-8"))["training"]
    notice = (recallite_models.path() / "NOTICE").read_text("utf-8")
    named = {entry["repository"]: entry["commit"] for entry in stated["data"] if "repository" in entry}
    assert named == {repository: pin["commit"] for repository, pin in sources().items()}
    assert all(repository in notice for repository in named)


def test_the_model_is_carried_with_its_licence(model: str) -> None:
    folder = recallite_models.path(model)
    assert "Apache License" in (folder / "LICENSE").read_text("utf-8")
    assert "sentence-transformers/all-MiniLM-L6-v2" in (folder / "NOTICE").read_text("utf-8")


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_changed_byte_is_refused(model_copy: Path, name: str) -> None:
    file = model_copy / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with raises(EmbedderError, "invalid_model", match=f"{name} is not what its manifest says"):
        OnnxEmbedder(model_copy)


def test_a_truncated_file_is_refused(model_copy: Path) -> None:
    os.truncate(model_copy / "model.onnx", 1000)
    with raises(EmbedderError, "invalid_model", match=r"model\.onnx has 1,000 bytes"):
        OnnxEmbedder(model_copy)


def test_an_absent_file_is_named(model_copy: Path) -> None:
    (model_copy / "tokenizer.json").unlink()
    with raises(EmbedderError, "invalid_model", match=r"tokenizer\.json is absent"):
        OnnxEmbedder(model_copy)


def test_a_manifest_that_is_no_manifest_is_refused(model_copy: Path) -> None:
    (model_copy / "manifest.json").write_text("{}", "utf-8")
    with raises(EmbedderError, "invalid_model", match="cannot be understood"):
        OnnxEmbedder(model_copy)


@pytest.mark.slow
def test_the_build_reproduces_the_committed_files(model: str, tmp_path: Path) -> None:
    from recallite_models.build import build

    build(weights(), tmp_path, model)
    for name in ("manifest.json", "tokenizer.json", "model.onnx"):
        assert (tmp_path / name).read_bytes() == (recallite_models.path(model) / name).read_bytes(), name


def test_calibration_covers_each_text_and_every_position() -> None:
    pytest.importorskip("onnx")
    from recallite_models.calibrate import TEXTS, read, windows

    long = [1, *range(10, 410), 2]
    seen = list(windows([[1, 7, 8, 2], long]))
    assert seen[0] == [1, 7, 8, 2]
    assert seen[1] == [*long[:255], 2]
    assert seen[2] == [1, 7, 8, *range(10, 262), 2]
    assert seen[3] == [1, *range(262, 410), 2]
    texts = read(TEXTS)
    assert len(texts) == len(set(texts)) == 774


@pytest.mark.slow
def test_the_ranges_come_from_the_committed_texts(model: str) -> None:
    pytest.importorskip("onnx")
    from recallite_models.build import RANGES
    from recallite_models.calibrate import TEXTS, ranges, read

    found = ranges(weights(), read(TEXTS), model)
    with np.load(RANGES[model]) as stored:
        assert set(stored.files) == set(found)
        for site in stored.files:
            np.testing.assert_allclose(found[site], stored[site], rtol=2e-3, atol=2e-3)


@pytest.mark.slow
def test_the_float32_graph_gives_the_published_figures(model: str, tmp_path: Path) -> None:
    from recallite_models.build import build

    build(weights(), tmp_path, model, float32=True)
    float32 = OnnxEmbedder(tmp_path)
    assert float32.max_tokens == 256
    for first, second, published in PAIRS if model == recallite_models.ORIGINAL else ():
        a, b = float32.embed([first, second])
        assert round(float(a @ b), 4) == published
    np.testing.assert_allclose(float32.embed(list(GOLDEN[model])), list(GOLDEN[model].values()), atol=2e-5)


@pytest.mark.slow
def test_other_weights_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    pytest.importorskip("onnx")
    from recallite_models.build import write_model

    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(SystemExit, match="not the model's weights"):
        write_model(tmp_path, tmp_path / "model.onnx", recallite_models.DEFAULT)


def test_a_store_of_the_original_model_says_how_to_open_or_move_it(tmp_path: Path) -> None:
    store, original = tmp_path / "notes.db", Settings(embedder=recallite_models.ORIGINAL)
    with Memory(store, settings=original) as memory:
        memory.remember("The spare key is at the neighbour's")
    with (
        Memory(store) as memory,
        pytest.raises(EmbedderMismatch, match=r"reembed; or open it with Settings\(embedder='all-MiniLM-L6-v2'\)"),
    ):
        memory.recall("Who has the key?", mode="vector")
    with Memory(store, settings=original) as memory:
        assert len(memory.recall("Who has the key?", mode="vector")) == 1
    with Memory(store) as memory:
        assert memory.store.reembed() == 1
        assert len(memory.recall("Who has the key?", mode="vector")) == 1
