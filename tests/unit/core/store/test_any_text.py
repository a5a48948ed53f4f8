"""Whatever the text, what is derived from it agrees with it, and it is found by its own words."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.text.words import tokenize
from tests.limits import examples
from tests.unit.core.memory.support import PLAIN

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(batch=st.lists(texts, min_size=1, max_size=6), changed=texts)
def test_words_and_fts_agree_with_any_text(batch, changed):
    with Memory(":memory:", settings=PLAIN) as memory:
        stored = []
        for text in [*batch, changed]:
            try:
                stored.append(memory.remember(text, context=text[::-1]))
            except InvalidInput as fault:
                if fault.reason != "text":
                    raise
                assert not text.strip()
        if not stored:
            return
        if changed.strip():
            memory.update(stored[0].id, text=changed)
        assert memory.store.verify().problems == ()
        for record in memory.list():
            assert memory.get(record.id).text == record.text
            found = {hit.id for hit in memory.recall(record.text, mode="keyword", limit=20)}
            assert record.id in found or not tokenize(record.text)
        assert memory.store.rebuild().problems == ()
        memory.forget(scope="/")
        assert memory.store.vacuum() >= 0
        assert memory.store.stats().terms == 0


def test_a_word_more_often_than_a_byte_counts(memory):
    stored = memory.remember("word " * 1000)
    memory.update(stored.id, text="word " * 600 + "end")
    assert memory.store.verify().problems == ()
    assert memory.store.rebuild().problems == ()
    assert [hit.id for hit in memory.recall("end word")] == [stored.id]
