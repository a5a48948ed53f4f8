"""The conditions that a recall relies on: that a view, a plan, questions and memory are whole, and fit together."""

from __future__ import annotations

from typing import Any

import numpy as np

from recallite_kernels import contract
from recallite_kernels.arguments import Graph, Records
from recallite_kernels.contract import I32, I64, LANES, KernelError, array, indices, offsets, real, whole
from recallite_kernels.forest import check_forest
from recallite_kernels.groups import check_group
from recallite_kernels.lexical import check_bm25, check_slices, refuse_disorder
from recallite_kernels.parameters import check_parameters
from recallite_kernels.signals import EVIDENCE, FEATURES, SIGNALS
from recallite_kernels.view import SCAN_ALL, Asking, Hits, Plan, Stated, Terms, Vectors, View, Workspace
from recallite_kernels.view import hits as hits_of
from recallite_kernels.view import workspace as workspace_of

_FLAGS = "by_vector", "by_words", "exact", "exhaustive", "marked", "omit", "grouped", "ranked", "shared"
# Memory is made for the most of them, even if there are fewer candidates.
_COUNTS = {
    "wanted": 1, "shortlist": 1, "measured": 0, "top": 0, "depth": 0, "changes": 0, "limit": 1, "final": 0,
    "standing": 0,
}  # fmt: skip
_MOST = 2**20


def check_recall(
    view: View, plan: Plan, asking: Asking, work: Workspace, hits: Hits
) -> tuple[View, Plan, Asking, Workspace, Hits]:
    """The groups with their numbers as int and float; refused where a kernel would read or write beyond an array."""
    view, plan, asking = check_group(view, View), check_group(plan, Plan), check_group(asking, Asking)
    n = view.terms.lengths.shape[0]
    _check_terms(view.terms, n)
    _check_vectors(view.vectors, n)
    _check_graph(view.graph, n)
    _check_records(view.records, n)
    _check_stated(view.stated, n)
    indices("standing", view.standing, n)
    _refuse_descent("standing", view.standing)
    if (array("instructions", view.instructions, contract.u8, view.standing.shape[0]) > 1).any():
        raise KernelError("instructions: hold more than 1; wanted 1 for an instruction, else 0")
    plan = _check_plan(plan)
    check_bm25(plan.k1, plan.b, view.terms.average_length)
    longest = _check_asking(asking, plan, view.vectors)
    work, hits = check_group(work, Workspace), check_group(hits, Hits)
    _check_memory(view, plan, asking, work, hits, longest)
    return view, plan, asking, work, hits


def _check_terms(terms: Terms, n: int) -> None:
    count = terms.terms.shape[0]
    offsets("segments", terms.segments, count)
    segments = terms.segments.shape[0] - 1
    refuse_disorder(terms.terms, terms.segments[:-1], terms.segments[1:], 2**31, "terms")
    array("starts", terms.starts, contract.i64, count + segments)
    at = np.arange(count) + np.repeat(np.arange(segments), np.diff(terms.segments))
    starts, stops = terms.starts[at], terms.starts[at + 1]
    check_slices(terms.rows, starts, stops)
    refuse_disorder(terms.rows, starts, stops, n)
    contract.finite("lengths", terms.lengths)
    if n and terms.lengths.min() < 0.0:
        raise KernelError("lengths: a length is negative; wanted lengths of 0 or more")
    array("counts", terms.counts, contract.u8, terms.rows.shape[0])
    real("records", terms.records, low=0.0)
    listed = terms.frequencies.shape[0] > 0
    array("frequencies", terms.frequencies, contract.i64, count if listed else 0)
    array("counted", terms.counted, contract.u8, n if listed or terms.counted.shape[0] else 0)
    array("present", terms.present, contract.u8, n if terms.present.shape[0] else 0)


def _check_vectors(vectors: Vectors, n: int) -> None:
    places, d = vectors.codes.shape
    blocks = -(-places // LANES)
    array("sketches", vectors.sketches, contract.u64, blocks, -(-d // 64), LANES)
    array("scales", vectors.scales, contract.f32, places)
    array("residuals", vectors.residuals, contract.i8, places, d)
    whole("visible", vectors.visible, 0, places)
    indices("places", vectors.places, places)
    _refuse_descent("places", vectors.places)
    if vectors.places.shape[0] or vectors.visible <= SCAN_ALL:
        array("places", vectors.places, contract.i64, vectors.visible)
    else:
        lanes = np.unpackbits(array("masks", vectors.masks, contract.u16, blocks).view(np.uint8), bitorder="little")
        if lanes[places:].any() or np.count_nonzero(lanes) != vectors.visible:
            raise KernelError(f"masks: not of {vectors.visible} places; wanted a bit for each visible one")
    if vectors.owners.shape[0] or places > n:
        indices("owners", vectors.owners, n, places)
    listed = n if vectors.parts.shape[0] else 0
    array("first_place", vectors.first_place, contract.i64, listed)
    array("parts", vectors.parts, contract.i32, listed)
    _check_places(vectors.first_place, vectors.parts, places)
    array("token_starts", vectors.token_starts, contract.i64, places + 1 if vectors.token_starts.shape[0] else 0)
    _check_token_starts(vectors.token_starts, vectors.token_codes.shape[0])


def _check_records(records: Records, n: int) -> None:
    """Refuse records that are not n."""
    array("keys", records.keys, contract.i64, n)
    array("created_at", records.created_at, contract.i64, n)
    array("importance", records.importance, contract.f32, n)
    array("moments", records.moments, contract.i64, n)
    array("moments_until", records.moments_until, contract.i64, n)
    array("resolved", records.resolved, contract.u8, n)
    array("authorities", records.authorities, contract.u8, n)
    array("speakers", records.speakers, contract.i32, n if records.speakers.shape[0] else 0, 2)


def _check_places(first_place: I64, parts: I32, places: int) -> None:
    """Refuse records whose vectors are at places that are not there."""
    outside = (first_place < 0) | (first_place > places - parts.astype(np.int64))
    if ((parts < 0) | (outside & (parts != 0))).any():
        raise KernelError("first_place, parts: name a place that is not there")


def _check_token_starts(starts: I64, total: int) -> None:
    """Refuse codes of tokens that are not there."""
    if starts.size and (starts.item(0) < 0 or starts.item(-1) > total or (starts[1:] < starts[:-1]).any()):
        raise KernelError(f"tokens: name codes that are not there; wanted starts ascending within 0 to {total}")


def _check_graph(graph: Graph, n: int) -> None:
    """Refuse a graph of other records, or that leads to others; lists of links are checked as they are read."""
    array("previous", graph.previous, contract.i32, n)
    array("following", graph.following, contract.i32, n)
    array("sources", graph.sources, contract.i32, n)
    array("heads", graph.heads, contract.i32, n if graph.heads.shape[0] else 0)
    array("nexts", graph.nexts, contract.i32, None)
    array("targets", graph.targets, contract.i32, graph.nexts.shape[0])
    array("strengths", graph.strengths, contract.f32, graph.targets.shape[0])
    contract.mask(graph.mask, n if graph.mask.shape[0] else 0)
    for name in ("previous", "following", "targets"):
        rows = getattr(graph, name)
        if rows.size and not -1 <= int(rows.min()) <= int(rows.max()) < n:
            raise KernelError(f"{name}: name a row of {n} or more, or below -1; wanted one, or -1 for none")


def _check_stated(stated: Stated, n: int) -> None:
    array("frames", stated.frames, contract.u32, n, None, 2)
    array("positioned", stated.positioned, contract.u8, n)
    array("scopes", stated.scopes, contract.i32, n)
    indices("chains", array("chains", stated.chains, contract.i64, 2, None).ravel(), n)
    if (np.diff(stated.chains[0]) < 0).any():
        raise KernelError("chains: out of order; wanted ascending rows")


def _check_plan(plan: Plan) -> Plan:
    for name in _FLAGS:
        whole(name, getattr(plan, name), 0, 1)
    for name, least in _COUNTS.items():
        whole(name, getattr(plan, name), least, _MOST)
    if plan.exhaustive:
        whole("top", plan.top, 1, _MOST)  # other rows are held to the last of them
    whole("least_of", plan.least_of, 0, len(SIGNALS) - 1)
    real("least_confidence", plan.least_confidence)
    if np.isnan(plan.least):
        raise KernelError("least: nan; wanted a number, or -inf for none")
    check_forest(plan.forest, len(FEATURES))
    contract.finite("weights", array("weights", plan.weights, contract.f64, 4, len(EVIDENCE) + 1))
    parameters = check_parameters(plan.parameters)
    if plan.exhaustive and (parameters.rrf_k >= 0 or not parameters.weighted_sum or not plan.exact):
        raise KernelError("exhaustive: with ranks, a product or rough cosines; wanted a sum of exact signals")
    return plan._replace(parameters=parameters)


def _check_asking(asking: Asking, plan: Plan, vectors: Vectors) -> int:
    """The number of words of the longest question."""
    questions, words = asking.counting.shape[0], asking.numbers.shape[0]
    if plan.shared and questions < 2:
        raise KernelError(f"shared: {questions} questions; wanted one and its sub-questions")
    array("vectors", asking.vectors, contract.f32, questions, vectors.codes.shape[1] if plan.by_vector else 0)
    contract.finite("counting", asking.counting)
    contract.finite("shares", array("shares", asking.shares, contract.f64, words))
    if ((asking.shares < 0) | (asking.shares > 1)).any():
        raise KernelError("shares: a share of texts that is not from 0 to 1")
    array("roles", asking.roles, contract.u8, words)
    offsets("word_offsets", asking.word_offsets, words, questions)
    spans = asking.begins.shape[0]
    array("ends", asking.ends, contract.i64, spans)
    array("fades", asking.fades, contract.i64, spans)
    offsets("span_offsets", asking.span_offsets, spans, questions)
    array("moments", asking.moments, contract.i64, questions)
    array("former", asking.former, contract.u8, questions)
    offsets("before_offsets", asking.before_offsets, asking.before.shape[0], questions)
    tokens = asking.token_codes.shape[0]
    offsets("token_offsets", asking.token_offsets, tokens, questions)
    offsets("token_word_offsets", asking.token_word_offsets, asking.token_words.shape[0], tokens)
    whole("width", asking.width, 1, 64 * asking.token_codes.shape[1] if tokens else None)
    words_of = np.diff(asking.word_offsets)
    most = np.repeat(np.repeat(words_of, np.diff(asking.token_offsets)), np.diff(asking.token_word_offsets))
    if ((asking.token_words < 0) | (asking.token_words >= most)).any():
        raise KernelError("token_words: name a word that its question does not have")
    return int(words_of.max(initial=0))


def _check_memory(view: View, plan: Plan, asking: Asking, work: Workspace, hits: Hits, longest: int) -> None:
    """Refuse memory of other shapes than `workspace` and `hits` make for as many words, tokens and neighbours."""
    questions, words, tokens = asking.counting.shape[0], work.word_order.shape[0], work.token_weights.shape[0]
    if words < longest or tokens < int(np.diff(asking.token_offsets).max(initial=0)):
        raise KernelError(f"word_order, token_weights: for {words} words and {tokens} tokens; the questions have more")
    longest_words, known = hits.contained.shape[2], hits.idf.shape[0]
    if longest_words < longest or known < asking.numbers.shape[0]:
        raise KernelError(
            f"contained, idf: for {longest_words} words of a question and {known} in all; the questions have more"
        )
    room = work.beside.shape[1]
    _refuse_other_shapes(work, workspace_of(view, plan, questions, words, tokens, room))
    _refuse_other_shapes(hits, hits_of(plan, work, questions, known, longest_words))
    if work.slice_offsets[0] != 0:
        raise KernelError("slice_offsets: not those of `workspace`; wanted 0 as the first")


def _refuse_other_shapes(group: Any, like: Any) -> None:
    for name, value, wanted in zip(group._fields, group, like, strict=True):
        array(name, value, wanted.dtype, *wanted.shape)


def _refuse_descent(name: str, rows: contract.I64) -> None:
    if (rows[1:] <= rows[:-1]).any():
        raise KernelError(f"{name}: out of order; wanted strictly ascending numbers")
