"""A recall, from the words and the vector of a question to its hits: the source that both backends run.

`recall` has a line for each step; the one for what has changed is in `recallite_kernels.changes`. The stages that it
calls by name are functions of a backend, NumPy's or Numba's: `composed` binds this source to those of one of them.
Numba compiles all of it into one kernel, which allocates nothing and holds no lock of the interpreter; Python runs it
as it stands. So both order hits by the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from recallite_kernels import changes
from recallite_kernels.arguments import Codes, Lists, Mentions, Postings, Tokens, Weighed, WordSlices
from recallite_kernels.changes import is_to_come, put_changes_first
from recallite_kernels.signals import SIGNALS, RankParameters, reason_bits
from recallite_kernels.view import ABSENT, FIGURES, SCAN_ALL, UNCOUNTED

if TYPE_CHECKING:
    from recallite_kernels.python_backend.stages import (
        allowed_rows,
        any_above,
        assess,
        best_by_vector,
        best_by_words,
        copied,
        find_row,
        nearest_standing,
        order_by_score,
        rank_by_forest,
        rank_candidates,
        rows_within_reach,
        scan,
        sort_rows,
        sources_of,
    )  # fmt: skip

DONE, ROOM, NARROW = 0, -1, -2
"""The values that `recall` returns besides a fault: it has answered; there must be room for `Workspace.needed`
neighbours, or rows within reach of a score; the parts of a few records fill the shortlist."""
FAULTS = {
    -3: "queries or sketches: not finite", -4: "postings: a score is not finite",
    -5: "codes: a cosine is not finite", -6: "graph, tokens or places: out of range",
}  # fmt: skip
AT_SCAN, AT_WORDS, AT_VECTORS, AT_RANK = FAULTS

CHANGED, STANDING = 512, 2048
"""The bits of the reasons "change" and "standing" beside those of `REASONS`."""
PRIOR_RECORDS = 10.0
"""The counts of a small store are smoothed as if it had these further records, with words as common as in general."""
# All 34 instructions and preferences that are found in chats 6 to 15 of BEAM are as near to the question they are for.
LEAST_COSINE = 0.15
CODE_ERROR = 0.02
# At most this share of the limit gives way to standing records.
SHARE = 4
BY_TOKENS, BY_VECTORS, BY_MEANING, BY_WORDS = 0, 1, 2, 3
# More than the rounding of a cosine in float32.
SLACK = 1e-6


def recall(view: Any, plan: Any, asking: Any, work: Any, hits: Any) -> Any:
    """Write the hits of each question; returns `DONE`, or why not."""
    if plan.by_vector == 1 and not scan(view, plan, asking, work):
        return AT_SCAN
    for query in range(asking.counting.shape[0]):
        slices = find_words(view, asking, query, work, hits)
        m = gather(view, plan, asking, query, slices, work, hits)
        if m < 0:
            return m
        if plan.shared == 1:
            if m * asking.counting.shape[0] > work.known_rows.shape[0]:  # the pools have equal shares of the memory
                work.needed[0] = m
                return ROOM
            keep_apart(query, m, work, hits)
            continue
        learn(view, plan, asking, query, slices, m, work, hits)
        changed = plan.changes > 0 and put_changes_first(view, plan, asking, query, m, work)
        if plan.least_confidence > 0:
            weigh_all(view, plan, asking, query, slices, m, work.table, work, hits)
        count = choose(view, plan, m, changed, work)
        weigh_chosen(view, plan, asking, query, slices, m, count, work.table, work, hits)
        write_hits(view, plan, query, m, count, changed, work, hits)
        if plan.standing > 0 and view.standing.shape[0] > 0:
            bring_standing(view, plan, asking, query, slices, m, count, work.table, work, hits)
    if plan.shared == 1:
        return recall_together(view, plan, asking, work, hits)
    return DONE


def recall_together(view: Any, plan: Any, asking: Any, work: Any, hits: Any) -> Any:
    """Write the hits of a question with its sub-questions: each candidate of any is measured for all of them."""
    m, question = join_pools(view, asking, work, hits), np.int64(0)
    for query in range(asking.counting.shape[0]):
        slices = find_words(view, asking, query, work, hits)
        m = measure_pool(view, plan, asking, query, slices, m, work, hits)
        if m < 0:
            return m
        learn(view, plan, asking, query, slices, m, work, hits)
        keep_measured(query, m, work)
    fuse_pools(view, asking.counting.shape[0], m, work)
    changed = plan.changes > 0 and put_changes_first(view, plan, asking, question, m, work)
    if plan.least_confidence > 0:
        for query in range(asking.counting.shape[0]):
            slices = find_words(view, asking, query, work, hits)
            weigh_all(view, plan, asking, query, slices, m, work.pool[query], work, hits)
    count = choose(view, plan, m, changed, work)
    for last in range(asking.counting.shape[0]):
        query = asking.counting.shape[0] - 1 - last  # the question itself last: its words are those of standing records
        slices = find_words(view, asking, query, work, hits)
        weigh_chosen(view, plan, asking, query, slices, m, count, work.pool[query], work, hits)
    write_hits(view, plan, question, m, count, changed, work, hits)
    name_reasons(plan, m, count, changed, work, hits)
    if plan.standing > 0 and view.standing.shape[0] > 0:
        bring_standing(view, plan, asking, question, slices, m, count, work.pool[question], work, hits)
    return DONE


def find_words(view: Any, asking: Any, query: Any, work: Any, hits: Any) -> Any:
    """Write the IDF of one question's words and their postings, the rarest first; returns how many slices."""
    terms, places, order = view.terms, work.word_places, work.word_order
    first, stop, segments = asking.word_offsets[query], asking.word_offsets[query + 1], view.terms.segments.shape[0] - 1
    known = 0
    for at in range(first, stop):
        frequency, present = 0, False
        for segment in range(segments):
            end = terms.segments[segment + 1]
            places[at - first, segment] = -1
            if asking.numbers[at] < 0:
                continue
            place = find_row(terms.terms, terms.segments[segment], end, asking.numbers[at])
            if place < end:
                count = count_rows(terms, place, segment)
                present = present or count != ABSENT
                frequency += max(count, 0)
                places[at - first, segment] = place
        idf = smoothed_idf(terms.records, frequency, asking.shares[at])
        hits.idf[at], hits.known[at] = np.float32(idf), 1 if present else 0
        if present:
            place = known
            while place > 0 and hits.idf[first + order[place - 1]] < hits.idf[at]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = at - first
            known += 1
    slices = 0
    for rank in range(known):
        word = order[rank]
        for segment in range(segments):
            place = places[word, segment]
            if place >= 0:
                work.starts[slices] = terms.starts[place + segment]
                work.stops[slices] = terms.starts[place + segment + 1]
                work.words[slices], work.slice_idf[slices] = word, hits.idf[first + word]
                slices += 1
    work.slice_offsets[1], work.sizes[1] = slices, 0
    return slices


def smoothed_idf(records: Any, frequency: Any, share: Any) -> Any:
    """The IDF of a word from the number of the records that contain it, and its share of texts in general.

    Robertson-Sparck Jones with +1 inside the logarithm, as Lucene has it: never negative.
    """
    smoothed = np.minimum(frequency + PRIOR_RECORDS * share, records + PRIOR_RECORDS)
    return np.log1p((records + PRIOR_RECORDS - smoothed + 0.5) / (smoothed + 0.5))


def count_rows(terms: Any, place: Any, segment: Any) -> Any:
    """The number of rows of the corpus that have a term, or `ABSENT`; counted once if some rows are not part of it."""
    start, stop = terms.starts[place + segment], terms.starts[place + segment + 1]
    if terms.frequencies.shape[0] == 0:
        return stop - start
    if terms.frequencies[place] == UNCOUNTED:
        count = allowed_rows(terms.rows, start, stop, terms.counted)
        if count == 0 and (terms.present.shape[0] == 0 or allowed_rows(terms.rows, start, stop, terms.present) == 0):
            count = ABSENT
        terms.frequencies[place] = count
    return terms.frequencies[place]


def gather(view: Any, plan: Any, asking: Any, query: Any, slices: Any, work: Any, hits: Any) -> Any:
    """Rank the candidates of one question: the best by words and by vector, and their neighbours; returns how many."""
    listed, near = 0, 0
    work.ceiling[0] = np.float32(np.inf)
    if plan.by_vector == 1:
        if view.vectors.visible <= SCAN_ALL:
            near = best_by_vector(view, plan, asking.vectors[query], view.vectors.places, work)
        else:
            near = best_by_vector(
                view, plan, asking.vectors[query], work.held_rows[query][: work.counts[query]], work
            )  # fmt: skip
        if near < 0:
            return near if near == NARROW else AT_VECTORS
    if plan.by_words == 1:
        listed = best_by_words(view, postings_of(view, plan, slices, work), work)
        if listed < 0:
            return AT_WORDS
    hits.figures[query, FIGURES.more] = 1 if near >= plan.wanted or listed >= plan.wanted else 0
    lists = Lists(
        work.near_rows[:near], work.near_cosines[:near], work.word_rows[:listed], work.word_scores[:listed]
    )  # fmt: skip
    weigh_tokens(asking, query, work, hits)
    if plan.exhaustive == 0:
        return rank(view, plan, asking, query, slices, lists, plan.parameters, work)
    m = rank(view, plan, asking, query, slices, lists, varied(plan.parameters, 0.0, 0.0), work)
    if m < 0:
        return m
    best_bm25 = np.float64(work.word_scores[0]) if listed > 0 else 0.0
    return rank_every_row(view, plan, asking, query, slices, m, best_bm25, work)


def rank_every_row(
    view: Any, plan: Any, asking: Any, query: Any, slices: Any, m: Any, best_bm25: Any, work: Any
) -> Any:
    """Rank the candidates with every other row whose weighted sum reaches that of the last of the best."""
    floor = last_score(view, plan, m, work)
    if plan.least_of == SIGNALS.score:
        floor = max(floor, plan.least - 1e-9)
    for i in range(m):
        work.known_rows[i] = work.rows[i]
        work.known_cosines[i] = np.float32(work.table[SIGNALS.cosine, i])
        work.known_bm25[i] = np.float32(work.table[SIGNALS.bm25, i])
    more = rows_within_reach(view, plan, asking, query, slices, m, floor, best_bm25, work)
    if 2 * m + more > work.known_rows.shape[0]:  # rows that are known stand in both lists
        work.needed[0] = 2 * m + more
        return ROOM
    for i in range(more):
        work.known_cosines[m + i] = np.float32(np.nan)
    lists = Lists(
        work.known_rows[: m + more], work.known_cosines[: m + more], work.known_rows[:m], work.known_bm25[:m]
    )  # fmt: skip
    return rank(view, plan, asking, query, slices, lists, plan.parameters, work)


def last_score(view: Any, plan: Any, m: Any, work: Any) -> Any:
    """The score of the last of the best `top`, or -inf where there are fewer; `choose` counts sources alike."""
    count = 0
    for place in range(m):
        if count == plan.top:
            break
        if plan.grouped == 0 or not of_chosen_source(view, work, count, place):
            work.places[count] = place
            count += 1
    return work.table[SIGNALS.score, work.order[work.places[count - 1]]] - 1e-9 if count == plan.top else -np.inf


def rank(
    view: Any, plan: Any, asking: Any, query: Any, slices: Any, lists: Any, parameters: Any, work: Any
) -> Any:  # fmt: skip
    """Measure, fuse, rerank, spread, weigh and order the candidates of some lists; returns how many."""
    return rank_candidates(
        lists, codes_of(view, plan, asking, query, work), postings_of(view, plan, slices, work), view.graph,
        view.records, parameters, work.rerank[:0], mentions_of(asking, query), tokens_of(view, asking, query, work),
        work, work.rows, work.order, work.ranked, work.table,
    )  # fmt: skip


def varied(parameters: Any, neighbours: Any, named: Any) -> Any:
    """The parameters of a ranking in which nothing joins the candidates, and these shares of weights count."""
    p = parameters
    return RankParameters(
        p.vector_weight, p.keyword_weight, p.rrf_k, 0 * p.expansion_depth, neighbours * p.neighbor_weight,
        neighbours * p.source_weight, p.near, p.far, p.lone_share, p.clock, p.half_life_days, p.decay_floor,
        p.exponential, p.importance_weight,
        p.keyword_fallback, p.weighted_sum, p.semantic_weight, p.recency_weight, p.ranked_share,
        named * p.speaker_weight, named * p.date_weight, p.rerank_weight, p.rerank_depth,
    )  # fmt: skip


def postings_of(view: Any, plan: Any, slices: Any, work: Any) -> Any:
    """The postings of the question's words."""
    terms = view.terms
    return Postings(
        terms.rows, terms.counts, work.starts[:slices], work.stops[:slices], work.slice_idf[:slices],
        work.slice_offsets, terms.lengths, terms.average_length, plan.k1, plan.b,
    )  # fmt: skip


def codes_of(view: Any, plan: Any, asking: Any, query: Any, work: Any) -> Any:
    """The question's vector, and what it is compared with."""
    vectors = view.vectors
    return Codes(
        asking.vectors[query], work.ceiling[0], vectors.first_place, vectors.parts, vectors.codes, vectors.scales,
        vectors.residuals[: plan.exact * vectors.residuals.shape[0]],
    )  # fmt: skip


def mentions_of(asking: Any, query: Any) -> Any:
    """The words and times that the question names."""
    first, stop = asking.word_offsets[query], asking.word_offsets[query + 1]
    begin, end = asking.span_offsets[query], asking.span_offsets[query + 1]
    return Mentions(
        asking.numbers[first:stop], asking.begins[begin:end], asking.ends[begin:end], asking.fades[begin:end]
    )


def weigh_tokens(asking: Any, query: Any, work: Any, hits: Any) -> None:
    """Write the share of each token of a question, of sum 1: the IDF of its rarest word, 0 for words that do not count.

    The first of `sizes` is the number of tokens, 0 if no token has a word.
    """
    first, begin, end = asking.word_offsets[query], asking.token_offsets[query], asking.token_offsets[query + 1]
    total, weights = 0.0, work.token_weights
    for token in range(begin, end if asking.vectors.shape[1] > 0 else begin):
        most: Any = np.float32(0.0)
        for at in range(asking.token_word_offsets[token], asking.token_word_offsets[token + 1]):
            most = max(most, hits.idf[first + asking.token_words[at]])
        weights[token - begin] = most
        total += most
    for token in range(end - begin if total > 0 else 0):
        weights[token] = np.float32(weights[token] / total)
    work.sizes[0] = end - begin if total > 0 else 0


def tokens_of(view: Any, asking: Any, query: Any, work: Any) -> Any:
    """The codes of the question's tokens, and those that they are compared with; none if vectors have no tokens."""
    begin, count = asking.token_offsets[query], work.sizes[0] if view.vectors.token_starts.shape[0] > 0 else 0
    return Tokens(
        asking.token_codes[begin : begin + count], work.token_weights[:count], view.vectors.token_starts,
        view.vectors.token_codes, asking.width,
    )  # fmt: skip


def slices_of(view: Any, asking: Any, query: Any, slices: Any, work: Any, hits: Any) -> Any:
    """The postings of the question's words, by word."""
    return WordSlices(
        view.terms.rows, work.starts[:slices], work.stops[:slices], work.words[:slices],
        hits.idf[asking.word_offsets[query] : asking.word_offsets[query + 1]],
        asking.roles[asking.word_offsets[query] : asking.word_offsets[query + 1]],
    )  # fmt: skip


def learn(view: Any, plan: Any, asking: Any, query: Any, slices: Any, m: Any, work: Any, hits: Any) -> None:
    """Put the best `depth` candidates in the order of the forest; their scores are dealt out in that order."""
    copied(work.table[SIGNALS.score], work.formula, m)
    if plan.depth > 0 and m > 0:
        words = slices_of(view, asking, query, slices, work, hits)
        rank_by_forest(
            work.table, m, work.rows, work.order, words, plan.forest, plan.parameters, plan.depth, work.features,
            work.outputs, work.marks, work.whole[3], work.double[6],
        )  # fmt: skip


def choose(view: Any, plan: Any, m: Any, changed: Any, work: Any) -> Any:
    """Write the places in the order of the candidates that are hits, at most `limit`; returns how many."""
    count = 0
    for place in range(m):
        if count == plan.limit:
            break
        if not reaches(plan, work.table, work.order, place, work.sure):
            continue
        lead = work.changed[1, place] if changed and place < plan.changes else -1
        if plan.omit == 1 and lead >= 0 and reaches(plan, work.table, work.order, lead, work.sure):
            continue
        if plan.grouped == 1 and of_chosen_source(view, work, count, place):
            continue
        work.places[count] = place
        count += 1
    return count


def reaches(plan: Any, signals: Any, order: Any, place: Any, sure: Any) -> Any:
    """Whether a candidate reaches the least score and confidence; ranks that are fused take one, or a neighbour's."""
    at = order[place]
    if plan.ranked == 1 and not signals[SIGNALS.spread, at] > 0:
        return False
    if signals[plan.least_of, at] < plan.least:
        return False
    return plan.least_confidence <= 0 or sure[place] >= plan.least_confidence


def of_chosen_source(view: Any, work: Any, count: Any, place: Any) -> Any:
    """Whether a hit before it has the source of the candidate at a place."""
    source = view.graph.sources[work.rows[work.order[place]]]
    for rank in range(count if source >= 0 else 0):
        if view.graph.sources[work.rows[work.order[work.places[rank]]]] == source:
            return True
    return False


def put_weighed(view: Any, i: Any, row: Any, rank: Any, signals: Any, at: Any, work: Any) -> None:
    """Put a row among those that are weighed as answers."""
    work.weighed_rows[i], work.weighed_lengths[i], work.weighed_ranks[i] = row, view.terms.lengths[row], rank
    for signal in range(signals.shape[0]):
        work.weighed[signal, i] = signals[signal, at]


def weigh_all(
    view: Any, plan: Any, asking: Any, query: Any, slices: Any, m: Any, signals: Any, work: Any, hits: Any
) -> None:
    """Write the confidence of every candidate by place; of several questions with one answer the best counts."""
    for place in range(m):
        at = work.order[place]
        rank = work.pool_ranks[query, at] if plan.shared == 1 else np.float64(place)
        put_weighed(view, place, work.rows[at], rank, signals, at, work)
    weigh(view, plan, asking, query, slices, m, m, signals, hits.contained[query], work, hits)
    for place in range(m):
        before = work.sure[place] if query > 0 and plan.shared == 1 else 0.0
        work.sure[place] = max(before, work.confidence[place])


def weigh_chosen(
    view: Any, plan: Any, asking: Any, query: Any, slices: Any, m: Any, count: Any, signals: Any, work: Any, hits: Any
) -> None:
    """Write the confidence of the hits, the words that they contain, and the best confidence."""
    contained, first = hits.contained[query], asking.word_offsets[query]
    for rank in range(count):
        at = work.order[work.places[rank]]
        place = work.pool_ranks[query, at] if plan.shared == 1 else np.float64(work.places[rank])
        put_weighed(view, rank, work.rows[at], place, signals, at, work)
        for word in range(contained.shape[1]):
            contained[rank, word] = 0
    weigh(view, plan, asking, query, slices, m, count, signals, contained, work, hits)
    hits.sure[query] = -1.0
    for rank in range(count):
        hits.confidence[query, rank] = work.confidence[rank]
        hits.sure[query] = max(hits.sure[query], work.confidence[rank])
        for word in range(asking.word_offsets[query + 1] - first):
            if contained[rank, word] == 1:
                hits.known[first + word] = 2


def weigh(
    view: Any, plan: Any, asking: Any, query: Any, slices: Any, m: Any, count: Any, signals: Any, contained: Any,
    work: Any, hits: Any,
) -> None:  # fmt: skip
    """Weigh rows as answers to a question, beside its candidates."""
    kind = BY_WORDS
    if plan.by_vector == 1:
        kind = BY_MEANING
        if asking.word_offsets[query] < asking.word_offsets[query + 1]:
            kind = BY_TOKENS if any_above(signals[SIGNALS.similarity], m) else BY_VECTORS
    weighed = Weighed(
        work.weighed_rows[:count], work.weighed, work.weighed_lengths[:count], work.weighed_ranks[:count],
        asking.counting[query], view.terms.records,
    )  # fmt: skip
    assess(
        signals, m, weighed, slices_of(view, asking, query, slices, work, hits), plan.weights[kind],
        plan.weights[BY_WORDS], plan.parameters, work.evidence, work.confidence, work.reasons, contained,
    )  # fmt: skip


def write_hits(view: Any, plan: Any, query: Any, m: Any, count: Any, changed: Any, work: Any, hits: Any) -> None:
    """Write the hits of a question."""
    hits.figures[query, FIGURES.hits], hits.figures[query, FIGURES.brought] = count, 0
    hits.figures[query, FIGURES.candidates] = m
    hits.figures[query, FIGURES.available] = m if plan.grouped == 0 else sources_of(view.graph.sources, work.rows, m)
    for rank in range(count):
        place = work.places[rank]
        at = work.order[place]
        row = work.rows[at]
        hits.rows[query, rank], hits.keys[query, rank] = row, view.records.keys[row]
        hits.scores[query, rank] = min(max(work.table[SIGNALS.score, at], 0.0), 1.0)
        hits.reasons[query, rank], hits.successors[query, rank] = work.reasons[rank], -1
        if changed and place < plan.changes:
            hits.reasons[query, rank] += CHANGED * work.changed[0, place]
            lead = work.changed[1, place]
            if lead >= 0 and not is_to_come(view, plan, row):
                hits.successors[query, rank] = view.records.keys[work.rows[work.order[lead]]]
        for signal in range(work.table.shape[0]):
            hits.signals[query, rank, signal] = work.table[signal, at]
        for standing in range(view.standing.shape[0] if plan.standing > 0 else 0):
            if view.standing[standing] == row:
                hits.reasons[query, rank] |= STANDING


def signals_at(signals: Any, i: Any) -> Any:
    """All signals of one candidate."""
    return (
        signals[0, i], signals[1, i], signals[2, i], signals[3, i], signals[4, i], signals[5, i], signals[6, i],
        signals[7, i], signals[8, i], signals[9, i], signals[10, i], signals[11, i],
    )  # fmt: skip


def greatest(values: Any, m: Any) -> Any:
    """The greatest of the first m values, 1 where none is above 0: what BM25 is divided by."""
    most = 0.0
    for i in range(m):
        most = max(most, values[i])
    return most if most > 0 else 1.0


def name_reasons(plan: Any, m: Any, count: Any, changed: Any, work: Any, hits: Any) -> None:
    """Write what the hits of a question with sub-questions owe their scores to, by the means of the signals."""
    best = greatest(work.table[SIGNALS.bm25], m)
    for rank in range(count):
        bits = reason_bits(signals_at(work.table, work.order[work.places[rank]]), best, plan.parameters)
        hits.reasons[0, rank] += np.int64(bits) - work.reasons[rank]


def bring_standing(
    view: Any, plan: Any, asking: Any, query: Any, slices: Any, m: Any, count: Any, signals: Any, work: Any, hits: Any
) -> None:
    """Write the standing instructions and preferences that apply to a question after its hits.

    Those apply that are near it, and instructions also where there are few. They come last, with their own confidence,
    score no more than the last hit before them, and take the place of the last hits where there are `final` of them.
    """
    measured = measure_standing(view, plan, asking, query, slices, work)
    if measured == 0:
        return
    for i in range(measured):
        at = find_row(work.rows, 0, m, work.other_rows[i])
        if at < m and work.rows[at] == work.other_rows[i]:  # weighed as the candidate that it is
            rank = work.pool_ranks[query, at] if plan.shared == 1 else rank_of(work.order, m, at)
            put_weighed(view, i, work.other_rows[i], rank, signals, at, work)
        else:
            put_weighed(view, i, work.other_rows[i], np.float64(m), work.other_table, i, work)
    weigh(view, plan, asking, query, slices, m, measured, signals, work.other_held, work, hits)
    brought = choose_standing(view, plan, measured, min(count, plan.final), query, work, hits)
    shown = min(count, plan.final - brought)
    most, best = hits.scores[query, shown - 1] if shown > 0 else 1.0, greatest(work.other_table[SIGNALS.bm25], measured)
    for rank in range(brought):
        at = work.changed[2, rank]
        row, place = work.other_rows[at], count + rank
        hits.rows[query, place], hits.keys[query, place] = row, view.records.keys[row]
        hits.scores[query, place] = min(max(work.other_table[SIGNALS.score, at], 0.0), most)
        hits.confidence[query, place], hits.successors[query, place] = work.confidence[at], -1
        bits = reason_bits(signals_at(work.other_table, at), best, plan.parameters)
        hits.reasons[query, place] = STANDING | np.int64(bits)
        for signal in range(work.other_table.shape[0]):
            hits.signals[query, place, signal] = work.other_table[signal, at]
    hits.figures[query, FIGURES.brought] = brought


def rank_of(order: Any, m: Any, at: Any) -> Any:
    """The place of a candidate in the order."""
    for place in range(m):
        if order[place] == at:
            return np.float64(place)
    return np.float64(m)


def measure_standing(view: Any, plan: Any, asking: Any, query: Any, slices: Any, work: Any) -> Any:
    """Measure the standing records that may apply to a question; returns how many, ascending by row."""
    few, near, count = few_instructions(view, plan), 0, 0
    if plan.by_vector == 1:
        near = nearest_standing(view, asking.vectors[query], LEAST_COSINE - CODE_ERROR, work)
    for standing in range(view.standing.shape[0]):
        row = view.standing[standing]
        wanted = few and view.instructions[standing] == 1
        for place in range(near):
            wanted = wanted or work.near_standing[place] == row
        if wanted:
            work.known_rows[count], work.known_cosines[count] = row, np.float32(np.nan)
            count += 1
    if count == 0:
        return 0
    work.sizes[0], work.ceiling[0] = 0, np.float32(np.inf)
    lists = Lists(work.known_rows[:count], work.known_cosines[:count], work.known_rows[:0], work.known_bm25[:0])
    fault = rank_candidates(
        lists, codes_of(view, plan, asking, query, work), postings_of(view, plan, slices, work), view.graph,
        view.records, varied(plan.parameters, 0.0, 1.0), work.rerank[:0], mentions_of(asking, query),
        tokens_of(view, asking, query, work), work, work.other_rows, work.other_order, work.other_ranked,
        work.other_table,
    )  # fmt: skip
    return 0 if fault < 0 else count


def few_instructions(view: Any, plan: Any) -> Any:
    """Whether there are so few standing instructions that all of them apply."""
    count = 0
    for place in range(view.instructions.shape[0]):
        count += view.instructions[place]
    return count <= plan.standing


def choose_standing(view: Any, plan: Any, measured: Any, count: Any, query: Any, work: Any, hits: Any) -> Any:
    """Write which of the measured apply and are no hits, the best by fused score first; returns how many fit."""
    few, count_chosen, fused = few_instructions(view, plan), 0, work.other_table[SIGNALS.fused]
    for place in range(measured):
        at = work.other_order[place]
        standing = find_row(view.standing, 0, view.standing.shape[0], work.other_rows[at])
        applies = work.other_table[SIGNALS.cosine, at] >= LEAST_COSINE or (few and view.instructions[standing] == 1)
        for rank in range(count):
            applies = applies and hits.rows[query, rank] != work.other_rows[at]
        if plan.least_confidence > 0:
            applies = applies and work.confidence[at] >= plan.least_confidence
        if plan.ranked == 1:
            applies = applies and work.other_table[SIGNALS.spread, at] > 0
        if applies and not work.other_table[plan.least_of, at] < plan.least:
            rank = count_chosen
            while rank > 0 and fused[work.changed[2, rank - 1]] < fused[at]:
                work.changed[2, rank] = work.changed[2, rank - 1]
                rank -= 1
            work.changed[2, rank] = at
            count_chosen += 1
    return min(count_chosen, max(plan.final - count, plan.final // SHARE), plan.standing)


def keep_apart(query: Any, m: Any, work: Any, hits: Any) -> None:
    """Keep the candidates of one of several questions, and what was measured of them."""
    hits.figures[query, FIGURES.candidates] = m
    for i in range(m):
        work.pool_rows[query, i] = work.rows[i]
    for signal in (SIGNALS.cosine, SIGNALS.rerank, SIGNALS.similarity):
        copied(work.table[signal], work.pool[query, signal], m)


def join_pools(view: Any, asking: Any, work: Any, hits: Any) -> Any:
    """Write the candidates of any question to `known_rows`, ascending; returns how many."""
    total, m, rows = 0, 0, work.known_rows
    for query in range(asking.counting.shape[0]):
        for i in range(hits.figures[query, FIGURES.candidates]):
            rows[total] = work.pool_rows[query, i]
            total += 1
    sort_rows(rows[:total], work.whole[2], work.bytes, view.terms.lengths.shape[0])
    for i in range(total):
        if m == 0 or rows[m - 1] != rows[i]:
            rows[m] = rows[i]
            m += 1
    return m


def measure_pool(
    view: Any, plan: Any, asking: Any, query: Any, slices: Any, m: Any, work: Any, hits: Any
) -> Any:  # fmt: skip
    """Rank all candidates for one question, with what is known of them; returns how many."""
    candidates, at = hits.figures[query, FIGURES.candidates], 0
    for i in range(m):
        measured = at < candidates and work.pool_rows[query, at] == work.known_rows[i]
        work.known_cosines[i] = np.float32(work.pool[query, SIGNALS.cosine, at] if measured else np.nan)
        work.rerank[i] = work.pool[query, SIGNALS.rerank, at] if measured else 0.0
        work.sure[i] = work.pool[query, SIGNALS.similarity, at] if measured else 0.0
        at += 1 if measured else 0
    work.sizes[0], work.ceiling[0] = 0, np.float32(np.inf)
    lists = Lists(work.known_rows[:m], work.known_cosines[:m], work.known_rows[:0], work.known_bm25[:0])
    p = plan.parameters
    fault = rank_candidates(
        lists, codes_of(view, plan, asking, query, work), postings_of(view, plan, slices, work), view.graph,
        view.records, varied(p, 1.0, 1.0), work.rerank[:m], mentions_of(asking, query),
        tokens_of(view, asking, query, work), work, work.rows, work.order, work.ranked, work.table,
    )  # fmt: skip
    copied(work.sure, work.table[SIGNALS.similarity], m)
    return AT_RANK if fault < 0 else m


def keep_measured(query: Any, m: Any, work: Any) -> None:
    """Keep the signals and the ranks of all candidates for one question."""
    for signal in range(work.table.shape[0]):
        copied(work.table[signal], work.pool[query, signal], m)
    for place in range(m):
        work.pool_ranks[query, work.order[place]] = place


def fuse_pools(view: Any, questions: Any, m: Any, work: Any) -> None:
    """Write the means of the signals for the question and for the sub-question that each candidate answers best.

    With the best of all of them instead, the 254 long requests of RealMem lost 0.05 of recall@20: a sub-question is
    often small talk, which some record met well.
    """
    for i in range(m):
        best = 1
        for query in range(2, questions):
            if work.pool[query, SIGNALS.score, i] > work.pool[best, SIGNALS.score, i]:
                best = query
        for signal in range(work.table.shape[0]):
            work.table[signal, i] = (work.pool[0, signal, i] + work.pool[best, signal, i]) / 2
    order_by_score(work.table[SIGNALS.score, :m], view.records.keys, work.rows, work.order[:m], work.whole[2])


def composed(stages: Mapping[str, Any], compiled: Callable[[Callable[..., Any]], Any]) -> Callable[..., Any]:
    """`recall` with the stages of a backend; `compiled` is applied to each function that it calls."""
    space = {**stages, **vars(changes), **globals(), "__name__": stages["__name__"]}
    functions = [step for step in space.values() if isinstance(step, FunctionType)]
    for function in functions:
        if function.__module__ in (__name__, changes.__name__) and function not in (composed, recall):
            space[function.__name__] = compiled(FunctionType(function.__code__, space, function.__name__))
    return FunctionType(recall.__code__, space, recall.__name__)
