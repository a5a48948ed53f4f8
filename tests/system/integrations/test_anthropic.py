"""Claude's memory files are kept in a workspace, and found by a search."""

from __future__ import annotations

import asyncio
import json
import stat

import pytest

from recallite import Workspace
from recallite_notes.config import WorkspaceConfig

anthropic = pytest.importorskip("anthropic", reason="anthropic is not installed")
httpx2 = pytest.importorskip("httpx2", reason="httpx2 is not installed")

from anthropic.lib.tools import ToolError  # noqa: E402

from recallite_connect.anthropic import AsyncMemoryTool, MemoryTool  # noqa: E402

NOTES = {"command": "create", "path": "/memories/team.md", "file_text": "# Team\n\nAda is on call for billing.\n"}
STEPS = [
    ("memory", NOTES),
    ("memory", {"command": "str_replace", "path": "/memories/team.md", "old_str": "Ada", "new_str": "Bob"}),
    ("memory", {"command": "view", "path": "/memories/../../etc/passwd"}),
    ("memory_search", {"query": "Who is on call?"}),
]
RESULTS = [
    (False, "File created successfully at: /memories/team.md"),
    (False, "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            "     1\t# Team\n     2\t\n     3\tBob is on call for billing.\n     4\t"),
    (True, "Path /memories/../../etc/passwd would escape /memories directory"),
    (False, "/memories/team.md, line 1:\n# Team\n\nBob is on call for billing."),
]  # fmt: skip


class Claude:
    """The service, which calls one tool after another."""

    def __init__(self, steps):
        self.steps, self.results = list(steps), []

    def answer(self, request):
        last = json.loads(request.content)["messages"][-1]["content"]
        if isinstance(last, list):
            self.results += [(each.get("is_error", False), each["content"]) for each in last]
        content, why = [{"type": "text", "text": "Done."}], "end_turn"
        if self.steps:
            name, given = self.steps.pop(0)
            content = [{"type": "tool_use", "id": f"toolu_{len(self.steps)}", "name": name, "input": given}]
            why = "tool_use"
        body = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": content,
            "stop_reason": why, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        return httpx2.Response(200, json=body)

    async def answer_later(self, request):
        return self.answer(request)


def request_of(tool):
    return {
        "model": "claude", "max_tokens": 100, "messages": [{"role": "user", "content": "Keep notes."}],
        "tools": [tool, tool.search_tool()], "betas": ["context-management-2025-06-27"],
    }  # fmt: skip


def test_a_model_writes_files_and_searches_them(tmp_path):
    claude = Claude(STEPS)
    http = httpx2.Client(transport=httpx2.MockTransport(claude.answer))
    with anthropic.Anthropic(api_key="none", http_client=http) as client, MemoryTool(tmp_path) as tool:
        last = client.beta.messages.tool_runner(**request_of(tool)).until_done()
    assert last.content[0].text == "Done."
    assert claude.results == RESULTS


def test_an_asynchronous_model_writes_files_and_searches_them(tmp_path):
    claude = Claude(STEPS)

    async def talk():
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(claude.answer_later))
        async with (
            anthropic.AsyncAnthropic(api_key="none", http_client=http) as client,
            AsyncMemoryTool(tmp_path) as tool,
        ):
            await client.beta.messages.tool_runner(**request_of(tool)).until_done()

    asyncio.run(talk())
    assert claude.results == RESULTS


def test_another_tool_on_the_folder_finds_what_was_written(tmp_path):
    with MemoryTool(tmp_path) as tool:
        tool.call(NOTES)
        assert [hit.path for hit in tool.workspace.search("Who is on call?")] == ["team.md"]
    with MemoryTool(tmp_path) as tool:
        tool.call({"command": "rename", "old_path": "/memories/team.md", "new_path": "/memories/people/oncall.md"})
        assert [hit.path for hit in tool.workspace.search("Who is on call?")] == ["people/oncall.md"]
        tool.call({"command": "delete", "path": "/memories/people"})
        assert tool.search_tool().call({"query": "Who is on call?"}) == "No passage answers the query."
    assert stat.S_IMODE((tmp_path / "memories").stat().st_mode) == 0o700


def test_a_workspace_of_the_callers_own_stays_open_and_its_index_is_refused(tmp_path):
    with Workspace(tmp_path / "notes") as workspace:
        tool = MemoryTool(workspace, cache_control={"type": "ephemeral"})
        assert tool.to_dict() == {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
        tool.call(NOTES)
        tool.close()
        assert [hit.path for hit in workspace.search("Who is on call?")] == ["team.md"]
        for command in (
            {"command": "view", "path": "/memories/.recallite"},
            {"command": "delete", "path": "/memories/x/../.recallite/index.db"},
            {"command": "rename", "old_path": "/memories/.recallite", "new_path": "/memories/a"},
            {"command": "rename", "old_path": "/memories/team.md", "new_path": "/memories/.recallite/team.md"},
        ):
            with pytest.raises(ToolError, match="is where the index of the memory files is"):
                tool.call(command)
            with pytest.raises(ToolError, match="is where the index of the memory files is"):
                asyncio.run(AsyncMemoryTool(workspace).call(command))
        assert ".recallite" not in tool.call({"command": "view", "path": "/memories"})


def test_a_folder_around_the_index_is_not_deleted_or_renamed(tmp_path):
    notes = tmp_path / "notes"
    config = WorkspaceConfig(workspace_dir=str(notes), db_path=str(notes / ".cache" / "index" / "index.db"))
    with Workspace(config) as workspace:
        tool = MemoryTool(workspace)
        tool.call(NOTES)
        workspace.index()
        for command in (
            {"command": "delete", "path": "/memories/.cache"},
            {"command": "rename", "old_path": "/memories/.cache", "new_path": "/memories/a"},
        ):
            with pytest.raises(ToolError, match="is where the index of the memory files is"):
                tool.call(command)
        (notes / ".cache" / "left.md").write_text("x", "utf-8")
        tool.clear_all_memory()
        assert sorted(each.name for each in notes.rglob("*") if each.suffix in (".md", ".db")) == ["index.db"]


def test_an_index_beside_the_files_is_refused_and_kept(tmp_path):
    notes = tmp_path / "notes"
    with Workspace(WorkspaceConfig(workspace_dir=str(notes), db_path=str(notes / "index.db"))) as workspace:
        tool = MemoryTool(workspace)
        tool.call(NOTES)
        workspace.index()
        for path in ("/memories/index.db", "/memories/index.db-wal"):
            with pytest.raises(ToolError, match="is where the index of the memory files is"):
                tool.call({"command": "delete", "path": path})
        tool.clear_all_memory()
        tool.call(NOTES)
        assert [hit.path for hit in workspace.search("Who is on call?")] == ["team.md"]


def test_clearing_deletes_every_file_and_keeps_the_workspace_usable(tmp_path):
    with Workspace(tmp_path / "notes") as workspace:
        tool = MemoryTool(workspace)
        tool.call(NOTES)
        tool.call({"command": "create", "path": "/memories/old/a.txt", "file_text": "x"})
        assert tool.clear_all_memory() == "All memory cleared"
        assert workspace.files() == []
        assert [each.name for each in workspace.folder.iterdir()] == [".recallite"]
        tool.call(NOTES)
        assert asyncio.run(AsyncMemoryTool(workspace).clear_all_memory()) == "All memory cleared"
        assert workspace.files() == []


def test_a_search_that_is_too_long_is_an_error_of_the_tool(tmp_path):
    with MemoryTool(tmp_path) as tool, pytest.raises(ToolError, match="100,001 characters"):
        tool.search_tool().call({"query": "a" * 100_001})
