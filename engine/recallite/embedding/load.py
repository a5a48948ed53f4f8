"""Loading of an embedder by name, folder or object."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from msgspec import structs

from recallite.embedding.protocol import Embedder
from recallite.errors import EmbedderError, InvalidInput, RecalliteError
from recallite.model.environment import named_embedder
from recallite.model.model_address import ModelAddress
from recallite.system import plugins
from recallite.system.messages import shown

_INSTANT = "instant"


def load(spec: object = None, *, queries_first: bool = False) -> Embedder:
    """The embedder that `spec` means.

    None or "default" is the bundled model; a name that a package registers in the group `recallite.embedders`, as the
    bundled models are; a folder with an ONNX sentence-embedding model; a model over HTTP by its provider and name, or
    as a `ModelAddress`, to which no request is sent yet; or an object with the `Embedder` protocol, which is checked
    and returned.
    `queries_first` means that the first call will embed a single query.
    Raises InvalidInput for an unknown name or an object that is no embedder, EmbedderError for a folder that
    cannot be used, or if onnxruntime or tokenizers is not installed.
    """
    if isinstance(spec, str):
        spec = named_embedder(spec)
    if isinstance(spec, str) and (name := _registered(spec)) is not None:
        return _checked(plugins.load("embedders", name)(queries_first=queries_first))
    if spec is None or isinstance(spec, (str, os.PathLike)):
        path = model_path(spec)
        from recallite.embedding.onnx import OnnxEmbedder

        return OnnxEmbedder(path, queries_first=queries_first)
    from recallite.embedding.remote import RemoteEmbedder

    if isinstance(spec, ModelAddress):
        spec = RemoteEmbedder(**structs.asdict(spec))
    if isinstance(spec, RemoteEmbedder):  # asking what it is would send a request
        return cast(Embedder, spec)
    return _checked(spec)


def _registered(spec: str) -> str | None:
    """The name as it is registered; None for "default" and for what no package registers."""
    if spec.lower() == "default":
        return None
    return plugins.registered_name("embedders", spec)


def is_foreign(spec: object) -> bool:
    """Whether `spec` is a name that another package registers; only its embedder knows its tokenizer."""
    name = _registered(spec) if isinstance(spec, str) else None
    return name is not None and plugins.is_foreign("embedders", name)


def model_path(spec: str | os.PathLike[str] | None) -> Path:
    """The manifest of a bundled model by its name, or a folder given as such. Raises as `load` does."""
    try:
        import recallite_models
    except ImportError:
        if spec is None or spec in ("default", _INSTANT):
            raise EmbedderError(
                "the bundled models are not installed: reinstall recallite, or give a folder with model.onnx", "missing"
            ) from None
        return Path(spec)
    names = {name.lower(): name for name in recallite_models.NAMES}
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
