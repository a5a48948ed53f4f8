"""What rules find to be replaced: it is shown with its mark until that is certain, and a person can undo it."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.model.checks import now_us, to_datetime
from recallite.model.records import NewRecord
from tests.unit.core.memory.support import STORING, supersede_by_rule

TEXTS = {
    "tram": "The tram to the harbour is line 4",
    "bus": "The bus to the harbour is line 11",
    "grey": "The shed is painted grey",
    "blue": "The shed is painted blue",
}


@pytest.fixture
def memory():
    """The tram is superseded by rule, and grey as a caller said."""
    with Memory(":memory:", settings=STORING) as memory:
        for id, text in TEXTS.items():
            memory.remember(text, id=id, scope="/town" if id in ("tram", "bus") else "/house", tags=[id])
        supersede_by_rule(memory, "tram", "bus")
        memory.supersede("grey", "blue", reason="painted anew")
        yield memory


def ids(records):
    return [record.id for record in records]


def test_a_list_leaves_out_what_is_surely_replaced_and_says_how_many(memory):
    listed = memory.list()
    assert (ids(listed), listed.left_out, memory.count()) == (["blue", "bus", "tram"], 1, 3)
    assert [(each.superseded_by, each.superseded_by_rule) for each in listed] == [
        ((), None), ((), None), (("bus",), "another value"),
    ]  # fmt: skip
    assert memory.get("tram").held_until is None
    everything = memory.list(include_superseded=True)
    assert (len(everything), everything.left_out, memory.count(include_superseded=True)) == (4, 0, 4)
    assert memory.get("grey").superseded_by_rule is None
    assert memory.get("grey").held_until is not None


def test_what_a_list_leaves_out_is_within_its_filter(memory):
    for fields, left_out in (
        ({"scope": "/house"}, 1), ({"scope": "/town"}, 0), ({"tags": ["grey"]}, 1), ({"tags": ["blue"]}, 0),
        ({"limit": 1}, 1), ({"limit": 1, "offset": 2}, 1), ({"valid_at": to_datetime(now_us())}, 0),
        ({"as_of": to_datetime(now_us())}, 1), ({"where": {"text": {"contains": "shed"}}}, 1),
    ):  # fmt: skip
        assert memory.list(**fields).left_out == left_out, fields
    assert memory.scoped("/town").list().left_out == 0
    memory.restore("grey")
    assert memory.list().left_out == 0


def test_what_gives_way_only_later_is_not_left_out_yet(memory):
    memory.remember(
        NewRecord("The shed is painted green", id="green", scope="/house", valid_from="2999-01-01T00:00:00Z")
    )
    memory.supersede("blue", "green")
    assert (ids(memory.list(scope="/house")), memory.list().left_out) == (["green", "blue"], 1)


def test_a_review_lists_what_rules_found_the_newest_first(memory):
    memory.remember("The ferry to the harbour is line 20", id="ferry", scope="/town")
    supersede_by_rule(memory, "bus", "ferry", reason="language model")
    report = memory.review.audit(["replaced-by-rule"])
    assert [(each.id, each.text, each.other, each.other_text) for each in report.findings] == [
        ("bus", TEXTS["bus"], "ferry", "The ferry to the harbour is line 20"),
        ("tram", TEXTS["tram"], "bus", TEXTS["bus"]),
    ]
    newest, oldest = report.findings
    assert newest.at > oldest.at
    assert oldest.reason == (
        f"may still hold, and is superseded since {oldest.at:%Y-%m-%d} (0.90, another value); restore undoes it"
    )
    assert (report.superseded, report.may_hold, oldest.verb) == (1, 2, None)
    assert {each.id for each in memory.review.audit(["superseded"]).findings} == {"tram", "bus", "grey"}
    memory.restore("tram")
    assert ids(memory.review.audit(["replaced-by-rule"]).findings) == ["bus"]
    assert memory.get("tram").superseded_by == ()


def test_what_a_caller_confirms_is_certain_and_no_longer_by_rule(memory):
    memory.supersede("tram", "bus")
    assert memory.get("tram").superseded_by_rule is None
    assert (ids(memory.list()), memory.list().left_out) == (["blue", "bus"], 2)
    assert memory.review.audit(["replaced-by-rule"]).findings == ()
    assert memory.get("bus").supersedes == ("tram",)


def test_the_duplicates_of_what_may_be_replaced_are_not_looked_for(memory):
    memory.remember(TEXTS["tram"], id="again", scope="/town")
    assert memory.review.audit(["duplicates"]).findings == ()


def test_an_export_keeps_who_found_it_and_how_surely(memory, tmp_path):
    memory.transfer.export(tmp_path / "all.jsonl")
    memory.transfer.export_folder(tmp_path / "notes")
    for source in ("all.jsonl", "notes"):
        with Memory(":memory:", settings=STORING) as other:
            if source == "notes":
                other.transfer.import_folder(tmp_path / source)
            else:
                other.transfer.import_(tmp_path / source)
            assert (set(ids(other.list())), other.list().left_out) == ({"blue", "bus", "tram"}, 1)
            assert other.get("tram").superseded_by_rule == "another value"
            assert other.get("grey").superseded_by_rule is None
