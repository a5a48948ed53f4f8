"""A clause of a text: what it says, of what, and what in it tells of change."""

from __future__ import annotations

from msgspec import Struct

from recallite.text.statements.statement_words import Word


class Clause(Struct, gc=False):
    """A clause, as read; nothing changes it afterwards.

    - `subject`: stems of what is spoken of; "my" and "I" count as the speaker, "our" as nothing
    - `head`: the words of the subject
    - `relation`: the stem of its verb; "be" for what is, is called or is changed to
    - `chunks`: what is said of the subject, the content words of each role: "" for the object, "time" for when, else
      a preposition
    - `said`: the keys of its words without times; `every`: with times
    - `nouns`: what the first role names before "of": "city" in "the city of London"
    - `rest`: content words of parts that add with whom or why
    - `gone`: what held before, as the clause says: "from A", "instead of A", "not A"; `listed`: several, by "and"
    - `passive`, `past`, `perfect`, `plan`, `negated`, `command`: its form
    - `change`: takes another value; `ends`: something ends; `stopped`: "no longer"; `now`: "now", "these days";
      `yet`: "yet", "already"; `corrected`: "sorry", "actually"; `former`: "used to"
    - `unreal`: "if", "maybe"; `sourced`: somebody says or thinks so
    - `definite`: the object has "the", "my" or "our"
    """

    subject: frozenset[str] = frozenset()
    head: tuple[Word, ...] = ()
    relation: str = ""
    chunks: tuple[tuple[str, tuple[Word, ...]], ...] = ()
    stated: frozenset[str] = frozenset()
    every: frozenset[str] = frozenset()
    nouns: tuple[str, ...] = ()
    rest: tuple[Word, ...] = ()
    gone: tuple[Word, ...] = ()
    listed: bool = False
    negated: bool = False
    passive: bool = False
    past: bool = False
    perfect: bool = False
    plan: bool = False
    command: bool = False
    change: bool = False
    ends: bool = False
    stopped: bool = False
    now: bool = False
    yet: bool = False
    corrected: bool = False
    former: bool = False
    unreal: bool = False
    sourced: bool = False
    definite: bool = False

    @property
    def replaces(self) -> bool:
        """Whether it says that one thing replaced another, whoever did that: "A was replaced by B", "B replaced A"."""
        if self.relation != "replac":
            return False
        return self.passive or (self.subject <= self.stated if self.subject else "" not in dict(self.chunks))
