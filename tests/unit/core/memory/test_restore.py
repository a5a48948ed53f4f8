"""History with restore, and updates of one memory by several at once."""

from __future__ import annotations

import itertools
import threading
from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory
from recallite.errors import InvalidInput, NotFound
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.unit.core.memory.support import PLAIN, WordEmbedder, scored, unit


def texts(memory, id):
    return [version.text for version in memory.history(id)]


def whole(memory, id):
    """The history has no gap, no overlap and no version that never stood."""
    versions = memory.history(id)
    assert all(one.recorded_until == other.recorded_from for one, other in itertools.pairwise(versions))
    assert all(each.recorded_from < each.recorded_until for each in versions[:-1])
    assert versions[-1].recorded_until is None
    assert memory.store.verify().problems == ()


@pytest.fixture
def changed(memory):
    """A memory with the texts one, two, three."""
    id = memory.remember(NewRecord("one", vector=unit(1), tags=["a"], created_at="2026-01-01T00:00:00Z")).id
    memory.update(id, text="two", vector=unit(2), context="a header")
    memory.update(id, text="three", vector=unit(3), tags=["b"], context=None)
    return id


@pytest.mark.parametrize(("version", "text"), [(0, "one"), (1, "two"), (-2, "two"), (-3, "one")])
def test_an_earlier_version_becomes_the_newest_and_nothing_is_lost(memory, changed, version, text):
    record = memory.restore(changed, version)
    assert (record.text, record.outcome, record.tags) == (text, "updated", ("b",))
    assert record.context == ("a header" if text == "two" else None)
    assert texts(memory, changed) == ["one", "two", "three", text]
    whole(memory, changed)
    (hit,) = memory.recall(text, vector=unit({"one": 1, "two": 2}[text]))
    assert (hit.text, round(hit.signals["cosine"], 5)) == (text, 1.0)


def test_a_version_is_named_by_a_time_at_which_it_stood(memory, changed):
    versions = memory.history(changed)
    assert memory.restore(changed, versions[1].recorded_from).text == "two"
    assert memory.restore(changed, "2026-01-02T00:00:00+00:00").text == "one"
    last = memory.history(changed)[2]
    assert memory.restore(changed, last.recorded_until - timedelta(microseconds=1)).text == "three"
    assert texts(memory, changed) == ["one", "two", "three", "two", "one", "three"]
    whole(memory, changed)


def test_as_of_sees_what_stood_before_and_after_a_restore(memory, changed):
    before = datetime.now(UTC)
    memory.restore(changed, 0)
    assert [hit.text for hit in memory.recall("three", vector=unit(3), as_of=before)] == ["three"]
    assert [hit.text for hit in memory.recall("three", vector=unit(3))] == ["one"]


def test_a_merged_memory_can_be_restored(embedded):
    policy = WritePolicy(merge_strategy="latest")
    id = embedded.remember(NewRecord("We use PostgreSQL", topic="database"), policy=policy).id
    embedded.remember(NewRecord("We use MySQL", topic="database"), policy=policy)
    assert embedded.restore(id, 0).text == "We use PostgreSQL"
    (hit,) = embedded.recall("We use PostgreSQL")
    assert hit.signals["cosine"] > 0.99
    whole(embedded, id)


def test_a_version_without_vectors_is_embedded_when_it_is_restored(path):
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        embedder.fail = "raises"
        id = memory.remember("one").id
        memory.update(id, text="two")
        embedder.fail = None
        assert memory.restore(id, 0).embedding_state == "embedded"
        embedder.fail = "raises"
        memory.update(id, text="three")
        assert memory.restore(id, 2).embedding_state == "embedded", "its vectors came along"
        whole(memory, id)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (2, "the current one"),
        (-1, "the current one"),
        (3, "versions 0 to 2"),
        (-4, "versions 0 to 2"),
        (True, "version is True"),
        (1.0, "version is 1.0"),
        (None, "is not superseded"),
        ("some day", "not a time"),
        ("2026-01-01T00:00:00", "no time zone"),
        ("2025-12-31T00:00:00Z", "no version was current then"),
        (datetime(2999, 1, 1, tzinfo=UTC), "the current one"),
    ],
    ids=repr,
)
def test_restore_names_what_is_wrong_with_a_version(memory, changed, version, said):
    with pytest.raises(InvalidInput, match=said):
        memory.restore(changed, version)
    assert texts(memory, changed) == ["one", "two", "three"]


def test_a_memory_without_a_past_has_nothing_to_restore(memory):
    with pytest.raises(InvalidInput, match="is the current one"):
        memory.restore(memory.remember("one").id, 0)
    with pytest.raises(NotFound):
        memory.restore("01234567-89ab-7def-8123-456789abcdef", 0)


def test_a_foreign_memory_is_not_restored(memory, changed):
    with pytest.raises(NotFound):
        memory.scoped("/a").restore(changed, 0)


def test_of_many_updates_at_once_each_text_stood(path):
    memories = [Memory(path, settings=PLAIN) for _ in range(3)]
    id = memories[0].remember("start").id
    together = threading.Barrier(3)

    def write(memory, name):
        for turn in range(12):
            together.wait()
            memory.update(id, text=f"{name} {turn}")

    run(write, memories)
    assert len(texts(memories[0], id)) == 37
    assert len(set(texts(memories[0], id))) == 37
    whole(memories[0], id)
    for memory in memories:
        memory.close()


def test_the_same_text_by_two_at_once_makes_one_version(path):
    memories = [Memory(path, settings=PLAIN) for _ in range(3)]
    id = memories[0].remember("start").id
    together = threading.Barrier(3)

    def write(memory, _):
        for turn in range(8):
            together.wait()
            memory.update(id, text=f"text {turn}")

    run(write, memories)
    assert texts(memories[0], id) == ["start", *(f"text {turn}" for turn in range(8))]
    whole(memories[0], id)
    for memory in memories:
        memory.close()


def test_an_update_of_the_context_keeps_the_text_that_another_wrote_meanwhile(path):
    """It reads the text, embeds it under the new context, and finds that the text is another."""

    class Slow(WordEmbedder):
        meanwhile = None

        def embed(self, texts):
            if self.meanwhile is not None:
                act, self.meanwhile = self.meanwhile, None
                act()
            return super().embed(texts)

    slow = Slow()
    with Memory(path, embedder=slow) as memory, Memory(path, embedder=WordEmbedder()) as other:
        id = memory.remember("old text").id
        slow.meanwhile = lambda: other.update(id, text="new text")
        record = memory.update(id, context="a header")
        assert (record.text, record.context) == ("new text", "a header")
        assert texts(memory, id) == ["old text", "new text", "new text"]
        hits = memory.recall("new text")
        with Memory(path, embedder=WordEmbedder()) as fresh:
            assert scored(fresh.recall("new text")) == scored(hits)
        whole(memory, id)


def run(write, memories):
    threads = [threading.Thread(target=write, args=(memory, number)) for number, memory in enumerate(memories)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
