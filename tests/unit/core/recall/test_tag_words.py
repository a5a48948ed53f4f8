"""The words of tags are words of their record, but not of its text."""

from __future__ import annotations

from recallite import Memory
from recallite.recall.request import recall_arguments


def found(memory, question, **options):
    return [hit.text for hit in memory.recall(question, **recall_arguments({"mode": "keyword", **options}))]


def test_a_record_is_found_by_its_tag_and_mentions_it(memory):
    memory.remember("We migrated from PostgreSQL to MySQL", tags=["database", "back-end"])
    memory.remember("We use Kubernetes on AWS")
    assert found(memory, "database") == ["We migrated from PostgreSQL to MySQL"]
    assert found(memory, "backend") == ["We migrated from PostgreSQL to MySQL"]
    hits = memory.recall("Which database do we use?")
    assert not any("database" in gap for gap in hits.evidence_gaps)


def test_words_follow_the_tags(path):
    with Memory(path, embedder="none") as memory:
        one = memory.remember("We chose MySQL", tags=["database"])
        other = memory.remember("We chose Rust", tags=["language"])
        memory.update(one.id, tags=["storage"])
        assert (found(memory, "database"), found(memory, "storage")) == ([], ["We chose MySQL"])
        memory.update(one.id, text="We chose SQLite")
        assert found(memory, "storage") == ["We chose SQLite"]
        memory.update(one.id, text="We chose Redis", tags=["cache"])
        assert (found(memory, "storage"), found(memory, "cache")) == ([], ["We chose Redis"])
        memory.update(other.id, tags=[])
        assert found(memory, "language") == []
        assert memory.store.verify().ok
        memory.store.rebuild()
        assert memory.store.verify().ok
    with Memory(path, embedder="none") as memory:
        assert found(memory, "cache") == ["We chose Redis"]


def test_an_earlier_version_has_its_own_tags(memory):
    one = memory.remember("We chose MySQL", tags=["database"])
    before = memory.get(one.id).recorded_from
    memory.update(one.id, text="We chose Redis")
    memory.update(one.id, tags=["cache"])
    assert found(memory, "database", as_of=before) == ["We chose MySQL"]
    assert found(memory, "database") == []


def test_tags_do_not_make_texts_alike(memory):
    tags = ["kitchen", "recipes", "dinner", "italian"]
    memory.remember("apple pie", importance=0.9, tags=tags)
    memory.remember("apple cake with cream", tags=tags)
    memory.remember("apple pie again", importance=0.6)
    # By text the first and the last are alike; by tags the first two would be.
    chosen = memory.recall("apple", limit=2, profile={"mmr_lambda": 0.3})
    assert [hit.text for hit in chosen] == ["apple pie", "apple cake with cream"]
