"""What is superseded stays a candidate: its successor goes before it, and a wrong supersession costs a line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recallite import Memory
from recallite.model.authority import speaking_as
from recallite.model.filters import Filter
from recallite.model.records import NewRecord
from recallite.remember.relations import put_in_place

FEE, RAISED = "The library card costs twelve euros a year", "We pay for the shelf space since spring"
CURATOR, SUCCESSOR = "Ilse Brandt curates the glass collection", "Omar took over from her"
ASKED = "Who curates the glass collection?"
FILLERS = [f"Showcase {number} holds the vases of decade {number}" for number in range(12)]


def texts(hits):
    return [hit.text for hit in hits]


def row_id_of(memory, record):
    with memory._engine.store.read() as reader:
        return reader.records.find_ids([record.id], "/")[record.id]


def replace_by_rule(memory, old, new):
    """Supersede as a rule does that is not certain."""
    with memory._engine.atomic() as writer:
        put_in_place(writer, [row_id_of(memory, old)], [row_id_of(memory, new)], reason="a rule", certain=False)


@pytest.fixture
def museum():
    with Memory(":memory:") as memory:
        records = {text: memory.remember(NewRecord(text)) for text in (CURATOR, *FILLERS, FEE, RAISED, SUCCESSOR)}
        yield memory, records


def test_a_successor_is_found_by_what_it_replaced(museum):
    memory, records = museum
    assert SUCCESSOR not in texts(memory.recall(ASKED, limit=3))
    memory.supersede(records[CURATOR].id, records[SUCCESSOR].id)
    hits = memory.recall(ASKED, limit=3)
    assert texts(hits)[:2] == [SUCCESSOR, CURATOR]
    assert hits[1].superseded_by == (hits[0].id,)
    assert [former.text for former in hits[0].supersedes] == [CURATOR]
    assert hits[0].score >= hits[1].score >= hits[2].score
    assert texts(memory.recall(ASKED, relevant=True)) == [SUCCESSOR, CURATOR]
    assert texts(memory.recall_many([ASKED, "vases"], limit=3)[0]) == texts(hits)


def test_a_wrong_supersession_costs_a_line(museum):
    memory, records = museum
    replace_by_rule(memory, records[FEE], records[RAISED])
    assert {*texts(memory.recall("How much does the library card cost?", limit=3))[:2]} == {FEE, RAISED}
    hits = memory.recall("How much does the library card cost?", relevant=True)
    assert texts(hits) == [FEE, RAISED]  # the reader says which of them answers
    assert hits[0].superseded_by == (hits[1].id,)
    assert FEE in texts(memory.list(limit=None))
    assert memory.count() == len(records)


def test_only_what_is_surely_replaced_is_left_out_of_the_list(museum):
    memory, records = museum
    replace_by_rule(memory, records[FEE], records[RAISED])
    memory.supersede(records[FEE].id, records[SUCCESSOR].id)
    assert memory.get(records[FEE].id).superseded_by == (records[SUCCESSOR].id,)
    assert FEE not in texts(memory.list(limit=None))
    assert FEE in texts(memory.list(limit=None, include_superseded=True))
    assert memory.count() == len(records) - 1


def test_what_answers_itself_leaves_the_old_one_out():
    with Memory(":memory:") as memory:
        old = memory.remember("The gate code of the museum is 4417")
        new = memory.remember(NewRecord("The gate code of the museum is 9032 since the break-in", supersedes=old.id))
        question = "What is the gate code of the museum?"
        assert texts(memory.recall(question, relevant=True)) == [new.text]
        assert texts(memory.recall(question)) == [new.text, old.text]


def test_what_is_surely_replaced_gives_way_where_there_is_no_room():
    with Memory(":memory:") as memory:
        for number in range(4):
            old = memory.remember(f"Locker {number} belongs to the museum guard Ann{number}")
            memory.remember(NewRecord(f"Locker {number} belongs to the museum guard Tom{number}", supersedes=old.id))
        assert all("Tom" in text for text in texts(memory.recall("Whose lockers belong to museum guards?", limit=4)))
        assert sum("Ann" in text for text in texts(memory.recall("Whose lockers belong to museum guards?"))) == 4


def test_a_successor_that_the_filter_excludes_is_not_brought(museum):
    memory, records = museum
    memory.update(records[CURATOR].id, tags=["staff"])
    memory.supersede(records[CURATOR].id, records[SUCCESSOR].id)
    (hit,) = memory.recall(ASKED, tags=["staff"])
    assert (hit.text, hit.superseded_by) == (CURATOR, (records[SUCCESSOR].id,))


def test_a_chain_is_shown_from_its_end(museum):
    memory, records = museum
    last = memory.remember("It is Pia since June")
    memory.supersede(records[CURATOR].id, records[SUCCESSOR].id)
    memory.supersede(records[SUCCESSOR].id, last.id)
    assert texts(memory.recall(ASKED, limit=3))[:2] == [last.text, CURATOR]


def test_what_holds_later_does_not_lead_before_it_begins(museum):
    memory, records = museum
    memory.supersede(records[CURATOR].id, records[SUCCESSOR].id, at="2099-01-01")
    assert texts(memory.recall(ASKED, limit=1)) == [CURATOR]
    today = memory.remember("Omar lives in Lund", created_at="2026-01-01")
    later = memory.remember("Omar lives in Malmö", valid_from="2099-01-01")
    assert texts(memory.recall("Where does Omar live?", limit=2)) == [today.text, later.text]


def test_a_successor_that_has_expired_replaces_nothing(museum):
    memory, records = museum
    now = datetime.now(UTC)
    guest = memory.remember("A guest does it this week", expires_at=now + timedelta(hours=1))
    memory.supersede(records[CURATOR].id, guest.id)
    assert texts(memory.recall(ASKED, limit=1)) == [guest.text]
    memory.update(guest.id, expires_at=now - timedelta(seconds=1))
    assert texts(memory.recall(ASKED, limit=1)) == [CURATOR]


def test_of_a_contradiction_the_later_goes_first_and_each_names_the_other():
    with Memory(":memory:") as memory:
        old = memory.remember("Flash photography is permitted in the east wing", created_at="2026-01-01")
        new = memory.remember("Flash photography is banned in the whole museum", created_at="2026-02-01")
        question = "Is flash photography permitted in the east wing?"
        scores = {hit.id: hit.score for hit in memory.recall(question)}
        for ends in ((old.id, new.id), (new.id, old.id)):
            memory.unlink(*ends, "contradicts")
        memory.link(old.id, new.id, type="contradicts")
        hits = memory.recall(question)
        assert texts(hits) == [new.text, old.text]
        assert [hit.contradicts for hit in hits] == [(old.id,), (new.id,)]
        assert {hit.score for hit in hits} == set(scores.values())


def test_what_is_told_again_goes_before_what_was_told_between():
    again, between = "I live in Lisbon", "I live in Porto"
    with Memory(":memory:") as memory:
        for text, day in ((again, 3), (between, 5), (again, 6)):
            when = datetime(2026, 2, day, tzinfo=UTC)
            memory.remember(NewRecord(text, created_at=when, pinned=text == again))
        hits = memory.recall("Where do I live?")
        assert texts(hits) == [again, between]
        assert [hit.superseded_by for hit in hits] == [(), (hits[0].id,)]


def test_no_contradiction_names_a_memory_of_a_scope_that_was_not_asked_for():
    with Memory(":memory:") as memory:
        ada, ben = memory.scoped("/ada"), memory.scoped("/ben")
        one = ada.remember("Flash photography is permitted in the east wing")
        other = ben.remember("Flash photography is banned in the whole museum")
        memory.link(one.id, other.id, type="contradicts")
        question = "Is flash photography permitted?"
        assert [hit.contradicts for hit in memory.recall(question)] == [(one.id,), (other.id,)]
        for hits in (ada.recall(question), memory.recall(question, scope="/ada")):
            assert [(hit.id, hit.contradicts) for hit in hits] == [(one.id, ())]


def test_the_past_names_what_was_replaced_as_it_was_then():
    with Memory(":memory:") as memory:
        ada = memory.scoped("/ada")
        former = ada.remember("The door code is 1111")
        ada.remember("The door code is 2222 now")
        then = datetime.now(UTC)
        ada.restore(former.id)
        ada.update(former.id, text="Ada's salary is 4100")

        def supersedes() -> list[str]:
            hits = ada.recall("What is the door code?", as_of=then)
            return [one.text for hit in hits for one in hit.supersedes]

        assert supersedes() == [former.text]
        memory.update(former.id, text="Ben's salary is 4100", scope="/ben")
        assert supersedes() == []  # without access to a memory there is none to its past


def test_dialects_that_rank_alone_hide_what_was_surely_replaced(museum):
    memory, records = museum
    memory.supersede(records[CURATOR].id, records[SUCCESSOR].id)
    for superseded in ("as_ranked", "omit"):
        assert CURATOR not in texts(memory.recall(ASKED, profile={"superseded": superseded}))
    replaced = Filter(include_superseded=True)
    assert CURATOR in texts(memory.recall(ASKED, profile={"superseded": "as_ranked"}, filter=replaced))


@pytest.mark.parametrize("when", ["last week", "last Friday", "yesterday"])
def test_an_end_told_later_ends_what_was_told_within_its_period(when):
    with Memory(":memory:") as memory:
        told = datetime(2026, 6, 15, 12, tzinfo=UTC)
        held = memory.remember("Cy works at Siemens", created_at=told - timedelta(days=5))
        ended = memory.remember(f"Cy left Siemens {when}", created_at=told)
        assert ended.supersedes == (held.id,)
        assert texts(memory.recall("Where does Cy work?", relevant=True))[0] == ended.text


def test_an_end_comes_with_what_it_may_have_ended():
    with Memory(":memory:") as memory:
        held = memory.remember("Anna works at Siemens", created_at="2026-11-01")
        ended = memory.remember("Anna left Siemens in October", created_at="2026-11-20")
        assert [other.id for other in ended.contradictions] == [held.id]
        for filler in FILLERS:
            memory.remember(filler)
        assert texts(memory.recall("Where does Anna work?", relevant=True)) == [ended.text, held.text]
        known = texts(memory.bootstrap(None, "Where does Anna work?").records)
        assert known.index(ended.text) == known.index(held.text) - 1


def test_what_a_lower_authority_says_against_it_is_not_brought():
    with Memory(":memory:") as memory:
        held = memory.remember("Anna works at Siemens", created_at="2026-11-01")
        with speaking_as("agent"):
            memory.remember("Anna left Siemens in October", created_at="2026-11-20")
        assert texts(memory.recall("Where does Anna work?", relevant=True)) == [held.text]
