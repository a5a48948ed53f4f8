"""The store as a state machine of Hypothesis: every verb drawn at random, carried out in the store and in the model.

Two memories have the same file open, each with handles bound to scopes; they are closed and opened anew with other
settings. The clock stands still within a step. What a step does is decided by what Hypothesis draws and by the order
of the model's records alone, never by an id or the time, so that the same draws are the same steps.
"""

from __future__ import annotations

import io
import os
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recallite import Memory, Settings, engine
from recallite.errors import RecalliteError
from recallite.index import snapshot
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.attacks.stateful_checks import (
    FILTERS,
    check_links,
    check_listed,
    check_recall,
    check_services,
    check_versions,
    same,
)
from tests.attacks.stateful_model import Model, Refused, Version, inside, joined
from tests.attacks.tenants import DIMENSION, HashEmbedder

__all__ = ["WORDS", "StoreMachine"]

WORDS = ("kiln", "glaze", "otter", "fjord", "quartz", "lathe", "marble", "walrus")
_BASES = ("/", "/", "/a", "/a/b", "/c")
_SCOPES = ("/", "/", "/a", "/a/b", "/ab", "/c")
_KINDS = ("similar", "causal", "supports")
_ERRORS = ("the disk is full", "permission denied by the server")
# Of what is checked after a step; odd, so that every handle has its turn at each.
_PARTS = ("recall", "versions", "recall", "services", "recall")
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_A_STEP = timedelta(seconds=1, microseconds=7)
# What the items of a batch are dated apart.
_BETWEEN_ITEMS = timedelta(microseconds=1)
# Small enough that snapshots are written.
_LIMITS = ((snapshot, "_SMALLEST", 4), (snapshot, "_FAR_BEHIND", 3), (engine, "_LARGE", 12))

handles = st.integers(0, 2 * len(_BASES) - 1)
places = st.integers(0, 99)
scopes = st.sampled_from(_SCOPES)
words = st.sampled_from(WORDS)
texts = st.lists(words, min_size=1, max_size=4).map(" ".join)
tags = st.lists(st.sampled_from(("red", "blue", "green")), max_size=2, unique=True)
unit = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))
# No component is 0 or less: all cosines are above 0, and every memory with a vector is found.
vectors = st.none() | st.lists(st.integers(1, 9), min_size=DIMENSION, max_size=DIMENSION)
seconds = st.none() | st.sampled_from((-5, 4, 15, 1000))
fields: dict[str, st.SearchStrategy[Any]] = {
    "context": st.none() | words,
    "kind": st.sampled_from(("memory", "note")),
    "scope": scopes,
    "tags": tags,
    "importance": unit,
    "metadata": st.sampled_from(({}, {"n": 1}, {"n": 2, "who": "ada"})),
    "topic": st.sampled_from((None, "tea", "tax")),
    "source": st.sampled_from((None, "log", "mail")),
    "position": st.none() | st.integers(0, 9),
    "valid_from": seconds,
    "expires_at": st.none() | st.sampled_from((4, 15, 1000)),
    "pinned": st.booleans(),
    "vector": vectors,
}
chosen_fields = st.lists(st.sampled_from([*fields]), max_size=4, unique=True)
drawn = chosen_fields.flatmap(lambda names: st.fixed_dictionaries({name: fields[name] for name in names}))
settings_drawn = st.fixed_dictionaries({
    "index_snapshot": st.booleans(), "low_memory": st.booleans(),
})  # fmt: skip


class StoreMachine(RuleBasedStateMachine):
    """`counts` are of the class: how many steps of each kind all its runs have made."""

    counts: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.folder = Path(tempfile.mkdtemp(prefix="recallite-stateful-"))
        self.stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        for module, name, limit in _LIMITS:
            self.stack.enter_context(mock.patch.object(module, name, limit))
        self.stack.enter_context(mock.patch.object(time, "time_ns", self._now_ns))
        self.path = self.folder / "memory.db"
        self.now, self.step, self.copies = _BEGIN, 0, 0
        self.model = Model()
        self.embedding = False
        self.memories: list[Memory] = []
        self.embeds: list[bool] = [False, False]

    def teardown(self) -> None:
        """Compare all of it, unless a step has failed, and close."""
        try:
            if self.memories and sys.exc_info()[0] is None:
                for number in range(2 * len(_BASES)):
                    self._check(number, number)
                self._verify(0)
        finally:
            for memory in self.memories:
                memory.close()
            self.stack.close()

    # ── the file ───────────────────────────────────────────────────────────────────────────────────────────────

    @initialize(
        embedding=st.booleans(),
        first=settings_drawn,
        second=settings_drawn,
        items=st.lists(texts, min_size=4, max_size=9),
    )
    def open_the_file(self, embedding: bool, first: dict[str, Any], second: dict[str, Any], items: list[str]) -> None:
        """With an embedder, or with vectors that are given; its first writer says which. Some memories are there."""
        self.embedding = embedding
        self.memories = [self._open(0, first, embedding), self._open(1, second, embedding)]
        if embedding:
            self.memories[0].forget(self.memories[0].remember("first").id)
        self._stored_together(0, self.memories[0].remember_many(items), "/", [{"text": text} for text in items])

    @rule(number=st.integers(0, 1), settings=settings_drawn, keyword_only=st.booleans())
    def reopen(self, number: int, settings: dict[str, Any], keyword_only: bool) -> None:
        """With other settings, at times without the embedder."""
        self._step("reopen")
        self.memories[number].close()
        self.memories[number] = self._open(number, settings, self.embedding and not keyword_only)

    @rule(
        number=st.integers(0, 1), verb=st.sampled_from(("vacuum", "rebuild", "reembed", "backup", "export", "verify"))
    )
    def maintain(self, number: int, verb: str) -> None:
        """What works on the whole file; copies of it hold the same."""
        self._step(verb)
        memory = self.memories[number]
        match verb:
            case "vacuum":
                memory.store.vacuum()
            case "rebuild":
                assert memory.store.rebuild().ok
            case "verify":
                self._verify(number)
            case "reembed":
                if self.embeds[number]:
                    memory.store.reembed()
                    for version in self.model.visible("/").values():
                        version |= {"waits": False, "embedding_state": "embedded"}
                else:
                    self._refused(memory.store.reembed)
            case _:
                self._copy(memory, verb)

    def _copy(self, memory: Memory, verb: str) -> None:
        self.copies += 1
        path = self.folder / f"copy-{self.copies}.db"
        if verb == "backup":
            memory.store.backup(path)
        with Memory(path, embedder="none", settings=Settings(durability="normal", index_snapshot=False)) as copy:
            if verb == "export":
                stream = io.StringIO()
                assert memory.transfer.export(stream, format="jsonl", vectors=True) == len(self.model.records)
                stored = copy.transfer.import_(io.StringIO(stream.getvalue()), format="jsonl")
                assert (stored.records, stored.links) == (len(self.model.records), len(self.model.links)), stored
            check_versions(copy, "/", self.model, [])
            check_links(copy, "/", self.model)
            assert {each.source for each in copy.knowledge.list()} == {key[1] for key in self.model.documents}
            if verb == "backup":
                check_listed(copy, "/", self.model, self.now)
                check_services(copy, copy, "/", self.model, self.now, WORDS)
            checked = copy.store.verify()
            assert checked.ok, f"the {verb}: {checked.problems}"
        for each in self.folder.glob(path.name + "*"):
            each.unlink()

    # ── memories ───────────────────────────────────────────────────────────────────────────────────────────────

    @rule(number=handles, text=texts, given=drawn, past=st.sampled_from((None, None, -3600, 3)))
    def remember(self, number: int, text: str, given: dict[str, Any], past: int | None) -> None:
        """One memory; at times it was made before, or dated into the future."""
        self._step("remember")
        handle, base = self._handle(number)
        arguments = self._timed(given)
        if past is not None:
            arguments["created_at"] = self.now + timedelta(seconds=past)
        record = handle.remember(NewRecord(text, **arguments))
        if record.id in self.model.records:  # nothing but what was said before
            assert record.outcome == "duplicate"
            assert record.text.lower() == text.lower()
            return
        assert record.outcome == "created"
        self._stored(number, record.id, base, {"text": text, **arguments})
        same(record, self.model.records[record.id][-1], base, "remember")

    @rule(number=handles, items=st.lists(st.tuples(texts, drawn), max_size=5), bad=st.booleans())
    def remember_many(self, number: int, items: list[tuple[str, dict[str, Any]]], bad: bool) -> None:
        """Several in one transaction; one that is blank stops all of them."""
        self._step("remember_many")
        handle, base = self._handle(number)
        rows = [{"text": text, **self._timed(given)} for text, given in items]
        if bad:
            self._refused(lambda: handle.remember_many([*rows, " "]))
            return
        self._stored_together(number, handle.remember_many(rows), base, rows)

    @rule(number=handles, text=texts, topic=st.sampled_from(("tea", "tax")), replace=st.booleans(), tagged=tags)
    def remember_on_topic(self, number: int, text: str, topic: str, replace: bool, tagged: list[str]) -> None:
        """The newest of a topic takes the place of the one before."""
        self._step("remember_on_topic")
        handle, base = self._handle(number)
        policy = WritePolicy(merge_strategy="replace" if replace else "latest")
        known = self.model.on_topic(base, topic, self.now)
        record = handle.remember(NewRecord(text, topic=topic, tags=tagged), policy=policy)
        if known is None:
            assert record.outcome == "created"
            self._stored(number, record.id, base, {"text": text, "topic": topic, "tags": tagged})
            return
        assert record.id == known, f"{record.id} was taken for the memory of the topic, not {known}"
        version = self.model.records[known][-1]
        keep, said = not replace or version["pinned"], (text, None) != (version["text"], version["context"])
        if said:
            version = self.model.say(known, text, None, None, self.now, self._embed(number), keep=keep)
        version |= {"created_at": self.now, "valid_from": None, "expires_at": None, "updated_at": self.now}
        version["tags"] = tuple(tagged) or version["tags"]
        assert record.outcome == ("merged" if keep or not said else "replaced")
        same(record, version, base, "remember on a topic")

    @rule(number=handles, place=places, text=st.none() | texts, given=drawn)
    def update(self, number: int, place: int, text: str | None, given: dict[str, Any]) -> None:
        """Any fields at once."""
        self._step("update")
        handle, base = self._handle(number)
        public_id = self._pick(base, place)
        changes = self._timed(given) | ({} if text is None else {"text": text})
        if not changes:
            self._refused(lambda: handle.update(public_id))
            return
        held = {**changes, "tags": tuple(changes["tags"])} if "tags" in changes else changes
        self._both(
            lambda: self.model.change(public_id, held, base, self.now, self._embed(number)),
            lambda: same(
                handle.update(public_id, **changes), self.model.records[public_id][-1], base, "what update returned"
            ),
        )

    @rule(number=handles, place=places, scope=scopes, expires=seconds, moves=st.booleans())
    def move_or_expire(self, number: int, place: int, scope: str, expires: int | None, moves: bool) -> None:
        """Change only who sees a memory, or how long."""
        self._step("move_or_expire")
        handle, base = self._handle(number)
        public_id = self._pick(base, place)
        changes: dict[str, Any] = (
            {"scope": scope} if moves else {"expires_at": None, **self._timed({"expires_at": expires})}
        )
        self._both(
            lambda: self.model.change(public_id, changes, base, self.now, self._embed(number)),
            lambda: same(
                self._whole(number).get(handle.update(public_id, **changes).id), self.model.records[public_id][-1], "/",
                "update of scope or expiry",
            ),
        )  # fmt: skip

    @rule(number=handles, place=places, version=st.integers(-3, 3))
    def restore(self, number: int, place: int, version: int) -> None:
        """An earlier version, or one that there is not."""
        self._step("restore")
        handle, base = self._handle(number)
        public_id = self._pick(base, place, changed=True)
        self._both(
            lambda: self.model.restore(public_id, version, base, self.now, self._embed(number)),
            lambda: same(handle.restore(public_id, version), self.model.records[public_id][-1], base, "restore"),
        )

    @rule(number=handles, some=st.lists(places, min_size=1, max_size=3), receipt=st.booleans())
    def forget(self, number: int, some: list[int], receipt: bool) -> None:
        """By id: all of them, or none where one cannot be seen. At times with a receipt."""
        self._step("forget")
        handle, base = self._handle(number)
        ids = [self._pick(base, place) for place in some]
        receipt = receipt and some[0] % 5 == 0
        whole = base != "/" and receipt

        def model() -> tuple[int, int]:
            if whole:
                raise Refused("a receipt")
            for public_id in ids:
                self.model.standing(public_id, base)
            return self.model.forget(ids)

        def store() -> tuple[int, int]:
            done = handle.forget(ids, receipt=receipt)
            assert done.receipt is None or not done.receipt.problems or not done.receipt.complete
            return done.records, done.versions

        self._both(model, store)

    @rule(number=handles, scope=scopes, chosen=st.sampled_from((None, *FILTERS)), everywhere=st.booleans())
    def forget_all(self, number: int, scope: str, chosen: str | None, everywhere: bool) -> None:
        """All that a scope or filters match; of a scope alone what the services keep goes along."""
        self._step("forget_all")
        handle, base = self._handle(number)
        options: dict[str, Any] = {} if everywhere and chosen else {"scope": scope}
        within = joined(base, scope) if options else base
        keeps: Callable[[Version], bool] = lambda _: True  # noqa: E731
        if chosen:
            more, keeps = FILTERS[chosen]
            options |= more
        ids = [public_id for public_id, version in self.model.visible(within).items() if keeps(version)]
        documents = dict(self.model.documents)
        expected = self.model.forget(ids)
        services = 0
        if not chosen:
            self.model.documents = documents
            services = self.model.forget_services(within)
        done = handle.forget(**options)
        assert (done.records, done.versions, done.services) == (*expected, services), f"{done} not {expected}"

    @rule(number=handles, scope=scopes)
    def purge_expired(self, number: int, scope: str) -> None:
        """What has expired in a scope."""
        self._step("purge_expired")
        handle, base = self._handle(number)
        gone = [
            public_id for public_id, version in self.model.visible(joined(base, scope)).items()
            if version["expires_at"] is not None and version["expires_at"] <= self.now
        ]  # fmt: skip
        done = handle.store.purge_expired(scope=scope)
        assert (done.records, done.versions) == self.model.forget(gone)

    @rule(number=handles, ends=st.tuples(places, places), kind=st.sampled_from(_KINDS), strength=unit)
    def link(self, number: int, ends: tuple[int, int], kind: str, strength: float) -> None:
        """Two memories; one with itself is refused."""
        self._step("link")
        handle, base = self._handle(number)
        source, target = (self._pick(base, place) for place in ends)
        self._both(
            lambda: self.model.link(source, target, kind, strength, base),
            lambda: handle.link(source, target, type=kind, strength=strength),
        )

    @rule(
        number=handles, ends=st.tuples(places, places), linked=st.booleans(), kind=st.none() | st.sampled_from(_KINDS)
    )
    def unlink(self, number: int, ends: tuple[int, int], linked: bool, kind: str | None) -> None:
        """Two memories, mostly such as are linked."""
        self._step("unlink")
        handle, base = self._handle(number)
        source, target = (self._pick(base, place) for place in ends)
        if linked and self.model.links:
            source, target, _ = [*self.model.links][ends[0] % len(self.model.links)]
        self._both(lambda: self.model.unlink(source, target, kind, base), lambda: handle.unlink(source, target, kind))

    # ── the services ───────────────────────────────────────────────────────────────────────────────────────────

    @rule(number=handles, name=st.sampled_from("pq"), contents=st.lists(texts, max_size=3), ends=st.integers(0, 4))
    def converse(self, number: int, name: str, contents: list[str], ends: int) -> None:
        """Open a session, say something, and at times end it, with a snapshot or without."""
        self._step("session")
        handle, base = self._handle(number)
        session = handle.sessions.open(name)
        held = self.model.sessions.setdefault((base, name), [])
        messages = [{"role": "user", "content": each, "n": place} for place, each in enumerate(contents)]
        if messages:
            assert session.extend(messages) == len(held)
            held += messages
        self._refused(lambda: session.extend([*messages, {"role": 7, "content": "of nobody"}]))
        if held and ends == 2:
            assert session.pop() == held.pop()
        if ends < 2:
            session.end(snapshot=ends == 0, summary="done")
            del self.model.sessions[base, name]
            if ends == 0:
                self.model.snapshots.append((base, name, held))
            self._refused(session.messages)

    @rule(
        number=handles,
        text=texts,
        agent=st.sampled_from((None, "ada")),
        kind=st.sampled_from(("observation", "tool-call")),
    )
    def log_episode(self, number: int, text: str, agent: str | None, kind: str) -> None:
        """An episode, of an agent or of none."""
        self._step("episode")
        handle, base = self._handle(number)
        record = handle.episodes.log(text, agent=agent, event_type=kind, task_id="t1")
        scope = "/" if agent is None else f"/agents/{agent}"
        metadata = {"event_type": kind, "task_id": "t1"}
        self._stored(number, record.id, base, {"text": text, "kind": "episode", "scope": scope, "metadata": metadata})
        same(record, self.model.records[record.id][-1], base, "episodes.log")

    @rule(
        number=handles,
        name=st.sampled_from(("fire", "throw")),
        text=texts,
        tagged=tags,
        success=st.none() | st.booleans(),
    )
    def practise(self, number: int, name: str, text: str, tagged: list[str], success: bool | None) -> None:
        """Save a procedure under its name, and count how it went."""
        self._step("procedure")
        handle, base = self._handle(number)
        saved = handle.procedures.save(name, text, tags=tagged, pattern="")
        metadata = {"name": name, "description": text, "pattern": ""}
        known = [
            public_id for public_id, version in self.model.visible(base).items()
            if (version["kind"], version["scope"], version["context"]) == ("procedure", base, name)
        ]  # fmt: skip
        if known:
            assert saved.id == known[-1]
            version = self.model.records[saved.id][-1]
            if version["text"] != text:
                version = self.model.say(saved.id, text, name, None, self.now, self._embed(number))
            version |= {
                "metadata": metadata, "importance": 0.5, "base_importance": None, "updated_at": self.now,
                "tags": tuple(tagged),
            }  # fmt: skip
        else:
            fields = {"text": text, "kind": "procedure", "context": name, "tags": tagged, "metadata": metadata}
            self._stored(number, saved.id, base, fields)
            self.model.uses[saved.id] = (0.5, 0, 0)
        if success is not None:
            rate, used, succeeded = self.model.uses[saved.id]
            handle.procedures.record_outcome(name, success)
            self.model.uses[saved.id] = (0.9 * rate + 0.1 * success, used + 1, succeeded + success)

    @rule(
        number=handles,
        task=words,
        tools=st.lists(st.sampled_from("xyz"), min_size=1, max_size=3),
        success=st.booleans(),
        steps=st.none() | st.integers(0, 9),
        error=st.none() | st.sampled_from(_ERRORS),
    )
    def experience(
        self, number: int, task: str, tools: list[str], success: bool, steps: int | None, error: str | None
    ) -> None:
        """Count a run, and what helped against an error."""
        self._step("experience")
        handle, base = self._handle(number)
        handle.experience.record(task_type=task, tools=tools, success=success, steps=steps)
        run = self.model.runs.setdefault((base, task, tuple(dict.fromkeys(tools))), [0, 0, 0, 0])
        for place, more in enumerate((1, int(success), steps or 0, int(steps is not None))):
            run[place] += more
        if error is None:
            return
        handle.experience.record_recovery(tool=tools[0], error=error, recovery=task)
        kept, times = self.model.recoveries.get((base, tools[0], error), (task, 0))
        times = times + 1 if kept == task else 1
        self.model.recoveries[base, tools[0], error] = task, times
        tip = handle.experience.tips(task, tools[0], error)[0]
        assert (tip.recovery, tip.runs, tip.error) == (task, times, error)

    @rule(number=handles, scope=scopes, name=st.sampled_from(("one", "two")), text=texts, delete=st.integers(0, 3))
    def document(self, number: int, scope: str, name: str, text: str, delete: int) -> None:
        """Ingest a document: new, changed or the same; or delete it."""
        self._step("document")
        handle, base = self._handle(number)
        where, source = joined(base, scope), f"{name}.txt"
        known = self.model.documents.get((where, source))
        if delete == 0:
            if known is None:
                self._refused(lambda: handle.knowledge.delete(source, scope=scope))
            else:
                assert handle.knowledge.delete(source, scope=scope).chunks == 1
                self.model.forget([known[1]])
            return
        content = f"{name} {text}".encode()
        (done,) = handle.knowledge.ingest(content, name=source, scope=scope).documents
        outcome = "created" if known is None else "unchanged" if known[0] == content else "updated"
        assert done.outcome == outcome, f"{source} in {where}: {done.outcome}, not {outcome}"
        if outcome == "unchanged":
            return
        if known is not None:
            self.model.forget([known[1]])
        (chunk,) = (
            each for each in handle.list(kinds=["chunk"], scope=scope, limit=None)
            if (joined(base, each.scope), each.source) == (where, source)
        )  # fmt: skip
        assert chunk.text == content.decode()
        assert chunk.metadata["lines"] == [1, 1]
        self._stored(number, chunk.id, base, {
            "text": chunk.text, "kind": "chunk", "context": name, "scope": scope, "source": source, "position": 0,
            "metadata": chunk.metadata,
        })  # fmt: skip
        self.model.documents[where, source] = content, chunk.id

    @rule(number=handles, contents=st.lists(texts | st.integers(0, 9), max_size=3))
    def keep_in_mind(self, number: int, contents: list[Any]) -> None:
        """Save the working memory of a handle."""
        self._step("working")
        handle, base = self._handle(number)
        handle.working.clear()
        for each in contents:
            handle.working.add(each)
        assert handle.working.save() == len(contents)
        self.model.working[base] = contents

    @rule(number=handles, place=places, which=st.integers(0, 14))
    def ask_badly(self, number: int, place: int, which: int) -> None:
        """Calls that have to be refused, and to change nothing."""
        self._step("refused")
        handle, base = self._handle(number)
        public_id = self._pick(base, place)
        bad: list[Callable[[], Any]] = [
            lambda: handle.remember("  "),
            lambda: handle.remember("kiln", scope="a"),
            lambda: handle.remember("kiln", importance=1.5),
            lambda: handle.remember(NewRecord("kiln", vector=[float("nan")] * DIMENSION)),
            lambda: handle.remember("kiln", expires_at="some day"),
            lambda: handle.update(public_id, importance=float("nan"), text="otter"),
            lambda: handle.update(public_id, colour="red"),
            lambda: handle.update(public_id, scope="/../x", tags=["red"]),
            lambda: handle.link(public_id, public_id),
            lambda: handle.forget(),
            lambda: handle.forget([public_id, "nobody"]),
            lambda: handle.forget(public_id, scope="/a"),
            lambda: handle.forget(where={"colour": {"eq": 1}}),
            lambda: handle.transfer.import_(io.StringIO('{"text": "kiln", "importance": 7}\n'), format="jsonl"),
            lambda: handle.experience.record(task_type="kiln", tools=[], success=True),
        ]
        self._refused(bad[which])

    # ── what must hold after each step ─────────────────────────────────────────────────────────────────────────

    @invariant()
    def equals_the_model(self) -> None:
        """What one handle lists, after each step, and one part in turn of what another shows."""
        if self.memories:
            self._check(self.step % (2 * len(_BASES)), self.step // len(_PARTS), _PARTS[self.step % len(_PARTS)])

    def _check(self, lists: int, number: int, part: str | None = None) -> None:
        """`lists` and `number` are handles; without a part, all of them."""
        model, now, turn = self.model, self.now, self.step // len(_PARTS)
        check_listed(*self._handle(lists), model, now)
        handle, base = self._handle(number % (2 * len(_BASES)))
        chosen = (None, *FILTERS)[turn % (1 + len(FILTERS))]
        if part in (None, "versions"):
            check_listed(handle, base, model, now, chosen)
            check_versions(handle, base, model, [now - timedelta(seconds=turn % 37), now + timedelta(seconds=40)])
            check_links(handle, base, model)
        if part in (None, "services"):
            check_services(self._whole(number), handle, base, model, now, WORDS)
        if part in (None, "recall"):
            near = np.array([1 + (turn * place) % 7 for place in range(1, DIMENSION + 1)], dtype=np.float64)
            check_recall(handle, base, model, now, WORDS, near / np.linalg.norm(near), chosen if turn % 2 else None)

    def _verify(self, number: int) -> None:
        checked = self.memories[number].store.verify()
        assert checked.ok, checked.problems
        with sqlite3.connect(f"file:{self.path}?mode=ro", uri=True) as plain:
            assert plain.execute("PRAGMA quick_check").fetchone() == ("ok",)
        plain.close()

    # ── helpers ────────────────────────────────────────────────────────────────────────────────────────────────

    def _open(self, number: int, settings: dict[str, Any], embedding: bool) -> Memory:
        self.embeds[number] = embedding
        self.counts["opened with a snapshot"] += settings["index_snapshot"] and Path(f"{self.path}-index").exists()
        os.environ["RECALLITE_LOW_MEMORY"] = str(int(settings["low_memory"]))
        os.environ["RECALLITE_COMPILE_KERNELS"] = "0"
        chosen = Settings(durability="normal", index_snapshot=settings["index_snapshot"])
        return Memory(self.path, embedder=HashEmbedder() if embedding else "none", settings=chosen)

    def _handle(self, number: int) -> tuple[Memory, str]:
        """A handle of the first or the second memory, and the scope that it is bound to."""
        base = _BASES[number // 2]
        memory = self.memories[number % 2]
        return (memory if base == "/" else memory.scoped(base)), base

    def _whole(self, number: int) -> Memory:
        return self.memories[number % 2]

    def _step(self, name: str) -> None:
        self.step += 1
        self.now += _A_STEP
        self.counts["steps"] += 1
        self.counts[name] += 1

    def _now_ns(self) -> int:
        return (self.now - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000

    def _pick(self, base: str, place: int, *, changed: bool = False) -> str:
        """An id that a handle sees; of ten one that it may not, or that there is not."""
        every = [*self.model.records, "nobody"]
        seen = [id for id in every[:-1] if inside(self.model.records[id][-1]["scope"], base)]
        if changed:
            seen = [id for id in seen if len(self.model.records[id]) > 1] or seen
        if place < 10 or not seen:
            return every[place % len(every)]
        return seen[place % len(seen)]

    def _timed(self, given: dict[str, Any]) -> dict[str, Any]:
        times = {
            name: self.now + timedelta(seconds=given[name])
            for name in ("valid_from", "expires_at") if given.get(name) is not None
        }  # fmt: skip
        return {**given, **times}

    def _stored(self, number: int, public_id: str, base: str, given: dict[str, Any]) -> None:
        created = given.get("created_at", self.now)
        version: Version = {
            "kind": "memory", "context": None, "importance": 0.5, "base_importance": None, "pinned": False,
            "topic": None, "source": None, "position": None, "created_at": created, "valid_from": None,
            "updated_at": self.now, "expires_at": None, "recorded_from": created, "recorded_until": None,
            "metadata": {},
            **given, "tags": tuple(given.get("tags", ())), "scope": joined(base, given.get("scope", "/")),
        }  # fmt: skip
        version |= self._embed(number)(version["text"], version["context"], given.get("vector"))
        self.model.records[public_id] = [version]

    def _stored_together(self, number: int, ids: list[str], base: str, rows: list[dict[str, Any]]) -> None:
        """Those of a batch, a microsecond apart; a text that was stored before stays as it was."""
        for public_id, row in zip(ids, rows, strict=True):
            if public_id not in self.model.records:
                self._stored(number, public_id, base, row)
            self.now += _BETWEEN_ITEMS

    def _embed(self, number: int) -> Callable[[str, str | None, Any], dict[str, Any]]:
        embeds = self.embeds[number % 2]

        def embed(text: str, context: str | None, vector: Any) -> dict[str, Any]:
            made = None
            if vector is not None:
                made = np.array(vector, dtype=np.float64)
            elif self.embedding:
                made = HashEmbedder().embed([f"{context}: {text}" if context else text])[0].astype(np.float64)
            if made is not None:
                made /= np.linalg.norm(made)
            waits = made is not None and vector is None and not embeds
            return {"vector": made, "waits": waits, "embedding_state": "none" if made is None or waits else "embedded"}

        return embed

    def _refused(self, call: Callable[[], Any]) -> None:
        self.counts["calls refused"] += 1
        try:
            given = call()
        except RecalliteError:
            return
        raise AssertionError(f"this had to be refused and gave {given!r}")

    def _both(self, model: Callable[[], Any], store: Callable[[], Any]) -> None:
        """Both answer alike, or both refuse."""
        try:
            expected = model()
        except Refused:
            self._refused(store)
            return
        found = store()
        assert found == expected, f"{found!r}, not {expected!r}"
