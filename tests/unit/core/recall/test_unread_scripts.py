"""What the model cannot read: found by its words, judged by its letters, and said to be unread."""

from __future__ import annotations

import pytest

from recallite import Memory, Settings
from tests.unit.core.memory.support import WordEmbedder

STORES = {
    "Cyrillic": (
        ["Гараж закрыт на замок", "Тётя Вера живёт в Самаре", "Отчёт сдаём по четвергам", "Бабушка любит чай"],
        [("Где живёт тётя Вера?", 1), ("Когда сдаём отчет?", 2), ("гараж", 0)],
        ["Сколько километров до Марса?", "Как включить принтер на работе?", "Почини это"],
    ),
    "Greek": (
        ["Το γκαράζ έχει λουκέτο", "Η θεία Βέρα μένει στον Βόλο", "Η αναφορά παραδίδεται την Πέμπτη", "Πίνω τσάι"],
        [("Πού μένει η θεία Βέρα;", 1), ("Πότε παραδιδεται η αναφορα;", 2), ("γκαραζ", 0)],
        ["Πόσο απέχει ο Άρης από τη Γη;", "Πώς ανοίγει ο εκτυπωτής στη δουλειά;", "Φτιάξε το"],
    ),
    "Chinese characters": (
        ["车库用挂锁锁着", "维拉阿姨住在合肥", "报告每周四交", "奶奶爱喝茶"],
        [("维拉阿姨住在哪里?", 1), ("报告什么时候交?", 2), ("茶", 3)],
        ["去火星有多远?", "怎么打开办公室的打印机?", "把它修好"],
    ),
    "Hangul": (
        ["차고는 자물쇠로 잠근다", "베라 이모는 청주에 산다", "보고서는 목요일마다 낸다", "할머니는 녹차를 좋아하신다"],
        [("베라 이모는 어디에 살아?", 1), ("보고서는 언제 내?", 2), ("녹", 3)],
        ["화성까지 거리가 얼마야?", "사무실 프린터 켜는 법 알려 줘", "그거 고쳐 줘"],
    ),
    "Thai": (
        ["โรงรถใช้แม่กุญแจล็อก", "ป้าเวร่าอยู่ที่ลำปาง", "ส่งรายงานทุกวันพฤหัส", "ยายชอบดื่มชา"],
        [("ป้าเวร่าอยู่ที่ไหน", 1), ("ส่งรายงานวันไหน", 2), ("ชา", 3)],
        ["ดาวอังคารไกลแค่ไหน", "เปิดเครื่องพิมพ์ที่ออฟฟิศอย่างไร", "แก้ให้หน่อย"],
    ),
}  # fmt: skip
ENGLISH = ["The garden hose leaks", "Nora plays the cello"]


@pytest.fixture(params=[*STORES])
def script(request):
    return request.param


@pytest.fixture
def memory(script):
    with Memory(":memory:") as memory:
        memory.remember_many([*STORES[script][0], *ENGLISH])
        yield memory


def test_a_question_with_a_memorys_words_is_answered(memory, script):
    texts, asked, _ = STORES[script]
    for question, right in asked:
        hits = memory.recall(question, relevant=True)
        assert hits[0].text == texts[right]


def test_an_unrelated_question_is_not_answered_and_the_gaps_say_why(memory, script):
    for question in STORES[script][2]:
        hits = memory.recall(question, relevant=True)
        assert not hits
        *_, why = hits.evidence_gaps
        assert why.startswith(f"the model recallite-minilm does not read {script}: keywords alone were searched")


def test_explain_says_that_the_question_is_not_read(memory, script):
    question, _ = STORES[script][1][0]
    hits = memory.recall(question)
    explained = memory.review.explain(question, hits[0].id)
    assert explained.returned
    assert f"does not read {script}" in explained.reason


def test_a_sure_answer_has_no_gap(memory, script):
    question, _ = STORES[script][1][0]
    assert memory.recall(question, relevant=True).evidence_gaps == ()


def test_questions_of_one_call_are_read_each_by_itself(memory, script):
    asked = ["Who plays an instrument?", *(question for question, _ in STORES[script][1])]
    together = memory.recall_many(asked, limit=3, purpose="inspect")
    alone = [memory.recall(question, limit=3, purpose="inspect") for question in asked]
    assert [[(hit.id, hit.confidence) for hit in hits] for hits in together] == [
        [(hit.id, hit.confidence) for hit in hits] for hits in alone
    ]
    assert together[0][0].text == ENGLISH[1]
    assert together[0][0].signals["cosine"] > 0
    assert all(hit.signals["cosine"] == 0 for hits in together[1:] for hit in hits)


def test_texts_that_are_not_read_have_no_vectors_and_are_told_once(memory, script):
    figures = memory.store.stats()
    assert (figures.refused, figures.vectors, figures.pending) == (4, 2, 0)
    (note,) = [note for note in figures.notes if "refuses" in note]
    assert note.endswith(f"the model recallite-minilm does not read {script}")
    assert memory.store.verify().ok


def test_a_vector_that_is_asked_for_alone_is_compared(memory, script):
    hits = memory.recall(STORES[script][1][0][0], mode="vector")
    assert {hit.text for hit in hits} == {*ENGLISH}


def test_words_of_another_script_beside_english_names_are_embedded():
    with Memory(":memory:") as memory:
        memory.remember_many(["Nginx слушает порт 8443", *ENGLISH])
        assert memory.store.stats().vectors == 3
        assert memory.recall("Which port does Nginx listen on?")[0].text == "Nginx слушает порт 8443"


def test_a_model_that_does_not_say_what_it_reads_is_taken_to_read_all():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.remember_many(STORES["Cyrillic"][0])
        assert memory.store.stats().refused == 0
        assert memory.recall("тётя Вера")[0].signals["cosine"] > 0


def test_another_model_embeds_what_this_one_could_not_read(tmp_path):
    path = tmp_path / "agent.db"
    with Memory(path) as memory:
        memory.remember_many(STORES["Greek"][0])
        assert memory.store.stats().refused == 4
    with Memory(path, embedder=WordEmbedder()) as memory:
        assert memory.store.reembed() == 4
        assert memory.store.stats().refused == 0


def test_a_memory_without_an_embedder_does_not_speak_of_models():
    with Memory(":memory:", settings=Settings(embedder="none")) as memory:
        memory.remember_many(STORES["Cyrillic"][0])
        hits = memory.recall("Сколько километров до Марса?")
        assert not any("model" in gap for gap in hits.evidence_gaps)
