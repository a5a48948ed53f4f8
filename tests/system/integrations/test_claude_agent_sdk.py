"""Transcripts of the Claude Agent SDK are kept in a memory and resumed from it."""

from __future__ import annotations

import asyncio
import sys
import uuid

import pytest

from recallite import Memory
from recallite.errors import InvalidInput

sdk = pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed")

from claude_agent_sdk.testing import run_session_store_conformance  # noqa: E402

from recallite_connect.claude_agent_sdk import RecalliteSessionStore  # noqa: E402

KEY = {"project_key": "-home-ada-app", "session_id": "s1"}
SUB = {**KEY, "subpath": "subagents/agent-1"}
# What the SDK starts in place of Claude Code: it answers with what it was resumed from, and mirrors its transcript.
CLI = """#!{python}
import json, os, pathlib, sys
sys.argv[1:2] in (["-v"], ["--version"]) and sys.exit(print("2.9.9 (Claude Code)"))
def send(**message): print(json.dumps(message), flush=True)
folder = pathlib.Path(os.environ.get("CLAUDE_CONFIG_DIR", "{home}")) / "projects"
session = next((each.removeprefix("--resume=") for each in sys.argv if each.startswith("--resume=")), "{session}")
kept = [line for file in folder.rglob(session + ".jsonl") for line in file.read_text().splitlines()]
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "control_request":
        send(type="control_response", response=dict(subtype="success", request_id=message["request_id"], response={{}}))
    elif message["type"] == "user":
        entries = [
            dict(type="user", uuid=os.urandom(8).hex(), sessionId=session, message=message["message"],
                 timestamp="2026-01-01T00:00:00Z"),
            dict(type="assistant", uuid=os.urandom(8).hex(), sessionId=session, timestamp="2026-01-01T00:00:01Z",
                 message=dict(role="assistant", content=[dict(type="text", text="Noted.")])),
        ]
        send(type="transcript_mirror", filePath=str(folder / "{project}" / (session + ".jsonl")), entries=entries)
        said = [dict(type="text", text=f"resumed with {{len(kept)}} entries")]
        send(type="assistant", message=dict(role="assistant", model="claude", content=said), session_id=session)
        send(type="result", subtype="success", duration_ms=1, duration_api_ms=1, is_error=False, num_turns=1,
             session_id=session, total_cost_usd=0.0, usage={{}}, result="")
"""


def test_the_conformance_suite_of_the_sdk(tmp_path):
    paths = (tmp_path / f"{number}.db" for number in range(100))
    asyncio.run(run_session_store_conformance(lambda: RecalliteSessionStore(next(paths))))


def test_an_agent_is_resumed_from_the_memory(path, tmp_path, monkeypatch):
    project, session = tmp_path / "app", str(uuid.UUID(int=7, version=4))
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    cli = tmp_path / "claude"
    cli.write_text(
        CLI.format(
            python=sys.executable, home=tmp_path / "home" / ".claude", session=session,
            project=sdk.project_key_for_directory(project),
        )
    )  # fmt: skip
    cli.chmod(0o700)

    async def ask(store, prompt, **options):
        said = sdk.query(
            prompt=prompt, options=sdk.ClaudeAgentOptions(cli_path=cli, cwd=project, session_store=store, **options)
        )
        return [each.content[0].text async for each in said if isinstance(each, sdk.AssistantMessage)]

    with RecalliteSessionStore(path) as store:
        assert asyncio.run(ask(store, "Ada is on call for billing")) == ["resumed with 0 entries"]
    with RecalliteSessionStore(path) as store:  # another process
        assert asyncio.run(ask(store, "Who is on call?", resume=session)) == ["resumed with 2 entries"]
        listed = asyncio.run(sdk.list_sessions_from_store(store, directory=str(project)))
        assert [(each.session_id, each.first_prompt) for each in listed] == [(session, "Ada is on call for billing")]
        key = {"project_key": sdk.project_key_for_directory(project), "session_id": session}
        assert [each["type"] for each in asyncio.run(store.load(key))] == ["user", "assistant"] * 2
        (hit, *_) = store.memory.sessions.search("billing")
        assert (hit.content, hit.role) == ("Ada is on call for billing", "user")
        asyncio.run(sdk.delete_session_via_store(store, session, directory=str(project)))
        assert asyncio.run(sdk.list_sessions_from_store(store, directory=str(project))) == []
        assert store.memory.count() == 0


def entry(name, **fields):
    return {"type": "user", "uuid": name, **fields}


async def uuids(store, key=KEY):
    return [each.get("uuid") for each in await store.load(key) or []]


def test_an_entry_that_is_sent_again_is_stored_once(path):
    async def talk():
        with RecalliteSessionStore(path) as one, RecalliteSessionStore(path) as other:
            await one.append(KEY, [entry("a"), entry("b"), entry("a"), {"type": "tag", "tag": "x"}])
            await one.append(KEY, [entry("b"), entry("c"), {"type": "tag", "tag": "x"}])
            await other.append(KEY, [entry("c"), entry("d")])
            await one.append(KEY, [entry("d"), entry("e")])
            await one.append(KEY, [entry("e")])
            await one.append(SUB, [entry("a")])
            await one.delete(KEY)
            await one.append(KEY, [entry("z")])
            before = await uuids(one), await uuids(one, SUB)
            await one.append(KEY, [entry("a")])
            return before, await uuids(other)

    assert asyncio.run(talk()) == ((["z"], []), ["z", "a"])


def test_what_another_process_has_deleted_is_stored_when_it_is_sent_again(path):
    first, second = ([{"type": "user", "uuid": uuid}] for uuid in "ab")

    async def main(store, other):
        await store.append(KEY, first)
        await other.delete(KEY)
        await store.append(KEY, first)
        assert await uuids(other) == ["a"]
        await other.delete(KEY)
        await other.append(KEY, second)
        await store.append(KEY, [*second, *first])
        return await uuids(store)

    with RecalliteSessionStore(path) as store, RecalliteSessionStore(path) as other:
        assert asyncio.run(main(store, other)) == ["b", "a"]


def test_two_stores_that_append_at_once_lose_nothing(path):
    async def talk():
        with RecalliteSessionStore(path) as one, RecalliteSessionStore(path) as other:
            await asyncio.gather(
                *(store.append(KEY, [entry(f"{number}", customTitle=f"{number}")]) for number in range(20)
                  for store in (one, other))
            )  # fmt: skip
            return sorted(await uuids(one), key=int), await other.list_session_summaries(KEY["project_key"])

    names, (summary,) = asyncio.run(talk())
    assert names == [f"{number}" for number in range(20)]
    assert set(summary["data"]) == {"is_sidechain", "custom_title"}


def test_projects_and_scopes_are_kept_apart(path):
    async def talk(memory):
        stores = [RecalliteSessionStore(memory), RecalliteSessionStore(memory, scope="/users/bob")]
        keys = [{**KEY, "project_key": project} for project in ("a/b", "a", "..", "%2E")]
        for number, (store, key) in enumerate((store, key) for store in stores for key in keys):
            await store.append(key, [entry(f"{number}", customTitle=f"{number}")])
        found = [await uuids(store, key) for store in stores for key in keys]
        titles = [await store.list_session_summaries(key["project_key"]) for store in stores for key in keys]
        return found, [each["data"]["custom_title"] for (each,) in titles]

    with Memory(path) as memory:
        found, titles = asyncio.run(talk(memory))
        assert memory.recall("s1") == []
    assert found == [[f"{number}"] for number in range(8)]
    assert titles == [f"{number}" for number in range(8)]


def test_a_failed_append_stores_nothing(path):
    async def talk():
        with RecalliteSessionStore(path) as store:
            with pytest.raises(InvalidInput, match="an entry is 'x'"):
                await store.append(KEY, [entry("a"), "x"])
            assert await store.load(KEY) is None
            await store.append(KEY, [entry("a")])
            return await uuids(store)

    assert asyncio.run(talk()) == ["a"]


@pytest.mark.parametrize("key", [{}, {"project_key": "p"}, {"project_key": "p", "session_id": None}, "p/s"])
def test_a_wrong_key_is_named(key):
    with RecalliteSessionStore(":memory:") as store, pytest.raises(InvalidInput, match="key is"):
        asyncio.run(store.append(key, [entry("a")]))
