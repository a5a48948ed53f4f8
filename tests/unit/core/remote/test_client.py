"""The client of chat completions against a real server: what it sends, what it survives, what it says when it fails."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import stamina

from recallite import Memory, Settings, remote
from recallite.errors import InvalidInput, LanguageModelError
from recallite.remote import OpenAICompatible
from tests.endpoint import Answer, said
from tests.limits import LAST_RESORT_SECONDS, until

KEY = "sk-very-secret-0123456789"
ASK = [{"role": "user", "content": "What is it?"}]
SCHEMA = {"type": "object", "properties": {"parts": {"type": "array"}}, "required": ["parts"]}


@pytest.fixture
def model(server):
    return OpenAICompatible(server.url, "tiny", api_key=KEY, timeout_seconds=LAST_RESORT_SECONDS)


def bodies(server):
    return [asked.body for asked in server.asked]


def test_success(server, model):
    server.script = [said("  a memory  ")]
    assert model.complete(ASK, max_tokens=50) == "a memory"
    (asked,) = server.asked
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["Authorization"] == f"Bearer {KEY}"
    assert asked.body == {"model": "tiny", "messages": ASK, "max_tokens": 50}


def test_without_a_key_none_is_sent(server):
    OpenAICompatible(server.url + "/", "tiny", temperature=0.0).complete(ASK)
    assert "Authorization" not in server.asked[0].headers
    assert server.asked[0].body["temperature"] == 0.0


def test_too_many_requests_then_success(server, model):
    server.script = [Answer({"error": "slow down"}, 429, {"Retry-After": "7"}), said("now")]
    assert model.complete(ASK) == "now"
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        (lambda: "0.015625", 0.015625),
        (lambda: "0", 0.0),
        (lambda: format_datetime(datetime.now(UTC) - timedelta(hours=1), usegmt=True), 0.0),
    ],
)
def test_the_pause_that_the_endpoint_asks_for_is_kept(server, model, header, wait):
    waits = []
    stamina.instrumentation.set_on_retry_hooks([lambda details: waits.append(details.wait_for)])
    server.script = [Answer({}, 429, {"Retry-After": header()}), said("now")]
    try:
        with stamina.set_testing(False):
            assert model.complete(ASK) == "now"
    finally:
        stamina.instrumentation.set_on_retry_hooks(None)
    assert waits == [wait]


@pytest.mark.parametrize("header", ["3600", "inf", "1e300"])
def test_a_pause_beyond_the_longest_is_not_waited_for(server, model, header):
    server.script = [Answer({"error": "quota"}, 429, {"Retry-After": header})]
    with pytest.raises(LanguageModelError, match="longer than 30 s"):
        model.complete(ASK)
    assert len(server.asked) == 1


@pytest.mark.parametrize("header", ["soon", "nan", ""])
def test_a_pause_that_says_nothing_is_our_own(server, model, header):
    server.script = [Answer({}, 503, {"Retry-After": header}), said("now")]
    assert model.complete(ASK) == "now"


def test_server_error_then_success(server, model):
    server.script = [Answer(b"oops", 500), Answer(b"bad gateway", 502), said("now")]
    assert model.complete(ASK) == "now"


def test_an_endpoint_that_stays_down_is_tried_thrice_then_once_a_call(server, model):
    server.down = True
    with pytest.raises(LanguageModelError, match=r"tiny: http://.*answered 503: 'the model is loading'"):
        model.complete(ASK)
    assert len(server.asked) == 3
    with pytest.raises(LanguageModelError):
        model.complete(ASK)
    assert len(server.asked) == 4
    server.down = False
    assert model.complete(ASK) == "yes"
    server.down = True
    with pytest.raises(LanguageModelError):
        model.complete(ASK)
    assert len(server.asked) == 8


def test_timeout(server):
    server.otherwise = lambda asked: Answer(hang=True)
    with pytest.raises(LanguageModelError, match=r"gave no answer within 0\.05 s"):
        OpenAICompatible(server.url, "tiny", timeout_seconds=0.05).complete(ASK)
    until(lambda: len(server.asked) == 3)


def test_an_answer_that_never_ends_is_a_timeout(server):
    server.otherwise = lambda asked: Answer(b"x" * 100, endless=True)
    with pytest.raises(LanguageModelError, match=r"gave no answer within 0\.05 s"):
        OpenAICompatible(server.url, "tiny", timeout_seconds=0.05).complete(ASK)


def test_an_answer_that_is_too_large_is_not_read_to_its_end(server, model, monkeypatch):
    monkeypatch.setattr(remote, "MOST_BYTES", 100_000)
    server.otherwise = lambda asked: Answer(b"x" * 10_000, endless=True)
    with pytest.raises(LanguageModelError, match="answered more than 100,000 bytes"):
        model.complete(ASK)
    assert len(server.asked) == 1


def test_connection_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(LanguageModelError, match=r"could not be reached \(ConnectError.*is it running"):
            OpenAICompatible(url, "tiny").complete(ASK)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(b"<html><h1>Welcome</h1></html>", headers={"Content-Type": "text/html"}), "text/html.*ends in /v1"),
        (Answer(b"\xff\xfe\x00"), "instead of a JSON object"),
        (Answer(b""), "instead of a JSON object"),
        (Answer(b"[" * 100_000), "instead of a JSON object"),
        (Answer([1, 2]), "instead of a JSON object"),
        (Answer({"error": {"message": "no such model"}}), "no chat completion"),
        (Answer({"choices": [{"message": {"content": 7}}]}), "no chat completion"),
        (Answer({"choices": []}), "without a choice"),
        (said(None), "empty answer"),
        (said(" \n"), "empty answer"),
        (said("<think>hm</think>"), "empty answer"),
        (said("half an ans", finish="length"), "cut off.*raise max_tokens"),
        (said(None, finish="content_filter"), "refused to answer"),
        (Answer({"error": {"message": "bad key"}}, 401), "401: 'bad key': the key is missing or not valid"),
        (Answer({"message": "unknown"}, 404), "404: 'unknown': is the base URL right .* is tiny served there"),
        (Answer({"detail": "too long"}, 413), "413: 'too long'"),
        (Answer(b"moved", 307, {"Location": "http://127.0.0.1:9/"}), "redirects are not followed"),
    ],
)
def test_an_answer_that_cannot_be_used_says_why(server, model, answer, message):
    server.script = [answer]
    with pytest.raises(LanguageModelError, match=message):
        model.complete(ASK)
    assert len(server.asked) == 1


def test_a_schema_is_sent(server, model):
    server.script = [said('{"parts": []}')]
    assert model.complete(ASK, schema=SCHEMA) == '{"parts": []}'
    sent = server.asked[0].body["response_format"]
    assert sent == {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True}}
    assert server.asked[0].body["messages"] == ASK


@pytest.mark.parametrize("status", [400, 422])
def test_a_server_that_refuses_schemas_is_asked_in_words_and_only_once_refuses(server, model, status):
    server.script = [Answer({"error": "response_format is not supported"}, status), said("{}"), said("[1]")]
    assert model.complete(ASK, schema=SCHEMA) == "{}"
    assert model.complete(ASK, schema=SCHEMA) == "[1]"
    assert ["response_format" in body for body in bodies(server)] == [True, False, False]
    first, second = server.asked[1].body["messages"]
    assert first["role"] == "system"
    assert json.dumps(SCHEMA).replace(" ", "") in first["content"]
    assert second == ASK[0]


def test_another_reason_to_refuse_does_not_cost_later_questions_their_schema(server, model):
    too_long = Answer({"error": "context length exceeded"}, 400)
    server.script = [too_long, too_long, said("{}")]
    with pytest.raises(LanguageModelError, match="context length exceeded"):
        model.complete(ASK, schema=SCHEMA)
    assert model.complete(ASK, schema=SCHEMA) == "{}"
    assert "response_format" in server.asked[2].body


def test_max_tokens_under_its_other_name(server, model):
    refusal = Answer({"error": {"message": "Unsupported parameter 'max_tokens': use 'max_completion_tokens'"}}, 400)
    server.script = [refusal, said("{}"), said("{}")]
    for _ in range(2):
        model.complete(ASK, schema=SCHEMA, max_tokens=9)
    assert ["max_completion_tokens" in body for body in bodies(server)] == [False, True, True]
    assert all("response_format" in body for body in bodies(server))


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"parts": [1]}\n```',
        'Here it is:\n```\n{"parts": [1]}\n```\nAnything else?',
        '<think>the user wants ```\nJSON\n```</think>\n{"parts": [1]}',
    ],
)
def test_json_is_taken_out_of_its_fence(server, model, text):
    server.script = [said(text)]
    assert json.loads(model.complete(ASK, schema=SCHEMA)) == {"parts": [1]}


def test_a_fence_stays_where_no_schema_was_given(server, model):
    server.script = [said("```\ncode\n```")]
    assert model.complete(ASK) == "```\ncode\n```"


@pytest.mark.parametrize("text", ["I cannot", "{'parts': 1}", '{"parts": [', "```json\n{\n```"])
def test_what_is_no_json_is_an_error_where_a_schema_was_given(server, model, text):
    server.script = [said(text)]
    with pytest.raises(LanguageModelError, match="which is no JSON"):
        model.complete(ASK, schema=SCHEMA)


def test_a_budget_of_calls_counts_every_attempt(server):
    model = OpenAICompatible(server.url, "tiny", most_calls=3)
    server.script = [Answer({}, 500), said("one"), said("two")]
    assert [model.complete(ASK), model.complete(ASK)] == ["one", "two"]
    with pytest.raises(LanguageModelError, match=r"budget of 3 calls is spent \(3 used\): wait, or raise most_calls"):
        model.complete(ASK)
    assert len(server.asked) == 3


def test_a_budget_of_tokens(server):
    model = OpenAICompatible(server.url, "tiny", most_tokens=100)
    server.script = [said("one", tokens=60), said("two", tokens=60)]
    assert [model.complete(ASK), model.complete(ASK)] == ["one", "two"]
    with pytest.raises(LanguageModelError, match="budget of 100 tokens is spent"):
        model.complete(ASK)


def test_tokens_are_estimated_where_the_endpoint_does_not_count_them(server):
    model = OpenAICompatible(server.url, "tiny", most_tokens=20)
    server.script = [said("x" * 80)]
    model.complete(ASK)
    with pytest.raises(LanguageModelError, match="budget of 20 tokens is spent"):
        model.complete(ASK)


def test_a_budget_of_a_span_begins_anew(server, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(remote.time, "monotonic", lambda: clock[0])
    budget = remote.Budget(most_calls=1, per_seconds=60)
    budget.take_call()
    clock[0] = 159.9
    with pytest.raises(LanguageModelError, match="1 calls in 60 s is spent"):
        budget.take_call()
    clock[0] = 160.0
    budget.take_call()


def test_a_budget_holds_for_many_threads(server):
    model = OpenAICompatible(server.url, "tiny", most_calls=10)
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(model.complete, ASK) for _ in range(30)]
    assert sum(answer.exception() is None for answer in answers) == 10
    assert len(server.asked) == 10


def test_many_threads_get_their_own_answers(server, model):
    server.otherwise = lambda asked: said(asked.body["messages"][0]["content"])
    texts = [f"question {number}" for number in range(40)]
    barrier = threading.Barrier(8)

    def ask(text):
        return model.complete([{"role": "user", "content": text}])

    with ThreadPoolExecutor(8, initializer=barrier.wait) as pool:
        assert list(pool.map(ask, texts)) == texts


@pytest.mark.parametrize(
    "answer",
    [
        Answer({"error": {"message": f"Incorrect API key provided: {KEY}"}}, 401),
        Answer(f"<p>{KEY}</p>".encode()),
        Answer({"echo": KEY}),
        Answer({"error": KEY}, 500, {"Retry-After": "9999"}),
        said(f"not JSON: {KEY}"),
    ],
)
def test_the_key_is_in_no_error_and_no_repr(server, model, answer):
    server.script = [answer]
    with pytest.raises(LanguageModelError) as raised:
        model.complete(ASK, schema=SCHEMA)
    assert KEY not in str(raised.value) + repr(raised.value) + repr(model) + repr(vars(model))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"base_url": "localhost:11434"}, "base_url is 'localhost:11434': give one such as"),
        ({"base_url": "ftp://host/v1"}, "base_url is"),
        ({"base_url": "http://[broken"}, "no URL"),
        ({"base_url": "http://host:port/v1"}, "no URL"),
        ({"base_url": f"http://user:{KEY}@host/v1"}, "give the key as api_key"),
        ({"base_url": f"http://host/v1?key={KEY}"}, "give the key as api_key"),
        ({"base_url": 7}, "base_url is 7"),
        ({"model": "a\nb"}, "model"),
        ({"model": None}, "RECALLITE_LLM_MODEL is not set"),
        ({"base_url": None}, "RECALLITE_LLM_BASE_URL is not set"),
        ({"base_url": None, "model": None}, "no language model is named"),
        ({"api_key": f"{KEY}\n{KEY}"}, "api_key is blank or holds"),
        ({"api_key": f"{KEY}é"}, "api_key is blank or holds"),
        ({"timeout_seconds": 0}, "timeout_seconds is 0"),
        ({"attempts": 0}, "attempts is 0"),
        ({"longest_wait_seconds": -1}, "longest_wait_seconds is -1"),
        ({"most_calls": -1}, "most_calls is -1"),
        ({"most_tokens": 1.5}, "most_tokens is 1.5"),
        ({"per_seconds": 0}, "per_seconds"),
        ({"temperature": float("nan")}, "temperature"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message):
    with pytest.raises(InvalidInput, match=message) as raised:
        OpenAICompatible(**{"base_url": "http://127.0.0.1:9/v1", "model": "tiny", **arguments})
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "messages", [[], "hello", None, [{"role": "user"}], ["hello"], [{"role": "user", "content": 7}]]
)
def test_wrong_messages_are_refused_unsent(server, model, messages):
    with pytest.raises(InvalidInput, match="messages"):
        model.complete(messages)
    assert server.asked == []


def test_what_json_cannot_say_is_refused_unsent(server, model):
    with pytest.raises(InvalidInput, match="the request cannot be written as JSON"):
        model.complete([{"role": "user", "content": "\ud800"}])
    assert server.asked == []


def test_any_other_text_arrives(server, model):
    text = 'NUL \x00, quotes ", 日本語, \U0001f9e0, \u2028'
    model.complete([{"role": "user", "content": text}])
    assert server.asked[0].body["messages"][0]["content"] == text


def test_the_environment_names_the_model_of_a_memory(server, monkeypatch):
    monkeypatch.setenv("RECALLITE_LLM_BASE_URL", server.url)
    monkeypatch.setenv("RECALLITE_LLM_MODEL", "tiny")
    monkeypatch.setenv("RECALLITE_LLM_API_KEY", KEY)
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        memory.remember("no model is needed for this")
        memory.recall("this")
        assert server.asked == []
        assert memory._engine.language_model.complete(ASK) == "yes"
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"


def test_half_an_environment_is_an_error_that_names_the_other_half(monkeypatch):
    monkeypatch.setenv("RECALLITE_LLM_MODEL", "tiny")
    with pytest.raises(InvalidInput, match="RECALLITE_LLM_BASE_URL is not set"):
        Memory(":memory:", settings=Settings(embedder="none"))
