"""What several suites share: seeded vectors, other processes, a small embedder that can be told to fail."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from typing import Any

import apsw
import numpy as np

from recallite import Hit, Memory, Settings
from recallite.model.settings import WritePolicy
from recallite.remember.relations import put_in_place
from tests.limits import LAST_RESORT_SECONDS

PLAIN = Settings(embedder="none")
# Compares no text with those stored: for tests whose texts are alike for another reason.
ONLY_STORES = WritePolicy(supersede_confidence=None, contradict_confidence=None, duplicates="store")
STORING = Settings(embedder="none", write=ONLY_STORES)
DIMENSION = 16


class Foreign:
    """No value of ours; shown alike in every process, so that tests can be told apart by it."""

    def __repr__(self) -> str:
        return "<a foreign object>"


def unit(seed: int, dimension: int = DIMENSION) -> np.ndarray:
    """A unit vector, float32."""
    vector = np.random.default_rng(seed).normal(size=dimension)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def state(memory: Memory) -> tuple[int, int]:
    """What any write would change: how many memories, and the feed's sequence."""
    return memory.count(), memory.store.stats().sequence


def scored(hits: list[Hit], digits: int = 5) -> list[tuple[str, float]]:
    """Ids with rounded scores, in order."""
    return [(hit.id, round(hit.score, digits)) for hit in hits]


def raw(path: str) -> apsw.Connection:
    """The file through APSW and sqlite-vec, for a store that is closed."""
    import sqlite_vec

    connection = apsw.Connection(path)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    return connection


class WordEmbedder:
    """Counts of words by hash: no model, but texts that share words are near. `fail` makes it misbehave."""

    def __init__(self, name: str = "words", dimension: int = DIMENSION) -> None:
        self.name = name
        self.dimension = dimension
        self.fingerprint = f"{name}:{dimension}"
        self.fail: str | None = None
        self.texts: list[str] = []

    def embed(self, texts: Any) -> np.ndarray:
        self.texts += texts
        if self.fail == "raises":
            raise RuntimeError("the embedder is down")
        vectors = np.full((len(texts), self.dimension), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.encode()) % self.dimension] += 1
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        match self.fail:
            case "NaN":
                vectors[:] = np.nan
            case "zero":
                vectors[:] = 0
            case "shape":
                vectors = vectors[:, :-1]
            case "rows":
                vectors = vectors[:-1]
        return vectors


def spawn(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Another Python process that runs `code`, on the quickly loaded python kernels."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RECALLITE_KERNELS": "python", **environment},
    )


def run(code: str, *arguments: object, **environment: str) -> str:
    """What `code` prints in another Python process."""
    process = spawn(code, *arguments, **environment)
    out, err = process.communicate(timeout=LAST_RESORT_SECONDS)
    assert process.returncode == 0, err
    return out


def run_at_once(code: str, path: str, arguments: list[tuple[object, ...]]) -> None:
    """Run `code` on a file in a process for each of the arguments; each prints "ready" and waits for a line."""
    others = [spawn(code, path, *each) for each in arguments]
    for other in others:
        assert other.stdout.readline() == "ready\n", other.stderr.read()
    for other in others:
        other.stdin.write("\n")
        other.stdin.flush()
    assert [(other.communicate()[1], other.returncode) for other in others] == [("", 0)] * len(others)


class Other:
    """A Python process with `memory` open on `path`, which evaluates expressions as long as it is asked.

    `attempt(call)` there gives the name of the error that the call raises, or None.
    """

    _CODE = """
import sys
from recallite import Memory, NewRecord, Settings
memory = Memory(sys.argv[1], settings=Settings(embedder="none", busy_timeout_ms=int(sys.argv[2])))
def attempt(call):
    try:
        call()
    except Exception as fault:
        return type(fault).__name__
print("ready", flush=True)
for line in sys.stdin:
    print(repr(eval(line)), flush=True)
"""

    def __init__(self, path: str, *, busy_timeout_ms: int = LAST_RESORT_SECONDS * 1000) -> None:
        self.process = spawn(self._CODE, path, busy_timeout_ms)
        assert self.process.stdout.readline() == "ready\n", self.process.stderr.read()

    def __call__(self, expression: str) -> Any:
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise AssertionError(self.process.stderr.read())
        return eval(answer)

    def __enter__(self) -> Other:
        return self

    def __exit__(self, *fault: object) -> None:
        self.process.communicate()


def supersede_by_rule(memory: Memory, old: str, new: str, reason: str = "another value") -> None:
    """Put a memory in the place of another as rules do that are not certain of it."""
    with memory._engine.atomic() as writer:
        ids = writer.records.find_ids([old, new], "/")
        put_in_place(writer, [ids[old]], [ids[new]], reason=reason, strength=0.9, certain=False, by_rule=True)
