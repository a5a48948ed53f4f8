"""Meanings of the arguments of operations."""

from __future__ import annotations

import inspect
from typing import Any, Literal, NamedTuple


class Argument(NamedTuple):
    """The meaning of an argument at every door, and how the command line takes it.

    - flags: the names of its option, if it is another than the argument's; for a switch, as "--success/--failure"
    - kind: "memory" for the id of a memory, which people may type in part; "argument" for one without an option;
      "option" for a required one; "hidden" for one that the command line does not take
    - default: on the command line alone
    """

    help: str
    metavar: str | None = None
    flags: str = ""
    kind: Literal["", "memory", "argument", "option", "hidden"] = ""
    default: Any = inspect.Parameter.empty


ARGUMENTS: dict[str, Argument] = {
    "id": Argument("The id of a memory, or an unambiguous start or end.", "ID", kind="memory"),
    "ids": Argument("The id of a memory, or an unambiguous start or end.", "ID", kind="memory"),
    "source": Argument("The document or session it comes from.", "NAME"),
    "scope": Argument("Only this scope and those below it.", "/A/B"),
    "kinds": Argument("Only this kind; repeat for more.", "KIND", "--kind"),
    "tags": Argument("Any of these tags; repeat for more.", "TAG", "--tag"),
    "where": Argument("""Only what this matches, e.g. '{"importance": {"gte": 0.5}}'.""", "JSON"),
    "since": Argument("Not older than this: 2026-03-01, 2026-03, yesterday, 7d, or ISO 8601 with an offset.", "TIME"),
    "until": Argument("Not newer than this; a day alone is all of it.", "TIME"),
    "as_of": Argument("What the store knew at this time, or at the end of this day.", "TIME"),
    "valid_at": Argument("What held at this time, superseded since or not.", "TIME"),
    "include_superseded": Argument("Also what others have superseded."),
    "agent": Argument("The agent; without it, the scope's own.", "NAME"),
    "limit": Argument("The most to show.", flags="--limit,-n"),
    "offset": Argument("The number to leave out first."),
    "order": Argument("newest, oldest, created, updated or importance.", "ORDER"),
    "types": Argument("Only links of this type; repeat for more.", "TYPE", "--type"),
    "direction": Argument("out, in or both.", "DIRECTION"),
    "importance": Argument("From 0 to 1."),
    "strength": Argument("From 0 to 1."),
    "pinned": Argument("Never prune it."),
    "topic": Argument("The topic it belongs to.", "TEXT"),
    "context": Argument("Searched with the text: a speaker, a title.", "TEXT"),
    "position": Argument("Its place in the source."),
    "metadata": Argument("A JSON object. It replaces what it has.", "JSON"),
    "created_at": Argument("When it was learnt. Default: now.", "TIME"),
    "valid_from": Argument("When it happened. Default: when it was learnt.", "TIME"),
    "valid_until": Argument("When what it says ended, or will end.", "TIME"),
    "expires_at": Argument("When it stops being true; or how long after it is stored, or touched: 30d.", "TIME"),
    "vector": Argument("The vector itself, as a JSON list of numbers.", "JSON"),
    "task_type": Argument("Only for this type of task.", "TYPE"),
    "skip_damaged": Argument("Leave out what cannot be read."),
    "query": Argument("The question.", "QUERY"),
    "mode": Argument("hybrid (the default), vector or keyword.", "MODE"),
    "profile": Argument("A named set of recall's options.", "NAME"),
    "diversify_by": Argument(
        "Cover the relevant times or sources, in order of time; or have one_per_source, or one_per_source_over_time.",
        "time|source|...",
    ),
    "token_budget": Argument("Only hits that fit into this number of tokens."),
    "purpose": Argument(
        "inspect: the hits do not count as accessed. explain: nor then; ranks by signal too.", "PURPOSE"
    ),
    "relevant": Argument("Only what answers: nothing if nothing does."),
    "id_of_session": Argument("The id of a session.", "ID"),
}
"""Meanings by name, for every operation unless its command has another."""

LINK = {
    "source": Argument("The id of a memory.", "FROM", kind="memory"),
    "target": Argument("The id of a memory.", "TO", kind="memory"),
}
SESSION = {"id": ARGUMENTS["id_of_session"]}
SUCCESS = Argument("How it went.", flags="--success/--failure", kind="option")
TAG = Argument("A tag; repeat for more.", "TAG", "--tag")
FIELDS = {
    "tags": Argument("A tag; repeat for more. They replace those it has.", "TAG", "--tag"),
    "kind": Argument("What it is.", "KIND"),
    "policy": Argument("", kind="hidden"),
    "indexed": Argument("Keep it out of recall: get and list show it.", flags=" /--not-indexed"),
}
TASK = Argument("The task it belongs to.", "ID", "--task")
# As in recallite.review.audit, which is loaded when it is used.
CHECKS = (
    "duplicates", "near-duplicates", "contradictions", "stale", "expired", "secrets", "instructions", "junk",
    "superseded", "unjudged", "diverged",
)  # fmt: skip
