"""Codes of tokens: stored by setting, purged with their vectors, added and removed by reembed, used to rerank."""

from __future__ import annotations

import re
import zlib

import numpy as np
import pytest

import recallite_kernels as kernels
from recallite import Memory, Settings
from recallite.embedding import Embedded, QueryTokens, TokenEmbedder
from recallite.model.records import NewRecord
from tests.unit.core.memory.support import PLAIN, WordEmbedder, raw, scored, unit

NO_CODES = Settings(token_codes=False)
WIDTH = 64
TEXTS = ["the striped zebra", "a grey elephant", "zebra crossing ahead", "a striped shirt for the beach"]


class TokenWords(WordEmbedder):
    """Every word is a token; its vector is drawn by its hash. Words of three letters and fewer have no code."""

    def __init__(self, name: str = "words") -> None:
        super().__init__(name)
        self.runs = 0
        self.cut = False

    def embed_document_tokens(self, texts, contexts, on_progress=None):
        self.runs += 1
        vectors = super().embed(list(texts))
        codes = [self.codes([word for word in text.lower().split() if len(word) > 3]).tobytes() for text in texts]
        return Embedded(vectors, np.arange(len(texts))), codes[1:] if self.cut else codes

    def embed_query_tokens(self, texts):
        self.runs += 1
        found = []
        for text in texts:
            words = list(re.finditer(r"\S+", text))
            places = np.array([word.start() for word in words], np.int64)
            found.append(QueryTokens(self.codes([word[0].lower() for word in words]), places, WIDTH))
        return super().embed(list(texts)), found[1:] if self.cut else found

    @staticmethod
    def codes(words):
        vectors = [unit(zlib.crc32(word.encode()), WIDTH) for word in words]
        return kernels.sketch(np.array(vectors, np.float32).reshape(-1, WIDTH))


def codes_of(memory):
    figures = memory.store.stats()
    return figures.token_codes, figures.token_code_bytes


def test_codes_are_kept_by_setting_from_one_run_of_the_embedder(path):
    embedder = TokenWords()
    assert isinstance(embedder, TokenEmbedder)
    with Memory(path, embedder=embedder) as memory:
        memory.remember_many(TEXTS)
        assert (embedder.runs, len(embedder.texts)) == (1, len(TEXTS))
        assert codes_of(memory) == (4, 8 * (2 + 2 + 3 + 3))
        assert memory.scoped("/elsewhere").store.stats().token_codes == 0
        assert memory.store.verify().problems == ()
    with Memory(path, embedder=TokenWords(), settings=NO_CODES) as memory:
        memory.remember("written without")
        assert codes_of(memory)[0] == 4


def test_the_second_look_lifts_what_has_the_querys_tokens_and_says_so():
    with Memory(":memory:", embedder=TokenWords()) as memory:
        ids = memory.remember_many(TEXTS)
        hits = memory.recall("striped zebra", purpose="explain")
        looks = {hit.id: hit.signals["rerank"] for hit in hits}
        assert hits[0].id == ids[0]
        assert max(looks, key=looks.__getitem__) == ids[0]
        assert sum(looks.values()) == pytest.approx(0, abs=1e-6)
        assert "rerank" in hits[0].match_reasons
        assert memory.review.explain("striped zebra", ids[0]).signals["rerank"] == pytest.approx(looks[ids[0]])
        plain = memory.recall("striped zebra", profile={"rerank_weight": 0.0})
        assert {hit.signals["rerank"] for hit in plain} == {0.0}
        assert {hit.signals["rerank"] for hit in memory.recall("striped zebra", mode="vector")} == {0.0}


def test_a_weight_of_0_is_a_store_without_codes():
    answers = []
    for settings in (Settings(), NO_CODES):
        with Memory(":memory:", embedder=TokenWords(), settings=settings) as memory:
            memory.remember_many(TEXTS)
            hits = memory.recall("striped zebra", profile={"rerank_weight": 0.5 if settings is NO_CODES else 0.0})
            answers.append([(hit.text, round(hit.score, 6)) for hit in hits])
    assert answers[0] == answers[1]


def test_a_record_without_codes_neither_gains_nor_loses():
    with Memory(":memory:", embedder=TokenWords()) as memory:
        given = memory.remember(NewRecord("a zebra with a vector of its own", vector=unit(3)))
        wordless = memory.remember("a an")
        memory.remember_many(TEXTS)
        assert codes_of(memory)[0] == 5
        looks = {hit.id: hit.signals["rerank"] for hit in memory.recall("striped zebra", limit=10)}
        assert (looks[given.id], looks[wordless.id]) == (0.0, 0.0)
        assert sum(look > 0 for look in looks.values()) > 0


def test_many_queries_at_once_look_alike(path):
    queries = ["striped zebra", "elephant", "beach shirt", "striped zebra"]
    with Memory(path, embedder=TokenWords()) as memory:
        memory.remember_many(TEXTS * 5)
        alone = [scored(memory.recall(query)) for query in queries]
        assert [scored(hits) for hits in memory.recall_many(queries)] == alone


def test_codes_go_with_their_record_and_stay_with_a_closed_version():
    with Memory(":memory:", embedder=TokenWords()) as memory:
        ids = memory.remember_many(TEXTS)
        memory.update(ids[0], text="something entirely different")
        assert codes_of(memory)[0] == 5
        memory.forget(ids[0])
        memory.forget(ids[1])
        assert codes_of(memory)[0] == 2
        assert memory.store.verify().problems == ()


def test_reembed_adds_codes_and_removes_them(path):
    with Memory(path, embedder=TokenWords(), settings=NO_CODES) as memory:
        memory.remember_many(TEXTS)
        assert memory.recall("striped zebra")[0].signals["rerank"] == 0.0
    with Memory(path, embedder=TokenWords()) as memory:
        assert memory.store.reembed() == 4
        assert codes_of(memory)[0] == 4
        assert memory.recall("striped zebra")[0].signals["rerank"] > 0
        assert memory.store.reembed() == 0
    with Memory(path, embedder=TokenWords(), settings=NO_CODES) as memory:
        assert memory.recall("striped zebra")[0].signals["rerank"] > 0
        assert memory.store.reembed() == 0
        assert codes_of(memory) == (0, 0)
        # The query is in the cache with its tokens; there is nothing to look at any more.
        assert memory.recall("striped zebra")[0].signals["rerank"] == 0.0


def test_another_embedder_brings_its_own_codes(path):
    with Memory(path, embedder=TokenWords()) as memory:
        memory.remember_many(TEXTS)
    with Memory(path, embedder=TokenWords("others")) as memory:
        assert memory.store.reembed() == 4
        assert codes_of(memory)[0] == 4
        assert memory.store.verify().problems == ()
    with Memory(path, embedder=WordEmbedder("plain")) as memory:
        memory.store.reembed()
        memory.remember("an embedder without tokens")
        assert codes_of(memory) == (0, 0)
        assert memory.recall("striped zebra")[0].text == TEXTS[0]


def test_what_waits_for_its_vector_gets_codes_with_it():
    embedder = TokenWords()
    with Memory(":memory:", embedder=embedder) as memory:
        embedder.fail = "raises"
        memory.remember_many(TEXTS)
        assert (memory.store.stats().pending, codes_of(memory)) == (4, (0, 0))
        embedder.fail = None
        memory.remember("the embedder is back")
        assert (memory.store.stats().pending, codes_of(memory)[0]) == (0, 5)


def test_an_embedder_that_leaves_out_codes_is_refused():
    embedder = TokenWords()
    with Memory(":memory:", embedder=embedder) as memory:
        memory.remember(TEXTS[0])
        embedder.cut = True
        memory.remember_many(TEXTS[1:])
        assert memory.store.stats().pending == 3
        hits = memory.recall("zebra")
        assert any("meaning was not searched" in gap for gap in hits.evidence_gaps)


def test_an_import_derives_codes_or_leaves_them_to_reembed(path, tmp_path):
    file = tmp_path / "all.jsonl"
    with Memory(path, embedder=TokenWords()) as memory:
        memory.remember_many(TEXTS)
        memory.transfer.export(file, vectors=True)
    with Memory(":memory:", embedder=TokenWords()) as memory:
        memory.transfer.import_(file)
        assert codes_of(memory)[0] == 0
        assert memory.store.reembed() == 4
        assert codes_of(memory)[0] == 4


@pytest.mark.parametrize("damage", ["UPDATE token_code SET codes = x'010203'", "UPDATE token_code SET codes = 'text'"])
def test_damaged_codes_are_named_and_leave_recall_standing(path, damage):
    with Memory(path, embedder=TokenWords()) as memory:
        memory.remember_many(TEXTS)
    connection = raw(path)
    connection.execute(damage)
    connection.close()
    with Memory(path, embedder=TokenWords()) as memory:
        assert [problem.name for problem in memory.store.verify().problems] == ["token codes of the wrong size"]
        assert memory.recall("striped zebra")[0].text == TEXTS[0]
        memory.store.rebuild()
        assert memory.store.verify().problems == ()
        assert memory.store.reembed() == 4


def test_codes_need_no_embedder_to_be_kept(path):
    with Memory(path, embedder=TokenWords()) as memory:
        memory.remember_many(TEXTS)
    with Memory(path, settings=PLAIN) as memory:
        hits = memory.recall("striped zebra", vector=unit(5))
        assert {hit.signals["rerank"] for hit in hits} == {0.0}
        assert codes_of(memory)[0] == 4
