"""Links between memories: create, remove, list and traverse them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

from recallite.engine import Engine
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.filters import Filter
from recallite.model.records import Link, Reached
from recallite.remember.supersession import check_speaker_of, row_id
from recallite.store.values import Direction, LinkRow

LINK_TYPES = ("similar", "sequential", "causal", "contradicts", "supports", "elaborates")
SUPERSEDES = "supersedes"
"""The type of links that `supersede` makes and `restore` removes."""


def link(engine: Engine, source: str, target: str, type: str, strength: float, *, base: str) -> None:
    """Link two records; linking them again changes the strength."""
    type = check_link_type(type)
    strength = checks.check_unit(strength, "strength")
    with engine.atomic() as writer:
        ends = row_id(writer, source, base), row_id(writer, target, base)
        if ends[0] == ends[1]:
            raise InvalidInput(f"{source} cannot be linked to itself")
        writer.links.put([LinkRow(*ends, type, strength, checks.now_us())])


def unlink(engine: Engine, source: str, target: str, type: str | None, *, base: str) -> int:
    """Remove the link of a type, or every link, from one record to another; returns how many there were."""
    if type == SUPERSEDES:
        raise InvalidInput("links of type 'supersedes' show what supersede has done: undo it with restore(target)")
    types = [] if type is None else [check_link_type(type)]
    with engine.atomic() as writer:
        ends = row_id(writer, source, base), row_id(writer, target, base)
        if type in (None, "contradicts", "supports"):
            check_speaker_of(writer, ends, "unlink")
        return writer.links.drop(*ends, types)


def neighbors(engine: Engine, id: str, types: Sequence[str], direction: str, *, base: str) -> list[Link]:
    """The links of a record to others that the handle may see, strongest first."""
    way, shown_types = _check_sides(direction, types)
    with engine.store.read() as reader:
        record_id = row_id(reader, id, base)
        sides = {"out": (False,), "in": (True,), "both": (False, True)}[way]
        links = [link for side in sides for link in reader.links.of(record_id, incoming=side, types=shown_types)]
        ends = [link.target if link.source == id else link.source for link in links]
        seen = reader.records.find_ids(ends, base)
    visible = [link for link, end in zip(links, ends, strict=True) if end in seen]
    return sorted(visible, key=lambda link: -link.strength)


def traverse(
    engine: Engine, id: str, depth: int, types: Sequence[str], direction: str, limit: int | None, *, base: str
) -> list[Reached]:
    """The records that links lead to from one, breadth first, each once, at its least distance.

    Paths lead only through records that a recall of the handle would see. Of the shortest paths the strongest counts;
    the strength of a path is the product over its links. Sorted by distance, then strength, then in the order stored.
    """
    way, shown_types = _check_sides(direction, types)
    depth = checks.check_count(depth, "depth")
    most = None if limit is None else checks.check_count(limit, "limit")
    visible, now = Filter(include_superseded=True).within(base), checks.now_us()
    with engine.store.read() as reader:
        edge = {row_id(reader, id, base): 1.0}
        seen = set(edge)
        reached: list[tuple[int, int, float]] = []
        for distance in range(1, depth + 1):
            following: dict[int, float] = {}
            for near, far, strength in reader.links.steps(list(edge), way, shown_types, visible, now):
                if far not in seen:
                    following[far] = max(following.get(far, 0.0), edge[near] * strength)
            edge = following
            seen |= edge.keys()
            ordered = sorted(edge, key=lambda far: (-following[far], far))
            reached += [(far, distance, edge[far]) for far in ordered]
            if not edge or (most is not None and len(reached) >= most):
                break
        reached = reached[:most]
        ids = sorted(far for far, _, _ in reached)
        records = dict(zip(ids, reader.records.get_many(ids), strict=True))
    return [Reached(record=records[far], distance=distance, strength=strength) for far, distance, strength in reached]


def check_link_type(type: object) -> str:
    """One of the types of links that `link` makes."""
    if isinstance(type, str) and type == SUPERSEDES:
        raise InvalidInput("link makes no links of type 'supersedes': use supersede(old, new)")
    return checks.check_choice(type, "type", LINK_TYPES)


def _check_sides(direction: object, types: Sequence[object]) -> tuple[Direction, list[str]]:
    way = cast("Direction", checks.check_choice(direction, "direction", get_args(Direction)))
    return way, [checks.check_choice(type, "type", (*LINK_TYPES, SUPERSEDES)) for type in types]
