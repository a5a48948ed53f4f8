"""Changes, JIT: twenty candidates with three frames each are compared pair by pair."""

from __future__ import annotations

from typing import Any

from recallite_kernels.numba_backend._jit import exact

AHEAD = 2  # of a candidate that is not placed: it goes before the one at hand


@exact
def states(statements: Any, i: Any, frame: Any) -> Any:
    """Whether a candidate has a frame."""
    any_slot = False
    for slot in range(statements.frames.shape[1]):
        any_slot |= statements.frames[i, slot] == frame
    return any_slot


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
def lead_of(statements: Any, i: Any) -> Any:
    """The candidate that replaced all that one states, -1 for none."""
    lead = -1
    for slot in range(statements.frames.shape[1]):
        frame = statements.frames[i, slot]
        if frame == 0:
            continue
        latest = i
        for j in range(statements.moments.shape[0]):
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
def order_changes(statements: Any, moment: Any, former: Any, placed: Any, order: Any, leads: Any) -> None:
    """Write the order of the candidates, and the place of what replaced each."""
    frames, m, at = statements.frames, statements.moments.shape[0], 0
    for i in range(m):
        leads[i], placed[i] = lead_of(statements, i), 0
    for i in range(m):
        if placed[i]:
            continue
        placed[i] = 1
        for slot in range(frames.shape[1]):
            frame = frames[i, slot]
            rival = False
            for j in range(m):
                if frame != 0 and not placed[j] and states(statements, j, frame):
                    placed[j] = AHEAD if goes_first(statements, leads, moment, former, j, i) else 0
                    rival |= placed[j] == AHEAD and not agree(statements, i, j, frame)
            while True:
                best = -1
                for j in range(m):
                    if placed[j] == AHEAD and (best < 0 or goes_first(statements, leads, moment, former, j, best)):
                        best = j
                if best < 0:
                    break
                placed[best] = 0
                if rival:
                    placed[best] = 1
                    order[at] = best
                    at += 1
        order[at] = i
        at += 1
