"""mem0's verbs: what they do, and that their arguments and results are those of mem0ai where it is installed."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import os
import re
from itertools import pairwise

import pytest

import recallite
from recallite.errors import InvalidInput, LanguageModelError
from recallite_connect.mem0 import AsyncMemory, Memory

TALK = [
    {"role": "system", "content": "You are helpful."},
    {"role": "user", "content": "Hi, I'm Alex. I love basketball and gaming.", "name": "alex"},
    {"role": "assistant", "content": "Hey Alex! I'll remember your interests."},
    {"content": "no role"},
]
ADA = {"user_id": "ada"}
VERBS = (
    "__init__", "from_config", "add", "get", "get_all", "search", "update", "delete", "delete_all", "history", "reset",
    "close", "chat",
)  # fmt: skip
OURS = {"__init__": {"memory", "scope"}}


@pytest.fixture
def mem():
    with Memory(memory=":memory:") as opened:
        yield opened


def texts(found):
    return [each["memory"] for each in found["results"]]


def script(mem):
    """What a program does; ids, times and scores are left out of what it gives."""
    seen = [mem.add(TALK, user_id="ada", agent_id="coder", infer=False, metadata={"topic": "sport", "user_id": "eve"})]
    mem.add({"role": "user", "content": "I drink tea"}, user_id="bob", infer=False, metadata={"cups": 3})
    everything = mem.get_all(filters=ADA)
    seen += [sorted(each.items(), key=str) for each in sorted(everything["results"], key=lambda each: each["memory"])]
    first = next(each["id"] for each in everything["results"] if "basketball" in each["memory"])
    seen += [mem.get(first), mem.get("unknown"), mem.history("unknown")]
    found = mem.search("basketball", filters={**ADA, "topic": "sport", "role": "user"}, top_k=1, threshold=0.0)
    seen += [found, mem.get_all(filters={"user_id": "bob", "cups": 3})]
    seen += [mem.search("tea", filters=filters, threshold=0.0) for filters in (
        {"user_id": "bob", "cups": {"gte": 3}}, {"user_id": "bob", "cups": {"lt": 3}},
        {"user_id": "bob", "OR": [{"cups": 4}, {"cups": 3}]}, {"user_id": "bob", "NOT": [{"cups": 3}]},
    )]  # fmt: skip
    seen += [mem.update(first, text="I love football", metadata={"topic": "games", "user_id": "eve"}), mem.get(first)]
    seen += [mem.history(first), mem.delete(first), mem.get(first)]
    mem.add("I was here", user_id="ada", infer=False, expiration_date="2020-01-01")
    seen += [
        mem.get_all(filters={**ADA, "role": "user"}),
        mem.get_all(filters={**ADA, "role": "user"}, show_expired=True),
    ]
    seen += [
        mem.delete_all(user_id="ada"),
        mem.get_all(filters=ADA, show_expired=True),
        mem.get_all(filters={"user_id": "bob"}),
    ]
    for wrong in WRONG:
        with pytest.raises(Exception) as fault:
            wrong(mem)
        seen.append(re.split(r"[:.{]", str(fault.value))[0])
    seen += [mem.reset(), mem.get_all(filters={"user_id": "bob"})]
    return seen


WRONG = [
    lambda mem: mem.add("text"),
    lambda mem: mem.add("text", user_id=" "),
    lambda mem: mem.add("text", user_id="a b"),
    lambda mem: mem.add("text", user_id="ada", expiration_date="soon"),
    lambda mem: mem.get_all(),
    lambda mem: mem.get_all(filters={"topic": "x"}),
    lambda mem: mem.get_all(filters=ADA, top_k=-1),
    lambda mem: mem.search(" ", filters=ADA),
    lambda mem: mem.search("tea", filters=ADA, threshold=2),
    lambda mem: mem.update("unknown", "text"),
    lambda mem: mem.update("unknown"),
    lambda mem: mem.delete("unknown"),
    lambda mem: mem.delete_all(),
    lambda mem: mem.chat("hello"),
]


def plain(value):
    """A result without what differs from run to run."""
    text = json.dumps(value, default=dict, sort_keys=True)
    text = re.sub(r'"(created_at|updated_at|id|memory_id)": "[^"]+"', r'"\1": "*"', text)
    text = re.sub(r'\["(created_at|updated_at|id)", "[^"]+"\]', r'["\1", "*"]', text)
    text = re.sub(r'"score": [\d.]+', '"score": "*"', text)
    return json.loads(text)


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """mem0 with a store in a folder and an embedder of this test."""
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    mem0 = pytest.importorskip("mem0", reason="mem0ai is not installed")

    class Embedder:
        def embed(self, text, memory_action=None):
            return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]

    config = {
        "vector_store": {
            "provider": "qdrant",
            "config": {"path": str(tmp_path / "qdrant"), "embedding_model_dims": 8, "on_disk": True},
        },
        "history_db_path": str(tmp_path / "history.db"),
        "embedder": {"provider": "openai", "config": {"api_key": "none", "embedding_dims": 8}},
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
    }  # fmt: skip
    with mem0.Memory.from_config(config) as memory:
        memory.embedding_model = Embedder()
        yield memory


def test_a_program_gets_the_same_from_mem0_and_from_recallite(mem, theirs):
    assert plain(script(mem)) == plain(script(theirs))


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("ours", [Memory, AsyncMemory])
def test_arguments_are_those_of_mem0(ours, verb, theirs):
    import mem0

    real = getattr(mem0, ours.__name__)
    expected = {
        name: (each.kind, None if verb in ("__init__", "update") else each.default)
        for name, each in inspect.signature(getattr(real, verb)).parameters.items()
        if name != "llm"  # of add(), for procedures
    }
    found = {
        name: (each.kind, None if verb in ("__init__", "update") else each.default)
        for name, each in inspect.signature(getattr(ours, verb)).parameters.items()
        if name not in OURS.get(verb, ())
    }
    assert found == expected
    if verb not in ("__init__", "from_config"):
        assert inspect.iscoroutinefunction(getattr(ours, verb)) is inspect.iscoroutinefunction(getattr(real, verb))


def test_the_example_of_its_quickstart(mem):
    mem.add(TALK[1:3], user_id="alex")
    (first, *_) = mem.search("What do you know about me?", filters={"user_id": "alex"})["results"]
    assert first["memory"] == "Hi, I'm Alex. I love basketball and gaming."
    assert first["user_id"] == "alex"
    assert 0 < first["score"] <= 1
    explained = mem.search("basketball", filters={"user_id": "alex"}, explain=True)["results"][0]["score_details"]
    assert {"cosine", "confidence"} <= set(explained)


def test_the_example_of_its_readme(mem):
    asked = []

    def chat_with_memories(message, user_id="default_user"):
        relevant = mem.search(query=message, filters={"user_id": user_id}, top_k=3)
        known = "\n".join(f"- {entry['memory']}" for entry in relevant["results"])
        messages = [{"role": "system", "content": f"User Memories:\n{known}"}, {"role": "user", "content": message}]
        asked.append(known)
        messages.append({"role": "assistant", "content": "Noted."})
        mem.add(messages, user_id=user_id)

    chat_with_memories("My favourite sport is basketball")
    chat_with_memories("Which sport do I like?")
    assert asked[0] == ""
    assert "- My favourite sport is basketball" in asked[1].splitlines()


def test_ids_keep_memories_apart(mem):
    for ids in (ADA, {"user_id": "bob"}, {**ADA, "agent_id": "a/b"}, {"agent_id": "a/b", "run_id": ".."}):
        mem.add("I drink tea", **ids)
    assert len(mem.get_all(filters=ADA)["results"]) == 2
    assert len(mem.get_all(filters={"agent_id": "a/b"})["results"]) == 2
    assert len(mem.get_all(filters={"user_id": {"in": ["ada", "bob"]}})["results"]) == 3
    assert len(mem.get_all(filters={"user_id": "*"})["results"]) == 3
    assert texts(mem.search("tea", filters={"run_id": ".."})) == ["I drink tea"]
    mem.delete_all(agent_id="a/b")
    assert [each["user_id"] for each in mem.get_all(filters={"user_id": "*"})["results"]] == ["bob", "ada"]


def test_a_star_is_an_id_where_memories_are_deleted(mem):
    for user in ("ada", "bob", "*"):
        mem.add(f"{user} likes tea", user_id=user, infer=False)
    mem.delete_all(user_id="*")
    assert sorted(texts(mem.get_all(filters={"user_id": "*"}))) == ["ada likes tea", "bob likes tea"]


def test_what_is_inferred_repeats_and_supersedes(mem):
    added = [
        mem.add(text, user_id="ada")["results"]
        for text in ("Ada lives in Paris", "Ada lives in Paris", "Ada lives in Oslo")
    ]
    assert [[each["event"] for each in results] for results in added] == [["ADD"], [], ["ADD"]]
    assert texts(mem.get_all(filters=ADA)) == ["Ada lives in Oslo"]
    for _ in range(2):
        mem.add("I live in Rome", user_id="bob", infer=False)
    assert texts(mem.get_all(filters={"user_id": "bob"})) == ["I live in Rome"] * 2
    mem.delete_all(user_id="ada")
    assert mem.memory.count(scope="/mem0/user_id/ada", include_superseded=True) == 0


@pytest.mark.parametrize("named_by", ["rules", "caller"])
def test_what_a_deleted_memory_replaced_goes_with_it(mem, named_by):
    if named_by == "rules":
        texts_added = ("The dentist is Dr. Ruiz", "The dentist is Dr. Vogel", "The dentist is Dr. Lund")
    else:
        texts_added = ("We buy bread at the mill", "The baker closed in May", "Rolls come by post")
    ids = [mem.add(text, user_id="ada")["results"][0]["id"] for text in texts_added]
    beside = mem.add("The bicycle is red", user_id="ada")["results"][0]["id"]
    if named_by == "caller":
        for old, new in pairwise(ids):
            mem.memory.supersede(old, new, reason="so decided")
    assert {texts_added[2], "The bicycle is red"} <= {*texts(mem.get_all(filters=ADA))}
    assert mem.delete(ids[2]) == {"message": "Memory deleted successfully!"}
    assert texts(mem.get_all(filters=ADA)) == ["The bicycle is red"]
    assert [mem.get(id) for id in ids] == [None] * 3
    assert texts(mem.search("Which dentist, and where is the bread from?", filters=ADA, threshold=0.0)) == [
        "The bicycle is red"
    ]
    mem.delete(beside)
    assert mem.memory.count(include_superseded=True) == 0


class Model:
    def __init__(self, *answers):
        self.answers = list(answers)

    def complete(self, messages, *, schema=None, max_tokens=None):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return json.dumps({"facts": [{"content": each, "importance": 0.5, "episodes": []} for each in answer]})


def test_a_language_model_extracts_facts(path):
    model = Model(["Alex plays basketball", "Alex likes games"], [], LanguageModelError("no answer"))
    with recallite.Memory(path, language_model=model) as memory:
        mem = Memory(memory=memory)
        assert texts(mem.add(TALK, user_id="alex", metadata={"k": 1})) == ["Alex plays basketball", "Alex likes games"]
        assert mem.get_all(filters={"user_id": "alex"})["results"][0]["metadata"] == {"k": 1}
        assert mem.add("hello", user_id="alex") == {"results": []}
        assert texts(mem.add("I own a dog", user_id="alex")) == ["I own a dog"]


def test_memories_outlive_the_process_and_nothing_else_is_reset(path):
    with Memory(memory=path) as mem:
        mem.memory.remember("of another program")
        kept = mem.add("I drink tea", user_id="ada", metadata={"created_at": "2025-03-01T10:00:00+00:00"})
    with Memory(memory=path) as mem:
        found = mem.get(kept["results"][0]["id"])
        assert (found["memory"], found["created_at"]) == ("I drink tea", "2025-03-01T10:00:00+00:00")
        mem.reset()
        assert mem.get_all(filters=ADA) == {"results": []}
        assert mem.memory.count() == 1


def test_asynchronously():
    async def talk():
        async with AsyncMemory(memory=":memory:") as mem:
            await mem.add(TALK, user_id="ada", infer=False)
            found = await mem.search("basketball", filters=ADA)
            await mem.update(found["results"][0]["id"], text="I love football")
            history = await mem.history(found["results"][0]["id"])
            await mem.delete_all(user_id="ada")
            return history, await mem.get_all(filters=ADA)

    history, left = asyncio.run(talk())
    assert [each["event"] for each in history] == ["ADD", "UPDATE"]
    assert left == {"results": []}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda mem: mem.add(7, user_id="ada"), "messages must be str, dict, or list"),
        (lambda mem: mem.add("text", user_id="ada", timestamp=1), "timestamp"),
        (lambda mem: mem.add("text", user_id="ada", memory_type="procedural_memory"), "Memory.procedures"),
        (lambda mem: mem.add("text", user_id="ada", metadata=[1]), "metadata"),
        (lambda mem: mem.search("q", user_id="ada"), "Top-level entity parameters"),
        (lambda mem: mem.search("q", filters=ADA, reference_date=1), "reference_date"),
        (lambda mem: mem.search("q", filters={**ADA, "x": {"like": "y"}}), "operator"),
        (lambda mem: mem.search("q", filters={**ADA, "x": {"icontains": "y"}}), "operator"),
        (lambda mem: mem.search("q", filters={**ADA, "OR": []}), "OR operator requires"),
        (lambda mem: mem.search("q", filters={**ADA, "OR": ["x"]}), "a filter is 'x'"),
        (lambda mem: Memory.from_config([1]), "config_dict"),
        (lambda mem: AsyncMemory.from_config([1]), "config_dict"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(mem, wrong, why):
    with pytest.raises(InvalidInput, match=re.escape(why)):
        wrong(mem)


def test_a_configuration_of_mem0_is_taken_and_not_used(path, monkeypatch, caplog):
    monkeypatch.setenv("RECALLITE_DB", os.fspath(path))
    with Memory.from_config({"llm": {"provider": "openai"}}) as mem:
        assert texts(mem.add("I drink tea", user_id="ada")) == ["I drink tea"]
    assert "the configuration of mem0 is not used" in caplog.text
