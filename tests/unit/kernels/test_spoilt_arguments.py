"""Every public kernel with one argument spoilt: both backends raise the same KernelError, or give the same result."""

from __future__ import annotations

import re
import zlib
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import recallite_kernels as kernels
from recallite_kernels import KernelError
from recallite_kernels.protocol import NAMES
from tests.limits import examples
from tests.unit.kernels import test_rank, test_recall
from tests.unit.kernels.cases import forest, forward, mask, postings, rng, tokens, vectors
from tests.unit.kernels.test_backends_agree import both

SEEDS = examples(5)
MOST = 1500  # of some 8,000 ways to spoil what a recall takes
N = 40


# Of results that are not finite the first is named, which may be another where float32 overflows.
_RESULT = re.compile(r"-?(?:nan|inf) at \(.*?\)")


def unit(generator, n, d):
    found = vectors(generator, n, d, zeros=False)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def recalled(generator):
    seed = int(generator.integers(2**31))
    view = test_recall.make_view(seed, N, "half", parts=True, tokens=True)
    parameters = test_rank.parameters(
        weighted_sum=1, semantic_weight=1.0, recency_weight=0.0, rerank_weight=0.5, rerank_depth=5, clock=0
    )
    plan = test_recall.make_plan(
        seed, depth=4, changes=4, standing=2, exact=1, exhaustive=1, marked=1, forest=forest(generator, 3, 2, 16),
        parameters=parameters,
    )  # fmt: skip
    asking = test_recall.make_asking(seed, 3, tokens=True)
    longest = int(np.diff(asking.word_offsets).max())
    work = kernels.workspace(view, plan, 3, longest, len(asking.token_codes), 400)
    hits = kernels.hits(plan, work, 3, len(asking.numbers), longest)
    for each in (*work, *hits):
        each.fill(0)  # np.empty may hold anything
    return {"view": view, "plan": plan, "asking": asking, "work": work, "hits": hits}


def shortlisted(generator):
    sketches = generator.integers(0, 2**63, (N, 6)).astype(np.uint64)
    allowed = np.sort(generator.choice(N, 20, replace=False))
    return {
        "queries": sketches[:2].copy(), "sketches": kernels.sketch_blocks(sketches), "allowed": allowed, "start": 2,
        "stop": 19, "size": 5,
    }  # fmt: skip


def rescored(generator):
    codes, scales = kernels.quantize_int8(unit(generator, N, 16))
    rows = np.stack([generator.permutation(N)[:9] for _ in range(2)])
    return {
        "queries": unit(generator, 2, 16), "codes": codes, "scales": scales, "rows": rows,
        "distances": generator.integers(0, 99, rows.shape).astype(np.uint16), "size": 7, "k": 4,
    }  # fmt: skip


def pooled(generator):
    return dict(zip(("codes", "scales", "token_ids", "offsets"), tokens(generator, 5, 20, 16, 6), strict=True))


def inverted(generator):
    term_ids, counts, offsets = forward(generator, 9, 20, 6)
    out = np.zeros(len(term_ids), np.int32), np.zeros(len(term_ids), np.uint8)
    return {"term_ids": term_ids, "counts": counts, "offsets": offsets, "first_row": 3, "out": out}


def diverse(generator):
    sets = [np.unique(generator.integers(0, 9, 4)) for _ in range(8)]
    offsets = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return {
        "relevance": generator.random(8), "token_ids": np.concatenate(sets).astype(np.int32), "offsets": offsets,
        "mmr_lambda": 0.6, "k": 5,
    }  # fmt: skip


def some_texts(generator):
    """A few texts of letters and marks, and where each begins."""
    texts = generator.choice(np.frombuffer(b"ab., AB", np.uint8), 60)
    return texts, np.sort([0, 60, *generator.integers(0, 61, 4)])


def weighed(generator):
    texts, offsets = some_texts(generator)
    return {
        "characters": texts.astype(np.int32), "offsets": offsets,
        "weights": generator.integers(-127, 128, (16, 3)).astype(np.int8), "shortest": 2, "longest": 5,
    }  # fmt: skip


def counted(generator):
    return {
        "entries": generator.integers(0, 4, 20).astype(np.int32), "offsets": np.array([0, 9, 9, 20]),
        "words": generator.integers(0, 6, 7).astype(np.int32), "word_offsets": np.array([0, 2, 2, 5, 7]),
        "flags": np.array([0, 0, 64, 128], np.uint8), "vocabulary": 6,
    }  # fmt: skip


def ascending(generator):
    """Lists of ascending numbers, of which one is empty."""
    numbers = np.cumsum(generator.integers(1, [100, 2**16, 2**25] * 4)).astype(np.int32)
    numbers[5:] -= numbers[4]
    return {"numbers": numbers, "offsets": np.array([0, 5, 5, 12])}


def packed(generator):
    lists = ascending(generator)
    return {"packed": kernels.pack_ascending(**lists)[0], "offsets": lists["offsets"]}


CASES: dict[str, Any] = {
    "sketch": lambda generator: {"vectors": vectors(generator, 5, 70)},
    "sketch_blocks": lambda generator: {"sketches": generator.integers(0, 2**63, (20, 2)).astype(np.uint64)},
    "quantize_int8": lambda generator: {"vectors": vectors(generator, 5, 9)},
    "hamming_shortlist": shortlisted,
    "rescore_shortlist": rescored,
    "cosine_top_k": lambda generator: {
        "queries": vectors(generator, 2, 9), "vectors": vectors(generator, N, 9), "k": 5,
        "mask": mask(generator, N, "half"),
    },
    "pool_tokens": pooled,
    "bm25_top_k": lambda generator: {
        "postings": postings(generator, N, [3, 3], 2), "mask": mask(generator, N, "half"),
        "scratch": np.zeros(N, np.float32), "k": 5,
    },
    "invert": inverted,
    "reciprocal_rank_fusion": lambda generator: {
        "ranks": generator.integers(0, 9, (2, 6)), "weights": generator.random(2), "k": 60.0,
    },
    "decay": lambda generator: {
        "ages_days": 90 * generator.random(6), "half_life_days": 30.0, "floor": 0.1, "form": "exp",
    },
    "maximal_marginal_relevance": diverse,
    "forest_scores": lambda generator: {
        "features": generator.standard_normal((6, 5)), "forest": forest(generator, 5, 3, features=6),
    },
    "distinct_chunks": lambda generator: {
        **dict(zip(("texts", "offsets"), some_texts(generator), strict=True)),
        "folds": np.frombuffer(bytes(range(256)).lower(), np.uint8).copy(),
    },
    "sum_ngrams": weighed,
    "count_words": counted,
    "pack_ascending": ascending,
    "unpack_ascending": packed,
    "recall": recalled,
}  # fmt: skip


class Spoilt(NamedTuple):
    path: tuple[Any, ...]
    how: str
    value: Any


def leaves(value, path=()):
    """Each argument, each field of a group, and the groups themselves, by their path."""
    if path:
        yield path, value
    if isinstance(value, dict | tuple):
        names = value if isinstance(value, dict) else getattr(value, "_fields", range(len(value)))
        for name, each in zip(names, value.values() if isinstance(value, dict) else value, strict=True):
            yield from leaves(each, (*path, name))


def spoilt_arrays(value, generator):
    """Arrays that are not as they should be, and other things."""
    yield "none", None
    yield "list", value.tolist()
    yield "text", "rows"
    yield "number", 1.5
    for dtype in {np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.uint8), np.dtype(object)} - {value.dtype}:
        yield f"as {dtype}", np.zeros(value.shape, dtype)
    if value.dtype.itemsize > 1:
        yield "other byte order", value.astype(value.dtype.newbyteorder())
    yield "one dimension more", value[None]
    yield "one dimension less", value.reshape(-1) if value.ndim > 1 else np.zeros((), value.dtype)
    yield "strided", np.repeat(value, 2, axis=-1)[..., ::2]
    yield "fortran", np.asfortranarray(value)
    raw = np.zeros(value.nbytes + 1, np.uint8)
    raw[1:] = np.frombuffer(value.tobytes(), np.uint8)
    yield "unaligned", raw[1:].view(value.dtype).reshape(value.shape)
    frozen = value.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    for axis in range(value.ndim):
        yield f"longer in {axis}", np.concatenate([value, value.take([0] if value.shape[axis] else [], axis)], axis)
        yield f"shorter in {axis}", value.take(range(value.shape[axis] - 1), axis)
        yield f"empty in {axis}", value.take([], axis)
    yield "descending", value[::-1].copy()
    if value.dtype.kind == "f":
        # Where sums of float64 overflow, the order of adding decides.
        ends = [np.nan, np.inf, -np.inf, min(float(np.finfo(value.dtype).max), 1e300), -1.0, 0.0]
    else:
        ends = [0, 1, np.iinfo(value.dtype).max, np.iinfo(value.dtype).min, -1, N - 1, N, 2**31, 2**62]
        ends = sorted({each for each in ends if np.iinfo(value.dtype).min <= each <= np.iinfo(value.dtype).max})
    for end in ends if value.size else []:
        for at in {0, value.size - 1, int(generator.integers(value.size))}:
            changed = value.copy()
            changed.reshape(-1)[at] = end
            yield f"{end} at {at}", changed
        yield f"all {end}", np.full_like(value, end)


NUMBERS = (
    None, "1", [1], (1,), np.ones(2), np.ones(1), 1.5, -1, 0, 1, 2, 2**31, 2**63, 10**400, -(2**63) - 1, float("nan"),
    float("inf"), -float("inf"), 1e-320, 1e300, Decimal("0.5"), 1j, True, np.float32(0.5), np.int8(1),
)  # fmt: skip


def spoil(arguments, generator):
    """Every argument and every field of it, spoilt in every way."""
    for path, value in leaves(arguments):
        if isinstance(value, np.ndarray):
            ways = spoilt_arrays(value, generator)
        elif isinstance(value, tuple):
            ways = iter([("none", None), ("plain tuple", tuple(value)), ("list", list(value)), ("array", np.ones(3))])
        else:
            ways = iter((repr(each)[:20], each) for each in NUMBERS)
        for how, each in ways:
            yield Spoilt(path, how, each)


def replaced(value, path, new):
    """A copy of the arguments with other memory, and with one of them replaced."""
    if path == ():
        return np.array(new) if isinstance(new, np.ndarray) and new.flags.carray else new
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, dict):
        return {name: replaced(each, path[1:] if path[0] == name else (None,), new) for name, each in value.items()}
    if isinstance(value, tuple):
        names = getattr(value, "_fields", range(len(value)))
        some = [
            replaced(each, path[1:] if path[0] == name else (None,), new)
            for name, each in zip(names, value, strict=True)
        ]
        return type(value)(*some) if hasattr(value, "_fields") else tuple(some)
    return value


def columns(hits):
    """What is said of the hits of a question, by row: near ties may stand in another order."""
    order = np.argsort(hits.rows)
    parts = hits.rows, hits.keys, hits.scores, hits.confidence, hits.signals, hits.reasons, hits.successors
    return [hits.figures, *(np.asarray(each)[order] for each in parts)]


def told(name, found, arguments):
    """What a kernel says: its result where it is read, or what it wrote."""
    if name == "bm25_top_k":
        rows, scores, counts = found
        read = np.arange(rows.shape[1]) < counts[:, None]
        return [rows[read], scores[read], counts]
    if name == "recall":
        every = [test_recall.told(arguments["hits"], query) for query in range(3)] if found == kernels.DONE else []
        return [found, *(column for each in every for column in columns(each))]
    return [found] if isinstance(found, np.ndarray) else list(found)


def outcome(name, arguments, spoilt):
    """The message of a refusal, or the result."""
    arguments = replaced(arguments, spoilt.path, spoilt.value)
    try:
        found = getattr(kernels, name)(**arguments)
    except KernelError as error:
        return str(error)
    return told(name, found, arguments)


def alike(one, other):
    if isinstance(one, str) and isinstance(other, str):
        return _RESULT.sub("", one) == _RESULT.sub("", other)
    if isinstance(one, str) or isinstance(other, str):
        return False
    if kernels.ROOM in [each[0] for each in (one, other) if len(each) == 1 and np.ndim(each[0]) == 0]:
        # Only the JIT keeps to the room that there is.
        return True
    for mine, its in zip(one, other, strict=True):
        mine, its = np.asarray(mine), np.asarray(its)
        if mine.shape != its.shape or mine.dtype != its.dtype:
            return False
        scale = np.abs(mine, dtype=np.float64).max(initial=1.0, where=np.isfinite(mine))
        if not np.allclose(mine, its, rtol=1e-4, atol=1e-5 * scale):
            return False
    return True


def tied(jit, name, arguments, spoilt, generator):
    """Whether rounding decides a recall: backends that differ for a question agree for most questions beside it.

    Vectors that are equal are measured in different lanes, and the last bit then decides which is a candidate.
    """
    if name != "recall" or spoilt.path == ("asking", "vectors"):
        return False
    asking = arguments["asking"]
    agreed = 0
    for _ in range(16):
        noise = 1e-6 * generator.standard_normal(asking.vectors.shape).astype(np.float32)
        near = arguments | {"asking": asking._replace(vectors=asking.vectors * (1 + noise))}
        agreed += alike(*both(jit, partial(outcome, name, near, spoilt)))
    return agreed > 8


def test_every_kernel_has_a_case():
    assert set(CASES) == {*NAMES, "sketch_blocks", "pack_ascending"}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CASES)
def test_a_spoilt_argument_is_refused_alike_or_taken_alike(jit, name):
    differences = []
    for seed in range(SEEDS):
        generator = rng([seed, zlib.crc32(name.encode())])
        arguments = CASES[name](generator)
        every = list(spoil(arguments, generator))
        for place in generator.permutation(len(every))[:MOST].tolist():
            spoilt = every[place]
            try:
                one, other = both(jit, partial(outcome, name, arguments, spoilt))
            except Exception as error:
                differences.append((spoilt.path, spoilt.how, f"{type(error).__name__}: {error}"))
                continue
            if not alike(one, other) and not tied(jit, name, arguments, spoilt, generator):
                differences.append((spoilt.path, spoilt.how, one, other))
    assert not differences, "\n".join(str(each)[:400] for each in differences)


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_spoilt_is_taken(jit, name):
    arguments = CASES[name](rng(0))
    one, other = both(jit, lambda: outcome(name, arguments, Spoilt((None,), "", None)))
    assert not isinstance(one, str), one
    assert alike(one, other)
