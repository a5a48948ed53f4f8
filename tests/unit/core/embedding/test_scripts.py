"""Which scripts a model reads, by its vocabulary."""

from __future__ import annotations

import pytest

from recallite.embedding.load import load
from recallite.embedding.tokens import Scripts

CYRILLIC = [f"##{a}{b}" for a in "абвгдежзик" for b in "лмнопрстуф"]


class Vocabulary:
    def __init__(self, *pieces: str) -> None:
        self.pieces, self.read = pieces, 0

    def get_vocab(self) -> dict[str, int]:
        self.read += 1
        return {piece: number for number, piece in enumerate(self.pieces)}


@pytest.fixture(scope="module", params=["default", "instant"])
def embedder(request):
    return load(request.param)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("Собака спит на диване", "Cyrillic"),
        ("Ο σκύλος κοιμάται", "Greek"),
        ("小狗在沙发上睡觉", "Chinese characters"),
        ("いぬがねている", "Hiragana"),
        ("강아지가 소파에서 잔다", "Hangul"),
        ("الكلب ينام على الأريكة", "Arabic"),
        ("הכלב ישן על הספה", "Hebrew"),
        ("หมานอนบนโซฟา", "Thai"),
        ("कुत्ता सोफे पर सोता है", "Devanagari"),
        ("ძაღლს სძინავს", "Georgian"),
        ("ＤＯＧ", "full-width letters"),
        ("🐶🐶", "Symbols"),
        ("  Собака: 3!  ", "Cyrillic"),
    ],
)
def test_a_vocabulary_of_english_reads_no_other_script(embedder, text, script):
    (unread,) = embedder.unread([text])
    assert (unread.script, unread.share) == (script, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The dog sleeps",
        "Der Hund schläft",
        "Pies śpi na kanapie",
        "Con chó đang ngủ",
        "…",
        "3 × 4",
        "Great 🐶",
        "– – –",
    ],
)
def test_latin_script_is_read_and_so_is_what_has_no_letters(embedder, text):
    assert embedder.unread([text]) == [None]


def test_the_share_of_the_letters_that_are_read_is_told(embedder):
    (unread,) = embedder.unread(["Docker и Kafka"])
    assert unread.share == pytest.approx(11 / 12)


def test_a_script_is_read_if_the_vocabulary_has_words_of_it():
    assert Scripts(Vocabulary("dog", *CYRILLIC)).unread("Собака") is None
    assert Scripts(Vocabulary("dog", *CYRILLIC[:99])).unread("Собака").script == "Cyrillic"
    letters = [chr(0x430 + i) for i in range(32)]
    assert Scripts(Vocabulary("dog", *letters)).unread("Собака").share == 0
    han = [chr(0x4E00 + i) for i in range(1000)]
    assert Scripts(Vocabulary("dog", *han)).unread("小狗") is None
    assert Scripts(Vocabulary("dog", *han)).unread("小狗ねる").share == 0.5


def test_a_vocabulary_of_bytes_reads_everything():
    assert Scripts(Vocabulary("Ġdog", "Ð¾")).unread("Собака") is None


def test_texts_in_latin_script_do_not_have_the_vocabulary_read():
    vocabulary = Vocabulary("dog")
    scripts = Scripts(vocabulary)
    assert scripts.unread("Über die Brücke") is None
    assert vocabulary.read == 0
    assert scripts.unread("Собака")
    assert scripts.unread("Кот")
    assert vocabulary.read == 1
