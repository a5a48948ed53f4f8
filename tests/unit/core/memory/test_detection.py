"""What a write finds out: a statement that is repeated, superseded or contradicted by the new one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory, Settings
from recallite.model.records import NewRecord
from recallite.model.settings import WritePolicy
from tests.unit.core.memory.support import ONLY_STORES, PLAIN, unit

OSLO, BERGEN, ROME = (f"Dana lives in {place} now" for place in ("Oslo", "Bergen", "Rome"))


def texts(memory: Memory, **filters) -> list[str]:
    return [record.text for record in memory.list(order="oldest", **filters)]


def day(number: int) -> str:
    return f"2026-03-{number:02d}T12:00:00+00:00"


# ── supersession ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_another_value_of_the_same_thing_supersedes_the_old(memory):
    old = memory.remember(OSLO)
    new = memory.remember(BERGEN)
    assert (new.outcome, new.supersedes, new.contradictions) == ("created", (old.id,), ())
    assert texts(memory) == [BERGEN]
    assert memory.get(old.id).superseded_by == (new.id,)
    assert texts(memory, include_superseded=True) == [OSLO, BERGEN]
    (link,) = memory.neighbors(new.id, types=["supersedes"])
    assert (link.target, link.reason) == (old.id, "another value")
    assert 0 < link.strength <= 1
    assert memory.store.verify().problems == ()


def test_a_supersession_that_was_detected_can_be_undone(memory):
    old = memory.remember(OSLO)
    memory.remember(BERGEN)
    memory.restore(old.id)
    assert texts(memory) == [OSLO, BERGEN]


def test_a_chain_keeps_every_step(memory):
    for text in (OSLO, BERGEN, ROME):
        last = memory.remember(text)
    assert texts(memory) == [ROME]
    assert [record.text for record in memory.history(last.id)] == [OSLO, BERGEN, ROME]


def test_a_statement_that_equals_a_superseded_one_is_new_and_supersedes_the_current_one(memory):
    first, second, third = (memory.remember(text) for text in (OSLO, BERGEN, OSLO))
    assert (third.outcome, third.supersedes) == ("created", (second.id,))
    assert first.id != third.id
    assert texts(memory) == [OSLO]


def test_the_rows_of_a_batch_see_those_before_them(memory):
    ids = memory.remember_many([OSLO, BERGEN, "Eve works at Acme", BERGEN, ROME])
    assert ids[1] == ids[3]
    assert texts(memory) == ["Eve works at Acme", ROME]
    assert memory.get(ids[1]).occurrences == 2
    assert [record.text for record in memory.history(ids[4])] == [OSLO, BERGEN, ROME]


def test_a_batch_does_what_single_writes_do(memory, path):
    given = [OSLO, "Eve likes tea", BERGEN, OSLO, "Eve likes coffee", OSLO, "Eve does not like tea", ROME]
    with Memory(path, settings=PLAIN) as single:
        bulk_ids = memory.remember_many(given, batch_size=3)
        memory.store.catch_up()
        ones = [single.remember(text).id for text in given]

        def told(store, ids):
            place = {id: number for number, id in reversed([*enumerate(ids)])}

            def links(id):
                found = store.neighbors(id, direction="out")
                return sorted((place[each.target], each.type, each.reason) for each in found)

            return {
                place[record.id]: (record.text, record.occurrences, links(record.id))
                for record in store.list(limit=None, include_superseded=True)
            }

        assert told(memory, bulk_ids) == told(single, ones)
        assert memory.store.verify().problems == single.store.verify().problems == ()


def test_candidates_read_ahead_are_those_of_the_moment(tmp_path, monkeypatch):
    """What a batch supersedes or merges is as in single writes, whenever its candidates were read."""
    rows = [{"text": f"{name} lives in {place}"} for name in ("Ada", "Ben") for place in ("Oslo", "Bergen", "Rome")]
    rows += [{"text": "Cleo lives in Kiel", "topic": "cleo"}, {"text": "Cleo lives in Bonn", "topic": "cleo"}]
    rows += [{"text": "Cleo lives in Lund now"}, {"text": "Ada lives in Rome"}, {"text": "Ada lives in Graz now"}]
    found = []
    for name, at_once in (("single", 1), ("few", 4), ("all", 256)):
        monkeypatch.setattr("recallite.remember.detection._AT_ONCE", at_once)
        with Memory(tmp_path / f"{name}.db", embedder=None) as memory:
            memory.remember_many(["Ada lives in Paris", "Ben lives in Nice", "Cleo lives in Turin"])
            if at_once == 1:
                for row in rows:
                    memory.remember(NewRecord(**row))
            else:
                memory.remember_many(rows)
            found.append(
                [
                    (record.text, record.superseded_at is None)
                    for record in memory.list(order="oldest", include_superseded=True)
                ]
            )
    assert found[0] == found[1] == found[2]


def test_what_holds_later_stands_whatever_the_order_of_writing(memory):
    first = memory.remember(BERGEN, valid_from=day(9))
    late = memory.remember(OSLO, valid_from=day(2))
    assert (late.outcome, late.superseded_by, late.supersedes) == ("created", (first.id,), ())
    assert late.held_until == datetime.fromisoformat(day(9))
    assert texts(memory) == [BERGEN]


def test_what_was_written_late_takes_its_place_in_the_chain(memory):
    written = {number: memory.remember(text, valid_from=day(number)) for number, text in
               [(2, OSLO), (20, BERGEN), (9, ROME)]}  # fmt: skip
    assert [record.text for record in memory.history(written[2].id)] == [OSLO, ROME, BERGEN]
    for moment, text in ((5, OSLO), (12, ROME), (25, BERGEN)):
        assert texts(memory, valid_at=day(moment)) == [text]


def test_backfilled_newest_first_the_newest_still_stands(memory):
    places = ["Oslo", "Bergen", "Rome", "Paris", "Lima"]
    items = [{"text": f"Dana lives in {place} now", "valid_from": day(2 + 3 * n)} for n, place in enumerate(places)]
    memory.remember_many(reversed(items))
    assert texts(memory) == ["Dana lives in Lima now"]
    for n, place in enumerate(places):
        assert texts(memory, valid_at=day(3 + 3 * n)) == [f"Dana lives in {place} now"]


def test_what_expires_supersedes_nothing_that_does_not(memory):
    memory.remember(OSLO)
    guest = memory.remember(BERGEN, expires_at=datetime.now(UTC) + timedelta(days=3))
    assert guest.supersedes == ()
    assert [each.text for each in guest.contradictions] == [OSLO]
    assert texts(memory) == [OSLO, BERGEN]


def test_a_given_supersession_wins_over_detection(memory):
    kept, named = memory.remember(OSLO), memory.remember("Dana moved house")
    new = memory.remember(NewRecord(BERGEN, supersedes=named.id))
    assert new.supersedes == (named.id,)
    assert texts(memory) == [OSLO, BERGEN]
    again = memory.remember(NewRecord(BERGEN, supersedes=kept.id))
    assert (again.outcome, again.supersedes) == ("created", (kept.id,))


@pytest.mark.parametrize(
    "other",
    [
        {"scope": "/elsewhere"},
        {"kind": "note"},
        {"kind": "episode"},
        {"topic": "weekends"},
        {"metadata": {"user_id": "2"}},
    ],
    ids=repr,
)
def test_what_is_about_something_else_stays(memory, other):
    given = {"topic": "home", "metadata": {"user_id": "1", "turn": 1}}
    memory.remember(NewRecord(OSLO, **given))
    assert memory.remember(NewRecord(BERGEN, **given | other)).supersedes == ()
    assert memory.count(include_superseded=False) == 2


def test_several_values_stay_several_and_the_table_can_be_extended(memory):
    memory.remember_many(["Dana likes tea", "Dana likes coffee", "Invoice 443 was paid", "Invoice 444 was paid"])
    assert memory.count() == 4
    policy = WritePolicy(several_values=("leads",))
    memory.remember("Dana leads Atlas now")
    assert memory.remember("Dana leads Borealis now", policy=policy).supersedes == ()
    assert memory.remember("Dana leads Castor now").supersedes
    lives = WritePolicy(several_values=("lives",))
    memory.remember("Dana lives in Oslo now", policy=lives)
    assert memory.remember("Dana lives in Bergen now", policy=lives).supersedes == ()
    assert memory.remember("Dana no longer lives in Bergen", policy=lives).supersedes


def test_a_policy_chooses_what_is_done_and_above_which_confidence(memory):
    memory.remember(OSLO)
    reported = memory.remember(BERGEN, policy=WritePolicy(supersede_confidence=None))
    assert reported.supersedes == ()
    assert [(each.text, each.reason) for each in reported.contradictions] == [(OSLO, "another value")]
    sure = memory.remember(ROME, policy=WritePolicy(supersede_confidence=1.0, contradict_confidence=1.0))
    assert (sure.supersedes, sure.contradictions) == ((), ())
    kept = memory.remember(ROME, policy=ONLY_STORES)
    assert (kept.outcome, kept.supersedes, kept.contradictions) == ("created", (), ())


# ── contradictions ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_contradicting_statements_both_stay_and_each_names_the_other(memory):
    old = memory.remember("Alice likes coffee")
    new = memory.remember("Alice does not like coffee")
    (found,) = new.contradictions
    assert (found.id, found.text, found.reason) == (old.id, "Alice likes coffee", "negation")
    assert 0 < found.strength <= 1
    assert memory.count() == 2
    for one, other in ((old, new), (new, old)):
        (link,) = memory.neighbors(one.id, types=["contradicts"])
        assert other.id in (link.source, link.target)
        assert (link.reason, link.strength) == (found.reason, pytest.approx(found.strength))


# ── duplicates ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("at_once", [True, False])
def test_what_was_told_of_two_days_contradicts_only_within_a_day(memory, at_once):
    told = [
        NewRecord(f"Mum beat the chaplain at dominoes this {part}", created_at=day(number))
        for part, number in (("afternoon", 3), ("evening", 5), ("afternoon", 5))
    ]
    ids = memory.remember_many(told) if at_once else [memory.remember(each).id for each in told]
    found = [[link.target for link in memory.neighbors(id, types=["contradicts"], direction="out")] for id in ids]
    assert found == [[], [], [ids[1]]]
    said_after = memory.remember("Mum beat the chaplain at dominoes yesterday", created_at=day(9))
    assert len(said_after.contradictions) == 3
    memory.forget(said_after.id)
    assert len(memory.review.audit(["contradictions"]).findings) == 1


def test_of_two_statements_of_one_moment_neither_is_the_newer(memory):
    old = memory.remember("Dana lives in Oslo", created_at="2026-03-01")
    new = memory.remember("Dana lives in Bergen now", created_at="2026-03-01")
    assert (new.supersedes, [each.id for each in new.contradictions]) == ((), [old.id])


def test_the_same_statement_is_stored_once_with_its_times(memory):
    first = memory.remember(OSLO, created_at=day(1))
    again = memory.remember("dana lives in Oslo now.", created_at=day(3))
    assert (again.outcome, again.id, again.text) == ("duplicate", first.id, OSLO)
    memory.remember(OSLO, created_at=day(2))
    stored = memory.get(first.id)
    assert (memory.count(), stored.occurrences) == (1, 3)
    assert [moment.isoformat() for moment in stored.occurred_at] == [day(1), day(2), day(3)]


@pytest.mark.parametrize(
    "given",
    [
        {"topic": "home"},
        {"source": "chat-2"},
        {"position": 4},
        {"metadata": {"mood": "good"}},
        {"tags": ["home"]},
        {"pinned": True},
        {"expires_at": "2040-01-01T00:00:00Z"},
        {"valid_from": "2026-01-01T00:00:00Z"},
        {"context": "Bob"},
        {"scope": "/a"},
        {"kind": "note"},
    ],
    ids=repr,
)
def test_a_statement_with_something_else_given_is_stored(memory, given):
    memory.remember(OSLO)
    assert memory.remember(NewRecord(OSLO, **given)).outcome == "created"


def test_a_statement_that_gives_less_adds_nothing(memory):
    full = memory.remember(NewRecord(OSLO, topic="home", source="chat-1", tags=["a"], metadata={"k": 1}, pinned=True))
    again = memory.remember(OSLO)
    assert (again.outcome, again.id, again.tags, again.pinned) == ("duplicate", full.id, ("a",), True)


def test_turns_of_a_transcript_and_episodes_are_evidence_and_left_as_they_are(memory):
    for text in (OSLO, OSLO, BERGEN):
        memory.remember(NewRecord(text, source="chat", position=memory.count()))
        memory.remember(text, kind="episode")
    assert memory.count() == 6
    assert memory.remember(ROME).supersedes == ()


def test_a_date_in_a_text_is_not_the_time_of_saying_it(memory):
    old = memory.remember("The exam is on 4 May 2031")
    new = memory.remember("The exam is on 3 May 2031 now")
    assert new.supersedes == (old.id,)
    assert memory.store.verify().problems == ()


# ── where it looks ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_index_is_not_loaded_for_it(memory):
    memory.remember_many([{"text": f"Person {n} is here", "vector": unit(n)} for n in range(20)])
    assert memory.remember(NewRecord(OSLO, vector=unit(30))).outcome == "created"
    assert memory.remember(NewRecord(BERGEN, vector=unit(31))).supersedes
    assert memory._engine.index.commit is None


def test_of_many_about_one_thing_the_current_one_is_found(memory):
    """Keys that many records share are read from the newest."""
    memory.remember_many([f"Person{n} lives in Oslo now" for n in range(200)])
    memory.remember(OSLO)
    memory.remember_many([f"Nobody{n} lives in Oslo now" for n in range(200)])
    new = memory.remember(BERGEN)
    assert [memory.get(id).text for id in new.supersedes] == [OSLO]


def test_an_import_restores_what_was_exported(memory, path, tmp_path):
    memory.remember_many([OSLO, OSLO], policy=ONLY_STORES)
    memory.remember_many(["Eve works at Acme", "Eve works at Globex"], policy=ONLY_STORES)
    memory.transfer.export(tmp_path / "all.jsonl")
    with Memory(path, settings=PLAIN) as other:
        other.transfer.import_(tmp_path / "all.jsonl")
        assert sorted(texts(other)) == sorted(texts(memory))
        assert other.count() == 4


def test_the_profiles_of_other_systems(path):
    with Memory(path, settings=Settings(embedder="none", profile="hermes")) as memory:
        memory.remember(OSLO)
        assert memory.remember(OSLO + ".").outcome == "duplicate"
        new = memory.remember(BERGEN)
        assert ([each.text for each in new.contradictions], memory.count()) == ([OSLO], 2)


def test_a_value_that_returns_is_the_last_word(memory):
    first, second, third = (
        memory.remember(
            f"The office closes at {hour}", created_at=f"2026-0{month}-01", policy=WritePolicy(supersede_confidence=1.0)
        )
        for month, hour in ((1, "six"), (2, "five"), (3, "six"))
    )
    assert second.contradictions
    assert third.outcome == "created"
    assert first.id in third.supersedes
    hits = memory.recall("When does the office close?", vector=unit(0))
    assert [hit.id for hit in hits][:1] == [third.id]


def test_an_announcement_replaces_the_one_before_it(memory):
    first = memory.remember("The review is on Friday", created_at="2026-01-05", valid_from="2026-01-09")
    second = memory.remember("The review is on Thursday", created_at="2026-01-06", valid_from="2026-01-08")
    assert second.supersedes == (first.id,)


def test_what_was_over_before_the_other_was_said_replaces_nothing(memory):
    memory.remember("Dana lives in Oslo", created_at="2026-01-05")
    assert memory.remember("Dana moved to Bergen in 2019", created_at="2026-02-05").supersedes == ()
    assert memory.remember("Dana moved to Bergen last week", created_at="2026-02-05").supersedes != ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"userId": "a"}, {"userId": "b"}),
        ({"user_id": "a"}, None),
        (None, {"project": "a"}),
        ({"role": "user"}, {"role": "assistant"}),
    ],
)
def test_metadata_that_says_whose_statement_it_is_keeps_them_apart(memory, one, other):
    memory.remember("I live in Oslo", created_at="2026-01-05", metadata=one)
    assert memory.remember("I live in Bergen now", created_at="2026-02-05", metadata=other).supersedes == ()
    again = memory.remember("I live in Rome now", created_at="2026-03-05", metadata=other)
    assert len(again.supersedes) == 1
