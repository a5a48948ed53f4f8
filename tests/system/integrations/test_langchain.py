"""LangChain's vector store, retriever and chat history over a Memory, with LangChain's standard tests of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime

import pytest

from tests.raising import raises

pytest.importorskip("langchain_core", reason="the extra langchain is not installed")

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)  # fmt: skip
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory

from recallite import Memory
from recallite.errors import (
    EmbedderMismatch,
    InvalidInput,
    StoreClosed,
)  # fmt: skip
from recallite_connect.langchain import (
    RecalliteChatMessageHistory,
    RecalliteRetriever,
    RecalliteVectorStore,
)  # fmt: skip
from recallite_connect.langchain_embedder import LangChainEmbedder

pytestmark = [
    pytest.mark.usefixtures("offline"),
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainDeprecationWarning"),
]

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Letters(Embeddings):
    """How often each letter occurs."""

    model = "letters-1"

    def embed_query(self, text):
        counts = Counter(text.lower())
        return [float(counts[letter]) for letter in LETTERS]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


class Scripted(GenericFakeChatModel):
    """Says what was in its prompt, so that a test sees what the chain was given."""

    def _generate(self, messages, stop=None, run_manager=None, **options):
        self.messages = iter([AIMessage(content=f"I was told: {' | '.join(each.text for each in messages)}")])
        return super()._generate(messages, stop, run_manager, **options)


@pytest.fixture
def store(memory):
    return RecalliteVectorStore(memory)


def texts(documents):
    return [document.page_content for document in documents]


# ── the standard tests ────────────────────────────────────────────────────────────────────────────────────────

try:
    from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests
except ModuleNotFoundError:

    def test_standard():
        pytest.skip("langchain-tests is not installed")

else:

    class TestVectorStore(VectorStoreIntegrationTests):
        @pytest.fixture
        def vectorstore(self, path):
            with RecalliteVectorStore(path, self.get_embeddings()) as opened:
                yield opened

    class TestVectorStoreOfTheMemorysEmbedder(VectorStoreIntegrationTests):
        @pytest.fixture
        def vectorstore(self):
            with RecalliteVectorStore(":memory:") as opened:
                yield opened

    class TestRetriever(RetrieversIntegrationTests):
        @pytest.fixture(autouse=True)
        def remembered(self):
            with Memory(":memory:") as self.memory:
                self.memory.remember_many([f"Ada drank {drink}" for drink in ("tea", "coffee", "milk", "water")])
                yield

        @property
        def retriever_constructor(self):
            return RecalliteRetriever

        @property
        def retriever_constructor_params(self):
            return {"memory": self.memory}

        @property
        def retriever_query_example(self):
            return "What did Ada drink?"


# ── vector store ──────────────────────────────────────────────────────────────────────────────────────────────


def test_documents_stay_after_reopening(path):
    with RecalliteVectorStore(path, Letters()) as store:
        (kept,) = store.add_documents([Document("zebra", metadata={"page": 7})])
    with RecalliteVectorStore(path, Letters()) as store:
        assert store.similarity_search("zebra") == [Document("zebra", metadata={"page": 7}, id=kept)]
    with pytest.raises(StoreClosed):
        store.get_by_ids([kept])


def test_ids_are_of_a_scope(memory):
    ada, bob = (RecalliteVectorStore(memory, scope=f"/{name}") for name in ("ada", "bob"))
    for store, text in ((ada, "Ada's apple"), (bob, "Bob's apple")):
        assert store.add_texts([text], ids=["1"]) == ["1"]
    assert texts(ada.get_by_ids(["1"])) == texts(ada.similarity_search("apple")) == ["Ada's apple"]
    ada.delete()
    assert texts(bob.get_by_ids(["1"])) == ["Bob's apple"]
    memory.remember("an apple that is no document", scope="/bob")
    assert texts(bob.similarity_search("apple")) == ["Bob's apple"]


def test_documents_of_a_scope_below_are_those_of_another_store(store):
    below = RecalliteVectorStore(store.memory, scope="/ada")
    below.add_texts(["an apple of Ada"], ids=["1"])
    store.add_texts(["an apple of all"], [{"n": 1}], ids=["1"])
    assert texts(store.similarity_search("apple")) == texts(store.get_by_ids(["1"])) == ["an apple of all"]
    assert store.similarity_search("apple", filter={"n": 1}, where={"metadata.id": "2"}) == []
    store.delete()
    assert store.similarity_search("apple") == []
    assert texts(below.similarity_search("apple")) == ["an apple of Ada"]
    with pytest.raises(InvalidInput, match="of /ada alone"):
        below.similarity_search("apple", scope="/b")


def test_documents_that_contradict_each_other_both_stay(store):
    store.add_texts(["Ada lives in Oslo", "Ada lives in Rome", "Ada lives in Rome"])
    assert len(store.similarity_search("Ada")) == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"year": 2024}, ["apple two"]),
        ({"year": {"$gte": 2023, "$lt": 2025}}, ["apple one", "apple two"]),
        ({"year": {"$in": [2023, 2025]}}, ["apple one", "apple three"]),
        ({"year": {"$nin": [2023, 2025]}}, ["apple two"]),
        ({"$or": [{"year": 2023}, {"who.name": "Bob"}]}, ["apple one", "apple two"]),
        ({"$and": [{"year": {"$ne": 2023}}, {"tags": {"$contains": "x"}}]}, ["apple three"]),
        ({"$not": {"year": 2023}}, ["apple three", "apple two"]),
        ({}, ["apple one", "apple three", "apple two"]),
    ],
)
def test_metadata_are_filtered(store, given, expected):
    beside = [{"year": 2023}, {"year": 2024, "who": {"name": "Bob"}}, {"year": 2025, "tags": ["x", "y"]}]
    store.add_texts(["apple one", "apple two", "apple three"], beside)
    assert sorted(texts(store.similarity_search("apple", filter=given))) == expected


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("year", "filter is 'year': give a dict"),
        ({"year": {"$near": 1}}, r"filter\.year has the operator '\$near': use \$eq"),
        ({"$nor": []}, r"filter has '\$nor'"),
        ({"$or": {}}, r"filter\.\$or is \{\}: give a list"),
        ({"year": [1]}, "give a str, a finite number"),
    ],
)
def test_a_filter_that_is_none_says_why(store, given, said):
    with raises(InvalidInput, "filter", match=said):
        store.similarity_search("apple", filter=given)


def test_scores_are_relevances(path):
    with RecalliteVectorStore(path, Letters(), mode="vector") as store:
        store.add_texts(["abc", "abd", "xyz"])
        ((best, score), *_) = store.similarity_search_with_relevance_scores("abc")
        assert (best.page_content, score) == ("abc", pytest.approx(1))
        retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.5})
        assert texts(retriever.invoke("abc")) == ["abc", "abd"]
        assert texts(store.similarity_search_by_vector(Letters().embed_query("xxyyzz"), k=1)) == ["xyz"]


def test_what_is_alike_is_passed_over(path):
    with RecalliteVectorStore(path, Letters(), mode="vector") as store:
        store.add_texts(["abc", "abcabc", "abz"])
        diverse = store.as_retriever(search_type="mmr", search_kwargs={"k": 2, "lambda_mult": 0.3})
        assert sorted(texts(diverse.invoke("abc")))[1] == "abz"
        near = Letters().embed_query("abc")
        assert "abz" not in texts(store.max_marginal_relevance_search_by_vector(near, k=2, lambda_mult=1))
        assert store.max_marginal_relevance_search("abc", filter={"page": 1}) == []


def test_texts_are_added_all_or_none(store):
    with pytest.raises(InvalidInput):
        store.add_texts(["apple", "pear"], [{}, {"n": {1}}])
    with pytest.raises(InvalidInput, match="2 texts with 1 metadatas and 2 ids: give one each"):
        store.add_texts(["apple", "pear"], [{}])
    with pytest.raises(InvalidInput, match="id is 7: give a str"):
        store.add_texts(["apple"], ids=[7])
    assert store.memory.count() == 0


def test_a_blank_text_is_kept_and_takes_nothing_else_with_it(store):
    store.add_texts(["apple pie", "", " \n"], [{"n": 1}, {"n": 2}, {"n": 3}], ids=["a", "b", "c"])
    assert texts(store.get_by_ids(["a", "b", "c"])) == ["apple pie", "", " \n"]
    assert texts(store.similarity_search("apple")) == ["apple pie"]
    store.delete(["b"])
    assert store.memory.count() == 2


def test_texts_and_metadata_of_any_characters_and_times_are_kept(store):
    at = datetime(2026, 4, 2, 8, tzinfo=UTC)
    store.add_texts(["pears\0of\udcff may"], [{"at": at, "raw": "a\0b"}], ids=["p"])
    (kept,) = store.get_by_ids(["p"])
    assert (kept.page_content, kept.metadata) == ("pears\ufffdof\ufffd may", {"at": at, "raw": "a\0b"})
    assert texts(store.similarity_search("pears", filter={"at": {"$gte": at}})) == [kept.page_content]


@pytest.mark.parametrize("given", [{"page.no": 4}, {"page.no": {"$gt": 3}}, {"page.no": {"$ne": 5}}])
def test_a_key_with_a_dot_is_found_as_it_is_and_as_a_path(store, given):
    store.add_texts(
        ["one", "two", "three"], [{"page.no": 4}, {"page": {"no": 4}}, {"page.no": 2 if "$gt" in str(given) else 5}]
    )
    assert sorted(texts(store.similarity_search("one two three", filter=given))) == ["one", "two"]


def test_a_store_is_made_from_texts(path):
    made = RecalliteVectorStore.from_texts(["abc"], Letters(), [{"n": 1}], ids=["x"], memory=path, scope="/a")
    with made:
        assert made.get_by_ids(["x", "y"]) == [Document("abc", metadata={"n": 1}, id="x")]
        assert (made.embeddings.model, made.memory.store.stats().embedder) == ("letters-1", "Letters:letters-1")
    with asyncio.run(RecalliteVectorStore.afrom_texts(["tea"], None)) as own:
        assert texts(own.similarity_search("What do they drink?")) == ["tea"]


def test_a_memory_of_other_embeddings_is_refused():
    with Memory(":memory:", embedder=LangChainEmbedder(Letters(), 26, name="other")) as other:
        other.remember("what has a vector")
        with pytest.raises(EmbedderMismatch, match="Letters:letters-1 \\(26\\)"):
            RecalliteVectorStore(other, Letters())


# ── retriever ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_chain_answers_from_what_is_remembered(memory):
    memory.remember("The rent is due on the fifth", scope="/home", metadata={"page": 3})
    memory.remember("The rent of the boat is due on the ninth", scope="/boat")
    RecalliteVectorStore(memory, scope="/home").add_texts(
        ["A letter about the rent"], [{"from": "Bob"}], ids=["letter"]
    )
    retriever = RecalliteRetriever(memory=memory, k=2, options={"scope": "/home"})
    asked = {
        "context": retriever | RunnableLambda(lambda found: "; ".join(sorted(texts(found)))),
        "question": RunnablePassthrough(),
    }
    chain = asked | ChatPromptTemplate.from_template("{context} / {question}") | Scripted(messages=iter([]))
    said = "I was told: A letter about the rent; The rent is due on the fifth / When is the rent due?"
    assert chain.invoke("When is the rent due?").content == said
    assert asyncio.run(chain.ainvoke("When is the rent due?")).content == said
    by_id = {document.id: document.metadata for document in retriever.invoke("rent")}
    assert by_id["letter"].keys() == {"from", "score", "confidence"}
    (other,) = (metadata for id, metadata in by_id.items() if id != "letter")
    assert other.keys() == {"page", "scope", "kind", "created_at", "score", "confidence"}
    assert texts(retriever.invoke("rent", k=1, scope="/boat")) == ["The rent of the boat is due on the ninth"]


def test_a_retriever_of_a_path_closes_it(path):
    with Memory(path) as memory:
        memory.remember("The rent is due on the fifth")
    retriever = RecalliteRetriever(memory=path)
    assert len(retriever.invoke("rent")) == 1
    retriever.close()
    with pytest.raises(StoreClosed):
        retriever.invoke("rent")
    with pytest.raises(ValueError, match="memory is 7: give a Memory"):
        RecalliteRetriever(memory=7)


# ── chat history ──────────────────────────────────────────────────────────────────────────────────────────────

MESSAGES = [
    SystemMessage("You help.", id="1"),
    HumanMessage([{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:,"}}]),
    AIMessage("", tool_calls=[{"name": "look", "args": {"deep": [1, None]}, "id": "call-1"}]),
    ToolMessage("A zebra", tool_call_id="call-1", artifact={"raw": [1]}, status="error"),
    AIMessage(
        "A zebra.",
        response_metadata={"model": "m"},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    ChatMessage("Agreed", role="Bob"),
    HumanMessage("Danke 漢字", name="ada", additional_kwargs={"x": 1}),
]


def test_messages_come_back_as_they_were(path):
    with RecalliteChatMessageHistory("chat-7", path) as history:
        assert history.messages == []
        history.add_messages(MESSAGES[:4])
        asyncio.run(history.aadd_messages(MESSAGES[4:]))
    with RecalliteChatMessageHistory("chat-7", path) as history:
        assert history.messages == MESSAGES
        assert asyncio.run(history.aget_messages()) == MESSAGES
        history.limit = 2
        assert history.messages == MESSAGES[-2:]
        (found,) = history.memory.sessions.search("What is this?", limit=1)
        assert (found.session, found.role, found.content) == ("chat-7", "user", "What is this?")


def test_sessions_are_apart(memory):
    one, other = (RecalliteChatMessageHistory("chat", memory, agent=agent) for agent in ("ada", "bob"))
    one.add_user_message("Hello")
    one.add_ai_message("Hi")
    assert (str(one), other.messages) == ("Human: Hello\nAI: Hi", [])
    asyncio.run(one.aclear())
    one.clear()
    assert (one.messages, memory.sessions.list()) == ([], [])
    with pytest.raises(InvalidInput, match="a message is 'Hello': give a message"):
        one.add_messages(["Hello"])
    one.add_messages([])
    assert memory.sessions.list() == []


def test_messages_of_other_programs_are_read(memory):
    memory.sessions.open("chat").extend([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
    assert RecalliteChatMessageHistory("chat", memory).messages == [HumanMessage("Hello"), AIMessage("Hi")]


def test_a_chain_keeps_its_conversations(path):
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("before"), ("human", "{said}")])
    with Memory(path) as memory:
        chain = RunnableWithMessageHistory(
            prompt | Scripted(messages=iter([])), lambda session_id: RecalliteChatMessageHistory(session_id, memory),
            input_messages_key="said", history_messages_key="before",
        )  # fmt: skip
        for session, said in (("a", "one"), ("b", "two"), ("a", "three")):
            chain.invoke({"said": said}, {"configurable": {"session_id": session}})
        last = asyncio.run(chain.ainvoke({"said": "four"}, {"configurable": {"session_id": "b"}}))
        assert last.content == "I was told: two | I was told: two | four"
    with RecalliteChatMessageHistory("a", path) as history:
        assert [each.type for each in history.messages] == ["human", "ai"] * 2
        assert history.messages[2].content == "three"
