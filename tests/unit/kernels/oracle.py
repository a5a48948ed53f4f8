"""The definitions, as slow float64 loops. Imports nothing of ours: this is what both backends are held to."""

from __future__ import annotations

import math
from functools import reduce
from itertools import pairwise
from operator import add

NEVER, AUTHORITY_STEP, OVER_STEP = 2**63 - 1, 2**59, 2**58


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


def max_sim(query, weights, tokens, width):
    alike = [[1 - 2 * distance / width for distance in hamming(token, tokens)] for token in query]
    return math.fsum(float(w) * max(row) for w, row in zip(weights, alike, strict=True))


def rerank(rows, fused, codes, tokens, chosen):
    """The score that reranking adds to each candidate, and the MaxSim of each, 0 where it is not measured."""
    best = sorted(range(len(rows)), key=lambda i: (-fused[i], i))[: chosen.rerank_depth]
    added, alike = [0.0] * len(rows), {}
    for i in best if tokens.queries else ():
        held, words = [], len(tokens.queries[0])
        for place in range(codes.first_place[rows[i]], codes.first_place[rows[i]] + codes.parts[rows[i]]):
            own = tokens.codes[tokens.starts[place] : tokens.starts[place + 1]]
            held += [own[at : at + words] for at in range(0, len(own), words)]
        if held:
            alike[i] = max_sim(tokens.queries, tokens.weights, held, tokens.width)
    for i, value in alike.items():
        added[i] = chosen.rerank_weight * (value - math.fsum(alike.values()) / len(alike))
    return added, [alike.get(i, 0.0) for i in range(len(rows))]


def forest_scores(candidates, nodes, thresholds, leaves):
    scores = []
    for features in candidates:
        score = 0.0
        for asked, least, values in zip(nodes, thresholds, leaves, strict=True):
            at = 0
            while at < len(asked):
                at = 2 * at + (2 if features[asked[at]] > least[at] else 1)
            score += values[at - len(asked)]
        scores.append(score)
    return scores


def order_changes(stated, began, moment, former):
    """The order of candidates, best first before, and the place of what replaced each; (frame, value) pairs of each."""
    n = len(stated)
    values = [{f: {v for g, v in own if g == f} for f, _ in own if f} for own in stated]
    leads = []
    for i in range(n):
        latest = [max((j for j in range(n) if f in values[j]), key=lambda j: began[j]) for f in values[i]]
        replaced = [j for j, f in zip(latest, values[i], strict=True) if not values[i][f] & values[j][f]]
        leads.append(max(replaced, key=lambda j: began[j]) if replaced and len(replaced) == len(latest) else -1)
    newest = sorted(range(n), key=lambda i: began[i], reverse=True)
    if former:
        ranks = [i for i in newest if leads[i] >= 0] + [i for i in newest if leads[i] < 0]
    else:
        ranks = [i for i in newest if began[i][0] <= moment] + [i for i in newest[::-1] if began[i][0] > moment]
    order = []
    for i in range(n):
        if i in order:
            continue
        before = []
        for f in values[i]:
            ahead = [j for j in ranks[: ranks.index(i)] if f in values[j] and j not in order + before]
            if any(not values[i][f] & values[j][f] for j in ahead):
                before += ahead
        order += [*before, i]
    return order, leads


def began(row, records, asked, clock):
    """When what a record states began to hold, in the order of changes; `asked`: the moment asked about."""
    happened, created = records.moments[row], records.created_at[row]
    if records.resolved[row]:
        happened = records.moments_until[row] if asked != NEVER else created
    to_come = not records.resolved[row] and records.moments[row] > clock
    return min(happened, created) - records.authorities[row] * AUTHORITY_STEP - to_come * OVER_STEP


def evidence(query):
    """A list of 16 numbers for each record to weigh, a dict, beside the other candidates."""
    rows, words = [], query["words"]
    alike = [each["similarity"] for each in query["candidates"] if each["similarity"]]
    mean = sum(alike) / len(alike) if alike else 0.0
    for one in query["weighed"]:

        def other(name, one=one):
            best = [*sorted([each[name] for each in query["candidates"]], reverse=True)[:2], 0.0, 0.0]
            return best[1] if one[name] >= best[0] else best[0]

        rows.append(
            [
                max(one["cosine"], 0.0),
                min(max(one["cosine"], 0.0), 0.3),
                one["coverage"] if words else 0.0,
                math.log(1 + one["bm25"]) if words else 0.0,
                one["similarity"] or mean,
                math.log(1 + min(one["length"], 64)),
                one["speaker"],
                math.log(1 + one["rank"]),
                max(other("cosine"), 0.0),
                math.log(1 + other("bm25")) if words else 0.0,
                other("similarity") or mean,
                other("speaker"),
                math.log(min(max(query["records"], 1), 4096)),
                math.log(1 + min(words, 12)),
                *(one[name] if words else 0.0 for name in ("content", "unnamed")),
            ]
        )
    return rows


def confidence(evidence, weights):
    """The logistic function of weighted evidence; the last weight is the bias."""
    logit = sum(weight * value for weight, value in zip(weights, evidence, strict=False)) + weights[-1]
    return 1 / (1 + math.exp(-logit))


def reasons(own, best_bm25, options):
    """What a record, a dict of signals, owes its score to, as a set of names."""
    whole = options["vector_weight"] + options["keyword_weight"]
    keyword = options["keyword_weight"] / whole * own["bm25"] / best_bm25
    if options["keyword_fallback"] and own["cosine"] == 0:
        keyword = max(keyword, own["fused"] - own["rerank"])
    shares = {
        "semantic": max(options["vector_weight"] / whole * own["cosine"], 0),
        "keyword": keyword,
        "rerank": max(own["rerank"], 0),
        "session": max(own["spread_gain"] - own["linked"], 0),
        "link": own["linked"],
    }
    named = {name for name, share in shares.items() if share > 0 and share >= 0.1 * sum(shares.values())}
    aging = options["half_life_days"] < math.inf
    if options["weighted_sum"]:
        total = options["semantic_weight"] + options["recency_weight"] + options["importance_weight"]
        relevance = options["semantic_weight"] / total * min(max(own["spread"], 0), 1)
        if not (relevance > 0 and relevance >= 0.1 * own["score"]):
            named = set()
        aging = aging and options["recency_weight"] > 0
    named |= {name for name in ("speaker", "date") if options[f"{name}_weight"] > 0 and own[name] > 0}
    return named | {"recency"} if aging and own["decay"] > 0.5 else named


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


def features(own, best, coverage):
    """What a forest is asked about a candidate: its signals, beside the best of its query by each."""
    gap = {name: own[name] - best[name] for name in own}
    return [
        own["cosine"], gap["cosine"], own["bm25"], own["bm25"] / max(best["bm25"], 1e-9), coverage,
        own["speaker"], gap["speaker"], own["rerank"], gap["rerank"], own["fused"], gap["fused"],
        own["spread_gain"], gap["spread_gain"], own["linked"], own["spread"], gap["spread"],
    ]  # fmt: skip


def unseen(own, parameters):
    dated = 1 + parameters["date_weight"] * own["date"]
    told = own["spread"] * (1 + parameters["speaker_weight"] * own["speaker"]) * dated
    others = own["score"] / told if told > 0 else own["decay"]
    return math.floor((4 * math.log(max(others, 1e-9)) + 12 * math.log(dated)) * 2**42 + 0.5) / 2**42


def reordered(order, outputs, coverage):
    """The best of a query by descending output; the first stays first if it alone has all words."""
    complete = [share > 0.999 for share in coverage]
    ranks = sorted(range(len(outputs)), key=lambda rank: (-outputs[rank], rank))
    if sum(complete) == 1 and complete[0]:
        ranks = [0, *(rank for rank in ranks if rank)]
    return [*(order[rank] for rank in ranks), *order[len(outputs) :]]


def word_coverage(rows, starts, ends, words, idf, roles, candidates):
    """The IDF of what each candidate has of all words, of content and of names; and which words."""
    carried, contained = [], []
    for candidate in candidates:
        own = [word for start, end, word in zip(starts, ends, words, strict=True) if candidate in rows[start:end]]
        kinds = own, [word for word in own if roles[word] == 1], [word for word in own if roles[word] == 2]
        carried.append([sum(float(idf[word]) for word in kind) for kind in kinds])
        contained.append([int(word in own) for word in range(len(idf))])
    return carried, contained


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


def join(one, other):
    """Rows of two lists, ascending, with the value that each list gives them."""
    signals = {}
    for place, (rows, values) in enumerate([one, other]):
        for row, value in zip(rows, values, strict=True):
            signals.setdefault(row, [math.nan, math.nan])[place] = value
    return {row: signals[row] for row in sorted(signals)}


def two_beside(row, chain):
    """The rows one and two places away."""
    found = []
    while len(found) < 2 and chain[row] >= 0:
        row = chain[row]
        found.append(row)
    return found


def links_of(row, graph):
    """Strengths and targets of a row's links; removed ones are left out."""
    place = graph.heads[row]
    while place >= 0:
        if graph.targets[place] >= 0:
            yield graph.strengths[place], graph.targets[place]
        place = graph.nexts[place]


def allowed(row, graph):
    return not graph.mask or graph.mask[row] != 0


def expand(rows, scores, best, graph):
    """The rows and the allowed neighbours of the best by score, ascending."""
    wider = set(rows)
    for i in sorted(range(len(rows)), key=lambda i: (-scores[i], rows[i]))[:best]:
        beside = two_beside(rows[i], graph.previous) + two_beside(rows[i], graph.following)
        wider |= {row for row in (*beside, *(row for _, row in links_of(rows[i], graph))) if allowed(row, graph)}
    return sorted(wider)


def spread_activation(rows, scores, graph, near, far):
    """The strongest by chain and by link, the source's best three, and how many neighbours there are, by candidate."""
    score_of = dict(zip(rows, scores, strict=True))
    out = []
    for row in rows:
        reached, linked, neighbours = [0.0], [-1.0], 0
        for chain in (graph.previous, graph.following):
            for other, weight in zip(two_beside(row, chain), (near, far), strict=False):
                if allowed(other, graph):
                    neighbours += 1
                    reached.append(weight * score_of.get(other, 0.0))
        for strength, other in links_of(row, graph):
            if allowed(other, graph) and other in score_of:
                linked.append(strength * score_of[other])
        source = graph.sources[row]
        members = sorted((score_of[other] for other in rows if graph.sources[other] == source), reverse=True)
        # From Python 3.12 on sum() compensates; the definition adds from the best down.
        best_three = 0.0 if source == -1 else reduce(add, members[:3], 0.0)
        out.append((max(reached), max(linked), best_three, min(3, 1 + neighbours)))
    return out


def fuse(rows, cosine, bm25, parts, keys, chosen):
    """The fused score of each candidate; `parts` is by row, None where no cosine can be measured."""
    weights = chosen.vector_weight, chosen.keyword_weight
    if chosen.rrf_k >= 0:
        return rank_fusion(cosine, bm25, [keys[row] for row in rows], weights, chosen.rrf_k, chosen.ranked_share)
    greatest = max([0.0, *bm25])
    fused = []
    for row, by_vector, words in zip(rows, cosine, bm25, strict=True):
        by_words = words / greatest if greatest > 0 else 0.0
        bare = parts is None or parts[row] == 0
        both = (weights[0] * by_vector + weights[1] * by_words) / sum(weights)
        fused.append(by_words if chosen.keyword_fallback and bare else both)
    return fused


def measure(known, codes, postings):
    """Cosine and BM25 of rows of which some are known, as [cosine, bm25] by row."""
    (whole,) = bm25(*postings)
    signals = {}
    for row, (cosine_, words) in known.items():
        if math.isnan(cosine_):
            places = range(codes.first_place[row], codes.first_place[row] + codes.parts[row]) if codes else ()
            every = [int8_cosine(codes.query, codes.codes[at], codes.scales[at]) for at in places]
            cosine_ = min(max(every, default=0.0), codes.ceiling) if codes else 0.0
        signals[row] = cosine_, whole[row] if math.isnan(words) else words
    return signals


def candidates(lists, codes, postings, graph, keys, chosen):
    """The candidates, ascending, with cosine and BM25."""
    known = join((lists.vector_rows, lists.cosines), (lists.keyword_rows, lists.bm25))
    signals = measure(known, codes, postings)
    if chosen.expansion_depth:
        rows, parts = list(signals), codes.parts if codes else None
        fused = fuse(rows, *map(list, zip(*signals.values(), strict=True)), parts, keys, chosen) if rows else []
        wider = expand(rows, fused, chosen.expansion_depth, graph)
        signals = measure({row: signals.get(row, (math.nan, math.nan)) for row in wider}, codes, postings)
    return signals


def order_by_score(scores, keys):
    return sorted(range(len(scores)), key=lambda i: (-scores[i], keys[i]))


def mentioned(row, records, mentions):
    """Whether a question names the speaker of a record, and how well the record's time fits the times that it names."""
    if mentions is None:
        return 0.0, 0.0
    speaker = 1.0 if any(name in mentions.names for name in records.speakers[row]) else 0.0
    moment, until, date = records.moments[row], records.moments_until[row], 0.0
    moments = [moment, records.created_at[row]] if records.resolved[row] else [moment]
    for begin, end, fade in zip(mentions.begins, mentions.ends, mentions.fades, strict=True):
        if until != NEVER:
            date = max(date, max(min(until, end) - max(moment, begin), 0) / (until - moment))
        for each in moments:
            if begin <= each < end and (each != moment or until == NEVER):
                date = 1.0
            elif end <= each < end + fade:
                date = max(date, 1.0 - (each - end) / fade)
    return speaker, date


def score(rows, cosine, bm25, rerank, alike, parts, graph, records, mentions, chosen):
    """Every later signal of the candidates, as rows of the order of the kernel's, and their places in order."""
    fused = [a + b for a, b in zip(fuse(rows, cosine, bm25, parts, records.keys, chosen), rerank, strict=True)]
    own = [max(value, 0.0) for value in fused]
    near, source = chosen.neighbor_weight, chosen.source_weight
    reached = spread_activation(rows, own, graph, chosen.near, chosen.far)
    columns = []
    for i, (by_chain, by_link, best_three, neighbourhood) in enumerate(reached):
        spread, gain, linked = fused[i], 0.0, 0.0
        if near > 0 or source > 0:
            alone = chosen.lone_share * own[i] if neighbourhood == 1 else 0.0
            gain = near * max(by_chain, by_link) + source * (0.0 if neighbourhood == 1 else best_three / neighbourhood)
            missing = source * alone + (near * alone if by_link < 0 else 0.0)
            spread = (fused[i] + gain + missing) / (1 + near + source)
            linked = near * by_link if by_link > by_chain else 0.0
        age = (chosen.clock - records.created_at[rows[i]]) / 86_400_000_000
        fresh = decay(age, chosen.half_life_days, chosen.decay_floor, "exp" if chosen.exponential else "half_life")
        value = records.importance[rows[i]]
        speaker, date = mentioned(rows[i], records, mentions)
        named = spread * (1 + chosen.speaker_weight * speaker) * (1 + chosen.date_weight * date)
        weights = chosen.semantic_weight, chosen.recency_weight, chosen.importance_weight
        if chosen.weighted_sum:
            final = weighted_sum(named, fresh, value, *weights)
        else:
            final = named * fresh * (1 + chosen.importance_weight * (2 * value - 1))
        columns.append(
            (cosine[i], bm25[i], speaker, date, rerank[i], alike[i], fused[i], spread, gain, linked, fresh, final)
        )
    order = sorted(range(len(rows)), key=lambda i: (-columns[i][-1], records.keys[rows[i]]))
    return [list(row) for row in zip(*columns, strict=True)], order


def distinct_chunks(texts, folds):
    """Bytes of the distinct chunks with a space behind each, the numbers of those of each text, and offsets."""
    known, numbers, offsets = [], [], [0]
    for text in texts:
        read = [folds[byte] for byte in text]
        chunk = []
        for place, byte in enumerate([*read, 32]):
            if byte != 32:
                chunk.append(byte)
                continue
            if place < len(read) and chunk[-1:] == [ord(",")]:
                chunk.pop()
            if place < len(read) and chunk[-1:] == [ord(".")]:
                chunk.pop()
            if chunk:
                if chunk not in known:
                    known.append(chunk)
                numbers.append(known.index(chunk))
            chunk = []
        offsets.append(len(numbers))
    return [byte for chunk in known for byte in [*chunk, 32]], numbers, offsets


def sum_ngrams(texts, weights, shortest, longest):
    bits, found = len(weights).bit_length() - 1, []
    for text in texts:
        own = [0] * len(weights[0])
        for size in range(shortest, longest + 1):
            for begin in range(len(text) - size + 1):
                code = 1
                for character in text[begin : begin + size]:
                    code = (code ^ character % 2**64) * 0x9E3779B97F4A7C15 % 2**64
                own = [a + b for a, b in zip(own, weights[code >> 64 - bits], strict=True)]
        found.append(own)
    return found


def count_words(records, entries, flags):
    """A dict for each record: the byte of each of its words, in order of first occurrence."""
    every = []
    for record in records:
        listed = [(word, flags[entry]) for entry in record for word in entries[entry]]
        own = {}
        for word, _ in listed:
            kinds = [flag for other, flag in listed if other == word]
            count = min(sum(flag != 128 for flag in kinds), 63)
            only_tags = 64 in kinds and 0 not in kinds
            own[word] = count + 64 * only_tags + 128 * (128 in kinds)
        every.append(own)
    return every


def pack_ascending(numbers):
    """The differences of one list."""
    out, before = [], 0
    for number in numbers:
        left = number - before
        while left > 65535:
            out.append(0)
            left -= 65535
        out.append(left)
        before = number
    return out
