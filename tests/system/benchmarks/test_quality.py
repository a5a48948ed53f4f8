"""The sets' readers and the cache, on small made-up files."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from benchmarks.cached_embedder import CachedEmbedder, cached
from benchmarks.quality import confidence, first_tries, locomo, longmemeval, named, realmem, report, scifact, sessions
from benchmarks.quality.columns import COLUMNS
from recallite.embedding import QueryTokens, embed_documents
from tests.system.benchmarks.letters import Letters


def write_gz(path, value):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))


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


@pytest.fixture
def locomo_folder(tmp_path):
    write_gz(tmp_path / "locomo.json.gz", [conversation("Ada", "Bob", "kettle"), conversation("Cyd", "Dee", "violin")])
    return tmp_path


def test_a_turn_that_shares_a_photo_says_so_in_its_text(locomo_folder):
    turns = next(locomo.read(locomo_folder)).turns
    assert [turn["text"] for turn in turns] == [
        "I mended the kettle. [shares a photo of a kettle]",
        "Well done!",
        "I sold the kettle.",
    ]
    assert [(turn["context"], turn["source"], turn["position"]) for turn in turns] == [
        ("Ada", "session 1", 0),
        ("Bob", "session 1", 1),
        ("Ada", "session 2", 0),
    ]
    assert turns[2]["created_at"].isoformat() == "2023-06-27T10:37:00+00:00"


def test_evidence_is_read_in_every_form_and_questions_without_any_are_left_out(locomo_folder):
    questions = next(locomo.read(locomo_folder)).questions
    assert [(question.category, question.gold) for question in questions] == [(4, {0, 1}), (5, {2})]


def test_locomo_asks_each_conversation_its_own_questions(locomo_folder, open_memory):
    result = locomo.evaluate(locomo_folder, open_memory, lambda done, total: None)
    assert (result["questions"], result["records"], result["stores"]) == (4, 6, 2)
    assert list(result["figures"]) == list(COLUMNS)
    # Three turns and a limit of twenty: all signals but the keyword one return every turn.
    assert result["figures"]["vector"]["recall@20"] == result["figures"]["default"]["recall@20"] == 1.0
    assert result["categories"]["5 adversarial"]["questions"] == 2


def test_names_are_masked_as_whole_words():
    assert confidence.masked("Did Ada's adagio please ada?", ("Ada", "Bob")) == "Did someone's adagio please someone?"


def test_confidence_asks_answerable_questions_here_and_elsewhere(locomo_folder, open_memory):
    result = confidence.evaluate(locomo_folder, open_memory, lambda done, total: None)
    assert (result["questions"], result["asked_elsewhere"]) == (2, 2)
    assert result["figures"]["default"]["ROC AUC"] == 1.0


def test_longmemeval_searches_sessions_even_after_the_question_and_leaves_out_unanswerable(tmp_path, open_memory):
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
    result = longmemeval.evaluate(tmp_path, open_memory, lambda done, total: None)
    assert (result["questions"], result["records"]) == (1, 3)
    assert set(result["figures"]["default"].values()) == {1.0}


def test_realmem_sees_and_counts_only_what_is_dated_before_the_day_of_the_query(tmp_path, open_memory):
    dates = {"m1": "2025-12-01 (Monday)", "m2": "2025-12-28 (Sunday)", "m3": "2025-12-29 (Monday)"}
    memories = [
        {"id": id, "content": f"Statement {id} on roses", "session_uuid": "s", "source_turn": turn, "time": date}
        for turn, (id, date) in enumerate(dates.items(), -1)
    ]
    query = {"query": "roses", "time": "2025-12-28 (Sunday)", "gold_memory_ids": ["m1", "m2", "m3", "gone"]}
    of_the_day = {**query, "gold_memory_ids": ["m2"]}
    write_gz(tmp_path / "realmem.json.gz", [{"persona": "P", "memories": memories, "queries": [query, of_the_day]}])
    result = realmem.evaluate(tmp_path, open_memory, lambda done, total: None)
    assert result["questions"] == 1
    assert result["figures"]["default"] == {"recall@20": 1.0, "hit@20": 1.0, "MRR": 1.0}


def test_there_are_thirty_first_tries_in_stores_of_two_to_ten_memories():
    stores = first_tries.read()
    assert all(2 <= len(store["memories"]) <= 10 for store in stores)
    places = [place for store in stores for place in store["questions"].values()]
    assert (len(places), sum(place is None for place in places)) == (30, 5)
    assert all(
        place < len(store["memories"]) for store in stores for place in store["questions"].values() if place is not None
    )


def test_first_tries_count_the_answerable_questions_and_all_that_come_out_right(tmp_path, open_memory):
    result = first_tries.evaluate(tmp_path, open_memory, lambda done, total: None)
    assert (result["questions"], result["records"], result["stores"]) == (30, 42, 8)
    wrong = len(result["missed"])
    assert result["figures"]["default"]["first and confident"] == pytest.approx((30 - wrong) / 30, abs=1e-4)


def test_forty_questions_ask_what_ten_sessions_have_kept(open_memory):
    data = sessions.read()
    asked = [gold for questions in data["questions"] for _, *gold in questions["ask"]]
    kept = [text for session in data["sessions"] for who, text in session["turns"] if who in ("user", "ends")]
    assert (len(data["sessions"]), sum(map(bool, asked))) == (10, 40)
    assert all(sum(passage in text for text in kept) == 1 for gold in asked for passage in gold)
    with open_memory() as memory:
        figures, _ = sessions.evaluate(memory)
    assert figures["of tools or between them"] == figures["secrets"] == 0
    assert 5 < figures["memories a session"] < 8


def test_named_counts_the_questions_whose_hits_are_exactly_what_they_name(tmp_path, open_memory):
    result = named.evaluate(tmp_path, open_memory, lambda done, total: None)
    assert (result["questions"], result["records"], result["stores"]) == (86, 78, 8)
    assert result["figures"]["default"]["exact"] == pytest.approx(1 - len(result["missed"]) / 86, abs=1e-4)


def test_scifact_asks_the_judged_claims_only(tmp_path, open_memory):
    folder = tmp_path / "scifact"
    folder.mkdir()
    abstracts = [
        {"_id": "1", "title": "Bees", "text": "Bees dance."},
        {"_id": "2", "title": "Ants", "text": "Ants dig."},
    ]
    write_gz(folder / "corpus.jsonl.gz", "\n".join(map(json.dumps, abstracts)))
    claims = [{"_id": "7", "text": "bees dance"}, {"_id": "8", "text": "wasps sing"}]
    (folder / "queries_train.jsonl").write_text("\n".join(map(json.dumps, claims)))
    (folder / "train.tsv").write_text("query-id\tcorpus-id\tscore\n7\t1\t1\n")
    result = scifact.evaluate(tmp_path, open_memory, lambda done, total: None)
    assert result["questions"] == 1
    assert result["figures"]["default"]["nDCG@10"] == 1.0


def test_the_cache_embeds_each_text_once_and_across_runs(tmp_path):
    letters = Letters()
    first = CachedEmbedder(letters, tmp_path)
    texts, contexts = ["abc " * 400, "hello", "hello", "hello"], [None, None, "Ada", None]
    embedded = first.embed_documents(texts, contexts)
    queries = first.embed(["hello", "hello"])
    given = letters.given
    first.flush()
    second = CachedEmbedder(letters, tmp_path)
    again = second.embed_documents(texts, contexts)
    assert np.array_equal(again.vectors, embedded.vectors)
    assert np.array_equal(again.owners, embedded.owners)
    assert list(dict.fromkeys(again.owners.tolist())) == [0, 1, 2, 3]
    assert (again.owners == 0).sum() > 1
    assert np.array_equal(second.embed(["hello"]), queries[:1])
    assert letters.given == given


class Lettered(Letters):
    """Every character is a token, which codes its own letter."""

    def embed_document_tokens(self, texts, contexts, on_progress=None):
        embedded = embed_documents(self, texts, contexts)
        return embedded, [bytes([owner + 1] * 8) for owner in embedded.owners.tolist()]

    def embed_query_tokens(self, texts):
        codes = [np.array([[len(text)]], np.uint64) for text in texts]
        return self.embed(texts), [QueryTokens(each, np.zeros(1, np.int64), 64) for each in codes]


def test_the_cache_keeps_codes_of_tokens_too(tmp_path):
    texts = ["abc " * 400, "hello", "", "hello"]
    letters = Lettered()
    first = cached(letters, tmp_path)
    # Vectors that a run without codes has left are not made anew, their codes are.
    first.embed_documents(texts[1:2], [None])
    embedded, codes = first.embed_document_tokens(texts, [None] * 4)
    vectors, tokens = first.embed_query_tokens(["a", "bb", "a"])
    assert [each.codes.tolist() for each in tokens] == [[[1]], [[2]], [[1]]]
    assert vectors.shape == (3, first.dimension)
    first.flush()
    second = cached(letters, tmp_path)
    given = letters.given
    again, same = second.embed_document_tokens(texts, [None] * 4)
    assert np.array_equal(again.vectors, embedded.vectors)
    assert np.array_equal(again.owners, embedded.owners)
    assert same == codes
    assert len(codes) == len(embedded.owners) > 4
    assert letters.given == given
    assert not hasattr(cached(Letters()), "embed_query_tokens")


class Recoded(Lettered):
    """The same embedder, whose codes are made otherwise."""

    def embed_document_tokens(self, texts, contexts, on_progress=None):
        embedded, codes = super().embed_document_tokens(texts, contexts)
        return embedded, [code[:4] for code in codes]


def test_codes_that_are_made_otherwise_are_not_taken_from_the_cache(tmp_path):
    first = cached(Lettered(), tmp_path)
    first.embed_document_tokens(["hello"], [None])
    first.flush()
    _, codes = cached(Recoded(), tmp_path).embed_document_tokens(["hello"], [None])
    assert [len(code) for code in codes] == [4]


def test_markdown_has_a_row_a_metric_and_blanks_where_a_column_was_not_measured(locomo_folder, open_memory):
    sets = {
        "locomo": locomo.evaluate(locomo_folder, open_memory, lambda done, total: None),
        "confidence": confidence.evaluate(locomo_folder, open_memory, lambda done, total: None),
    }
    run = {"sets": sets, "embedder": "letters", "commit": "abc", "date": "2026-01-01", "cores": 2}
    text = report.markdown(run)
    columns = (
        "vector | keyword | RRF | weighted | no reranking | no names, dates | no forest | default | code bytes a record"
    )
    assert f"| set | questions | metric | {columns} |" in text
    assert "| Confidence, answerable or not | 2 | ROC AUC |  |  |  |  |  |  |  | 1.000 |  |" in text
    assert "| 4 single-hop | 2 | 1.000 |" in text
