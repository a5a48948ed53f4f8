"""The session files of Claude Code: ~/.claude/projects/PROJECT/SESSION.jsonl.

What the user typed and what Claude said are memories. The lines have calls of tools and their results, thoughts, what
Claude Code itself tells the model, and the conversations of subagents as well.

Lines of the user are written for messages of other sessions, notices and output of commands too. Since version 2.1.200
or so, `origin.kind` says "human" of what a person sent ("peer", "task-notification", "channel", "coordinator" and
others of the rest), and `promptSource` how it came ("typed", "queued", "suggestion_accepted", "sdk", "system"). Older
lines have neither: there a prompt without any frame (frames.py) counts as the user's. A prompt that was typed during a
turn is an attachment `queued_command`; before version 2.1.101 it stood only in lines `queue-operation`.

What a person chose or typed in a dialog stands in the result of a tool: the answers to AskUserQuestion, which Claude
Code runs itself, and why a call was not allowed. Since version 2.1.205 `toolDenialKind` says that a person did not
allow it; before, any tool could have written that.

The format is not documented; read here as in https://github.com/simonw/claude-code-transcripts and
https://github.com/daaain/claude-code-log (dev-docs: messages), and in the code of version 2.1.332, which takes a line
for a person's only if its origin is human, it has no result of a tool, and none of `_UNTYPED` is set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from recallite.model.authority import Authority
from recallite_connect.frames import typed
from recallite_connect.importers.reading import (
    Entry,
    FoundMemory,
    LeftOut,
    labels,
    mapping,
    text_of,
    time_of,
)
from recallite_connect.importers.sources import SessionReader, Sessions, Source, blocks_of, project_name

_FILES = re.compile(r"\.jsonl$")
_HIDDEN = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage", "isVirtual", "turnCompanion")
# Of a line whose origin is human all the same.
_UNTYPED = (
    "textNotTyped", "handedOff", "queueSkipAttachments", "queueTranscriptOnly", "verifiedSlackHumanTurn",
    "projectsUserTurn", "emailSenderTurn",
)  # fmt: skip
_TYPED_SOURCES = (None, "typed", "queued", "suggestion_accepted")
# What a prompt that stands in the queue's lines alone has from the line before it.
_KEPT = ("sessionId", "cwd", "gitBranch")
_BLOCKS = {
    "tool_use": "calls and results of tools", "tool_result": "calls and results of tools",
    "server_tool_use": "calls and results of tools", "thinking": "thoughts of a model",
    "redacted_thinking": "thoughts of a model", "image": "images and files", "document": "images and files",
}  # fmt: skip
_REFUSED = re.compile(
    r"(?:The user doesn't want to proceed with this tool use|Permission for this tool use was denied)\..*?"
    r"(?:[Tt]he user said:\n|reason for the rejection:)\s*(?!The user wants to clarify these questions)(.+?)"
    r"(?:\n\nNote: The user's next message may contain .*)?",
    re.DOTALL,
)


def sessions(path: Path) -> Sessions:
    """The session files of a folder, or one."""
    return Sessions(path, _FILES, _Session)


class _Queued(NamedTuple):
    """A prompt in the queue: its text, the line that took it out, and the time it was put in.

    If it was taken out to begin a turn, a line of the user follows, in which it may be joined with others.
    """

    text: str
    line: int
    at: datetime
    begins: bool = False


class _Session(SessionReader):
    """One file: the turns that were taken so far, and the prompts that were put into the queue or taken from it."""

    host, kept = "claude-code", ("last",)

    def __init__(self, name: str, changed_at: datetime) -> None:
        super().__init__(name, changed_at)
        self._folder = name.rpartition("/")[0].partition("/")[0]
        self._waiting: list[_Queued] = []
        self._sent: list[_Queued] = []
        self._asked: set[object] = set()  # calls of AskUserQuestion without an answer
        self._last: dict[str, str] = {}

    def line(self, number: int, line: dict[str, Any]) -> Iterator[Entry]:
        """The turn of a line, and what it has besides."""
        kind, message, sender_fields = line.get("type"), mapping(line.get("message")), line
        if kind == "queue-operation":
            self._queue(number, line)
            return
        if kind == "attachment":
            queued = mapping(line.get("attachment"))
            if queued.get("type") != "queued_command" or queued.get("commandMode") not in ("prompt", None):
                return
            kind, message, sender_fields = "user", {"content": queued.get("prompt")}, {**line, **queued}
        if kind not in ("user", "assistant"):
            return  # titles, snapshots of files, progress
        if line.get("isSidechain"):
            yield LeftOut("messages of subagents")
            return
        if any(sender_fields.get(flag) for flag in _HIDDEN):
            yield LeftOut("hidden messages")
            return
        blocks = blocks_of(message.get("content"))
        for block in blocks:
            if (what := _BLOCKS.get(text_of(block.get("type")))) is not None:
                yield LeftOut(what)
        texts = [text for block in blocks if block.get("type") == "text" and (text := text_of(block.get("text")))]
        self._last = {name: line[name] for name in _KEPT if isinstance(line.get(name), str)}
        if kind == "user":
            has_result = "toolUseResult" in line or any(block.get("type") == "tool_result" for block in blocks)
            if texts and not has_result:
                self._forget_queued("\n\n".join(texts))
            yield from self._prompt(number, line, texts, sender_fields, has_result=has_result)
            yield from self._reply(number, line, blocks)
            if not has_result:
                self._asked.clear()
            return
        self._asked.update(block.get("id") for block in blocks if block.get("name") == "AskUserQuestion")
        yield from self._only_queued(self._sent)
        if texts and message.get("model") != "<synthetic>":
            yield self._found(number, line, "assistant", "\n\n".join(texts), "agent")

    def end(self) -> Iterator[Entry]:
        """The prompts that nothing followed."""
        yield from self._only_queued(self._sent)
        yield from self._only_queued(self._waiting)

    def state(self) -> dict[str, Any] | None:
        """The state of the session; None while a prompt is in the queue, or a question has no answer."""
        return None if self._waiting or self._sent or self._asked else super().state()

    def _prompt(
        self, number: int, line: dict[str, Any], texts: list[str], sender_fields: dict[str, Any], *, has_result: bool
    ) -> Iterator[Entry]:
        """The prompt of a line of the user, if it has words; `sender_fields` says who sent it."""
        if not texts:
            return
        origin = sender_fields.get("origin")
        sender = None if origin is None else mapping(origin).get("kind") or origin
        human = sender == "human" and not has_result and not any(sender_fields.get(flag) for flag in _UNTYPED)
        unknown = sender is None and not has_result and sender_fields.get("promptSource") in _TYPED_SOURCES
        prompt = typed(texts, stated=human)
        # Beside a frame of others, what is left is the host's word.
        if not prompt.text or (prompt.cut and sender not in (None, "human")):
            yield LeftOut("hidden messages")
            return
        by_user = prompt.by_user and (human or unknown)
        yield self._found(number, line, "user", prompt.text, "user" if by_user else "agent")

    def _reply(self, number: int, line: dict[str, Any], blocks: list[dict[str, object]]) -> Iterator[Entry]:
        """What a person answered to questions, or said when a call was not allowed."""
        texts, by_user = list[str](), True
        for block in blocks:
            if (call := block.get("tool_use_id")) in self._asked:
                self._asked.remove(call)
                result = mapping(line.get("toolUseResult"))
                for question, answer in mapping(result.get("answers")).items():
                    note = text_of(mapping(mapping(result.get("annotations")).get(question)).get("notes"))
                    chosen = ", ".join(map(text_of, answer)) if isinstance(answer, list) else text_of(answer)
                    texts.append(" ".join(filter(None, (question, chosen, note))))
            elif block.get("type") == "tool_result" and line.get("toolDenialKind") in (None, "user-rejected"):
                said = "".join(text_of(part.get("text")) for part in blocks_of(block.get("content")))
                if refused := _REFUSED.fullmatch(said):
                    texts.append(refused[1].strip())
                    by_user = by_user and "toolDenialKind" in line
        if any(texts):
            yield self._found(number, line, "user", "\n".join(texts), "user" if by_user else "agent")

    def _queue(self, number: int, line: dict[str, Any]) -> None:
        """Note a prompt that is put into the queue or taken out of it: to be sent, or to be edited (popAll)."""
        operation, text = line.get("operation"), text_of(line.get("content"))
        if operation == "enqueue":
            if text:
                self._waiting.append(_Queued(text, number, time_of(line.get("timestamp")) or self._at))
            return
        if operation == "popAll" and not text:
            self._waiting.clear()
        index = next((i for i, queued in enumerate(self._waiting) if text in ("", queued.text)), None)
        if index is None:
            return
        queued = self._waiting.pop(index)
        # One with a reason was not sent.
        if operation in ("remove", "dequeue") and not line.get("reason"):
            self._sent.append(queued._replace(line=number, begins=operation == "dequeue"))

    def _forget_queued(self, text: str) -> None:
        """Forget the queued prompts that stand in a line of the user."""
        for prompts in (self._sent, self._waiting):
            index = next((i for i, queued in enumerate(prompts) if queued.text == text), None)
            if index is not None:
                del prompts[index]
                return
        self._sent = [queued for queued in self._sent if not queued.begins]

    def _only_queued(self, prompts: list[_Queued]) -> Iterator[Entry]:
        """The prompts that stand in the queue's lines alone; they are forgotten then."""
        for queued in prompts:
            name = sha256(f"{queued.at.isoformat()}\0{queued.text}".encode()).hexdigest()[:32]
            line = {**self._last, "message": None, "uuid": f"queued:{name}", "timestamp": queued.at.isoformat()}
            yield from self._prompt(queued.line, line, [queued.text], {}, has_result=False)
        prompts.clear()

    def _found(self, number: int, line: dict[str, Any], role: str, text: str, authority: Authority) -> FoundMemory:
        message = mapping(line.get("message"))
        session = text_of(line.get("sessionId")) or self._name.rpartition("/")[2].removesuffix(".jsonl")
        project = project_name(line.get("cwd")) or self._folder
        self._at = time_of(line.get("timestamp")) or self._at
        about = labels(
            session=session, project=line.get("cwd"), branch=line.get("gitBranch"), model=message.get("model")
        )  # fmt: skip
        id = text_of(line.get("uuid")) or f"{session}:{number}"
        turn = self._turn(number, project, session, id=id, text=text, role=role, authority=authority, about=about)
        self._position += 1
        return turn


SOURCE = Source(
    None, "Claude Code's projects, or a session", authority="agent", folder=".claude/projects", growing=sessions
)
