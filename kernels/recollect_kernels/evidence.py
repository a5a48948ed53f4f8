"""The evidence that candidates answer their queries, from which recall computes a confidence."""

from __future__ import annotations

from recollect_kernels import contract, dispatch
from recollect_kernels.arguments import Weighed
from recollect_kernels.contract import F64, I64, array
from recollect_kernels.signals import SIGNALS


def measure_evidence(signals: F64, offsets: I64, weighed: Weighed) -> F64:
    """The evidence of some records, float64 (evidence, m), in rows as `EVIDENCE` names them.

    signals float64 (signals, n) of the candidates, of which query i has those from offsets[i] to offsets[i + 1]: each
    record is weighed beside the best other candidate of its query, by each signal. A record that is the best is weighed
    beside the second best. Evidence that is not finite is refused.
    """
    array("signals", signals, contract.f64, len(SIGNALS), None)
    contract.finite("signals", signals)
    contract.offsets("offsets", offsets, signals.shape[1])
    queries = len(offsets) - 1
    array("weighed.signals", weighed.signals, contract.f64, len(SIGNALS), None)
    size = weighed.signals.shape[1]
    contract.offsets("weighed.offsets", array("weighed.offsets", weighed.offsets, contract.i64, queries + 1), size)
    for name in ("coverage", "lengths", "ranks"):
        array(f"weighed.{name}", getattr(weighed, name), contract.f64, size)
    contract.finite("weighed.words", array("weighed.words", weighed.words, contract.f64, queries))
    contract.real("weighed.records", weighed.records)
    evidence = dispatch.active.measure_evidence(signals, offsets, weighed)
    contract.finite("evidence", evidence)
    return evidence
