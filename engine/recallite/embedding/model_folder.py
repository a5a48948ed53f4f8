"""The description of a model: from Recallite's manifest, or from a folder with the files of sentence-transformers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from recallite.errors import EmbedderError

Pooling = Literal["mean", "cls"]
REINSTALL = "restore the file, or reinstall recallite"


@dataclass(frozen=True)
class ModelFolder:
    """Files and settings that run a model. Hashes come from the manifest; there are none without one.

    `sha256` is that of the model as one file, whatever files it is in.
    """

    name: str
    model: Path
    tokenizer: Path
    max_tokens: int
    pooling: Pooling
    dimension: int | None
    quantisation: str
    sha256: str | None
    checksums: dict[Path, str]


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def verify(path: Path, expected: str) -> None:
    """Raise EmbedderError if the file's sha256 is not `expected`."""
    if (digest := sha256(path)) != expected:
        raise EmbedderError(
            f"{path} is not what its manifest says (sha256 {digest[:16]}…, not {expected[:16]}…): {REINSTALL}",
            "invalid_model",
        )


def verified_sha256(folder: ModelFolder) -> str:
    """The sha256 that identifies the model. Raises EmbedderError if a file is not what the manifest says."""
    for path, expected in folder.checksums.items():
        verify(path, expected)
    if folder.sha256 is not None:
        return folder.sha256
    parts = [sha256(path) for path in sorted(folder.model.parent.glob(f"{folder.model.name}*"))]  # weights beside it
    return parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest()


def check_size(path: Path, entry: dict[str, Any]) -> None:
    """Raise EmbedderError if the file's size is not that of its manifest entry."""
    if path.stat().st_size != entry["size"]:
        raise EmbedderError(
            f"{path} has {path.stat().st_size:,} bytes, its manifest says {entry['size']:,}: {REINSTALL}",
            "invalid_model",
        )


def read_folder(path: Path) -> ModelFolder:
    """Describe a folder, or the model of one of Recallite's manifests.

    Raises EmbedderError, which names the missing or invalid file.
    """
    if not path.exists():
        raise EmbedderError(f"{path} is no folder: give one with model.onnx and tokenizer.json", "invalid_model")
    try:
        return _from_files(path) if path.is_dir() else _from_manifest(path, _json(path))
    except (KeyError, TypeError, ValueError, AttributeError) as reason:
        raise EmbedderError(
            f"{path} cannot be understood ({type(reason).__name__}: {reason}): {REINSTALL}", "invalid_model"
        ) from reason


def _from_manifest(path: Path, manifest: dict[str, Any]) -> ModelFolder:
    folder, files = path.parent, manifest["files"]
    for name, entry in files.items():
        check_size(_present(folder / name), entry)
    return ModelFolder(
        name=str(manifest["name"]),
        model=path.with_suffix(".onnx"),
        tokenizer=folder / "tokenizer.json",
        max_tokens=int(manifest["max_tokens"]),
        pooling=_pooling(path, manifest["pooling"]),
        dimension=int(manifest["dimension"]),
        quantisation=str(manifest["quantisation"]),
        sha256=str(manifest["sha256"]),
        checksums={folder / name: str(entry["sha256"]) for name, entry in files.items()},
    )


def _from_files(folder: Path) -> ModelFolder:
    model = folder / "model.onnx"
    if not model.exists() and (folder / "onnx" / "model.onnx").exists():
        model = folder / "onnx" / "model.onnx"
    _present(model)
    pooling = _optional(folder / "1_Pooling" / "config.json")
    mode = next((key for key, value in pooling.items() if key.startswith("pooling_mode") and value is True), None)
    return ModelFolder(
        name=folder.resolve().name,
        model=model,
        tokenizer=_present(folder / "tokenizer.json"),
        max_tokens=_max_tokens(folder),
        pooling=_pooling(folder, pooling.get("pooling_mode", mode) or "mean"),
        dimension=None,
        quantisation="as-given",
        sha256=None,
        checksums={},
    )


def _max_tokens(folder: Path) -> int:
    """The smallest limit stated in the files, else 512. RoBERTa counts positions from padding_idx + 1."""
    config = _optional(folder / "config.json")
    limits = [
        _optional(folder / "sentence_bert_config.json").get("max_seq_length"),
        _optional(folder / "tokenizer_config.json").get("model_max_length"),
    ]
    if positions := config.get("max_position_embeddings"):
        offset = config.get("pad_token_id", 0) + 1 if "roberta" in str(config.get("model_type")) else 0
        limits.append(positions - offset)
    stated = [int(limit) for limit in limits if isinstance(limit, (int, float)) and 0 < limit < 1e6]
    return min(stated, default=512)


def _pooling(folder: Path, name: str) -> Pooling:
    known: dict[str, Pooling] = {
        "mean": "mean", "pooling_mode_mean_tokens": "mean", "cls": "cls", "pooling_mode_cls_token": "cls",
    }  # fmt: skip
    if name not in known:
        raise EmbedderError(f"{folder} pools by {name!r}: Recallite knows mean and cls", "invalid_model")
    return known[name]


def _present(path: Path) -> Path:
    if not path.is_file():
        raise EmbedderError(
            f"{path} is absent: an embedding model needs model.onnx and tokenizer.json", "invalid_model"
        )
    return path


def _optional(path: Path) -> dict[str, Any]:
    return _json(path) if path.exists() else {}


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as reason:
        raise EmbedderError(f"{path} cannot be read as JSON ({reason}): {REINSTALL}", "invalid_model") from reason
    if not isinstance(value, dict):
        raise EmbedderError(f"{path} holds no JSON object: {REINSTALL}", "invalid_model")
    return value
