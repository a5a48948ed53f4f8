"""The arguments and results of a recall.

They are a view of the index, a plan, the questions, the memory it works in, and the hits. n is the number of rows of
the index, q that of questions, w that of their words, k the plan's limit.
"""

# Annotations are not postponed: a NamedTuple compiles each that is text, 3 ms of every process.
from typing import NamedTuple

import numpy as np

from recallite_kernels.arguments import Forest, Graph, Records
from recallite_kernels.contract import F32, F64, I8, I32, I64, U8, U16, U32, U64
from recallite_kernels.signals import EVIDENCE, FEATURES, SIGNALS, RankParameters

UNCOUNTED, ABSENT = -2, -1
"""Values in `Terms.frequencies`: not counted yet, and in no row that recall may show."""
SCAN_ALL = 4096
"""Up to this many visible vectors all int8 codes are measured: as fast as a shortlist by sketches."""
NEAREST = 16
"""Standing records that are measured for a question: the nearest."""
BINS = 4096
ROOM = 4096
"""Rows that a scan holds beyond those wanted before it drops the farthest."""


class Terms(NamedTuple):
    """The words of all rows.

    Segment s has terms[segments[s]:segments[s + 1]], int32, ascending; term i of it has the postings from
    starts[i + s] to starts[i + s + 1] of rows int32 and counts uint8. lengths float32 (n,) in words; `records` and
    `average_length` are those of the corpus that weighs words.

    frequencies int64 (terms,): the rows of each term that are part of that corpus, `UNCOUNTED` until a question has
    the term, `ABSENT` if none of its rows is `present` either. Empty if every row is part of it. counted uint8 (n,) is
    1 for the rows of the corpus; present uint8 (n,), or empty, for those that recall may show besides.
    """

    terms: I32
    starts: I64
    segments: I64
    rows: I32
    counts: U8
    lengths: F32
    average_length: float
    records: float
    frequencies: I64
    counted: U8
    present: U8


class Vectors(NamedTuple):
    """The vectors by place, and which of them are visible.

    sketches uint64 (blocks, words, 16); masks uint16 (blocks,) has the visible lanes of each block; places int64 lists
    the visible ones where they are few. first_place and parts: see `Codes`; owners int64 (places,) is the row of each
    vector, empty where vector i belongs to row i. Component j of vector p is (codes[p, j] + residuals[p, j] / 254) *
    scales[p]. The codes of a vector's tokens are
    token_codes[token_starts[p]:token_starts[p + 1]], both empty without.
    """

    sketches: U64
    masks: U16
    places: I64
    visible: int
    first_place: I64
    parts: I32
    owners: I64
    codes: I8
    scales: F32
    residuals: I8
    token_starts: I64
    token_codes: U64


class Stated(NamedTuple):
    """The statements of rows: frames uint32 (n, s, 2), each a thing and its value, 0 for none.

    positioned uint8 (n,) is 1 for a turn of a transcript; scopes int32 (n,); chains int64 (2, c) are rows,
    ascending, and what superseded each.
    """

    frames: U32
    positioned: U8
    scopes: I32
    chains: I64


class View(NamedTuple):
    """The index under one filter, the same until the index changes.

    `graph.mask` has the visible rows. standing int64, ascending, are the rows of visible standing instructions and
    preferences, and instructions uint8 says which are instructions.
    """

    terms: Terms
    vectors: Vectors
    graph: Graph
    records: Records
    stated: Stated
    standing: I64
    instructions: U8


class Plan(NamedTuple):
    """The work that a profile asks for. Flags are 0 or 1.

    - by_vector, by_words: whether candidates come from vectors, and from words
    - wanted: candidates by each; shortlist: sketches whose codes are measured
    - measured: how many of the nearest are measured exactly, which no other may then exceed; exact: measure all so
    - exhaustive: measure every visible row, to find the best `top` by a weighted sum, of one source each if `grouped`
    - depth: the best that the forest puts in order, 0 for none; changes: the best among which what holds goes first, 0
      for none; marked: superseded rows are among them
    - omit: leave out what another replaced; grouped: one hit a source
    - least, least_of: the least value of that signal; least_confidence; ranked: only what a signal ranks is a hit
    - shared: the questions are one with its sub-questions, which share candidates and an answer
    - limit: hits that are written, of which a caller takes `final`; at most `standing` are brought after them
    - k1, b: of BM25; parameters: of the ranking
    - weights float64 (4, evidence + 1): those of confidence by tokens, vectors, meaning and words
    """

    by_vector: int
    by_words: int
    wanted: int
    shortlist: int
    measured: int
    exact: int
    exhaustive: int
    top: int
    depth: int
    changes: int
    marked: int
    omit: int
    grouped: int
    least: float
    least_of: int
    least_confidence: float
    ranked: int
    shared: int
    limit: int
    final: int
    standing: int
    k1: float
    b: float
    parameters: RankParameters
    forest: Forest
    weights: F64


class Asking(NamedTuple):
    """Some questions.

    - vectors float32 (q, d) of unit length; without vectors d is 0
    - numbers int32 (w,) of their words, -2 for one that no record has, and shares float64 (w,), the share of texts that
      contain each, and roles uint8 (w,): `CONTENT`, `NAMED` or 0 for one that only asks; those of question i are from
      word_offsets[i] to word_offsets[i + 1], int64 (q + 1,)
    - counting float64 (q,): the number of its words that count
    - begins, ends, fades int64: the times that question i names, from span_offsets[i] to span_offsets[i + 1]
    - moments int64 (q,) and former uint8 (q,): see `Asked`; of what was before something, numbers int32 `before` of
      its words, from before_offsets[i] to before_offsets[i + 1]
    - token_codes uint64 (t, words) with token_offsets (q + 1,), of `width` bits; token i stands for the words
      token_words[token_word_offsets[i]:token_word_offsets[i + 1]], counted from the first of its question
    """

    vectors: F32
    numbers: I32
    shares: F64
    roles: U8
    word_offsets: I64
    counting: F64
    begins: I64
    ends: I64
    fades: I64
    span_offsets: I64
    moments: I64
    former: U8
    before: I32
    before_offsets: I64
    token_codes: U64
    token_offsets: I64
    token_words: I64
    token_word_offsets: I64
    width: int


class Hits(NamedTuple):
    """The hits of each question, best first: arrays of shape (q, k) and more.

    - rows and keys int64; successors int64: the key of the row that replaced a hit, -1 for none
    - scores, confidence float64; reasons int64: the bits of `REASONS`, `CHANGED` and `STANDING`
    - signals float64 (q, k, signals)
    - contained uint8 (q, k, longest question): the words that each hit contains
    - sure float64 (q,): the best confidence of a hit that is not a standing one, -1 without any
    - figures int64 (q, figures), in columns as `FIGURES` names them
    - idf float32 (w,) of each word, and known uint8 (w,): 1 where any record has it, 2 where a hit has it
    """

    rows: I64
    keys: I64
    successors: I64
    scores: F64
    confidence: F64
    reasons: I64
    signals: F64
    contained: U8
    sure: F64
    figures: I64
    idf: F32
    known: U8


class Figures(NamedTuple):
    """The column of each figure of a question: its hits; the standing ones that are `brought`, which follow them; its
    candidates; how many hits these could give; whether there may be more of them.
    """

    hits: int = 0
    brought: int = 1
    candidates: int = 2
    available: int = 3
    more: int = 4


FIGURES = Figures()


class Workspace(NamedTuple):
    """Memory for one call at a time: see `workspace`. What a call leaves in it is its trace.

    After a call with one question the first of its `FIGURES.candidates` are in `rows`, their signals in the columns of
    `table`, their places in `order`, best first, and their scores before learned ranking in `formula`; `features` are
    those of the best, `evidence` that of the hits.
    """

    scratch: F32
    sketch: U64
    held_rows: I64
    held_distances: U16
    limits: I64
    counts: I64
    histogram: I64
    near_blocks: U16
    word_places: I64
    word_order: I64
    starts: I64
    stops: I64
    words: I64
    slice_idf: F32
    slice_offsets: I64
    sizes: I64
    word_rows: I64
    word_scores: F32
    cosines: F32
    bins: I64
    sorted: I64
    bin_counts: I64
    near_rows: I64
    near_cosines: F32
    ceiling: F32
    known_rows: I64
    known_cosines: F32
    known_bm25: F32
    token_weights: F32
    rerank: F64
    whole: I64
    single: F32
    double: F64
    slots: I64
    best_three: F64
    slot_marks: U8
    beside: I64
    bytes: I64
    rows: I64
    order: I64
    ranked: F64
    table: F64
    formula: F64
    features: F64
    outputs: F64
    marks: U8
    stated: U32
    values: U32
    moments: I64
    keys: I64
    placed: U8
    changed: I64
    sure: F64
    places: I64
    weighed_rows: I64
    weighed: F64
    weighed_lengths: F32
    weighed_ranks: F64
    evidence: F64
    confidence: F64
    reasons: I64
    near_standing: I64
    near_scores: F32
    other_held: U8
    other_rows: I64
    other_order: I64
    other_ranked: F64
    other_table: F64
    pool: F64
    pool_rows: I64
    pool_ranks: F64
    needed: I64


def workspace(view: View, plan: Plan, questions: int, words: int, tokens: int, room: int) -> Workspace:
    """Memory for a number of questions, each with at most these words and tokens.

    `room` is for the candidates of one that are in no list: neighbours of the best, and rows within reach of a score.
    """
    n, visible = len(view.terms.lengths), view.vectors.visible if plan.by_vector else 0
    size = visible if visible <= SCAN_ALL else min(plan.shortlist, visible)
    capacity, segments = min(size + ROOM, visible), len(view.terms.segments) - 1
    words, tokens = max(words, 1), max(tokens, 1)
    sketch_words, slices = view.vectors.sketches.shape[1], max(1, words * segments)
    wanted = min(plan.wanted, n)
    some = NEAREST + plan.standing  # standing records are ranked in the memory for candidates
    listed = max((2 * wanted + room) * (questions if plan.shared else 1), some)
    table = 1 << (2 * listed).bit_length()
    k = min(plan.limit, listed)
    best = max(plan.depth, plan.changes, k, some)
    weighed = listed if plan.least_confidence > 0 else best
    frames = view.stated.frames.shape[1] + 1
    pool = (questions, len(SIGNALS), listed) if plan.shared else (0, len(SIGNALS), 0)
    e = np.empty
    whole, single = np.int64, np.float32
    return Workspace(
        scratch=np.zeros(n, single), sketch=e((questions, sketch_words), np.uint64),
        held_rows=e((questions, capacity), whole), held_distances=e((questions, capacity), np.uint16),
        limits=e(questions, whole), counts=e(questions, whole), histogram=e(64 * sketch_words + 2, whole),
        near_blocks=e(64, np.uint16), word_places=e((words, max(segments, 1)), whole),
        word_order=e(words, whole), starts=e(slices, whole), stops=e(slices, whole), words=e(slices, whole),
        slice_idf=e(slices, single), slice_offsets=np.zeros(2, whole), sizes=e(2, whole), word_rows=e(wanted, whole),
        word_scores=e(wanted, single), cosines=e(size, single), bins=e(size, whole), sorted=e(size, whole),
        bin_counts=e(BINS, whole), near_rows=e(max(wanted, 1), whole), near_cosines=e(max(wanted, 1), single),
        ceiling=e(1, single), known_rows=e(listed, whole), known_cosines=e(listed, single),
        known_bm25=e(listed, single), token_weights=e(tokens, single),
        rerank=e(listed), whole=e((5, listed), whole), single=e((4, listed), single), double=e((8, listed)),
        slots=e(table, whole), best_three=e((table, 3)), slot_marks=e(2 * table, np.uint8), beside=e((2, room), whole),
        bytes=e(256, whole), rows=e(listed, whole), order=e(listed, whole),
        ranked=e((listed, len(SIGNALS))), table=e((len(SIGNALS), listed)), formula=e(listed),
        features=e((len(FEATURES), best)), outputs=e(best), marks=e(words, np.uint8),
        stated=e((best, frames), np.uint32),
        values=e((best, frames), np.uint32), moments=e(best, whole), keys=e(best, whole), placed=e(best, np.uint8),
        changed=e((6, best), whole), sure=e(listed),
        places=e(max(weighed, plan.top), whole), weighed_rows=e(weighed, whole),
        weighed=e((len(SIGNALS), weighed)), weighed_lengths=e(weighed, single), weighed_ranks=e(weighed),
        evidence=e((len(EVIDENCE), weighed)), confidence=e(weighed), reasons=e(weighed, whole),
        near_standing=e(NEAREST, whole), near_scores=e(NEAREST, single),
        other_held=e((some, words), np.uint8),
        other_rows=e(some, whole), other_order=e(some, whole),
        other_ranked=e((some, len(SIGNALS))), other_table=e((len(SIGNALS), some)), pool=e(pool),
        pool_rows=e((pool[0], pool[2]), whole), pool_ranks=e((pool[0], pool[2])), needed=np.zeros(1, whole),
    )  # fmt: skip


def hits(plan: Plan, work: Workspace, questions: int, words: int, longest: int) -> Hits:
    """Memory for the hits of a number of questions, with the words of all and of the longest."""
    shape, e = (questions, min(plan.limit, len(work.rows)) + plan.standing), np.empty
    return Hits(
        rows=e(shape, np.int64), keys=e(shape, np.int64), successors=e(shape, np.int64), scores=e(shape),
        confidence=e(shape), reasons=e(shape, np.int64), signals=e((*shape, len(SIGNALS))),
        contained=e((*shape, max(longest, 1)), np.uint8), sure=e(questions),
        figures=np.zeros((questions, len(FIGURES)), np.int64),
        idf=e(words, np.float32), known=e(words, np.uint8),
    )  # fmt: skip
