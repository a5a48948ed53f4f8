"""Damage to every kind of file that we write or read: flipped bits, lost pages, cut ends. Then a process uses it.

Each try copies a prepared folder, damages one file before it is opened or while it is open, and uses it in a forked
process. Allowed are right answers, and errors of `recallite.errors`. A cached kernel and a snapshot are derived and
checked: with them, every answer must be right. Failures: a process that ends by a signal (crash) or not at all (hung),
any other exception (untyped), and another answer where a checksum or another structure tells (wrong).

What SQLite does not check cannot be told: a bit inside a text of a database makes another text, and a WAL of which a
frame is damaged ends before it. So a database may give other texts, but what `verify` calls clean must be found by its
own words, and a damaged WAL leaves the commits before the damage, no others. An emptied database is a new one. A
workspace's index may give other text until it is made again. The `-shm` file is left out: SQLite maps it for as long
as the database is open, and makes it anew from the WAL at the next opening.
"""

from __future__ import annotations

import importlib
import io
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import recallite_kernels as kernels
from recallite import Memory, Settings, Workspace, WorkspaceConfig
from recallite.embedding.instant import InstantEmbedder
from recallite.embedding.load import model_path
from recallite.embedding.onnx import OnnxEmbedder
from recallite.errors import RecalliteError
from recallite.text.words import tokenize
from recallite_kernels import dispatch, python_backend
from recallite_models.runtime import load_onnxruntime
from tests.attacks.damage import spoil
from tests.attacks.forking import Ended, in_child
from tests.attacks.outcome import Outcome
from tests.attacks.workload import Embedder, small_snapshots

__all__ = ["attack"]

_MEMORIES = 120
_COMMITS = 12
_WORDS = ("apple", "berry", "cherry", "date", "elder", "fig", "grape", "hazel", "iris", "juniper", "kale")
_QUERY = "apple berry unique7"
_SENTENCES = ["The cat sleeps on the sofa", "Lunch is at noon"]
_LIMIT_S = 900.0
# These are compiled within seconds where they have to be.
_KERNELS = ("quantize_int8", "sketch")

Spoil = Callable[[], None]


class _Wrong(Exception):
    """An answer that is not allowed."""


class _Kind(NamedTuple):
    """Files under attack, and their use: it calls `spoil` at its time, and returns how often an error was typed."""

    name: str
    files: str
    use: Callable[[Path, Spoil, dict[str, Any], random.Random], int]


def attack(tries: int, seed: int) -> Outcome:
    """Damage `tries` files, each kind in turn."""
    outcome, counted = Outcome("damaged files"), Counter[str]()
    # Once for all children: a second of each try otherwise.
    for module in ("numba", "recallite_kernels.numba_backend._jit", "tokenizers", "sqlite_vec"):
        with suppress(ImportError):
            importlib.import_module(module)
    with suppress(ImportError):
        load_onnxruntime()
    with tempfile.TemporaryDirectory(prefix="recallite-corruption-") as scratch:
        prepared, copy = Path(scratch, "prepared"), Path(scratch, "copy")
        right = _expect(in_child(lambda: _prepare(prepared), _LIMIT_S))
        kinds = [kind for kind in _KINDS if any(prepared.glob(kind.files))]
        for number in range(tries):
            kind, chance = kinds[number % len(kinds)], random.Random(f"{seed} {number}")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(prepared / kind.name, copy / kind.name)
            path = chance.choice(sorted(copy.glob(kind.files)))
            told = Path(scratch, "told")
            ended = in_child(partial(_use, kind, copy, path, right, chance, told), _LIMIT_S)
            outcome.tries += 1
            where = f"seed {seed}, try {number}, {path.relative_to(copy)}, {told.read_text()}"
            if ended.hung or ended.signal:
                outcome.fail("hung" if ended.hung else "crash", f"{where}, signal {ended.signal}")
            elif ended.error is not None:
                wrong = _Wrong.__name__ in ended.error
                outcome.fail("wrong" if wrong else "untyped", f"{where}: {ended.error[-700:]}")
            else:
                counted[kind.name] += 1
                counted["with a typed error"] += ended.value > 0
    outcome.figures = {name: float(count) for name, count in sorted(counted.items())}
    return outcome


def _expect(ended: Ended) -> Any:
    if ended.error is not None or ended.signal or ended.hung:
        raise RuntimeError(f"the work fails without any damage: {ended}")
    return ended.value


def _prepare(folder: Path) -> dict[str, Any]:
    """Files of every kind, and what is right about them."""
    with_numba = kernels.status().selected == "numba"
    _ready()
    for name in ("store", "snapshot", "journal", "backup", "export", "settings"):
        (folder / name).mkdir(parents=True)
    right: dict[str, Any] = {}
    with _opened(folder / "store" / "m.db") as memory:
        ids = memory.remember_many([_item(number) for number in range(_MEMORIES)])
        memory.link(ids[0], ids[1])
        memory.update(ids[2], text="changed words of a second version")
        right["recalled"] = _recalled(memory)
        memory.store.backup(folder / "backup" / "m.db")
        memory.transfer.export(folder / "export" / "m.jsonl")
    for name in ("m.db", "m.db-index"):
        shutil.move(folder / "store" / name, folder / "snapshot" / name)
    shutil.copy(folder / "snapshot" / "m.db", folder / "store")
    with _opened(folder / "journal" / "whole.db") as memory:
        right["commits"] = [memory.remember(f"commit {number} " + "word " * 200).text for number in range(_COMMITS)]
        for ending in ("", "-wal"):
            shutil.copy(folder / "journal" / f"whole.db{ending}", folder / "journal" / f"m.db{ending}")
    for path in folder.glob("journal/whole.db*"):
        path.unlink()
    notes = folder / "workspace" / "memory"
    notes.mkdir(parents=True)
    for number in range(20):
        (notes / f"n{number}.md").write_text(f"# Note {number}\n\nAbout {_WORDS[number % 11]} and mark{number}.\n")
    with Workspace(notes.parent, embedder=Embedder()) as workspace:
        workspace.index()
        right["found"] = _found(workspace)
    (folder / "settings" / "settings.toml").write_text('profile = "hermes"\nbusy_timeout_ms = 500\n\n[write]\n')
    for ending in ("toml", "json", "yaml"):
        WorkspaceConfig().save(folder / "settings" / f"workspace.{ending}")
    for name in ("default", "instant"):
        shutil.copytree(model_path(name).parent, folder / name)
        right[name] = _embedded(folder / name, name)
    right["kernels"] = _computed()
    if with_numba:
        _load_kernels(folder / "kernels")
        if not np.allclose(_computed(), right["kernels"], rtol=1e-6):
            raise _Wrong("the kernels differ from Python's")
    return right


def _use(kind: _Kind, folder: Path, path: Path, right: dict[str, Any], chance: random.Random, told: Path) -> int:
    """Damage a file and use it, in this process."""
    _ready()
    told.write_text("not damaged yet")
    return kind.use(folder / kind.name, lambda: told.write_text(spoil(path, chance)) and None, right, chance)


def _ready() -> None:
    """Small snapshots, and no compiler that starts by itself."""
    small_snapshots()
    dispatch._selected, dispatch._compiled, dispatch.active = "python", False, python_backend  # type: ignore[assignment]


class _Typed:
    """Calls what may refuse in our own words, and counts how often it does."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, call: Callable[[], Any], otherwise: Any = None) -> Any:
        try:
            return call()
        except RecalliteError:
            self.count += 1
            return otherwise


def _item(number: int) -> dict[str, Any]:
    words = " ".join(_WORDS[(number * step) % len(_WORDS)] for step in (1, 3, 5))
    return {"text": f"{words} unique{number}", "tags": [f"tag{number % 5}"], "created_at": "2026-01-01T00:00:00Z"}


def _opened(path: Path, **settings: Any) -> Memory:
    return Memory(path, embedder=Embedder(), settings=Settings(**settings))


def _recalled(memory: Memory) -> list[tuple[str, float]]:
    """Of every memory, by words and vectors: any damage to an array shows."""
    return [
        (hit.text, round(hit.score, 5))
        for query in (_QUERY, *_WORDS)
        for hit in memory.recall(query, limit=_MEMORIES, profile={"half_life_days": 0})
    ]


def _found(workspace: Workspace) -> list[tuple[str, str]]:
    return [(hit.path, hit.text) for query in ("mark7", "fig") for hit in workspace.search(query, min_score=0.0)]


def _use_store(folder: Path, spoil: Spoil, right: dict[str, Any], chance: random.Random) -> int:
    """Every verb on a damaged database. What `verify` calls clean is found by its own words."""
    typed, path = _Typed(), folder / "m.db"
    if at_rest := chance.random() < 0.6:
        spoil()
    memory = typed(lambda: _opened(path))
    if memory is None:
        return typed.count
    try:
        if not at_rest:
            typed(lambda: _recalled(memory))
            spoil()
        for call in (
            lambda: _recalled(memory), lambda: memory.store.stats(), lambda: memory.transfer.export(io.StringIO()),
            lambda: memory.remember("one more apple"), lambda: memory.recall("tag1", mode="vector"),
        ):  # fmt: skip
            typed(call)
        clean = typed(lambda: memory.store.verify().ok)
        if clean:
            for record in typed(lambda: memory.list(limit=None), []):
                hits = typed(lambda text=record.text: memory.recall(text, mode="keyword", limit=20), [])
                if tokenize(record.text) and not typed.count and record.id not in [hit.id for hit in hits]:
                    raise _Wrong(f"{record.text!r} is not found by its words, and verify is clean")
        elif typed(lambda: memory.store.rebuild().ok) and not typed(lambda: memory.store.verify().ok):
            raise _Wrong("rebuild says that all is well, and verify does not")
    finally:
        typed(memory.close)
    return typed.count


def _use_journal(folder: Path, spoil: Spoil, right: dict[str, Any], chance: random.Random) -> int:
    """A database whose last commits stand in a damaged WAL has the first of them."""
    spoil()
    typed = _Typed()
    memory = typed(lambda: _opened(folder / "m.db"))
    if memory is None:
        return typed.count
    with memory:
        texts = typed(lambda: [record.text for record in memory.list(limit=None, order="oldest")])
        if texts is not None and (texts != right["commits"][: len(texts)] or not memory.store.verify().ok):
            raise _Wrong(f"{len(texts)} texts, which are not the first commits, or not whole")
    return typed.count


def _use_snapshot(folder: Path, spoil: Spoil, right: dict[str, Any], chance: random.Random) -> int:
    """Answers are right whatever happens to the snapshot, before it is opened and while it is."""
    if at_rest := chance.random() < 0.6:
        spoil()
    os.environ["RECALLITE_LOW_MEMORY"] = str(int(chance.random() < 0.5))  # of this forked process
    with _opened(folder / "m.db") as memory:
        if not at_rest:
            memory.recall("warm up")
            if memory.store.stats().index["origin"] != "snapshot":
                raise _Wrong("the snapshot is not used")
            spoil()
        if (recalled := _recalled(memory)) != right["recalled"]:
            differing = sum(mine != theirs for mine, theirs in zip(recalled, right["recalled"], strict=False))
            raise _Wrong(f"{differing} of {len(right['recalled'])} hits differ")
    return 0


def _use_workspace(folder: Path, spoil: Spoil, right: dict[str, Any], chance: random.Random) -> int:
    """A damaged index may say other things until it is made again."""
    typed = _Typed()
    if at_rest := chance.random() < 0.6:
        spoil()
    workspace = typed(lambda: Workspace(folder, embedder=Embedder()))
    if workspace is None:
        return typed.count
    with workspace:
        if not at_rest:
            typed(lambda: _found(workspace))
            spoil()
        for call in (lambda: _found(workspace), workspace.status, workspace.files):
            typed(call)
        if typed(lambda: workspace.index(force=True)):
            found = typed(lambda: _found(workspace))
            if found is not None and sorted(found) != sorted(right["found"]):
                raise _Wrong(f"indexed anew it finds {found}")
    return typed.count


def _use_export(folder: Path, spoil: Spoil, right: dict[str, Any], chance: random.Random) -> int:
    """What comes in of a damaged export is whole."""
    spoil()
    typed = _Typed()
    with Memory(":memory:", embedder=Embedder()) as memory:
        typed(lambda: memory.transfer.import_(folder / "m.jsonl"))
        if not memory.store.verify().ok:
            raise _Wrong("verify is not clean after the import")
        memory.recall(_QUERY)
    return typed.count


def _use_kernels(folder: Path, spoil: Spoil, right: dict[str, Any], chance: random.Random) -> int:
    """A damaged kernel is compiled again."""
    spoil()
    _load_kernels(folder)
    if not np.allclose(_computed(), right["kernels"], rtol=1e-6):
        raise _Wrong("another result")
    return 0


def _load_kernels(folder: Path) -> None:
    from recallite_kernels.numba_backend import _jit

    _jit.KERNELS[:] = [kernel for kernel in _jit.KERNELS if kernel.name in _KERNELS]
    for kernel in _jit.KERNELS:
        kernel._result = None  # the process that this was forked from may have loaded it
    os.environ["RECALLITE_CACHE_DIR"] = str(folder)
    dispatch._selected, dispatch.active = "numba", dispatch._answering
    kernels.warmup()


def _computed() -> list[float]:
    values = np.random.default_rng(0)
    vectors = values.standard_normal((6, 100)).astype(np.float32)
    parts = (*kernels.quantize_int8(vectors), kernels.sketch(vectors) % 2**32)
    return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in parts]).tolist()


def _embedded(folder: Path, name: str) -> list[list[float]]:
    bundled = model_path(None)
    if name == "default":
        return OnnxEmbedder(folder / bundled.name).embed(_SENTENCES).tolist()
    return InstantEmbedder(folder, bundled.with_name("tokenizer.json")).embed(_SENTENCES).tolist()


def _use_model(folder: Path, spoil: Spoil, right: dict[str, Any], chance: random.Random) -> int:
    """Weights and vocabulary are what the manifest says, or refused."""
    spoil()
    typed = _Typed()
    vectors = typed(lambda: _embedded(folder, folder.name))
    if vectors is not None and not np.allclose(vectors, right[folder.name], atol=1e-5):
        raise _Wrong("other vectors")
    return typed.count


def _use_settings(folder: Path, spoil: Spoil, right: dict[str, Any], chance: random.Random) -> int:
    spoil()
    typed = _Typed()
    typed(lambda: Settings.load(folder / "settings.toml"))
    for ending in ("toml", "json", "yaml"):
        typed(lambda path=folder / f"workspace.{ending}": WorkspaceConfig.load(path))
    return typed.count


_KINDS = (
    _Kind("store", "store/m.db", _use_store),
    _Kind("journal", "journal/m.db-wal", _use_journal),
    _Kind("snapshot", "snapshot/m.db-index", _use_snapshot),
    _Kind("workspace", "workspace/.recallite/index.db", _use_workspace),
    _Kind("backup", "backup/m.db", _use_store),
    _Kind("export", "export/m.jsonl", _use_export),
    _Kind("kernels", "kernels/kernels-*/*.kernel", _use_kernels),
    _Kind("default", "default/[!LN]*", _use_model),
    _Kind("instant", "instant/[!LN]*", _use_model),
    _Kind("settings", "settings/*", _use_settings),
)
