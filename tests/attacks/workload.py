"""Mixed work on a store, and a model that says what must be in it after every transaction.

A plan is a list of operations, made from a seed. The model is a dict of what a reader sees; each operation gives the
states that the store passes through, one a transaction, so that a store which was stopped anywhere must be in the
last state that was acknowledged or in one of the operation that was under way.
"""

from __future__ import annotations

import copy
import io
import json
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recallite import Memory, Settings, Workspace
from recallite.index import snapshot as index_snapshot
from recallite.model.records import NewRecord

__all__ = [
    "NOTHING",
    "VERBS",
    "Embedder",
    "Hands",
    "Operation",
    "State",
    "make_plan",
    "small_snapshots",
    "snapshot",
    "states",
]

State = dict[str, Any]
NOTHING: State = {"texts": {}, "links": [], "superseded": [], "sessions": {}, "documents": {}}
_WORDS = [a + b for a in ("ba", "ko", "mi", "ru", "te", "sa", "lo") for b in ("ren", "dal", "tis", "mok")]
_MARK = re.compile(r"\b\w+-v\d+-p\d+\b")
_WEIGHTS = {
    "remember": 6, "remember_many": 2, "update": 5, "revise": 2, "forget": 3, "forget_tag": 1, "link": 3, "unlink": 1,
    "supersede": 3, "replace": 2, "undo": 1, "append": 4, "ingest": 3, "delete": 1, "import": 1, "recall": 3, "note": 2,
    "backup": 1, "export": 1, "folder": 0.5, "vacuum": 1, "rebuild": 0.5, "reopen": 1,
}  # fmt: skip
VERBS = tuple(_WEIGHTS)


class Operation(NamedTuple):
    """A verb with its arguments."""

    verb: str
    given: dict[str, Any]


class Embedder:
    """Counts of words by hash: no model to load, and the same everywhere."""

    name = "words"
    dimension = 16
    fingerprint = "words:16"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors (n, 16)."""
        vectors = np.full((len(texts), self.dimension), 0.01, dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().split():
                vectors[row, zlib.crc32(word.encode()) % self.dimension] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def small_snapshots() -> None:
    """Have this process keep snapshots of small stores, too: by itself it does from 20,000 memories on."""
    index_snapshot._SMALLEST, index_snapshot._FAR_BEHIND = 8, 4


def make_plan(seed: int, length: int, start: State, *, verbs: Sequence[str] = VERBS, most: int = 60) -> list[Operation]:
    """Operations that can be done one after another on a store in the state `start`; it holds about `most` memories."""
    chance, state, plan = random.Random(seed), start, list[Operation]()
    while len(plan) < length:
        verb = chance.choices(verbs, [_WEIGHTS[name] for name in verbs])[0]
        if len(state["texts"]) > most:
            verb = "forget"
        operation = _operation(verb, chance, state, f"{seed}x{len(plan)}")
        if operation is not None:
            plan.append(operation)
            *_, state = states(operation, state)
    return plan


def _operation(verb: str, chance: random.Random, state: State, name: str) -> Operation | None:
    """One that makes sense in this state; None where there is none."""

    def sentence(mark: str) -> str:
        return f"{mark} {' '.join(chance.choices(_WORDS, k=chance.randrange(3, 60)))}"

    keys, sources = sorted(state["texts"]), sorted(state["documents"])
    # A long text takes pages of its own.
    text = sentence(f"fact{name}") * chance.choice((1, 1, 1, 60))
    match verb:
        case "remember":
            return Operation(verb, {"key": name, "text": text, "tags": [f"tag{chance.randrange(6)}"]})
        case "remember_many" | "import":
            size = chance.randrange(2, 12)
            # Keys sort in the order in which they are stored, by which `supersede` below goes.
            items = [
                {"key": f"{name}n{n:02}", "text": sentence(f"fact{name}n{n}"), "tags": ["many"]} for n in range(size)
            ]
            return Operation(verb, {"items": items, "batch_size": chance.randrange(2, 8)})
        case "update" if keys:
            return Operation(verb, {"key": chance.choice(keys), "text": text})
        case "revise" if keys:
            return Operation(
                verb, {"key": chance.choice(keys), "tags": [f"tag{name}"], "importance": chance.randrange(11) / 10}
            )
        case "forget" if keys:
            return Operation(verb, {"keys": chance.sample(keys, min(len(keys), chance.choice((1, 1, 6))))})
        case "forget_tag" if any(each["tags"] == ["many"] for each in state["texts"].values()):
            return Operation(verb, {"tag": "many"})
        case "link" if len(keys) > 1:
            source, target = chance.sample(keys, 2)
            return Operation(verb, {"source": source, "target": target})
        case "unlink" if state["links"]:
            source, target = chance.choice(state["links"])
            return Operation(verb, {"source": source, "target": target})
        case "supersede" if len(_current(state)) > 1:
            # What was stored last supersedes: no cycles, and no times that contradict.
            old, new = sorted(chance.sample(_current(state), 2), key=[*state["texts"]].index)
            return Operation(verb, {"old": old, "new": new, "reason": sentence("since")[:200]})
        case "replace" if _current(state):
            return Operation(verb, {"old": chance.choice(_current(state)), "key": name, "text": text, "tags": ["new"]})
        case "undo" if state["superseded"]:
            return Operation(verb, {"old": chance.choice(state["superseded"])[0]})
        case "append":
            messages = [sentence(f"said{name}m{n}") for n in range(chance.randrange(1, 4))]
            return Operation(verb, {"session": f"s{chance.randrange(4)}", "messages": messages})
        case "ingest":
            source, version = f"doc{chance.randrange(5)}.md", name.replace("x", "00")
            marks = [f"{source[:-3]}-v{version}-p{n}" for n in range(chance.randrange(1, 6))]
            return Operation(verb, {"source": source, "marks": marks, "text": "\n\n".join(map(sentence, marks)) + "\n"})
        case "delete" if sources:
            return Operation(verb, {"source": chance.choice(sources)})
        case "note":
            return Operation(verb, {"name": f"n{chance.randrange(4)}.md", "mark": f"note{name}", "text": sentence("#")})
        case "backup":
            return Operation(verb, {"name": f"backup-{name}.db"})
        case "recall":
            return Operation(verb, {"query": sentence("what")})
        case "export" | "folder" | "vacuum" | "rebuild" | "reopen":
            return Operation(verb, {})
    return None


def states(operation: Operation, state: State) -> Iterator[State]:
    """The states after each transaction of an operation that begins in `state`; at least one."""
    after, given = copy.deepcopy(state), operation.given
    texts = after["texts"]
    match operation.verb:
        case "remember":
            texts[given["key"]] = {"versions": [given["text"]], "tags": given["tags"], "importance": 0.5}
        case "remember_many" | "import":
            size = given["batch_size"]
            for start in range(0, len(given["items"]), size):
                for each in given["items"][start : start + size]:
                    texts[each["key"]] = {"versions": [each["text"]], "tags": each["tags"], "importance": 0.5}
                yield copy.deepcopy(after)
            return
        case "update":
            texts[given["key"]]["versions"].append(given["text"])
        case "revise":
            texts[given["key"]] |= {"tags": given["tags"], "importance": given["importance"]}
        case "forget" | "forget_tag":
            gone = given.get("keys") or [key for key, each in texts.items() if each["tags"] == [given["tag"]]]
            for key in gone:
                del texts[key]
            after["links"] = [pair for pair in after["links"] if not set(pair) & set(gone)]
            after["superseded"] = _without(after["superseded"], set(gone))
        case "link":
            pair = [given["source"], given["target"]]
            after["links"] = sorted([*(each for each in after["links"] if each != pair), pair])
        case "unlink":
            after["links"].remove([given["source"], given["target"]])
        case "supersede":
            after["superseded"] = sorted([*after["superseded"], [given["old"], given["new"]]])
        case "replace":
            texts[given["key"]] = {"versions": [given["text"]], "tags": given["tags"], "importance": 0.5}
            after["superseded"] = sorted([*after["superseded"], [given["old"], given["key"]]])
        case "undo":
            after["superseded"] = [pair for pair in after["superseded"] if pair[0] != given["old"]]
        case "append":
            said = after["sessions"].setdefault(given["session"], [])
            if not said:
                yield copy.deepcopy(after)
            said += given["messages"]
        case "ingest":
            after["documents"][given["source"]] = sorted(given["marks"])
        case "delete":
            del after["documents"][given["source"]]
    yield after


def _current(state: State) -> list[str]:
    """The keys of what nothing supersedes."""
    return sorted(state["texts"].keys() - {old for old, _ in state["superseded"]})


def _without(superseded: list[list[str]], gone: set[str]) -> list[list[str]]:
    """The pairs that are left when some are forgotten: what they superseded falls to what superseded them."""
    successor = dict(superseded)
    left = []
    for old, new in superseded:
        while new in gone and new in successor:
            new = successor[new]
        if old not in gone and new not in gone:
            left.append([old, new])
    return left


class Hands:
    """Does the operations in a folder, on `agent.db`, the workspace `notes` and what is copied to `copies`."""

    def __init__(self, folder: Path, *, durability: str = "full") -> None:
        self.folder, self.copies, self.notes = folder, folder / "copies", folder / "notes"
        for each in (self.copies, self.notes / "memory"):
            each.mkdir(parents=True, exist_ok=True)
        self._settings = Settings(durability=durability, busy_timeout_ms=30_000)
        self.memory = self._open()
        self._workspace: Workspace | None = None

    def _open(self) -> Memory:
        return Memory(self.folder / "agent.db", embedder=Embedder(), settings=self._settings)

    @property
    def workspace(self) -> Workspace:
        """Opened at the first use."""
        if self._workspace is None:
            self._workspace = Workspace(self.notes, embedder=Embedder())
        return self._workspace

    def close(self) -> None:
        """Close what is open."""
        if self._workspace is not None:
            self._workspace.close()
        self._workspace = None
        self.memory.close()

    def reopen(self) -> None:
        """Close the store and open it anew."""
        self.memory.close()
        self.memory = self._open()

    def prepare(self, operation: Operation) -> None:
        """What a user does before it, which is not under attack."""
        if operation.verb == "note":
            given = operation.given
            (self.notes / "memory" / given["name"]).write_text(f"# {given['mark']}\n\n{given['text']}\n")

    def do(self, operation: Operation) -> None:
        """Do it; raises what the engine raises."""
        given, memory = operation.given, self.memory
        match operation.verb:
            case "remember":
                memory.remember(given["text"], tags=given["tags"], metadata={"key": given["key"]})
            case "remember_many":
                memory.remember_many(_items(given["items"]), batch_size=given["batch_size"])
            case "import":
                lines = "".join(json.dumps(each) + "\n" for each in _items(given["items"]))
                memory.transfer.import_(io.StringIO(lines), format="jsonl", batch_size=given["batch_size"])
            case "update":
                memory.update(self._id(given["key"]), text=given["text"])
            case "revise":
                memory.update(self._id(given["key"]), tags=given["tags"], importance=given["importance"])
            case "forget":
                memory.forget([self._id(key) for key in given["keys"]])
            case "forget_tag":
                memory.forget(tags=[given["tag"]])
            case "link":
                memory.link(self._id(given["source"]), self._id(given["target"]))
            case "unlink":
                memory.unlink(self._id(given["source"]), self._id(given["target"]))
            case "supersede":
                memory.supersede(self._id(given["old"]), self._id(given["new"]), reason=given["reason"])
            case "replace":
                memory.remember(
                    NewRecord(
                        given["text"],
                        tags=given["tags"],
                        metadata={"key": given["key"]},
                        supersedes=self._id(given["old"]),
                    )
                )
            case "undo":
                memory.restore(self._id(given["old"]))
            case "append":
                session = memory.sessions.open(given["session"])
                session.extend([{"role": "user", "content": message} for message in given["messages"]])
            case "ingest":
                memory.knowledge.ingest(given["text"].encode(), name=given["source"])
            case "delete":
                memory.knowledge.delete(given["source"])
            case "recall":
                memory.recall(given["query"], limit=5)
            case "note":
                self.workspace.index()
            case "backup":
                memory.store.backup(self.copies / given["name"])
            case "export":
                memory.transfer.export(self.copies / "export.jsonl")
            case "folder":
                memory.transfer.export_folder(self.copies / "markdown")
            case "vacuum":
                memory.store.vacuum()
            case "rebuild":
                memory.store.rebuild()
            case "reopen":
                self.reopen()

    def _id(self, key: str) -> str:
        (found,) = self.memory.list(where={"metadata.key": {"eq": key}}, include_superseded=True)
        return found.id


def _items(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"text": each["text"], "tags": each["tags"], "metadata": {"key": each["key"]}} for each in items]


def snapshot(memory: Memory, exported: str | None = None) -> State:
    """What is in a store, or in what was exported from it, as the model says it."""
    if exported is None:
        stream = io.StringIO()
        memory.transfer.export(stream)
        exported = stream.getvalue()
    state = copy.deepcopy(NOTHING)
    keys: dict[str, str] = {}
    marks: dict[str, set[str]] = {}
    versions: list[tuple[str, str, dict[str, Any]]] = []
    links, superseded = [], []
    for line in map(json.loads, exported.splitlines()[1:]):
        if "link" in line:
            links.append(line["link"])
        elif "supersession" in line:
            superseded.append(line["supersession"])
        elif "document" in line:
            state["documents"][line["document"]["source"]] = []
        elif line["kind"] == "chunk":
            marks.setdefault(line["source"], set()).update(_MARK.findall(line["text"]))
        else:
            keys[line["id"]] = line["metadata"]["key"]
            versions.append((line["metadata"]["key"], line["recorded_from"], line))
    for key, _, line in sorted(versions, key=lambda each: each[:2]):
        held = state["texts"].setdefault(key, {"versions": []})
        held["versions"].append(line["text"])
        held |= {"tags": list(line["tags"]), "importance": line["importance"]}
    state["links"] = sorted([keys[each["source"]], keys[each["target"]]] for each in links)
    state["superseded"] = sorted(
        [keys[each["old"]], keys[each["new"]]] for each in superseded if each["known_until"] is None
    )
    for source, found in marks.items():
        state["documents"][source] = sorted(found)
    for each in memory.sessions.list():
        state["sessions"][each.id] = [message["content"] for message in memory.sessions.open(each.id).messages()]
    return state
