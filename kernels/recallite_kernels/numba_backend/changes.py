"""Changes, JIT: twenty candidates with three frames each are compared pair by pair."""

from __future__ import annotations

from typing import Any

from recallite_kernels.numba_backend._jit import exact

AHEAD = 2  # of a candidate that is not placed: it goes before the one at hand


@exact
def states(statements: Any, i: Any, frame: Any) -> Any:
    """Whether a candidate has a frame."""
    found = False
    for slot in range(statements.frames.shape[1]):
        found |= statements.frames[i, slot] == frame
    return found


@exact
def agree(statements: Any, i: Any, j: Any, frame: Any) -> Any:
    """Whether two candidates give a frame a value that they share."""
    frames, values = statements.frames, statements.values
    for a in range(frames.shape[1]):
        if frames[i, a] == frame:
            for b in range(frames.shape[1]):
                if frames[j, b] == frame and values[i, a] == values[j, b]:
                    return True
    return False


@exact
def later(statements: Any, i: Any, j: Any) -> Any:
    """Whether one candidate began after another."""
    moments, keys = statements.moments, statements.keys
    return moments[i] > moments[j] or (moments[i] == moments[j] and keys[i] > keys[j])


@exact
def lead_of(statements: Any, start: Any, stop: Any, i: Any) -> Any:
    """The candidate that replaced all that one states, -1 for none."""
    lead = -1
    for slot in range(statements.frames.shape[1]):
        frame = statements.frames[i, slot]
        if frame == 0:
            continue
        latest = i
        for j in range(start, stop):
            if states(statements, j, frame) and later(statements, j, latest):
                latest = j
        if agree(statements, latest, i, frame):
            return -1
        if lead < 0 or later(statements, latest, lead):
            lead = latest
    return lead


@exact
def goes_first(statements: Any, leads: Any, moment: Any, former: Any, i: Any, j: Any) -> Any:
    """Whether one candidate goes before another where a moment, or what is former, is asked for."""
    if former:
        if (leads[i] >= 0) != (leads[j] >= 0):
            return leads[i] >= 0
        return later(statements, i, j)
    due, other = statements.moments[i] <= moment, statements.moments[j] <= moment
    if due != other:
        return due
    return later(statements, i, j) if due else later(statements, j, i)


@exact
def order_changes(statements: Any, asked: Any, placed: Any, order: Any, leads: Any) -> None:
    offsets, frames = statements.offsets, statements.frames
    for query in range(offsets.shape[0] - 1):
        start, stop = offsets[query], offsets[query + 1]
        moment, former = asked.moments[query], asked.former[query] != 0
        for i in range(start, stop):
            leads[i] = lead_of(statements, start, stop, i)
        at = start
        for i in range(start, stop):
            if placed[i]:
                continue
            placed[i] = 1
            for slot in range(frames.shape[1]):
                frame = frames[i, slot]
                rival = False
                for j in range(start, stop):
                    if frame != 0 and not placed[j] and states(statements, j, frame):
                        placed[j] = AHEAD if goes_first(statements, leads, moment, former, j, i) else 0
                        rival |= placed[j] == AHEAD and not agree(statements, i, j, frame)
                while True:
                    best = -1
                    for j in range(start, stop):
                        if placed[j] == AHEAD and (best < 0 or goes_first(statements, leads, moment, former, j, best)):
                            best = j
                    if best < 0:
                        break
                    placed[best] = 0
                    if rival:
                        placed[best] = 1
                        order[at] = best - start
                        at += 1
            order[at] = i - start
            at += 1
        for i in range(start, stop):
            if leads[i] >= 0:
                leads[i] -= start
