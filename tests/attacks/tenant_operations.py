"""The operations of one tenant, drawn at random: every verb of a scoped handle, of its services and of the tools."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import msgspec

from recallite import Memory, tools
from recallite.model.records import NewRecord, Record
from recallite.model.settings import WritePolicy
from recallite.recall.request import recall_arguments
from recallite.transfer.streaming import name_memories

__all__ = ["Act", "Actor", "operation"]

Own = Callable[[str], str]
Act = Callable[[Memory, Memory, Own], Any]
"""Called with the tenant's handle, the memory of the whole file, and what an id is called there."""

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_COMMON = [f"{a}{b}" for a, b in itertools.product(("mar", "tol", "ven", "kes", "rup"), ("do", "ga", "ni", "ra", "su"))]
_SCOPES = ("/", "/x", "/x/y", "/z")
_KINDS = ("memory", "memory", "note")
_LINKS = ("similar", "causal", "supports")
_POLICIES = (
    None, None, WritePolicy(), WritePolicy(merge_strategy="latest", topic_cosine=0.9),
    WritePolicy(merge_strategy="replace", topic_cosine=0.9),
    WritePolicy(supersede_confidence=None, contradict_confidence=0.3),
    WritePolicy(link_cosine=0.6, most_links=4),
    WritePolicy(recognise_recalled=True, duplicates="store"),
)  # fmt: skip
_MOST_IDS = 400


class Actor:
    """A tenant: its words, the ids it has seen, and what it was told."""

    def __init__(self, scope: str, random: Random, embedder: Any) -> None:
        self.scope, self.random, self.embedder = scope, random, embedder
        tail = scope.replace("/", "").replace(".", "")
        self.private = [f"{stem}{tail}" for stem in ("kiln", "glaze", "otter", "fjord", "quartz", "lathe")]
        self.vocabulary = [*_COMMON, *self.private]
        self.others: list[Actor] = []
        self.texts = ["the first text"]
        self.ids = ["0"]
        self.sessions = ["s0"]
        self.exports: list[str] = []
        self.aliases: dict[str, str] = {}
        self.probing = 0
        self.imports = 0

    def text(self) -> str:
        """A new text, one that was said before, or nearly one: by this tenant or by another."""
        drawn = self.random.random()
        if drawn < 0.25:
            words = self.random.choice((self, self, *self.others)).texts
            text = self.random.choice(words)
            if drawn < 0.1:
                return text
            return f"{text} {self.random.choice((*_COMMON, 'not', '7', '8'))}"
        weights = [1 / (1 + place % len(_COMMON)) for place in range(len(self.vocabulary))]
        text = " ".join(self.random.choices(self.vocabulary, weights, k=self.random.randrange(2, 12)))
        self.texts = [*self.texts[-60:], text]
        return text

    def query(self) -> str:
        """A question, at times for words that only another has."""
        words = self.random.choices(self.vocabulary, k=self.random.randrange(1, 6))
        if self.others and self.random.random() < 0.4:
            self.probing = 1
            words += self.random.choices(self.random.choice(self.others).private, k=self.random.randrange(1, 3))
        if self.random.random() < 0.1:
            words.append("nowhere")
        return " ".join(words)

    def id(self) -> str:
        """An id that it has seen, one of another tenant, or none at all."""
        drawn = self.random.random()
        if drawn < 0.06:
            self.probing = 1
            return self.random.choice(self.random.choice(self.others).ids)
        return "01a00000-0000-7000-8000-000000000000" if drawn < 0.08 else self.random.choice(self.ids)

    def moment(self) -> str:
        """Some time of the round."""
        return (_BEGIN + timedelta(hours=self.random.randrange(1, 9_000))).isoformat()

    def shared(self, public_id: str) -> str:
        """What an id of the tenant's own file is called in the shared one."""
        return next((shared for shared, own in self.aliases.items() if own == public_id), public_id)

    def unaliased(self, plain: Any) -> Any:
        """A shared answer in the ids of the tenant's own file."""
        if not self.aliases:
            return plain
        text = msgspec.json.encode(plain).decode()
        for shared, own in self.aliases.items():
            text = text.replace(shared, own)
        return msgspec.json.decode(text)

    def learn(self, name: str, shared: Any, alone: Any) -> None:
        """Note the ids of an answer, and what an import has called differently."""
        if name == "import" and shared is not None and alone is not None:
            for (text, public_id), (other, own) in zip(shared[1], alone[1], strict=False):
                if text == other and public_id != own:
                    self.aliases[public_id] = own
        if name == "export" and alone is not None:
            self.exports = [*self.exports[-3:], alone[1]]
        self.ids = [*self.ids, *_ids_in(alone)][-_MOST_IDS:]


def _ids_in(answer: Any) -> Iterable[str]:
    if isinstance(answer, Record):
        yield answer.id
    elif isinstance(answer, list):
        for each in answer:
            if isinstance(each, Record):
                yield each.id
            elif isinstance(each, str) and len(each) == 13:
                yield each


def operation(actor: Actor, random: Random) -> tuple[str, Act]:
    """The name of an operation, and the operation with its arguments."""
    actor.probing = 0
    (draw,) = random.choices(_DRAWS, _WEIGHTS)
    return draw.__name__.removeprefix("_"), draw(actor, random)


def _item(actor: Actor, random: Random) -> dict[str, Any]:
    item: dict[str, Any] = {"text": actor.text(), "scope": random.choice(_SCOPES), "kind": random.choice(_KINDS)}
    optional = {
        "tags": lambda: random.sample(("red", "green", "blue"), k=random.randrange(1, 3)),
        "importance": lambda: random.choice((0.1, 0.5, 0.9)),
        "metadata": lambda: {"n": random.randrange(5)},
        "topic": lambda: random.choice(("tea", "boats")),
        "created_at": actor.moment,
        "valid_from": actor.moment,
        "expires_at": actor.moment,
        "context": lambda: random.choice(("Ada", "Bob")),
    }
    for name, make in optional.items():
        if random.random() < 0.15:
            item[name] = make()
    if random.random() < 0.4:
        item |= {"source": random.choice(("chat", "log")), "position": random.randrange(30)}
    if random.random() < 0.1:
        item["vector"] = actor.embedder.embed([actor.text()])[0]
    return item


def _filters(actor: Actor, random: Random) -> dict[str, Any]:
    options = {
        "scope": lambda: random.choice((*_SCOPES, ["/x", "/z"])),
        "kinds": lambda: ["note"],
        "tags": lambda: ["red"],
        "where": lambda: {"importance": {"gte": 0.5}},
        "since": actor.moment,
        "until": actor.moment,
        "as_of": actor.moment,
    }
    return {name: make() for name, make in options.items() if random.random() < 0.12}


def _options(actor: Actor, random: Random) -> dict[str, Any]:
    options = {
        "mode": lambda: random.choice(("vector", "keyword")),
        "limit": lambda: random.choice((1, 3, 50, 500)),
        "profile": lambda: random.choice(("default", "reeve", "hermes", "memweave")),
        "min_confidence": lambda: random.choice((0.1, 0.5, 0.9)),
        "min_score": lambda: 0.3,
        "diversify_by": lambda: random.choice(("time", "one_per_source")),
        "purpose": lambda: "explain",
        "candidates": lambda: random.choice((1, 5)),
        "mmr_lambda": lambda: 0.6,
        "long_query_chars": lambda: 20,
        "vector": lambda: actor.embedder.embed([actor.query()])[0],
    }
    return {name: make() for name, make in options.items() if random.random() < 0.15}


def _remember(actor: Actor, random: Random) -> Act:
    item, policy = _item(actor, random), random.choice(_POLICIES)
    return lambda handle, _, own: handle.remember(NewRecord(**item), policy=policy)


def _remember_many(actor: Actor, random: Random) -> Act:
    items, policy = [_item(actor, random) for _ in range(random.randrange(1, 8))], random.choice(_POLICIES)
    return lambda handle, _, own: handle.remember_many(items, policy=policy)


def _update(actor: Actor, random: Random) -> Act:
    changed, item = actor.id(), _item(actor, random)
    item.pop("created_at", None)
    some = {name: item[name] for name in random.sample(sorted(item), k=random.randrange(1, 4)) if name in item}
    return lambda handle, _, own: handle.update(own(changed), **some)


def _restore(actor: Actor, random: Random) -> Act:
    changed, version = actor.id(), random.choice((0, -2, actor.moment()))
    return lambda handle, _, own: handle.restore(own(changed), version)


def _forget(actor: Actor, random: Random) -> Act:
    if random.random() < 0.8:
        ids = [actor.id() for _ in range(random.choice((1, 1, 3)))]
        return lambda handle, _, own: handle.forget([*map(own, ids)])
    chosen = random.choice(({"scope": "/z"}, {"tags": ["blue"]}, {"where": {"position": 3}}, {"kinds": ["note"]}))
    return lambda handle, _, own: handle.forget(**chosen)


def _purge_expired(actor: Actor, random: Random) -> Act:
    return lambda handle, _, own: handle.store.purge_expired()


def _link(actor: Actor, random: Random) -> Act:
    ends, kind, strength = (actor.id(), actor.id()), random.choice(_LINKS), random.choice((0.3, 1.0))
    return lambda handle, _, own: handle.link(*map(own, ends), type=kind, strength=strength)


def _unlink(actor: Actor, random: Random) -> Act:
    ends = actor.id(), actor.id()
    return lambda handle, _, own: handle.unlink(*map(own, ends))


def _walk(actor: Actor, random: Random) -> Act:
    start, depth = actor.id(), random.randrange(1, 4)
    return lambda handle, _, own: (
        handle.neighbors(own(start)), handle.neighbors(own(start), direction="in"),
        handle.neighbors(own(start), depth=depth),
    )  # fmt: skip


def _recall(actor: Actor, random: Random) -> Act:
    query, options = actor.query(), _options(actor, random) | _filters(actor, random)
    return lambda handle, _, own: handle.recall(query, **recall_arguments(options))


def _recall_many(actor: Actor, random: Random) -> Act:
    queries, options = [actor.query() for _ in range(random.randrange(1, 5))], _options(actor, random)
    options.pop("vector", None)
    return lambda handle, _, own: handle.recall_many(queries, **recall_arguments(options))


def _recall_within(actor: Actor, random: Random) -> Act:
    query, scope, options = actor.query(), random.choice(_SCOPES[1:]), _options(actor, random)
    return lambda handle, _, own: handle.scoped(scope).recall(query, **recall_arguments(options))


def _explain(actor: Actor, random: Random) -> Act:
    query, of, options = actor.query(), actor.id(), _options(actor, random) | _filters(actor, random)
    return lambda handle, _, own: handle.review.explain(query, own(of), **recall_arguments(options))


def _read(actor: Actor, random: Random) -> Act:
    of = actor.id()
    return lambda handle, _, own: (handle.get(own(of)), handle.history(own(of)))


def _list(actor: Actor, random: Random) -> Act:
    options, order = _filters(actor, random), random.choice(("newest", "oldest", "importance"))
    limit, offset = random.choice((3, 100)), random.choice((0, 2))
    return lambda handle, _, own: [
        *handle.list(**options, order=order, limit=limit, offset=offset), handle.count(**options),
    ]  # fmt: skip


def _stats(actor: Actor, random: Random) -> Act:
    return lambda handle, _, own: msgspec.structs.replace(handle.store.stats(), path="")


def _semantic(actor: Actor, random: Random) -> Act:
    agent, text, query, of = random.choice((None, "one", "two")), actor.text(), actor.query(), actor.id()
    return random.choice((
        lambda handle, _, own: handle.semantic.add(text, agent=agent),
        lambda handle, _, own: handle.semantic.search(query, agent=agent),
        lambda handle, _, own: handle.semantic.recent(5, agent=agent),
        lambda handle, _, own: handle.semantic.verify(own(of)),
    ))  # fmt: skip


def _episodes(actor: Actor, random: Random) -> Act:
    agent, text, session = random.choice((None, "one", "two")), actor.text(), random.choice(actor.sessions)
    return random.choice((
        lambda handle, _, own: handle.episodes.log(text, agent=agent),
        lambda handle, _, own: handle.episodes.log(text, agent=agent, event_type="tool-call", importance=0.2),
        lambda handle, _, own: handle.episodes.list(agent=agent),
        lambda handle, _, own: handle.episodes.snapshot(session, summary=text, agent=agent),
        lambda handle, _, own: (handle.episodes.last_snapshot(agent), handle.episodes.snapshots(agent=agent)),
        lambda handle, _, own: handle.consolidator.run(agent),
        lambda handle, _, own: handle.consolidator.cycles(agent),
    ))  # fmt: skip


def _procedures(actor: Actor, random: Random) -> Act:
    name, text, query = random.choice(("deploy", "bake", "sail")), actor.text(), actor.query()
    agent, success = random.choice((None, "one")), random.random() < 0.7
    return random.choice((
        lambda handle, _, own: handle.procedures.save(name, text, agent=agent),
        lambda handle, _, own: handle.procedures.record_outcome(name, success, agent=agent),
        lambda handle, _, own: handle.procedures.get(name, agent=agent),
        lambda handle, _, own: handle.procedures.list(agent=agent),
        lambda handle, _, own: handle.procedures.search(query, agent=agent),
    ))  # fmt: skip


def _experience(actor: Actor, random: Random) -> Act:
    task, used = random.choice(("query", "build")), random.sample(("file", "web", "shell"), k=2)
    agent, success, text = random.choice((None, "one")), random.random() < 0.7, actor.text()
    return random.choice((
        lambda handle, _, own: handle.experience.record(
            task_type=task, tools=used, success=success, steps=3, tokens=900, agent=agent),
        lambda handle, _, own: handle.experience.record_recovery(tool="web", error=text, recovery="retry", agent=agent),
        lambda handle, _, own: handle.experience.tips(task, used[0], text, agent=agent),
    ))  # fmt: skip


def _sessions(actor: Actor, random: Random) -> Act:
    agent, query, text = random.choice((None, "one")), actor.query(), actor.text()
    name = random.choice((*actor.sessions, f"s{random.randrange(6)}"))
    actor.sessions = [*actor.sessions[-5:], name]
    return random.choice((
        lambda handle, _, own: handle.sessions.open(name, agent=agent).append("user", text),
        lambda handle, _, own: handle.sessions.open(name, agent=agent).messages(),
        lambda handle, _, own: handle.sessions.search(query, agent=agent),
        lambda handle, _, own: handle.sessions.search(query),
        lambda handle, _, own: handle.sessions.list(agent=agent),
        lambda handle, _, own: handle.sessions.get(name, agent=agent).end(snapshot=True, summary=text),
        lambda handle, _, own: handle.sessions.cleanup(timedelta(days=30), agent=agent),
    ))  # fmt: skip


def _working(actor: Actor, random: Random) -> Act:
    text, importance = actor.text(), random.random()
    return random.choice((
        lambda handle, _, own: handle.working.add(text, importance=importance),
        lambda handle, _, own: handle.working.items(),
        lambda handle, _, own: (handle.working.save(), handle.working.load()),
    ))  # fmt: skip


def _knowledge(actor: Actor, random: Random) -> Act:
    name, query, of = f"{random.choice('abc')}.md", actor.query(), actor.id()
    data = f"# {actor.text()}\n\n{actor.text()}\n\n## {actor.text()}\n\n{actor.text()}\n".encode()
    scope = random.choice(_SCOPES[:2])
    return random.choice((
        lambda handle, _, own: handle.knowledge.ingest(data, name=name, scope=scope),
        lambda handle, _, own: handle.knowledge.ingest(data, name=name, metadata={"lang": "en"}),
        lambda handle, _, own: handle.knowledge.search(query),
        lambda handle, _, own: handle.knowledge.context(query, 300),
        lambda handle, _, own: handle.knowledge.list(),
        lambda handle, _, own: [handle.knowledge.delete(each.id) for each in handle.knowledge.list(limit=1)],
        lambda handle, _, own: handle.knowledge.get("doc_" + own(of)),
    ))  # fmt: skip


def _export(actor: Actor, random: Random) -> Act:
    vectors, chosen = random.random() < 0.3, random.choice(({}, {"scope": "/x"}, {"tags": ["red"]}))

    def act(handle: Memory, _: Memory, own: Own) -> Any:
        written = io.StringIO()
        return handle.transfer.export(written, format="jsonl", vectors=vectors, **chosen), written.getvalue()

    return act


def _import(actor: Actor, random: Random) -> Act:
    """Records under new ids, its own and those of others, with a link and an earlier version; or an export."""
    actor.imports += 1
    exports = [text for each in (actor, *actor.others) for text in each.exports]
    if exports and random.random() < 0.2:
        lines = [json.loads(line) for line in random.choice(exports).splitlines()]
        actor.probing = 1
    else:
        ids = [f"{actor.scope}:{actor.imports}", actor.id()]
        if random.random() < 0.6:
            actor.probing = 1
            ids[0] = random.choice(random.choice(actor.others).ids)
        lines = [{"id": each, "text": f"{actor.text()} import{actor.imports}n{n}"} for n, each in enumerate(ids)]
        earlier = {"recorded_from": _BEGIN.isoformat(), "recorded_until": (_BEGIN + timedelta(hours=1)).isoformat()}
        lines.insert(0, {"id": ids[0], "text": actor.text(), **earlier})
        if ids[0] != ids[1]:
            lines.append({"link": {"source": ids[0], "target": ids[1]}})

    given = list(dict.fromkeys(line["id"] for line in lines if "text" in line))

    def act(handle: Memory, file: Memory, own: Own) -> Any:
        report = handle.transfer.import_(io.StringIO("\n".join(map(json.dumps, lines))))
        texts = [line["text"] for line in lines if "text" in line and not line.get("recorded_until")]
        with file._engine.store.read() as reader:
            names = name_memories(reader, given, actor.scope)
        stored = [each.text for each in handle.list(where={"text": {"in": texts}}, limit=None)]
        return report, [*((each, names[each]) for each in given), *_documents(handle)], stored

    return act


def _documents(handle: Memory) -> Iterable[tuple[str, str]]:
    return ((f"{each.scope} {each.source}", each.id) for each in handle.knowledge.list())


def _tool(actor: Actor, random: Random) -> Act:
    text, query, of, agent = actor.text(), actor.query(), actor.id(), random.choice(("one", "two"))
    session = random.choice(actor.sessions)
    name, arguments = random.choice((
        ("memory", {"action": "write", "text": text, "tags": ["red"]}),
        ("memory", {"action": "search", "query": query}),
        ("memory", {"action": "recall", "query": query, "scope": "/x"}),
        ("memory", {"action": "replace", "text": text, "id": of}),
        ("memory", {"action": "remove", "old_text": text}),
        ("memory", {"action": "remove", "id": of}),
        ("memory", {"action": "list"}),
        ("session", {"action": "open", "id": session, "agent": agent}),
        ("session", {"action": "append", "id": session, "role": "user", "content": text, "agent": agent}),
        ("session", {"action": "search", "query": query}),
        ("session", {"action": "end", "id": session, "agent": agent, "summary": text}),
        ("experience", {"action": "record", "task_type": "query", "tools": ["web"], "success": True}),
        ("experience", {"action": "tips", "task_type": "query"}),
        ("knowledge", {"action": "search", "query": query}),
        ("knowledge", {"action": "list"}),
    ))  # fmt: skip

    def act(_: Memory, file: Memory, own: Own) -> Any:
        given = arguments | ({"id": own(of)} if arguments.get("id") == of else {})
        return tools.call(name, given, memory=file, scope=actor.scope)

    return act


def _bootstrap(actor: Actor, random: Random) -> Act:
    agent, task, budget = random.choice((None, "one")), actor.query(), random.choice((100, 1000))
    return lambda handle, _, own: handle.bootstrap(agent, task, budget, task_type="query")


_WEIGHED: dict[Callable[[Actor, Random], Act], int] = {
    _remember: 18, _remember_many: 6, _update: 7, _restore: 2, _forget: 4, _purge_expired: 1, _link: 5, _unlink: 1,
    _walk: 3, _recall: 20, _recall_many: 3, _recall_within: 3, _explain: 4, _read: 4, _list: 4, _stats: 1,
    _semantic: 5, _episodes: 6, _procedures: 3, _experience: 3, _sessions: 6, _working: 2, _knowledge: 4, _export: 2,
    _import: 3, _tool: 8, _bootstrap: 2,
}  # fmt: skip
_DRAWS, _WEIGHTS = list(_WEIGHED), list(_WEIGHED.values())
