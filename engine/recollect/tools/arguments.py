"""What each action of each tool takes. The schemas that models are shown, and the checks, are made from these."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

__all__ = [
    "TOOLS",
    "Action",
    "AppendMessage",
    "DeleteDocument",
    "EndSession",
    "IngestDocument",
    "ListDocuments",
    "ListMemories",
    "ListSessions",
    "OpenSession",
    "ReadMessages",
    "Recall",
    "RecordRecovery",
    "RecordRun",
    "Remove",
    "Replace",
    "Search",
    "SearchKnowledge",
    "SearchSessions",
    "Tips",
    "Tool",
    "Write",
]

Content = Annotated[str, Meta(description="The text: of the memory to write, of the question to recall by.")]
Query = Annotated[str, Meta(description="What is asked, in words.")]
Tags = Annotated[list[str], Meta(description="Labels. When searching: any of them.")]
Scope = Annotated[str, Meta(description="A path such as /project/database; it holds what lies below it too.")]
Unit = Annotated[float, Meta(ge=0.0, le=1.0, description="From 0 (trivial) to 1 (critical).")]
Limit = Annotated[int, Meta(ge=1, le=100, description="At most so many results.")]
Offset = Annotated[int, Meta(ge=0, description="Leave out so many at the beginning.")]
Time = Annotated[str, Meta(description="ISO 8601 with an offset, e.g. 2026-03-01T09:30:00+00:00.")]
OldText = Annotated[str, Meta(min_length=1, description="A part of the memory's text that no other memory has.")]
MemoryId = Annotated[str, Meta(description="The id of a memory, as results give it.")]
SessionId = Annotated[str, Meta(description="The id of a session.")]
Agent = Annotated[str, Meta(description="The id of an agent.")]
Role = Annotated[str, Meta(description="Who said it: user, assistant, system or tool.")]
Topic = Annotated[str, Meta(description="The topic that the memory is about.")]
Flag = Annotated[bool, Meta(description="True or false.")]
Words = Annotated[str, Meta(min_length=1, description="Free text.")]
Count = Annotated[int, Meta(ge=0, description="A number of steps or tokens.")]
ToolNames = Annotated[list[str], Meta(min_length=1, description="The tools that were used, in order.")]
TaskType = Annotated[str, Meta(min_length=1, description="The type of the task, e.g. query.")]
DocumentSource = Annotated[str, Meta(min_length=1, description="A path, a folder or an http(s) URL.")]
Metadata = Annotated[dict[str, Any], Meta(description="What the document is to be found by besides its text.")]
DocumentId = Annotated[str, Meta(min_length=1, description="The documentId of a document, as results give it.")]
ToolName = Annotated[str, Meta(min_length=1, description="The name of a tool.")]


class Action(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="action"):
    """One thing a model may ask for; its docstring is what the model is told about it."""


class Write(Action, frozen=True, kw_only=True, tag="write"):
    """store a memory"""

    content: Content
    tags: Tags = []
    importance: Unit = 0.5
    topic: Topic | None = None
    pinned: Flag = False
    expires_at: Time | None = None
    scope: Scope | None = None


class Search(Action, frozen=True, kw_only=True, tag="search"):
    """find memories by meaning and words, newer ones first among equals"""

    query: Query
    limit: Limit = 5
    tags: Tags | None = None
    scope: Scope | None = None


class Recall(Action, frozen=True, kw_only=True, tag="recall"):
    """find memories by meaning, recency and importance, with reasons and what is missing; give content or query"""

    content: Content | None = None
    query: Query | None = None
    limit: Limit = 5
    tags: Tags | None = None
    since: Time | None = None
    until: Time | None = None
    scope: Scope | None = None


class Replace(Action, frozen=True, kw_only=True, tag="replace"):
    """put content in the place of a memory's text; give old_text or id"""

    content: Content
    old_text: OldText | None = None
    id: MemoryId | None = None
    scope: Scope | None = None


class Remove(Action, frozen=True, kw_only=True, tag="remove"):
    """forget a memory for good; give old_text or id"""

    old_text: OldText | None = None
    id: MemoryId | None = None
    scope: Scope | None = None


class ListMemories(Action, frozen=True, kw_only=True, tag="list"):
    """show memories, newest first"""

    limit: Limit = 20
    offset: Offset = 0
    tags: Tags | None = None
    scope: Scope | None = None


class OpenSession(Action, frozen=True, kw_only=True, tag="open"):
    """begin a session, or go on with one that has this id"""

    id: SessionId | None = None
    agent: Agent | None = None
    provider: Words | None = None
    scope: Scope | None = None


class AppendMessage(Action, frozen=True, kw_only=True, tag="append"):
    """store a message at the end of a session"""

    id: SessionId
    role: Role
    content: Content
    agent: Agent | None = None
    scope: Scope | None = None


class ReadMessages(Action, frozen=True, kw_only=True, tag="messages"):
    """read the last messages of a session"""

    id: SessionId
    limit: Limit = 50
    agent: Agent | None = None
    scope: Scope | None = None


class ListSessions(Action, frozen=True, kw_only=True, tag="list"):
    """show sessions, the one used last first"""

    limit: Limit = 20
    agent: Agent | None = None
    scope: Scope | None = None


class SearchSessions(Action, frozen=True, kw_only=True, tag="search"):
    """find messages of any session by their words"""

    query: Query
    limit: Limit = 10
    agent: Agent | None = None
    scope: Scope | None = None


class EndSession(Action, frozen=True, kw_only=True, tag="end"):
    """remove a session; with a summary, a snapshot of it is kept"""

    id: SessionId
    summary: Words | None = None
    agent: Agent | None = None
    scope: Scope | None = None


class RecordRun(Action, frozen=True, kw_only=True, tag="record"):
    """note how a task went"""

    task_type: TaskType
    tools: ToolNames
    success: Flag
    steps: Count | None = None
    tokens: Count | None = None
    scope: Scope | None = None


class RecordRecovery(Action, frozen=True, kw_only=True, tag="record_recovery"):
    """note what helped against an error of a tool"""

    tool: ToolName
    error: Words
    recovery: Words
    scope: Scope | None = None


class Tips(Action, frozen=True, kw_only=True, tag="tips"):
    """what worked before on tasks of this type; with tool and error, what helped against it"""

    task_type: TaskType | None = None
    tool: ToolName | None = None
    error: Words | None = None
    scope: Scope | None = None


class IngestDocument(Action, frozen=True, kw_only=True, tag="ingest"):
    """read a document and keep it to search in, where the host allows it; again, it is brought up to date"""

    source: DocumentSource
    metadata: Metadata | None = None
    scope: Scope | None = None


class SearchKnowledge(Action, frozen=True, kw_only=True, tag="search"):
    """find passages of documents by meaning and words"""

    query: Query
    limit: Limit = 5
    scope: Scope | None = None


class ListDocuments(Action, frozen=True, kw_only=True, tag="list"):
    """show the documents"""

    limit: Limit = 100
    scope: Scope | None = None


class DeleteDocument(Action, frozen=True, kw_only=True, tag="delete"):
    """remove a document with all its passages"""

    document_id: DocumentId = field(name="documentId")
    scope: Scope | None = None


class Tool(Struct, frozen=True):
    """A tool: what it is for, and its actions."""

    name: str
    description: str
    actions: tuple[type[Action], ...]

    @property
    def union(self) -> Any:
        """The type that any of its actions has."""
        union: Any = self.actions[0]
        for action in self.actions[1:]:
            union |= action
        return union


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "memory",
            "Long-term memory: what is written is found again in later conversations.",
            (Write, Search, Recall, Replace, Remove, ListMemories),
        ),
        Tool(
            "session",
            "Conversations, kept message by message.",
            (OpenSession, AppendMessage, ReadMessages, ListSessions, SearchSessions, EndSession),
        ),
        Tool(
            "experience",
            "What worked before: tools by type of task, and recoveries from errors.",
            (RecordRun, RecordRecovery, Tips),
        ),
        Tool(
            "knowledge",
            "Documents: PDF, Word, web pages, Markdown and text, searched by passage.",
            (IngestDocument, SearchKnowledge, ListDocuments, DeleteDocument),
        ),
    )
}
"""Every tool by name."""
