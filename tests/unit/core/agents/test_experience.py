"""Experience (seed 002): tool patterns by task type, error recoveries by tool, tips worded as the seed words them."""

from __future__ import annotations

import pytest

from recallite import Memory
from recallite.agents.experience import error_pattern, similarity_of
from recallite.errors import InvalidInput
from tests.unit.core.memory.support import PLAIN, raw, state


def sentences(memory, *arguments, **options):
    return [str(tip) for tip in memory.experience.tips(*arguments, **options)]


def test_the_tip_of_the_seed_word_for_word(either):
    for tokens in (1_000, 1_170, 1_400):
        either.experience.record(task_type="query", tools=["file-write"], success=True, steps=4, tokens=tokens)
    assert sentences(either, "query") == [
        "For query tasks, use [file-write] — 100% success rate over 3 runs (avg 4 steps, 1,190 tokens)"
    ]


def test_a_tip_needs_two_runs_and_half_of_them_successful(memory):
    def record(tools, *outcomes):
        for outcome in outcomes:
            memory.experience.record(task_type="query", tools=tools, success=outcome)

    record(["once"], True)
    record(["half"], True, False)
    record(["third"], True, False, False)
    record(["most"], True, True, False)
    assert sentences(memory, "query") == [
        "For query tasks, use [most] — 67% success rate over 3 runs",
        "For query tasks, use [half] — 50% success rate over 2 runs",
    ]
    assert sentences(memory, "other") == []
    assert len(memory.experience.tips(None)) == 2


def test_a_pattern_is_the_ordered_unique_list_of_tools(memory):
    for tools in (["search", "write", "search"], ["search", "write"], ["write", "search"], ["write", "search"]):
        memory.experience.record(task_type="edit", tools=tools, success=True)
    assert [tip.tools for tip in memory.experience.tips("edit")] == [("search", "write"), ("write", "search")]
    assert [tip.runs for tip in memory.experience.tips("edit")] == [2, 2]


def test_averages_are_those_of_the_runs_that_told_them(memory):
    for steps, tokens in ((1, None), (2, 100), (None, 201)):
        memory.experience.record(task_type="query", tools=["x"], success=True, steps=steps, tokens=tokens)
    (tip,) = memory.experience.tips("query")
    assert (tip.avg_steps, tip.avg_tokens) == (1.5, 150.5)


def test_experience_is_shared_across_agents_by_choice(memory):
    for _ in range(2):
        memory.experience.record(task_type="query", tools=["shared"], success=True)
        memory.experience.record(task_type="query", tools=["adas"], success=True, agent="ada")
    memory.experience.record(task_type="query", tools=["shared"], success=False, agent="ada")
    assert [tip.tools for tip in memory.experience.tips("query", agent="bob")] == [("shared",)]
    assert [tip.tools for tip in memory.experience.tips("query")] == [("shared",)]
    seen = {tip.tools: (tip.runs, tip.success_rate) for tip in memory.experience.tips("query", agent="ada")}
    assert seen == {("adas",): (2, 1.0), ("shared",): (3, pytest.approx(2 / 3))}
    assert memory.scoped("/elsewhere").experience.tips("query") == []


def test_recoveries_are_for_the_same_tool_and_a_similar_error_not_all(memory):
    for tool, error, recovery in (
        ("file-write", "ENOENT: no such file or directory, open '/tmp/a/1.txt'", "create the folder first"),
        ("file-write", "EACCES: permission denied, open '/etc/hosts'", "write below the workspace"),
        ("web-fetch", "ENOENT: no such file or directory, open '/tmp/a'", "never this"),
    ):
        memory.experience.record_recovery(tool=tool, error=error, recovery=recovery)
    memory.experience.record_recovery(
        tool="file-write", error="ENOENT: no such file or directory, open '/var/log/b.log'", recovery="mkdir -p first"
    )
    (tip,) = memory.experience.tips("query", "file-write", "ENOENT: no such file or directory, open '/home/x/2.md'")
    assert (tip.kind, tip.tools, tip.recovery, tip.runs) == ("recovery", ("file-write",), "mkdir -p first", 1)
    assert str(tip) == (
        "When file-write fails with \"ENOENT: no such file or directory, open '/var/log/b.log'\": mkdir -p first "
        "(helped once)"
    )
    assert memory.experience.tips("query", "file-write", "connection reset by peer") == []
    assert memory.experience.tips("query", "shell", "ENOENT: no such file or directory, open '/tmp/a'") == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("timeout after 30 s", "Timeout after 4500 s"),
        ("cannot open /a/b/c.txt: missing", "cannot open ./x.md:  missing"),
        ("commit 3f2a9bc10 not found", "commit deadbeef01 not found"),
        ("job 01a1ff01-c1f5-7075-9f46-8a24227aad8e failed", "job 9b2e4c11-0000-7000-8000-8a24227aad8e failed"),
        ("GET https://a.example/x?y=1 failed", "GET http://b.example/ failed"),
        ("failed at 2026-03-01T10:00:00Z", "failed at 2025-12-24 08:15:00.123"),
        ("segfault at 0x7ffd1234", "segfault at 0xdeadbeef"),
        (r"cannot read C:\Users\a\b.txt", r"cannot read D:\x.txt"),
    ],
)
def test_numbers_paths_and_ids_are_masked_in_errors(one, other):
    assert error_pattern(one) == error_pattern(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTP 404 from server", "HTTP 500 from server"),
        ("permission denied", "no such file or directory"),
        ("unknown column name in table users", "syntax error near SELECT"),
    ],
)
def test_other_errors_are_not_similar(one, other):
    assert similarity_of(error_pattern(one), error_pattern(other)) == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_type": ""}, "task_type is ''"),
        ({"tools": []}, "tools is empty"),
        ({"tools": "file-write"}, "tools is 'file-write': give a list"),
        ({"tools": ["a", 7]}, r"tools\[1\] is 7"),
        ({"tools": ["a", ""]}, r"tools\[1\] is ''"),
        ({"tools": None}, "tools is None"),
        ({"success": 1}, "success is 1: give True or False"),
        ({"steps": -1}, "steps is -1"),
        ({"steps": 1.5}, "steps is 1.5"),
        ({"tokens": float("nan")}, "tokens is nan"),
    ],
)
def test_bad_experience_is_refused(memory, changes, message):
    before = memory.store.stats().services
    with pytest.raises(InvalidInput, match=message):
        memory.experience.record(**{"task_type": "query", "tools": ["a"], "success": True, **changes})
    assert memory.store.stats().services == before


def test_bad_recoveries_and_questions_are_refused(memory):
    before = state(memory), memory.store.stats().services
    for call, message in (
        (lambda e: e.record_recovery(tool="", error="x", recovery="y"), "tool is ''"),
        (lambda e: e.record_recovery(tool="t", error=" ", recovery="y"), "error is ' '"),
        (lambda e: e.record_recovery(tool="t", error="x", recovery=None), "recovery is None"),
        (lambda e: e.tips("query", tool="t"), "tool and error go together"),
        (lambda e: e.tips("query", error="x"), "tool and error go together"),
        (lambda e: e.tips("query", limit=0), "limit is 0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            call(memory.experience)
    assert (state(memory), memory.store.stats().services) == before


def test_small_words_do_not_make_errors_alike():
    assert similarity_of(error_pattern("timeout after 30 s"), error_pattern("disk full after 30 s")) == 0.0
    assert similarity_of(error_pattern("timeout"), error_pattern("ReadTimeout: timeout while reading")) > 0.0


@pytest.mark.parametrize("name", ["steps", "tokens"])
def test_figures_have_a_bound_and_their_sums_cannot_overflow(memory, name):
    run = {"task_type": "t", "tools": ["a"], "success": True}
    with pytest.raises(InvalidInput, match=f"{name} is 1000000000001: it is too large, at most 1,000,000,000,000"):
        memory.experience.record(**run, **{name: 10**12 + 1})
    for agent in (None, "ada"):
        for _ in range(2):
            memory.experience.record(**run, **{name: 10**12}, agent=agent)
    (tip,) = memory.experience.tips("t", agent="ada")
    assert (tip.runs, getattr(tip, f"avg_{name}")) == (4, 1e12)


def test_sums_that_another_program_made_huge_are_averaged_all_the_same(path):
    with Memory(path, settings=PLAIN) as memory:
        for agent in (None, "ada"):
            memory.experience.record(task_type="t", tools=["a"], success=True, tokens=5, agent=agent)
    other = raw(path)
    other.execute("UPDATE tool_pattern SET total_tokens = ?", (2**62,))
    other.close()
    with Memory(path, settings=PLAIN) as memory:
        (tip,) = memory.experience.tips("t", agent="ada")
        assert tip.avg_tokens == 2.0**62
        assert "Experience" in memory.bootstrap("ada", "a task").text
