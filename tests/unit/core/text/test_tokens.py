from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recallite.text.words import MAX_TERM_CHARS, query_terms, tokenize
from tests.limits import examples

HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF), min_size=2, max_size=2)
FILLER = st.text(st.characters(min_codepoint=0x3041, max_codepoint=0x3096), max_size=8)
WORD = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
properties = settings(derandomize=True, max_examples=examples(200), deadline=None)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The cats were running", ["the", "cat", "were", "run"]),
        ("Caroline's sister", ["carolin", "sister"]),
        ("Caroline’s sister", ["carolin", "sister"]),
        ("don't, can't", ["dont", "cant"]),
        ("we'll they've she'd I'm", ["we", "they", "she", "i"]),
        ("l'été d'accord", ["ete", "accord"]),
        ("O'Brien rock'n'roll 'quoted'", ["obrien", "rocknrol", "quot"]),
        ("foo_bar", ["foo", "bar", "foobar"]),
        ("e-mail", ["e", "mail", "email"]),
        ("__init__.py", ["init", "py"]),
        ("v1.2.3", ["1·2·3", "1·2", "1"]),
        ("1.2", ["1·2", "1"]),
        ("pi is 3.14.", ["pi", "is", "3·14", "3"]),
        ("$1,000,000 or 1,000.50", ["1000000", "or", "1000·50", "1000"]),
        ("10:30 on 2023-05-08", ["10", "30", "on", "2023", "05", "08", "20230508"]),
        ("C++ C# F# C++17", ["cplusplus", "csharp", "fsharp", "cplusplus", "17"]),
        ("#hashtag user@example.com", ["hashtag", "user", "exampl", "com"]),
        ("U.S.A. e.g.", ["usa", "eg"]),
        ("Café CAFE\u0301 naïve Ångström", ["cafe", "cafe", "naiv", "angstrom"]),
        ("Straße Ærø İstanbul", ["strass", "aero", "istanbul"]),
        ("１２３ ＡＢＣ ﬁsh", ["123", "abc", "fish"]),
        ("東京都", ["東京", "京都", "東", "京", "都"]),
        ("猫 x 犬", ["猫", "x", "犬"]),
        ("Pythonで書く", ["python", "で書", "書く", "書"]),
        ("ﾃﾞｰﾀ", ["デー", "ータ"]),
        ("한국어 공부", ["한국", "국어", "한", "국", "어", "공부", "공", "부"]),
        ("น้ำตาล", ["น้ําตา", "ตาล", "น้ํา", "ตา"]),
        ("ស្រុក", ["ស្រុក", "ស្រុ"]),
        ("हिन्दी में", ["हिंदी", "में"]),
        ("مُحَمَّد", ["محمد"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("привет мир", ["привет", "мир"]),
        ("٣ आ३", ["3", "आ3"]),
        ("co\u00adoperate می\u200cخواهم", ["cooper", "ميخواهم"]),
    ],
)
def test_each_kind_of_word_gives_the_documented_terms(text: str, terms: list[str]) -> None:
    assert tokenize(text) == [unicodedata.normalize("NFKC", term) for term in terms]


@pytest.mark.parametrize(
    "text", ["", " \t\n", "...---!?", "'\"''", "😀🎉👩‍👩‍👧", "\x00\x1f", "\ud800", "+ # _ - '", "·•…"]
)
def test_text_without_words_has_no_terms(text: str) -> None:
    assert tokenize(text) == []
    assert query_terms(text) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("memories", "memory"),
        ("databases", "database"),
        ("batches", "batch"),
        ("migrated", "migrating"),
        ("dogs", "dog's"),
        ("user_name", "userName"),
        ("E-Mail", "email"),
        ("café", "CAFE"),
        ("don’t", "dont"),
        ("é", "e\u0301"),
        ("Ｗｉｄｅ", "wide"),
        ("зелёный", "зеленый"),
        ("до́ма", "дома"),
        ("Θάλασσα", "θαλασσα"),
        ("ΔΡΌΜΟΣ", "δρομος"),
        ("προϊόν", "προιον"),
        ("سَيَّارَة", "سياره"),
        ("إسلام", "اسلام"),
        ("على", "علي"),
        ("مـــرحبا", "مرحبا"),
        ("کلید", "كليد"),
        ("סֵפֶר", "ספר"),
        ("İzmir", "izmir"),
        ("kapı", "KAPI"),
        ("ﾍﾟｯﾄ", "ペット"),
        ("ヘ゜ット", "ペット"),
        ("बन्दर", "बंदर"),
        ("दाँत", "दांत"),
        ("सड़क", "सडक"),
        ("પમ્પ", "પંપ"),
    ],
)
def test_spellings_of_one_word_share_a_term(one: str, other: str) -> None:
    assert set(tokenize(one)) & set(tokenize(other))


@given(st.text(st.characters()))
@properties
def test_any_text_gives_terms_that_space_separates(text: str) -> None:
    terms = tokenize(text)
    assert " ".join(terms).split() == terms
    for term in terms:
        assert 0 < len(term) <= MAX_TERM_CHARS
        assert re.fullmatch(r"[a-z0-9\x80-\U0010ffff]+", term)
        term.encode()


@given(st.text(st.characters(categories=["L", "M", "N", "P", "Zs"])))
@properties
def test_case_and_normal_form_do_not_matter(text: str) -> None:
    terms = tokenize(text)
    for form in ("NFC", "NFD"):
        assert tokenize(unicodedata.normalize(form, text)) == terms


@given(st.lists(WORD, max_size=8), st.lists(WORD, max_size=8))
@properties
def test_texts_side_by_side_give_the_terms_of_both(left: list[str], right: list[str]) -> None:
    one, two = " ".join(left), " ".join(right)
    assert tokenize(f"{one} {two}") == tokenize(one) + tokenize(two)


@given(st.text(st.characters(max_codepoint=127)))
@properties
def test_the_short_way_for_ascii_agrees_with_the_long_way(text: str) -> None:
    assert tokenize(text + " я") == [*tokenize(text), "я"]


@given(FILLER, HAN, FILLER)
@properties
def test_a_word_of_two_characters_is_found_inside_a_sentence(before: str, word: str, after: str) -> None:
    normal = unicodedata.normalize("NFKC", word)
    assert tokenize(word) == [normal, *normal]
    assert query_terms(word) == [normal]
    assert set(tokenize(word)) <= set(tokenize(before + word + after))


@given(st.sampled_from(["cat", "river", "teacher", "guitar", "recipe", "camera", "window", "planet", "doctor"]))
@properties
def test_a_plural_matches_its_singular(noun: str) -> None:
    assert tokenize(noun + "s") == tokenize(noun) == tokenize(noun.upper()) == tokenize(noun + "'s")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
@settings(derandomize=True, max_examples=examples(60), deadline=None)
def test_fts5_reads_the_same_terms(text: str) -> None:
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(words, tokenize='ascii')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, 'row')")
    counts = dict(Counter(tokenize(text)))
    db.execute("INSERT INTO f VALUES (?)", (" ".join(tokenize(text)),))
    assert dict(db.execute("SELECT term, cnt FROM v").fetchall()) == counts


def test_query_terms_are_distinct_and_in_order() -> None:
    assert query_terms("dogs and cats, cats and a dog") == ["dog", "and", "cat", "a"]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("犬", ["犬"]),
        ("小犬", ["小犬"]),
        ("犬と小犬", ["犬と", "と小", "小犬"]),
        ("犬が好き", ["犬が", "が好", "好き", "犬", "好"]),
        ("말을 탄다", ["말을", "탄다"]),
        ("말", ["말"]),
        ("ปลา", ["ปลา"]),
        ("ขา", ["ขา"]),
    ],
)
def test_a_query_asks_for_a_character_if_no_pair_of_its_script_has_it(query: str, terms: list[str]) -> None:
    assert query_terms(query) == terms


@pytest.mark.parametrize(("one", "other"), [("їх", "іх"), ("йод", "иод"), ("がき", "かき"), ("बल", "बाल")])
def test_marks_that_make_another_letter_stay(one: str, other: str) -> None:
    assert tokenize(one) != tokenize(other)


def test_a_word_of_ten_million_letters_is_one_short_term() -> None:
    assert tokenize("x" * 10_000_000) == ["x" * MAX_TERM_CHARS]
    assert tokenize("é" * 100_000) == ["e" * MAX_TERM_CHARS]
    assert tokenize("я" * 100_000) == ["я" * MAX_TERM_CHARS]


@pytest.mark.parametrize("unit", ["a-", "a_", "a.", "a'", "1.", "1,", "+", "#", "'", "\u0301", "日a", "é.", "-é"])
def test_a_long_run_of_inner_marks_is_harmless(unit: str) -> None:
    assert all(len(term) <= MAX_TERM_CHARS for term in tokenize(unit * 100_000))


def test_threads_agree_with_one_thread() -> None:
    words = [f"{stem}{ending}" for stem in ("connect", "relat", "organiz") for ending in ("ing", "ed", "ions", "ional")]
    texts = [" ".join(f"{word}{letter}s" for word in words) for letter in "abcdefghijklmnopqrstuvwxyz"]
    found: list[list[list[str]]] = []
    threads = [threading.Thread(target=lambda: found.append([tokenize(text) for text in texts])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[tokenize(text) for text in texts]] * 8


@pytest.mark.parametrize("word", ["v12", "12", "U.S.A", "c++", "café", "日本v2", "e-mail", "don't"])
def test_a_comma_or_full_stop_behind_a_word_changes_no_term(word):
    for mark in (",", ".", ".,"):
        assert tokenize(word + mark) == tokenize(word + mark + " ") == tokenize(word)
