"""The bundled models: their vectors, their manifests, and that the build script makes these very files."""

from __future__ import annotations

import hashlib
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
# The models as one ONNX file each: their vectors are in stores.
WHOLE = {
    recallite_models.DEFAULT: "57c5fba134d5779d4d6f37a073c750e79950adaec69994861d379071413d45d0",
    recallite_models.ORIGINAL: "67bb0b93cb1a8d0d65772a6b5f6aa49f29fe01514d4c27b145245fcf7071edf0",
}
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
    manifest = recallite_models.path()
    return Path(shutil.copytree(manifest.parent, tmp_path / "model")) / manifest.name


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
    path = recallite_models.path(model)
    stated = json.loads(path.read_text("utf-8"))
    for name, entry in stated["files"].items():
        assert (path.parent / name).stat().st_size == entry["size"]
    pytest.importorskip("onnx")
    from benchmarks.training.build import manifest

    assert manifest(path.parent, model, stated["sha256"]) == stated


def test_the_parts_of_a_model_are_the_whole_that_gave_every_stored_vector(model: str) -> None:
    pytest.importorskip("onnx")
    from benchmarks.training.build import serialised
    from benchmarks.training.sharing import join

    path = recallite_models.path(model)
    whole = hashlib.sha256(serialised(join(path.with_suffix(".onnx")))).hexdigest()
    assert whole == json.loads(path.read_text("utf-8"))["sha256"] == WHOLE[model]


def test_vectors_from_the_parts_are_bit_for_bit_those_of_the_whole(
    model: str, embedder: OnnxEmbedder, tmp_path: Path
) -> None:
    pytest.importorskip("onnx")
    from benchmarks.training.build import serialised
    from benchmarks.training.sharing import join

    path = recallite_models.path(model)
    for name in (path.name, "tokenizer.json"):
        shutil.copy(path.with_name(name), tmp_path)
    file = (tmp_path / path.name).with_suffix(".onnx")
    file.write_bytes(serialised(join(path.with_suffix(".onnx"))))
    described = json.loads(path.read_text("utf-8"))
    described["files"] = {file.name: {"sha256": WHOLE[model], "size": file.stat().st_size}}
    (tmp_path / path.name).write_text(json.dumps(described), "utf-8")
    whole = OnnxEmbedder(tmp_path / path.name)
    assert whole.fingerprint == embedder.fingerprint
    assert whole.embed(list(GOLDEN[model])).tobytes() == embedder.embed(list(GOLDEN[model])).tobytes()


def test_models_have_no_constant_of_their_own_that_the_base_has() -> None:
    sizes = [recallite_models.path(name).with_suffix(".onnx").stat().st_size for name in MODELS]
    assert sizes[0] < 40_000
    assert sizes[1] < 3_700_000


@pytest.mark.parametrize(
    ("trained", "module"), [(recallite_models.DEFAULT, "vectors"), (recallite_models.READER, "reader")]
)
def test_a_trained_model_names_its_data_and_their_licences(trained: str, module: str) -> None:
    from benchmarks.training.data import used_by

    stated = json.loads(recallite_models.path(trained).read_text("utf-8"))["training"]
    notice = recallite_models.path().with_name("NOTICE").read_text("utf-8")
    named = {entry["repository"]: entry["commit"] for entry in stated["data"] if "repository" in entry}
    assert named == {repository: pin["commit"] for repository, pin in used_by(module).items()}
    assert all(repository in notice for repository in named)


def test_the_reader_shares_all_but_its_own_layers_and_is_what_its_manifest_says() -> None:
    path = recallite_models.path(recallite_models.READER)
    assert path.with_suffix(".onnx").stat().st_size < 7_300_000
    pytest.importorskip("onnx")
    from benchmarks.training.build import manifest, serialised
    from benchmarks.training.sharing import join

    stated = json.loads(path.read_text("utf-8"))
    assert manifest(path.parent, recallite_models.READER, stated["sha256"]) == stated
    assert hashlib.sha256(serialised(join(path.with_suffix(".onnx")))).hexdigest() == stated["sha256"]


def test_the_model_is_carried_with_its_licence(model: str) -> None:
    folder = recallite_models.path(model).parent
    assert "Apache License" in (folder / "LICENSE").read_text("utf-8")
    assert "sentence-transformers/all-MiniLM-L6-v2" in (folder / "NOTICE").read_text("utf-8")


@pytest.mark.parametrize("name", ["recallite_minilm.onnx", "weights.bin", "tokenizer.json"])
def test_a_changed_byte_is_refused(model_copy: Path, name: str) -> None:
    file = model_copy.with_name(name)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with raises(EmbedderError, "invalid_model", match=f"{name} is not what its manifest says"):
        OnnxEmbedder(model_copy)


def test_a_truncated_file_is_refused(model_copy: Path) -> None:
    os.truncate(model_copy.with_name("weights.bin"), 1000)
    with raises(EmbedderError, "invalid_model", match=r"weights\.bin has 1,000 bytes"):
        OnnxEmbedder(model_copy)


def test_an_absent_file_is_named(model_copy: Path) -> None:
    model_copy.with_name("tokenizer.json").unlink()
    with raises(EmbedderError, "invalid_model", match=r"tokenizer\.json is absent"):
        OnnxEmbedder(model_copy)


def test_a_manifest_that_is_no_manifest_is_refused(model_copy: Path) -> None:
    model_copy.write_text("{}", "utf-8")
    with raises(EmbedderError, "invalid_model", match="cannot be understood"):
        OnnxEmbedder(model_copy)


@pytest.mark.slow
def test_the_build_reproduces_the_committed_files(tmp_path: Path) -> None:
    source = weights()
    from benchmarks.training.build import build

    build(source, tmp_path)
    committed = recallite_models.path().parent
    written = {file.name for file in tmp_path.iterdir()}
    assert written == {file.name for file in committed.iterdir()} - {"LICENSE", "NOTICE"}
    for name in written:
        assert (tmp_path / name).read_bytes() == (committed / name).read_bytes(), name


def test_calibration_covers_each_text_and_every_position() -> None:
    pytest.importorskip("onnx")
    from benchmarks.training.calibrate import TEXTS, read, windows

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
    from benchmarks.training.build import RANGES
    from benchmarks.training.calibrate import TEXTS, ranges, read

    found = ranges(weights(), read(TEXTS), model)
    with np.load(RANGES[model]) as stored:
        assert set(stored.files) == set(found)
        for site in stored.files:
            np.testing.assert_allclose(found[site], stored[site], rtol=2e-3, atol=2e-3)


@pytest.mark.slow
def test_the_float32_graph_gives_the_published_figures(model: str, tmp_path: Path) -> None:
    source = weights()
    from benchmarks.training.build import build_float32

    build_float32(source, tmp_path, model)
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
    from benchmarks.training.build import whole_model

    (tmp_path / "model.safetensors").write_bytes(b"other")
    with pytest.raises(SystemExit, match="not the model's weights"):
        whole_model(tmp_path, recallite_models.DEFAULT)


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
