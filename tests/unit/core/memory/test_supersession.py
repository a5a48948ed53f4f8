"""One memory in the place of another: what is shown, what is refused, what undoes it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from msgspec import json

from recallite import AsyncMemory, Memory
from recallite.errors import Conflict, InvalidInput, InvalidItem, NotFound
from recallite.model.checks import now_us, to_datetime
from recallite.model.filters import Filter
from recallite.model.records import NewRecord
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import PLAIN, STORING, WordEmbedder

JANUARY, MARCH, MAY = (f"2026-{month}-01T00:00:00Z" for month in ("01", "03", "05"))


@pytest.fixture
def memory():
    with Memory(":memory:", settings=STORING) as memory:
        yield memory


@pytest.fixture
def moved(memory):
    """Dana lived in Oslo from January, in Bergen from March, in Turin from May: ids, oldest first."""
    oslo = memory.remember("Dana lives in Oslo", valid_from=JANUARY).id
    bergen = memory.remember(NewRecord("Dana lives in Bergen now", valid_from=MARCH, supersedes=oslo)).id
    turin = memory.remember("Dana has moved to Turin", valid_from=MAY).id
    memory.supersede(bergen, turin, reason="moved", strength=0.8)
    return oslo, bergen, turin


def texts(records):
    return [each.text for each in records]


def test_what_is_superseded_costs_no_place_and_is_shown_on_request(memory, moved):
    oslo, bergen, turin = moved
    assert [hit.id for hit in memory.recall("where does Dana live")] == [turin, bergen, oslo]
    assert [hit.id for hit in memory.recall("where does Dana live", limit=1)] == [turin]
    assert (texts(memory.list()), memory.count()) == (["Dana has moved to Turin"], 1)
    assert memory.count(include_superseded=True) == 3
    assert {hit.id for hit in memory.recall("Dana", filter=Filter(include_superseded=True))} == {*moved}
    for day, lived in (("2026-02-01", oslo), ("2026-04-01", bergen), ("2026-05-01", turin)):
        assert [hit.id for hit in memory.recall("Dana", valid_at=day)] == [lived]
        assert [each.id for each in memory.list(valid_at=day)] == [lived]
    assert memory.list(valid_at="2025-12-31") == []


def test_hits_say_what_they_replaced_and_what_replaced_them(memory, moved):
    oslo, bergen, turin = moved
    hit, after, _ = memory.recall("Dana")
    assert (after.id, after.superseded_by) == (bergen, (turin,))
    (former,) = hit.supersedes
    assert (former.id, former.text, hit.superseded_by, hit.held_until) == (bergen, "Dana lives in Bergen now", (), None)
    assert (former.held_from, former.held_until) == (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 5, 1, tzinfo=UTC))
    (hit,) = memory.recall("Dana", valid_at="2026-04-01")
    assert (hit.superseded_by, hit.held_until) == ((turin,), datetime(2026, 5, 1, tzinfo=UTC))
    assert [each.id for each in hit.supersedes] == [oslo]
    assert memory.recall("nothing of that") == []


def test_records_and_links_say_so_too(memory, moved):
    oslo, bergen, turin = moved
    record = memory.get(bergen)
    assert (record.supersedes, record.superseded_by) == ((oslo,), (turin,))
    assert record.held_until == datetime(2026, 5, 1, tzinfo=UTC)
    assert record.superseded_at >= record.created_at
    link, former = memory.neighbors(bergen, types="supersedes")[::-1]
    assert (link.source, link.target, link.reason, link.strength) == (turin, bergen, "moved", 0.8)
    assert (former.source, former.target, former.reason, former.strength) == (bergen, oslo, None, 1.0)
    assert [each.record.id for each in memory.neighbors(turin, depth=2, types="supersedes")] == [bergen, oslo]


def test_history_follows_the_chain_both_ways(memory, moved):
    bergen = moved[1]
    memory.update(bergen, text="Dana lives in Bergen, Norway")
    chain = [
        "Dana lives in Oslo", "Dana lives in Bergen now", "Dana lives in Bergen, Norway", "Dana has moved to Turin",
    ]  # fmt: skip
    for id in moved:
        assert texts(memory.history(id)) == chain
    assert texts(memory.history(bergen, chain=False)) == chain[1:3]
    with pytest.raises(InvalidInput, match="chain is 'yes'"):
        memory.history(bergen, chain="yes")


def test_history_leaves_out_what_is_beside_the_chain(memory):
    one, two, both, beside = (memory.remember(text).id for text in ("one", "two", "both", "beside"))
    memory.supersede([one, two], both)
    assert texts(memory.history(one)) == ["one", "both"]
    assert texts(memory.history(both)) == ["one", "two", "both"]
    assert texts(memory.history(beside)) == ["beside"]


def test_several_replace_one_and_one_replaces_several(memory):
    first, second = memory.remember_many(["Ann and Bob run the shop", "They sell bread"])
    ann, bob = memory.remember_many(["Ann runs the shop", "Bob has left"])
    memory.supersede(first, [ann, bob])
    assert memory.get(first).superseded_by == (ann, bob)
    last = memory.remember(NewRecord("The shop is closed", supersedes=[second, ann, bob]))
    assert texts(memory.list()) == ["The shop is closed"]
    assert last.supersedes == memory.get(last.id).supersedes == (second, ann, bob)
    assert len(memory.history(last.id)) == 5
    memory.restore(bob)
    assert {*texts(memory.list())} == {"The shop is closed", "Bob has left"}
    assert memory.get(first).superseded_by == (ann, bob)


def test_remember_many_takes_what_items_supersede(memory):
    old = memory.remember("The budget is 5,000").id
    ids = memory.remember_many(
        ["unrelated", NewRecord(text="The budget is 7,000", supersedes=old), {"text": "third", "supersedes": None}]
    )
    assert memory.get(old).superseded_by == (ids[1],)
    with pytest.raises(InvalidItem, match=r"item 1: no memory 'unknown'.*nothing of its batch") as fault:
        memory.remember_many(["fourth", {"text": "fifth", "supersedes": "unknown"}])
    assert (fault.value.position, fault.value.stored) == (1, 0)
    assert memory.count(include_superseded=True) == 4


@pytest.mark.parametrize("at_once", ["supersede", "remember"])
def test_restore_without_a_version_undoes_it(memory, at_once):
    old = memory.remember("The office is in Rome").id
    if at_once == "remember":
        new = memory.remember(NewRecord("The office is in Milan", supersedes=old)).id
    else:
        new = memory.remember("The office is in Milan").id
        memory.supersede(old, new)
    during = to_datetime(now_us())
    record = memory.restore(old)
    assert (record.id, record.superseded_by, record.superseded_at, record.held_until) == (old, (), None, None)
    assert {each.id for each in memory.list()} == {old, new}
    assert memory.neighbors(new) == []
    assert len(memory.history(old)) == 1
    # What was hidden then was hidden then.
    assert (
        texts(memory.list(as_of=during)) == texts(memory.recall("office", as_of=during)) == ["The office is in Milan"]
    )
    (then,) = memory.recall("office", as_of=during)
    assert [each.id for each in then.supersedes] == [old]
    (then,) = memory.recall("office", as_of=during, valid_at=memory.get(old).created_at)
    assert (then.id, then.superseded_by) == (old, (new,))
    with pytest.raises(InvalidInput, match="is not superseded"):
        memory.restore(old)
    memory.supersede(old, new)
    assert texts(memory.list()) == ["The office is in Milan"]


def test_as_of_shows_what_was_not_superseded_yet(memory):
    old = memory.remember("The door code is 1111").id
    before = to_datetime(now_us())
    memory.remember(NewRecord("The door code is 2222", supersedes=old))
    (hit,) = memory.recall("door code", as_of=before)
    assert (hit.id, hit.superseded_by, hit.held_until) == (old, (), None)
    memory.update(old, text="The door code was 1111")
    assert texts(memory.recall("door code", as_of=before)) == ["The door code is 1111"]
    assert texts(memory.recall("door code")) == ["The door code is 2222", "The door code was 1111"]
    # The closed version is as superseded as its record.
    assert texts(memory.list(as_of=to_datetime(now_us()))) == ["The door code is 2222"]


def test_a_version_is_restored_and_what_supersedes_the_record_stays(memory):
    old = memory.remember("a").id
    memory.update(old, text="b")
    new = memory.remember(NewRecord("c", supersedes=old)).id
    assert memory.restore(old, 0).superseded_by == (new,)
    assert texts(memory.history(old)) == ["a", "b", "a", "c"]


def test_refused_and_nothing_is_changed(memory, moved):
    oslo, bergen, turin = moved
    other = memory.remember("elsewhere", scope="/b").id
    episode = memory.remember("We met", kind="episode").id
    procedure = memory.procedures.save("deploy", "push, then wait").id
    early = memory.remember("Dana lives in Kiel", valid_from="2025-01-01").id
    before = memory.store.stats().sequence
    for old, new, error, said in (
        (turin, turin, InvalidInput, "cannot supersede itself"),
        ([turin, early], early, InvalidInput, "cannot supersede itself"),
        (turin, oslo, InvalidInput, "supersedes .* already, directly or through others"),
        (turin, bergen, InvalidInput, "supersedes .* already"),
        (turin, other, InvalidInput, "another scope"),
        (turin, "unknown", NotFound, "no memory 'unknown'"),
        (["unknown", turin], early, NotFound, "no memory 'unknown'"),
        (turin, episode, InvalidInput, "an episode, which happened"),
        (procedure, turin, InvalidInput, "procedures.save"),
        (turin, early, InvalidInput, "holds from 2025-01-01.*only from 2026-05-01"),
        (oslo, turin, Conflict, f"superseded by {bergen}.*restore"),
        (bergen, [turin, early], Conflict, f"superseded by {turin}"),
        ([], turin, InvalidInput, "old names no memory"),
        (turin, (), InvalidInput, "new names no memory"),
        (turin, 7, InvalidInput, "new is 7"),
        (None, turin, InvalidInput, "old names no memory"),
    ):
        with pytest.raises(error, match=said):
            memory.supersede(old, new)
    for options in ({"strength": 2}, {"reason": ""}, {"at": "some day"}, {"at": "2024-01-01"}):
        with pytest.raises(InvalidInput):
            memory.supersede(early, turin, **options)
    for fields in ({"supersedes": "unknown"}, {"supersedes": oslo}, {"scope": "/b", "supersedes": turin},
                   {"kind": "episode", "supersedes": turin}, {"supersedes": turin, "valid_from": JANUARY},
                   {"supersedes": [turin, 7]}):  # fmt: skip
        with pytest.raises((InvalidInput, NotFound)):
            memory.remember(NewRecord("Dana lives in Lund", **fields))
    assert memory.store.stats().sequence == before
    memory.supersede(bergen, turin)  # again: it stands already
    assert memory.store.stats().sequence == before


def test_pairs_are_limited(memory):
    ids = memory.remember_many([f"statement {number}" for number in range(202)])
    with pytest.raises(InvalidInput, match="101 memories superseded by 101 are 10,201 pairs: at most 10,000"):
        memory.supersede(ids[:101], ids[101:])
    assert memory.count() == 202


def test_a_time_from_which_the_new_one_holds_can_be_given(memory):
    old, new = memory.remember_many([{"text": "a", "valid_from": JANUARY}, {"text": "b", "valid_from": "2026-02-01"}])
    memory.supersede(old, new, at=MARCH)
    assert memory.get(old).held_until == datetime(2026, 3, 1, tzinfo=UTC)
    assert {*texts(memory.list(valid_at="2026-02-15"))} == {"a", "b"}


def test_what_is_forgotten_supersedes_nothing(memory, moved):
    oslo, bergen, turin = moved
    memory.forget(bergen)
    # Oslo was replaced twice: without Bergen it is Turin that stands in its place.
    assert texts(memory.list()) == ["Dana has moved to Turin"]
    assert memory.get(oslo).superseded_by == (turin,)
    assert memory.get(oslo).held_until == datetime(2026, 3, 1, tzinfo=UTC)
    memory.forget(turin)
    assert [(each.id, each.superseded_by, each.held_until) for each in memory.list()] == [(oslo, (), None)]
    assert memory.store.verify().problems == ()


def test_forgetting_by_a_filter_takes_superseded_ones_too(memory, moved):
    memory.remember("kept", scope="/b")
    assert memory.forget(where={"text": {"contains": "Dana"}}).records == 3
    with pytest.raises(InvalidInput, match="a filter that is not empty"):
        memory.forget(include_superseded=True)
    assert texts(memory.list()) == ["kept"]


def test_a_receipt_covers_reasons_repeated_texts_and_statements(tmp_path):
    with Memory(tmp_path / "agent.db", settings=PLAIN) as memory:
        old, new = memory.remember_many(["The vault is behind the painting", "The vault is under the floor"])
        memory.supersede(old, new, reason="the painting was stolen in Antwerp")
        with memory._engine.atomic() as writer:
            ids = writer.records.find_ids([new], "/")
            writer.comparisons.add_occurrences(
                [(ids[new], now_us(), "Remember, the vault lies beneath the floorboards")]
            )
        receipt = memory.forget([old, new], receipt=True).receipt
        assert receipt.complete
        assert {"record": 2, "supersession": 1, "occurrence": 1, "link": 1, "statement": 2}.items() <= (
            receipt.removed.items()
        )
        assert b"Antwerp" not in (tmp_path / "agent.db").read_bytes()


def test_a_successor_that_expires_gives_way_and_comes_back_never(memory):
    office = memory.remember("The office is in Rome").id
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    closed = memory.remember(NewRecord("The office is closed", supersedes=office, expires_at=tomorrow)).id
    assert texts(memory.list()) == ["The office is closed"]
    assert texts(memory.recall("office")) == ["The office is closed", "The office is in Rome"]
    memory.update(closed, expires_at="2026-01-01")
    assert texts(memory.list()) == texts(memory.recall("office")) == ["The office is in Rome"]
    assert texts(memory.list(valid_at=datetime.now(UTC))) == ["The office is in Rome"]
    assert texts(memory.recall("office", valid_at=datetime.now(UTC))) == ["The office is in Rome"]
    milan = memory.remember(NewRecord("The office is in Milan", supersedes=office)).id
    assert texts(memory.list()) == ["The office is in Milan"]
    assert memory.store.purge_expired().records == 1
    assert memory.get(office).superseded_by == (milan,)
    assert memory.store.verify().problems == ()


def test_an_expired_successor_that_was_superseded_itself_still_stands_for_its_own(memory):
    first = memory.remember("The menu has soup").id
    second = memory.remember(NewRecord("The menu has stew", supersedes=first, expires_at="2999-01-01")).id
    memory.remember(NewRecord("The menu has fish", supersedes=second))
    memory.update(second, expires_at="2026-01-01")
    assert texts(memory.list()) == ["The menu has fish"]
    assert texts(memory.recall("menu")) == ["The menu has fish", "The menu has soup"]
    memory.store.purge_expired()
    assert texts(memory.list()) == ["The menu has fish"]


def test_updates_that_supersession_does_not_allow(memory, moved):
    oslo, bergen, turin = moved
    for id, change, said in (
        (oslo, {"scope": "/b"}, f"is superseded.*scope cannot become '/b'.*restore\\('{oslo}'\\)"),
        (turin, {"scope": "/b"}, f"supersedes others.*restore\\('{bergen}'\\)"),
        (bergen, {"kind": "episode"}, "kind cannot become 'episode'"),
        (oslo, {"valid_from": MAY}, "valid_from is 2026-05-01.*holds from 2026-03-01"),
        (bergen, {"valid_from": "2025-12-01"}, "began later"),
    ):
        with pytest.raises(InvalidInput, match=said):
            memory.update(id, **change)
    memory.update(bergen, valid_from="2026-02-01", tags=["home"], scope="/", kind="memory")
    assert memory.get(oslo).held_until == datetime(2026, 2, 1, tzinfo=UTC)
    memory.restore(oslo)
    assert memory.update(oslo, scope="/b").scope == "/b"


def test_an_interval_ends_after_it_begins(memory):
    with pytest.raises(InvalidInput, match=r"valid_until is 2026-01-01.*beginning 2026-03-01"):
        memory.remember(NewRecord("a", valid_from=MARCH, valid_until=JANUARY))
    with pytest.raises(InvalidInput, match="valid_until"):
        memory.remember(NewRecord("a", created_at=MARCH, valid_until=MARCH))
    trip = memory.remember(NewRecord("Dana is in Japan", valid_from=MARCH, valid_until=MAY))
    assert (trip.valid_until, trip.valid_resolved) == (datetime(2026, 5, 1, tzinfo=UTC), False)
    with pytest.raises(InvalidInput, match="give a later end"):
        memory.update(trip.id, valid_from=MAY)
    assert memory.update(trip.id, valid_until=None).valid_until is None


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        ({"since": "2026-04-30"}, True),
        ({"since": MAY}, False),
        ({"until": MARCH}, True),
        ({"until": "2026-02-28"}, False),
        ({"since": "2026-04-01", "until": "2026-04-02"}, True),
        ({"valid_at": "2026-04-30"}, True),
        ({"valid_at": MAY}, False),
    ],
)
def test_times_are_compared_with_the_interval(memory, bounds, found):
    memory.remember(NewRecord("Dana is in Japan", valid_from=MARCH, valid_until=MAY))
    assert memory.count(**bounds) == len(memory.recall("Japan", **recall_arguments(bounds))) == int(found)


def test_an_interval_that_was_found_in_the_text_ends_nothing(memory):
    id = memory.remember(NewRecord("Dana took up tennis in March", valid_from=MARCH, valid_until="2026-04-01")).id
    with memory._engine.atomic() as writer:
        writer.records.change_columns(writer.records.find_ids([id], "/")[id], {"valid_resolved": True}, None)
    assert memory.get(id).valid_resolved
    assert memory.count(valid_at=MAY) == len(memory.recall("tennis", valid_at=MAY)) == 1
    assert memory.count(since=MAY) == len(memory.recall("tennis", filter=Filter(since=MAY))) == 0
    assert not memory.update(id, valid_from=MARCH).valid_resolved
    assert memory.get(id).valid_until is None


def test_a_scoped_handle_sees_and_changes_its_own(memory):
    mine, other = memory.scoped("/a/b"), memory.scoped("/c")
    old = mine.remember("We meet on Monday", scope="/x").id
    new = mine.remember(NewRecord("We meet on Friday", scope="/x", supersedes=old)).id
    for refused in (
        lambda: other.supersede(old, new),
        lambda: other.remember(NewRecord("We meet", supersedes=old)),
        lambda: other.restore(old),
        lambda: other.history(old),
    ):
        with pytest.raises(NotFound, match="in this scope: it was never stored"):
            refused()
    assert [(each.id, each.scope) for each in mine.history(old)] == [(old, "/x"), (new, "/x")]
    (hit,) = mine.recall("when do we meet", limit=1)
    assert (hit.scope, [each.id for each in hit.supersedes]) == ("/x", [old])
    assert mine.restore(old).scope == "/x"


def test_explain_names_the_stage_and_the_successor(memory, moved):
    oslo, bergen, turin = moved
    assert memory.review.explain("Dana", oslo).returned
    told = memory.review.explain("Dana", oslo, limit=1)
    assert (told.returned, told.stage) == (False, "superseded")
    assert told.reason.startswith("it no longer holds, and what replaced it is a hit")
    told = memory.review.explain("Dana", oslo, profile={"superseded": "omit"})
    assert told.reason == f"it is superseded by {bergen}; include_superseded shows it"
    assert memory.review.explain("Dana", oslo, filter=Filter(include_superseded=True)).returned
    assert memory.review.explain("Dana", oslo, valid_at="2026-02-01").returned
    assert memory.review.explain("Dana", turin, valid_at="2026-02-01").reason == "it did not hold at valid_at"
    assert memory.review.explain("Dana", oslo, kinds="fact").stage == "filter"


def test_links_of_supersession_are_not_made_by_hand(memory, moved):
    oslo, _, turin = moved
    with pytest.raises(InvalidInput, match=r"use supersede\(old, new\)"):
        memory.link(turin, oslo, type="supersedes")
    with pytest.raises(InvalidInput, match="undo it with restore"):
        memory.unlink(turin, oslo, "supersedes")
    memory.link(turin, moved[1], type="similar")
    assert memory.unlink(turin, moved[1]) == 1
    assert [each.type for each in memory.neighbors(turin)] == ["supersedes"]


def test_where_compares_what_supersession_sets(memory, moved):
    found = memory.list(where={"superseded_at": {"ne": None}}, include_superseded=True)
    assert {each.id for each in found} == {*moved[:2]}
    assert memory.count(where={"held_until": {"lte": MARCH}}, include_superseded=True) == 1


def test_what_repeats_counts(memory):
    id = memory.remember("Dana likes tea", created_at=JANUARY).id
    with memory._engine.atomic() as writer:
        row = writer.records.find_ids([id], "/")[id]
        writer.comparisons.add_occurrences([(row, now_us(), None), (row, now_us(), "Dana likes tea!")])
    record = memory.get(id)
    assert (record.occurrences, len(record.occurred_at)) == (3, 3)
    assert record.occurred_at[0] == record.created_at
    # A changed text has been remembered once; the times stay with the version that they are of.
    assert memory.update(id, text="Dana likes coffee").occurrences == 1
    assert [each.occurrences for each in memory.history(id)] == [3, 1]


def test_everything_survives_export_backup_and_encryption(tmp_path, moved, memory):
    memory.restore(moved[0])
    memory.supersede(moved[0], moved[1], reason="again")
    memory.update(moved[1], text="Dana lives in Bergen, Norway")
    with memory._engine.atomic() as writer:
        row = writer.records.find_ids([moved[2]], "/")[moved[2]]
        writer.comparisons.add_occurrences([(row, now_us(), "Dana moved to Turin")])
    memory.transfer.export(tmp_path / "all.jsonl")
    with Memory(":memory:", settings=PLAIN) as copy:
        copy.transfer.import_(tmp_path / "all.jsonl")
        for id in moved:
            assert copy.history(id) == memory.history(id)
            assert copy.neighbors(id) == memory.neighbors(id)
        copy.transfer.export(tmp_path / "again.jsonl")
        assert copy.store.verify().problems == ()
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert sorted((tmp_path / "again.jsonl").read_text().splitlines()) == sorted(lines)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"old": "a", "new": "a"}, "cannot supersede itself"),
        ({"old": "a", "new": "z"}, "the end 'z' is no memory"),
        ({"old": "b", "new": "a"}, "supersedes a already"),
        ({"old": "a", "new": "c"}, "another scope"),
        ({"old": "a", "new": "b", "known_until": "2020-01-01T00:00:00Z"}, "known_until is before known_from"),
        ({"old": "a", "new": "b", "strength": 2}, "strength is 2"),
        ({"old": "a", "new": "b", "holds_from": "May"}, "holds_from 'May' is not a time"),
        ({"old": "a", "new": "b", "colour": "red"}, "colour"),
    ],
)
def test_a_bad_supersession_stops_an_import(memory, tmp_path, line, said):
    times = {"holds_from": MARCH, "known_from": MARCH}
    lines = [{"id": "a", "text": "a"}, {"id": "b", "text": "b"}, {"id": "c", "text": "c", "scope": "/c"}]
    lines += [{"supersession": {"old": "a", "new": "b", **times}}, {"supersession": {**times, **line}}]
    (tmp_path / "all.jsonl").write_bytes(b"\n".join(map(json.encode, lines)))
    with pytest.raises(InvalidItem, match=rf"line 5: .*{said}"):
        memory.transfer.import_(tmp_path / "all.jsonl")
    assert memory.count(include_superseded=True) == 0


def test_a_file_of_the_store_is_copied_encrypted_and_embedded_again_with_it(tmp_path):
    with Memory(tmp_path / "agent.db", embedder=WordEmbedder()) as memory:
        old = memory.remember("The office is in Rome").id
        new = memory.remember(NewRecord("The office is in Milan", supersedes=old)).id
        memory.store.backup(tmp_path / "copy.db")
    with Memory(tmp_path / "copy.db", embedder=WordEmbedder("others")) as memory:
        memory.store.reembed()
        memory.store.vacuum()
        assert memory.store.rebuild().problems == ()
        assert [hit.id for hit in memory.recall("office")] == [new, old]
        assert [hit.id for hit in memory.recall("office", mode="vector", filter=Filter(include_superseded=True))] in (
            [old, new],
            [new, old],
        )


def test_sql_shows_it(memory, moved):
    with memory._engine.store.read() as reader:
        rows = reader.sql("SELECT content, superseded_at, held_until, valid_until FROM memories ORDER BY id")
        shown = [(text, superseded is not None, held, until) for text, superseded, held, until in rows]
    assert shown == [
        ("Dana lives in Oslo", True, "2026-03-01T00:00:00.000Z", None),
        ("Dana lives in Bergen now", True, "2026-05-01T00:00:00.000Z", None),
        ("Dana has moved to Turin", False, None, None),
    ]


def test_it_is_awaited_too():
    async def run():
        async with AsyncMemory(":memory:", settings=PLAIN) as memory:
            old = await memory.remember("The office is in Rome")
            new = await memory.remember("The office is in Milan")
            await memory.supersede(old.id, new.id, reason="moved")
            assert await memory.count() == 1
            await memory.restore(old.id)
            return await memory.count(), len(await memory.history(old.id, chain=False))

    assert asyncio.run(run()) == (2, 1)


def test_a_reason_and_a_time_are_corrected_when_they_are_given_again(memory):
    oslo, bergen = (
        memory.remember(f"The office is in {place}", created_at="2026-01-01").id for place in ("Oslo", "Bergen")
    )
    memory.supersede(oslo, bergen, reason="heard", at="2026-02-01")
    memory.supersede(oslo, bergen)
    (link,) = memory.neighbors(oslo, types=["supersedes"])
    assert link.reason == "heard"
    memory.supersede(oslo, bergen, reason="decided")
    (link,) = memory.neighbors(oslo, types=["supersedes"])
    assert link.reason == "decided"
    assert memory.get(oslo).held_until.month == 2
    memory.supersede(oslo, bergen, at="2026-03-01")
    (link,) = memory.neighbors(oslo, types=["supersedes"])
    assert link.reason == "decided"
    assert memory.get(oslo).held_until.month == 3
    with pytest.raises(InvalidInput, match="holds from"):
        memory.supersede(oslo, bergen, at="2025-03-01")
    assert memory.get(oslo).held_until.month == 3
    assert memory.store.verify().problems == ()


def test_what_recall_does_not_find_is_told_to_hold_again_too(memory):
    old = memory.remember(NewRecord("The spare key hangs in the shed", indexed=False))
    new = memory.remember(NewRecord("The spare key lies under the mat", supersedes=old.id))
    assert memory.forget(new.id).holds_again == (old.id,)


def test_what_stays_replaced_by_another_does_not_hold_again(memory):
    old, first, second = (memory.remember(text).id for text in ("Ada leads", "Ben leads the shop", "Cem leads the van"))
    memory.supersede(old, [first, second])
    assert memory.forget(first).holds_again == ()
    assert memory.forget(second).holds_again == (old,)


@pytest.fixture
def ruled():
    """A memory whose rules supersede."""
    with Memory(":memory:", embedder="none") as memory:
        yield memory


def test_a_rule_that_was_undone_leaves_a_pair(ruled):
    old = ruled.remember("The clinic opens at eight")
    new = ruled.remember("The clinic opens at nine now")
    assert new.supersedes == (old.id,)
    (link,) = ruled.neighbors(new.id, types=["supersedes"])
    assert ruled.review.undone() == []
    ruled.restore(old.id)
    (pair,) = ruled.review.undone()
    assert (pair.old, pair.new) == ("The clinic opens at eight", "The clinic opens at nine now")
    assert (pair.old_id, pair.new_id) == (old.id, new.id)
    assert (pair.reason, pair.confidence) == (link.reason, link.strength)
    ruled.update(old.id, text="The ward opens at eight")
    assert ruled.review.undone() == [pair]
    assert ruled.scoped("/other").review.undone() == []
    ruled.supersede(old.id, new.id)
    assert ruled.review.undone() == []
    ruled.restore(old.id)
    assert ruled.review.undone() == [pair]
    ruled.remember("The ward opens at ten", id=old.id, on_existing="replace")
    assert ruled.review.undone() == []
    ruled.forget(new.id)
    assert ruled.review.undone() == []


def test_a_caller_who_overrules_a_rule_leaves_no_pair(ruled):
    old = ruled.remember("The clinic opens at eight")
    new = ruled.remember("The clinic opens at nine now")
    ruled.supersede(old.id, new.id, reason="the door says so", at="2027-01-01")
    assert ruled.review.undone() == []
    ruled.restore(old.id)
    other = ruled.remember("Nobody works there any more")
    ruled.supersede(old.id, other.id)
    assert ruled.review.undone() == []


def test_a_caller_who_changes_their_mind_leaves_no_pair(memory):
    first = memory.remember("The hall is let to a choir")
    second = memory.remember(NewRecord("Chess is played on Mondays", supersedes=first.id))
    third = memory.remember("Nothing is planned for May")
    memory.supersede(second.id, third.id, reason="said at the meeting", strength=0.9)
    for id in (first.id, second.id):
        memory.restore(id)
    assert memory.review.undone() == []


def test_forgetting_what_holds_tells_what_holds_again_or_forgets_it_too(memory):
    first = memory.remember("The stall costs 40 euros")
    second = memory.remember(NewRecord("The stall costs 45 euros", supersedes=first.id))
    third = memory.remember(NewRecord("The stall costs 52 euros", supersedes=second.id))
    assert memory.forget(third.id).holds_again == (second.id,)
    assert [each.id for each in memory.list()] == [second.id]
    third = memory.remember(NewRecord("The stall costs 53 euros", supersedes=second.id))
    gone = memory.forget(third.id, chain=True)
    assert (gone.records, gone.holds_again) == (3, ())
    assert memory.count(include_superseded=True) == 0
    assert memory.store.verify().problems == ()
    with pytest.raises(InvalidInput, match="chain"):
        memory.forget(scope="/", chain="yes")
