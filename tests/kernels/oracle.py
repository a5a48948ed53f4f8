"""The definitions, as slow float64 loops. Imports nothing of ours: this is what both backends are held to."""

from __future__ import annotations

import math
from itertools import pairwise


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
    return [sum(bin(int(a) ^ int(b)).count("1") for a, b in zip(query, words, strict=True)) for words in sketches]


def max_sim(query, weights, codes, offsets, dimension):
    scores = []
    for i in range(len(offsets) - 1):
        tokens = codes[offsets[i] : offsets[i + 1]]
        alike = [[1 - 2 * distance / dimension for distance in hamming(token, tokens)] for token in query]
        scores.append(
            math.fsum(float(w) * max(row) for w, row in zip(weights, alike, strict=True)) if len(tokens) else 0.0
        )
    return scores


def nearest(distances, mask, m):
    allowed = [row for row in range(len(distances)) if mask is None or mask[row]]
    return sorted(allowed, key=lambda row: (distances[row], row))[:m]


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


def ranked(scores, mask, k):
    allowed = [row for row in range(len(scores)) if mask is None or mask[row]]
    return sorted(allowed, key=lambda row: (-scores[row], row))[:k]


def impact(idf, tf, length, average, k1, b):
    return idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average)) if tf else 0.0


def bm25(rows, counts, starts, ends, idf, lengths, average, k1, b):
    scores = [0.0] * len(lengths)
    for start, end, weight in zip(starts, ends, idf, strict=True):
        for p in range(start, end):
            row = rows[p]
            scores[row] += impact(float(weight), float(counts[p]), float(lengths[row]), average, k1, b)
    return scores


def bm25_forward(term_ids, counts, offsets, query_terms, idf, lengths, average, k1, b):
    scores = []
    for i, length in enumerate(lengths):
        score = 0.0
        for p in range(offsets[i], offsets[i + 1]):
            for term, weight in zip(query_terms, idf, strict=True):
                if term == term_ids[p]:
                    score += impact(float(weight), float(counts[p]), float(length), average, k1, b)
        scores.append(score)
    return scores


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


def weighted_fusion(signals, weights, normalise):
    total = sum(weights)
    out = [0.0] * len(signals[0])
    for signal, weight, scaled in zip(signals, weights, normalise, strict=True):
        if scaled:
            greatest = max(signal, default=0.0)
            signal = [value / greatest if greatest > 0 else 0.0 for value in signal]
        for i, value in enumerate(signal):
            out[i] += weight / total * value
    return out


def reciprocal_rank_fusion(ranks, weights, k):
    return [
        sum(weight / (k + rank[i]) for rank, weight in zip(ranks, weights, strict=True) if rank[i])
        for i in range(len(ranks[0]))
    ]


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


def spread(scores, offsets, targets, strengths):
    return [
        max([0.0, *(strengths[e] * scores[targets[e]] for e in range(offsets[i], offsets[i + 1]))])
        for i in range(len(scores))
    ]


def spread_chain(scores, rows, previous, following, mask, near, far):
    score_of = dict(zip(rows, scores, strict=True))
    strongest, company = [], []
    for row in rows:
        reached, neighbours = [0.0], 0
        for links in (previous, following):
            at = row
            for weight in (near, far):
                at = links[at]
                if at < 0:
                    break
                if mask[at]:
                    neighbours += 1
                    reached.append(weight * score_of.get(at, 0.0))
        strongest.append(max(reached))
        company.append(min(3, 1 + neighbours))
    return strongest, company


def group_top_mean(scores, groups, top, by_top):
    out = []
    for group in groups:
        if group == -1:
            out.append(0.0)
            continue
        members = sorted((s for s, g in zip(scores, groups, strict=True) if g == group), reverse=True)[:top]
        out.append(sum(members) / (top if by_top else len(members)))
    return out
