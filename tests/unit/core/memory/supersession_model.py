"""Supersession as a small model in Python: lists and loops, no code of the store."""

from __future__ import annotations

from dataclasses import dataclass, field

NEVER = 10**9


@dataclass
class Statement:
    """A record: the days from which it holds, and until when where that was given; steps name the store's time."""

    begins: int
    ends: int
    stored: int


@dataclass
class Edge:
    old: str
    new: str
    holds_from: int
    known_from: int
    known_until: int = NEVER

    def stands(self, step: int) -> bool:
        return self.known_from <= step < self.known_until


@dataclass
class Model:
    """What is stored, and every supersession, undone or not. Methods raise ValueError where the store refuses."""

    records: dict[str, Statement] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    step: int = 0

    def standing(self) -> list[Edge]:
        return [edge for edge in self.edges if edge.known_until == NEVER]

    def successors(self, old: str) -> list[str]:
        return [edge.new for edge in self.standing() if edge.old == old]

    def after(self, start: str) -> set[str]:
        """All that supersede a record, directly or through others."""
        reached: set[str] = set()
        edge = {start}
        while edge:
            edge = {new for old in edge for new in self.successors(old)} - reached
            reached |= edge
        return reached

    def supersede(self, olds: list[str], news: list[str], at: int | None = None) -> None:
        if {*olds} & {*news}:
            raise ValueError("itself")
        for old in olds:
            if self.successors(old) and {*self.successors(old)} != {*news}:
                raise ValueError("already superseded")
            if any(old in self.after(new) for new in news):
                raise ValueError("a cycle")
        made = [
            Edge(old, new, self.records[new].begins if at is None else at, self.step)
            for old in olds
            if not self.successors(old)
            for new in news
        ]
        if any(edge.holds_from < self.records[edge.old].begins for edge in made):
            raise ValueError("times")
        self.edges += made

    def restore(self, old: str) -> None:
        if not self.successors(old):
            raise ValueError("not superseded")
        for edge in self.standing():
            if edge.old == old:
                edge.known_until = self.step

    def forget(self, gone: str) -> None:
        following = []
        for old in [edge.old for edge in self.standing() if edge.new == gone]:
            beyond = [edge for edge in self.standing() if edge.old == gone]
            if self.successors(old) == [gone] and beyond:
                lost = next(edge for edge in self.standing() if (edge.old, edge.new) == (old, gone))
                known = max([lost.known_from, *(edge.known_from for edge in beyond)])
                following += [Edge(old, edge.new, lost.holds_from, known) for edge in beyond]
        self.edges = [edge for edge in self.edges if gone not in (edge.old, edge.new)] + following
        del self.records[gone]

    def visible(self, step: int, valid_at: int | None = None) -> set[str]:
        """What plain reads show of the store as it was at a step, or what held on a day as it was known then."""
        found = set()
        for name, record in self.records.items():
            standing = [edge for edge in self.edges if edge.old == name and edge.stands(step)]
            if record.stored > step:
                continue
            if valid_at is None:
                shown = not standing
            else:
                held_until = min((edge.holds_from for edge in standing), default=NEVER)
                shown = record.begins <= valid_at < min(held_until, record.ends)
            if shown:
                found.add(name)
        return found
