"""What each set counts as an answer, on small made-up files."""

from __future__ import annotations

import gzip
import json
import tomllib
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from benchmarks.cached_embedder import cached
from benchmarks.quality import (
    beam,
    confidence,
    dates,
    fact_consolidation,
    languages,
    locomo,
    longmemeval,
    precision_bench,
    realmem,
    requests,
)
from recallite import Memory
from recallite.embedding import embed_documents


class Letters:
    """Embeds a text as its counts of letters."""

    name, dimension, fingerprint = "letters", 26, "test:letters"

    def embed(self, texts):
        counts = np.array([[1 + text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def open_memory():
    return Memory(":memory:", embedder=Letters())


def ignore(done, total):
    """Progress that nobody looks at."""


def write_gz(path, value):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        json.dump(value, file)


def conversation(first, second, word):
    return {
        "sample_id": word,
        "qa": [
            {"question": f"Who mended the {word}?", "category": 4, "evidence": ["D1:1; D01:2"]},
            {"question": f"When did {first} sell the {word}?", "category": 5, "evidence": ["D2:1"]},
            {"question": "What is not there?", "category": 1, "evidence": ["D9:9"]},
        ],
        "conversation": {
            "speaker_a": first,
            "speaker_b": second,
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": first, "dia_id": "D1:1", "text": f"I mended the {word}.", "blip_caption": f"a {word}"},
                {"speaker": second, "dia_id": "D1:2", "text": "Well done!"},
            ],
            "session_2_date_time": "10:37 am on 27 June, 2023",
            "session_2": [{"speaker": first, "dia_id": "D2:1", "text": f"I sold the {word}."}],
        },
    }


def test_locomo_reads_evidence_in_every_form_and_asks_each_conversation_its_own_questions(tmp_path):
    write_gz(tmp_path / "locomo.json.gz", [conversation("Ada", "Bob", "kettle"), conversation("Cyd", "Dee", "violin")])
    read = next(locomo.read(tmp_path))
    assert [(question.category, question.gold) for question in read.questions] == [(4, {0, 1}), (5, {2})]
    assert read.turns[0]["text"] == "I mended the kettle. [shares a photo of a kettle]"
    result = locomo.evaluate(tmp_path, open_memory, ignore)
    assert (result["questions"], result["records"], result["stores"]) == (4, 6, 2)
    # Three turns and a limit of twenty.
    assert result["figures"]["default"]["recall@20"] == 1.0
    asked = confidence.evaluate(tmp_path, open_memory, ignore)
    assert (asked["questions"], asked["asked_elsewhere"]) == (2, 2)


def test_longmemeval_searches_sessions_even_after_the_question_and_leaves_out_unanswerable(tmp_path):
    sample = {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "Where do I keep the violin?",
        "question_date": "2023/05/30 (Tue) 23:25",
        "answer_session_ids": ["answer_1", "answer_2"],
        "haystack_session_ids": ["answer_1", "other", "answer_2"],
        "haystack_dates": ["2023/05/20 (Sat) 00:43", "2023/05/21 (Sun) 10:00", "2023/06/02 (Fri) 10:00"],
        "haystack_sessions": [
            [{"role": "user", "content": "The violin is in the attic."}, {"role": "assistant", "content": " "}],
            [{"role": "user", "content": "Bread needs salt."}],
            [{"role": "user", "content": "I moved the violin to the hall."}],
        ],
    }
    write_gz(tmp_path / "longmemeval_s.json.gz", [sample, {**sample, "question_id": "q2_abs"}])
    result = longmemeval.evaluate(tmp_path, open_memory, ignore)
    assert (result["questions"], result["records"]) == (1, 3)
    assert set(result["figures"]["default"].values()) == {1.0}


def test_realmem_sees_and_counts_only_what_is_dated_before_the_day_of_the_query(tmp_path):
    dates = {"m1": "2025-12-01 (Monday)", "m2": "2025-12-28 (Sunday)", "m3": "2025-12-29 (Monday)"}
    memories = [
        {"id": id, "content": f"Statement {id} on roses", "session_uuid": "s", "source_turn": turn, "time": date}
        for turn, (id, date) in enumerate(dates.items(), -1)
    ]
    query = {"query": "roses", "time": "2025-12-28 (Sunday)", "gold_memory_ids": ["m1", "m2", "m3", "gone"]}
    of_the_day = {**query, "gold_memory_ids": ["m2"]}
    write_gz(tmp_path / "realmem.json.gz", [{"persona": "P", "memories": memories, "queries": [query, of_the_day]}])
    result = realmem.evaluate(tmp_path, open_memory, ignore)
    assert result["questions"] == 1
    assert result["figures"]["default"] == {"recall@20": 1.0, "hit@20": 1.0, "MRR": 1.0}


def test_beam_counts_the_messages_that_a_question_names_in_any_form(tmp_path):
    turns = [[{"role": "user", "id": id, "content": f"The violin is in room {id}."}] for id in range(4)]
    asked = {
        "abstention": [{"question": "What colour is my hat?"}],
        "event_ordering": [{"question": "What happened to the violin?", "source_chat_ids": [2, [3]]}],
        "knowledge_update": [
            {"question": "Is it there?", "source_chat_ids": {"updated_info": [1], "original_info": [0]}}
        ],
        "summarization": [{"question": "What is named nowhere?", "source_chat_ids": [99]}],
    }
    for name in "12345":
        folder = tmp_path / "chats" / "100K" / name
        (folder / "probing_questions").mkdir(parents=True)
        (folder / "chat.json").write_text(json.dumps([{"batch_number": 1, "turns": turns}]))
        (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked))
    assert [(kind, sorted(gold)) for _, kind, gold in next(beam.read(tmp_path)).questions] == [
        ("abstention", []),
        ("event_ordering", [2, 3]),
        ("knowledge_update", [0, 1]),
    ]


def test_precision_counts_the_cases_whose_beliefs_are_the_expected_ones(tmp_path):
    common = {
        "user_id": "test-user", "type": "belief", "why_it_matters": "", "scope": ["code"], "pinned": False,
        "superseded_by": None, "resolved_at": None, "created_at": "2026-03-02T09:00:00Z",
    }  # fmt: skip
    beliefs = [
        {**common, "_id": "kettle", "canonical_name": "kettle", "content": "Boils water", "aliases": ["samovar"]},
        {**common, "_id": "bow", "canonical_name": "bow", "content": "Is made of horsehair", "aliases": []},
    ]
    case = {"scope": ["code"], "category": "Alias resolution", "query": "samovar"}
    cases = [
        {**case, "caseId": "right", "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["kettle"]}}},
        {**case, "caseId": "wrong", "expect": {"relevantBeliefs": {"mustExclude": ["kettle"]}}},
    ]
    turn = {**case, "turnIndex": 0, "userMessage": "samovar", "expect": {"relevantBeliefs": {"mustInclude": ["bow"]}}}
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "src").mkdir()
    files = {"beliefs.seed": beliefs, "retrieval.cases": cases, "session-retrieval.cases": [{"turns": [turn]}]}
    for name, value in files.items():
        (tmp_path / "fixtures" / f"{name}.json").write_text(json.dumps(value))
    (tmp_path / "src" / "retrieval.external.eval.test.ts").write_text('universal:\n  "Be brief.",')
    result = precision_bench.evaluate(tmp_path, lambda: Memory(":memory:", embedder="none"), ignore)
    assert result["figures"]["wire, relevant"]["passes"] == 1
    assert result["failed"]["wire, relevant"] == ["wrong", "turn 0"]


def test_a_question_on_facts_needs_the_last_one_with_its_answer_or_those_on_the_way_to_it(tmp_path, monkeypatch):
    statements = [
        "Ada Byron is a citizen of Norway.", "The author of Notes is Ada Byron.", "The capital of Norway is Oslo.",
        "Bob Stone is a citizen of Peru.", "The capital of Norway is Bergen.",
    ]  # fmt: skip
    context = "Here is a list of facts:\n" + "\n".join(f"{place}. {text}" for place, text in enumerate(statements))
    single = {
        "context": context, "questions": ["What is the capital of Norway?"], "answers": [["Bergen"]],
        "metadata": {"source": "factconsolidation_sh_6k"},
    }  # fmt: skip
    multi = {
        "context": context, "questions": ["What is the capital of the country of the author of Notes?", "Who sings?"],
        "answers": [["Bergen"], ["Nobody"]], "metadata": {"source": "factconsolidation_mh_6k"},
    }  # fmt: skip
    path = tmp_path / fact_consolidation._PATH
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps([single, multi]))
    monkeypatch.setattr(fact_consolidation, "SIZES", {5: "6k"})
    (history,) = fact_consolidation.read(tmp_path)
    assert history.single_hop == [("What is the capital of Norway?", ("The capital of Norway is Bergen.",))]
    assert [question.facts for question in history.multi_hop] == [(statements[1], statements[0], statements[4])]


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


class Coded(Letters):
    """Has a code of so many bytes for each text."""

    def __init__(self, bytes_a_code):
        self.bytes_a_code = bytes_a_code

    def embed_document_tokens(self, texts, contexts, on_progress=None):
        return embed_documents(self, texts, contexts), [b"1" * self.bytes_a_code for _ in texts]

    def embed_query_tokens(self, texts):
        return self.embed(texts), []


def test_codes_that_are_made_otherwise_are_not_taken_from_the_cache(tmp_path):
    first = cached(Coded(8), tmp_path)
    first.embed_document_tokens(["hello"], [None])
    first.flush()
    assert cached(Coded(4), tmp_path).embed_document_tokens(["hello"], [None])[1] == [b"1111"]


def test_the_parts_of_the_languages_are_alike_and_share_no_text():
    parts = {part: languages.read(path) for part, path in languages.TABLES.items()}
    counts = {
        "told": 11, "asked": 7, "named": 6, "unrelated": 5, "left_out": 3, "prompts": 7, "standing": 8,
        "not_standing": 10,
    }  # fmt: skip
    expected = dict.fromkeys(("de", "en", "es", "fr", "it", "ja", "ko", "pt", "ru", "zh"), counts)
    seen: list[str] = []
    for stores in parts.values():
        assert {name: {kind: len(texts) for kind, texts in one.items()} for name, one in stores.items()} == expected
        for store in stores.values():
            seen += [text for texts in store.values() for text in texts]
            seen += [*store["asked"].values(), *store["named"].values()]
    assert len(seen) == len(set(seen)) == 2 * 10 * (57 + 13)


@pytest.mark.parametrize("part", ["dev", "held"])
def test_languages_count_what_is_found_added_and_taken_for_standing(tmp_path, part):
    path = tmp_path / f"languages_{part}.toml"
    path.write_text("""
        [en]
        told = ["The kettle whistles"]
        unrelated = []
        left_out = ["Where is the kettle?"]
        prompts = ["go on"]
        standing = ["Never push to main.", "A violin."]
        not_standing = ["Push it to main."]
        asked = { "Who owns the boat?" = "Zoe paid for the sloop" }
        named = { "What about Xanthippe's quokka?" = "Xanthippe's quokka bit Ada" }
    """)
    result = languages.evaluate(path, open_memory, ignore)
    figures = result["categories"]["en"]["figures"]
    assert (result["part"], "missed" in result, result["records"]) == (part, part == "dev", 6)
    assert (figures["default"]["missed"], figures["default"]["wrong"]) == (0.5, 0.0)
    for column in ("default", "mixed"):
        assert (figures[column]["named first"], figures[column]["prompts"]) == (1.0, 0.0)
        assert set(figures[column]) >= {"first", "kept", "named kept", "left out", "shown"}


def test_the_parts_of_the_requests_share_no_text_and_need_what_is_there():
    seen: list[str] = []
    for path in requests.TABLES.values():
        for store in tomllib.loads(path.read_text("utf-8")).values():
            needed = {key.rstrip("?") for keys in store["prompts"].values() for key in keys}
            assert needed <= store["memories"].keys()
            assert len(store["memories"]) == 12
            seen += [*store["memories"].values(), *store["prompts"]]
    assert len(seen) == len(set(seen))


def test_requests_count_what_is_needed_and_what_is_useless(tmp_path):
    path = tmp_path / "requests_dev.toml"
    path.write_text("""
        [boat]
        memories = { oil = "Never use sunflower oil", tar = "Zoe paid for tar", sail = "The sail is red" }
        prompts = { "oil" = ["oil"], "tar" = ["sail?", "tar?"], "Zoe" = [] }
    """)
    figures = requests.evaluate(path, open_memory, ignore)["figures"]["default"]
    assert (figures["plain"], figures["kept"], figures["nothing"]) == (1.0, 1.0, 1.0)
    assert figures["useless"] == round(1 / 3, 4)
