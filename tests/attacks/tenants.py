"""Tenants of one file, each a scoped handle, against stores that only ever saw one of them.

Every operation is carried out twice, in the shared file and in the tenant's own, at the same time by a clock that
stands still meanwhile, and with the same new ids; the two answers, as JSON with every digit, must be equal. A
difference is a leak: something of another tenant decided it. Tenants ask for words and ids that only another has,
and import records under such ids.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallite import Memory, Settings
from recallite.errors import RecalliteError
from recallite.model.records import NewRecord
from recallite.system.parallel import usable_cpus
from tests.attacks.outcome import Outcome
from tests.attacks.tenant_operations import Act, Actor, operation

__all__ = ["DIMENSION", "HashEmbedder", "attack"]

DIMENSION = 24
TENANTS = ("/users/ada", "/users/adam", "/users/ada.b")
# From then on a round costs more than it shows.
_OPERATIONS_A_ROUND = 900
_BEGIN_NS = 1_767_225_600_000_000_000
_VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"profile": "reeve"},
    {"index_snapshot": False},
    {"profile": "hermes"},
    {"embedder": "none"},
    {"token_codes": True, "index_snapshot": False},
)


class HashEmbedder:
    """Counts of words by hash: no model, but texts that share words are near."""

    name, dimension, fingerprint = "words", DIMENSION, f"words:{DIMENSION}"

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """Unit vectors, float32 (texts, dimension)."""
        vectors = np.full((len(texts), DIMENSION), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.encode()) % DIMENSION] += 1
        lengths = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
        return (vectors / lengths).astype(np.float32)


def attack(tries: int, seed: int) -> Outcome:
    """Make `tries` operations of tenants, in rounds of a fresh file each; many rounds run on all processors."""
    sizes = [min(_OPERATIONS_A_ROUND, tries - start) for start in range(0, tries, _OPERATIONS_A_ROUND)]
    rounds = [(seed, number, size) for number, size in enumerate(sizes)]
    if len(rounds) <= len(_VARIANTS):
        parts = [_run(each) for each in rounds]
    else:
        with get_context("spawn").Pool(usable_cpus()) as pool:
            parts = list(pool.imap_unordered(_run, rounds))
    outcome, figures = Outcome("operations"), Counter[str]()
    for part in parts:
        figures.update(part.figures)
        outcome += part
    outcome.figures = {name: float(count) for name, count in sorted(figures.items())}
    return outcome


def _run(chosen: tuple[int, int, int]) -> Outcome:
    """One round: of a seed, its number, and how many operations it has."""
    seed, number, operations = chosen
    outcome, figures = Outcome("operations"), Counter[str]()
    _Round(outcome, figures, seed, number).run(operations)
    outcome.figures = dict(figures)
    return outcome


class _Round:
    """One shared file, the tenants' own files, and a clock and ids that both see alike."""

    def __init__(self, outcome: Outcome, figures: Counter[str], seed: int, number: int) -> None:
        self.outcome, self.figures = outcome, figures
        self.seed, self.number = seed, number
        self.random = Random(f"{seed} {number}")
        self.variant = _VARIANTS[number % len(_VARIANTS)]
        self.now_ns = _BEGIN_NS
        self.made = self.step = 0

    def run(self, operations: int) -> None:
        """So many operations, or as many as go well: after a difference the stores may go on to differ."""
        self.figures["rounds"] += 1
        with ExitStack() as stack:
            folder = Path(tempfile.mkdtemp(prefix="recallite-tenants-"))
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            stack.enter_context(self._clock_and_ids())
            self.paths = {"": folder / "shared.db"} | {scope: folder / f"{scope[7:]}.db" for scope in TENANTS}
            self.files: dict[str, Memory] = {}
            stack.callback(self._close)
            self._open(first=True)
            self.actors = {scope: Actor(scope, self.random, HashEmbedder()) for scope in TENANTS}
            for each in self.actors.values():
                each.others = [other for other in self.actors.values() if other is not each]
            for _ in range(operations):
                self.outcome.tries += 1
                if not self._operate():
                    break

    def _operate(self) -> bool:
        self.step += 1
        self.now_ns += self.random.choice((1_000, 1_000_000, 60_000_000_000, 40_000_000_000_000))
        if self.random.random() < 0.15:
            self._disturb()
        scope = self.random.choice(TENANTS)
        actor = self.actors[scope]
        name, act = operation(actor, self.random)
        self.figures["of_others"] += actor.probing
        answers = [self._answer(act, side, scope) for side in ("", scope)]
        shared, alone = answers[0], answers[1]
        actor.learn(name, shared[1], alone[1])
        said = [msgspec.json.encode(text).decode() for text in (actor.unaliased(shared[0]), alone[0])]
        if alone[0].get("error"):
            self.figures["refused"] += 1
        if said[0] == said[1]:
            return True
        where = next(
            (place for place, pair in enumerate(zip(*said, strict=False)) if pair[0] != pair[1]), min(map(len, said))
        )
        shown = " against ".join(text[max(0, where - 160) : where + 160] for text in said)
        self.outcome.fail(
            "leak", f"seed {self.seed}, round {self.number} {self.variant}, step {self.step}, {scope} {name}: {shown}"
        )
        return False

    def _answer(self, act: Act, side: str, scope: str) -> tuple[Any, Any]:
        """What an operation gives, as plain values, and as it is; an error is an answer too."""
        self.made = 0
        try:
            own = self.actors[scope].shared if side == "" else str
            found = act(self.handles[side, scope], self.files[side], own)
        except RecalliteError as error:
            told = str(error).replace(str(self.paths[side]), "<file>")
            return {"error": f"{type(error).__name__}: {told}"}, None
        except Exception as fault:
            self.outcome.fail("untyped", f"seed {self.seed}, round {self.number}, step {self.step}: {fault!r}")
            return {"error": repr(fault)}, None
        return _plain({"answer": found}), found

    def _disturb(self) -> None:
        """Somebody else works on the shared file: in other scopes, on the whole of it, or all files are opened anew."""
        memory, random = self.files[""], self.random
        self.made = 5_000
        match random.randrange(8):
            case 0:
                memory.store.vacuum()
            case 1:
                self._close()
                self._open()
            case 2:
                memory.recall(" ".join(random.choices(self.actors[TENANTS[0]].vocabulary, k=3)), scope="/zed")
            case _:
                texts = [random.choice([*self.actors.values()]).text() for _ in range(random.randrange(1, 6))]
                scopes = [random.choice(("/", "/users", "/zed", "/users/ad")) for _ in texts]
                items = zip(texts, scopes, strict=True)
                memory.remember_many([{"text": text, "scope": each, "source": "notes"} for text, each in items])
        self.figures["disturbances"] += 1

    def _open(self, *, first: bool = False) -> None:
        settings = Settings(durability="normal", **self.variant)
        os.environ["RECALLITE_LOW_MEMORY"] = str(int(settings.profile == "hermes"))
        embedder = None if self.variant.get("embedder") == "none" else HashEmbedder()
        for side, path in self.paths.items():
            self.files[side] = Memory(path, settings=settings, embedder=embedder)
            if first:  # the embedder is the file's, whoever wrote first
                self.files[side].store.warmup()
                self.files[side].remember(NewRecord("first", scope="/setup", vector=HashEmbedder().embed(["first"])[0]))
                self.files[side].forget(scope="/setup")
        self.handles = {(side, scope): self.files[side].scoped(scope) for scope in TENANTS for side in ("", scope)}

    def _close(self) -> None:
        for memory in self.files.values():
            memory.close()

    def _now(self) -> int:
        return self.now_ns

    @contextmanager
    def _clock_and_ids(self) -> Iterator[None]:
        def new_id() -> str:
            self.made += 1
            return f"{self.step:08d}-{self.made:04d}"

        def new_ids(count: int) -> list[str]:
            return [new_id() for _ in range(count)]

        def new_uuid() -> uuid.UUID:
            return uuid.uuid5(uuid.NAMESPACE_OID, new_id())

        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(time, "time_ns", self._now))
            stack.enter_context(mock.patch.object(uuid, "uuid4", new_uuid))
            for name, module in list(sys.modules.items()):
                for function, new in (("uuid7", new_id), ("uuid7s", new_ids)):
                    if name.startswith("recallite") and callable(getattr(module, function, None)):
                        stack.enter_context(mock.patch.object(module, function, new))
            yield


def _plain(value: Any) -> Any:
    """As JSON has it; of a list of hits also what it says beside them, but how long it took."""
    if isinstance(value, list) and hasattr(value, "evidence_gaps"):
        return {
            "hits": [_plain(hit) for hit in value], "gaps": value.evidence_gaps, "left_out": value.left_out,
            "parts": value.sub_queries, "scopes": value.scopes,
        }  # fmt: skip
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__ if name != "seconds"}
    return msgspec.to_builtins(value, enc_hook=repr)
