"""Changes in Python: candidates are looked up by frame, and most queries have no frame twice."""

from __future__ import annotations

from collections.abc import Sequence

from recallite_kernels.arguments import Statements


def order_changes(statements: Statements, moment: int, former: int) -> tuple[list[int], list[int]]:
    """The order of the candidates, and the place of what replaced each, -1 for none."""
    stated = _stated(statements.frames.tolist(), statements.values.tolist())
    members = _members(stated)
    if all(len(places) == 1 for places in members.values()):
        return [*range(len(stated))], [-1] * len(stated)
    began = list(zip(statements.moments.tolist(), statements.keys.tolist(), strict=True))
    leads = [_lead(place, stated, members, began) for place in range(len(stated))]
    first: list[tuple[int, ...]]
    if former:
        first = [(lead >= 0, *start) for lead, start in zip(leads, began, strict=True)]
    else:
        first = [(True, *start) if start[0] <= moment else (False, -start[0], -start[1]) for start in began]
    return _ordered(stated, members, first), leads


def _stated(frames: list[list[int]], values: list[list[int]]) -> list[dict[int, set[int]]]:
    """The values that each candidate gives to each frame."""
    every: list[dict[int, set[int]]] = []
    for of_frames, of_values in zip(frames, values, strict=True):
        frame_values: dict[int, set[int]] = {}
        for frame, value in zip(of_frames, of_values, strict=True):
            if frame:
                frame_values.setdefault(frame, set()).add(value)
        every.append(frame_values)
    return every


def _members(stated: list[dict[int, set[int]]]) -> dict[int, list[int]]:
    """The candidates that have each frame."""
    members: dict[int, list[int]] = {}
    for place, frame_values in enumerate(stated):
        for frame in frame_values:
            members.setdefault(frame, []).append(place)
    return members


def _lead(
    place: int, stated: list[dict[int, set[int]]], members: dict[int, list[int]], began: list[tuple[int, int]]
) -> int:
    """The candidate that replaced all that one states."""
    lead = -1
    for frame, values in stated[place].items():
        latest = max(members[frame], key=began.__getitem__)
        if not values.isdisjoint(stated[latest][frame]):
            return -1
        if lead < 0 or began[latest] > began[lead]:
            lead = latest
    return lead


def _ordered(
    stated: list[dict[int, set[int]]], members: dict[int, list[int]], first: Sequence[tuple[int, ...]]
) -> list[int]:
    """Every candidate after those of its frames with a greater value of `first`, if it has a rival among them."""
    order: list[int] = []
    left = set(range(len(stated)))
    for place in range(len(stated)):
        if place not in left:
            continue
        left.remove(place)
        for frame, values in stated[place].items():
            ahead = [other for other in members[frame] if other in left and first[other] > first[place]]
            if any(values.isdisjoint(stated[other][frame]) for other in ahead):
                order += sorted(ahead, key=first.__getitem__, reverse=True)
                left.difference_update(ahead)
        order.append(place)
    return order
