"""Search of a workspace: strategies, post-processors, filters, snippets."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from recallite.errors import EmbedderError, InvalidInput, StoreError
from recallite.recall.snippets import cut_snippet, highlight
from recallite_notes.config import WorkspaceConfig
from recallite_notes.search import RawSearchRow
from recallite_notes.workspace import Workspace
from tests.raising import raises
from tests.unit.core.memory.support import WordEmbedder

KEYWORD = {"query": {"strategy": "keyword"}}


def written(folder, **files):
    """Files below memory/, `__` for a slash."""
    for name, text in files.items():
        path = folder / "memory" / (name.replace("__", "/") + ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def words():
    return WordEmbedder(dimension=256)


@pytest.fixture
def workspace(tmp_path, words):
    with Workspace(tmp_path, embedder=words) as opened:
        yield opened


def paths(results):
    return [result.path for result in results]


def test_a_result_names_file_lines_and_label(workspace):
    written(workspace.folder, agents__coder="# Stack\n\nWe use Python.\n\n## Cache\n\nThe cache is Valkey.\n")
    (found,) = workspace.search("Which cache is it?", max_results=1)
    assert (found.path, found.start_line, found.end_line) == ("memory/agents/coder.md", 5, 7)
    assert (found.source, found.headings, found.snippet_line) == ("agents", ("Stack", "Cache"), 5)
    assert found.snippet == found.text.strip() == "## Cache\n\nThe cache is Valkey."
    assert 0 < found.score <= 1


def test_a_passage_of_small_sections_is_cited_by_the_one_that_matches(workspace):
    long = " ".join(f"Shifts of word {number} cost gas in the machine." for number in range(30))
    other = " ".join(f"Block {number} was mined by a pool of the valley." for number in range(60))
    text = f"# Shifts\n\n## Abstract\n\nNative opcodes.\n\n## Motivation\n\n{long}\n\n## Blocks\n\n{other}\n"
    written(workspace.folder, eip=text)
    (found,) = workspace.search("Which native opcodes?", max_results=1)
    assert "## Abstract" in found.text
    assert "## Motivation" in found.text
    assert found.headings == ("Shifts", "Abstract")
    assert workspace.search("What do shifts of word 7 cost?", max_results=1)[0].headings == ("Shifts", "Motivation")


def test_the_score_is_07_vector_and_03_keyword(workspace):
    written(workspace.folder, a="the cache is valkey", b="the queue is kafka", c="the cache and the queue are slow")
    found = workspace.search("cache queue", min_score=0.0)
    assert len(found) == 3
    for each in found:
        assert each.score == pytest.approx(0.7 * each.vector_score + 0.3 * each.text_score, abs=1e-6)
    assert max(each.text_score for each in found) == pytest.approx(1.0)


def test_keyword_only_hits_can_pass_the_threshold(tmp_path):
    """memweave: keyword-only hits can never pass the threshold."""

    class Elsewhere(WordEmbedder):
        def embed(self, texts):
            vectors = super().embed(texts)
            vectors[:] = 0
            for row, text in enumerate(texts):
                vectors[row, len(text) % 2] = 1
            return vectors

    written(tmp_path, a="ERR-4711: the disk is full.")
    with Workspace(tmp_path, embedder=Elsewhere()) as workspace:
        (found,) = workspace.search("err-4711")
        assert found.vector_score in (None, 0.0, 1.0)
        assert found.score >= 0.35


def test_natural_questions_are_not_and_of_all_words(workspace):
    """memweave: AND of all words empties natural questions."""
    written(workspace.folder, a="The database migration to MySQL was done in March.")
    question = "When exactly did our team finish the database migration project?"
    for strategy in ("hybrid", "keyword"):
        assert paths(workspace.search(question, strategy=strategy, min_score=0.0)) == ["memory/a.md"]


def test_cjk_is_found_by_keyword_and_told_apart_by_mmr(workspace):
    """memweave: MMR calls any two non-Latin texts identical."""
    written(
        workspace.folder,
        a="東京タワーの高さは三百三十三メートル",
        b="東京タワーの高さは三百三十三メートルです",
        c="京都の寺は東京より古い",
    )
    assert paths(workspace.search("タワー", strategy="keyword"))[0] in ("memory/a.md", "memory/b.md")
    diverse = paths(workspace.search("東京タワーの高さ", strategy="keyword", mmr_lambda=0.3, min_score=0.0))
    assert diverse.index("memory/c.md") == 1


@pytest.mark.parametrize("strategy", ["hybrid", "keyword"])
def test_what_shares_no_word_has_no_text_score(tmp_path, strategy):
    """Of the bundled model's cosines, which are not exact in the index, a rest of 0.02 was told as BM25's share."""
    with Workspace(tmp_path) as workspace:
        written(tmp_path, a="The cache is Valkey.", b="Bread needs flour and water.", c="A queue holds what waits.",
                d="Where are my keys?")  # fmt: skip
        found = workspace.search("valkey cache", min_score=0.0, strategy=strategy)
        scores = {each.path[7]: each.text_score for each in found}
        assert scores.pop("a") == pytest.approx(1.0, abs=1e-6)
        assert set(scores.values()) <= {0.0}
        assert len(scores) == (3 if strategy == "hybrid" else 0)


@pytest.mark.parametrize("how", ["raises", "another", "nothing embedded"])
def test_status_says_what_a_search_does_now_and_why(workspace, words, how):
    written(workspace.folder, a="The cache is Valkey.")
    if how != "nothing embedded":
        workspace.index()
        assert (workspace.status().search_mode, workspace.status().embedder_problem) == ("hybrid", None)
    match how:
        case "raises":
            words.fail = "raises"
        case "another":
            words.fingerprint = "another"
        case "nothing embedded":
            with Workspace(workspace.folder, embedder="none") as plain:
                plain.index()
    with Workspace(
        workspace.folder, WorkspaceConfig.from_dict({"sync": {"on_search": False}}), embedder=words
    ) as other:
        status = other.status()
        assert (status.search_mode, status.vector_available) == ("fts-only", False)
        found = other.search("valkey")
        assert "meaning was not searched" in found.problems[0]
        assert status.embedder_problem is not None
        words.fail = None
        other.index()
        assert (other.status().search_mode, other.status().embedder_problem) == ("hybrid", None)


def test_search_works_while_the_embedder_is_down(workspace, words):
    """memweave: search fails when the embedder is down (promised fallback)."""
    written(workspace.folder, a="The cache is Valkey.")
    workspace.index()
    words.fail = "raises"
    found = workspace.search("valkey")
    assert paths(found) == ["memory/a.md"]
    assert "meaning was not searched" in found.problems[0]
    assert found[0].vector_score is None
    with pytest.raises(EmbedderError):
        workspace.search("valkey", strategy="vector")
    words.fail = None
    assert workspace.search("valkey").problems == ()


def test_a_file_indexed_while_the_embedder_is_down_is_found_and_said(workspace, words):
    words.fail = "raises"
    written(workspace.folder, a="The cache is Valkey.")
    found = workspace.search("valkey cache")
    assert (paths(found), found.problems != ()) == (["memory/a.md"], True)
    with pytest.raises(EmbedderError):
        workspace.search("valkey", strategy="vector")


def test_an_embedder_that_was_swapped_falls_back_to_keywords_until_indexed(tmp_path, words):
    written(tmp_path, a="The cache is Valkey.")
    with Workspace(tmp_path, embedder=words) as workspace:
        workspace.index()
    config = WorkspaceConfig.from_dict({"sync": {"on_search": False}})
    with Workspace(tmp_path, config, embedder=WordEmbedder("other", 32)) as workspace:
        found = workspace.search("valkey")
        assert (paths(found), "meaning was not searched" in found.problems[0]) == (["memory/a.md"], True)


def test_vector_search_is_the_cosine_alone(workspace):
    written(workspace.folder, a="cache valkey", b="other words entirely")
    (found, *_) = workspace.search("cache valkey", strategy="vector", min_score=0.5)
    assert found.score == pytest.approx(found.vector_score)
    assert found.text_score is None


def test_the_label_is_part_of_the_scan(workspace):
    """Filters applied after the top-k: many better chunks of other labels hide none of the asked one."""
    crowd = {f"loud__{n}": "cache cache cache valkey" for n in range(60)}
    written(workspace.folder, quiet__a="the valkey cache, mentioned among many other words of no weight here", **crowd)
    found = workspace.search("valkey cache", source_filter="quiet", min_score=0.0, max_results=1)
    assert paths(found) == ["memory/quiet/a.md"]
    assert workspace.search("valkey cache", source_filter="nowhere", min_score=0.0) == []
    written(workspace.folder, top="valkey cache at the top")
    (workspace.folder / "outside.md").write_text("valkey cache outside")
    assert paths(workspace.search("valkey cache", source_filter="memory")) == ["memory/top.md"]
    assert paths(workspace.search("valkey cache", source_filter="external")) == ["outside.md"]


def test_max_results_and_min_score_by_call_and_by_config(tmp_path, words):
    written(tmp_path, **{f"n{n}": f"cache number {n}" for n in range(20)})
    with Workspace(tmp_path, WorkspaceConfig.from_dict({"query": {"max_results": 3}}), embedder=words) as workspace:
        assert len(workspace.search("cache", min_score=0.0)) == 3
        assert len(workspace.search("cache", min_score=0.0, max_results=12)) == 12
        assert workspace.search("cache", min_score=1.0) == []
        assert all(each.score >= 0.45 for each in workspace.search("cache number", min_score=0.45))


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_results": 0}, {"min_score": 2}, {"mmr_lambda": -1}, {"decay_half_life_days": -1}, {"strategy": "magic"},
        {"source_filter": ""}, {"snippet_max_chars": 0}, {"max_result": 3}, {"min_score": float("nan")},
    ],
)  # fmt: skip
def test_wrong_arguments_are_named(workspace, wrong):
    with pytest.raises(InvalidInput, match=next(iter(wrong)) if "max_result" not in wrong else "max_result"):
        workspace.search("cache", **wrong)


@pytest.mark.parametrize("query", ["", "   ", "\x00", "\ud800", "AND OR NOT", '"unbalanced', "a" * 50_000, "-- ; DROP"])
def test_any_text_is_a_query(workspace, query):
    written(workspace.folder, a="The cache is Valkey.")
    workspace.search(query, min_score=0.0)


# ── age ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def day(days_ago):
    return (datetime.now(UTC) - timedelta(days=days_ago)).date().isoformat()


def test_scores_halve_every_half_life_and_evergreen_files_do_not_age(workspace):
    text = "the cache is valkey"
    written(workspace.folder, **{day(0): text, day(30): text, day(60): text, "MEMORY": text, "architecture": text})
    plain = {each.path: each.score for each in workspace.search("valkey cache", min_score=0.0)}
    aged = {each.path: each.score for each in workspace.search("valkey cache", decay_half_life_days=30, min_score=0.0)}
    weights = {path: aged[path] / plain[path] for path in plain}
    assert weights == pytest.approx(
        {f"memory/{day(0)}.md": 1, f"memory/{day(30)}.md": 0.5, f"memory/{day(60)}.md": 0.25, "memory/MEMORY.md": 1,
         "memory/architecture.md": 1}, abs=0.02,
    )  # fmt: skip


def test_a_file_outside_memory_ages_by_its_mtime(workspace):
    (workspace.folder / "sessions").mkdir()
    file = workspace.folder / "sessions" / "old.md"
    file.write_text("the cache is valkey")
    month_ago = datetime.now(UTC).timestamp() - 30 * 86_400
    os.utime(file, (month_ago, month_ago))
    (plain,) = workspace.search("valkey cache")
    (aged,) = workspace.search("valkey cache", decay_half_life_days=30)
    assert aged.score == pytest.approx(plain.score / 2, abs=0.01)


def test_the_threshold_comes_before_age(workspace):
    written(workspace.folder, **{day(90): "the cache is valkey"})
    (found,) = workspace.search("valkey cache", decay_half_life_days=30, min_score=0.5)
    assert found.score < 0.2


def test_age_and_mmr_by_configuration(tmp_path, words):
    written(tmp_path, **{day(30): "alpha beta gamma", day(0): "alpha beta gamma", "x": "alpha delta epsilon"})
    query = {"temporal_decay": {"enabled": True}, "mmr": {"enabled": True, "lambda_param": 0.3}, "min_score": 0.0}
    with Workspace(tmp_path, WorkspaceConfig.from_dict({"query": query}), embedder=words) as workspace:
        found = paths(workspace.search("alpha beta gamma"))
    assert found == [f"memory/{day(0)}.md", "memory/x.md", f"memory/{day(30)}.md"]


def test_mmr_of_one_is_no_mmr(workspace):
    written(workspace.folder, a="alpha beta gamma", b="alpha beta gamma", c="alpha delta")
    plain = workspace.search("alpha beta", min_score=0.0)
    assert workspace.search("alpha beta", min_score=0.0, mmr_lambda=1.0) == plain


# ── the caller's own ───────────────────────────────────────────────────────────────────────────────────────────────


def row_of(path, score, text="some text", source="memory"):
    return RawSearchRow(path, path, source, 1, 1, text, score)


class Newest:
    """A strategy that reads the index itself."""

    def search(self, db, query, query_vec, model, limit, *, source_filter=None):
        self.seen = (query, None if query_vec is None else len(query_vec), model, limit, source_filter)
        rows = db.execute(
            "SELECT id, source, start_line, end_line, content FROM chunks ORDER BY source LIMIT ?", (limit,)
        )
        return [RawSearchRow(id, path, "memory", first, last, text, 0.9) for id, path, first, last, text in rows]


def test_a_strategy_reads_the_index_and_its_rows_are_processed(workspace):
    written(workspace.folder, a="One.\n", b="Two.\n", c="Two.\n")
    strategy = Newest()
    workspace.register_strategy("newest", strategy)
    found = workspace.search("anything", strategy="newest", max_results=2)
    assert [(each.path, each.start_line, each.end_line, each.score) for each in found] == [
        ("memory/a.md", 1, 1, 0.9), ("memory/b.md", 1, 1, 0.9),
    ]  # fmt: skip
    assert strategy.seen == ("anything", 256, "words", 8, None)
    assert workspace.search("anything", strategy="newest", min_score=0.95) == []


def test_a_strategy_sees_the_label_that_source_filter_knows(workspace):
    written(workspace.folder, agents__coder="the cache is valkey", x="the queue is kafka")
    (workspace.folder / "README.md").write_text("a text")
    workspace.register_strategy("look", look := Labels())
    workspace.search("cache", strategy="look", min_score=0.0)
    assert look.seen == {"memory/agents/coder.md": "agents", "memory/x.md": "memory", "README.md": "external"}
    for label in look.seen.values():
        assert {each.source for each in workspace.search("cache queue text", source_filter=label, min_score=0.0)} == {
            label
        }


class Labels:
    def search(self, db, query, query_vec, model, limit, *, source_filter=None):
        self.seen = dict(db.execute("SELECT source, label FROM chunks"))
        return []


def test_a_strategy_may_be_a_coroutine_and_find_no_vector(workspace, words):
    class Async:
        async def search(self, db, query, query_vec, model, limit, *, source_filter=None):
            return [row_of("memory/x.md", 0.8 if query_vec is None else 0.1)]

    workspace.register_strategy("async", Async())
    assert workspace.search("q", strategy="async") == []
    words.fail = "raises"
    found = workspace.search("another", strategy="async")
    assert (found[0].path, "not embedded" in found.problems[0]) == ("memory/x.md", True)


@pytest.mark.parametrize("sql", ["DELETE FROM record", "CREATE TABLE x (y)", "UPDATE record SET text = 'x'"])
def test_a_strategy_cannot_write(workspace, sql):
    written(workspace.folder, a="The cache is Valkey.")

    class Writer:
        def search(self, db, query, query_vec, model, limit, *, source_filter=None):
            db.execute(sql)

    workspace.register_strategy("writer", Writer())
    with raises(StoreError, "read_only"):
        workspace.search("q", strategy="writer")
    assert len(workspace.search("valkey")) == 1


@pytest.mark.parametrize("given", [None, 3, "rows", [1], [row_of("a", float("nan"))], [row_of(None, 0.5)]])
def test_rows_that_are_none_name_who_gave_them(workspace, given):
    class Wrong:
        def search(self, *_, source_filter=None):
            return given

        def apply(self, rows, query, **kwargs):
            return given

    workspace.register_strategy("wrong", Wrong())
    with pytest.raises(InvalidInput, match="'wrong'"):
        workspace.search("q", strategy="wrong")
    workspace.register_postprocessor(Wrong())
    with pytest.raises(InvalidInput, match="Wrong"):
        workspace.search("q")


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": 10**400}, {"score": -(10**400)}, {"score": True}, {"score": None},
        {"score": float("nan")}, {"score": float("inf")}, {"score": "1"}, {"vector_score": float("nan")},
        {"vector_score": False}, {"text_score": "x"}, {"start_line": -5},
        {"start_line": 0}, {"start_line": True}, {"end_line": 10**400}, {"start_line": 9}, {"end_line": 1.0},
        {"headings": 5}, {"headings": "ab"}, {"headings": (1,)}, {"text": None}, {"path": b"x"},
    ],
)  # fmt: skip
def test_a_row_with_a_wrong_value_names_it_and_who_gave_it(workspace, wrong):
    good = RawSearchRow("id", "memory/a.md", "memory", 1, 2, "text", 1, -1.0, 1.0000001, ("Heading",))
    (name,) = wrong

    class Mine:
        rows = (good,)

        def search(self, db, query, query_vec, model, limit, *, source_filter=None):
            return self.rows

        def apply(self, rows, query, **options):
            return [replace(good, **wrong)]

    strategy = Mine()
    workspace.register_strategy("mine", strategy)
    assert paths(workspace.search("q", strategy="mine")) == ["memory/a.md"]
    strategy.rows = (replace(good, **wrong),)
    with pytest.raises(InvalidInput, match=f"the strategy 'mine' gave row 0 .*{name}"):
        workspace.search("q", strategy="mine")
    strategy.rows = (good,)
    workspace.register_postprocessor(strategy)
    with pytest.raises(InvalidInput, match=f"the post-processor Mine gave row 0 .*{name}"):
        workspace.search("q", strategy="mine")


def test_a_strategy_that_ignores_the_label_is_told(workspace):
    class Any:
        def search(self, *_, source_filter=None):
            return [row_of("memory/x.md", 0.9)]

    workspace.register_strategy("any", Any())
    with pytest.raises(InvalidInput, match="memory/x"):
        workspace.search("q", strategy="any", source_filter="agents")


@pytest.mark.parametrize("name", ["hybrid", "", None, 3])
def test_names_of_strategies_are_checked(workspace, name):
    with pytest.raises(InvalidInput):
        workspace.register_strategy(name, Newest())
    with pytest.raises(InvalidInput, match="search"):
        workspace.register_strategy("x", object())
    with pytest.raises(InvalidInput, match="apply"):
        workspace.register_postprocessor(object())
    with pytest.raises(InvalidInput):
        workspace.register_postprocessor(Newest)


def test_an_error_of_a_strategy_is_its_own(workspace):
    class Broken:
        def search(self, *_, source_filter=None):
            raise ZeroDivisionError("mine")

    workspace.register_strategy("broken", Broken())
    with pytest.raises(ZeroDivisionError, match="mine"):
        workspace.search("q", strategy="broken")


def test_postprocessors_come_last_in_order_and_before_the_cut(workspace):
    written(workspace.folder, a="cache alpha", b="cache beta", c="cache gamma")
    seen = []

    class Reverse:
        def apply(self, rows, query, **kwargs):
            seen.append((query, len(rows), kwargs["min_score"], kwargs.get("boost")))
            return reversed(rows)

    class Rescore:
        async def apply(self, rows, query, **kwargs):
            return [replace(row, score=1 - place / 10) for place, row in enumerate(rows)]

    plain = paths(workspace.search("cache", min_score=0.0))
    workspace.register_postprocessor(Reverse())
    workspace.register_postprocessor(Rescore())
    found = workspace.search("cache", min_score=0.0, max_results=2, boost=3)
    assert paths(found) == plain[:0:-1]
    assert [each.score for each in found] == [1.0, 0.9]
    assert seen == [("cache", 3, 0.0, 3)]


def test_a_strategy_that_ends_the_transaction_harms_nothing(workspace):
    written(workspace.folder, a="The cache is Valkey.")

    class Ends:
        def search(self, db, *_, source_filter=None):
            db.execute("COMMIT")
            return []

    workspace.register_strategy("ends", Ends())
    assert workspace.search("q", strategy="ends") == []
    assert len(workspace.search("valkey")) == 1


# ── snippets ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_snippet_is_the_best_part_with_whole_lines_and_its_own_line(workspace):
    filler = [f"Line {n} says nothing of interest to anyone at all." for n in range(40)]
    filler[30] = "The password rotation happens on the first of May."
    written(workspace.folder, a="\n".join(filler) + "\n")
    (found, *_) = workspace.search("password rotation", strategy="keyword", snippet_max_chars=200)
    assert len(found.snippet) <= 200
    assert "password rotation happens" in found.snippet
    line = found.snippet.split("\n")[0]
    assert filler[found.snippet_line - 1] == line
    assert found.start_line <= found.snippet_line <= found.end_line


@pytest.mark.parametrize("query", ["needle", "nothing that is there", "", "x"])
@pytest.mark.parametrize("most", [1, 10, 80, 700])
@pytest.mark.parametrize(
    "text",
    [
        "word " * 300 + "needle " + "word " * 300,
        "x" * 5000,
        "東京タワー" * 400,
        "a\n" * 900,
        "\n\n  needle  \n",
        "é" * 701,
    ],
)
def test_a_snippet_is_a_part_of_the_text_of_at_most_so_many_characters(text, query, most):
    snippet = cut_snippet(text, query, most)
    assert snippet.text in text
    assert 0 < len(snippet.text) <= most
    line = text.split("\n")[snippet.line]
    assert snippet.text.split("\n")[0] in line
    if query == "needle" and "needle" in text and most >= 10:
        assert "needle" in snippet.text


def test_a_snippet_keeps_words_whole():
    text = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma tau " * 20
    text += "needle " + text
    snippet = cut_snippet(text, "needle", 100).text
    assert "needle" in snippet
    assert set(snippet.split()) <= set(text.split())


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("We migrated the databases.", "database migration", ["migrated", "databases"]),
        ("The cache, the CACHE.", "the cache", ["cache", "CACHE"]),
        ("東京タワーは高い", "タワー", ["タワー"]),
        ("C++ and v1.2.3 in foo_bar", "c++ 1.2.3 bar", ["C++", "v1.2.3", "foo_bar"]),
        ("Café society", "cafe", ["Café"]),
        ("nothing", "something", []),
        ("", "x", []),
    ],
)
def test_matched_words_are_marked_in_any_form(text, query, marked):
    assert [text[start:stop] for start, stop in highlight(text, query)] == marked


def test_front_matter_is_found_at_its_lines_or_with_the_first_section(tmp_path):
    written(tmp_path, crane="---\nowner: Port of Narvik\nbuilt: 1987\n---\n# Crane\n\nIt lifts forty tonnes.\n")
    written(tmp_path, ada="---\nphone: 555-0199\nworks at: Kiruna mine\n---\n")
    with Workspace(tmp_path, WorkspaceConfig.from_dict(KEYWORD), embedder="none") as workspace:
        (crane,) = workspace.search("Narvik", max_results=1)
        assert (crane.path, crane.start_line, crane.end_line) == ("memory/crane.md", 5, 7)
        (ada,) = workspace.search("Kiruna", max_results=1)
        assert (ada.path, ada.start_line, ada.end_line) == ("memory/ada.md", 2, 3)
        assert ada.text == "phone: 555-0199; works at: Kiruna mine"


def test_a_row_of_a_long_table_is_found_with_its_columns_and_its_own_lines(tmp_path):
    rows = [f"| Boat{n} | Skipper{n % 9} | {n} |" for n in range(150)]
    text = "# Fleet\n\n| Boat | Skipper | Berth |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    written(tmp_path, fleet=text)
    with Workspace(tmp_path, WorkspaceConfig.from_dict(KEYWORD), embedder="none") as workspace:
        (found,) = workspace.search("Boat120", max_results=1)
        assert found.text.startswith("| Boat | Skipper | Berth |\n|---|---|---|\n| Boat1")
        lines = text.split("\n")
        cited = "\n".join(lines[found.start_line - 1 : found.end_line])
        assert "| Boat120 |" in cited
        assert found.text.endswith(cited)
        assert found.snippet_line == found.start_line
