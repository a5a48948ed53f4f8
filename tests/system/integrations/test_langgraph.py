"""LangGraph's store over a Memory: graphs that remember between threads, search, expiry, and what is refused."""

from __future__ import annotations

import asyncio
import math
import operator
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypedDict
from uuid import UUID

import pytest

from tests.raising import raises

pytest.importorskip("langgraph.store.base", reason="the extra langgraph is not installed")

from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from recallite import Memory
from recallite.errors import (
    EmbedderMismatch,
    InvalidInput,
    StoreClosed,
)  # fmt: skip
from recallite_connect.langchain_embedder import LangChainEmbedder
from recallite_connect.langgraph import AsyncRecalliteStore, RecalliteStore

pytestmark = pytest.mark.usefixtures("offline")

LETTERS = "abcdefghijklmnopqrstuvwxyz"
ODD = ["a/b", " padded ", "100%", "%002f;", "tab\there", "line\n", "naïve", "\u2003em", "..", "漢字", "\ud800"]


class Letters(Embeddings):
    """How often each letter occurs; of a text without letters, zeros."""

    def embed_query(self, text):
        counts = Counter(text.lower())
        return [float(counts[letter]) for letter in LETTERS]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


INDEX = {"embed": Letters(), "dims": 26, "fields": ["title", "notes[*]"]}


@pytest.fixture
def store(memory):
    return RecalliteStore(memory)


@pytest.fixture
def indexed(path):
    with RecalliteStore(path, index=INDEX) as opened:
        yield opened


def keys(items):
    return [item.key for item in items]


def test_a_deleted_item_leaves_the_others_as_they_were(store):
    for key, text in (("a", "The dentist is Dr. Ruiz"), ("b", "The dentist is Dr. Vogel now")):
        store.put(("people",), key, {"text": text})
    assert sorted(keys(store.search(("people",)))) == ["a", "b"]  # nothing replaced the other
    store.delete(("people",), "b")
    assert keys(store.search(("people",))) == ["a"]


# ── in a graph ────────────────────────────────────────────────────────────────────────────────────────────────


class State(TypedDict):
    messages: Annotated[list[str], operator.add]


def remembering_graph(store):
    """A graph that keeps what its user says and answers from what was kept, in whichever thread."""
    graph = pytest.importorskip("langgraph.graph", reason="langgraph is not installed")
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.runtime import Runtime

    def talk(state: State, runtime: Runtime):
        said = state["messages"][-1]
        namespace = ("users", "ada")
        if said.endswith("?"):
            found = runtime.store.search(namespace, query=said, limit=1)
            return {"messages": [found[0].value["text"]]}
        runtime.store.put(namespace, f"m{len(runtime.store.search(namespace, limit=100))}", {"text": said})
        return {"messages": ["noted"]}

    built = graph.StateGraph(State)
    built.add_node("talk", talk)
    built.add_edge(graph.START, "talk")
    return built.compile(store=store, checkpointer=InMemorySaver())


def said_in(thread):
    return {"configurable": {"thread_id": thread}}


def test_a_graph_remembers_between_threads_and_after_reopening(path):
    with RecalliteStore(path) as store:
        graph = remembering_graph(store)
        for text in ("I am allergic to peanuts", "My dog is called Nero", "I work in Lisbon"):
            assert graph.invoke({"messages": [text]}, said_in("monday"))["messages"][-1] == "noted"
        answer = graph.invoke({"messages": ["What is the name of the dog?"]}, said_in("tuesday"))
        assert answer["messages"] == ["What is the name of the dog?", "My dog is called Nero"]
    with RecalliteStore(path) as store:
        answer = remembering_graph(store).invoke({"messages": ["Which food is dangerous?"]}, said_in("friday"))
        assert answer["messages"][-1] == "I am allergic to peanuts"


def test_an_asynchronous_graph_remembers(path):
    async def run():
        graph = pytest.importorskip("langgraph.graph", reason="langgraph is not installed")
        from langgraph.runtime import Runtime

        async def keep(state: State, runtime: Runtime):
            await runtime.store.aput(("notes",), str(len(state["messages"])), {"text": state["messages"][-1]})
            found = await runtime.store.asearch(("notes",), query="tea", limit=1)
            return {"messages": [found[0].value["text"]]}

        built = graph.StateGraph(State)
        built.add_node("keep", keep)
        built.add_edge(graph.START, "keep")
        async with AsyncRecalliteStore.from_conn_string(str(path)) as store:
            await store.aput(("notes",), "first", {"text": "Ada drinks tea"})
            return await built.compile(store=store).ainvoke({"messages": ["The rent is due"]})

    assert asyncio.run(run())["messages"] == ["The rent is due", "Ada drinks tea"]


# ── keys, namespaces, scopes ──────────────────────────────────────────────────────────────────────────────────


def test_an_item_keeps_when_it_was_made(store):
    store.put(("a",), "k", {"n": 1})
    made = store.get(("a",), "k")
    store.put(("a",), "k", {"n": 2})
    changed = store.get(("a",), "k")
    assert (changed.value, changed.created_at) == ({"n": 2}, made.created_at)
    assert changed.updated_at >= made.updated_at
    assert store.memory.history(store.memory.list()[0].id)[0].metadata["value"] == {"n": 2}


@pytest.mark.parametrize("label", [label for label in ODD if "." not in label and label.isprintable()])
def test_a_label_comes_back_as_it_was(store, label):
    store.put(("a", label), "k", {"n": 1})
    assert store.get(("a", label), "k").namespace == ("a", label)
    assert store.list_namespaces() == [("a", label)]
    assert [item.namespace for item in store.search(("a", label))] == [("a", label)]


@pytest.mark.parametrize("label", ["tab\there", "line\n", "\x7f", "a/b", " "])
def test_a_label_that_scopes_refuse_is_quoted(store, label):
    store.put((label,), "k", {"n": 1})
    assert store.list_namespaces() == [(label,)]
    assert store.memory.scopes()[0].scope.count("/") == 1


@pytest.mark.parametrize("key", ["", "a" * 2_000, "a/b\n", "漢字", " "])
def test_a_key_may_be_any_text(store, key):
    store.put(("a",), key, {"n": 1})
    assert (store.get(("a",), key).key, store.get(("b",), key)) == (key, None)
    store.delete(("a",), key)
    assert store.memory.count() == 0


def test_namespaces_are_scopes_that_a_handle_confines(memory):
    ada, bob = (RecalliteStore(memory, scope=f"/{name}") for name in ("ada", "bob"))
    ada.put(("notes",), "k", {"text": "Ada's"})
    bob.put(("notes",), "k", {"text": "Bob's"})
    assert ada.get(("notes",), "k").value == {"text": "Ada's"}
    assert RecalliteStore(memory.scoped("/bob")).get(("notes",), "k").value == {"text": "Bob's"}
    assert [each.scope for each in memory.scopes()] == ["/ada/notes", "/bob/notes"]
    assert keys(ada.search(())) == ["k"]
    ada.delete(("notes",), "k")
    assert bob.list_namespaces() == [("notes",)]


def test_a_store_of_the_scope_above_has_the_same_items(store):
    below = RecalliteStore(store.memory, scope="/users/ada")
    below.put(("notes",), "k", {"n": 1})
    assert store.get(("users", "ada", "notes"), "k").value == {"n": 1}
    store.put(("users", "ada", "notes"), "k", {"n": 2})
    assert [each.value for each in below.search(())] == [{"n": 2}]
    store.delete(("users", "ada", "notes"), "k")
    assert below.search(()) == []


def test_other_memories_are_no_items(store):
    store.memory.remember("Ada lives in Oslo", scope="/a")
    store.put(("b",), "k", {"text": "Ada lives in Rome"})
    assert store.list_namespaces() == [("b",)]
    assert keys(store.search((), query="Where does Ada live?")) == ["k"]
    assert len(store.memory.recall("Where does Ada live?", profile={"standing_instructions": 0})) == 2


def test_items_that_contradict_each_other_both_stay(store):
    for number, city in enumerate(["Oslo", "Rome", "Oslo"]):
        store.put(("a",), str(number), {"text": f"Ada lives in {city}"})
    assert sorted(keys(store.search(("a",)))) == ["0", "1", "2"]
    assert sorted(keys(store.search(("a",), query="Ada"))) == ["0", "1", "2"]


def test_namespaces_are_listed_by_conditions(store):
    for namespace in [("a", "x", "1"), ("a", "y", "1"), ("a", "y", "2"), ("b", "x"), ("a",)]:
        store.put(namespace, "k", {"n": 1})
    assert store.list_namespaces(prefix=("a", "*"), suffix=("1",)) == [("a", "x", "1"), ("a", "y", "1")]
    assert store.list_namespaces(max_depth=2, offset=1) == [("a", "x"), ("a", "y"), ("b", "x")]
    assert store.list_namespaces(prefix=("a", "x", "1", "deeper")) == []
    with pytest.raises(InvalidInput, match="match_type is 'middle'"):
        store.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))])


# ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_batch_is_one_transaction(store):
    store.put(("a",), "old", {"n": 1})
    with pytest.raises(InvalidInput):
        store.batch([PutOp(("a",), "old", None), PutOp(("a",), "new", {"n": 2}), PutOp(("a",), "bad", {"n": {1}})])
    assert keys(store.search(("a",))) == ["old"]


def test_reads_of_a_batch_see_what_was_there_before(store):
    store.put(("a",), "k", {"n": 1})
    ops = [PutOp(("a",), "k", {"n": 2}), GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 3}), SearchOp(("a",))]
    _, got, _, found = store.batch(ops)
    assert (got.value, found[0].value, store.get(("a",), "k").value) == ({"n": 1}, {"n": 1}, {"n": 3})


def test_calls_awaited_together_are_one_batch(path, monkeypatch):
    batches, abatch = [], RecalliteStore.abatch

    async def counted(store, ops):
        batches.append(len(ops))
        return await abatch(store, ops)

    monkeypatch.setattr(RecalliteStore, "abatch", counted)

    async def run():
        async with AsyncRecalliteStore.from_conn_string(str(path)) as store:
            await asyncio.gather(*(store.aput(("a",), str(n), {"n": n}) for n in range(20)))
            with pytest.raises(asyncio.InvalidStateError):
                store.get(("a",), "1")
            return await asyncio.to_thread(store.get, ("a",), "3")

    assert asyncio.run(run()).value == {"n": 3}
    assert batches == [20, 1]


def test_an_asynchronous_function_embeds(path):
    async def embed(texts):
        await asyncio.sleep(0)
        return Letters().embed_documents(texts)

    async def run():
        index = {"embed": embed, "dims": 26, "fields": ["title"]}
        async with AsyncRecalliteStore.from_conn_string(str(path), index=index) as store:
            await store.aput(("a",), "k", {"title": "zebra"})
            return await store.asearch(("a",), query="bazer")

    assert asyncio.run(run())[0].score == pytest.approx(1)


# ── search ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_memory_finds_items_by_itself(path):
    with RecalliteStore(path) as store:
        store.put(("a",), "food", {"likes": "sushi", "since": 2020})
        store.put(("a",), "pet", {"text": "a cat called Miro"})
        store.put(("a",), "secret", {"text": "sushi sushi sushi"}, index=False)
        found = store.search(("a",), query="Who eats raw fish?")
        assert [(item.key, item.score is None) for item in found] == [("food", False), ("pet", False), ("secret", True)]
        texts = {record.text for record in store.memory.list(kinds="item")}
        assert texts == {"likes: sushi\nsince: 2020", "a cat called Miro"}


def test_an_item_has_a_vector_of_each_field(indexed):
    indexed.put(("a",), "k", {"title": "zzz", "notes": ["abc", "qqq"], "body": "mmm"})
    indexed.put(("a",), "other", {"title": "abd"})
    for query in ("zzz", "abc", "qqq"):
        best = indexed.search(("a",), query=query)[0]
        assert (best.key, best.score) == ("k", pytest.approx(1))
    assert indexed.search(("a",), query="mmm")[0].score == pytest.approx(0)
    (vectors,) = indexed.memory.vectors([indexed.memory.list(where={"metadata.key": "k"})[0].id]).values()
    assert vectors.shape == (3, 26)


def test_what_has_no_text_or_vector_is_found_last(indexed):
    indexed.put(("a",), "blank", {"title": " "})
    indexed.put(("a",), "digits", {"title": "123"})
    indexed.put(("a",), "letters", {"title": "abc"})
    found = indexed.search(("a",), query="abc")
    assert [(item.key, item.score) for item in found] == [
        ("letters", pytest.approx(1)),
        ("digits", None),
        ("blank", None),
    ]
    assert keys(indexed.search(("a",), query="abc", limit=1, offset=2)) == ["blank"]
    assert len(indexed.search(("a",), query="123")) == 3


def test_without_an_index_a_query_changes_nothing(memory):
    store = RecalliteStore(memory, index=False)
    store.put(("a",), "one", {"text": "tea"})
    store.put(("a",), "two", {"text": "coffee"})
    assert [(item.key, item.score) for item in store.search(("a",), query="tea")] == [("two", None), ("one", None)]
    assert memory.recall("tea") == []


def test_pages_are_parts_of_one_order(store):
    for number in range(12):
        store.put(("a",), str(number), {"text": f"note {number} about tea"}, index=False if number % 3 == 0 else None)
    every = keys(store.search(("a",), query="tea", limit=12))
    paged = [key for start in range(0, 12, 5) for key in keys(store.search(("a",), query="tea", limit=5, offset=start))]
    assert len(set(every)) == 12
    assert paged == every
    assert store.search(("a",), query="tea", limit=0) == []


VALUES = {
    "one": {"n": 1, "who": {"name": "Ada"}, "tags": ["x"], "on": True},
    "two": {"n": 2.5, "who": {"name": "Bob"}, "tags": ["x", "y"], "on": False},
    "none": {"n": None, "deep": {"list": [{"a": 1}]}},
}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": 1}, ["one"]),
        ({"n": {"$eq": 2.5}}, ["two"]),
        ({"n": {"$ne": 1}}, ["none", "two"]),
        ({"n": {"$gt": 1}}, ["two"]),
        ({"n": {"$gte": 1, "$lt": 2.5}}, ["one"]),
        ({"n": {"$lte": 2.5}}, ["one", "two"]),
        ({"n": None}, ["none"]),
        ({"on": True}, ["one"]),
        ({"who": {"name": "Ada"}}, ["one"]),
        ({"who.name": {"$ne": "Ada"}}, ["none", "two"]),
        ({"tags": ["x"]}, ["one"]),
        ({"tags": {"$ne": ("x",)}}, ["none", "two"]),
        ({"deep": {"list": [{"a": 1}]}}, ["none"]),
        ({"n": {"$lt": math.inf}}, ["one", "two"]),
        ({"n": {"$gt": -(10**30)}, "on": False}, ["two"]),
        ({"missing": None}, ["none", "one", "two"]),
        ({}, ["none", "one", "two"]),
    ],
)
def test_values_are_filtered(given, expected):
    with RecalliteStore(":memory:", index={"embed": Letters(), "dims": 26}) as store:
        for key, value in VALUES.items():
            store.put(("a",), key, value)
        assert sorted(keys(store.search(("a",), filter=given))) == expected
        assert sorted(keys(store.search(("a",), filter=given, query="Ada"))) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n": {"$in": [1]}}, "Unsupported operator: \\$in: use \\$eq"),
        ({'n"': 1}, "Invalid filter key"),
        ({"n.": 1}, "Invalid filter key"),
        ({1: 1}, "Invalid filter key"),
        ({"n": {"$gt": None}}, "compare with eq or ne"),
        ({"n": {"$gt": [1]}}, r"n\.\$gt is \[1\]: give a number"),
    ],
)
def test_a_filter_that_is_none_says_why(store, given, said):
    store.put(("a",), "k", {"n": 1})
    with raises(InvalidInput, "filter", match=said):
        store.search(("a",), filter=given)


# ── expiry ────────────────────────────────────────────────────────────────────────────────────────────────────


def expires_after(store):
    return [record.expires_after for record in store.memory.list()]


def test_what_has_expired_is_not_shown_and_swept(memory):
    store = RecalliteStore(memory, ttl={"default_ttl": 60, "refresh_on_read": True})
    store.put(("a",), "stays", {"n": 1}, ttl=None)
    store.put(("a",), "goes", {"n": 2})
    assert sorted(expires_after(store), key=str) == [timedelta(minutes=60), None]
    memory.update([record.id for record in memory.list(where={"metadata.key": "goes"})], expires_at="2020-01-01")
    assert store.get(("a",), "goes") is None
    assert keys(store.search(("a",))) == ["stays"]
    assert (store.sweep_ttl(), store.sweep_ttl()) == (1, 0)


def test_a_read_renews_what_it_shows(memory):
    store = RecalliteStore(memory, ttl={"default_ttl": 60, "refresh_on_read": True})
    for key in ("got", "found", "left"):
        store.put(("a",), key, {"key": key})
    ids = {record.metadata["key"]: record.id for record in memory.list()}
    soon = {key: memory.get(id).expires_at for key, id in ids.items()}
    store.get(("a",), "got")
    store.search(("a",), filter={"key": "found"})
    store.get(("a",), "left", refresh_ttl=False)
    assert {key for key, id in ids.items() if memory.get(id).expires_at > soon[key]} == {"got", "found"}


def test_a_sweeper_sweeps_until_it_is_stopped(memory):
    store = RecalliteStore(memory, ttl={"sweep_interval_minutes": 1e-4})
    swept = []
    ended = store.start_ttl_sweeper()
    store.put(("a",), "k", {"n": 1})
    memory.update([memory.list()[0].id], expires_at="2020-01-01")
    limit = time.monotonic() + 60
    while not swept and time.monotonic() < limit:
        swept = [] if memory.store.stats().records else ["k"]
    assert swept == ["k"]
    assert store.stop_ttl_sweeper()
    assert ended.result(60) is None
    again = store.start_ttl_sweeper(1e-4)
    assert again.cancel()
    store.close()
    assert RecalliteStore(memory).start_ttl_sweeper().result(60) is None


def test_a_sweeper_ends_with_its_memory(memory):
    ended = RecalliteStore(memory, ttl={"sweep_interval_minutes": 1e-4}).start_ttl_sweeper()
    memory.close()
    assert ended.result(60) is None


# ── what is refused ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_store_for_a_path_is_closed_and_one_for_a_memory_is_not(memory, path):
    with RecalliteStore.from_conn_string(str(path)) as store:
        store.put(("a",), "k", {"n": 1})
    with pytest.raises(StoreClosed):
        store.get(("a",), "k")
    with RecalliteStore(memory) as store:
        store.put(("a",), "k", {"n": 1})
    assert memory.count() == 1


def test_a_wrong_index_is_refused(memory, path):
    with pytest.raises(InvalidInput, match="embed without dims"):
        RecalliteStore(memory, index={"embed": Letters()})
    with pytest.raises(InvalidInput, match="index is 'title': give an IndexConfig"):
        RecalliteStore(memory, index="title")
    with pytest.raises(InvalidInput, match="fields are 7"):
        RecalliteStore(memory, index={"fields": 7})
    with (
        RecalliteStore(path, index={**INDEX, "dims": 5}) as store,
        raises(InvalidInput, "vector", match="26 components"),
    ):
        store.put(("a",), "k", {"title": "abc"})
    with Memory(":memory:", embedder=LangChainEmbedder(Letters(), 26, name="other")) as other:
        other.remember("what has a vector of another embedder")
        with pytest.raises(EmbedderMismatch, match="leave embed and dims out"):
            RecalliteStore(other, index=INDEX)


def test_a_memory_may_bring_langchains_embeddings(path):
    with Memory(path, embedder=LangChainEmbedder(Letters(), 26)) as memory:
        store = RecalliteStore(memory, index=INDEX)
        store.put(("a",), "k", {"title": "zebra"})
        assert keys(store.search((), query="zebra")) == ["k"]
        assert memory.recall("zebra")[0].text == "zebra"
    with RecalliteStore(path, index=INDEX) as store:
        assert keys(store.search((), query="zebra")) == ["k"]


def test_a_value_that_is_no_json_is_refused(store):
    with pytest.raises(InvalidInput, match=r"metadata\.value\.n is set"):
        store.put(("a",), "k", {"n": {1}})
    with pytest.raises(InvalidInput, match="the value of 'k' has the key 1: keys are str"):
        store.put(("a",), "k", {1: "one"})
    endless: dict[str, object] = {}
    endless["inside"] = endless
    with pytest.raises(InvalidInput, match="holds itself"):
        store.put(("a",), "k", endless)
    with pytest.raises(InvalidInput, match="key is 7"):
        store.batch([PutOp(("a",), 7, {"n": 1})])
    with pytest.raises(InvalidInput, match="an operation is 'get'"):
        store.batch(["get"])
    assert store.memory.count() == 0


def test_times_and_uuids_come_back_and_are_found_by_their_values(path):
    at, id = datetime(2026, 4, 2, 8, tzinfo=UTC), UUID(int=7)
    with RecalliteStore(path) as store:
        store.put(("visits",), "one", {"at": at, "by": [id], "what": "a walk at the pier"})
        store.put(("visits",), "two", {"at": at + timedelta(days=1), "by": [id]})
    with RecalliteStore(path) as store:
        assert store.get(("visits",), "one").value == {"at": at, "by": [id], "what": "a walk at the pier"}
        assert keys(store.search(("visits",), filter={"at": at})) == ["one"]
        assert keys(store.search(("visits",), filter={"at": {"$gt": at}})) == ["two"]
        assert keys(store.search(("visits",), query="2026-04-03"))[:1] == ["two"]


def test_a_key_with_a_dot_is_found_as_it_is_and_as_a_path(store):
    store.put(("a",), "flat", {"size.cm": 4})
    store.put(("a",), "deep", {"size": {"cm": 4}})
    store.put(("a",), "other", {"size": {"cm": 5}, "list": [1]})
    assert sorted(keys(store.search(("a",), filter={"size.cm": 4}))) == ["deep", "flat"]
    assert sorted(keys(store.search(("a",), filter={"size.cm": {"$ne": 4}}))) == ["other"]
    assert sorted(keys(store.search(("a",), filter={"size.cm": {"$gte": 4}}))) == ["deep", "flat", "other"]


def test_a_program_written_for_sqlitestore_may_call_setup(tmp_path):
    with RecalliteStore(tmp_path / "a.db") as store:
        store.setup()
        store.put(("a",), "k", {"v": 1})
        store.setup()
        assert store.get(("a",), "k").value == {"v": 1}
