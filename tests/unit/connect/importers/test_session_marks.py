"""Readers of session files go on from a mark as if they had read all before it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recallite_connect.importers import claude_code, codex, copilot_cli, gemini_cli
from recallite_connect.importers.reading import FoundMemory
from tests.unit.connect.importers import test_copilot_cli, test_gemini_cli
from tests.unit.connect.importers.test_codex import FIRST, TURNS, meta


def of_claude_code(number, role, text, **more):
    return {
        "type": role, "uuid": f"u{number}", "sessionId": "s1", "cwd": "/home/ada/shop", "gitBranch": "main",
        "timestamp": f"2026-05-02T09:{number:02d}:00.000Z", "message": {"role": role, "content": text}, **more,
    }  # fmt: skip


def queued(operation, **more):
    return {"type": "queue-operation", "operation": operation, "timestamp": "2026-05-02T09:30:00.000Z", **more}


CLAUDE = [
    of_claude_code(1, "user", "Where is the till?"), of_claude_code(2, "assistant", "By the door."),
    queued("enqueue", content="And the safe?"), queued("remove"), of_claude_code(3, "assistant", "In the office."),
    of_claude_code(4, "assistant", [{"type": "tool_use", "id": "c", "name": "AskUserQuestion"}]),
    of_claude_code(5, "user", [{"type": "tool_result", "tool_use_id": "c"}], toolUseResult={"answers": {"Key?": "No"}}),
    of_claude_code(6, "user", "Good"), of_claude_code(7, "assistant", "Yes."),
]  # fmt: skip


def found(sessions):
    return [
        (each.record.id, each.record.text, each.record.position, each.record.scope, each.authority, each.line)
        for each in sessions.entries(growing=True) if isinstance(each, FoundMemory)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("opened", "name", "lines"),
    [
        (claude_code.sessions, "s1.jsonl", CLAUDE),
        (codex.sessions, f"rollout-2026-05-02T09-00-00-{FIRST}.jsonl", [meta(FIRST), *TURNS]),
        (copilot_cli.sessions, "events.jsonl", test_copilot_cli.EVENTS),
        (gemini_cli.sessions, "session-1.jsonl", test_gemini_cli.LINES),
        (gemini_cli.qwen_sessions, "q1.jsonl", test_gemini_cli.QWEN_LINES),
    ],
    ids=["claude-code", "codex", "copilot-cli", "gemini-cli", "qwen-code"],
)
def test_a_reader_goes_on_from_every_mark(tmp_path: Path, opened, name, lines):
    path = tmp_path / name
    encoded = [json.dumps(line) + "\n" for line in lines]
    path.write_text("".join(encoded))
    whole = found(opened(path))
    marks = 0
    for place in range(len(lines) + 1):
        path.write_text("".join(encoded[:place]))
        first = opened(path)
        before, mark = found(first), first.mark()
        with path.open("a") as file:
            file.write("".join(encoded[place:]))
        after = opened(path)
        if mark is not None:
            marks += 1
            assert not any(str(line["message"]["content"]) in json.dumps(mark) for line in CLAUDE if "message" in line)
            after.go_on(json.loads(json.dumps(mark)))
            assert [*before, *found(after)] == whole
        else:
            assert found(after) == whole
    assert marks >= len(lines) - 3


def test_a_file_that_differs_before_the_mark_is_read_from_its_beginning(tmp_path: Path):
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in CLAUDE[:2]))
    first = claude_code.sessions(path)
    found(first)
    mark = first.mark()
    assert mark is not None
    with path.open("r+") as file:  # the same file, with other words
        file.write(json.dumps(CLAUDE[0]).replace("till", "mill"))
    again = claude_code.sessions(path)
    again.go_on(mark)
    assert [text for _, text, *_ in found(again)] == ["Where is the mill?", "By the door."]
    path.write_text(json.dumps(CLAUDE[0]) + "\n")
    shorter = claude_code.sessions(path)
    shorter.go_on(mark)
    assert len(found(shorter)) == 1
