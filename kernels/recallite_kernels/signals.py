"""The signals of a candidate and how they become one score: the only definition, used by both backends.

The formulas work on whole arrays and on single numbers: the Python backend calls them with the arrays of a query, the
JIT backend compiles them into its loop. To add a signal, name it in `Signals`, return its value from `later_signals`,
and give its weight a field in `RankParameters`: recall fills a field from the profile's option of the same name.
"""

# Annotations are not postponed: a NamedTuple compiles each that is text, 3 ms of every process.
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Values: TypeAlias = Any
"""float64 arrays (m,), or float64 numbers in the loop of the JIT."""
Numbers: TypeAlias = Any
"""A list of Python numbers, or an array in the JIT."""
DAY_US = 86_400_000_000.0


class Signals(NamedTuple):
    """The row of each signal in an array float64 (signals, candidates). From `spread` on `later_signals` gives them.

    - cosine, bm25: as measured
    - speaker: 1 where the query names the context of the record, a speaker above all, else 0
    - date: the share of the record's time that is of a time that the query names, less and less soon after it, else 0
    - rerank: what token-level reranking adds to the fused score
    - similarity: the MaxSim of the tokens, 0 where it was not measured
    - fused: of cosine and BM25, with `rerank`
    - spread: the score after spreading activation
    - spread_gain: what neighbours, links and source add, on the scale of `fused`; linked: the links' part of it
    - decay: the weight of age
    - score: what orders the hits
    """

    cosine: int = 0
    bm25: int = 1
    speaker: int = 2
    date: int = 3
    rerank: int = 4
    similarity: int = 5
    fused: int = 6
    spread: int = 7
    spread_gain: int = 8
    linked: int = 9
    decay: int = 10
    score: int = 11


SIGNALS = Signals()


# More than this was not in the data that weights are fitted on, and counts as this.
MOST_LENGTH, MOST_RECORDS, MOST_WORDS = 64.0, 4096.0, 12.0
MOST_NEAR = 0.3
COMPARED = (SIGNALS.cosine, SIGNALS.bm25, SIGNALS.similarity, SIGNALS.speaker)


class Evidence(NamedTuple):
    """The row of each kind of evidence in an array float64 (evidence, candidates).

    - cosine: 0 for a negative one; near: of at most 0.3, for the first steps of it say more than the later
    - coverage: the share of the query's IDF mass that the record contains
    - bm25: ln(1 + BM25)
    - similarity: MaxSim of the tokens; where it was not measured, the mean of the query's candidates
    - length: ln(1 + words of the record), of at most 64
    - speaker: whether the query names the record's speaker
    - rank: ln(1 + candidates that score more)
    - other_cosine, other_bm25, other_similarity, other_speaker: the same of the best other candidate, 0 without one
    - records: ln(records of the store), of at most 4,096
    - words: ln(1 + words of the query), of at most 12
    - content: the share of the IDF mass of the words that the query is about that the record contains
    - unnamed: the share of the query's IDF mass that names and numbers have which the record does not contain

    A query whose words count as 0 has neither coverage nor BM25, nor any of the last two.
    """

    cosine: int = 0
    near: int = 1
    coverage: int = 2
    bm25: int = 3
    similarity: int = 4
    length: int = 5
    speaker: int = 6
    rank: int = 7
    other_cosine: int = 8
    other_bm25: int = 9
    other_similarity: int = 10
    other_speaker: int = 11
    records: int = 12
    words: int = 13
    content: int = 14
    unnamed: int = 15


EVIDENCE = Evidence()


class Features(NamedTuple):
    """The row of each feature in an array float64 (features, candidates): what a forest ranks by.

    A gap is the distance to the best of all candidates of the query, 0 or less.

    - cosine, cosine_gap: the signal
    - bm25: the signal; bm25_share: divided by the best
    - coverage: the share of the query's IDF mass that the record contains
    - speaker, speaker_gap, rerank, rerank_gap, fused, fused_gap: the signals
    - gain, gain_gap: the signal `spread_gain`; linked: the signal
    - spread, spread_gap: the signal
    """

    cosine: int = 0
    cosine_gap: int = 1
    bm25: int = 2
    bm25_share: int = 3
    coverage: int = 4
    speaker: int = 5
    speaker_gap: int = 6
    rerank: int = 7
    rerank_gap: int = 8
    fused: int = 9
    fused_gap: int = 10
    gain: int = 11
    gain_gap: int = 12
    linked: int = 13
    spread: int = 14
    spread_gap: int = 15


FEATURES = Features()
# What a factor of age or importance adds to a forest's output, and what a date that the query names adds: this times
# its logarithm. With 4 for dates too, "What did Ada say in May?" found another month first in 57 of 96 made-up
# questions, with 12 in none; at 16 the month won over the topic.
UNSEEN_WEIGHT, DATE_WEIGHT = 4.0, 12.0
# In steps of a power of two: hits of equal leaves and factors then keep the formula's order, whatever rounds below it.
# Fine enough that ages a microsecond apart are steps apart: coarser ones would reorder them as time goes on.
UNSEEN_STEPS = 2.0**42


class RankParameters(NamedTuple):
    """The numbers of a ranking.

    - vector_weight, keyword_weight: shares of cosine and of BM25 divided by the query's maximum
    - rrf_k: 0 or more fuses by reciprocal rank instead; -1 does not. A cosine or a BM25 of 0 or less has no rank, nor
      has a cosine below `ranked_share` of the query's best. The scores of ranked candidates are normalised to
      [0.4, 1.0]; an unranked one gets 0.4 where a weighted signal is above 0, else 0
    - expansion_depth: the neighbours of this many of the best become candidates
    - neighbor_weight, source_weight: shares of the strongest neighbour and of the source's best three; `near` and
      `far` are what a neighbour one and two places away passes on; a record without neighbours gets `lone_share` of
      its own score in their place
    - clock: the moment ages are measured from, microseconds; half_life_days (infinite: no decay), decay_floor,
      exponential (1: e^(-age / half_life), 0: 0.5^(age / half_life))
    - rerank_weight, rerank_depth: weight of token similarity, and how many of the best by `fused` it is measured for
    - importance_weight: importance 1 multiplies by 1 + weight, importance 0 by 1 - weight
    - keyword_fallback: 1 uses BM25 divided by the query's maximum as the fused score of a record without a cosine;
      not with rrf_k
    - weighted_sum: 1 adds instead of multiplying: semantic_weight times the score after spreading, cut to [0, 1],
      recency_weight times the decay and importance_weight times the importance, the weights divided by their sum
    - speaker_weight, date_weight: a signal of 1 multiplies the score after spreading by 1 + weight
    """

    vector_weight: float
    keyword_weight: float
    rrf_k: float
    expansion_depth: int
    neighbor_weight: float
    source_weight: float
    near: float
    far: float
    lone_share: float
    clock: int
    half_life_days: float
    decay_floor: float
    exponential: int
    importance_weight: float
    keyword_fallback: int = 0
    weighted_sum: int = 0
    semantic_weight: float = 0.0
    recency_weight: float = 0.0
    ranked_share: float = 0.0
    speaker_weight: float = 0.0
    date_weight: float = 0.0
    rerank_weight: float = 0.0
    rerank_depth: int = 0


def weighted_fusion(cosine: Values, bm25_share: Values, has_vector: Values, parameters: RankParameters) -> Values:
    """The fused score of a cosine and of BM25 divided by the query's maximum; `has_vector` is 1.0 or 0.0."""
    total = parameters.vector_weight + parameters.keyword_weight
    fused = parameters.vector_weight / total * cosine + parameters.keyword_weight / total * bm25_share
    if parameters.keyword_fallback == 1:
        return has_vector * fused + (1.0 - has_vector) * bm25_share
    return fused


def rank_fusion(
    cosine: Numbers, bm25: Numbers, cosine_order: Numbers, bm25_order: Numbers, parameters: RankParameters,
    fused: Numbers,
) -> None:  # fmt: skip
    """Write the fused scores of one query's candidates by reciprocal rank; the orders are those of their values."""
    total = parameters.vector_weight + parameters.keyword_weight
    vector_weight, keyword_weight = parameters.vector_weight / total, parameters.keyword_weight / total
    for i in range(len(cosine)):
        fused[i] = 0.0
    _add_ranks(cosine, cosine_order, parameters.ranked_share, vector_weight, parameters.rrf_k, fused)
    _add_ranks(bm25, bm25_order, 0.0, keyword_weight, parameters.rrf_k, fused)
    least, greatest = np.inf, 0.0
    for i in range(len(cosine)):
        if fused[i] > 0:
            least, greatest = min(least, fused[i]), max(greatest, fused[i])
    for i in range(len(cosine)):
        if fused[i] > 0:
            fused[i] = 1.0 if greatest == least else 0.4 + 0.6 * ((fused[i] - least) / (greatest - least))
        elif (vector_weight > 0 and cosine[i] > 0) or (keyword_weight > 0 and bm25[i] > 0):
            fused[i] = 0.4


def _add_ranks(values: Numbers, order: Numbers, share: float, weight: float, rrf_k: float, fused: Numbers) -> None:
    """Add weight / (rrf_k + rank), ranks from 1, for values above 0 that reach `share` of the best."""
    if weight > 0 and len(order):
        least = share * max(values[order[0]], 0.0)
        for rank in range(len(order)):
            value = values[order[rank]]
            if value <= 0 or value < least:
                break
            fused[order[rank]] += weight / (rrf_k + (rank + 1))


def later_signals(
    fused: Values, by_chain: Values, by_link: Values, best_three: Values, neighbourhood: Values, age_days: Values,
    importance: Values, speaker: Values, date: Values, parameters: RankParameters,
) -> tuple[Values, ...]:  # fmt: skip
    """The signals from `spread` on.

    Of what reaches a candidate: the strongest neighbour's score by chain, and by link (-1: no link leads to a
    candidate), the sum of the source's best three scores, and min(3, 1 + allowed rows within two places in the chain).
    """
    neighbor, source = parameters.neighbor_weight, parameters.source_weight
    link = np.maximum(by_link, 0.0)
    lonely = neighbourhood == 1.0
    gain = neighbor * np.maximum(by_chain, link) + source * ((1.0 - lonely) * (best_three / neighbourhood))
    substitute = lonely * (parameters.lone_share * np.maximum(fused, 0.0))
    missing = source * substitute + neighbor * ((by_link < 0.0) * substitute)
    spread = (fused + gain + missing) / (1.0 + neighbor + source)
    linked = (link > by_chain) * (neighbor * link)
    fresh = decay(age_days, parameters.half_life_days, parameters.decay_floor, parameters.exponential)
    named = spread * ((1.0 + parameters.speaker_weight * speaker) * (1.0 + parameters.date_weight * date))
    if parameters.weighted_sum == 1:
        score = (
            parameters.semantic_weight * np.minimum(np.maximum(named, 0.0), 1.0)
            + parameters.recency_weight * fresh
            + parameters.importance_weight * importance
        )
    else:
        score = named * fresh * (1.0 + parameters.importance_weight * (2.0 * importance - 1.0))
    return spread, gain, linked, fresh, score


def decay(age_days: Values, half_life_days: float, floor: float, exponential: int) -> Values:
    """0.5^(age / half_life), or e^(-age / half_life), and never below the floor; a negative age counts as 0."""
    lives = np.maximum(age_days, 0.0) / half_life_days
    if exponential == 1:
        return np.maximum(np.exp(-lives), floor)
    return np.maximum(np.exp2(-lives), floor)


def date_signal(moments: Values, lasting: Values, begin: Values, end: Values, fade: Values) -> Values:
    """The share of a record's time from `begin` to before `end`, then falling to 0 within `fade`.

    All float64, in microseconds. A record's time begins at its moment and lasts `lasting`; 0 is a moment.
    """
    shared = np.minimum(moments + lasting, end) - np.maximum(moments, begin)
    share = np.minimum(np.maximum(shared, 0.0) / np.maximum(lasting, 1.0), 1.0)
    within = (lasting <= 0.0) * (moments >= begin) * (moments < end) + (lasting > 0.0) * share
    late = np.minimum(np.maximum(moments - end, 0.0) / np.maximum(fade, 1.0), 1.0)
    return np.maximum(within, (moments >= end) * (moments < end + fade) * (1.0 - late))


REASONS = ("semantic", "keyword", "rerank", "speaker", "date", "session", "link", "recency")
"""The reasons that a candidate may owe its score to; `reason_bits` has bit i for REASONS[i]."""
# A signal is named when it makes up at least this share of the score before recency and importance.
NAMED_SHARE = 0.1


def reason_bits(signals: Values, best_bm25: Values, parameters: RankParameters) -> Values:
    """The reasons that candidates owe their scores to, as the bits of `REASONS`.

    `signals` are in the order of `Signals`, `best_bm25` is the best of the question's, 1 if that is 0. In a weighted
    sum the relevance has to have its share of the sum too.
    """
    weights = parameters.vector_weight + parameters.keyword_weight
    cosine, rerank, linked = signals[SIGNALS.cosine], signals[SIGNALS.rerank], signals[SIGNALS.linked]
    semantic = parameters.vector_weight / weights * np.maximum(cosine, 0.0)
    keyword = parameters.keyword_weight / weights * signals[SIGNALS.bm25] / best_bm25
    if parameters.keyword_fallback == 1:  # BM25 is all that a record without a vector has
        bare = 1.0 * (cosine == 0.0)
        keyword = bare * np.maximum(keyword, signals[SIGNALS.fused] - rerank) + (1.0 - bare) * keyword
    reranked, session = np.maximum(rerank, 0.0), np.maximum(signals[SIGNALS.spread_gain] - linked, 0.0)
    least = NAMED_SHARE * (semantic + keyword + reranked + session + linked)
    bits = (
        1 * ((semantic > 0) & (semantic >= least))
        + 2 * ((keyword > 0) & (keyword >= least))
        + 4 * ((reranked > 0) & (reranked >= least))
        + 32 * ((session > 0) & (session >= least))
        + 64 * ((linked > 0) & (linked >= least))
    )
    aging = parameters.half_life_days < np.inf
    if parameters.weighted_sum == 1:
        total = parameters.semantic_weight + parameters.recency_weight + parameters.importance_weight
        relevance = parameters.semantic_weight / total * np.minimum(np.maximum(signals[SIGNALS.spread], 0.0), 1.0)
        bits = bits * ((relevance > 0) & (relevance >= NAMED_SHARE * signals[SIGNALS.score]))
        aging = aging and parameters.recency_weight > 0
    if parameters.speaker_weight > 0:
        bits = bits + 8 * (signals[SIGNALS.speaker] > 0)
    if parameters.date_weight > 0:
        bits = bits + 16 * (signals[SIGNALS.date] > 0)
    return bits + 128 * (signals[SIGNALS.decay] > 0.5) if aging else bits


def evidence_of(
    record: Sequence[Values], other: Sequence[Values], shares: Sequence[Values], length: Values, rank: Values,
    words: Values, mean_similarity: Values, records: Values,
) -> tuple[Values, ...]:  # fmt: skip
    """Every kind of evidence, in the order of `Evidence`.

    From the signals `COMPARED` of a record and of the best other candidate, each by each. `mean_similarity` stands for
    a MaxSim that was not measured. `shares` are coverage, content and unnamed.
    """
    counts = words > 0.0
    return (
        np.maximum(record[0], 0.0),
        np.minimum(np.maximum(record[0], 0.0), MOST_NEAR),
        counts * shares[0],
        counts * np.log1p(record[1]),
        record[2] + (record[2] == 0.0) * mean_similarity,
        np.log1p(np.minimum(length, MOST_LENGTH)),
        record[3],
        np.log1p(rank),
        np.maximum(other[0], 0.0),
        counts * np.log1p(other[1]),
        other[2] + (other[2] == 0.0) * mean_similarity,
        other[3],
        np.log(np.minimum(np.maximum(records, 1.0), MOST_RECORDS)),
        np.log1p(np.minimum(words, MOST_WORDS)),
        counts * shares[1],
        counts * shares[2],
    )


def shares_of(covered: Sequence[Values], masses: Sequence[float]) -> tuple[Values, ...]:
    """Coverage, content and unnamed.

    `covered` is the IDF that a record has of all words of the query, of those that it is about and of names; `masses`
    that of the query.
    """
    mass, content = max(masses[0], 1e-12), max(masses[1], 1e-12)
    return covered[0] / mass, covered[1] / content, (masses[2] - covered[2]) / mass


def features_of(signals: Values, best: Values, coverage: Values) -> tuple[Values, ...]:
    """Every feature, in the order of `Features`, from a candidate's signals and the best of its query by each."""
    cosine, bm25, speaker, rerank = SIGNALS.cosine, SIGNALS.bm25, SIGNALS.speaker, SIGNALS.rerank
    fused, gain, spread = SIGNALS.fused, SIGNALS.spread_gain, SIGNALS.spread
    return (
        signals[cosine], signals[cosine] - best[cosine],
        signals[bm25], signals[bm25] / np.maximum(best[bm25], 1e-9),
        coverage,
        signals[speaker], signals[speaker] - best[speaker],
        signals[rerank], signals[rerank] - best[rerank],
        signals[fused], signals[fused] - best[fused],
        signals[gain], signals[gain] - best[gain],
        signals[SIGNALS.linked],
        signals[spread], signals[spread] - best[spread],
    )  # fmt: skip


def unseen(signals: Values, parameters: RankParameters) -> Values:
    """The part of a forest's output from factors of the score, but for the speaker, which is a feature."""
    dated = 1.0 + parameters.date_weight * signals[SIGNALS.date]
    named = signals[SIGNALS.spread] * (1.0 + parameters.speaker_weight * signals[SIGNALS.speaker]) * dated
    positive = named > 0.0
    factors = signals[SIGNALS.score] / (positive * named + (1.0 - positive))
    others = positive * factors + (1.0 - positive) * signals[SIGNALS.decay]
    added = UNSEEN_WEIGHT * np.log(np.maximum(others, 1e-9)) + DATE_WEIGHT * np.log(dated)
    return np.floor(added * UNSEEN_STEPS + 0.5) / UNSEEN_STEPS
