"""Embeddings over HTTP against a real server, alone and as the embedder of a memory."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from recallite import Memory
from recallite.embedding import embed_documents, load
from recallite.embedding.remote_embedder import RemoteEmbedder
from recallite.errors import EmbedderError, EmbedderMismatch, InvalidInput
from tests.endpoint import Answer, Clock, embeddings
from tests.unit.core.memory.support import WordEmbedder

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def endpoint(server):
    server.otherwise = embeddings()
    return server


@pytest.fixture
def embedder(endpoint):
    return RemoteEmbedder(endpoint.url, "words", api_key=KEY, batch_size=4)


def vectors_of(texts):
    return WordEmbedder().embed(list(texts))


def test_vectors_stand_in_the_order_of_the_texts_and_have_unit_length(endpoint, embedder):
    texts = [f"word{number} and word{number * 7}" for number in range(11)]
    np.testing.assert_allclose(embedder.embed(texts), vectors_of(texts), atol=1e-6)
    assert embedder.embed(texts).dtype == np.float32
    assert [len(asked.body["input"]) for asked in endpoint.asked[:4]] == [1, 4, 4, 3]
    assert endpoint.asked[0].path == "/v1/embeddings"
    assert endpoint.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert endpoint.asked[1].body == {"model": "words", "input": texts[:4]}


def test_no_texts_need_no_request_but_the_probe(endpoint, embedder):
    assert embedder.embed([]).shape == (0, 16)
    assert len(endpoint.asked) == 1


def test_the_model_and_the_dimension_are_its_identity(endpoint, embedder):
    assert endpoint.asked == []
    assert (embedder.name, embedder.dimension, embedder.fingerprint) == ("words", 16, "remote:words:16")
    assert len(endpoint.asked) == 1
    elsewhere = RemoteEmbedder(endpoint.url.replace("127.0.0.1", "localhost"), "words")
    assert elsewhere.fingerprint == embedder.fingerprint


def test_many_threads_probe_once(endpoint, embedder):
    barrier = threading.Barrier(6)
    with ThreadPoolExecutor(6, initializer=barrier.wait) as pool:
        found = list(pool.map(lambda number: embedder.embed([f"word{number}"]), range(12)))
    np.testing.assert_allclose(np.vstack(found), vectors_of(f"word{number}" for number in range(12)), atol=1e-6)
    assert sum(asked.body["input"] == ["dimension"] for asked in endpoint.asked) == 1


def test_long_documents_are_embedded_in_parts(endpoint):
    embedder = RemoteEmbedder(endpoint.url, "words", max_tokens=16)
    text = " ".join(f"word{number}" for number in range(60))
    embedded = embed_documents(embedder, ["short", text], ["Ann", None])
    sent = [each for asked in endpoint.asked for each in asked.body["input"]][1:]
    assert sent[0] == "Ann: short"
    assert len(sent) == len(embedded.owners) > 5
    assert all(len(each) <= 64 for each in sent)


def test_large_components_do_not_overflow(endpoint, embedder):
    endpoint.script = [
        Answer({"data": [{"index": 0, "embedding": [1.0, 1.0]}]}),
        Answer({"data": [{"index": 0, "embedding": [3e200, 4e200]}]}),
    ]
    np.testing.assert_allclose(embedder.embed(["x"]), [[0.6, 0.8]], rtol=1e-6)


def data(*rows, indices=None):
    places = range(len(rows)) if indices is None else indices
    return Answer({"data": [{"index": place, "embedding": row} for place, row in zip(places, rows, strict=True)]})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (data([1.0] * 16), "1 vectors for 2 texts"),
        (data([1.0] * 16, [1.0] * 16, [1.0] * 16), "3 vectors for 2 texts"),
        (data([1.0] * 16, [1.0] * 16, indices=[1, 1]), "2 vectors for 2 texts, or not one a text"),
        (data([1.0] * 16, [1.0] * 16, indices=[1, 2]), "not one a text"),
        (data([1.0] * 16, [1.0] * 15), "15 components where 16 are expected"),
        (data([1.0] * 16, []), "an empty vector"),
        (data([1.0] * 16, [0.0] * 16), "zero or not finite for text 1"),
        (Answer(b'{"data": [{"index": 0, "embedding": [NaN]}, {"index": 1, "embedding": [1.0]}]}'), "no.*JSON|JSON"),
        (data([1.0] * 16, [None] * 16), "no list of embeddings"),
        (data([1.0] * 16, "AAAA"), "no list of embeddings"),
        (Answer({"error": "no such model"}), "no list of embeddings"),
        (Answer(b"<html>"), "instead of a JSON object"),
        (Answer({"error": {"message": f"bad key {KEY}"}}, 401), "401: 'bad key …'|401: 'bad key .u2026'"),
    ],
)
def test_a_wrong_answer_is_an_embedder_error(endpoint, embedder, answer, message):
    assert embedder.dimension == 16
    endpoint.script = [answer]
    with pytest.raises(EmbedderError, match=message) as raised:
        embedder.embed(["one", "two"])
    assert KEY not in str(raised.value)


def test_busy_then_served(endpoint, embedder):
    endpoint.script = [Answer({}, 429, {"Retry-After": "2"}), Answer({}, 500)]
    assert embedder.dimension == 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base_url": "nowhere"}, "base_url"), ({"model": ""}, "model"), ({"api_key": ""}, "api_key"),
        ({"batch_size": 0}, "batch_size"), ({"max_tokens": 1}, "max_tokens"), ({"timeout_seconds": -1}, "timeout"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        RemoteEmbedder(**{"base_url": "http://127.0.0.1:9/v1", "model": "words", **arguments})


def test_remembered_while_the_endpoint_is_down_found_by_keyword_embedded_when_it_is_back(endpoint, path):
    clock = Clock()
    with Memory(path, embedder=RemoteEmbedder(endpoint.url, "words", clock=clock)) as memory:
        assert endpoint.asked == [], "opening a memory asks nothing"
        endpoint.down = True
        early = memory.remember("the striped zebra")
        assert early.embedding_state == "pending"
        endpoint.down = False
        clock.seconds += 2
        memory.remember("a tall giraffe")
        assert memory.get(early.id).embedding_state == "embedded"
        endpoint.down = True
        late = memory.remember("a grey elephant")
        assert late.embedding_state == "pending"
        hits = memory.recall("elephant")
        assert not memory._engine.embedding.runs, "a recall does not ask in the background what has just failed"
        assert [hit.id for hit in hits] == [late.id]
        assert any("meaning was not searched: words: http" in gap and "503" in gap for gap in hits.evidence_gaps)
        with pytest.raises(EmbedderError, match="503"):
            memory.recall("another elephant", mode="vector")
        endpoint.down = False
        clock.seconds += 2
        memory.remember("back again")
        assert memory.store.stats().pending == 0
        assert memory.recall("grey elephant", mode="vector", limit=1)[0].id == late.id
        assert memory.store.verify().ok


def test_an_endpoint_that_is_down_is_asked_again_after_growing_intervals_and_nobody_waits_for_it_meanwhile(endpoint):
    clock = Clock()
    endpoint.down = True
    with Memory(":memory:", embedder=RemoteEmbedder(endpoint.url, "words", clock=clock)) as memory:
        memory.remember("the striped zebra")
        assert len(endpoint.asked) == 3, "the first request is tried three times"
        for _ in range(5):
            assert memory.remember("a tall giraffe").embedding_state == "pending"
            assert any("it is asked again in 2 s" in gap for gap in memory.recall("zebra").evidence_gaps) is False
        assert len(endpoint.asked) == 3
        counts = []
        for interval in (2, 4, 8, 16, 32, 64, 128, 256, 300, 300):
            clock.seconds += interval - 0.5
            memory.remember("too early")
            early = len(endpoint.asked)
            clock.seconds += 0.5
            memory.remember("in time")
            counts.append(len(endpoint.asked) - early)
            assert early == 3 + len(counts) - 1
        assert counts == [1] * 10, "each of these is tried once"
        (note,) = [note for note in memory.store.stats().notes if "503" in note]
        assert note.endswith("(it failed 11 times running, and it is asked again in 300 s)")
        assert memory.store.stats().mode == "keyword"
        endpoint.down = False
        clock.seconds += 300
        memory.remember("it is back")
        assert memory.store.stats().mode == "hybrid"
        assert not any("503" in note for note in memory.store.stats().notes)


def test_recall_says_why_meaning_was_not_searched_without_asking_again(endpoint):
    clock = Clock()
    with Memory(":memory:", embedder=RemoteEmbedder(endpoint.url, "words", clock=clock)) as memory:
        memory.remember("the striped zebra")
        endpoint.down = True
        memory.recall("a zebra")
        asked = len(endpoint.asked)
        hits = memory.recall("another zebra")
        assert len(endpoint.asked) == asked
        assert hits[0].text == "the striped zebra"
        (gap,) = [gap for gap in hits.evidence_gaps if "meaning" in gap]
        assert gap.endswith("(it is asked again in 2 s)")


def test_an_address_that_fails_at_the_start_is_not_asked_by_every_write_and_recall(endpoint, monkeypatch):
    clock = Clock()
    monkeypatch.setattr("recallite.remote.monotonic", clock)
    monkeypatch.setenv("EMBEDDING_PROVIDER", endpoint.url)
    monkeypatch.setenv("EMBEDDING_MODEL", "words")
    endpoint.down = True
    with Memory(":memory:") as memory:
        for number in range(4):
            memory.remember(f"note {number}")
            memory.recall(f"what is note {number}?")
        assert len(endpoint.asked) == 3
        assert any("503" in note for note in memory.store.stats().notes)
        endpoint.down = False
        clock.seconds += 2
        memory.remember("one more")
        assert memory.store.stats().pending == 0


def test_an_endpoint_that_asks_to_be_left_alone_is_left_alone_for_so_long(endpoint):
    clock = Clock()
    embedder = RemoteEmbedder(endpoint.url, "words", clock=clock)
    endpoint.script = [Answer({}, 429, {"Retry-After": "100"})]
    with pytest.raises(EmbedderError, match="429"):
        embedder.embed(["one"])
    clock.seconds += 99
    with pytest.raises(EmbedderError, match="asked again in 1 s"):
        embedder.embed(["one"])
    assert len(endpoint.asked) == 1
    clock.seconds += 1
    assert embedder.embed(["one"]).shape == (1, 16)


def test_one_of_many_threads_tries_an_endpoint_that_was_down(endpoint):
    clock = Clock()
    embedder = RemoteEmbedder(endpoint.url, "words", clock=clock)
    endpoint.down = True
    with pytest.raises(EmbedderError):
        embedder.embed(["one"])
    asked = len(endpoint.asked)
    clock.seconds += 2
    barrier = threading.Barrier(6)

    def ask(number):
        barrier.wait()
        with pytest.raises(EmbedderError):
            embedder.embed([f"word{number}"])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(6)))
    assert len(endpoint.asked) == asked + 1


def test_what_waits_is_embedded_after_reopening(endpoint, path):
    endpoint.down = True
    with Memory(path, embedder=RemoteEmbedder(endpoint.url, "words")) as memory:
        memory.remember("the striped zebra")
        assert "503" in memory.store.stats().notes[0]
    endpoint.down = False
    with Memory(path, embedder=RemoteEmbedder(endpoint.url, "words")) as memory:
        memory.remember("one more")
        assert memory.recall("striped zebra", mode="vector", limit=1)[0].text == "the striped zebra"


def test_a_query_asked_again_is_not_sent_again(endpoint):
    with Memory(":memory:", embedder=RemoteEmbedder(endpoint.url, "words")) as memory:
        memory.remember("the striped zebra")
        memory.recall("zebra?")
        sent = len(endpoint.asked)
        memory.recall("zebra?")
        assert len(endpoint.asked) == sent


def test_another_model_is_another_embedder(endpoint, path):
    with Memory(path, embedder=RemoteEmbedder(endpoint.url, "words")) as memory:
        memory.remember("the striped zebra")
    with Memory(path, embedder=RemoteEmbedder(endpoint.url, "other")) as memory:
        with pytest.raises(EmbedderMismatch, match=r"words.*this embedder is other"):
            memory.remember("a tall giraffe")
        assert memory.store.reembed() == 1
        memory.remember("a tall giraffe")


def test_embedding_provider_and_model_choose_the_embedder(endpoint, monkeypatch):
    monkeypatch.setenv("EMBEDDING_PROVIDER", "ollama")
    monkeypatch.setenv("EMBEDDING_MODEL", "words")
    monkeypatch.setenv("EMBEDDING_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Memory(":memory:") as memory:
        assert endpoint.asked == []
        memory.remember("the striped zebra")
        assert memory.recall("striped", mode="vector")
        assert (memory.store.stats().embedder, memory.store.stats().dimension) == ("words", 16)
    assert all("Authorization" not in asked.headers for asked in endpoint.asked), "OpenAI's key is not for others"


@pytest.mark.parametrize("name", ["EMBEDDING_API_KEY", "OPENAI_API_KEY"])
def test_the_key_of_openai(endpoint, monkeypatch, name):
    monkeypatch.setenv("EMBEDDING_PROVIDER", "OpenAI")
    monkeypatch.setenv("EMBEDDING_MODEL", "words")
    monkeypatch.setenv("EMBEDDING_BASE_URL", endpoint.url)
    monkeypatch.setenv(name, KEY + "\n")
    with Memory(":memory:") as memory:
        memory.remember("the striped zebra")
    assert {asked.headers["Authorization"] for asked in endpoint.asked} == {f"Bearer {KEY}"}


def test_a_base_url_is_a_provider(endpoint, monkeypatch):
    monkeypatch.setenv("EMBEDDING_PROVIDER", endpoint.url)
    monkeypatch.setenv("EMBEDDING_MODEL", "words")
    with Memory(":memory:") as memory:
        assert memory.remember("the striped zebra").embedding_state == "embedded"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"EMBEDDING_PROVIDER": "acme", "EMBEDDING_MODEL": "m"},
            "is 'acme': use one of openai, ollama",
        ),
        ({"EMBEDDING_PROVIDER": "ollama"}, "EMBEDDING_MODEL is not set"),
        ({"EMBEDDING_PROVIDER": "openai", "EMBEDDING_MODEL": "m"}, "set EMBEDDING_API_KEY or OPENAI_API_KEY"),
        ({"EMBEDDING_PROVIDER": "http://", "EMBEDDING_MODEL": "m"}, "base_url is 'http://'"),
    ],
)
def test_a_wrong_environment_is_an_error_when_the_memory_is_opened(monkeypatch, environment, message):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=message):
        Memory(":memory:")


def test_without_a_provider_the_local_model_serves_and_nothing_is_sent(endpoint, monkeypatch):
    monkeypatch.setenv("EMBEDDING_MODEL", "words")
    monkeypatch.setenv("EMBEDDING_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Memory(":memory:") as memory:
        memory.remember("the striped zebra")
        assert memory.store.stats().embedder == load().name
    assert endpoint.asked == []


def test_what_is_named_here_stands_before_the_environment(endpoint, monkeypatch):
    monkeypatch.setenv("EMBEDDING_PROVIDER", "acme")
    with Memory(":memory:", embedder="none") as memory:
        memory.remember("the striped zebra")
