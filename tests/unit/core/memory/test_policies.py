"""What a write does besides storing: topics and merging, duplicates, recalled text, contradictions, links."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from recallite import Memory, Settings
from recallite.errors import InvalidInput
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from recallite.remember.write import remember_one
from recallite.text.quotes import NOTICE
from tests.unit.core.memory.support import ONLY_STORES, PLAIN, WordEmbedder, unit

LATEST = WritePolicy(merge_strategy="latest", topic_cosine=0.92)
REPLACE = WritePolicy(merge_strategy="replace", topic_cosine=0.92)
APPEND = WritePolicy(topic_cosine=0.92)
RECALLED = WritePolicy(recognise_recalled=True)
LINKS = WritePolicy(link_cosine=0.85)
OLD, NEW = "We use PostgreSQL", "We use MySQL"
HERMES = Settings(profile="hermes").write_policy


def at(cosine: float, axis: int = 1) -> np.ndarray:
    """A unit vector at this cosine to the first axis."""
    vector = np.zeros(16, dtype=np.float32)
    vector[0], vector[axis] = cosine, np.sqrt(1 - cosine**2)
    return vector


def texts(memory: Memory, **filters) -> list[str]:
    return [record.text for record in memory.list(order="oldest", **filters)]


# ── topics and merge strategies ────────────────────────────────────────────────────────────────────────────────────


def test_by_default_nothing_merges(embedded):
    first, second = (
        embedded.remember(NewRecord(OLD, topic="database")),
        embedded.remember(NewRecord(NEW, topic="database")),
    )
    assert (first.outcome, second.outcome) == ("created", "created")
    assert first.id != second.id


def test_latest_makes_the_text_the_next_version_of_its_topic(embedded):
    first = embedded.remember(NewRecord(OLD, topic="database"), policy=LATEST)
    moment = datetime.now(UTC)
    second = embedded.remember(NewRecord(NEW, topic="database"), policy=LATEST)
    assert (first.outcome, second.outcome, second.id, second.text) == ("created", "merged", first.id, NEW)
    assert [hit.text for hit in embedded.recall("which database do we use?")] == [NEW]
    assert [hit.text for hit in embedded.recall("which database do we use?", as_of=moment)] == [OLD]
    assert [version.text for version in embedded.history(first.id)] == [OLD, NEW]
    assert embedded.store.verify().problems == ()


def test_replace_leaves_nothing_of_the_old_text(on_disk):
    first = on_disk.remember(NewRecord("the secret", topic="t", vector=unit(1)), policy=REPLACE)
    moment = datetime.now(UTC)
    second = on_disk.remember(NewRecord("the public word", topic="t", vector=unit(2)), policy=REPLACE)
    assert (second.outcome, second.id) == ("replaced", first.id)
    assert [version.text for version in on_disk.history(first.id)] == ["the public word"]
    assert on_disk.recall("secret", as_of=moment) == []
    assert on_disk.recall("secret", mode="keyword") == []
    assert (on_disk.store.stats().vectors, on_disk.store.stats().versions, on_disk.count()) == (1, 0, 1)
    with on_disk._engine.store.read() as reader:
        assert reader.connection.execute("SELECT count(*) FROM record WHERE text LIKE '%secret%'").get == 0
    assert on_disk.store.verify().problems == ()


def test_append_keeps_all_and_a_detected_topic_is_inherited(memory):
    memory.remember(NewRecord("first", topic="the topic", vector=at(1)), policy=APPEND)
    second = memory.remember(NewRecord("the first", vector=at(0.95)), policy=APPEND)
    far = memory.remember(NewRecord("first again", vector=at(0.5)), policy=APPEND)
    assert (second.outcome, second.topic, far.topic) == ("created", "the topic", None)
    assert texts(memory, where={"topic": "the topic"}) == ["first", "the first"]


@pytest.mark.parametrize(("cosine", "outcome"), [(0.9205, "merged"), (0.9195, "created"), (1.0, "merged")])
def test_a_topic_is_detected_at_cosine_0_92(memory, cosine, outcome):
    memory.remember(NewRecord("the sky is blue", vector=at(1)), policy=LATEST)
    written = memory.remember(NewRecord("the sky is grey", vector=at(cosine)), policy=LATEST)
    assert written.outcome == outcome
    assert written.cosine == (None if outcome == "created" else pytest.approx(cosine, abs=1e-6))


def test_a_topic_is_one_of_exactly_one_scope_and_kind(memory):
    memory.remember(NewRecord("one", scope="/a", topic="t", vector=at(1)), policy=LATEST)
    for where in ({"scope": "/a/b"}, {"scope": "/"}, {"scope": "/a", "kind": "note"}):
        assert (
            memory.remember(NewRecord("it is red", topic="t", vector=at(1), **where), policy=LATEST).outcome
            == "created"
        )
        assert memory.remember(NewRecord("it is green", vector=at(1), **where), policy=LATEST).outcome == "merged"
    assert memory.scoped("/a").remember(NewRecord("four", topic="t", vector=at(1)), policy=LATEST).outcome == "merged"


def test_a_topic_is_detected_with_the_real_embedder(embedded):
    first = embedded.remember("The backup drive is nearly full", policy=LATEST)
    merged = embedded.remember("The backup drive is full", policy=LATEST)
    other = embedded.remember("Alice has a dog", policy=LATEST)
    assert (merged.outcome, merged.id, other.outcome) == ("merged", first.id, "created")
    assert merged.cosine > 0.92


def test_what_a_merging_write_gives_replaces_and_what_it_leaves_stays(memory):
    moment = "2026-01-01T00:00:00Z"
    old = {"tags": ["a"], "importance": 0.9, "metadata": {"k": 1}, "source": "s", "position": 1, "valid_from": moment}
    first = memory.remember(NewRecord("one", topic="t", created_at=moment, **old), policy=LATEST)
    second = memory.remember(NewRecord("two", topic="t"), policy=LATEST)
    assert (second.tags, second.importance, second.metadata) == (("a",), 0.9, {"k": 1})
    assert (second.source, second.position, second.valid_from) == ("s", 1, None)
    assert second.created_at > first.created_at
    new = {"tags": ("b",), "importance": 0.2, "metadata": {"l": 2}, "source": "s2", "position": 7, "pinned": True}
    third = memory.remember(NewRecord("three", topic="t", **new), policy=LATEST)
    assert {name: getattr(third, name) for name in new} == new
    assert memory.get(first.id) == third.__class__(**{**_fields(third), "outcome": "stored"})
    assert [version.tags for version in memory.history(first.id)] == [("a",), ("a",), ("b",)]


def _fields(record):
    return {name: getattr(record, name) for name in record.__struct_fields__}


def test_the_age_of_a_merged_memory_is_that_of_its_text(memory):
    memory.remember(NewRecord("the old text", topic="t", created_at="2020-01-01T00:00:00Z"), policy=LATEST)
    memory.remember(NewRecord("the new text", topic="t"), policy=LATEST)
    (hit,) = memory.recall("new text")
    assert datetime.now(UTC) - hit.created_at < timedelta(minutes=5)
    assert hit.signals["decay"] > 0.99


def test_the_same_text_on_a_topic_makes_no_version(memory):
    first = memory.remember(NewRecord("one", topic="t"), policy=LATEST)
    again = memory.remember(NewRecord("one", topic="t", importance=0.8), policy=LATEST)
    assert (again.outcome, again.id, again.importance) == ("merged", first.id, 0.8)
    assert len(memory.history(first.id)) == 1


def test_a_pinned_text_is_kept_when_it_is_replaced(memory):
    first = memory.remember(NewRecord("pinned", topic="t", pinned=True), policy=REPLACE)
    second = memory.remember(NewRecord("after", topic="t"), policy=REPLACE)
    assert (second.outcome, second.pinned) == ("merged", True)
    assert [version.text for version in memory.history(first.id)] == ["pinned", "after"]


def test_an_expired_memory_is_no_topic_and_no_duplicate(memory):
    policy = WritePolicy(merge_strategy="latest", recognise_recalled=True)
    past = datetime.now(UTC) - timedelta(days=1)
    gone = NewRecord("gone", topic="t", vector=at(1), created_at=past - timedelta(days=1), expires_at=past)
    memory.remember(gone, policy=policy)
    assert memory.remember(NewRecord("gone", topic="t", vector=at(1)), policy=policy).outcome == "created"


# ── duplicates ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_equal_text_is_a_duplicate_without_vectors(memory):
    first = memory.remember("the same thing", tags=["a"])
    again = memory.remember("the same thing", importance=0.9)
    assert (again.outcome, again.id, again.tags, again.importance) == ("duplicate", first.id, ("a",), 0.5)
    assert memory.count() == 1


@pytest.mark.parametrize("cosine", [None, 0.99, 0.5])
def test_hermes_a_near_duplicate_is_the_same_memory(memory, cosine):
    """Told by the words, as a model's cosine of 0.98 may stand for another number; so it needs no vector either."""
    given = {} if cosine is None else {"vector": at(1)}
    memory.remember(NewRecord("Alice lives in Paris", **given), policy=HERMES)
    again = memory.remember(
        NewRecord("alice lives in Paris!", **{} if cosine is None else {"vector": at(cosine)}), policy=HERMES
    )
    assert again.outcome == "duplicate"


# Alike, and two memories.
DIFFERENT = [
    ("The meeting is on 3 May", "The meeting is on 4 May"),
    ("The API key expires in March 2026", "The API key expires in April 2026"),
    ("The server has 16 GB of RAM", "The server has 32 GB of RAM"),
    ("Our budget is 10,000 euros", "Our budget is 12,000 euros"),
    ("The office opens at 9:00", "The office opens at 8:30"),
    ("The deadline is Friday", "The deadline is Monday"),
    ("Deploys happen on Tuesdays", "Deploys happen on Thursdays"),
    ("Alice likes coffee", "Alice does not like coffee"),
    ("Alice likes coffee", "Alice doesn't like coffee."),
    ("The user is vegetarian", "The user is no longer vegetarian"),
    (
        "We decided to use Kubernetes for deployment",
        "We decided not to use Kubernetes for deployment",
    ),
    ("She never eats meat", "She eats meat"),
    ("The build passes on Linux", "The build fails on Linux"),
    (OLD, NEW),
    ("The user prefers dark mode", "The user prefers light mode"),
    ("Alice lives in Paris", "Alice lives in Rome"),
    ("The user's favorite color is blue", "The user's favorite color is green"),
    ("Alice is the CEO", "Bob is the CEO"),
    ("Send reports to Ann", "Send reports from Ann"),
    ("The timeout is 30 seconds", "The timeout is 30 minutes"),
    ("Alice lives in Paris", "Bob lives in Paris"),
    ("Alice likes tea", "Alice likes coffee"),
    ("Caroline visited Rome in June", "Caroline visited Paris in June"),
    ("Bob is taller than Alice", "Alice is taller than Bob"),
    ("Ann paid Bob 50 dollars", "Bob paid Ann 50 dollars"),
    ("He told her the news", "She told him the news"),
    ("Room 3 is blue", "Room 4 is blue"),
    ("Alice is my friend", "Bob is my friend"),
    ("Did Alice move to Rome?", "Alice moved to Rome."),
    ("The cat sat on the mat", "The dog chased the ball"),
    ("Der Server läuft", "Der Server läuft nicht"),
    ("用户喜欢咖啡", "用户不喜欢咖啡"),
    ("The jar costs $5", "The jar costs €5"),
    ("It is -5 degrees in Oslo", "It is 5 degrees in Oslo"),
    ("The user prefers concise answers", "The user prefers concise replies"),
    ("I have a dog named Rex", "I have a cat named Tom"),
    ("Python 3.11 is required", "Python 3.12 is required"),
]


def test_near_texts_that_differ_in_a_number_a_name_or_a_negation_are_not_the_same_memory(embedded):
    """With the real embedder, at cosines of up to 0.99."""
    for number, (one, other) in enumerate(DIFFERENT):
        embedded.remember(one, scope=f"/{number}", policy=HERMES)
        assert embedded.remember(other, scope=f"/{number}", policy=HERMES).outcome == "created", (one, other)
    same = [
        ("Alice lives in Paris.", "alice lives in  Paris"),
        ("Yesterday I met Bob at the station", "I met Bob at the station yesterday"),
    ]
    for number, (one, other) in enumerate(same):
        embedded.remember(one, scope=f"/same/{number}", policy=HERMES)
        assert embedded.remember(other, scope=f"/same/{number}", policy=HERMES).outcome == "duplicate"


def test_long_texts_are_duplicates_only_when_they_are_equal(embedded):
    """Embedded in parts, they are compared by their nearest ones, which may be all that they share."""
    long = " ".join(f"Item {number} of the list was checked and found in order." for number in range(60))
    embedded.remember(long, policy=HERMES)
    assert embedded.remember(long, policy=HERMES).outcome == "duplicate"
    assert embedded.remember(long + " But not all.", policy=HERMES).outcome == "created"
    policy = WritePolicy(merge_strategy="latest", topic_cosine=0.9)
    assert embedded.remember("Item 1 of the list was checked.", policy=policy).outcome == "created"


# ── recalled text ──────────────────────────────────────────────────────────────────────────────────────────────────

FACTS = [
    "We migrated from PostgreSQL to MySQL last week",
    "Alice likes green tea.",
    "A plan:\n- buy milk\n- go home (soon)",
]
# Stands for the id of the memory about Alice.
ID = "01234567-89ab-7def-8123-456789abcdef"
# Alice's, with what is known of it.
KNOWN = {
    "scope": "/a/b", "tags": ["drinks"], "source": "chat-1", "context": "Alice", "created_at": "2026-01-02T09:30:00Z",
}  # fmt: skip
QUOTES = [
    FACTS[0],
    "  we migrated from postgresql\nto MySQL   last week. ",
    '"We migrated from PostgreSQL to MySQL last week"',
    "- Alice likes green tea\n- We migrated from PostgreSQL to MySQL last week",
    "1. [0.91] Alice likes green tea.\n2. [0.83] We migrated from PostgreSQL to MySQL last week",
    "Relevant memories:\n\n* 0.91 Alice likes green tea. (score: 0.91)\n* A plan:\n- buy milk\n- go home (soon)",
    "> Alice likes green tea. (2026-01-02, /a/b, score 0.83)",
    "[memory 1 | /b | confidence=0.83] Alice likes green tea.",
    "[drinks, 2026-01-02T09:30:00Z] Alice likes green tea.",
    f'<memory id="{ID}" scope="/a/b" score="0.8" tags="drinks">\nAlice likes green tea.\n</memory>',
    '{"results": [{"content": "Alice likes green tea.", "score": 0.83, "tags": ["drinks"], "source": "chat-1"}]}',
    f'{{"text": "Alice likes green tea.", "id": "{ID}", "context": "Alice", "match_reasons": ["semantic", "rerank"]}}',
    f"0.83\t{ID}\t/a/b\tAlice likes green tea.",
    f"Recalled memories:\n```\nAlice likes green tea.\n```\n{NOTICE}",
]
NO_QUOTES = [
    "Alice likes green tea. She also likes dogs.",
    "- Alice likes green tea\n- She has a dog",
    "Wrong: Alice likes green tea.",
    "[outdated] Alice likes green tea.",
    "These memories are wrong:\n- Alice likes green tea.",
    "Alice likes green tea?",
    "Alice likes tea",
    '{"content": "Alice likes green tea.", "note": "no longer"}',
    "Relevant memories:",
    "Alice likes green tea (status: cancelled)",
    "Alice likes green tea (until 2027)",
    "Alice likes green tea [agent=Bob]",
    "Alice likes green tea (?)",
    "Alice likes green tea (2)",
    "Alice likes green tea 2026-12-31",
    "2027-05-01: Alice likes green tea",
    "85% Alice likes green tea",
    "-2 Alice likes green tea",
    "/elsewhere - Alice likes green tea",
    "[status=cancelled] Alice likes green tea",
    "[x] Alice likes green tea",
    "[past] Alice likes green tea",
    "[id=01234567-89ab-7def-8123-000000000000] Alice likes green tea",
    "Previously:\nAlice likes green tea",
    "Memories of 2019:\nAlice likes green tea",
    "no more\tAlice likes green tea",
    '<memory status="cancelled, moved to Monday">Alice likes green tea</memory>',
    "<memory gone>\nAlice likes green tea\n</memory>",
    '<memory scope="/other">\nAlice likes green tea\n</memory>',
    "<memory-outdated>Alice likes green tea</memory-outdated>",
    "<context The customer moved it to Monday>\nAlice likes green tea",
    '{"content": "Alice likes green tea", "context": "No longer true"}',
    '{"content": "Alice likes green tea", "metadata": "CANCELLED"}',
    '{"content": "Alice likes green tea", "metadata": {"until": 2027}}',
    '{"content": "Alice likes green tea", "notice": "he changed his mind"}',
    '{"content": "Alice likes green tea", "tags": ["outdated"]}',
    '{"content": "Alice likes green tea", "score": "low, since he left"}',
    '{"content": "Alice likes green tea", "created_at": "2027-01-02T09:30:00Z"}',
    '{"content": "Alice likes green tea", "signals": {"no longer true": 1}}',
    '{"content": "Alice likes green tea", "match_reasons": ["not true"]}',
    '{"content": "Alice likes green tea", "evidence_gaps": ["that was before May"]}',
    '{"content": "Alice likes green tea", "source": {"id": "chat-2"}}',
    '{"content": "Alice likes green tea", "context": "no more", "context": null}',
    '{"content": "Alice likes coffee", "text": "Alice likes green tea"}',
    '{"query": "what did he like until May?", "results": [{"content": "Alice likes green tea"}]}',
]


@pytest.mark.parametrize("quote", QUOTES)
def test_recalled_text_that_comes_back_is_not_stored_again(memory, quote):
    ids = memory.remember_many([FACTS[0], {"text": FACTS[1], **KNOWN}, FACTS[2]])
    written = memory.remember(quote.replace(ID, ids[1]), policy=RECALLED)
    assert written.outcome == "duplicate"
    assert written.text in FACTS
    assert memory.count() == len(FACTS)


@pytest.mark.parametrize("text", NO_QUOTES)
def test_a_text_that_says_more_than_it_quotes_is_stored(memory, text):
    memory.remember_many([FACTS[0], {"text": FACTS[1], **KNOWN}, FACTS[2]])
    assert memory.remember(text, policy=RECALLED).outcome == "created"


def test_a_quote_under_another_context_is_stored(memory):
    memory.remember_many([FACTS[0], {"text": FACTS[1], **KNOWN}])
    assert memory.remember(FACTS[1], context="Alice", policy=RECALLED).outcome == "duplicate"
    assert memory.remember(FACTS[1], context="No longer true", policy=RECALLED).outcome == "created"


def test_of_equal_texts_the_one_that_the_wrapper_names_is_meant(memory):
    here, there = (memory.remember("a fact", scope=scope) for scope in ("/here", "/there"))
    assert memory.remember("[/there] a fact", policy=RECALLED).id == there.id
    assert memory.remember(f"[id={here.id}] a fact", policy=RECALLED).id == here.id
    assert memory.remember(f"[id={here.id}, /there] a fact", policy=RECALLED).outcome == "created"


def test_a_quote_of_what_the_same_batch_stores(memory):
    texts = ["a fact", "[/x] a fact", "[/y] a fact"]
    memory.remember_many([{"text": text, "scope": "/x"} for text in texts], policy=RECALLED)
    assert [record.text for record in memory.list(order="oldest")] == ["a fact", "[/y] a fact"]


def test_what_a_recall_returned_is_recognised_as_it_was_printed(embedded):
    embedded.remember_many(FACTS)
    hits = embedded.recall("what about tea and the database?")
    printed = "\n".join(f"{hit.score:.2f} {hit.text}" for hit in hits)
    assert embedded.remember(printed, policy=RECALLED).outcome == "duplicate"


def test_recalled_text_is_that_which_a_recall_in_the_scope_would_return(memory):
    memory.remember("a fact", scope="/users/ann")
    assert memory.remember("a fact", scope="/users/bob", policy=RECALLED).outcome == "created"
    assert memory.remember("a fact", scope="/users", policy=RECALLED).outcome == "duplicate"
    assert memory.scoped("/other").remember("a fact", policy=RECALLED).outcome == "created"


# ── contradictions ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_hermes_contradiction_candidates_are_reported_not_deleted(embedded):
    paris, rome = "Alice lives in Paris", "Alice lives in Rome"
    old = embedded.remember(paris, policy=HERMES)
    embedded.remember("Alice lives in Oslo", scope="/other")
    new = embedded.remember(rome, policy=HERMES)
    (found,) = new.contradictions
    assert (found.id, found.text) == (old.id, paris)
    assert found.cosine == pytest.approx(0.871, abs=0.01)
    assert texts(embedded, scope="/") == [paris, "Alice lives in Oslo", rome]
    assert embedded.get(new.id).contradictions == ()


def test_contradictions_are_asked_of_one_speaker(memory):
    memory.remember("I live in Paris", context="Ann", policy=HERMES)
    assert memory.remember("I live in Rome", context="Bob", policy=HERMES).contradictions == ()
    assert len(memory.remember("I live in Oslo", context="Ann", policy=HERMES).contradictions) == 1


# ── junk ───────────────────────────────────────────────────────────────────────────────────────────────────────────

NO_JUNK = WritePolicy(junk="skip")


def test_junk_is_stored_unless_the_policy_skips_it(memory):
    assert memory.remember("Thanks!").outcome == "created"
    skipped = memory.remember("ok, thanks a lot!", policy=NO_JUNK)
    assert (skipped.outcome, skipped.id, skipped.text) == ("skipped", "", "ok, thanks a lot!")
    assert memory.remember("ok, my number is 555 1234", policy=NO_JUNK).outcome == "created"
    assert texts(memory) == ["Thanks!", "ok, my number is 555 1234"]


def test_ids_of_a_batch_stay_in_step_with_its_items(memory):
    ids = memory.remember_many(["Done.", "Ada is in Oslo", "ok", "Bob is in Rome", "[]"], policy=NO_JUNK)
    assert [memory.get(id).text if id else None for id in ids] == [None, "Ada is in Oslo", None, "Bob is in Rome", None]
    assert memory.remember_many(["ok", "Done."], policy=NO_JUNK) == ["", ""]


@pytest.mark.parametrize(
    "given",
    [
        {"topic": "newsletter"},
        {"pinned": True},
        {"context": "Do you want the newsletter?"},
        {"kind": "episode"},
    ],
    ids=repr,
)
def test_a_yes_that_means_something_is_stored(memory, given):
    assert memory.remember(NewRecord("yes", **given), policy=NO_JUNK).outcome == "created"


# ── links ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_write_links_to_what_is_near_in_its_own_scope(memory):
    near = memory.remember(NewRecord("near", vector=at(0.9)), policy=LINKS)
    memory.remember(NewRecord("elsewhere", scope="/a", vector=at(1)))
    memory.remember(NewRecord("another kind", kind="note", vector=at(1)))
    memory.remember(NewRecord("far", vector=at(0.8, 2)))
    nearest = memory.remember(NewRecord("nearest", vector=at(0.95, 3)))
    written = memory.remember(NewRecord("new", vector=at(1)), policy=LINKS)
    assert [(link.target, link.type) for link in written.links] == [(nearest.id, "similar"), (near.id, "similar")]
    assert [link.strength for link in written.links] == pytest.approx([0.95, 0.9], abs=1e-6)
    assert memory.neighbors(written.id, direction="out") == list(written.links)
    assert memory.neighbors(near.id, direction="in")[0].source == written.id
    assert memory.recall("new", vector=at(1))[0].text == "new"
    assert memory.store.verify().problems == ()


def test_a_write_makes_at_most_so_many_links(memory):
    memory.remember_many([{"text": f"n{n}", "vector": at(0.99 - n / 100, 1 + n % 15)} for n in range(14)])
    assert len(memory.remember(NewRecord("ten", vector=at(1)), policy=LINKS).links) == 10
    three = memory.remember(NewRecord("three", vector=at(1)), policy=WritePolicy(link_cosine=0.85, most_links=3))
    assert [round(link.strength, 2) for link in three.links] == [1.0, 0.99, 0.98]
    assert (
        memory.remember(NewRecord("none", vector=at(1)), policy=WritePolicy(link_cosine=0.85, most_links=0)).links == ()
    )


def test_a_keyword_only_store_links_nothing(memory):
    memory.remember("one", policy=LINKS)
    assert memory.remember("one", policy=LINKS).links == ()


# ── how neighbours are found ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def crowd():
    """6,000 vectors in clusters: more than are scanned one by one."""
    random = np.random.default_rng(5)
    centres = random.normal(size=(300, 64))
    vectors = centres[random.integers(0, 300, 6000)] + random.normal(size=(6000, 64)) * 0.45
    vectors[:900] = centres[0] + random.normal(size=(900, 64)) * 0.3  # more in one place than a shortlist holds
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("committed", [True, False])
def test_the_nearest_records_are_found_among_many(path, crowd, committed):
    """Also within a transaction whose rows no index has yet."""
    with Memory(path, settings=PLAIN) as memory, nullcontext() if committed else memory._engine.atomic():
        items = [{"text": f"n{n}", "vector": vector, "scope": f"/{n % 2}"} for n, vector in enumerate(crowd)]
        ids = memory.remember_many(items)
        gone = set(range(0, 6000, 7))
        memory.forget([ids[n] for n in gone])
        late = [memory.remember(NewRecord(f"late {n}", vector=crowd[n], scope="/1")).id for n in range(1, 40, 2)]
        for n in (1, 3, 2001, 4003, 5999):
            written = memory.remember(
                NewRecord("again", vector=crowd[n], scope="/1"), policy=WritePolicy(link_cosine=0.6)
            )
            cosines = {ids[m]: float(crowd[n] @ crowd[m]) for m in range(1, 6000, 2) if m not in gone}
            cosines |= {each: float(crowd[n] @ crowd[m]) for each, m in zip(late, range(1, 40, 2), strict=True)}
            best = sorted((cosine for cosine in cosines.values() if cosine >= 0.6), reverse=True)[:10]
            assert [link.strength for link in written.links] == pytest.approx(best, abs=1e-5)
            assert all(cosines[link.target] == pytest.approx(link.strength, abs=1e-5) for link in written.links)
            memory.forget(written.id)


@pytest.mark.parametrize("strategy", ["latest", "replace"])
def test_of_two_that_write_a_topic_at_once_one_merges_into_the_other(path, strategy):
    policy = WritePolicy(merge_strategy=strategy, topic_cosine=0.92)
    memories = [Memory(path, settings=PLAIN) for _ in range(3)]
    together = threading.Barrier(3)
    outcomes = []

    def write(memory, name):
        for turn in range(10):
            together.wait()
            topic = None if turn % 2 else f"t{turn}"
            vector = np.eye(16, dtype=np.float32)[turn]
            outcomes.append(
                memory.remember(
                    NewRecord(f"turn {turn} said by {'abc'[name]}", topic=topic, vector=vector), policy=policy
                ).outcome
            )

    threads = [threading.Thread(target=write, args=(each, number)) for number, each in enumerate(memories)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memories[0].count() == 10
    assert outcomes.count("created") == 10
    for record in memories[0].list():
        versions = memories[0].history(record.id)
        assert len(versions) == (3 if strategy == "latest" else 1)
        assert all(
            version.recorded_until is None or version.recorded_from < version.recorded_until for version in versions
        )
    assert memories[0].store.verify().problems == ()
    for memory in memories:
        memory.close()


def test_a_write_within_a_transaction_sees_it_and_its_rollback_leaves_no_trace(on_disk):
    engine, policy = on_disk._engine, WritePolicy(link_cosine=0.85)
    on_disk.remember(NewRecord("before", vector=at(1)), policy=policy)

    def write(text, vector):
        return remember_one(engine, NewRecord(text=text, vector=vector), base="/", policy=policy)

    def undone():
        with engine.atomic():
            first = write("within", at(0.9))
            assert [link.target for link in write("a second", at(0.95)).links][:1] == [first.id]
            assert write("within", at(0.9)).outcome == "duplicate"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    assert texts(on_disk) == ["before"]
    after = on_disk.remember(NewRecord("after", vector=at(0.9)), policy=policy)
    assert len(after.links) == 1
    assert {hit.text for hit in on_disk.recall("x", vector=at(1))} == {"before", "after"}


# ── many at once ───────────────────────────────────────────────────────────────────────────────────────────────────

ALL = WritePolicy(merge_strategy="latest", topic_cosine=0.93, recognise_recalled=True, link_cosine=0.7)


def test_remember_many_does_to_a_batch_what_remember_does_one_by_one(path, tmp_path):
    random = np.random.default_rng(3)
    centres = random.normal(size=(12, 16))
    items = []
    for n in range(300):
        vector = centres[n % 12] + random.normal(size=16) * random.choice([0.02, 0.3, 0.8])
        topic = f"t{n % 5}" if n % 9 == 0 else None
        text = f"text {n - 24 if n % 11 == 0 else n}"
        items.append({"text": text, "vector": vector, "topic": topic, "scope": f"/{n % 2}"})
    with Memory(path, settings=PLAIN) as bulk, Memory(tmp_path / "single.db", settings=PLAIN) as single:
        ids = bulk.remember_many(items, policy=ALL, batch_size=70)
        ones = [single.remember(NewRecord(**item), policy=ALL) for item in items]
        assert {each.outcome for each in ones} == {"created", "merged", "duplicate"}
        places = {each: ids.index(each) for each in ids}
        assert [places[each] for each in ids] == [[one.id for one in ones].index(one.id) for one in ones]

        def told(memory, names):
            place = {name: number for number, name in reversed([*enumerate(names)])}

            def links(id):
                found = memory.neighbors(id, direction="out")
                return {place[each.target]: each.strength for each in found}

            stored = {place[record.id]: record.id for record in memory.list(limit=None)}
            return (
                {at: [version.text for version in memory.history(id)] for at, id in stored.items()},
                {(at, *link): strength for at, id in stored.items() for *link, strength in links(id).items()},
            )

        (texts, strengths), expected = told(bulk, ids), told(single, [one.id for one in ones])
        assert texts == expected[0]
        assert strengths == pytest.approx(expected[1], abs=1e-6)
        assert bulk.store.verify().problems == single.store.verify().problems == ()


def test_items_of_a_batch_see_those_before_them(embedded):
    ids = embedded.remember_many([OLD, "Alice has a dog", OLD, f"- {OLD}"], policy=ALL)
    assert ids[0] == ids[2] == ids[3]
    assert embedded.count() == 2


def test_only_a_policy_with_a_cosine_searches_vectors(memory, monkeypatch):
    monkeypatch.setattr("recallite.remember.write.threshold_search", None)
    memory.remember(NewRecord("one", vector=at(1)))
    memory.remember(NewRecord("two", vector=at(1), topic="t"), policy=WritePolicy(merge_strategy="latest"))
    memory.remember_many(["three"])
    assert memory.count() == 3


def test_a_policy_without_detection_compares_nothing(memory, monkeypatch):
    monkeypatch.setattr("recallite.remember.detection.judge", None)
    memory.remember_many([OLD, OLD, NEW], policy=ONLY_STORES)
    assert memory.count() == 3


def test_the_policy_of_the_settings_holds_unless_a_call_gives_another(path):
    with Memory(path, settings=Settings(embedder="none", write=ONLY_STORES)) as memory:
        memory.remember(OLD)
        assert memory.remember(OLD).outcome == "created"
        assert memory.remember(OLD, policy=WritePolicy()).outcome == "duplicate"


def test_a_write_whose_embedding_fails_is_still_compared_by_text_and_topic(path):
    embedder = WordEmbedder()
    with Memory(path, embedder=embedder) as memory:
        memory.remember(NewRecord("one", topic="t"))
        embedder.fail = "raises"
        assert memory.remember("one", policy=HERMES).outcome == "duplicate"
        merged = memory.remember(NewRecord("two", topic="t"), policy=LATEST)
        assert (merged.outcome, merged.embedding_state) == ("merged", "pending")
        assert memory.remember("three", policy=LINKS).embedding_state == "pending"


@pytest.mark.parametrize("policy", ["latest", {"merge_strategy": "latest"}, 7, WritePolicy])
def test_a_policy_is_a_write_policy(memory, policy):
    with pytest.raises(InvalidInput, match="policy is"):
        memory.remember("one", policy=policy)
    with pytest.raises(InvalidInput, match="policy is"):
        memory.remember_many(["one"], policy=policy)
    assert memory.count() == 0


@pytest.mark.parametrize(
    "choices",
    [
        {"merge_strategy": "newest"},
        {"topic_cosine": 1.5},
        {"supersede_confidence": -0.1},
        {"link_cosine": "0.8"},
        {"contradict_confidence": float("nan")},
        {"duplicates": "drop"},
        {"several_values": "likes"},
        {"junk": True},
        {"most_links": -1},
        {"most_links": 2.5},
        {"recognise_recalled": "yes"},
    ],
    ids=repr,
)
def test_a_policy_names_the_choice_that_is_wrong(choices):
    with pytest.raises(InvalidInput, match=next(iter(choices))):
        WritePolicy(**choices)


@pytest.mark.parametrize("strategy", ["latest", "replace"])
def test_what_is_older_than_the_text_of_its_topic_does_not_take_its_place(memory, strategy):
    """Backfilled newest first, the newest still stands; with "latest" the others are its history, in order."""
    policy = WritePolicy(merge_strategy=strategy)
    days = {day: f"2026-03-0{day}T00:00:00+00:00" for day in (1, 2, 3, 4)}
    for day in (4, 1, 3, 2):
        record = memory.remember(NewRecord(f"the state of day {day}", topic="t", created_at=days[day]), policy=policy)
        assert (record.text, record.outcome == "created") == ("the state of day 4", day == 4)
    versions = [f"the state of day {day}" for day in (range(1, 5) if strategy == "latest" else (4,))]
    assert [version.text for version in memory.history(record.id)] == versions
    if strategy == "latest":
        assert [hit.text for hit in memory.recall("state", as_of="2026-03-02T12:00:00Z")] == ["the state of day 2"]
    assert [hit.text for hit in memory.recall("state")] == ["the state of day 4"]
    assert memory.store.verify().problems == ()


def test_a_merge_with_an_importance_ranks_by_it_though_the_old_one_had_faded(memory):
    memory.remember(NewRecord("apple alpha", kind="episode", topic="t", importance=0.9))
    memory.consolidator.run()
    merged = memory.remember(
        NewRecord("apple beta", kind="episode", topic="t", importance=0.1), policy=WritePolicy(merge_strategy="latest")
    )
    assert (merged.importance, merged.base_importance) == (0.1, None)
