"""Standing instructions and preferences: marked when written, brought by recall and bootstrap."""

from __future__ import annotations

import asyncio
import io

import numpy as np
import pytest

from recallite import AsyncMemory, Memory, Settings
from recallite.model.authority import speaking_as
from recallite.model.records import NewRecord
from recallite.model.settings import Profile
from recallite.recall import plan
from recallite.recall.request import recall_arguments
from tests.unit.core.memory.support import ONLY_STORES, PLAIN, raw

DIMENSION = 8
QUERY = np.eye(DIMENSION, dtype=np.float32)[0]
ALWAYS = "Always format dates as ISO"
TEA = "I prefer tea"
REQUEST = "Book a flight to Rome"


def toward(cosine: float) -> np.ndarray:
    vector = np.zeros(DIMENSION)
    vector[0], vector[1] = cosine, np.sqrt(1 - cosine * cosine)
    return vector.astype(np.float32)


def texts(hits: list) -> list[str]:
    return [hit.text for hit in hits]


def ask(memory: Memory, query: str = REQUEST, **options: object):
    return memory.recall(query, **recall_arguments({"vector": QUERY, "half_life_days": 0, "limit": 8, **options}))


@pytest.fixture
def notes(memory):
    """Twenty notes that answer better than what stands."""
    for place in range(20):
        memory.remember(NewRecord(f"note {place}", vector=toward(0.9 - place / 100)))
    return memory


# ── what is kept ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_record_says_what_it_is(memory):
    assert memory.remember(ALWAYS).standing == "instruction"
    stored = memory.remember(TEA, context="user")
    assert (stored.standing, memory.get(stored.id).standing) == ("preference", "preference")
    assert memory.remember("Tea is a drink").standing is None
    assert memory.remember(TEA, context="assistant").standing is None
    assert memory.remember(ALWAYS, kind="episode").standing is None


def test_a_filter_lists_them(memory):
    memory.remember_many([ALWAYS, TEA, "Tea is a drink"])
    assert texts(memory.list(where={"standing": "instruction"})) == [ALWAYS]
    assert texts(memory.list(where={"standing": {"ne": None}}, order="oldest")) == [ALWAYS, TEA]
    assert texts(memory.list(where={"standing": None})) == ["Tea is a drink"]
    assert memory.count(where={"standing": {"in": ["instruction", "preference"]}}) == 2
    assert texts(memory.recall("tea", where={"standing": "preference"})) == [TEA]


def test_a_new_text_or_kind_is_judged_again(memory):
    stored = memory.remember("Dates are ISO")
    assert memory.update(stored.id, text=ALWAYS).standing == "instruction"
    assert memory.update(stored.id, context="assistant").standing is None
    assert memory.update(stored.id, context=None).standing == "instruction"
    assert memory.update(stored.id, kind="episode").standing is None
    assert memory.update(stored.id, kind="note").standing == "instruction"
    assert memory.update(stored.id, text="Dates are ISO").standing is None
    known = [None, "instruction", None, "instruction", None]
    assert [version.standing for version in memory.history(stored.id)] == known
    assert memory.restore(stored.id, 1).standing == "instruction"
    assert memory.store.verify().problems == ()


def test_it_survives_export_rebuild_and_a_backup(on_disk, tmp_path):
    on_disk.remember_many([ALWAYS, TEA, "Tea is a drink"])
    on_disk.store.rebuild()
    assert on_disk.store.verify().problems == ()
    assert on_disk.count(where={"standing": {"ne": None}}) == 2
    file = io.StringIO()
    on_disk.transfer.export(file)
    file.seek(0)
    on_disk.store.backup(tmp_path / "copy.db")
    with Memory(":memory:", settings=PLAIN) as other, Memory(str(tmp_path / "copy.db"), settings=PLAIN) as copy:
        other.transfer.import_(file)
        for memory in (other, copy):
            assert texts(memory.list(where={"standing": {"ne": None}}, order="oldest")) == [ALWAYS, TEA]
            assert memory.store.verify().problems == ()


def test_verify_names_a_wrong_mark_and_rebuild_mends_it(path):
    with Memory(path, settings=PLAIN) as memory:
        memory.remember_many([ALWAYS, TEA, "Tea is a drink"])
    connection = raw(path)
    connection.execute("DELETE FROM standing WHERE name = 'instruction'; INSERT INTO standing VALUES (3, 'unknown')")
    connection.close()
    with Memory(path, settings=PLAIN) as memory:
        assert "Tea is a drink" in texts(memory.recall("tea"))
        (problem,) = memory.store.verify().problems
        assert (problem.name, problem.count) == ("record whose standing is not that of its text", 2)
        memory.store.rebuild()
        assert memory.store.verify().problems == ()
        assert texts(memory.list(where={"standing": {"ne": None}}, order="oldest")) == [ALWAYS, TEA]


def test_forgetting_leaves_no_mark(on_disk):
    on_disk.forget(on_disk.remember(ALWAYS).id)
    with on_disk._engine.store.read() as reader:
        assert reader.connection.execute("SELECT count(*) FROM standing").get == 0


# ── recall ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_applies_comes_last_and_says_why(notes):
    notes.remember(NewRecord(ALWAYS, vector=toward(0.3)))
    notes.remember(NewRecord(TEA, vector=toward(0.2)))
    without = ask(notes, standing_instructions=0)
    hits = ask(notes)
    assert texts(hits) == [*texts(without)[:6], ALWAYS, TEA]
    assert [hit.match_reasons[-1] == "standing" for hit in hits] == [False] * 6 + [True] * 2
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert (
        hits[-2].confidence
        == notes.review.explain(REQUEST, hits[-2].id, vector=QUERY, profile={"half_life_days": 0}).confidence
    )
    assert hits[:6] == without[:6]


def test_few_instructions_apply_to_everything_and_preferences_where_they_are_near(notes):
    notes.remember(NewRecord(ALWAYS, vector=toward(0.0)))
    notes.remember(NewRecord(TEA, vector=toward(0.0)))
    assert texts(ask(notes))[-1] == ALWAYS
    assert TEA not in texts(ask(notes))
    for place in range(3):
        notes.remember(NewRecord(f"Always include source {place}", vector=toward(0.0)))
    assert not any("standing" in hit.match_reasons for hit in ask(notes))


@pytest.mark.parametrize(("limit", "brought"), [(1, 0), (3, 0), (4, 1), (8, 2), (12, 3), (20, 3)])
def test_they_take_a_quarter_of_the_limit_at_most(notes, limit, brought):
    for place in range(5):
        notes.remember(NewRecord(f"Always include source {place}", vector=toward(0.3 - place / 100)))
    hits = ask(notes, limit=limit)
    assert len(hits) == limit
    assert texts(hits)[limit - brought :] == [f"Always include source {place}" for place in range(brought)]


def test_one_that_ranks_by_itself_stays_where_it_is(notes):
    notes.remember(NewRecord(ALWAYS, vector=toward(0.95)))
    hits = ask(notes)
    assert hits[0].text == ALWAYS
    assert hits[0].match_reasons[-1] == "standing"
    assert texts(hits).count(ALWAYS) == 1
    assert len(hits) == 8


def test_filters_scopes_and_thresholds_hold(notes):
    notes.remember(NewRecord(ALWAYS, vector=toward(0.3), scope="/b", tags=["x"]))
    assert ALWAYS in texts(ask(notes))
    assert ALWAYS not in texts(ask(notes, tags=["y"]))
    assert ALWAYS not in texts(ask(notes, scope="/a"))
    assert ALWAYS not in texts(ask(notes.scoped("/a")))
    assert ALWAYS in texts(ask(notes.scoped("/b")))
    assert ALWAYS not in texts(ask(notes, min_confidence=0.3))
    assert ALWAYS not in texts(ask(notes, min_score=0.4))
    assert ALWAYS not in texts(ask(notes, as_of="2020-01-01"))


def test_where_they_are_not_brought(notes):
    notes.remember(NewRecord(ALWAYS, vector=toward(0.3)))
    for options in (
        {"standing_instructions": 0}, {"mode": "vector"}, {"profile": "reeve"}, {"diversify_by": "one_per_source"},
        {"diversify_by": "time"},
    ):  # fmt: skip
        assert ALWAYS not in texts(ask(notes, **options)), options


def test_a_question_brings_only_what_is_near(notes):
    near = notes.remember(NewRecord(ALWAYS, vector=toward(0.4)))
    notes.remember(NewRecord(TEA, vector=toward(0.3)))
    question = "Who flew to Rome?"
    assert [hit.id for hit in ask(notes, question)][-1] == near.id
    assert texts(ask(notes, question)) == [*texts(ask(notes, question, standing_instructions=0))[:-1], ALWAYS]
    notes.update(near.id, vector=toward(0.3))
    assert texts(ask(notes, question)) == texts(ask(notes, question, standing_instructions=0))
    assert notes.review.explain(question, near.id, vector=QUERY, limit=8).rank > 8


def test_many_questions_and_parts_of_one(notes):
    notes.remember(NewRecord(ALWAYS, vector=toward(0.3)))
    together = notes.recall_many(
        [REQUEST, "Book a table for two"], vectors=[QUERY, QUERY], limit=8, profile={"half_life_days": 0}
    )
    for query, hits in zip((REQUEST, "Book a table for two"), together, strict=True):
        assert texts(hits) == texts(ask(notes, query))
        assert hits[-1].text == ALWAYS
    question = "Book a flight to Rome for the first week. Then book a table for the second week."
    split = notes.recall(question, limit=8, profile={"long_query_chars": 20})
    assert split.sub_queries
    assert split[-1].text == ALWAYS
    # They have the confidence of the whole question, not of what the memory of the kernel held before.
    for work, hits in vars(plan._memories)["memory"].values():
        work.confidence[:] = hits.confidence[:] = np.nan
    again = notes.recall(question, limit=8, profile={"long_query_chars": 20})
    assert [(hit.id, hit.confidence) for hit in again] == [(hit.id, hit.confidence) for hit in split]
    assert 0 <= again[-1].confidence <= 1


def test_a_token_budget_leaves_them_out_first(notes):
    notes.remember(NewRecord(ALWAYS, vector=toward(0.3)))
    whole = ask(notes)
    some = ask(notes, token_budget=6)
    assert 0 < len(some) < len(whole)
    assert texts(some) == texts(whole)[: len(some)]
    assert some.left_out == len(whole) - len(some)


def test_a_committed_change_is_seen(notes):
    stored = notes.remember(NewRecord(ALWAYS, vector=toward(0.3)))
    assert ask(notes)[-1].id == stored.id
    notes.update(stored.id, text="Dates are ISO", vector=toward(0.3))
    assert stored.id not in [hit.id for hit in ask(notes)]
    notes.update(stored.id, text=ALWAYS, vector=toward(0.3))
    assert ask(notes)[-1].id == stored.id
    notes.forget(stored.id)
    assert len(ask(notes)) == 8


# ── bootstrap ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_bootstrap_has_a_section_of_its_own(memory):
    memory.remember("The report is due on Friday")
    memory.remember(ALWAYS)
    memory.remember(TEA)
    ready = memory.bootstrap(None, "Write the report")
    section = ready.text.split("## ")[1]
    assert section.startswith("Standing instructions and preferences\n- ")
    assert f'"{ALWAYS}"' in section
    assert f'"{TEA}"' in section
    assert ready.text.count(ALWAYS) == ready.text.count(TEA) == 1
    assert texts(ready.standing) == [ALWAYS, TEA]
    assert texts(ready.records) == ["The report is due on Friday"]


def test_bootstrap_quotes_only_what_lasts(memory):
    whole = "The fence is done. Never commit generated files. Then water the roses."
    stored = memory.remember(whole)
    ready = memory.bootstrap(None, "Decorate the hall")
    assert '"Never commit generated files."' in ready.text
    assert "roses" not in ready.text
    assert texts(ready.standing) == [whole]
    assert memory.recall("What about the roses?")[0].id == stored.id


def test_bootstrap_has_the_later_of_two_instructions_or_both_marked(memory):
    def told(text, day, **fields):
        return memory.remember(text, created_at=f"2026-03-{day:02}T00:00:00Z", **fields)

    told("Always use crayons for posters", 1)
    told("Never add footnotes", 2)
    told("Always check spelling before sending", 3)
    told("Use markers for posters from now on", 4)
    told("Always add footnotes", 5)
    with speaking_as("agent"):
        told("Never check spelling before sending", 6)
    ready = memory.bootstrap(None, "Write the report")
    section = ready.text.split("## ")[1].splitlines()[1:]
    assert section[:4] == [
        '- said 2026-03-05: "Always add footnotes"',
        '- said 2026-03-04, may contradict what was asked on 2026-03-01: "Use markers for posters from now on"',
        '- said 2026-03-01: "Always use crayons for posters"',
        '- said 2026-03-03: "Always check spelling before sending"',
    ]


def test_bootstrap_replaces_instructions_that_no_write_compared_but_none_of_another_person_or_scope(memory):
    for day, text, fields in (
        (1, "Never add footnotes", {}),
        (2, "Never use 3 colours", {"metadata": {"user_id": "ana"}}),
        (3, "Never write in red", {"scope": "/book"}),
        (4, "Always add footnotes", {}),
        (5, "Always use 3 colours", {"metadata": {"user_id": "ben"}}),
        (6, "Always write in red", {}),
    ):
        memory.remember(text, created_at=f"2026-03-{day:02}T00:00:00Z", policy=ONLY_STORES, **fields)
    assert texts(memory.bootstrap(None, "Write the report").standing) == [
        "Always write in red", "Never write in red", "Always use 3 colours", "Always add footnotes",
        "Never use 3 colours",
    ]  # fmt: skip


def test_bootstrap_without_them():
    with Memory(":memory:", settings=Settings(embedder="none", profile=Profile(standing_instructions=0))) as memory:
        memory.remember(ALWAYS)
        ready = memory.bootstrap(None, "Write the report")
        assert ready.standing == ()
        assert "Standing" not in ready.text
        assert texts(ready.records) == [ALWAYS]


def test_the_twin_answers_alike(path):
    async def main():
        async with AsyncMemory(path, settings=PLAIN) as memory:
            for place in range(12):
                await memory.remember(f"report {place}")
            await memory.remember(ALWAYS)
            ready = await memory.bootstrap(None, "Write the report")
            return await memory.recall("report", limit=8), ready.standing

    hits, standing = asyncio.run(main())
    assert hits[-1].text == ALWAYS
    assert texts(standing) == [ALWAYS]
    with Memory(path, settings=PLAIN) as memory:
        assert texts(memory.recall("report", limit=8)) == texts(hits)


def test_with_explain_what_is_brought_has_ranks_too(notes):
    notes.remember(NewRecord(ALWAYS, vector=toward(0.2)))
    hits = ask(notes, purpose="explain")
    assert hits[-1].text == ALWAYS
    assert hits[-1].signals["cosine_rank"] == 21.0
    assert hits[0].signals["cosine_rank"] == 1.0
    assert hits[-1].signals["bm25_rank"] == 0.0


@pytest.mark.parametrize("limit", [4, 5])
def test_what_mmr_picks_is_not_brought_again(path, limit):
    always = "Always wash the apples before you serve them."
    with Memory(path, settings=PLAIN) as memory:
        for when in ("autumn", "September", "spring", "March", "May", "June"):
            memory.remember(f"We pick red apples in the old orchard in {when}.")
        memory.remember(always)
        hits = texts(
            memory.recall("Who picks red apples in the old orchard?", limit=limit, profile={"mmr_lambda": 0.3})
        )
        assert hits.count(always) == 1
        assert len(hits) == limit
