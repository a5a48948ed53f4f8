"""Loading of an embedder by name, folder or object; the bundled ones, and what a model's folder says of it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, cast

from msgspec import Struct, structs

from recallite.embedding.protocol import NO_PREFIXES, Embedder, Prefixed, Prefixes
from recallite.errors import EmbedderError, InvalidInput, RecalliteError
from recallite.model.environment import ModelAddress, named_embedder
from recallite.system import plugins
from recallite.system.folders import stamp_of
from recallite.system.local_socket import is_private
from recallite.system.messages import shown

_INSTANT, _MULTILINGUAL = "instant", "multilingual"


def load(spec: object = None, *, prefixes: Prefixes = NO_PREFIXES) -> Embedder:
    """The embedder that `spec` means.

    None or "default" is the bundled model; a name that a package registers in the group `recallite.embedders`, as the
    bundled models are; a folder with an ONNX sentence-embedding model; a model over HTTP by its provider and name, or
    as a `ModelAddress`, to which no request is sent yet; or an object with the `Embedder` protocol, which is checked
    and returned. `prefixes` go before the texts.
    Raises InvalidInput for an unknown name or an object that is no embedder, EmbedderError for a folder that
    cannot be used, or if onnxruntime or tokenizers is not installed.
    """
    if any(prefixes):
        if isinstance(spec, (str, os.PathLike)) and (folder := Path(spec).expanduser()).is_dir():
            from recallite.embedding.onnx import OnnxEmbedder

            return OnnxEmbedder(folder, prefixes=prefixes)
        return cast(Embedder, Prefixed(load(spec), prefixes))
    if isinstance(spec, str):
        spec = named_embedder(spec)
    if isinstance(spec, str) and (name := _registered(spec)) is not None:
        return _checked(plugins.load("embedders", name)())
    if spec is None or isinstance(spec, (str, os.PathLike)):
        path = model_path(spec)  # before ONNX Runtime is looked for
        from recallite.embedding.onnx import OnnxEmbedder

        return OnnxEmbedder(path)
    from recallite.embedding.remote_embedder import RemoteEmbedder

    if isinstance(spec, ModelAddress):
        spec = RemoteEmbedder(**structs.asdict(spec))
    if isinstance(spec, RemoteEmbedder):  # asking what it is would send a request
        return cast(Embedder, spec)
    return _checked(spec)


def _registered(spec: str) -> str | None:
    """The name as it is registered; None for "default" and for what no package registers."""
    return None if spec.lower() == "default" else plugins.registered_name("embedders", spec)


def is_foreign(spec: object) -> bool:
    """Whether `spec` is a name that another package registers; only its embedder knows its tokenizer."""
    name = _registered(spec) if isinstance(spec, str) else None
    return name is not None and plugins.is_foreign("embedders", name)


def model_path(spec: str | os.PathLike[str] | None) -> Path:
    """The manifest of a bundled model by its name, or a folder given as a path. Raises as `load` does."""
    try:
        import recallite_models
    except ImportError:
        if spec is None or spec in ("default", _INSTANT):
            raise EmbedderError(
                "the bundled models are not installed: reinstall recallite, or give a folder with model.onnx", "missing"
            ) from None
        return Path(spec)
    names = {name.lower(): name for name in recallite_models.NAMES}
    if isinstance(spec, str) and spec.lower() == _MULTILINGUAL and find_spec("recallite_multilingual") is None:
        raise EmbedderError("the multilingual model is not installed: pip install 'recallite[multilingual]'", "missing")
    if spec is None or spec == "default":
        return recallite_models.path(recallite_models.DEFAULT)
    if isinstance(spec, str) and spec.lower() in names:
        return recallite_models.path(names[spec.lower()])
    folder = Path(spec).expanduser()
    if folder.is_dir():
        return folder
    if not isinstance(spec, str) or len(folder.parts) > 1:
        raise EmbedderError(
            f"embedder {shown(str(folder))} is no folder: give one with model.onnx and tokenizer.json", "invalid_model"
        )
    choices = ", ".join(["default", *recallite_models.NAMES])
    raise InvalidInput(
        f"embedder {shown(spec)} is not known: choose {choices}, or the path of a folder with model.onnx"
    )


def bundled_name(fingerprint: str) -> str | None:
    """The name of the bundled model that gives vectors of this fingerprint; None if no model here does."""
    with suppress(ImportError, RecalliteError):
        import recallite_models

        for name in recallite_models.NAMES:
            if load(name).fingerprint == fingerprint:
                return name
    return None


def _checked(embedder: object) -> Embedder:
    what: Any = embedder
    if isinstance(embedder, type) or not callable(getattr(what, "embed", None)):
        raise InvalidInput(f"embedder {shown(embedder)} has no method embed(texts): see recallite.embedding.Embedder")
    dimension = getattr(what, "dimension", None)
    if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1:
        raise InvalidInput(f"embedder {shown(embedder)} has the dimension {shown(dimension)}: give a positive int")
    for name in ("name", "fingerprint"):
        value = getattr(what, name, None)
        if not isinstance(value, str) or not value:
            raise InvalidInput(f"embedder {shown(embedder)} has the {name} {shown(value)}: give a non-empty str")
    return cast(Embedder, embedder)


# The bundled embedders, as the entry points of the group `recallite.embedders` name them.


def _onnx(name: str) -> Embedder:
    from recallite.embedding.onnx import OnnxEmbedder

    return OnnxEmbedder(model_path(name))


recallite_minilm = partial(_onnx, "recallite-minilm")
"""The default model: all-MiniLM-L6-v2, its last layers trained further."""
all_minilm = partial(_onnx, "all-MiniLM-L6-v2")
"""The original all-MiniLM-L6-v2."""
multilingual = partial(_onnx, "multilingual")
"""The model of the extra `multilingual`, made from multilingual-e5-small."""


def instant() -> Embedder:
    """The static model, a stored vector for each token."""
    from recallite.embedding.instant import InstantEmbedder

    return InstantEmbedder(model_path("instant").parent, model_path(None).with_name("tokenizer.json"))


# The description of a model: from Recallite's manifest, or from a folder with the files of sentence-transformers.
Pooling = Literal["mean", "cls"]
REINSTALL = "restore the file, or reinstall recallite"
_SHA256_CHARS = 64
_STEADY_NS = 2 * 10**9


class ModelFolder(Struct, frozen=True):
    """Files and settings that run a model. Hashes come from the manifest; there are none without one.

    `sha256` is that of the model as one file, whatever files it is in. `prefixes` go before a query and a document.
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
    prefixes: Prefixes = NO_PREFIXES


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def known_sha256(path: Path) -> str:
    """Hex digest of a file, kept in the user's cache for the state that the file is in: a model takes 20 ms or more."""
    from recallite_kernels.cache import root

    status, resolved = path.stat(), os.fsencode(path.resolve())
    state = resolved + f"\0{stamp_of(status)}".encode()
    # A file that has just changed may change again within one tick of the clock that gives it its times.
    steady = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _STEADY_NS
    folder = root() if steady else None
    if folder is None:
        return sha256(path)
    kept = folder / "models" / hashlib.blake2b(resolved, digest_size=16).hexdigest()
    with suppress(OSError, ValueError):
        if is_private(str(kept.parent)) and (known := kept.read_bytes())[_SHA256_CHARS:] == state:
            return known[:_SHA256_CHARS].decode("ascii")
    digest = sha256(path)
    with suppress(OSError):  # such as a home that is read-only
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_private(str(kept.parent)):
            for other in kept.parent.iterdir():
                if not os.path.exists(other.read_bytes()[_SHA256_CHARS:].partition(b"\0")[0]):
                    other.unlink()
            part = kept.with_suffix(f".{os.getpid()}")
            part.write_bytes(digest.encode() + state)
            part.replace(kept)
    return digest


def verify(path: Path, expected: str) -> None:
    """Raise EmbedderError if the file's sha256 is not `expected`."""
    if (digest := known_sha256(path)) != expected:
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
    files = sorted(folder.model.parent.glob(f"{folder.model.name}*"))  # weights may be beside it
    parts = [*map(known_sha256, files)]
    return parts[0] if len(parts) == 1 else hashlib.sha256("".join(parts).encode()).hexdigest()


def check_size(path: Path, entry: dict[str, Any]) -> None:
    """Raise EmbedderError if the file's size is not the one in its manifest entry."""
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
    folder, files, prefixes = path.parent, manifest["files"], manifest.get("prefixes", {})
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
        prefixes=_prefixes(prefixes),
    )


def _from_files(folder: Path) -> ModelFolder:
    model = folder / "model.onnx"
    if not model.exists() and (folder / "onnx" / "model.onnx").exists():
        model = folder / "onnx" / "model.onnx"
    _present(model)
    pooling, config = _optional(folder / "1_Pooling" / "config.json"), _optional(folder / "config.json")
    mode = next((key for key, value in pooling.items() if key.startswith("pooling_mode") and value is True), None)
    limits = [
        _optional(folder / "sentence_bert_config.json").get("max_seq_length"),
        _optional(folder / "tokenizer_config.json").get("model_max_length"),
    ]
    if positions := config.get("max_position_embeddings"):  # RoBERTa counts them from padding_idx + 1
        offset = config.get("pad_token_id", 0) + 1 if "roberta" in str(config.get("model_type")) else 0
        limits.append(positions - offset)
    stated = [int(limit) for limit in limits if isinstance(limit, (int, float)) and 0 < limit < 1e6]
    return ModelFolder(
        name=folder.resolve().name,
        model=model,
        tokenizer=_present(folder / "tokenizer.json"),
        max_tokens=min(stated, default=512),
        pooling=_pooling(folder, pooling.get("pooling_mode", mode) or "mean"),
        dimension=None,
        quantisation="as-given",
        sha256=None,
        checksums={},
        prefixes=_prefixes(_optional(folder / "config_sentence_transformers.json").get("prompts") or {}),
    )


def _prefixes(prompts: dict[str, Any]) -> Prefixes:
    return Prefixes(str(prompts.get("query") or ""), str(prompts.get("document") or prompts.get("passage") or ""))


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
