"""Models named by their provider: asked through litellm, each in its own protocol, of a server on this machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recallite import Memory, Workspace
from recallite.embedding import load
from recallite.errors import EmbedderError, InvalidInput, LanguageModelError
from recallite.model.environment import ROUTED, address_of, named_language_model
from recallite.remote import OpenAICompatible
from recallite_notes.config import EmbeddingConfig, FlushConfig, WorkspaceConfig
from recallite_server.main import main
from tests.endpoint import Answer, embeddings, said
from tests.raising import raises
from tests.unit.core.memory.support import WordEmbedder

KEY = "sk-very-secret-0123456789"
EMBEDDERS = {
    "cohere/embed-english-v3.0": ("/v2/embed", "/v2/embed"),
    "gemini/gemini-embedding-001": ("/v1beta", "/v1beta/models/gemini-embedding-001:batchEmbedContents"),
}
DIRECT = ("mistral/mistral-embed", "voyage/voyage-3", "jina_ai/jina-embeddings-v3")
CHATS = {"gemini/gemini-2.0-flash": ("/v1beta", "/v1beta/models/gemini-2.0-flash:generateContent")}
COHERE = "cohere/embed-english-v3.0"


@pytest.fixture
def litellm():
    return pytest.importorskip("litellm", reason="needs the extra providers")


def texts_of(asked):
    """The texts of a request, in whichever protocol."""
    if "requests" in asked.body:
        return [each["content"]["parts"][0]["text"] for each in asked.body["requests"]]
    return asked.body.get("texts") or asked.body["input"]


def served(asked):
    """An answer in the protocol of the request."""
    rows = WordEmbedder().embed(texts_of(asked)).tolist()
    if "requests" in asked.body:
        return Answer({"embeddings": [{"values": row} for row in rows]})
    if "texts" in asked.body:
        return Answer({"id": "1", "texts": asked.body["texts"], "embeddings": {"float": rows}, "meta": {}})
    data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(rows)]
    return Answer({"object": "list", "model": asked.body["model"], "data": data, "usage": {"total_tokens": 1}})


def chat(asked):
    """A completion in the protocol of the request."""
    if "contents" in asked.body:
        text = {"content": {"role": "model", "parts": [{"text": "- We use Valkey."}]}, "finishReason": "STOP"}
        return Answer({"candidates": [text], "usageMetadata": {"totalTokenCount": 2}})
    answer = said("- We use Valkey.", tokens=2)
    return answer._replace(body={"id": "1", "object": "chat.completion", "created": 1, "model": "m", **answer.body})


def base(server, path):
    return server.url.removesuffix("/v1") + path


@pytest.mark.parametrize("model", EMBEDDERS)
def test_an_embedder_by_name_speaks_its_providers_protocol(litellm, server, model):
    server.otherwise = served
    path, asked_path = EMBEDDERS[model]
    address = address_of(model, api_base=base(server, path), api_key=KEY)
    with Memory(":memory:", embedder=load(address)) as memory:
        ids = memory.remember_many(["the striped zebra", "a tall giraffe", "a grey elephant"])
        assert {memory.get(id).embedding_state for id in ids} == {"embedded"}
        assert memory.recall("striped zebra", mode="vector", limit=1)[0].id == ids[0]
        assert memory.store.stats().embedder == model
    assert {asked.path for asked in server.asked} == {asked_path}
    assert all(KEY in str(asked.headers) for asked in server.asked)
    assert texts_of(server.asked[1]) == ["the striped zebra", "a tall giraffe", "a grey elephant"]


@pytest.fixture
def no_router(monkeypatch):
    monkeypatch.setattr("recallite.model.environment.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "litellm", None)


@pytest.mark.parametrize("model", DIRECT)
def test_at_a_base_url_a_provider_that_speaks_openais_protocol_needs_no_router(no_router, server, model):
    server.otherwise = served
    with Memory(":memory:", embedder=load(address_of(model, api_base=server.url, api_key=KEY))) as memory:
        ids = memory.remember_many(["the striped zebra", "a tall giraffe", "a grey elephant"])
        assert memory.recall("striped zebra", mode="vector", limit=1)[0].id == ids[0]
        assert memory.store.stats().embedder == model.partition("/")[2]
    assert {(asked.path, asked.body["model"]) for asked in server.asked} == {
        ("/v1/embeddings", model.partition("/")[2])
    }
    assert all(asked.headers["Authorization"] == f"Bearer {KEY}" for asked in server.asked)


def test_the_key_is_read_from_the_providers_own_variable(no_router, server, monkeypatch, tmp_path):
    server.otherwise = served
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    config = WorkspaceConfig(embedding=EmbeddingConfig(model="voyage/voyage-3", api_base=server.url, batch_size=100))
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/a.md").write_text("the striped zebra")
    with Workspace(tmp_path, config) as workspace:
        assert workspace.index().embeddings_computed == 1
        assert workspace.search("striped zebra", strategy="vector", min_score=0.0)
        assert workspace.status().provider == "remote"
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"


def test_a_provider_that_fails_is_tried_again_and_then_left_alone(litellm, server):
    server.otherwise = served
    embedder = load(address_of(COHERE, api_base=base(server, "/v2/embed"), api_key=KEY))
    server.script = [Answer({"error": {"message": "busy"}}, 503), Answer({"error": {"message": "slow"}}, 429)]
    assert embedder.dimension == 16
    server.down = True
    with pytest.raises(EmbedderError, match=r"cohere/embed-english-v3.0 through litellm: .*loading"):
        embedder.embed(["one"])
    asked = len(server.asked)
    with pytest.raises(EmbedderError, match="asked again in"):
        embedder.embed(["one"])
    assert len(server.asked) == asked


def test_a_text_that_a_provider_refuses_is_isolated(litellm, server):
    def choosy(asked):
        if any("unspeakable" in text for text in texts_of(asked)):
            return Answer({"error": {"message": "too long"}}, 400)
        return served(asked)

    server.otherwise = choosy
    address = address_of(COHERE, api_base=base(server, "/v2/embed"), api_key=KEY)
    with Memory(":memory:", embedder=load(address)) as memory:
        memory.remember_many([f"note{n} {'unspeakable' if n == 5 else 'plain'}" for n in range(12)])
        assert (memory.store.stats().refused, memory.store.stats().pending) == (1, 0)


def test_no_key_is_told_at_once_and_the_key_is_never_shown(litellm, server, monkeypatch):
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    embedder = load(address_of("gemini/gemini-embedding-001", api_base=server.url))
    with pytest.raises(EmbedderError, match="GEMINI_API_KEY"):
        embedder.embed(["one"])
    assert server.asked == []
    server.otherwise = lambda asked: Answer({"error": {"message": f"bad key {KEY}"}}, 401)
    embedder = load(address_of(COHERE, api_base=base(server, "/v2/embed"), api_key=KEY))
    with pytest.raises(EmbedderError) as raised:
        embedder.embed(["one"])
    assert KEY not in str(raised.value)
    assert KEY not in repr(embedder)


def test_flush_by_a_model_at_a_base_url_needs_no_router(no_router, server, tmp_path):
    server.otherwise = chat
    config = WorkspaceConfig(flush=FlushConfig(model="mistral/mistral-small", api_base=server.url, api_key=KEY))
    with Workspace(tmp_path, config, embedder="none") as workspace:
        assert workspace.flush([{"role": "user", "content": "We use Valkey."}]) == "- We use Valkey."
    assert (server.asked[0].path, server.asked[0].body["model"]) == ("/v1/chat/completions", "mistral-small")
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("model", CHATS)
def test_flush_by_a_model_of_a_provider(litellm, server, tmp_path, model):
    server.otherwise = chat
    path, asked_path = CHATS[model]
    config = WorkspaceConfig(flush=FlushConfig(model=model, api_base=base(server, path), api_key=KEY))
    with Workspace(tmp_path, config, embedder="none") as workspace:
        assert workspace.flush([{"role": "user", "content": "We use Valkey."}]) == "- We use Valkey."
    assert server.asked[0].path == asked_path
    assert KEY in str(server.asked[0].headers)


def test_the_command_line_takes_the_same_names(no_router, server, tmp_path, monkeypatch, capsys):
    server.otherwise = served
    monkeypatch.setenv("EMBEDDING_PROVIDER", "voyage")
    monkeypatch.setenv("EMBEDDING_MODEL", "voyage-3")
    monkeypatch.setenv("EMBEDDING_BASE_URL", server.url)
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
    assert main(["--db", str(tmp_path / "a.db"), "remember", "the striped zebra"]) == 0
    assert server.asked[-1].body == {"model": "voyage-3", "input": ["the striped zebra"]}


def test_importing_the_router_looks_nothing_up_and_reads_no_file_of_settings(litellm, tmp_path):
    (tmp_path / ".env").write_text("RECALLITE_TEST_LEAK=1\n")
    program = """
import os, socket, sys
def refuse(*arguments, **named):
    raise SystemExit(f"a connection was opened: {arguments}")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from recallite.remote import _litellm
_litellm()
print(os.environ.get("RECALLITE_TEST_LEAK"), "litellm" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("None True\n", 0), ran.stderr


def test_every_provider_is_one_of_litellms(litellm):
    known = {str(getattr(each, "value", each)) for each in litellm.provider_list}
    assert set(ROUTED) <= known


def test_without_the_router_the_name_is_refused_at_once_and_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr("recallite.model.environment.find_spec", lambda name: None)
    for opened in (
        lambda: Memory(tmp_path / "a.db", embedder="voyage/voyage-3"),
        lambda: Workspace(tmp_path, WorkspaceConfig(embedding=EmbeddingConfig(model="voyage/voyage-3"))),
        lambda: load("cohere/embed-english-v3.0"),
    ):
        with raises(EmbedderError, "missing", match=r"pip install '\.\[providers\]'"):
            opened()
    with pytest.raises(LanguageModelError, match=r"'\.\[providers\]'"):
        Memory(tmp_path / "a.db", language_model="gemini/gemini-2.0-flash")
    assert not (tmp_path / "a.db").exists()


def test_openai_and_ollama_need_no_router(server, monkeypatch):
    monkeypatch.setattr("recallite.model.environment.find_spec", lambda name: None)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.otherwise = embeddings()
    embedder = load(address_of("ollama/nomic-embed-text", api_base=base(server, "")))
    assert embedder.dimension == 16
    assert (server.asked[0].path, server.asked[0].body["model"]) == ("/v1/embeddings", "nomic-embed-text")
    server.otherwise = lambda asked: said("yes")
    with Memory(":memory:", embedder="none", language_model="openai/gpt-4o-mini") as memory:
        assert memory._engine.language_model.complete([{"role": "user", "content": "?"}]) == "yes"
    assert server.asked[-1].body["model"] == "gpt-4o-mini"


def test_a_language_model_of_the_environment_may_have_its_provider_before_its_name(monkeypatch):
    monkeypatch.setenv("RECALLITE_LLM_MODEL", "ollama/llama3.2")
    assert repr(OpenAICompatible()) == "OpenAICompatible('http://localhost:11434/v1', 'llama3.2')"


@pytest.mark.parametrize(
    ("name", "message"),
    [("acme/large", "the provider .*acme/large.* is none of openai, ollama, anthropic"), ("gpt-4o", "there is no key")],
)
def test_a_language_model_that_is_not_known_is_refused(name, message):
    with pytest.raises(InvalidInput, match=message):
        named_language_model(name)
