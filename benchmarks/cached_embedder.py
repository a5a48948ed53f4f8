"""An embedder that remembers what it has embedded, in memory and in a folder, so that a second run is quick.

A folder holds numbered `.npz` shards of one embedder's vectors, keyed by a hash of the text and its context. Shards are
written whole and renamed into place: a run that is stopped keeps what it had.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence, Sized
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
        if (unread := getattr(embedder, "unread", None)) is not None:
            self.unread = unread
        self.embedded = 0
        self._kept: dict[bytes, NDArray[np.float32]] = {}
        self._unsaved: list[bytes] = []
        self._unsaved_codes: list[bytes] = []  # only `CachedTokens` has some
        self._folder: Path | None = None
        if folder is not None:
            self._folder = folder / hashlib.sha256(self.fingerprint.encode()).hexdigest()[:16]
            self._folder.mkdir(parents=True, exist_ok=True)
            for keys, counts, shard in _shards(self._folder):
                for key, (start, end) in zip(keys, pairwise([0, *counts.cumsum().tolist()]), strict=True):
                    self._kept[key] = shard["vectors"][start:end]

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors float32 (n, dimension), one row a text."""
        keys = [_key("query", text, None) for text in texts]
        for chunk in self._missing(keys, self._kept, None):
            self._keep(keys, chunk, [row[None, :] for row in self._embedder.embed([texts[i] for i in chunk])])
        return np.concatenate([self._kept[key] for key in keys]) if keys else np.empty((0, self.dimension), np.float32)

    def embed_documents(
        self,
        texts: Sequence[str],
        contexts: Sequence[str | None],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Embedded:
        """Each text with its context, in as many parts as the embedder needs; progress counts texts."""
        keys = [_key("document", text, context) for text, context in zip(texts, contexts, strict=True)]
        for chunk in self._missing(keys, self._kept, on_progress):
            embedded = embed_documents(self._embedder, [texts[i] for i in chunk], [contexts[i] for i in chunk])
            self._keep(keys, chunk, [embedded.vectors[part] for part in _parts(embedded, len(chunk))])
        return self._embedded(keys)

    def flush(self) -> None:
        """Write what no shard holds yet."""
        if self._folder is not None and self._unsaved:
            rows = [self._kept[key] for key in self._unsaved]
            _write(self._folder, self._unsaved, rows, vectors=np.concatenate(rows))

    def _embedded(self, keys: Sequence[bytes]) -> Embedded:
        parts = [self._kept[key] for key in keys]
        vectors = np.concatenate(parts) if parts else np.empty((0, self.dimension), np.float32)
        return Embedded(vectors, np.repeat(np.arange(len(parts), dtype=np.int64), [len(part) for part in parts]))

    def _missing(
        self, keys: Sequence[bytes], cached: dict[bytes, Any], on_progress: Callable[[int, int], None] | None
    ) -> Iterator[list[int]]:
        """Places of the keys that are not kept, in chunks; after each, shards are written if there is enough."""
        missing = list({key: place for place, key in enumerate(keys) if key not in cached}.values())
        for begin in range(0, len(missing), _CHUNK):
            chunk = missing[begin : begin + _CHUNK]
            yield chunk
            self.embedded += len(chunk)
            if max(len(self._unsaved), len(self._unsaved_codes)) >= _SHARD_ROWS:
                self.flush()
            if on_progress is not None:
                on_progress(begin + len(chunk), len(missing))

    def _keep(self, keys: Sequence[bytes], places: Sequence[int], rows: Sequence[NDArray[np.float32]]) -> None:
        for place, row in zip(places, rows, strict=True):
            if keys[place] not in self._kept:
                self._kept[keys[place]] = row
                self._unsaved.append(keys[place])


class CachedTokens(CachedEmbedder):
    """The same of an embedder that gives codes of tokens: those of documents are kept too, queries in memory."""

    def __init__(self, embedder: TokenEmbedder, folder: Path | None = None) -> None:
        super().__init__(embedder, folder)  # type: ignore[arg-type]
        self._coder = embedder
        self._codes: dict[bytes, list[bytes]] = {}
        self._asked: dict[str, tuple[NDArray[np.float32], QueryTokens]] = {}
        self._codes_folder: Path | None = None
        if self._folder is not None:
            _, codes = embedder.embed_document_tokens([_PROBE], ["Ada"])
            self._codes_folder = self._folder / f"codes-{hashlib.sha256(b''.join(codes)).hexdigest()[:12]}"
            self._codes_folder.mkdir(exist_ok=True)
            for keys, counts, shard in _shards(self._codes_folder):
                data = shard["codes"].tobytes()
                parts = [data[start:end] for start, end in pairwise([0, *shard["sizes"].cumsum().tolist()])]
                for key, (start, end) in zip(keys, pairwise([0, *counts.cumsum().tolist()]), strict=True):
                    self._codes[key] = parts[start:end]

    def embed_query_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[QueryTokens]]:
        """Vectors float32 (n, dimension) and the tokens of each text."""
        if missing := [text for text in dict.fromkeys(texts) if text not in self._asked]:
            vectors, tokens = self._coder.embed_query_tokens(missing)
            self._asked.update(zip(missing, zip(vectors, tokens, strict=True), strict=True))
            self.embedded += len(missing)
        embedded = [self._asked[text] for text in texts]
        return np.array([vector for vector, _ in embedded]).reshape(-1, self.dimension), [
            query_tokens for _, query_tokens in embedded
        ]

    def embed_document_tokens(
        self,
        texts: Sequence[str],
        contexts: Sequence[str | None],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> tuple[Embedded, list[bytes]]:
        """`embed_documents`, and the codes of each part's tokens."""
        keys = [_key("document", text, context) for text, context in zip(texts, contexts, strict=True)]
        # Vectors that a run without codes has left have none: they are embedded again for them.
        both = {key: None for key in keys if key in self._codes and key in self._kept}
        for chunk in self._missing(keys, both, on_progress):
            embedded, codes = self._coder.embed_document_tokens([texts[i] for i in chunk], [contexts[i] for i in chunk])
            parts = _parts(embedded, len(chunk))
            self._keep(keys, chunk, [embedded.vectors[part] for part in parts])
            for place, part in zip(chunk, parts, strict=True):
                self._codes[keys[place]] = list(codes[part])
                self._unsaved_codes.append(keys[place])
        return self._embedded(keys), [code for key in keys for code in self._codes[key]]

    def flush(self) -> None:
        """Write what no shard holds yet."""
        super().flush()
        if self._codes_folder is not None and self._unsaved_codes:
            rows = [self._codes[key] for key in self._unsaved_codes]
            codes = [code for row in rows for code in row]
            sizes = np.array([len(code) for code in codes], dtype=np.int32)
            data = np.frombuffer(b"".join(codes), dtype=np.uint8)
            _write(self._codes_folder, self._unsaved_codes, rows, sizes=sizes, codes=data)


def cached(embedder: Embedder, folder: Path | None = None) -> CachedEmbedder:
    """The embedder with a cache: `CachedTokens` if it gives codes of tokens."""
    return CachedTokens(embedder, folder) if isinstance(embedder, TokenEmbedder) else CachedEmbedder(embedder, folder)


def _parts(embedded: Embedded, count: int) -> list[slice]:
    """The parts of each text."""
    bounds = np.searchsorted(embedded.owners, np.arange(count + 1)).tolist()
    return [slice(start, end) for start, end in pairwise(bounds)]


def _shards(folder: Path) -> Iterator[tuple[list[bytes], NDArray[np.int32], Any]]:
    """Keys, numbers of parts and arrays of each shard."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as shard:
            keys = shard["keys"].tobytes()
            yield [keys[at : at + 16] for at in range(0, len(keys), 16)], shard["counts"], dict(shard)


def _write(folder: Path, unsaved: list[bytes], rows: Sequence[Sized], **arrays: NDArray[Any]) -> None:
    """One more shard, written whole and renamed into place; nothing is unsaved then."""
    number = 1 + max((int(shard.stem) for shard in folder.glob("*.npz")), default=-1)
    target = folder / f"{number:05}.npz"
    written = target.with_suffix(f".{os.getpid()}.tmp")
    arrays["keys"] = np.frombuffer(b"".join(unsaved), dtype="V16")
    arrays["counts"] = np.array([len(row) for row in rows], dtype=np.int32)
    with written.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    written.rename(target)
    unsaved.clear()


def _key(kind: str, text: str, context: str | None) -> bytes:
    whole = f"{kind}\0{'' if context is None else context}\0{text}"
    return hashlib.blake2b(whole.encode("utf-8", "surrogatepass"), digest_size=16).digest()
