"""The types of the fields of actions: the description that models see, and the check of the value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta

from recallite.model import checks

Check = Callable[[Any, str, int], object]


def _field(description: str, check: Check, allowed: str, min_length: int | None = None) -> Meta:
    """A field with a check, called with the value, the name of the field and the most characters of a text.

    `allowed` describes accepted values.
    """
    return Meta(description=description, min_length=min_length, extra={"check": check, "allowed": allowed})


def _unlimited(check: Callable[[Any, str], object]) -> Check:
    """A check that takes no limit."""
    return lambda value, name, _: check(value, name)


def _check_tools(tools: object) -> list[str]:
    from recallite.agents.experience import unique_tools  # which loads the engine

    return unique_tools(tools)


_named, _encodable = _unlimited(checks.check_name), _unlimited(checks.encodable)
_NAME = f"at most {checks.MAX_NAME_CHARS} characters on one line, not blank"
_TEXT = "text that is not blank, without NUL characters"
_MOST = f"text of at most {checks.MAX_QUERY_CHARS:,} characters"
_WHEN = "a time: 2026-03-01T09:30:00+00:00, 2026-03-01, yesterday or 7d (7 days ago)"

MemoryText = Annotated[
    str, _field("The text of the memory.", lambda text, name, most: checks.check_text(text, most, name), _TEXT)
]
MessageText = Annotated[str, _field("The text of the message.", _encodable, _TEXT)]
Query = Annotated[str, _field("What is asked, in words.", _unlimited(checks.check_query), _MOST)]
Tags = Annotated[
    list[str],
    _field(
        "Labels. When searching: any of them.",
        lambda tags, *_: checks.check_tags(tags),
        f"array of strings, each {_NAME}",
    ),
]
Scope = Annotated[
    str,
    _field(
        "A path such as /project/database; it includes everything below it.",
        lambda scope, *_: checks.check_scope(scope),
        "a path such as /team/project",
    ),
]
Unit = Annotated[float, Meta(ge=0.0, le=1.0, description="From 0 (trivial) to 1 (critical).")]
Limit = Annotated[int, Meta(ge=1, le=100, description="At most so many results.")]
DiversifyBy = Annotated[
    str,
    _field(
        "For a whole story: time or source, to cover the relevant times or sources; results come in order of time.",
        lambda value, name, _: checks.check_choice(value, name, ("time", "source")),
        "time or source",
    ),
]
Offset = Annotated[int, Meta(ge=0, description="Leave out so many at the beginning.")]
Time = Annotated[
    str,
    _field(
        "2026-03-01T09:30:00+00:00, 2026-03-01, yesterday, or 7d: 7 days ago; expires_at: in 7 days.",
        _unlimited(checks.check_time),
        _WHEN,
    ),
]
OldText = Annotated[
    str,
    _field(
        "A part of the memory's text that no other memory has.",
        _encodable,
        "a part of the text of one memory",
        min_length=1,
    ),
]
MemoryId = Annotated[str, _field("The id of a memory, as results give it.", _named, "an id as results give it")]
OwnId = Annotated[
    str,
    _field("An id of your own, such as user:diet; a memory that has it is replaced, with its history.", _named, _NAME),
]
MemoryIds = Annotated[
    list[str],
    _field(
        "Ids of memories that no longer hold, as results give them.",
        lambda ids, name, _: [checks.check_name(id, name) for id in ids],
        "array of ids as results give them",
    ),
]
SessionId = Annotated[str, _field("The id of a session.", _named, "an id as results give it")]
Agent = Annotated[
    str,
    _field("The id of an agent.", lambda agent, *_: checks.check_agent(agent), "one name such as ada, without slashes"),
]
Role = Annotated[
    str, _field("Who said it: user, assistant, system or tool.", _named, "user, assistant, system or tool")
]
Topic = Annotated[str, _field("The topic that the memory is about.", _named, _NAME)]
Provider = Annotated[str, _field("Who answers in the session.", _named, _NAME, min_length=1)]
Summary = Annotated[str, _field("Free text.", _encodable, "text without NUL characters", min_length=1)]
Words = Annotated[
    str,
    _field("Free text.", lambda text, name, _: checks.check_text(text, len(text), name), _TEXT, min_length=1),
]
Flag = Annotated[bool, Meta(description="True or false.")]
Count = Annotated[int, Meta(ge=0, description="A number of steps or tokens.")]
ToolNames = Annotated[
    list[str],
    _field(
        "The tools that were used, in order.",
        lambda tools, *_: _check_tools(tools),
        f"array of at least 1 string, each {_NAME}",
        min_length=1,
    ),
]
TaskType = Annotated[
    str,
    _field("The type of the task, e.g. query.", _named, f"a type of task such as query, {_NAME}", min_length=1),
]
ToolName = Annotated[str, _field("The name of a tool.", _named, f"the name of a tool, {_NAME}", min_length=1)]
DocumentSource = Annotated[str, Meta(min_length=1, description="A path, a folder or an http(s) URL.")]
Metadata = Annotated[dict[str, Any], Meta(description="Metadata to store with the document.")]
DocumentId = Annotated[str, Meta(min_length=1, description="The documentId of a document, as results give it.")]
