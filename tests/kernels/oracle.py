"""The definitions, as slow float64 loops. Imports nothing of ours: this is what both backends are held to."""

from __future__ import annotations

import math
from functools import reduce
from itertools import pairwise
from operator import add


def sketch(vectors):
    rows = []
    for vector in vectors:
        words = [0] * -(-len(vector) // 64)
        for j, value in enumerate(vector):
            if value > 0:
                words[j // 64] |= 1 << (j % 64)
        rows.append(words)
    return rows


def hamming(query, sketches):
    return [sum((a ^ b).bit_count() for a, b in zip(query, words, strict=True)) for words in sketches]


def max_sim(query, weights, codes, offsets, dimension):
    scores = []
    for i in range(len(offsets) - 1):
        tokens = codes[offsets[i] : offsets[i + 1]]
        alike = [[1 - 2 * distance / dimension for distance in hamming(token, tokens)] for token in query]
        scores.append(
            math.fsum(float(w) * max(row) for w, row in zip(weights, alike, strict=True)) if len(tokens) else 0.0
        )
    return scores


def nearest(distances, rows, size):
    return sorted(rows, key=lambda row: (distances[row], row))[:size]


def dot(a, b):
    return math.fsum(float(x) * float(y) for x, y in zip(a, b, strict=True))


def cosine(a, b):
    norms = math.sqrt(dot(a, a)) * math.sqrt(dot(b, b))
    return dot(a, b) / norms if norms > 0 else 0.0


def pool_tokens(codes, scales, token_ids, offsets):
    vectors = []
    for start, stop in pairwise(offsets):
        tokens = [int(token) for token in token_ids[start:stop]]
        summed = [math.fsum(float(scales[v]) * int(codes[v][j]) for v in tokens) for j in range(len(codes[0]))]
        length = math.sqrt(dot(summed, summed))
        vectors.append([value / length if length > 0 else 0.0 for value in summed])
    return vectors


def int8_cosine(query, codes, scale):
    return min(1.0, max(-1.0, dot(query, codes) * float(scale)))


def ranked(scores, mask, k):
    allowed = [row for row in range(len(scores)) if mask is None or mask[row]]
    return sorted(allowed, key=lambda row: (-scores[row], row))[:k]


def impact(idf, tf, length, average, k1, b):
    return idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average)) if tf else 0.0


def bm25(rows, counts, starts, ends, idf, slice_offsets, lengths, average, k1, b):
    """The scores of all documents, by query."""
    scores = []
    for first, last in pairwise(slice_offsets):
        scores.append([0.0] * len(lengths))
        for s in range(first, last):
            for p in range(starts[s], ends[s]):
                row = rows[p]
                scores[-1][row] += impact(float(idf[s]), float(counts[p]), float(lengths[row]), average, k1, b)
    return scores


def word_coverage(rows, starts, ends, words, slice_offsets, idf, offsets, candidates):
    carried, met = [0.0] * len(candidates), [0] * len(idf)
    for query, (start, stop) in enumerate(pairwise(offsets)):
        for c in range(start, stop):
            for s in range(slice_offsets[query], slice_offsets[query + 1]):
                if candidates[c] in rows[starts[s] : ends[s]]:
                    carried[c] += float(idf[words[s]])
                    met[words[s]] = 1
    return carried, met


def invert(term_ids, counts, offsets, first_row):
    postings = {}
    for i in range(len(offsets) - 1):
        for p in range(offsets[i], offsets[i + 1]):
            postings.setdefault(int(term_ids[p]), []).append((first_row + i, int(counts[p])))
    terms = sorted(postings)
    starts, flat = [0], []
    for term in terms:
        flat += postings[term]
        starts.append(len(flat))
    return terms, starts, [row for row, _ in flat], [count for _, count in flat]


def weighted_fusion(signals, weights, normalise, offsets):
    total = sum(weights)
    out = [0.0] * len(signals[0])
    for start, stop in pairwise(offsets):
        for signal, weight, scaled in zip(signals, weights, normalise, strict=True):
            greatest = max(signal[start:stop], default=0.0) if scaled else 1.0
            for i in range(start, stop):
                out[i] += weight / total * (signal[i] / greatest if greatest > 0 else 0.0)
    return out


def reciprocal_rank_fusion(ranks, weights, k):
    return [
        sum(weight / (k + rank[i]) for rank, weight in zip(ranks, weights, strict=True) if rank[i])
        for i in range(len(ranks[0]))
    ]


def rank_fusion(cosines, bm25, keys, weights, k, share):
    """RRF over what has a rank, normalised to [0.4, 1.0]; 0.4 for weaker evidence, 0 for none."""
    least = share * max([0.0, *cosines])
    fused, evidence = [0.0] * len(keys), [False] * len(keys)
    for values, weight, floor in zip((cosines, bm25), weights, (least, 0.0), strict=True):
        if weight > 0:
            ranked = sorted(
                (i for i, v in enumerate(values) if v > 0 and v >= floor), key=lambda i: (-values[i], keys[i])
            )
            for rank, i in enumerate(ranked, 1):
                fused[i] += weight / sum(weights) / (k + rank)
            evidence = [known or value > 0 for known, value in zip(evidence, values, strict=True)]
    scores = iter(normalise_scores([score for score in fused if score > 0], 0.4, 1.0))
    return [next(scores) if score > 0 else 0.4 * known for score, known in zip(fused, evidence, strict=True)]


def normalise_scores(scores, low, high):
    if not scores:
        return []
    least, greatest = min(scores), max(scores)
    if least == greatest:
        return [high] * len(scores)
    return [low + (high - low) * ((score - least) / (greatest - least)) for score in scores]


def decay(age, half_life, floor, form):
    lives = max(age, 0.0) / half_life
    return max(floor, 0.5**lives if form == "half_life" else math.exp(-lives))


def weighted_sum(similarity, recency, importance, *weights):
    parts = min(max(similarity, 0.0), 1.0), recency, importance
    return math.fsum(weight / sum(weights) * part for weight, part in zip(weights, parts, strict=True))


def jaccard(a, b):
    return len(a & b) / len(a | b) if a and b else 0.0


def maximal_marginal_relevance(relevance, sets, mmr_lambda, k):
    chosen = []
    while len(chosen) < min(k, len(relevance)):
        best, most = -1, -math.inf
        for i in range(len(relevance)):
            if i not in chosen:
                similar = max((jaccard(sets[i], sets[j]) for j in chosen), default=0.0)
                gain = mmr_lambda * relevance[i] - (1 - mmr_lambda) * similar
                if gain > most:
                    best, most = i, gain
        chosen.append(best)
    return chosen


def join_candidates(first_rows, first_values, first_counts, second_rows, second_values, second_counts):
    offsets, joined = [0], []
    for query in range(len(first_rows)):
        signals = {}
        for place, (rows, values, counts) in enumerate(
            [(first_rows, first_values, first_counts), (second_rows, second_values, second_counts)]
        ):
            for row, value in list(zip(rows[query], values[query], strict=True))[: counts[query]]:
                signals.setdefault(row, [math.nan, math.nan])[place] = value
        joined += [(row, *signals[row]) for row in sorted(signals)]
        offsets.append(len(joined))
    return offsets, joined


def two_beside(row, chain):
    """The rows one and two places away."""
    found = []
    while len(found) < 2 and chain[row] >= 0:
        row = chain[row]
        found.append(row)
    return found


def links_of(row, heads, nexts, targets):
    """Places and targets of a row's links; removed ones are left out."""
    place = heads[row]
    while place >= 0:
        if targets[place] >= 0:
            yield place, targets[place]
        place = nexts[place]


def expand_candidates(
    offsets, rows, first, second, scores, best, previous, following, heads, nexts, targets, allowed
):  # fmt: skip
    wider, joined = [0], []
    for start, stop in pairwise(offsets):
        signals = {rows[i]: (rows[i], first[i], second[i]) for i in range(start, stop)}
        for i in sorted(range(start, stop), key=lambda i: (-scores[i], rows[i]))[:best]:
            beside = two_beside(rows[i], previous) + two_beside(rows[i], following)
            beside += [target for _, target in links_of(rows[i], heads, nexts, targets)]
            for row in beside:
                if allowed[row]:
                    signals.setdefault(row, (row, math.nan, math.nan))
        joined += [signals[row] for row in sorted(signals)]
        wider.append(len(joined))
    return wider, joined


def order_by_score(offsets, scores, keys):
    order = []
    for start, stop in pairwise(offsets):
        order += sorted(range(stop - start), key=lambda i: (-scores[start + i], keys[start + i]))
    return order


def spread_activation(
    offsets, rows, scores, previous, following, sources, heads, nexts, targets, strengths, allowed, near, far
):  # fmt: skip
    by_chain, by_link, best_three, company = [], [], [], []
    for start, stop in pairwise(offsets):
        score_of = {rows[i]: scores[i] for i in range(start, stop)}
        for row in rows[start:stop]:
            reached, linked, neighbours = [0.0], [-1.0], 0
            for chain in (previous, following):
                for other, weight in zip(two_beside(row, chain), (near, far), strict=False):
                    if allowed[other]:
                        neighbours += 1
                        reached.append(weight * score_of.get(other, 0.0))
            for place, other in links_of(row, heads, nexts, targets):
                if allowed[other] and other in score_of:
                    linked.append(float(strengths[place]) * score_of[other])
            members = sorted((score_of[other] for other in score_of if sources[other] == sources[row]), reverse=True)
            by_chain.append(max(reached))
            by_link.append(max(linked))
            # From Python 3.12 on sum() compensates; the definition adds from the best down.
            best_three.append(reduce(add, members[:3], 0.0) if sources[row] >= 0 else 0.0)
            company.append(min(3, 1 + neighbours))
    return by_chain, by_link, best_three, company
