"""The life of an agent on a made-up conversation: every figure is there, and what must hold does."""

from __future__ import annotations

import gzip
import json

import pytest

from benchmarks.agents import life, report
from recallite.embedding import load

SAID = ["I adopted a grey cat named Miso", "The ferry to Lisbon leaves at nine", "My sister plays the cello"]


def conversation():
    sessions = {"speaker_a": "Ann", "speaker_b": "Bob"}
    for number in (1, 2):
        sessions[f"session_{number}_date_time"] = f"1:56 pm on {number} May, 2023"
        sessions[f"session_{number}"] = [
            {
                "speaker": ("Ann", "Bob")[turn % 2],
                "dia_id": f"D{number}:{turn + 1}",
                "text": SAID[turn] if number == 1 and turn < len(SAID) else f"We talked about plan {number} {turn}",
            }
            for turn in range(12)
        ]
    asked = {"question": "What is the cat called?", "answer": "Miso", "evidence": ["D1:1"], "category": 4}
    return {"sample_id": "made-up", "qa": [asked], "conversation": sessions}


@pytest.mark.slow
def test_a_life_is_replayed_consolidated_and_asked_again_by_another_process(tmp_path):
    with gzip.open(tmp_path / "locomo.json.gz", "wt", encoding="utf-8") as file:
        json.dump([conversation()], file)
    told = []
    run = life.evaluate(tmp_path, load(), lambda done, total: told.append((done, total)))
    assert told == [(1, 1)]
    assert (run["questions"], run["turns"]) == (1, 24)
    assert run["figures"]["plain"] == {"recall@20": 1.0, "hit@20": 1.0, "MRR": 1.0}
    for lived in run["lives"].values():
        assert (lived["episodes"], lived["kept"], lived["cycles"], lived["bootstraps"]) == (24, 24, 2, 2)
        assert (lived["verify_clean"], lived["reopened_identical"]) == (True, True)
        assert lived["bootstrap_tokens_max"] <= life.BUDGET_TOKENS
    made_with = {"processor": "p", "cores": 2, "python": "3", "commit": "c", "date": "d"}
    assert "| plain store | 1.000 |" in report.markdown({"life": {**run, **made_with}})
