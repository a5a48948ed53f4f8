"""What is said of records as answers: the evidence, the confidence that it gives, and what they owe their scores to."""

from __future__ import annotations

from typing import NamedTuple

from recallite_kernels import contract, dispatch
from recallite_kernels.arguments import Weighed, WordSlices
from recallite_kernels.contract import F64, I64, U8, array
from recallite_kernels.groups import check_group
from recallite_kernels.lexical import check_slices, refuse_disorder
from recallite_kernels.rank import check_parameters
from recallite_kernels.signals import EVIDENCE, SIGNALS, RankParameters


class Assessed(NamedTuple):
    """Records as answers.

    - evidence: float64 (evidence, m), in rows as `EVIDENCE` names them
    - confidence: float64 (m,), the logistic function of its weighted sum
    - reasons: int64 (m,), the bits of `REASONS`
    - held: uint8 (m, w), 1 for a word of its query that the record contains
    """

    evidence: F64
    confidence: F64
    reasons: I64
    held: U8


def assess(
    signals: F64, offsets: I64, weighed: Weighed, slices: WordSlices, weights: F64, word_weights: F64,
    parameters: RankParameters,
) -> Assessed:  # fmt: skip
    """Weigh records as answers to their queries.

    signals float64 (signals, n) of the candidates, of which query i has those from offsets[i] to offsets[i + 1]: each
    record is weighed beside the best other candidate of its query, by each signal. A record that is the best is weighed
    beside the second best. weights float64 (q, evidence + 1) has what each kind of evidence counts and, as the last,
    the bias; word_weights float64 (evidence + 1,) those for a record whose cosine is 0. Evidence that is not finite is
    refused. The rows of a slice must ascend.
    """
    weighed = check_group(weighed, Weighed, "weighed.")
    parameters = _check(signals, offsets, weighed, slices, weights, word_weights, parameters)
    found = Assessed(*dispatch.active.assess(signals, offsets, weighed, slices, weights, word_weights, parameters))
    contract.finite("evidence", found.evidence)
    return found


def _check(
    signals: F64, offsets: I64, weighed: Weighed, slices: WordSlices, weights: F64, word_weights: F64,
    parameters: RankParameters,
) -> RankParameters:  # fmt: skip
    array("signals", signals, contract.f64, len(SIGNALS), None)
    contract.finite("signals", signals)
    contract.offsets("offsets", offsets, signals.shape[1])
    queries = offsets.shape[0] - 1
    array("weighed.signals", weighed.signals, contract.f64, len(SIGNALS), None)
    size = weighed.signals.shape[1]
    contract.offsets("weighed.offsets", weighed.offsets, size, queries)
    contract.indices("weighed.rows", weighed.rows, 2**31, size)
    array("weighed.lengths", weighed.lengths, contract.f32, size)
    array("weighed.ranks", weighed.ranks, contract.f64, size)
    contract.real("weighed.records", weighed.records)
    for name in ("words", "unknown"):
        contract.finite(f"weighed.{name}", array(f"weighed.{name}", getattr(weighed, name), contract.f64, queries))
    check_word_slices(slices, queries)
    contract.finite("weights", array("weights", weights, contract.f64, queries, len(EVIDENCE) + 1))
    contract.finite("word_weights", array("word_weights", word_weights, contract.f64, len(EVIDENCE) + 1))
    return check_parameters(parameters)


def check_word_slices(slices: WordSlices, queries: int) -> None:
    """Refuse postings of words that a kernel cannot read, or of other queries."""
    idf = check_group(slices, WordSlices, "slices.").idf
    contract.finite("slices.idf", idf)
    contract.offsets("slices.word_offsets", slices.word_offsets, idf.shape[0], queries)
    check_slices(slices.rows, slices.starts, slices.ends, slices.slice_offsets)
    contract.offsets("slices.slice_offsets", slices.slice_offsets, slices.starts.shape[0], queries)
    contract.indices("slices.words", slices.words, idf.shape[0], slices.starts.shape[0])
    refuse_disorder(slices.rows, slices.starts, slices.ends, 2**31)
