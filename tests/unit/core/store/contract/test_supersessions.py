"""Supersessions, statements, repeated statements and pairs that wait to be judged, of any store."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from recallite.model.filters import Filter
from recallite.store.sql.derived import Sought, SoughtText
from recallite.store.sql.relations import Judgement, Occurrence, Supersession
from recallite.store.sql.repository import NEVER
from recallite.text.statements import frames_of, keys_of, statement_of
from tests.unit.core.store.contract.support import NOW, row

HOUR = 3_600_000_000
PLAIN, ALL = Filter(), Filter(include_superseded=True)


@pytest.fixture
def chained(store):
    """The row ids of a, b and c, each stored an hour after the one before; b supersedes a, and c b."""
    with store.atomic() as writer:
        times = [NOW, NOW + HOUR, NOW + 2 * HOUR]
        rows = [row(name, created_at=time, recorded_from=time) for name, time in zip("abc", times, strict=True)]
        ids = writer.records.insert(rows, None)
        a, b, c = ids
        writer.supersessions.put([Supersession(a, b, times[1], times[1], None, "a reason", 0.5)])
        writer.supersessions.put([Supersession(b, c, times[2], times[2])])
    return ids


def listed(reader, chosen=PLAIN, now=NOW + 9 * HOUR, **options):
    return [record.id for record in reader.records.find(chosen, now, **options)]


def keys(text, context=None):
    return keys_of(statement_of(text, context))


def candidates(reader, text="Dana lives in Lund", scope="/", kind="memory", now=NOW, limit=9):
    (found,) = reader.statements.candidates([Sought(keys(text), scope, kind)], now, limit)
    return [each.public_id for each in found]


def test_what_is_superseded_is_hidden_where_plain_reads_look(store, chained):
    with store.read() as reader:
        assert listed(reader) == ["c"]
        assert listed(reader, ALL) == listed(reader, versions="open") == ["a", "b", "c"]
        assert reader.records.count(PLAIN, NOW + 2 * HOUR) == 1
        assert not reader.records.admits(PLAIN, NOW + HOUR, chained[0])
        assert reader.records.admits(PLAIN, NOW, chained[0])  # what stands in its place does not hold yet
        assert [each.public_id for each in reader.records.current(chained, NOW)] == ["c"]
        for hours, name in ((0, "a"), (1, "b"), (2, "c")):
            at = Filter().replaced(as_of=NOW + hours * HOUR)
            assert listed(reader, at) == [name]
            assert listed(reader, Filter().replaced(valid_at=NOW + hours * HOUR)) == [name]
        assert listed(reader, Filter().replaced(valid_at=NOW - 1)) == []


def test_records_blocks_and_links_say_what_stands(store, chained):
    a, b, c = chained
    with store.read() as reader:
        record = reader.records.get(b)
        columns = reader.blocks.columns(chained)
        assert (record.supersedes, record.superseded_by) == (("a",), ("c",))
        assert columns.superseded_at.tolist() == columns.held_until.tolist() == [NOW + HOUR, NOW + 2 * HOUR, NEVER]
        (link,) = reader.links.of(b, incoming=False, types=[])
        assert (link.source, link.target, link.type, link.reason, link.strength) == (
            "b", "a", "supersedes", "a reason", 0.5,
        )  # fmt: skip
        assert [*reader.links.between(PLAIN)] == []
        assert len(reader.blocks.links().sources) == 0
        assert reader.supersessions.of_old([b]) == reader.supersessions.of_new([c])
        assert reader.supersessions.of_old([c]) == reader.supersessions.of_new([a]) == []
        (former,) = reader.supersessions.formers(chained, NOW)[c]
        assert (former.public_id, former.held_from, former.held_until) == ("b", NOW + HOUR, NOW + 2 * HOUR)
        assert reader.supersessions.successors(chained) == {a: (NOW + HOUR, ("b",)), b: (NOW + 2 * HOUR, ("c",))}
        assert reader.supersessions.successors(chained, NOW + HOUR) == {a: (NOW + HOUR, ("b",))}
        assert [*reader.supersessions.formers(chained, NOW, NOW + HOUR)] == [b]
        assert reader.supersessions.chain(b) == chained
        assert [record.id for record in reader.records.history("b", chain=True)] == ["a", "b", "c"]


def test_what_changes_is_in_the_feed(store, chained):
    with store.atomic() as writer:
        before = writer.changes.commit()
        writer.supersessions.undo([chained[0]], NOW + 5 * HOUR)
        changes = writer.changes.since(before)
    assert (chained[0], "update") in [(change.first_id, change.operation) for change in changes]


def test_what_was_undone_is_known_for_then(store, chained):
    a, b, c = chained
    with store.atomic() as writer:
        writer.records.change_text(a, row("a", "another text", recorded_from=NOW + 3 * HOUR), None)
        assert writer.supersessions.undo([a, c], NOW + 5 * HOUR) == 1
        assert writer.supersessions.undo([a], NOW + 6 * HOUR) == 0
    with store.read() as reader:
        assert listed(reader) == ["a", "c"]
        assert reader.links.of(b, incoming=False, types=[]) == []
        for hours, names in ((0, ["a"]), (1, ["b"]), (2, ["c"]), (4, ["c"]), (5, ["a", "c"])):
            assert listed(reader, Filter().replaced(as_of=NOW + hours * HOUR)) == names, hours
        assert listed(reader, Filter().replaced(as_of=NOW + 4 * HOUR, valid_at=NOW)) == ["a"]
        assert listed(reader, Filter().replaced(as_of=NOW + 4 * HOUR, valid_at=NOW + HOUR)) == ["b"]
        versions = reader.records.version_ids("a")
        assert sorted(reader.supersessions.undone(NOW + 4 * HOUR)) == sorted(versions)
        assert reader.supersessions.undone(NOW + 4 * HOUR, NOW) == []
        assert reader.supersessions.undone(NOW) == reader.supersessions.undone(NOW + 5 * HOUR) == []
        found = [(each.old, each.new, each.known_until) for each in reader.supersessions.between(PLAIN)]
        assert found == [("a", "b", NOW + 5 * HOUR), ("b", "c", None)]
        undone = Supersession(a, b, 0, NOW + HOUR, NOW + 5 * HOUR)
        assert not reader.supersessions.missing(undone)
        assert reader.supersessions.missing(undone._replace(known_from=NOW))
        assert reader.supersessions.missing(undone._replace(known_until=None))
        assert not reader.supersessions.missing(Supersession(b, c, 0, 0))


def test_closed_versions_are_superseded_with_their_record(store, chained):
    with store.atomic() as writer:
        writer.records.change_text(chained[0], row("a", "changed later", recorded_from=NOW + 3 * HOUR), None)
        writer.records.insert_earlier(chained[0], row("x", "before", recorded_from=NOW + 2 * HOUR), None)
    with store.read() as reader:
        columns = reader.blocks.columns(sorted(reader.records.version_ids("a")))
    assert columns.superseded_at.tolist() == columns.held_until.tolist() == [NOW + HOUR] * 3


def test_a_purged_successor_leaves_its_place_to_its_own(store, chained):
    a, b, c = chained
    with store.atomic() as writer:
        writer.records.delete([b])
        assert writer.supersessions.of_old([a]) == [Supersession(a, c, NOW + HOUR, NOW + 2 * HOUR, None, None, 1.0)]
        writer.records.delete([c])
        assert listed(writer) == ["a"]
        assert (writer.records.get(a).superseded_at, writer.records.get(a).held_until) == (None, None)
    with store.read() as reader:
        assert reader.links.of(a, incoming=True, types=[]) == []
    assert store.verify().problems == ()


def test_of_several_successors_one_that_stays_is_enough(store):
    with store.atomic() as writer:
        old, one, two, three = writer.records.insert([row(name) for name in ("old", "one", "two", "three")], None)
        writer.supersessions.put([Supersession(old, one, NOW, NOW), Supersession(old, two, NOW, NOW)])
        writer.supersessions.put([Supersession(one, three, NOW, NOW)])
        writer.records.delete([one])
        assert [each.new_id for each in writer.supersessions.of_old([old])] == [two]
        writer.records.delete([old])
        assert writer.supersessions.of_new([two, three]) == []


def test_all_successors_purged_at_once_are_followed_as_far_as_needed(store, chained):
    a, b, c = chained
    with store.atomic() as writer:
        (d,) = writer.records.insert([row("d")], None)
        writer.supersessions.put([Supersession(c, d, NOW + 3 * HOUR, NOW + 3 * HOUR)])
        writer.records.delete([b, c])
        assert [(each.old_id, each.new_id) for each in writer.supersessions.of_new([d])] == [(a, d)]
        writer.records.delete([a, d])


def lapsed(writer, moment):
    return sorted(row_id for until, row_id in writer.supersessions.lapses() if until <= moment)


def test_a_successor_that_expires_stands_until_then(store, chained):
    a, b, c = chained
    end = NOW + 6 * HOUR
    with store.atomic() as writer:
        writer.records.change_columns(c, {"expires_at": end}, None)
        assert lapsed(writer, end - 1) == []
        assert lapsed(writer, end) == [b]
        assert listed(writer, now=end - 1) == ["c"]
        assert listed(writer, now=end) == ["b"]
        # b expires too: a is superseded for as long as either stands.
        writer.records.change_columns(b, {"expires_at": NOW + 4 * HOUR}, None)
        assert lapsed(writer, end) == [a, b]
        assert lapsed(writer, end - 1) == []
        assert listed(writer, now=end) == ["a"]
        writer.records.change_columns(c, {"expires_at": None}, None)
        assert lapsed(writer, NEVER) == []
    assert store.verify().problems == ()


def test_standpoints_are_of_open_records(store, chained):
    with store.atomic() as writer:
        writer.records.change_text(chained[0], row("a", "changed", recorded_from=NOW + HOUR), None)
        versions = writer.records.version_ids("a")
        found = writer.supersessions.standpoints([*versions, *chained])
    assert sorted(found) == chained
    assert (found[chained[0]].public_id, found[chained[0]].begins_at) == ("a", NOW)


def test_a_beginning_that_is_moved_ends_what_came_before(store, chained):
    a, b, _ = chained
    with store.atomic() as writer:
        writer.supersessions.hold_from(b, NOW + HOUR, NOW + 1)
        assert writer.supersessions.of_old([a])[0].holds_from == NOW + 1
        writer.supersessions.hold_from(b, NOW + HOUR, NOW + 2)  # nothing holds from there
        assert writer.blocks.columns([a]).held_until.tolist() == [NOW + 1]


def test_candidates_are_current_records_of_the_scope_and_kind(store):
    with store.atomic() as writer:
        rows = [
            row("oslo", "Dana lives in Oslo", kind="memory", topic="home", tags=("x",), source="diary"),
            row("kind", "Dana lives in Oslo", kind="fact"),
            row("scope", "Dana lives in Oslo", kind="memory", scope="/a"),
            row("gone", "Dana lives in Kiel", kind="memory", expires_at=NOW),
            row("other", "The printer is out of paper", kind="memory"),
            row("event", "Dana lives in Bonn", kind="episode"),
            row("turn", "Dana lives in Bonn", kind="memory", position=3),
            row("bergen", "Dana lives in Bergen", kind="memory"),
        ]
        ids = dict(zip([each.public_id for each in rows], writer.records.insert(rows, None), strict=True))
        assert candidates(writer) == ["bergen", "oslo"]  # of those that share as much, the newest first
        assert candidates(writer, limit=1) == ["bergen"]
        assert candidates(writer, kind="fact") == ["kind"]
        assert candidates(writer, scope="/a") == ["scope"]
        assert candidates(writer, scope="/b") == candidates(writer, kind="episode") == []
        assert writer.statements.candidates([], NOW, 9) == []
        assert writer.statements.candidates([Sought((), "/", "memory")], NOW, 9) == [[]]
        of_dana = keys("Dana lives in Lund")
        sought = [Sought(of_dana, *where) for where in (("/b", "memory"), ("/", "memory"), ("/", "fact"))]
        others, (_, found), facts = writer.statements.candidates(sought, NOW, 9)
        assert not others
        assert [each.public_id for each in facts] == ["kind"]
        assert (found.row_id, found.text, found.topic, found.tags, found.source) == (
            ids["oslo"], "Dana lives in Oslo", "home", ("x",), "diary",
        )  # fmt: skip
        assert (found.begins_at, found.pinned, found.valid_resolved) == (NOW, False, False)
        frames = writer.statements.frames(np.array([ids["event"], ids["oslo"]], dtype=np.int64))
        wanted = frames_of(statement_of("Dana lives in Oslo", None))
        assert frames == [(ids["oslo"], np.array(wanted, dtype="<u4").tobytes())]
        writer.supersessions.put([Supersession(ids["oslo"], ids["bergen"], NOW, NOW)])
        assert candidates(writer) == ["bergen"]
        writer.supersessions.undo([ids["oslo"]], NOW)
        assert candidates(writer) == ["bergen", "oslo"]
        writer.records.change_columns(ids["oslo"], {"scope": "/a"}, None)
        assert (candidates(writer), candidates(writer, scope="/a")) == (["bergen"], ["oslo", "scope"][::-1])
        writer.records.change_text(ids["bergen"], row("bergen", "Milk is cheap", recorded_from=NOW + 1), None)
        assert candidates(writer) == []
        writer.records.delete([*ids.values()])
    assert store.verify().problems == ()
    with store.atomic() as writer:
        assert candidates(writer, scope="/a") == []
    store.rebuild()


def test_the_newest_of_many_are_found(store):
    with store.atomic() as writer:
        writer.records.insert(
            [row(f"r{number}", f"Dana lives in town {number}", kind="memory") for number in range(99)], None
        )
        assert candidates(writer, limit=3) == ["r98", "r97", "r96"]


def test_the_current_one_of_many_that_said_the_same_is_found_whatever_its_age(store):
    with store.atomic() as writer:
        towns = [row(f"r{number}", f"Dana lives in town {number}", kind="memory") for number in range(300)]
        ids = writer.records.insert(towns, None)
        writer.supersessions.put([Supersession(old, ids[3], NOW, NOW) for old in ids if old != ids[3]])
        assert candidates(writer) == ["r3"]
        writer.supersessions.undo([ids[200], ids[7]], NOW)
        assert candidates(writer) == ["r200", "r7", "r3"]
        writer.records.delete([ids[200]])
        writer.records.change_text(ids[7], row("r7", "Milk is cheap", recorded_from=NOW + 1), None)
        assert candidates(writer) == ["r3"]
    assert store.verify().problems == ()
    store.rebuild()
    with store.read() as reader:
        assert candidates(reader) == ["r3"]


def test_records_are_found_by_their_texts(store):
    with store.atomic() as writer:
        rows = [row(f"r{number}", f"Line {number % 50}", kind="memory") for number in range(150)]
        ids = writer.records.insert(rows, None)
        single = writer.records.insert([row("one", "line 7", kind="memory")], None)
        key = rows[7].content_hash[:8]
        alike = [ids[7], ids[57], ids[107], *single]
        assert [each.row_id for each in writer.records.current_by_text([key], NOW)] == alike
        writer.records.change_text(ids[57], row("r57", "other", recorded_from=NOW + 1), None)
        writer.records.delete([ids[7]])
        assert [each.row_id for each in writer.records.current_by_text([key], NOW)] == alike[2:]
        other = row("x", "Other").content_hash[:8]
        assert [each.row_id for each in writer.records.current_by_text([other, b"nothing."], NOW)] == [ids[57]]
        sought = [SoughtText(key, "/", "memory"), SoughtText(key, "/", "note"), SoughtText(other, "/", "memory")]
        found = [sorted(each.row_id for each in some) for some in writer.statements.of_text(sought, NOW)]
        assert found == [alike[2:], [], [ids[57]]]
    assert store.verify().problems == ()


def test_repeated_statements_have_their_times(store):
    with store.atomic() as writer:
        one, two = writer.records.insert([row("one", repeated=((NOW + 2, None), (NOW + 1, "One!"))), row("two")], None)
        assert writer.comparisons.occurrences([one, two]) == {
            one: [Occurrence(NOW + 1, "One!"), Occurrence(NOW + 2, None)]
        }
        writer.comparisons.add_occurrences([(two, NOW - 1, None)])
        assert [record.occurrences for record in writer.records.get_many([one, two])] == [3, 2]
        first = next(iter(writer.records.versions(PLAIN, None)))
        assert [each.at for each in first.repeated] == [NOW + 1, NOW + 2]
        writer.records.change_text(one, row("one", "changed", recorded_from=NOW + 9), None)
        closed, opened = writer.records.history("one")
        assert (closed.occurrences, opened.occurrences, opened.occurred_at) == (3, 1, ())
        writer.records.change_text(two, row("two", "changed", recorded_from=NOW + 9), None, keep_version=False)
        assert writer.comparisons.occurrences([two]) == {}
        writer.records.delete([one])


def test_pairs_wait_to_be_judged_until_one_of_them_is_gone(store):
    with store.atomic() as writer:
        ids = writer.records.insert([row(name) for name in "abcd"], None)
        pairs = [Judgement(old, new, 0.5, "value", NOW) for old, new in pairwise(ids)]
        writer.comparisons.put_pairs(pairs)
        writer.comparisons.put_pairs([pairs[0]._replace(confidence=0.6)])
        assert writer.comparisons.pairs(2) == [pairs[0]._replace(confidence=0.6), pairs[1]]
        writer.records.delete([ids[3]])
        writer.comparisons.drop_pairs([(ids[1], ids[2]), (9, 9)])
        assert writer.comparisons.count_pairs() == 1


@pytest.mark.parametrize("step", [1, 2, 7])
def test_frames_of_runs_and_of_scattered_versions_are_their_own(store, step):
    """A run is read as a range, in which other versions may lie."""
    with store.atomic() as writer:
        rows = [row(f"r{place}", f"Dana lives in Town{place}", kind="memory") for place in range(30)]
        rows[6] = row("silent", "The printer is out of paper", kind="memory")
        ids = np.array(writer.records.insert(rows, None), dtype=np.int64)
        wanted = [np.array(frames_of(statement_of(each.text, None)), dtype="<u4").tobytes() for each in rows]
        for chosen in (np.arange(0, 30, step), np.arange(0, 30, step)[::-1], np.empty(0, dtype=np.int64)):
            stated = {int(ids[i]): wanted[i] for i in chosen if wanted[i]}
            assert dict(writer.statements.frames(ids[chosen])) == stated
        assert wanted[0]
        assert not wanted[6]
