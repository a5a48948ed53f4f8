"""The Model Context Protocol at /mcp, by the SDK's client of both eras: for what the token allows."""

from __future__ import annotations

import asyncio
import socket

import pytest

pytest.importorskip("starlette", reason="the extra server is not installed")

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from recallite_server.http.access_tokens import Tokens
from tests.limits import LAST_RESORT_SECONDS
from tests.system.http.serving import serving


def calls(url, secret, *asked, mode="auto"):
    """The results of calls of tools, after the names of the tools that there are."""

    async def main():
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
        ):
            names = {tool.name for tool in (await client.list_tools()).tools}
            return [names, *[await client.call_tool(name, arguments) for name, arguments in asked]]

    return asyncio.run(asyncio.wait_for(main(), LAST_RESORT_SECONDS))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_tools_read_and_write_within_the_scope_of_the_token(on_disk, mode):
    on_disk.remember("Bob drives a van", scope="/bob")
    on_disk.remember("Tea is served at four", scope="/handbook")
    secret = Tokens(on_disk).create(scope="/ada", reads=["/handbook"]).secret
    with serving(on_disk, tokens_required=True) as url:
        names, written, found = calls(
            url,
            secret,
            ("remember", {"text": "Ada likes green tea"}),
            ("recall", {"query": "tea or van"}),
            mode=mode,
        )
    assert {"recall", "remember", "forget"} <= names
    assert not written.is_error
    assert {each["text"] for each in found.structured_content["results"]} == {
        "Ada likes green tea", "Tea is served at four",
    }  # fmt: skip
    assert [each.scope for each in on_disk.list(limit=1)] == ["/ada"]


def test_a_token_for_reading_has_the_tools_for_reading(on_disk):
    secret = Tokens(on_disk).create(read_only=True).secret
    with serving(on_disk, tokens_required=True) as url:
        names, found = calls(url, secret, ("recall", {"query": "tea"}))
        assert "recall" in names
        assert names.isdisjoint({"remember", "update", "forget", "ingest_document"})
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "forget", "arguments": {"id": "x"}},
        }
        headers = {"Authorization": f"Bearer {secret}", "Accept": "application/json, text/event-stream"}
        refused = httpx2.post(f"{url}/mcp", json=body, headers=headers, trust_env=False)
        assert "there is no tool 'forget'" in refused.text
        assert httpx2.post(f"{url}/mcp", json=body, trust_env=False).status_code == 401
    assert not found.is_error


def test_a_blank_after_the_name_of_a_tool_is_not_part_of_it(url):
    requests = []

    async def noted(request):
        requests.append((dict(request.headers), request.content))

    async def main():
        async with (
            httpx2.AsyncClient(trust_env=False, event_hooks={"request": [noted]}) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            await client.call_tool("list_memories", {})

    asyncio.run(asyncio.wait_for(main(), LAST_RESORT_SECONDS))
    headers, content = next(request for request in requests if request[0].get("mcp-name") == "list_memories")
    headers |= {"mcp-name": "list_memories \t", "connection": "close"}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=LAST_RESORT_SECONDS) as connection:
        connection.sendall(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + content)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")


def test_tokens_of_two_scopes_beside_each_other(on_disk):
    for name in ("ada", "bob"):
        on_disk.remember(f"the secret of {name}", scope=f"/{name}")
    secrets = {name: Tokens(on_disk).create(scope=f"/{name}").secret for name in ("ada", "bob")}

    async def ask(url, name):
        headers = {"Authorization": f"Bearer {secrets[name]}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            for _ in range(5):
                found = (await client.call_tool("recall", {"query": "the secret"})).structured_content["results"]
                assert [each["text"] for each in found] == [f"the secret of {name}"]

    async def main(url):
        await asyncio.gather(*(ask(url, name) for name in ("ada", "bob", "ada", "bob")))

    with serving(on_disk, tokens_required=True) as url:
        asyncio.run(asyncio.wait_for(main(url), LAST_RESORT_SECONDS))
