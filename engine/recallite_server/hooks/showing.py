"""Memories that a session is shown: a briefing at its beginning, and what is relevant to a prompt."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from recallite.agents.bootstrap import known
from recallite.model.authority import said_by
from recallite.model.records import Hit, Record
from recallite.text.junk import is_junk
from recallite.text.quotes import NOTICE, quoted
from recallite.text.standing import standing_part
from recallite.text.statements.instructions import in_force
from recallite_server.hooks.events import Event
from recallite_server.hooks.kept import ShownMemories

if TYPE_CHECKING:
    from recallite.memory import Memory

_MOST, _PROMPT_TOKENS, _BRIEFING_TOKENS = 5, 600, 1_500
_STANDING, _FACTS, _SESSIONS = 10, 10, 2
_MOST_TURNS = 200
# Hits that may be turns of the session itself.
_OWN_TURNS = 20
_TEXT_CHARS = 500
# What a longer prompt has pasted in takes seconds to embed.
_PROMPT_CHARS = 4_000
_ANEW = ("clear", "compact")
_INSTRUCTIONS = "The user asked for this in earlier sessions; it holds unless they say otherwise now:"
_ABOUT = "Known about this project, newest first:"
_OPEN = "Where the last sessions stopped:"
_RELEVANT = "Memories that may answer this prompt:"
NAMING = "Memories that name what this tool touches:"
"""The line before what `about_tool` quotes."""
TITLES = (_INSTRUCTIONS, _ABOUT, _OPEN, _RELEVANT, NAMING)
"""The lines before quoted memories."""


def relevant_cut(memory: Memory, event: Event) -> str:
    """The memories that answer a prompt and that the session has not been shown; empty if there are none.

    One is shown with later ones that answer it too, even again: alone it would pass for the current one.
    """
    prompt = event.typed.text
    if not prompt or is_junk(prompt):
        return ""
    before = ShownMemories(memory, event)
    # A condition on the session's name would be looked for in every memory after every turn.
    hits = memory.recall(
        prompt[:_PROMPT_CHARS], limit=_MOST + _OWN_TURNS + min(len(before.ids), 50), relevant=True,
        scope=event.project.scopes,
    )  # fmt: skip
    again = [hit for hit in hits if hit.id in before.ids]
    records: dict[str, Record | Hit] = {}
    for hit in hits:
        # What was said in this session the model still sees.
        if len(records) < _MOST and hit.metadata.get("session") != event.session:
            both: list[Record | Hit] = [hit, *_conclusion(memory, hit, event)]
            if new := {record.id: record for record in both if record.id not in before.ids}:
                later = [other for other in again if other.created_at > hit.created_at or other.id in hit.superseded_by]
                room = max(0, _MOST - len(records | new))
                records |= {other.id: other for other in later[:room]} | new
    text, shown = fitted(memory, [(_RELEVANT, _lines([*records.values()][:_MOST]))], _PROMPT_TOKENS)
    if shown:
        before.add(shown)
    return text


def _conclusion(memory: Memory, hit: Hit, event: Event) -> list[Record]:
    """The assistant's next turn, if a hit is a turn of the user: a question is most like the same one asked before."""
    if hit.context != "user" or hit.source is None:
        return []
    after = {"source": hit.source.id, "created_at": {"gt": f"{hit.created_at:%Y-%m-%dT%H:%M:%S.%fZ}"}}
    following = memory.list(scope=event.project.scope, where=after, order="oldest", limit=1)
    return [record for record in following if record.context == "assistant"]


def briefing(memory: Memory, event: Event) -> str:
    """Instructions of the user, facts, and where the last sessions stopped: for a session that begins."""
    before = ShownMemories(memory, event)
    before.remove_old()
    scope = event.project.scopes
    standing = memory.list(
        scope=scope, where={"standing": {"in": ["instruction", "preference"]}, "authority": "user"}, limit=_STANDING
    )
    turns = memory.list(scope=event.project.scope, where={"source": {"contains": f"{event.host}/"}}, limit=_MOST_TURNS)
    ends = _open_ends(turns, event.session)
    others = memory.list(scope=scope, where={"kind": {"ne": "chunk"}}, limit=_FACTS + len(turns) + len(standing))
    shown_above = {record.id: record for record in (*standing, *ends)}
    facts = known([record for record in others if record.id not in shown_above], _FACTS, told=shown_above.values())
    told = {  # each instruction that holds and each preference, without the rest of its text
        record.id: line_of(record, standing_part(record.text), may_contradict=[other.id for other in earlier])
        for record, earlier in sorted(in_force(standing), key=lambda part: bool(part[0].superseded_by))
    }
    sections = [
        (_INSTRUCTIONS, told), (_OPEN, _lines(ends)),
        (_ABOUT, {record.id: line_of(record, part) for record, part in facts}),
    ]  # fmt: skip
    text, shown = fitted(memory, sections, _BRIEFING_TOKENS)
    if shown or event.cause in _ANEW:
        before.add(shown, anew=event.cause in _ANEW)
    return text


def _open_ends(turns: Sequence[Record], session: str) -> list[Record]:
    """The last prompt and the last conclusion of the last sessions; `turns` are the newest first."""
    ends = []
    for name, records in groupby(turns, lambda record: (record.metadata or {}).get("session")):
        if name != session:
            last = {record.context: record for record in reversed([*records])}
            ends.append([record for record in last.values() if record.context in ("user", "assistant")])
    return [record for records in ends[:_SESSIONS] for record in records]


def fitted(memory: Memory, sections: Iterable[tuple[str, dict[str, str]]], tokens: int) -> tuple[str, list[str]]:
    """The text of as many records as fit into the tokens, and their ids. Each section first has an equal share.

    A section has a line for each id.
    """
    filled = [(title, [*lines.values()], [*lines]) for title, lines in sections if lines]
    counts = [0] * len(filled)
    count_tokens = memory._engine.embedder.count_tokens
    costs = [count_tokens(lines) for _, lines, _ in filled]
    left, *heads = count_tokens([NOTICE, *(f"{title}\n{quoted('[]')}" for title, _, _ in filled)])
    left = tokens - left
    for share in (left // max(len(filled), 1), left):
        for i, line_costs in enumerate(costs):
            room = min(left, share)
            while counts[i] < len(line_costs):
                cost = line_costs[counts[i]] + 1 + (0 if counts[i] else heads[i])
                if cost > room:
                    break
                counts[i], room, left = counts[i] + 1, room - cost, left - cost
    # The whole may have more tokens than its parts together.
    while any(counts) and count_tokens([_text(filled, counts)])[0] > tokens:
        counts[max(i for i, count in enumerate(counts) if count)] -= 1
    ids = [id for (_, _, ids), count in zip(filled, counts, strict=True) for id in ids[:count]]
    return (_text(filled, counts) if ids else ""), ids


def _text(sections: Sequence[tuple[str, list[str], list[str]]], counts: Sequence[int]) -> str:
    parts = [
        f"{title}\n{quoted('[' + ', '.join(lines[:count]) + ']')}"
        for (title, lines, _), count in zip(sections, counts, strict=True)
        if count
    ]
    return "\n".join([*parts, NOTICE])


def _lines(records: Iterable[Record | Hit]) -> dict[str, str]:
    return {record.id: line_of(record, record.text) for record in records}


def line_of(record: Record | Hit, text: str, **marks: Sequence[str] | Mapping[str, str]) -> str:
    """The line of a memory: its id, date and author, what marks it, and its text."""
    marks |= {"superseded_by": record.superseded_by}
    if isinstance(record, Hit):
        marks |= {"contradicts": record.contradicts}
    text = " ".join(text.split())
    time, when = ("said", record.created_at) if record.valid_from is None else ("holds_from", record.valid_from)
    source = record.source if isinstance(record.source, str | None) else record.source.id
    return json.dumps(
        {
            "id": record.id, time: f"{when:%Y-%m-%d}",
            "said_by": said_by(record.authority, source), **{name: value for name, value in marks.items() if value},
            "text": text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…",
        },
        ensure_ascii=False,
    )  # fmt: skip
