"""Calls of the public kernels with numbers at their bounds, in a process of their own: a kernel that reads beyond an
array may end it. Each call is named before it is made, so that the last name is that of the one that did.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

import recallite_kernels as kernels
from recallite_kernels import KernelError, dispatch, python_backend, status, warmup
from tests.unit.kernels import test_recall, test_spoilt_arguments
from tests.unit.kernels.cases import forest, rng
from tests.unit.kernels.test_rank import parameters

SMALL = (0, 1, 2, 3, 15, 16, 17, 1000)
WHOLE = (*SMALL, 2**20)
REAL = (0.0, 5e-324, 0.5, 1.0, np.inf)
_GUARD, _GUARD_BYTES = 0xA5, 4096
_SIZES = (0, 1, 2, 17, 60)
_MANY = 4200  # more than are all measured
Make = Callable[[], tuple[str, dict[str, Any]]]


def numbers(arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each number among the arguments of a kernel, with each of its bounds."""
    for name, value in arguments.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            for bound in WHOLE if isinstance(value, int) else REAL:
                yield name, bound


def of_one_number() -> Iterator[Make]:
    """Every kernel but `recall`, with one or two of its numbers at a bound."""
    for name, case in test_spoilt_arguments.CASES.items():
        given = case(rng(0)) if name != "recall" else {}
        bounds = list(numbers(given))
        for (one, first), (other, second) in product(bounds, bounds):
            if one <= other:
                yield lambda name=name, case=case, changed={one: first, other: second}: (
                    name,
                    {**case(rng(0)), **changed},
                )


def of_plans(seeds: int) -> Iterator[Make]:
    """`recall` with small views, and each number of its plan at some bound or as in a usual plan."""
    for seed in range(seeds):
        yield lambda seed=seed: ("recall", planned(rng([seed, 47])))


def planned(generator: np.random.Generator) -> dict[str, Any]:
    """The arguments of a recall: a part of the flags set, and a part of the numbers at a bound."""
    seed, n = int(generator.integers(2**31)), int(generator.choice(_SIZES))
    n = _MANY if generator.random() < 0.02 else n
    view = test_recall.make_view(seed, n, "half" if generator.random() < 0.5 else "none", tokens=True)
    exhaustive = int(generator.integers(2))
    plan = test_recall.make_plan(
        seed, forest=forest(generator, 3, 2, 16),
        parameters=parameters(
            weighted_sum=exhaustive, semantic_weight=1.0, recency_weight=0.0, rerank_weight=0.5, clock=0,
            expansion_depth=int(generator.choice(SMALL)), rerank_depth=int(generator.choice(SMALL)),
            **({"rrf_k": -1.0} if exhaustive else {}),
        ),
    )  # fmt: skip
    counts = {name: int(generator.choice(SMALL)) for name in
              ("wanted", "shortlist", "measured", "top", "depth", "changes", "limit", "final", "standing")
              if generator.random() < 0.6}  # fmt: skip
    flags = {name: int(generator.integers(2)) for name in ("by_vector", "by_words", "marked", "omit", "grouped",
                                                           "ranked", "shared")}  # fmt: skip
    least = {
        "least": float(generator.choice([-np.inf, 0.0, 0.5, np.inf])),
        "least_confidence": float(generator.choice([0.0, 0.1])),
        "least_of": int(generator.integers(12)),
    }
    plan = plan._replace(exhaustive=exhaustive, exact=exhaustive, **counts, **flags, **least)
    asking = test_recall.make_asking(seed, int(generator.integers(1, 4)), bool(plan.by_vector), tokens=True)
    return {"view": view, "plan": plan, "asking": asking}


def recalled(view: Any, plan: Any, asking: Any) -> list[Any]:
    """What a recall says, or its refusal; memory has the room that it asks for, and nothing in it before."""
    longest, room = int(np.diff(asking.word_offsets).max(initial=0)), 0
    while True:
        work = kernels.workspace(view, plan, len(asking.counting), longest, len(asking.token_codes), room)
        hits = kernels.hits(plan, work, len(asking.counting), len(asking.numbers), longest)
        guards: list[tuple[str, Any]] = []
        work, hits = guarded(work, guards), guarded(hits, guards)
        status = kernels.recall(view, plan, asking, work, hits)
        spoilt = [name for name, guard in guards if (guard != _GUARD).any()]
        assert not spoilt, f"written beyond {spoilt}"
        if status != kernels.ROOM:
            return [test_recall.told(hits, query).rows for query in range(1 if plan.shared else len(asking.counting))]
        room = int(work.needed[0])


def guarded(group: Any, guards: list[tuple[str, Any]]) -> Any:
    """A copy of each array of a group, which has bytes before and behind it that nobody may write to."""
    copies = []
    for name, array in zip(group._fields, group, strict=True):
        memory = np.full(array.nbytes + 2 * _GUARD_BYTES, _GUARD, np.uint8)
        end = _GUARD_BYTES + array.nbytes
        inner = memory[_GUARD_BYTES:end].view(array.dtype).reshape(array.shape)
        inner[...] = 0
        guards += [(name, memory[:_GUARD_BYTES]), (name, memory[end:])]
        copies.append(inner)
    return type(group)(*copies)


def answer(name: str, arguments: dict[str, Any]) -> str:
    """Whether a call is taken or refused."""
    try:
        recalled(**arguments) if name == "recall" else getattr(kernels, name)(**arguments)
    except KernelError as refusal:
        return f"refused: {refusal}"
    return "taken"


def main(seeds: int) -> None:
    """Make every call on both backends, and print how many calls there were; each is taken or refused by both."""
    warmup()
    backends = [python_backend, *([dispatch.active] if status().selected == "numba" else [])]
    taken = calls = 0
    for make in (*of_one_number(), *of_plans(seeds)):
        answers = []
        for dispatch.active in backends:
            name, arguments = make()
            shown = {key: value for key, value in arguments.items() if not isinstance(value, np.ndarray)}
            print(name, shown.get("plan", shown), file=sys.stderr, flush=True)
            answers.append(answer(name, arguments))
        assert len({*answers}) == 1, (name, shown.get("plan", shown), answers)
        calls, taken = calls + 1, taken + (answers[0] == "taken")
    print(calls, taken)


if __name__ == "__main__":
    main(int(sys.argv[1]))
