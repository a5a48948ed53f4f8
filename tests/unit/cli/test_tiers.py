"""Episodes, procedures, experience, sessions, consolidate and bootstrap on the command line."""

import json

import pytest


def call(run, tool, action, **fields):
    done = run("tool", tool, json.dumps({"action": action, **fields}))
    assert done.code == 0, done
    return done.json


def test_log_and_list_episodes(run):
    logged = run(
        "episodes", "log", "deployed", "--type", "task-completed", "--agent", "ada", "--task", "t1", "--importance",
        "0.9", "--tag", "x", "--cost", "0.5", "--duration-ms", "20", "--pinned", "--json",
    ).json  # fmt: skip
    assert (logged["kind"], logged["scope"], logged["importance"], logged["pinned"]) == (
        "episode", "/agents/ada", 0.9, True,
    )  # fmt: skip
    run("episodes", "log", "noticed")
    assert [each["text"] for each in run("episodes", "list", "--json").json] == ["noticed", "deployed"]
    for options in (("--agent", "ada"), ("--task", "t1"), ("--type", "task-completed"), ("--scope", "/agents/ada")):
        assert [each["text"] for each in run("episodes", "list", *options, "--json").json] == ["deployed"]
    assert run("episodes", "list", "--agent", "ada").out.split("\t")[2:] == ["task-completed", "0.90", "deployed\n"]
    assert run("episodes", "list", "--agent", "eve").code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("episodes", "log", "x", "--type", "party"), "event_type is 'party': use 'task-started'"),
        (("episodes", "log", "x", "--agent", "a/b"), "an agent id is one name"),
        (("episodes", "list", "--on", "some day"), "not a time"),
        (("episodes", "list", "--order", "random"), "order is 'random'"),
        (("procedures", "save", "n", ""), "text is ''"),
        (("experience", "tips", "--tool", "http"), "tool and error go together"),
        (("sessions", "clean", "--days", "nan"), "--days is nan"),
        (("sessions", "clean", "--days", "1e300"), "--days is 1e300"),
        (("bootstrap", "--task", " "), "task is ' ': describe the task in a sentence"),
        (("bootstrap", "--task", "x", "--budget", "0"), "budget_tokens is 0"),
        (("consolidate", ".."), "an agent id is one name"),
        (("consolidate", "--cycles", "0"), "limit is 0"),
        (("bootstrap",), "--task"),
        (("sessions", "nothing"), "nothing"),
    ],
)
def test_a_wrong_argument_is_named(run, empty, arguments, message):
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("group", ["episodes", "procedures", "experience", "sessions"])
def test_a_group_alone_shows_its_commands(run, group):
    done = run(group)
    assert (done.code, done.out) == (2, "")
    assert "Commands:" in done.err


def test_procedures(run, empty):
    assert run("procedures", "list").code == 1
    id = run("procedures", "save", "deploy", "How to deploy", "--pattern", "build; push", "--tag", "ops").out.strip()
    run("procedures", "outcome", "deploy", "--success")
    counted = run("procedures", "outcome", id, "--failure", "--json").json
    assert (counted["use_count"], counted["success_count"]) == (2, 1)
    assert counted["success_rate"] == pytest.approx((0.5 * 0.9 + 0.1) * 0.9)
    assert run("procedures", "list", "--tag", "ops").out == "deploy\t50%\t2\tHow to deploy\n"
    assert run("procedures", "outcome", "nothing", "--success").code == 1


def test_experience(run, empty):
    assert run("experience", "tips").code == 1
    for steps, tokens in ((3, 1000), (4, 1270), (5, 1300)):
        run("experience", "record", "--task-type", "query", "--tool", "file-write", "--success", "--steps", steps,
            "--tokens", tokens)  # fmt: skip
    sentence = "For query tasks, use [file-write] — 100% success rate over 3 runs (avg 4 steps, 1,190 tokens)"
    assert run("experience", "tips", "--task-type", "query").out == f"{sentence}\n"
    (tip,) = run("experience", "tips", "--json").json
    assert (tip["text"], tip["tools"], tip["runs"]) == (sentence, ["file-write"], 3)
    run("experience", "recovery", "--tool", "http", "--error", "timeout after 3 s", "--helped", "fewer rows")
    assert "fewer rows" in run("experience", "tips", "--tool", "http", "--error", "timeout after 9 s").out


def test_sessions(run):
    call(run, "session", "open", id="s", agent="ada", provider="local")
    call(run, "session", "append", id="s", agent="ada", role="user", content="What about the risks?")
    call(run, "session", "append", id="s", agent="ada", role="assistant", content="The schedule.")
    assert run("sessions", "list").out.startswith("s\t/agents/ada\tada\tlocal\t2\t")
    assert run("sessions", "list", "--agent", "eve").code == 1
    assert (
        run("sessions", "show", "s", "--agent", "ada").out == "user\tWhat about the risks?\nassistant\tThe schedule.\n"
    )
    shown = run("sessions", "show", "s", "--agent", "ada", "--limit", "1", "--json").json
    assert shown == [{"role": "assistant", "content": "The schedule."}]
    assert run("sessions", "search", "risks", "--json").json[0]["session"] == "s"
    confidence, *found = run("sessions", "search", "risks").out.splitlines()[0].split("\t")
    assert 0 <= float(confidence) <= 1
    assert found == ["s", "0", "user", "What about the risks?"]
    assert run("sessions", "search", "nothing").code == 1
    elsewhere = run("sessions", "show", "s")
    assert elsewhere.code == 1, "another agent's session is none"
    assert "of another agent or scope" in elsewhere.err
    end = ("sessions", "end", "s", "--agent", "ada", "--yes")
    ended = run(*end, "--summary", "risks", "--decision", "wait", "--json").json
    assert (ended["ended"], ended["snapshot"]["key_decisions"]) == ("s", ["wait"])
    assert run("episodes", "snapshots").out.split("\t")[2:] == ["2", "risks\n"]
    assert run(*end).code == 1


def test_sessions_are_cleaned_by_age(run):
    call(run, "session", "open", id="old")
    assert run("sessions", "clean", "--days", "1", "--yes").code == 1
    assert run("sessions", "clean", "--days", "0").code == run("sessions", "end", "old").code == 2
    assert run("sessions", "clean", "--days", "0", "--yes").out == "1\tremoved\n"
    assert run("sessions", "list").code == 1


def test_consolidate(run):
    for number in range(3):
        run("episodes", "log", f"event {number}", "--agent", "ada")
    cycle = run("consolidate", "ada", "--json").json
    assert (cycle["compressed"], cycle["replayed"], cycle["pruned"]) == (3, 3, 0)
    assert run("episodes", "list", "--json").json[0]["importance"] == pytest.approx(0.475)
    assert "compressed\t3" in run("consolidate", "ada").out, "again it changes nothing"
    assert run("episodes", "list", "--json").json[0]["importance"] == pytest.approx(0.475)
    assert len(run("consolidate", "ada", "--cycles", "5", "--json").json) == 1


def test_bootstrap(run, remember):
    remember("The deploy script is deploy.sh", "--scope", "/agents/ada")
    run("episodes", "log", "deployed", "--agent", "ada")
    done = run("bootstrap", "ada", "--task", "deploy again")
    assert "deploy.sh" in done.out
    assert "deployed" in done.out
    found = run("bootstrap", "ada", "--task", "deploy again", "--budget", "60", "--json").json
    assert found["tokens"] <= 60
    assert run("bootstrap", "eve", "--task", "deploy again", "--json").json["records"] == []


def test_terminal_codes_in_stored_text_are_not_printed(run):
    run("episodes", "log", "\x1b[2Jwiped", "--agent", "ada")
    for arguments in (("episodes", "list"), ("bootstrap", "ada", "--task", "x")):
        assert "\x1b" not in run(*arguments).out


def test_a_briefing_without_anything_says_where_the_memories_are(run, remember):
    remember("Milk the goats at six")
    empty = run("bootstrap", "ada", "--task", "plan the week")
    assert (empty.code, empty.out) == (0, "")
    assert "1 memory is elsewhere" in empty.err
