"""The ways that two commits are asked in. Imports nothing of Recallite: it is read by the processes of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.dataset import FILTERS

__all__ = ["OFF", "TOP", "WAYS", "Way"]

TOP = 10


@dataclass(frozen=True)
class Way:
    """`recall` of a question, or `recall_many` of a round of them.

    - options: what both commits must know; who does not, refuses
    - off: what turns parts off; not passed to a commit that does not have the part
    - codes: the store has token codes, and the tokens of the questions are at hand: late interaction and learned
      ranking are part of what is asked
    - text: the model embeds the question while the clock runs
    """

    options: dict[str, Any] = field(default_factory=dict)
    off: dict[str, Any] = field(default_factory=dict)
    many: bool = False
    codes: bool = False
    text: bool = False


# What recall adds to the formula, turned off; `recall_cost` says what it costs.
OFF: dict[str, Any] = {
    "rerank_weight": 0.0,
    "speaker_weight": 0.0,
    "date_weight": 0.0,
    "adaptive": False,
    "learned_ranking": False,
    "superseded": "as_ranked",
}
WAYS: dict[str, Way] = {
    "formula": Way(off=OFF),
    "default": Way(),
    "default, codes": Way(codes=True),
    "text": Way(codes=True, text=True),
    "vector": Way({"mode": "vector"}),
    "recall_many": Way(off=OFF, many=True),
    **{f"tag {share}": Way({"tags": [share]}, OFF) for share in FILTERS},
}
