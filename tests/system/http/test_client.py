"""The client: the methods of Memory, with the same results and errors, sync and async."""

from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests.raising import raises

pytest.importorskip("starlette", reason="the extra server is not installed")

from recallite import Filter, Memory, errors
from recallite.model.records import NewRecord
from recallite_server.client import AsyncClient, Client
from recallite_server.http.access_tokens import Tokens
from recallite_server.timeline import timeline, version_diffs
from tests.limits import LAST_RESORT_SECONDS
from tests.raising import raises
from tests.system.http.serving import serving


def test_every_operation_is_a_method(client, url):
    from recallite.doors.operations import served

    session = client.sessions.open("talk")
    for operation in served():
        for owner in (client, AsyncClient(url)):
            asks = {"session": session}.get(operation.name.partition(".")[0], owner)
            for part in operation.name.removeprefix("session.").split("."):
                asks = getattr(asks, part)
            assert callable(asks)
    assert {"recall", "sessions", "knowledge"} <= set(dir(client))
    assert "limit" in inspect.signature(client.list).parameters
    with pytest.raises(AttributeError, match="no attribute 'evaluate'"):
        _ = client.evaluate


def test_a_memory_and_its_client_say_the_same(client, on_disk):
    made = client.remember(
        "Ada likes green tea", tags=["drink"], metadata={"a": [1, None]}, importance=0.75, context="Ada",
        created_at=datetime(2026, 1, 2, tzinfo=UTC), expires_at=timedelta(days=400), id="tea", scope="/ada",
    )  # fmt: skip
    assert made == on_disk.get("tea").__class__(**{**_fields(on_disk.get("tea")), "outcome": "created"})
    assert client.get("tea") == on_disk.get("tea")
    ids = client.remember_many(
        ["one", {"text": "two", "pinned": True}, NewRecord(text="three", tags=("x",))], batch_size=2
    )
    assert [each.text for each in client.get([*ids, "none"]).values()] == ["one", "two", "three"]
    assert client.get(ids) == on_disk.get(ids)
    assert client.update(ids[0], text="one and a half", expires_at=None).text == "one and a half"
    assert client.history(ids[0]) == on_disk.history(ids[0])
    assert client.list(tags=["x"], order="updated") == on_disk.list(tags=["x"], order="updated")
    assert client.list(where={"importance": {"gte": 0.7}}, since="2026-01-01") == [on_disk.get("tea")]
    assert client.count() == on_disk.count() == 4
    assert client.scopes() == on_disk.scopes()
    assert client.tags() == on_disk.tags()
    client.link(ids[0], ids[1], type="sequential", strength=0.5)
    assert client.neighbors(ids[0]) == on_disk.neighbors(ids[0])
    assert client.neighbors(ids[1], direction="in") == on_disk.neighbors(ids[1], direction="in")
    assert client.neighbors(ids[0], depth=1)[0].record.id == ids[1]
    assert client.unlink(ids[0], ids[1]) == 1
    client.supersede(ids[1], ids[2], reason="newer")
    assert client.get(ids[1]).superseded_by == (ids[2],)
    assert (client.list(), client.list().left_out) == (on_disk.list(), 1)
    assert client.restore(ids[1]).superseded_by == ()
    assert client.update(["tea", "none"], renew=True) == 1
    hits, own = (memory.recall("green tea", purpose="explain") for memory in (client, on_disk))
    assert [(h.id, h.score, h.signals) for h in hits] == [(h.id, h.score, h.signals) for h in own]
    assert (hits.query, hits.evidence_gaps) == (own.query, own.evidence_gaps)
    later = {"since": "2999-01-01", "include_superseded": True}
    assert client.recall("tea", filter=later, profile={"name": "default", "hops": 0}) == []
    many = client.recall_many(["tea", "three"], limit=1)
    assert [[h.id for h in each] for each in many] == [["tea"], [ids[2]]]
    assert client.review.explain("tea", "tea") == on_disk.review.explain("tea", "tea")
    assert client.bootstrap(None, "make tea").text == on_disk.bootstrap(None, "make tea").text
    assert client.review.audit(["duplicates"]) == on_disk.review.audit(["duplicates"])
    assert client.store.stats().records == 4
    assert client.timeline("month") == timeline(on_disk, "month")
    assert client.diffs(ids[0]) == version_diffs(on_disk.history(ids[0], chain=False))
    assert client.store.purge_expired().records == 0
    assert client.forget([ids[0], "none"], missing_ok=True).records == 1
    assert client.forget(tags=["x"]).records == 1


def test_forgetting_says_what_holds_again_or_takes_it_along(client, on_disk, http):
    first, second = (client.remember(text).id for text in ("The shop is in the arcade", "It moved to the quay"))
    client.supersede(first, second)
    assert http.delete(f"/v1/memories/{second}").json()["holds_again"] == [first]
    third = client.remember("It closed for good").id
    client.supersede(first, third)
    assert http.delete(f"/v1/memories/{third}", params={"chain": "true"}).json()["records"] == 2
    assert on_disk.count(include_superseded=True) == 0


def _fields(record):
    return {name: getattr(record, name) for name in record.__struct_fields__}


def test_vectors_are_sent_and_read(path):
    from tests.unit.core.memory.support import WordEmbedder

    with Memory(path, embedder=WordEmbedder()) as memory, serving(memory) as url, Client(url) as client:
        id = client.remember("green tea").id
        theirs, ours = client.vectors([id])[id], memory.vectors([id])[id]
        np.testing.assert_array_equal(theirs, ours)
        other = client.remember("black tea", vector=ours).id
        np.testing.assert_array_equal(memory.vectors([other])[other], ours)
        assert client.recall("tea", vector=ours[0])[0].id in (id, other)
        assert len(client.recall_many(["tea", "tea"], vectors=[ours[0], ours[0]])) == 2


def test_sessions_and_documents(client, on_disk, tmp_path):
    session = client.sessions.open("talk", agent="ada", provider="x")
    assert session.append("user", "hello there") == 0
    session.extend([{"role": "assistant", "content": "hi"}, {"type": "call", "n": 1}])
    assert session.messages(limit=2) == on_disk.sessions.get("talk", agent="ada").messages(limit=2)
    assert session.pop() == {"type": "call", "n": 1}
    assert client.sessions.list(agent="ada") == on_disk.sessions.list(agent="ada")
    theirs, ours = client.sessions.search("hello")[0], on_disk.sessions.search("hello")[0]
    assert (theirs.content, theirs.position, theirs.created_at) == (ours.content, ours.position, ours.created_at)
    assert theirs.confidence == pytest.approx(ours.confidence)
    assert client.sessions.get("talk", agent="ada").clear() == 2
    assert session.pop() is None
    session.append("user", "bye")
    taken = session.end(snapshot=True, summary="done")
    assert (taken.summary, taken.messages) == ("done", ({"role": "user", "content": "bye"},))
    assert client.sessions.cleanup(timedelta(0)) == 0
    file = tmp_path / "notes.md"
    file.write_text("# Tea\n\nGreen tea is kept cold.")
    made = client.knowledge.ingest(file, metadata={"team": "a"})
    assert made.outcome == "created"
    assert client.knowledge.ingest(b"# Coffee\n\nHot.", name="coffee.md").id != made.id
    assert client.knowledge.search("cold tea", where={"metadata.team": "a"})[0].source.path == "notes.md"
    assert "Green tea" in client.knowledge.context("cold tea", 200)
    assert client.knowledge.list() == on_disk.knowledge.list()
    assert client.knowledge.get(made.id) == on_disk.knowledge.get(made.id)
    assert client.knowledge.delete(made.id).chunks == 1


def test_an_export_is_a_file_of_this_machine(client, on_disk, tmp_path):
    on_disk.remember("one", tags=["a"])
    on_disk.remember("two")
    client.transfer.export(tmp_path / "all.jsonl")
    client.transfer.export(tmp_path / "some.csv", tags=["a"])
    assert (tmp_path / "all.jsonl").read_text().count('"text"') == 2
    assert "two" not in (tmp_path / "some.csv").read_text()
    with pytest.raises(errors.InvalidInput, match="format is 'xml'"):
        client.transfer.export(tmp_path / "all.jsonl", format="xml")
    assert (tmp_path / "all.jsonl").read_text().count('"text"') == 2
    assert sorted(each.name for each in tmp_path.iterdir() if "agent" not in each.name) == ["all.jsonl", "some.csv"]
    on_disk.forget(scope="/")
    assert client.transfer.import_(tmp_path / "all.jsonl").records == 2


def test_errors_are_those_of_a_memory(client, on_disk, tmp_path):
    on_disk.remember("one", id="one")
    for call, kind, reason, says in (
        (lambda: client.get("none"), errors.NotFound, None, "none"),
        (lambda: client.remember("two", id="one"), errors.Conflict, "exists", "on_existing"),
        (lambda: client.remember(" "), errors.InvalidInput, "text", "text"),
        (lambda: client.recall("x", limit=0), errors.InvalidInput, "value", "limit"),
        (lambda: client.recall("x", limt=1), errors.InvalidInput, "value", "limt is no argument of recall: use limit"),
        (lambda: client.recall("x", filter=Filter(tags=["a"])), errors.InvalidInput, "value", "filter"),
        (lambda: client.recall("x", where={"kind": {"like": 1}}), errors.InvalidInput, "filter", "like"),
        (lambda: client.remember("x", metadata={"a": object()}), errors.InvalidInput, "value", "JSON"),
        (lambda: client.remember("\ud800"), errors.InvalidInput, "value", "JSON"),
        (lambda: client.remember_many(["a", {"text": 5}]), errors.InvalidItem, None, "item 1: text is int 5"),
        (lambda: client.remember_many("abc"), errors.InvalidInput, "value", "items"),
        (lambda: client.forget(), errors.InvalidInput, "value", "forget needs"),
        (lambda: client.get(5), errors.InvalidInput, "value", "id is 5"),
        (lambda: client.sessions.get("none"), errors.NotFound, None, "none"),
        (lambda: client.knowledge.ingest(b"x"), errors.InvalidInput, "value", "name"),
        (lambda: client.knowledge.ingest(tmp_path / "none.md"), errors.DocumentError, "unreadable", "none.md"),
        (lambda: client.scoped("a"), errors.InvalidInput, "filter", "scope"),
    ):
        with raises(kind, reason, match=says):
            call()
    assert [each.text for each in on_disk.list()] == ["one"]


def test_a_wrong_item_of_a_later_batch_is_told_by_its_place_in_the_stream(client, on_disk):
    with pytest.raises(errors.InvalidItem, match=r"item 3: text is int 5.*2 memories before it are stored") as refused:
        client.remember_many(["a", "b", "c", {"text": 5}, "d"], batch_size=2)
    assert (refused.value.position, refused.value.stored) == (3, 2)
    assert on_disk.count() == 2


def test_a_wrong_address_is_no_missing_memory(url):
    with Client(f"{url}/elsewhere") as client, pytest.raises(errors.ServerError, match="no operation"):
        client.get("x")


def test_an_export_leaves_other_files_alone(client, on_disk, tmp_path):
    (tmp_path / "all.jsonl.part").write_text("mine")
    on_disk.remember("one")
    client.transfer.export(tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl.part").read_text() == "mine"
    with pytest.raises(errors.InvalidInput, match="target"):
        client.transfer.export(tmp_path / "none" / "all.jsonl")


@pytest.mark.parametrize("token", ["", "a\nb", "ä", 5])
def test_a_token_that_is_none_is_refused(token):
    with pytest.raises(errors.InvalidInput, match="token"):
        Client("http://127.0.0.1:1", token=token)


def test_a_handle_is_confined(client, on_disk):
    handle = client.scoped("/users").scoped("/ada")
    id = handle.remember("tea", scope="/food").id
    assert on_disk.get(id).scope == "/users/ada/food"
    assert handle.get(id).scope == "/food"
    on_disk.remember("coffee", id="coffee")
    with pytest.raises(errors.NotFound):
        handle.get("coffee")
    handle.close()
    assert client.count() == 2
    assert "scope='/users/ada'" in repr(handle)


def test_tokens_of_a_client(on_disk):
    read = Tokens(on_disk).create(scope="/a", read_only=True).secret
    with serving(on_disk, tokens_required=True) as url:
        with Client(url) as client, pytest.raises(errors.AccessDenied, match="token"):
            client.count()
        with Client(url, token="rct_wrong") as client, pytest.raises(errors.AccessDenied, match="not known"):
            client.count()
        with Client(url, token=read) as client:
            assert client.count() == 0
            with pytest.raises(errors.AccessDenied, match="reading"):
                client.remember("x")
            assert read not in repr(client)


@pytest.mark.parametrize(
    "url", ["", "agent.db", "ftp://x", "http://", "http://user:secret@host", "http://host?token=x", 5, None]
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(errors.InvalidInput, match="url") as refused:
        Client(url)
    assert "secret" not in str(refused.value)


def test_a_server_that_is_not_there_is_told(unused_port):
    with Client(f"http://127.0.0.1:{unused_port}") as client:
        with raises(errors.ServerError, "unreachable", match="no answer") as read:
            client.count()
        with raises(errors.ServerError, "unreachable", match="may have been done") as written:
            client.remember("x")
    assert "may have been done" not in str(read.value)
    assert isinstance(written.value, errors.ServerError)
    with pytest.raises(errors.StoreClosed, match="closed"):
        client.count()


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_reading_is_tried_again_where_a_connection_breaks():
    """A server that closes the first connection without an answer."""
    import socket
    import threading

    asked = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            for body in (None, b"5", None):
                connection, _ = listener.accept()
                with connection:
                    asked.append(connection.recv(65_536).split(b"\r\n")[0])
                    if body is not None:
                        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n"
                        connection.sendall(head + body)

        thread = threading.Thread(target=answer)
        thread.start()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            assert client.count() == 5
            with raises(errors.ServerError, "unreachable", match="may have been done"):
                client.remember("x")
        thread.join(LAST_RESORT_SECONDS)
    assert asked == [b"GET /v1/count HTTP/1.1"] * 2 + [b"POST /v1/memories HTTP/1.1"]


@pytest.mark.parametrize(
    "status", ["301 Moved Permanently\r\nLocation: http://127.0.0.1:1/", "204 No Content", "200 OK"]
)
def test_what_is_no_answer_is_not_taken_for_one(tmp_path, status):
    """A server that answers with a redirect, with nothing, or with what is not JSON."""
    import socket
    import threading

    body = b"<html>7</html>"
    (tmp_path / "all.jsonl").write_text("mine")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    said = b"" if status.startswith("204") else body
                    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(said)}\r\nConnection: close\r\n\r\n"
                    connection.sendall(head.encode() + said)

        thread = threading.Thread(target=answer)
        thread.start()
        with Client(f"http://127.0.0.1:{listener.getsockname()[1]}") as client:
            with pytest.raises(errors.ServerError):
                client.count()
            if status.startswith("200"):
                with pytest.raises(errors.ServerError):
                    client.store.stats()
            else:
                with pytest.raises(errors.ServerError):
                    client.transfer.export(tmp_path / "all.jsonl")
        thread.join(LAST_RESORT_SECONDS)
    assert (tmp_path / "all.jsonl").read_text() == "mine"


def test_the_asynchronous_client(url):
    async def main():
        async with AsyncClient(url) as client:
            made = await client.remember("Ada likes green tea")
            assert (await client.recall("tea"))[0].id == made.id
            found = await asyncio.gather(*(client.recall("tea") for _ in range(20)))
            assert all(hits[0].id == made.id for hits in found)
            session = await client.sessions.open("s")
            await session.append("user", "hi")
            assert await session.messages() == [{"role": "user", "content": "hi"}]
            handle = client.scoped("/a")
            await handle.remember("x")
            assert await handle.count() == 1
            await client.knowledge.ingest(b"# Tea", name="tea.md")
            assert [each.source for each in await client.knowledge.list()] == ["tea.md"]
            with pytest.raises(errors.NotFound):
                await client.get("none")
        with pytest.raises(errors.StoreClosed):
            await client.count()

    asyncio.run(asyncio.wait_for(main(), LAST_RESORT_SECONDS))


def test_large_answers_come_whole(client, on_disk):
    on_disk.remember_many([f"{number} " + "word " * 500 for number in range(500)])
    assert len(client.list(limit=None)) == 500
