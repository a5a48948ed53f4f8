"""recall, explain, get, list, count."""

import re

import pytest
from msgspec import structs

from recallite.model.filters import FilterFields
from recallite.model.records import Explanation
from recallite_cli.printers import _sentences


@pytest.fixture
def stored(remember):
    """Three memories; the ids by name."""
    return {
        "mysql": remember("We migrated the database to MySQL", "--scope", "/infra/db", "--tag", "database",
                          "--valid-from", "2024-05-01T00:00:00Z"),
        "deploy": remember("Deployments happen on Tuesday", "--scope", "/infra", "--kind", "rule", "--source", "wiki",
                           "--importance", "0.9"),
        "lunch": remember("The canteen serves\tsoup\x1b[31m", "--scope", "/home"),
    }  # fmt: skip


def test_recall_prints_score_confidence_id_and_text(run, stored):
    done = run("recall", "which database?")
    score, confidence, id, text = done.out.rstrip("\n").split("\t")
    assert (done.code, id, text) == (0, stored["mysql"], "We migrated the database to MySQL")
    assert 0 < float(score) <= 1
    (hit,) = run("recall", "which database?", "--json").json
    assert confidence == f"{hit['confidence']:.3f}"


def test_recall_says_why_there_is_nothing(run, stored, tmp_path):
    low = run("recall", "which database?", "--set", "min_confidence=1")
    assert (low.code, low.out, low.err) == (1, "", "gap: no match reaches the minimum confidence of 1\n")
    both = run("recall", "which database?", "--set", "min_confidence=1", "--set", "min_score=0.9")
    assert both.err == "gap: no match reaches the minimum score of 0.9 and the minimum confidence of 1\n"
    assert run("recall", "zebra").err == "gap: nothing in this scope matches the query\n"
    other = tmp_path / "other.db"
    run("import", "-", store=other)
    assert run("recall", "zebra", store=other) == (1, "", "the store is empty\n")


def test_recall_json_is_a_bare_array_of_hits(run, stored):
    (hit,) = run("recall", "which database?", "--json").json
    assert (hit["id"], hit["scope"], hit["tags"]) == (stored["mysql"], "/infra/db", ["database"])
    assert hit["created_at"].endswith("Z")
    assert "keyword" in hit["match_reasons"]
    assert hit["signals"]["bm25"] > 0


def test_recall_explained_is_an_object(run, stored):
    answer = run("recall", "which database?", "--json", "--explain").json
    assert answer["query"] == "which database?"
    assert [hit["id"] for hit in answer["hits"]] == [stored["mysql"]]
    assert set(answer) == {
        "query", "hits", "evidence_gaps", "sub_queries", "scopes", "diversify_by", "left_out", "stages",
    }  # fmt: skip
    assert answer["stages"]
    plain = run("recall", "which database?", "--explain")
    assert "bm25=" in plain.out
    assert " ms" in plain.err


def test_many_queries_from_a_file_and_from_stdin(run, stored, tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("\ufeffwhich database?\n\nTuesday\nzebra\n", encoding="utf-8")
    answers = run("recall", "--file", path, "--json").json
    assert [each["query"] for each in answers] == ["which database?", "Tuesday", "zebra"]
    assert [[hit["id"] for hit in each["hits"]] for each in answers] == [[stored["mysql"]], [stored["deploy"]], []]
    piped = run("recall", "--json", stdin=path.read_bytes()).json
    assert [each["query"] for each in piped] == ["which database?", "Tuesday", "zebra"]
    lines = run("recall", "--file", "-", stdin=path.read_bytes()).out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["which database?", "Tuesday"]


def test_nothing_found_is_exit_1_with_the_gap_on_stderr(run, stored):
    assert run("recall", "zebra", "--json") == (1, "[]\n", "")
    plain = run("recall", "zebra")
    assert (plain.code, plain.out) == (1, "")
    assert "gap: " in plain.err


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (("--scope", "/infra"), {"mysql", "deploy"}),
        (("--scope", "/infra/db"), {"mysql"}),
        (("--kind", "rule"), {"deploy"}),
        (("--tag", "database", "--tag", "none"), {"mysql"}),
        (("--where", '{"importance": {"gte": 0.8}}'), {"deploy"}),
        (("--until", "2024-06-01T00:00:00Z"), {"mysql"}),
        (("--since", "2024-06-01T00:00:00Z"), {"deploy", "lunch"}),
        (("--as-of", "2001-01-01T00:00:00Z"), set()),
    ],
)
def test_filters_are_those_of_list_count_and_recall(run, stored, options, found):
    ids = {stored[name] for name in found}
    assert {each["id"] for each in run("list", *options, "--json").json} == ids
    assert run("count", *options, "--json").json == {"count": len(ids)}
    answers = run("recall", "database Tuesday canteen", *options, "--json").json
    assert {hit["id"] for hit in answers} == ids


def test_filter_options_are_the_fields_of_a_filter_on_every_command_that_filters(run):
    singular = {"kinds": "kind", "tags": "tag"}
    fields = {singular.get(name, name) for name in FilterFields.__annotations__}
    for command in ("list", "count", "recall", "explain"):
        shown = run(command, "--help").out
        assert all(f"--{name.replace('_', '-')} " in shown for name in fields), command
    for command in ("forget", "export"):
        shown = run(command, "--help").out
        assert all(f"--{name} " in shown for name in ("scope", "kind", "tag", "where")), command


@pytest.mark.parametrize("option", ["--scope", "--where", "--since", "--kind", "--tag"])
def test_an_empty_filter_is_an_error_and_no_filter_at_all(run, stored, option):
    for command in ("list", "count", "forget"):
        done = run(command, option, "")
        assert (done.code, done.out) == (2, ""), command
    assert run("count").out == "3\n"


def test_recall_takes_every_choice(run, stored):
    done = run(
        "recall", "database Tuesday", "--limit", "1", "--mode", "keyword", "--profile", "default",
        "--diversify-by", "one_per_source", "--token-budget", "1000", "--purpose", "inspect", "--set", "min_score=0.01",
        "--set", "min-confidence=0", "--set", "neighbor_boost=0", "--set", "half_life_days=0", "--set",
        "mmr-lambda=null", "--json",
    )  # fmt: skip
    assert (done.code, len(done.json)) == (0, 1)
    assert done.json[0]["signals"]["decay"] == 1.0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--limit", "0"), "limit is 0"),
        (("--limit", "-1"), "limit is -1"),
        (("--limit", "many"), "many"),
        (("--mode", "magic"), "mode is 'magic'"),
        (("--profile", "none"), "profile is 'none'"),
        (("--set", "limit=3"), "--set is 'limit=3'"),
        (("--set", "spread"), "--set is 'spread'"),
        (("--set", "neighbor_boost=much"), "neighbor_boost is 'much'"),
        (("--set", "min_score=2"), "min_score is 2"),
        (("--set", "min_confidence=nan"), "min_confidence is 'nan'"),
        (("--where", "{"), "--where '{' is not JSON"),
        (("--where", "[]"), "--where is '[]'"),
        (("--where", '{"colour": "red"}'), "unknown field 'colour'"),
        (("--since", "2020-01-01T00:00"), "no time zone"),
        (("--until", "some day"), "not a time"),
        (("--scope", "infra"), "not absolute"),
        (("--diversify-by", "kind"), "diversify_by is 'kind'"),
        (("--purpose", "look"), "purpose is 'look'"),
        (("--token-budget", "0"), "token_budget is 0"),
        (("--file", "nowhere.txt"), "not both"),
    ],
)
def test_a_bad_option_is_exit_2_and_names_itself(run, stored, options, reason):
    done = run("recall", "q", *options)
    assert (done.code, done.out) == (2, "")
    assert reason in done.err
    assert done.err.startswith("recallite: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "query",
    ["", " ", "AND OR NOT", '"unclosed', "a* NEAR(b, c)", "'; DROP TABLE record; --", "🎉", "日本", "שלום", "(", "^:-"],
)  # fmt: skip
def test_any_text_is_a_query(run, stored, query):
    done = run("recall", "--json", "--", query)
    assert done.code in (0, 1)
    assert done.err == ""


def test_queries_that_cannot_be_read_are_refused(run, stored, tmp_path):
    assert run("recall", "--file", tmp_path / "missing").code == 2
    assert run("recall", "--file", tmp_path).code == 2
    assert run("recall", stdin="\n \n").code == 2
    assert "no query was given" in run("recall", terminal=True).err


def test_explain_says_why_and_why_not(run, stored):
    found = run("explain", "which database?", stored["mysql"], "--json").json
    assert (found["returned"], found["stage"], found["rank"]) == (True, "returned", 1)
    hidden = run("explain", "which database?", stored["mysql"], "--scope", "/home", "--json").json
    assert (hidden["returned"], hidden["stage"]) == (False, "filter")
    plain = run("explain", "which database?", stored["mysql"])
    assert "reason\tit is hit 1" in plain.out
    assert "bm25\t" in plain.out
    assert run("explain", "q", "nobody").code == 1


def test_get_shows_every_field(run, stored):
    shown = run("get", stored["deploy"]).out.splitlines()
    assert {"scope\t/infra", "kind\trule", "source\twiki", "importance\t0.9"} <= set(shown)
    missing = run("get", "nobody")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("recallite: NotFound: no memory 'nobody'")


def test_list_orders_limits_and_skips(run, stored):
    assert [line.split("\t")[0] for line in run("list").out.splitlines()] == list(stored.values())[::-1]
    assert run("list", "--order", "oldest", "--limit", "1", "--offset", "1", "--json").json[0]["id"] == stored["deploy"]
    assert run("list", "--order", "importance", "-n", "1", "--json").json[0]["id"] == stored["deploy"]
    assert run("list", "--limit", "1", "--offset", "1").err == "1 more: --limit and --offset show them\n"
    assert run("list", "--limit", "3").err == ""
    assert run("list", "--scope", "/nowhere", "--json") == (1, "[]\n", "")
    assert run("list", "--order", "random").code == 2


def test_a_text_cannot_command_the_terminal(run, stored):
    line = run("list", "--scope", "/home").out
    assert line.endswith("\tThe canteen serves soup�[31m\n")
    assert run("list", "--scope", "/home", "--json").json[0]["text"] == "The canteen serves\tsoup\x1b[31m"


def use_terminal(monkeypatch):
    """Make standard output a terminal of 80 columns without colours."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_gets_a_table_with_short_ids_that_commands_take(run, stored, monkeypatch):
    use_terminal(monkeypatch)
    listed = run("list", "--scope", "/infra/db").out
    short = stored["mysql"][-8:]
    assert short in listed
    assert stored["mysql"] not in listed
    assert "/infra/db  memory  20" in listed
    assert run("get", short, "--json").json["id"] == stored["mysql"]
    assert "soup�[31m" in run("get", stored["lunch"]).out
    assert "\x1b[3" not in listed
    assert run("list", "--scope", "/infra/db", "--json").out.startswith("[\n  {\n")


def test_a_terminal_gets_hits_with_readable_scores_and_reasons_in_words(run, stored, monkeypatch):
    (hit,) = run("recall", "which database?", "--json", "--explain").json["hits"]
    use_terminal(monkeypatch)
    shown = re.sub(r"\x1b\[[0-9;]*m", "", run("recall", "which database?").out)
    assert f"{hit['confidence']:.2f} █" in shown
    assert f"{hit['id'][-8:]}  /infra/db  score {hit['score']:.2f}" in shown
    assert "bm25" not in shown
    explained = run("recall", "which database?", "--explain").out
    assert "shares 'database'" in explained
    assert f"words {hit['signals']['bm25']:.3g} (#1)" in explained
    assert "soup�[31m" in run("recall", "canteen").out


def test_a_terminal_gets_three_lines_of_a_text_around_the_match_unless_it_wants_all(run, remember, monkeypatch):
    long = f"{'Before that. ' * 60}The printer is in room 12. {'After that. ' * 60}"
    remember(long)
    remember("one\ntwo\nthree\nfour zebras")
    use_terminal(monkeypatch)
    shown = run("recall", "Which room is the printer in?", "-n", 1).out
    printer = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", shown).split())
    assert "printer is in room 12" in printer
    assert shown.count("\n") == 4
    assert printer.count("…") == 2
    assert run("recall", "Which room is the printer in?", "-n", 1, "--all").out.count("Before that.") > 40
    zebras = run("recall", "zebras", "-n", 1).out
    assert "zebras" in zebras
    assert "one" not in zebras


def test_a_terminal_gets_the_number_of_what_is_weak_beside_the_best(run, remember, monkeypatch):
    best = remember("The printer is in room 12")
    for n in range(3):
        remember(f"Some paper of colour {n} is in the printer hall")
    hits = run("recall", "Which room is the printer in?", "--json").json
    weak = [hit for hit in hits if hit["confidence"] < hits[0]["confidence"] / 2]
    assert hits[0]["id"] == best
    assert weak
    use_terminal(monkeypatch)
    done = run("recall", "Which room is the printer in?")
    assert (done.out.count("score"), done.err) == (
        len(hits) - len(weak),
        f"{len(weak)} weaker: --all shows {'it' if len(weak) == 1 else 'them'}\n",
    )
    whole = run("recall", "Which room is the printer in?", "--all")
    assert (whole.out.count("score"), whole.err) == (len(hits), "")


def test_relevant_keeps_the_gaps_in_json(run, stored):
    done = run("recall", "Who feeds the zebra?", "--relevant", "--json")
    assert (done.code, done.json["hits"]) == (1, [])
    assert done.json["evidence_gaps"]
    assert done.json["query"] == "Who feeds the zebra?"


def test_a_terminal_gets_an_explanation_in_sentences_with_a_chart(run, stored, monkeypatch):
    use_terminal(monkeypatch)
    shown = run("explain", "which database?", stored["mysql"][-8:]).out
    assert shown.startswith("It is hit 1, with a score of ")
    assert "its rank is 1 by words." in shown
    assert "█" in shown
    hidden = run("explain", "which database?", stored["mysql"], "--scope", "/home").out
    assert hidden.startswith("It is not among the hits: it is outside the scope /home.")
    unlike = run("explain", "which database?", stored["lunch"]).out
    assert "It has no word of the question." in unlike


def test_an_explanation_says_what_learned_ranking_did():
    learned = {"semantic": 0.5, "keyword": -0.3, "rerank": 0.05}
    moved = Explanation(
        id="1", query="?", returned=True, stage="returned", reason="it is hit 1", rank=1, score=0.5, confidence=0.9,
        ranks={"formula": 3, "score": 1}, learned=learned,
    )  # fmt: skip
    told = list(_sentences(moved))
    assert told[-3:] == [
        "Learned ranking moves it from rank 3 to 1.",
        "What speaks for it: its meaning.",
        "What speaks against it: the words it shares.",
    ]
    kept = list(_sentences(structs.replace(moved, ranks={"formula": 1, "score": 1}, learned={"semantic": 0.0})))
    assert kept[-1] == "Learned ranking leaves it at rank 1."


def test_an_id_may_be_its_start_or_end_where_that_is_unambiguous(run, stored):
    ids = list(stored.values())
    for id in ids:
        for part in (id[-12:], id[:-1]):
            assert run("get", part, "--json").json["id"] == id
    start = ids[0][:6]  # ids begin with the time: these six digits change every 4.7 hours, eight every 65 seconds
    shared = run("get", start)
    assert (shared.code, shared.out) == (2, "")
    assert f"'{start}' is part of several ids: " in shared.err
    assert all(id in shared.err for id in ids)
    assert run("get", ids[0][3:-3]).code == 1, "neither the start nor the end"
    assert run("get", ids[0][-3:]).code == 1, "too short to mean one"
    assert run("get", "%").code == 1


def test_every_command_that_takes_an_id_takes_a_part_of_it(run, stored):
    mysql, deploy = (stored[name][-12:] for name in ("mysql", "deploy"))
    assert run("link", mysql, deploy, "--json").json["source"] == stored["mysql"]
    for command in ("history", "neighbors", "links"):
        assert run(command, mysql, "--json").code == 0
    assert run("explain", "database", mysql, "--json").json["id"] == stored["mysql"]
    assert run("update", mysql, "--text", "We use MySQL", "--json").json["id"] == stored["mysql"]
    assert run("restore", mysql, "--to", "0", "--json").json["text"] == "We migrated the database to MySQL"
    assert run("unlink", mysql, deploy).code == 0
    assert run("forget", mysql, deploy, "--yes", "--json").json["records"] == 2


def test_an_id_that_is_the_start_of_another_names_itself(run):
    lines = '{"id": "note-1", "text": "one"}\n{"id": "note-12", "text": "two"}\n'
    assert run("import", "-", stdin=lines).code == 0
    assert run("get", "note-1", "--json").json["text"] == "one"
    assert run("get", "note-", "--json").code == 2


HERMES = "embedder: none\nmemory:\n  recall:\n    recency_half_life_days: 9\n"


def test_a_settings_file_is_named_before_the_command_or_by_the_environment(run, monkeypatch, tmp_path):
    file = tmp_path / "config.yaml"
    file.write_text(HERMES)
    for n in range(7):
        run("remember", f"apple {n}")
    assert len(run("recall", "apple", "--json").json) == 7
    assert len(run("--settings", file, "recall", "apple", "--json").json) == 5
    assert len(run("--settings", file, "recall", "apple", "--limit", 6, "--json").json) == 6
    monkeypatch.setenv("RECALLITE_SETTINGS", str(file))
    assert len(run("recall", "apple", "--json").json) == 5
    assert len(run("recall", "apple", "--profile", "memweave", "--json").json) == 6
    file.write_text("memory: {recall: {recency_weight: often}}")
    done = run("recall", "apple")
    assert (done.code, done.out) == (2, "")
    assert f"{file}: memory.recall.recency_weight is 'often'" in done.err


def test_any_option_of_the_profile_can_be_set(run, remember):
    remember("apple", "--created-at", "2020-01-01T00:00:00Z")
    options = ("--set", "half_life_days=1", "--set", "decay-floor=0.25")
    assert run("recall", "apple", "--profile", "reeve", *options, "--json").json[0]["score"] == 0.25
    done = run("recall", "apple", "--set", "halfLife=1")
    assert done.code == 2
    assert "half_life_days" in done.err


def test_recall_in_order_of_time(run, remember):
    for month, name in ((3, "March"), (1, "January"), (2, "February")):
        remember(f"Porto in {name}, trip {month}", "--valid-from", f"2024-0{month}-01T00:00:00Z")
    asked = run("recall", "Porto", "--diversify-by", "time")
    assert [line.rpartition(" ")[2] for line in asked.out.splitlines()] == ["1", "2", "3"]
    assert "in order of time, not of score" in asked.err
    assert run("recall", "Porto", "--diversify-by", "time", "--json", "--explain").json["diversify_by"] == "time"
    wrong = run("recall", "Porto", "--diversify-by", "week")
    values = "'time', 'source', 'one_per_source' or 'one_per_source_over_time'"
    assert (wrong.code, wrong.err) == (2, f"recallite: InvalidInput: diversify_by is 'week': use {values}\n")
