"""The tables and protocols of truth over time, on the tables themselves and on small made-up sets."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from benchmarks.quality import dates, fact_consolidation, junk, pairs, report, truth_tables, updates
from benchmarks.quality.ways import WAYS


def ignore(done, total):
    """Progress that nobody looks at."""


def test_there_are_a_hundred_pairs_of_each_outcome_in_order_of_time():
    table = pairs.read()
    assert set(Counter(pair["expected"] for pair in table).values()) == {100}
    assert len({pair["id"] for pair in table}) == len({(pair["old"], pair["new"]) for pair in table}) == 400
    assert all(pair["note"] for pair in table)
    for pair in table:
        if "old_at" in pair:
            assert datetime.fromisoformat(pair["old_at"]) <= datetime.fromisoformat(pair["new_at"])


def test_there_are_two_hundred_phrases_with_intervals_or_with_nothing_to_resolve():
    table = dates.read()
    assert (len(table), sum(phrase["id"].startswith("en") for phrase in table)) == (200, 140)
    for phrase in table:
        assert (phrase["expected"] is None) == (phrase["grain"] is None)
        for begin, end in phrase["expected"] or ():
            assert phrase["grain"] in dates.GRAINS
            assert end is None or datetime.fromisoformat(begin) < datetime.fromisoformat(end)


def test_half_of_the_texts_are_junk():
    table = junk.read()
    assert Counter(one["junk"] for one in table) == {True: 150, False: 150}
    assert len({one["text"] for one in table}) == 300


DAY = datetime(2024, 5, 14, tzinfo=UTC)
YESTERDAY = {"expected": [["2024-05-14T00:00:00+00:00", "2024-05-15T00:00:00+00:00"]], "grain": "day"}
SINCE = {"expected": [["2024-05-14T00:00:00+00:00", None]], "grain": "day"}
EVENING = {**YESTERDAY, "grain": "part"}
NOTHING = {"expected": None, "grain": None}


@pytest.mark.parametrize(
    ("phrase", "begin", "end", "outcome"),
    [
        (YESTERDAY, DAY, DAY + timedelta(days=1), "right"),
        (YESTERDAY, None, None, "left alone"),
        (YESTERDAY, DAY + timedelta(hours=9), DAY + timedelta(hours=10), "within the grain"),
        (YESTERDAY, DAY, None, "wrong"),
        (YESTERDAY, DAY - timedelta(days=1), DAY, "wrong"),
        (EVENING, DAY + timedelta(hours=18), DAY + timedelta(hours=22), "right"),
        (SINCE, DAY, None, "right"),
        (SINCE, DAY, DAY + timedelta(days=1), "wrong"),
        (NOTHING, None, None, "left alone"),
        (NOTHING, DAY, None, "wrong"),
    ],
)
def test_an_interval_is_judged_by_the_grain_of_its_phrase(phrase, begin, end, outcome):
    class Resolved:
        valid_from, valid_until = begin, end

    assert dates.judged(phrase, Resolved()) == outcome


def facts_folder(tmp_path, monkeypatch):
    statements = [
        "Ada Byron is a citizen of Norway.",
        "The author of Notes is Ada Byron.",
        "The capital of Norway is Oslo.",
        "Bob Stone is a citizen of Peru.",
        "The capital of Norway is Bergen.",
    ]
    context = "Here is a list of facts:\n" + "\n".join(f"{place}. {text}" for place, text in enumerate(statements))
    single = {
        "context": context,
        "questions": ["What is the capital of Norway?"],
        "answers": [["Bergen"]],
        "metadata": {"source": "factconsolidation_sh_6k"},
    }
    multi = {
        "context": context,
        "questions": ["What is the capital of the country of the author of Notes?", "Who sings?"],
        "answers": [["Bergen"], ["Nobody"]],
        "metadata": {"source": "factconsolidation_mh_6k"},
    }
    path = tmp_path / fact_consolidation._PATH
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([single, multi]))
    monkeypatch.setattr(fact_consolidation, "SIZES", {5: "6k"})
    return tmp_path


def test_a_question_needs_the_last_fact_with_its_answer_or_the_facts_on_the_way_to_it(tmp_path, monkeypatch):
    (history,) = fact_consolidation.read(facts_folder(tmp_path, monkeypatch))
    assert history.single_hop == [("What is the capital of Norway?", ("The capital of Norway is Bergen.",))]
    assert [question.facts for question in history.multi_hop] == [
        (
            "The author of Notes is Ada Byron.",
            "Ada Byron is a citizen of Norway.",
            "The capital of Norway is Bergen.",
        )
    ]
    assert "The capital of Norway is Oslo." not in history.holding


def test_facts_are_asked_at_the_end_written_and_read_in_every_way(tmp_path, monkeypatch, open_memory):
    result = fact_consolidation.evaluate(facts_folder(tmp_path, monkeypatch), open_memory, ignore)
    assert (result["questions"], result["records"], result["without_chain"]) == (2, 5, 0)
    assert list(result["figures"]) == list(WAYS)
    assert result["figures"]["default"]["5 facts: current within 5"] == 1.0
    assert result["figures"]["default"]["5 facts: share of the chain"] == 1.0
    assert result["figures"]["default"]["5 facts: current but marked"] == 0


def story(text, former, current):
    records = [{"text": "The violin is in the attic."}, {"text": "The violin is in the hall."}, {"text": "Bread."}]
    return updates.Story(records, [(text, "knowledge-update", {}, frozenset(former), frozenset(current))])


def test_statements_in_one_message_are_found_but_neither_comes_first(open_memory):
    result = updates.measure(lambda: iter([story("Where is the violin?", [0], [0])]), open_memory, ignore)
    assert result["figures"]["neither"] == {"both within 40": 1.0}


def test_a_current_statement_that_is_found_counts_as_before_a_former_one_that_is_not(open_memory):
    result = updates.measure(lambda: iter([story("The violin is in the hall.", [0], [1])]), open_memory, ignore)
    assert result["figures"]["default"]["current before former"] == 1.0
    assert result["figures"]["default"]["current first"] == 1.0


def test_evidence_of_longmemeval_is_current_in_the_last_session_that_has_any(tmp_path, open_memory):
    sample = {
        "question_id": "q1",
        "question_type": "knowledge-update",
        "question": "Where do I keep the violin?",
        "question_date": "2023/05/30 (Tue) 23:25",
        "answer_session_ids": ["a", "b"],
        "haystack_session_ids": ["a", "b"],
        "haystack_dates": ["2023/05/20 (Sat) 00:43", "2023/05/25 (Thu) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": " "}, {"role": "user", "content": "In the attic.", "has_answer": True}],
            [{"role": "user", "content": "In the hall.", "has_answer": True}, {"role": "assistant", "content": "Ok."}],
        ],
    }
    with gzip.open(tmp_path / "longmemeval_s.json.gz", "wt", encoding="utf-8") as file:
        json.dump([sample, {**sample, "question_id": "q2_abs"}], file)
    ((_, _, options, former, current),) = next(updates._histories(tmp_path)).questions
    assert (former, current) == ({0}, {1})
    assert options["as_of"] == datetime(2023, 5, 30, 23, 25, tzinfo=UTC)
    assert updates.of_longmemeval(tmp_path, open_memory, ignore)["questions"] == 1


@pytest.mark.parametrize("evaluate", [pairs.evaluate, dates.evaluate, junk.evaluate])
def test_a_table_of_ours_is_measured_whole(evaluate, tmp_path, open_memory):
    seen = []
    result = evaluate(tmp_path, open_memory, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (result["questions"], result["questions"])
    assert all(0 <= figure <= 1 for figure in result["figures"]["default"].values())


def test_the_tables_have_a_row_a_metric_with_its_bar_and_one_of_every_confusion(tmp_path, open_memory):
    run = {
        "sets": {
            "junk": junk.evaluate(tmp_path, open_memory, ignore),
            "dates": dates.evaluate(tmp_path, open_memory, ignore),
        },
        "embedder": "letters",
        "commit": "abc",
        "date": "2026-01-01",
        "cores": 2,
    }
    text = report.truth_markdown(run)
    assert f"| {' | '.join(truth_tables.HEADER)} |" in text
    assert "| Date phrases | 200 | right or left alone |" in text
    assert "| de | 14 |" in text
    assert "| tool noise | 30 |" in text
    assert report.markdown(run).splitlines()[2:4] == ["", "Embedder letters, commit abc, 2026-01-01, 0 s on 2 cores."]
