"""The embedder without a neural network: the vector of a text is the sum of its tokens' vectors."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite.embedding.load import REINSTALL, check_size, verify
from recallite.embedding.protocol import (
    OVERLAP_TOKENS,
    Embedded,
    Progress,
    QueryTokens,
    Unread,
    check_contexts,
    header,
    starts,
)
from recallite.embedding.tokens import (
    Scripts,
    WordIds,
    choose_tokens,
    code_width,
    int64_array,
    read_tokenizer,
    token_codes,
)
from recallite.errors import EmbedderError
from recallite.system.numerics import kernel_errors, kernels

# Texts tokenised and pooled per batch: bounds memory, and progress is reported in between.
_BATCH = 512
_QUERY_TOKENS = 256


class _Table(NamedTuple):
    """The contents of a model folder: a vector per token, the cached tokenizer, and the scripts of its vocabulary."""

    name: str
    codes: NDArray[np.int8]
    scales: NDArray[np.float32]
    words: WordIds
    scripts: Scripts
    unknown: int
    fingerprint: str


class InstantEmbedder:
    """Sums token vectors that were distilled from the default model; needs neither ONNX Runtime nor a transformer.

    `max_tokens` is the length of the parts of long documents: a sum has no window, but means less the longer it gets.
    A query is always a single sum. Thread-safe; the engines of a process share one table. Raises EmbedderError for an
    unusable folder, or if tokenizers is not installed.
    """

    # Vector nDCG@10 on SciFact, abstracts of 300 tokens: 0.498 whole, 0.499 at 512, 0.516 at 256, 0.539 at 128,
    # 0.549 at 64; with BM25 0.704, 0.705, 0.710, 0.711, 0.707. Chat turns are shorter than any of these.
    max_tokens = 128

    def __init__(self, folder: str | os.PathLike[str], tokenizer: str | os.PathLike[str]) -> None:
        self._table = table = _table(Path(folder), Path(tokenizer))
        self.name = table.name
        self.dimension = int(table.codes.shape[1])
        self.fingerprint = f"{table.fingerprint}:t{self.max_tokens}"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors float32 (n, dimension); a text without tokens gets the vector of the unknown token."""
        vectors = np.empty((len(texts), self.dimension), np.float32)
        ids = self._table.words.ids
        for begin in range(0, len(texts), _BATCH):
            rows = [ids(text) for text in texts[begin : begin + _BATCH]]
            vectors[begin : begin + len(rows)] = self._pool(rows)
        return vectors

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> Embedded:
        """Embed texts with their contexts, long ones in parts that overlap by at least 32 tokens.

        Every part begins with the context, which is truncated to a quarter of a part. Progress counts texts.
        """
        return self._embed_parts(texts, contexts, on_progress, None)

    def embed_document_tokens(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> tuple[Embedded, list[bytes]]:
        """`embed_documents`, and the codes of each part's tokens."""
        codes: list[bytes] = []
        return self._embed_parts(texts, contexts, on_progress, codes), codes

    def embed_query_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[QueryTokens]]:
        """`embed`, and the first 256 tokens of each text; a token begins where its word does."""
        query_tokens, rows = [], []
        for text in texts:
            ids, begins = self._table.words.ids_and_begins(text)
            rows.append(ids)
            codes = self._codes(int64_array(ids[:_QUERY_TOKENS]))
            query_tokens.append(QueryTokens(codes, int64_array(begins[:_QUERY_TOKENS]), code_width(self.dimension)))
        return self._pool(rows), query_tokens

    def _embed_parts(
        self,
        texts: Sequence[str],
        contexts: Sequence[str | None],
        on_progress: Progress | None,
        codes: list[bytes] | None,
    ) -> Embedded:
        """The vector of every part; the codes of each part's tokens are added to `codes`, if there is a list."""
        check_contexts(texts, contexts)
        ids = self._table.words.ids
        vectors: list[NDArray[np.float32]] = [np.empty((0, self.dimension), np.float32)]
        owners: list[int] = []
        for first in range(0, len(texts), _BATCH):
            rows: list[list[int]] = []
            begin = len(owners)
            for owner in range(first, min(first + _BATCH, len(texts))):
                head = ids(header(contexts[owner]))[: self.max_tokens // 4]
                whole, body = ids(texts[owner]), self.max_tokens - len(head)
                for start in starts(len(whole), body, min(OVERLAP_TOKENS, body // 4)):
                    rows.append(head + whole[start : start + body])
                    owners.append(owner)
            vectors.append(self._pool(rows))
            if codes is not None:
                arrays = [int64_array(row) for row in rows]
                chosen = choose_tokens(arrays, int64_array(owners[begin:]), self._table.words.informative())
                coded = [row[indexes] for row, indexes in zip(arrays, chosen, strict=True)]
                words = self._codes(np.concatenate([int64_array([]), *coded])).astype("<u8", copy=False)
                ends = np.cumsum(list(map(len, coded))).tolist()
                codes += [words[i:j].tobytes() for i, j in zip([0, *ends], ends, strict=False)]
            if on_progress is not None:
                on_progress(min(first + _BATCH, len(texts)), len(texts))
        return Embedded(np.concatenate(vectors), np.array(owners, np.int64))

    def _codes(self, ids: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the code of each token: its scale is above 0, so the int8 components have the signs of the vector."""
        distinct, inverse = np.unique(ids, return_inverse=True)
        return token_codes(self._table.codes[distinct].astype(np.float32))[inverse]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has."""
        return [len(self._table.words.ids(text)) for text in texts]

    def unread(self, texts: Sequence[str]) -> list[Unread | None]:
        """The script of each text that the vocabulary has no words of; None for texts that are read."""
        return list(map(self._table.scripts.unread, texts))

    def _pool(self, rows: list[list[int]]) -> NDArray[np.float32]:
        table = self._table
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        tokens = np.array(rows[0] if len(rows) == 1 else list(chain.from_iterable(rows)), np.int64)
        with kernel_errors():
            vectors = kernels.pool_tokens(table.codes, table.scales, tokens, offsets)
            empty = ~vectors.any(axis=1)
            if empty.any():
                vectors[empty] = kernels.pool_tokens(
                    table.codes, table.scales, np.array([table.unknown]), np.array([0, 1])
                )
        return vectors


_tables: dict[tuple[Path, Path, int], _Table] = {}
_lock = threading.Lock()


def _table(folder: Path, tokenizer: Path) -> _Table:
    """The table of this folder, shared by the process; read and verified at the first call."""
    try:
        key = (folder.resolve(), tokenizer.resolve(), (folder / "manifest.json").stat().st_mtime_ns)
    except OSError as reason:
        raise EmbedderError(
            f"{folder} has no manifest.json that can be read ({reason}): {REINSTALL}", "invalid_model"
        ) from reason
    with _lock:
        if key not in _tables:
            _tables[key] = _read(folder, tokenizer)
        return _tables[key]


def _read(folder: Path, tokenizer: Path) -> _Table:
    try:
        manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
        stated = [manifest["files"][name] for name in ("codes.npy", "scales.npy")]
        codes, scales = _array(folder / "codes.npy", stated[0]), _array(folder / "scales.npy", stated[1])
        sums = ":".join(entry["sha256"][:16] for entry in (*stated, manifest["tokenizer"]))
        fingerprint = f"sum:{sums}:d{manifest['dimension']}"
        verify(tokenizer, manifest["tokenizer"]["sha256"])
        if codes.shape != (len(scales), manifest["dimension"]):
            raise ValueError(f"codes of shape {codes.shape} for {len(scales)} scales")
        name = str(manifest["name"])
    except EmbedderError:
        raise
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as reason:
        raise EmbedderError(
            f"{folder} cannot be understood ({type(reason).__name__}: {reason}): {REINSTALL}", "invalid_model"
        ) from reason
    words = read_tokenizer(tokenizer)
    unknown = int(words.token_to_id("[UNK]") or 0)
    return _Table(name, codes, scales, WordIds(words), Scripts(words), unknown, fingerprint)


def _array(path: Path, stated: dict[str, Any]) -> NDArray[Any]:
    """The array in a file, after checking it against the manifest."""
    if not path.is_file():
        raise EmbedderError(f"{path} is absent: {REINSTALL}", "invalid_model")
    check_size(path, stated)
    verify(path, stated["sha256"])
    array: NDArray[Any] = np.load(path, allow_pickle=False)
    return array
