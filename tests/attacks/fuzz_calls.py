"""The calls that fuzzing makes: verbs with the kinds of their arguments."""

# ruff: noqa: E501 (tables)

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple

from recallite import Memory, Settings, tools
from tests.attacks.fuzz_values import Values

__all__ = ["CALLS", "Call", "Prepared", "make_call"]


class Call(NamedTuple):
    """A verb: where it stands below Memory, its positional arguments and its options by kind, and how often it comes."""

    verb: str
    given: tuple[str, ...] = ()
    options: str = ""
    weight: int = 4


class Prepared(NamedTuple):
    """A call that is to be made, and what it is called in a report."""

    name: str
    run: Callable[[], Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]


_FILTER = "scope:scopes where:where kinds:names tags:tags since:time until:time as_of:time"
_NARROW = "scope:scopes where:where kinds:names tags:tags"
_RECALL = (
    f"{_FILTER} vector:vector mode:name limit:count profile:name min_score:unit purpose:name diversify_by:name token_budget:count "
    "half_life_days:number spread:number mmr_lambda:unit vector_weight:number long_query_chars:count"
)
_WRITE = "tags:tags importance:unit metadata:metadata context:text source:name position:count created_at:time valid_from:time"
CALLS = (
    Call("remember", ("text",), f"{_WRITE} scope:scope kind:name topic:name expires_at:time pinned:flag vector:vector", 60),
    Call("remember_many", ("items",), "batch_size:count", 8),
    Call("update", ("id",), "text:text tags:tags importance:unit metadata:metadata scope:scope pinned:flag vector:vector "
         "topic:name position:count valid_from:time expires_at:time kind:name context:text", 20),
    Call("restore", ("id", "count"), "", 4),
    Call("store.purge_expired", (), "scope:scope", 1),
    Call("forget", ("ids",), "", 8),
    Call("forget", (), _NARROW, 3),
    Call("link", ("id", "id"), "type:name strength:unit", 8),
    Call("unlink", ("id", "id"), "type:name", 3),
    Call("recall", ("query",), _RECALL, 30),
    Call("recall_many", ("names",), _RECALL, 5),
    Call("review.explain", ("query", "id"), "limit:count where:where vector:vector", 4),
    Call("bootstrap", ("agent", "query"), "budget_tokens:count task_type:name", 1),
    Call("get", ("id",), "", 10),
    Call("list", (), f"{_FILTER} order:name limit:count offset:count", 10),
    Call("count", (), _FILTER, 12),
    Call("history", ("id",), "", 5),
    Call("neighbors", ("id",), "types:tags direction:name", 4),
    Call("neighbors", ("id",), "depth:count types:tags direction:name limit:count", 4),
    Call("scoped", ("scope",), "", 4),
    Call("store.stats", (), "", 1),
    Call("transfer.export", ("path",), f"{_NARROW} format:name vectors:flag", 3),
    Call("transfer.import_", ("path",), "format:name scope:scope batch_size:count", 6),
    Call("transfer.export_folder", ("path",), f"{_NARROW} overwrite:flag", 1),
    Call("transfer.import_folder", ("path",), "overwrite:flag forget_missing:flag", 2),
    Call("store.backup", ("path",), "", 1),
    Call("semantic.add", ("text",), f"{_WRITE} summary:text verified:flag agent:agent vector:vector auto_link:flag", 6),
    Call("semantic.recent", ("count",), "agent:agent", 2),
    Call("semantic.search", ("query",), "limit:count agent:agent", 3),
    Call("semantic.verify", ("id",), "verified:flag", 2),
    Call("episodes.log", ("text",), f"{_WRITE} event_type:event agent:agent task_id:name cost:number duration_ms:number", 6),
    Call("episodes.list", (), "agent:agent task_id:name event_type:event on:time since:time until:time order:name", 3),
    Call("episodes.snapshot", ("name",), "messages:messages summary:text key_decisions:tags task_ids:tags started_at:time "
         "total_cost:number total_tokens:count agent:agent", 3),
    Call("episodes.last_snapshot", ("agent",), "", 2),
    Call("procedures.save", ("name", "text"), "pattern:text tags:tags success_rate:unit importance:unit agent:agent", 4),
    Call("procedures.record_outcome", ("name", "flag"), "agent:agent", 3),
    Call("procedures.list", (), "agent:agent tags:tags limit:count", 2),
    Call("procedures.search", ("query",), "limit:count agent:agent", 2),
    Call("experience.record", (), "task_type:name tools:tags success:flag steps:count tokens:count agent:agent", 3),
    Call("experience.record_recovery", (), "tool:name error:text recovery:text agent:agent", 3),
    Call("experience.tips", ("name",), "tool:name error:text agent:agent limit:count", 3),
    Call("working.add", ("item",), "importance:unit", 8),
    Call("working.promote", ("id",), "to:name", 2),
    Call("working.configure", (), "capacity:count policy:name promote_above:unit promote_to:name persist:flag", 2),
    Call("working.agent", ("agent",), "", 1),
    Call("working.evict", (), "", 1),
    Call("sessions.open", ("name",), "agent:agent provider:name", 4),
    Call("sessions.get", ("name",), "agent:agent", 2),
    Call("sessions.list", (), "agent:agent limit:count", 2),
    Call("sessions.search", ("query",), "agent:agent limit:count relevant:flag", 4),
    Call("sessions.cleanup", ("time",), "agent:agent", 1),
    Call("consolidator.cycles", ("agent",), "limit:count", 1),
    Call("knowledge.search", ("query",), "limit:count where:where", 2),
    Call("knowledge.context", ("query",), "budget_tokens:count", 1),
    Call("knowledge.list", (), "scope:scope limit:count", 2),
    Call("knowledge.get", ("id",), "scope:scope", 2),
    Call("knowledge.delete", ("id",), "scope:scope", 2),
    Call("knowledge.ingest", ("path",), "metadata:metadata name:name scope:scope title:text include:tags recursive:flag", 1),
)  # fmt: skip
_WEIGHTS = [call.weight for call in CALLS]
_TOOL_FIELDS = {
    "action": "name", "content": "text", "text": "text", "query": "query", "tags": "tags", "importance": "unit",
    "scope": "scope", "id": "id", "old_text": "text", "limit": "count", "offset": "count", "since": "time", "agent": "agent",
    "role": "name", "task_type": "name", "tools": "tags", "success": "flag", "error": "text", "recovery": "text",
    "tool": "name", "documentId": "id", "source": "path", "metadata": "metadata", "pinned": "flag", "topic": "name",
}  # fmt: skip
_ACTIONS = (
    "write", "search", "recall", "replace", "remove", "list", "open", "append", "messages", "end", "record",
    "record_recovery", "tips", "ingest", "delete",
)  # fmt: skip


def make_call(memory: Memory, values: Values) -> Prepared:
    """A call with arguments of which, in two of three, one or some are hostile."""
    chance = values.chance
    kind = chance.random()
    if kind < 0.12:
        return _tool(memory, values)
    if kind < 0.15:
        return _other(memory, values)
    call = chance.choices(CALLS, _WEIGHTS)[0]
    spoiled = chance.choice((0.0, 0.0, 0.15, 0.5))
    arguments = [_value(values, kind, spoiled) for kind in call.given]
    pairs = [pair.split(":") for pair in call.options.split()]
    most = min(len(pairs), chance.randrange(5))
    needed = pairs if call.verb.startswith("experience.record") else chance.sample(pairs, most)
    options = {name: _value(values, kind, spoiled) for name, kind in needed}
    if spoiled and arguments and not options:
        place = chance.randrange(len(arguments))
        arguments[place] = values.hostile_for(call.given[place])
    target: Any = memory
    for part in call.verb.split("."):
        target = getattr(target, part)
    return Prepared(call.verb, lambda: target(*arguments, **options), tuple(arguments), options)


def _value(values: Values, kind: str, spoiled: float) -> Any:
    if values.chance.random() < spoiled:
        return values.hostile_for(kind)
    return values.good(kind) if kind != "name" or values.chance.random() < 0.5 else _word(values)


def _word(values: Values) -> Any:
    """A word that some option takes."""
    return values.chance.choice(
        ["keyword", "vector", "hybrid", "newest", "oldest", "default", "hermes", "source", "out", "in", "jsonl", "csv",
         "text", "semantic", "episode", "fifo", "importance", "similar", None]
    )  # fmt: skip


def _tool(memory: Memory, values: Values) -> Prepared:
    chance = values.chance
    fields = chance.sample(list(_TOOL_FIELDS), chance.randrange(5))
    arguments: Any = {name: _value(values, _TOOL_FIELDS[name], 0.2) for name in fields}
    arguments["action"] = chance.choice(_ACTIONS) if chance.random() < 0.9 else values.hostile()
    if chance.random() < 0.05:
        arguments = values.hostile()
    name = (
        chance.choice(["memory", "session", "experience", "knowledge"]) if chance.random() < 0.97 else values.hostile()
    )
    options = {"scope": values.hostile()} if chance.random() < 0.05 else {}
    return Prepared(
        "tools.call",
        lambda: tools.as_text(tools.call(name, arguments, memory=memory, **options)),
        (name, arguments),
        options,
    )


def _other(memory: Memory, values: Values) -> Prepared:
    """Settings, paths to open, streams to import."""
    chance = values.chance
    which = chance.randrange(4)
    value = values.hostile()
    if which == 0:
        name = chance.choice(Settings.__struct_fields__)
        return Prepared("Settings", lambda: Settings(**{name: value}), (), {name: value})
    if which == 1:
        return Prepared("Settings.from_dict", lambda: Settings.from_dict(value), (value,), {})
    if which == 2:
        return Prepared("Settings.load", lambda: Settings.load(value), (value,), {})
    format = chance.choice(["jsonl", "csv", "text"])
    said = chance.choice(
        [str(value) if isinstance(value, str) else "a,b", '{"text": "x", "tags": 1}', "text\n\ud800\n"]
    )
    return Prepared(
        "import_ stream", lambda: memory.transfer.import_(io.StringIO(said), format=format), (said,), {"format": format}
    )
