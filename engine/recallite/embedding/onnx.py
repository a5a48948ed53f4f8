"""The embedder that runs an ONNX sentence-embedding model."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recallite.embedding.model_folder import read_folder
from recallite.embedding.protocol import Embedded, Progress, QueryTokens
from recallite.embedding.session import BATCH_TOKENS, Runtime, runtime
from recallite.embedding.token_ids import TokenIds
from recallite.embedding.windows import OVERLAP_TOKENS, check_contexts, header, starts
from recallite.errors import EmbedderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Run = Callable[[list[str], "dict[str, NDArray[np.int64]]"], "list[NDArray[np.float32]]"]
Keep = Callable[[int, "NDArray[np.float32]"], None]
_TOKEN_OUTPUTS = ("token_embeddings", "last_hidden_state")


class OnnxEmbedder:
    """Embeds with the model in a folder: Recallite's own, or any sentence-transformers ONNX export.

    `dimension` and `max_tokens` (special tokens included) are the model's. Thread-safe; engines that use the same model
    file share one session; a forked child gets its own. `queries_first` means that the first call will embed a single
    query. Raises EmbedderError for an unusable folder, or if onnxruntime or tokenizers is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str], *, queries_first: bool = False) -> None:
        self._folder = read_folder(Path(folder))
        self.name = self._folder.name
        self.max_tokens = self._folder.max_tokens
        self._process = os.getpid()
        self._runtime = engine = runtime(self._folder, queries_first=queries_first)
        self._ids = TokenIds(engine.tokenizer)
        self._sentence = "sentence_embedding" if "sentence_embedding" in engine.outputs else None
        self._tokens = next((name for name in _TOKEN_OUTPUTS if name in engine.outputs), None)
        unknown = engine.inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or (self._sentence is None and self._tokens is None):
            raise EmbedderError(
                f"{self._folder.model} has the inputs {sorted(engine.inputs)} "
                f"and the outputs {sorted(engine.outputs)}: "
                "Recallite needs input_ids (attention_mask, token_type_ids) and one of sentence_embedding, "
                "token_embeddings, last_hidden_state",
                "invalid_model",
            )
        if self.max_tokens <= self._ids.specials:
            raise EmbedderError(
                f"{self._folder.model.parent} allows {self.max_tokens} tokens: there is no room for text",
                "invalid_model",
            )
        self._masked = "attention_mask" in engine.inputs
        self.dimension = self._folder.dimension or self._measured(engine)
        self.fingerprint = (
            f"onnx:{engine.sha256[:32]}:d{self.dimension}:{self._folder.pooling}:prefix=:"
            f"{self._folder.quantisation}:t{self.max_tokens}"
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors float32 (n, dimension); a text longer than the window is truncated."""
        return self._run(self._framed(texts), None)

    def embed_documents(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> Embedded:
        """Embed texts with their contexts, long ones in parts that overlap by at least 32 tokens.

        Every part begins with the context, which is truncated to a quarter of the window.
        """
        rows, owners = self._parts(texts, contexts)
        return Embedded(self._run(rows, on_progress), owners)

    def embed_document_tokens(
        self, texts: Sequence[str], contexts: Sequence[str | None], on_progress: Progress | None = None
    ) -> tuple[Embedded, list[bytes]]:
        """`embed_documents`, and the codes of each part's tokens, from one run of the model.

        Special tokens, punctuation and stop words get none: without them late interaction ranks LoCoMo, RealMem and
        SciFact equally well or better, and they are half of a chat turn. A graph without token vectors gives no codes.
        """
        from recallite.embedding.token_codes import choose_tokens, token_codes

        rows, owners = self._parts(texts, contexts)
        token_places = choose_tokens(rows, owners, self._telling())
        codes = [b""] * len(rows)

        def keep(place: int, tokens: NDArray[np.float32]) -> None:
            codes[place] = token_codes(tokens[token_places[place]]).astype("<u8", copy=False).tobytes()

        return Embedded(self._run(rows, on_progress, keep), owners), codes

    def embed_query_tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[QueryTokens]]:
        """`embed`, and the tokens of each text, from one run of the model; none without such an output."""
        import numpy as np

        from recallite.embedding.token_codes import code_width, token_codes

        query_tokens = [QueryTokens(np.empty((0, 1), np.uint64), np.empty(0, np.int64), 1)] * len(texts)
        framed = self._ids.encode_with_places(texts, self.max_tokens - self._ids.specials)
        rows = [self._ids.frame(ids) for ids, _ in framed]
        begin = len(self._ids.before)

        def keep(place: int, tokens: NDArray[np.float32]) -> None:
            places = framed[place][1]
            codes = token_codes(tokens[begin : begin + len(places)])
            query_tokens[place] = QueryTokens(codes, places, code_width(tokens.shape[1]))

        return self._run(rows, None, keep), query_tokens

    def _telling(self) -> NDArray[np.bool_]:
        """Mask of the ids whose tokens get a code: informative ones, without the special tokens of a frame."""
        import numpy as np

        telling = self._ids.telling().copy()
        telling[np.concatenate((self._ids.before, self._ids.after))] = False
        return telling

    def _parts(
        self, texts: Sequence[str], contexts: Sequence[str | None]
    ) -> tuple[list[NDArray[np.int64]], NDArray[np.int64]]:
        """The ids of every part of every text with special tokens, and the text each belongs to."""
        import numpy as np

        check_contexts(texts, contexts)
        room = self.max_tokens - self._ids.specials
        heads = list(dict.fromkeys(map(header, contexts)))
        headers = dict(zip(heads, self._ids.encode(heads, limit=room // 4), strict=True))
        rows: list[NDArray[np.int64]] = []
        owners: list[int] = []
        for owner, (ids, context) in enumerate(zip(self._ids.encode(texts), contexts, strict=True)):
            head = headers[header(context)]
            body = room - len(head)
            for begin in starts(len(ids), body, min(OVERLAP_TOKENS, body // 4)):
                rows.append(self._ids.frame(np.concatenate((head, ids[begin : begin + body]))))
                owners.append(owner)
        return rows, np.array(owners, np.int64)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without special tokens."""
        return [len(ids) for ids in self._ids.encode(texts)]

    def _engine(self) -> Runtime:
        """The runtime of this process: a new one after a fork."""
        if self._process != os.getpid():
            self._runtime, self._process = runtime(self._folder), os.getpid()
        return self._runtime

    def _framed(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        return [self._ids.frame(ids) for ids in self._ids.encode(texts, limit=self.max_tokens - self._ids.specials)]

    def _run(
        self, rows: list[NDArray[np.int64]], on_progress: Progress | None, keep: Keep | None = None
    ) -> NDArray[np.float32]:
        """A vector per sequence; `keep` is called with each sequence's place and its tokens' vectors."""
        import numpy as np

        engine = self._engine()
        vectors = np.empty((len(rows), self.dimension), np.float32)
        if len(rows) == 1:  # a query: saves 0.1 ms of batching
            vectors[0] = self._pooled(rows, [0], engine, engine.run_query, keep)[0]
            if on_progress is not None:
                on_progress(1, 1)
            return vectors

        def work(batch: NDArray[np.int64]) -> None:
            vectors[batch] = self._pooled([rows[i] for i in batch], batch.tolist(), engine, engine.run, keep)

        def tick(done: int) -> None:
            if on_progress is not None:
                on_progress(done, len(rows))

        engine.spread(self._batches(rows), work, tick)
        return vectors

    def _pooled(
        self, rows: list[NDArray[np.int64]], places: list[int], engine: Runtime, run: Run, keep: Keep | None
    ) -> NDArray[np.float32]:
        import numpy as np

        wanted = [] if self._sentence is None else [self._sentence]
        if self._tokens is not None and (keep is not None or not wanted):
            wanted.append(self._tokens)
        results = run(wanted, self._feeds(rows, engine))
        if keep is not None and self._tokens is not None:
            for place, row, tokens in zip(places, rows, results[-1], strict=True):
                keep(place, tokens[: len(row)])
        if self._sentence is not None:
            vectors = results[0]
            if self._folder.sha256 is not None:
                return vectors  # the shipped graph ends in L2 normalisation
        else:
            tokens = results[0]
            if self._folder.pooling == "cls":
                vectors = tokens[:, 0]
            else:
                # A sum is enough: normalisation removes the factor to the mean.
                mask = np.arange(tokens.shape[1]) < np.array([len(row) for row in rows])[:, None]
                vectors = np.einsum("btd,bt->bd", tokens, mask.astype(np.float32))
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not np.isfinite(norms).all() or not norms.all():
            raise EmbedderError(f"{self.name} gave a zero, NaN or infinite vector: the model is damaged or unsuitable")
        normalised: NDArray[np.float32] = vectors / norms
        return normalised

    def _feeds(self, rows: list[NDArray[np.int64]], engine: Runtime) -> dict[str, NDArray[np.int64]]:
        import numpy as np

        if len(rows) == 1 and engine.inputs == {"input_ids"}:
            return {"input_ids": rows[0][None, :]}
        width = max(map(len, rows))
        ids = np.full((len(rows), width), self._ids.padding, np.int64)
        mask = np.zeros_like(ids)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return {name: feeds[name] for name in engine.inputs}

    def _batches(self, rows: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Positions of rows, longest first, in batches within the token budget.

        A graph without an attention mask gets batches of equal length, which need no padding.
        """
        import numpy as np

        lengths = np.array([len(row) for row in rows], np.int64)
        order = np.argsort(-lengths, kind="stable")
        batches: list[NDArray[np.int64]] = []
        begin = 0
        while begin < len(order):
            longest = int(lengths[order[begin]])
            end = min(begin + max(1, BATCH_TOKENS // longest), len(order))
            if not self._masked:
                shorter = lengths[order[begin:end]] < longest
                end = begin + int(shorter.argmax()) if shorter.any() else end
            batches.append(order[begin:end])
            begin = end
        return batches

    def _measured(self, engine: Runtime) -> int:
        """The width stated by the graph, else that of a test vector."""
        shape = engine.outputs[self._sentence or self._tokens or ""]
        if shape and isinstance(shape[-1], int):
            return shape[-1]
        row = self._ids.frame(self._ids.encode(["a"])[0])
        return int(self._pooled([row], [0], engine, engine.run_query, None).shape[1])
