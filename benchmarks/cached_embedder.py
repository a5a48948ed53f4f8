"""An embedder that remembers what it has embedded, in memory and in a folder, so that a second run is quick.

A folder holds numbered `.npz` shards of one embedder's vectors, keyed by a hash of the text and its context. Shards are
written whole and renamed into place: a run that is stopped keeps what it had.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recallite.embedding import Embedded, Embedder, QueryTokens, TokenEmbedder, embed_documents

__all__ = ["CachedEmbedder", "CachedTokens", "cached"]

_SHARD_ROWS = 4096
_CHUNK = 2048
# Its codes name their folder: they change with how tokens are chosen and coded, which no fingerprint says.
_PROBE = " ".join(f"Note {place} of the violin that Ada mended in room {7 * place}." for place in range(60))


class CachedEmbedder:
    """Wraps an embedder: each distinct (text, context) and each distinct query is embedded once.

    Satisfies the `Embedder` and `DocumentEmbedder` protocols with the name and fingerprint of the embedder it wraps.
    Without a folder the vectors live as long as the object. Not thread-safe. Call `flush` at the end.
    """

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        self._embedder = embedder
        self.name = embedder.name
        self.dimension = embedder.dimension
        self.fingerprint = embedder.fingerprint
        self.max_tokens = int(getattr(embedder, "max_tokens", 256))
        if (count_tokens := getattr(embedder, "count_tokens", None)) is not None:
            self.count_tokens = count_tokens
        self.embedded = 0
        self._kept: dict[bytes, NDArray[np.float32]] = {}
        self._unsaved: list[bytes] = []
        self._folder: Path | None = None
        if folder is not None:
            self._folder = folder / hashlib.sha256(self.fingerprint.encode()).hexdigest()[:16]
            self._folder.mkdir(parents=True, exist_ok=True)
            self._load(self._folder)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors float32 (n, dimension), one row a text."""
        keys = [_key("query", text, None) for text in texts]
        self._embed_missing(keys, lambda missing: self._queries([texts[i] for i in missing]), None)
        return np.concatenate([self._kept[key] for key in keys]) if keys else np.empty((0, self.dimension), np.float32)

    def embed_documents(
        self,
        texts: Sequence[str],
        contexts: Sequence[str | None],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Embedded:
        """Each text with its context, in as many parts as the embedder needs; progress counts texts."""
        keys = [_key("document", text, context) for text, context in zip(texts, contexts, strict=True)]
        self._embed_missing(
            keys,
            lambda missing: self._documents([texts[i] for i in missing], [contexts[i] for i in missing]),
            on_progress,
        )
        parts = [self._kept[key] for key in keys]
        vectors = np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)
        return Embedded(vectors, np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts]))

    def flush(self) -> None:
        """Write what no shard holds yet."""
        if self._folder is None or not self._unsaved:
            return
        rows = [self._kept[key] for key in self._unsaved]
        _write(
            self._folder,
            keys=np.frombuffer(b"".join(self._unsaved), dtype="V16"),
            counts=np.array([len(row) for row in rows], dtype=np.int32),
            vectors=np.concatenate(rows),
        )
        self._unsaved.clear()

    def _load(self, folder: Path) -> None:
        for path in sorted(folder.glob("*.npz")):
            with np.load(path) as shard:
                keys, vectors = shard["keys"].tobytes(), shard["vectors"]
                ends = np.cumsum(shard["counts"]).tolist()
            for place, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
                self._kept[keys[16 * place : 16 * place + 16]] = vectors[start:end]

    def _embed_missing(
        self,
        keys: Sequence[bytes],
        embed: Callable[[list[int]], list[NDArray[np.float32]]],
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        places = {key: place for place, key in enumerate(keys) if key not in self._kept}
        missing = list(places.values())
        for begin in range(0, len(missing), _CHUNK):
            chunk = missing[begin : begin + _CHUNK]
            for place, rows in zip(chunk, embed(chunk), strict=True):
                self._kept[keys[place]] = rows
                self._unsaved.append(keys[place])
            self.embedded += len(chunk)
            if len(self._unsaved) >= _SHARD_ROWS:
                self.flush()
            if on_progress is not None:
                on_progress(begin + len(chunk), len(missing))

    def _queries(self, texts: list[str]) -> list[NDArray[np.float32]]:
        return [row[None, :] for row in self._embedder.embed(texts)]

    def _documents(self, texts: list[str], contexts: list[str | None]) -> list[NDArray[np.float32]]:
        vectors, owners = embed_documents(self._embedder, texts, contexts)
        bounds = np.searchsorted(owners, np.arange(len(texts) + 1)).tolist()
        return [vectors[start:end] for start, end in pairwise(bounds)]


class CachedTokens(CachedEmbedder):
    """The same of an embedder that gives codes of tokens: those of documents are kept too, queries in memory."""

    def __init__(self, embedder: TokenEmbedder, folder: Path | None = None) -> None:
        super().__init__(embedder, folder)  # type: ignore[arg-type]
        self._coder = embedder
        self._codes: dict[bytes, list[bytes]] = {}
        self._unsaved_codes: list[bytes] = []
        self._asked: dict[str, tuple[NDArray[np.float32], QueryTokens]] = {}
        self._codes_folder: Path | None = None
        if self._folder is not None:
            _, codes = embedder.embed_document_tokens([_PROBE], ["Ada"])
            self._codes_folder = self._folder / f"codes-{hashlib.sha256(b''.join(codes)).hexdigest()[:12]}"
            self._codes_folder.mkdir(exist_ok=True)
            for path in sorted(self._codes_folder.glob("*.npz")):
                with np.load(path) as shard:
                    keys, data, counts = shard["keys"].tobytes(), shard["codes"].tobytes(), shard["counts"].tolist()
                    ends = np.cumsum(shard["sizes"]).tolist()
                parts = [data[start:end] for start, end in pairwise([0, *ends])]
                for place, (start, end) in enumerate(pairwise([0, *np.cumsum(counts).tolist()])):
                    self._codes[keys[16 * place : 16 * place + 16]] = parts[start:end]

    def embed_query_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[QueryTokens]]:
        """Vectors float32 (n, dimension) and the tokens of each text."""
        if missing := [text for text in dict.fromkeys(texts) if text not in self._asked]:
            vectors, tokens = self._coder.embed_query_tokens(missing)
            self._asked.update(zip(missing, zip(vectors, tokens, strict=True), strict=True))
            self.embedded += len(missing)
        found = [self._asked[text] for text in texts]
        return np.array([vector for vector, _ in found]).reshape(-1, self.dimension), [each for _, each in found]

    def embed_document_tokens(
        self,
        texts: Sequence[str],
        contexts: Sequence[str | None],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> tuple[Embedded, list[bytes]]:
        """`embed_documents`, and the codes of each part's tokens."""
        keys = [_key("document", text, context) for text, context in zip(texts, contexts, strict=True)]
        places = {key: place for place, key in enumerate(keys) if key not in self._codes or key not in self._kept}
        missing = list(places.items())
        for begin in range(0, len(missing), _CHUNK):
            chunk = missing[begin : begin + _CHUNK]
            embedded, codes = self._coder.embed_document_tokens(
                [texts[place] for _, place in chunk], [contexts[place] for _, place in chunk]
            )
            bounds = np.searchsorted(embedded.owners, np.arange(len(chunk) + 1)).tolist()
            for (key, _), (start, end) in zip(chunk, pairwise(bounds), strict=True):
                if key not in self._kept:
                    self._kept[key] = embedded.vectors[start:end]
                    self._unsaved.append(key)
                self._codes[key] = list(codes[start:end])
                self._unsaved_codes.append(key)
            self.embedded += len(chunk)
            if len(self._unsaved_codes) >= _SHARD_ROWS:
                self.flush()
        return self.embed_documents(texts, contexts, on_progress), [code for key in keys for code in self._codes[key]]

    def flush(self) -> None:
        """Write what no shard holds yet."""
        super().flush()
        if self._codes_folder is None or not self._unsaved_codes:
            return
        rows = [self._codes[key] for key in self._unsaved_codes]
        _write(
            self._codes_folder,
            keys=np.frombuffer(b"".join(self._unsaved_codes), dtype="V16"),
            counts=np.array([len(row) for row in rows], dtype=np.int32),
            sizes=np.array([len(code) for row in rows for code in row], dtype=np.int32),
            codes=np.frombuffer(b"".join(code for row in rows for code in row), dtype=np.uint8),
        )
        self._unsaved_codes.clear()


def cached(embedder: Embedder, folder: Path | None = None) -> CachedEmbedder:
    """The embedder with a cache: `CachedTokens` where it gives codes of tokens."""
    return CachedTokens(embedder, folder) if isinstance(embedder, TokenEmbedder) else CachedEmbedder(embedder, folder)


def _write(folder: Path, **arrays: NDArray[Any]) -> None:
    """One more shard, written whole and renamed into place."""
    number = 1 + max((int(shard.stem) for shard in folder.glob("*.npz")), default=-1)
    target = folder / f"{number:05}.npz"
    written = target.with_suffix(f".{os.getpid()}.tmp")
    with written.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    written.rename(target)


def _key(kind: str, text: str, context: str | None) -> bytes:
    whole = f"{kind}\0{'' if context is None else context}\0{text}"
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()
