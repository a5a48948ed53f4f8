"""The page in a real browser, on a real server of a real store."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="the extra server is not installed")
pytest.importorskip("playwright", reason="playwright is not installed")

from playwright.sync_api import expect

from recallite import Memory
from recallite.model.records import NewRecord
from recallite_server.http.access_tokens import Grant, Tokens
from recallite_server.memory_map import MemoryMap
from recallite_server.timeline import version_diffs
from tests.system.http.browsing import Tab, chromium
from tests.system.http.example_memories import fill
from tests.system.http.serving import serving
from tests.unit.core.memory.support import supersede_by_rule

FULL, READER, WORKER = "rct_all", "rct_reader", "rct_worker"
HOSTILE = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)></svg>",
    "link": "[click](javascript:alert(4)) <a href='javascript:alert(5)'>here</a> <iframe srcdoc='<b>x</b>'></iframe>",
    "style": "<style>body{display:none}</style><link rel=stylesheet href=https://example.invalid/x.css>",
    "bidi": "invoice \u202etxt.exe\u202c and \u2066isolated\u2069 and zero\u200bwidth",
    "template": "{{7*7}} ${7*7} `rm` %s &lt;b&gt; &amp; \x01 \"'",
    "long": "<b>start</b> " + "word " * 20_000,
}
MARKUP = "main script, main style, main iframe, main img, main link, main b, main i"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of a server of the example memories, the memory and some ids."""
    with Memory(tmp_path_factory.mktemp("page") / "mira.db") as memory:
        ids = fill(memory)
        memory.store.warmup()
        grants = {FULL: Grant(), READER: Grant(read_only=True), WORKER: Grant(scope="/mira/work")}
        tokens = Tokens(memory, temporary=grants)
        with serving(memory, tokens=tokens, tokens_required=True) as address:
            yield SimpleNamespace(address=f"{address}/", memory=memory, ids=ids)


@pytest.fixture(scope="module")
def browser():
    with chromium() as launched:
        yield launched


@pytest.fixture
def open_at(site, browser):
    """Opens a tab at a view; at the end nothing has gone wrong in any, and no other host was asked."""
    contexts, tabs = [], []

    def opened(view="/search", *, token=FULL, width=1280, height=900, **options):
        contexts.append(browser.new_context(viewport={"width": width, "height": height}, **options))
        tabs.append(Tab(contexts[-1], site.address))
        tabs[-1].page.goto(f"{site.address}#token={token}&{view}" if token else f"{site.address}#{view}")
        return tabs[-1].page

    yield opened
    for tab in tabs:
        assert tab.faults == []
        assert tab.foreign == []
        assert tab.requests
    for context in contexts:
        context.close()


def remember(site, text, **fields):
    """A memory of this test alone, in a scope of its own."""
    return site.memory.remember(NewRecord(text, **{"scope": "/tests", **fields})).id


def show(page, view):
    """Goes to a view of the page that is open."""
    page.evaluate("hash => { location.hash = hash }", view)


def test_hits_show_their_confidence_and_a_bar_for_each_signal(open_at, site):
    page = open_at()
    page.get_by_label("Search the memory").press_sequentially("What is Mira allergic to?")
    wanted, *others = site.memory.recall("What is Mira allergic to?", purpose="explain", relevant=True)
    hits = f"{len(others) + 1} hit{'s' if others else ''}"
    expect(page.locator("#announce")).to_have_text(f"{hits} for What is Mira allergic to?")
    first = page.locator(".hit").first
    expect(first.locator(".text-link")).to_have_text("Mira is allergic to peanuts.")
    expect(first.locator(".confidence strong")).to_have_text(f"{round(100 * wanted.confidence)} %")
    first.get_by_role("button", name="All scores").click()
    rows = first.locator(".scores .bar-row")
    shown = {row.locator("dt").inner_text(): row for row in rows.all()}
    assert {"Meaning", "Words", "Close reading", "Age", "Score"} <= shown.keys()
    expect(shown["Meaning"].locator(".bar-figure")).to_have_text(f"{wanted.signals['cosine']:.3f}")
    expect(shown["Meaning"].locator(".bar-rank")).to_have_text("rank 1")
    box, fill = (shown["Meaning"].locator(each).bounding_box()["width"] for each in (".bar", ".bar-fill"))
    assert abs(fill / box - wanted.signals["cosine"]) < 0.02
    assert "token" not in page.url


def test_only_the_answer_to_the_last_query_is_shown(open_at, site):
    page = open_at()
    expect(page.locator(".line").first).to_be_visible()
    waiting = []

    def hold_the_first(route):
        if "peanuts" in route.request.post_data:
            waiting.append(route)
        else:
            route.continue_()

    page.route("**/v1/recall", hold_the_first)
    with page.expect_request("**/v1/recall"):
        page.get_by_label("Search the memory").fill("peanuts")
    page.get_by_label("Search the memory").fill("When does the ferry to the islands leave?")
    expect(page.locator(".hit .text-link").first).to_contain_text("The ferry to the Berlengas")
    assert len(waiting) == 1
    for route in waiting:
        route.abort()
    expect(page.locator(".hit .text-link").first).to_contain_text("The ferry to the Berlengas")


def test_the_focus_stays_on_a_hit_when_the_hits_are_drawn_anew(open_at):
    page = open_at("/search?q=peanuts")
    page.get_by_text("Mira is allergic to peanuts.").focus()
    with page.expect_response("**/v1/recall"):
        page.get_by_label("Search the memory").evaluate("input => { input.value = 'peanuts and milk' }")
        page.get_by_label("Search the memory").dispatch_event("input")
    expect(page.locator("#announce")).to_contain_text("for peanuts and milk")
    expect(page.get_by_text("Mira is allergic to peanuts.")).to_be_focused()


def test_filters_restrict_the_list_and_stay_in_the_address(open_at, site):
    page = open_at()
    page.get_by_role("radio", name="health").check()
    count = site.memory.count(scope="/mira/health")
    expect(page.locator(".list-head")).to_contain_text(f"{count} memories")
    page.get_by_label("To", exact=True).fill("2025-12-31")
    fewer = site.memory.count(scope="/mira/health", until="2025-12-31T23:59:59Z")
    assert 0 < fewer < count
    expect(page.locator(".list-head")).to_contain_text(f"{fewer} memories")
    address = page.url
    page.go_back()
    expect(page.locator(".list-head")).to_contain_text(f"{count} memories")
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator(".list-head")).to_contain_text(f"{fewer} memories")
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator(".list-head")).to_contain_text(f"{site.memory.count()} memories")


def test_why_a_memory_is_no_hit_is_explained(open_at, site):
    page = open_at("/search?q=tomatoes+in+the+greenhouse")
    page.get_by_label("Id of the memory, or words of its text").fill("allergic peanuts")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("button", name="Mira is allergic to peanuts.").click()
    told = site.memory.review.explain("tomatoes in the greenhouse", site.ids["peanuts"], limit=10, relevant=True)
    assert not told.returned
    expect(page.locator(".verdict")).to_contain_text(told.reason)
    expect(page.locator(".explanation .bar-row").first).to_contain_text(f"rank {told.ranks['cosine']}")
    page.get_by_role("group", name="Kind").get_by_label("preference").check()
    expect(page.locator(".verdict")).to_contain_text("its kind is not one of preference")


def test_an_edit_is_shown_when_the_server_has_it(open_at, site):
    id = remember(site, "The shed key hangs behind the door.", tags=["home"])
    page = open_at(f"/memory/{id}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text", exact=True).fill("The shed key hangs beside the window.")
    page.get_by_label("Tags").fill("home, keys")
    page.get_by_label("Expires").fill("2030-01-02T03:04")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".memory-text")).to_have_text("The shed key hangs beside the window.")
    changed = site.memory.get(id)
    assert changed.text == "The shed key hangs beside the window."
    assert set(changed.tags) == {"home", "keys"}
    assert changed.expires_at.isoformat() == "2030-01-02T03:04:00+00:00"
    assert changed.importance == 0.5
    (diff,) = version_diffs(site.memory.history(id))
    expect(page.locator(".versions del")).to_have_text([text for kind, text in diff.parts if kind == "delete"])
    page.get_by_role("button", name="Restore this text").click()
    expect(page.locator(".memory-text")).to_have_text("The shed key hangs behind the door.")
    assert site.memory.get(id).text == "The shed key hangs behind the door."


def test_a_refused_edit_stays_in_its_dialog_with_the_servers_message(open_at, site):
    id = remember(site, "The cellar light has a blue switch.")
    page = open_at(f"/memory/{id}")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Text", exact=True).fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("text is")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert site.memory.get(id).text == "The cellar light has a blue switch."


def test_forgetting_asks_first_and_gives_a_receipt(open_at, site):
    id = remember(site, "The alarm code of the boat house is nine two seven four.")
    page = open_at(f"/memory/{id}")
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Cancel").click()
    assert site.memory.get(id).id == id
    page.get_by_role("button", name="Forget").click()
    page.get_by_label("With a receipt").check()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(page.get_by_role("heading", name="Receipt")).to_be_visible()
    expect(page.locator(".receipt .verdict")).to_have_text("Nothing of it is left in the files.")
    expect(page.locator(".receipt table").first).to_contain_text("record")
    expect(page.locator(".receipt table").nth(1)).to_contain_text("mira.db")
    assert site.memory.get([id]) == {}


def test_forgetting_names_what_will_hold_again_and_offers_to_forget_it_too(open_at, site):
    old, new = remember(site, "The stall costs 45 euros."), remember(site, "The stall costs 52 euros now.")
    site.memory.supersede(old, new)
    page = open_at(f"/memory/{new}")
    page.get_by_role("button", name="Forget").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("will hold again")
    expect(dialog).to_contain_text("The stall costs 45 euros.")
    dialog.get_by_label("Forget what it replaced too").check()
    dialog.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("heading", name="Forgotten")).to_be_visible()
    assert site.memory.get([old, new]) == {}


def test_when_the_server_is_gone_one_banner_says_so_and_the_rest_stays(open_at, site):
    page = open_at("/search")
    expect(page.locator(".line").first).to_be_visible()
    page.route("**/v1/**", lambda route: route.abort())
    page.get_by_label("Search the memory").fill("greenhouse")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer. Is it still running?")
    expect(page.locator(".line").first).to_be_visible()
    show(page, "/timeline")
    expect(page.get_by_role("alert")).to_have_count(1)
    page.unroute("**/v1/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("button.column").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_hits_that_do_not_answer_are_folded_and_shared_words_marked(open_at, site):
    query = "When do the tomatoes in the greenhouse need water?"
    page = open_at(f"/search?q={query}")
    answers = site.memory.recall(query, relevant=True)
    expect(page.locator(".results > .hits > .hit")).to_have_count(len(answers))
    expect(page.locator(".hit")).to_have_count(len(answers))
    with page.expect_request("**/v1/recall") as asked:
        page.get_by_text("Weaker hits").click()
    assert asked.value.post_data_json["relevant"] is False
    expect(page.locator(".hit")).to_have_count(10)
    assert page.locator(".hit .place").all_inner_texts() == [str(place) for place in range(1, 11)]
    first = page.locator(".hit", has_text="The tomatoes in the greenhouse need")
    assert first.locator("mark").all_inner_texts() == ["tomatoes", "greenhouse", "need", "water"]


def test_a_memory_shows_its_links_versions_and_session(open_at, site):
    walk = site.ids["walk"]
    page = open_at(f"/memory/{walk}")
    expect(page.locator(".message.marked")).to_contain_text("Good. I will do a slow loop")
    expect(page.locator("svg.graph")).to_have_count(int(len(site.memory.neighbors(walk)) >= 3))
    others = [each.id for each in site.memory.list(scope="/mira/travel", limit=3)]
    for other in others:
        site.memory.link(walk, other)
    page.reload()
    expect(page.locator("svg.graph a")).not_to_have_count(0)
    page.locator("svg.graph a.ring-1", has_text="Rui Matos").locator("circle").click()
    expect(page.locator(".memory-text")).to_contain_text("Rui Matos says")
    expect(page.locator(".versions > li")).to_have_count(3)
    diff = version_diffs(site.memory.history(site.ids["run again"]))[-1]
    expect(page.locator(".versions > li").first.locator("ins")).to_have_text(
        [text for kind, text in diff.parts if kind == "insert"]
    )
    page.go_back()
    expect(page.locator(".memory-text")).to_contain_text("along the Sado")


def test_what_replaced_a_memory_can_be_undone(open_at, site):
    old, new = remember(site, "The gate is locked at nine."), remember(site, "The side gate stays open all night.")
    site.memory.supersede(old, new)
    page = open_at(f"/memory/{old}")
    expect(page.get_by_role("heading", name="Replaced by")).to_be_visible()
    page.get_by_role("button", name="Make it current again").click()
    expect(page.get_by_role("heading", name="What holds now")).to_have_count(0)
    assert site.memory.get(old).superseded_by == ()


def test_the_timeline_lists_the_memories_of_a_column(open_at, site):
    page = open_at("/timeline")
    column = page.locator("button.column").first
    said = column.get_attribute("aria-label")
    column.click()
    expect(page.get_by_role("heading", level=2, name=said)).to_be_visible()
    count = int(said.partition(": ")[2].split()[0])
    expect(page.locator(".line")).to_have_count(count)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=2, name=said)).to_have_count(0)


def test_sessions_and_documents_show_what_they_hold(open_at):
    page = open_at("/sources")
    page.get_by_label("Search messages").fill("reminders")
    page.get_by_role("link", name="And please no reminders").click()
    expect(page.locator(".message.marked")).to_contain_text("And please no reminders before eight")
    expect(page.locator(".message")).to_have_count(5)
    expect(page.locator(".line")).to_have_count(2)
    show(page, "/documents")
    page.get_by_role("link", name="Greenhouse handbook").click()
    expect(page.locator(".passages > li")).to_have_count(4)
    page.locator(".passages a").nth(2).click()
    expect(page.get_by_role("heading", name="Where it comes from")).to_be_visible()
    expect(page.locator(".passages [aria-current]")).to_contain_text("Watering")


def test_a_review_merges_edits_and_skips(open_at, site):
    page = open_at("/review")
    page.get_by_role("button", name="Find").click()
    duplicate = page.locator(".finding", has_text="dog is called Fado")
    expect(duplicate.locator(".finding-side")).to_have_count(2)
    duplicate.get_by_role("button", name="Keep this one").last.click()
    expect(page.locator(".done")).to_contain_text("superseded")
    kept = site.memory.list(where={"text": {"contains": "called Fado"}})
    assert len(kept) == 1
    contradiction = page.locator(".finding", has_text="garden house is locked")
    contradiction.get_by_role("button", name="Both hold").click()
    expect(page.locator(".done").nth(1)).to_contain_text("linked")
    bicycle = page.locator(".finding", has_text="bicycle is locked")
    bicycle.get_by_role("button", name="Skip").click()
    page.get_by_role("button", name="Find").click()
    expect(page.locator(".findings").first).to_be_visible()
    for gone in (duplicate, contradiction, bicycle):
        expect(gone).to_have_count(0)


def test_what_rules_replaced_is_listed_and_undone(open_at, site):
    old, new = (
        remember(site, "The tram to the harbour is line 4."),
        remember(site, "The bus to the harbour is line 11."),
    )
    supersede_by_rule(site.memory, old, new)
    page = open_at("/review?check=replaced-by-rule")
    finding = page.locator(".finding", has_text="line 4")
    expect(finding.locator(".finding-reason")).to_contain_text("may still hold")
    expect(finding.get_by_role("button", name="Keep this one")).to_have_count(1)
    finding.get_by_role("button", name="Undo").click()
    expect(page.locator(".done")).to_contain_text("both are current")
    assert site.memory.get(old).superseded_by == ()
    site.memory.supersede(old, new)
    show(page, "/search")
    expect(page.locator(".results > .hint")).to_contain_text(f"{site.memory.list().left_out} replaced")


def test_the_state_names_what_the_store_holds_and_what_recall_costs(open_at, site):
    page = open_at("/state")
    stats = site.memory.store.stats()
    expect(page.locator(".tiles div").first).to_have_text(f"memories that hold{stats.records - stats.superseded}")
    show(page, "/search")
    messages = stats.kinds.get("session_message", 0)
    expect(page.locator(".tree .count").first).to_have_text(f"{stats.records - stats.superseded - messages}")
    kinds = page.get_by_role("group", name="Kind").locator(".count")
    expect(kinds).to_have_count(len(stats.kinds))
    assert sum(map(int, kinds.all_inner_texts())) == stats.records - stats.superseded
    show(page, "/state")
    expect(page.locator(".facts").nth(1)).to_contain_text(str(stats.embedder))
    page.get_by_role("button", name="Ask once").click()
    expect(page.get_by_text("Search and rank")).to_be_visible()
    page.reload()
    expect(page.get_by_text("recalls answered").or_(page.get_by_text("recall answered"))).to_be_visible()


def test_the_points_of_the_map_are_memories(open_at, site):
    page = open_at("/map")
    canvas = page.locator("canvas.map")
    expect(canvas).to_be_visible()
    names = MemoryMap(site.memory).points().clusters
    assert len(names) > 1
    for name in names:
        expect(page.locator(".legend")).to_contain_text(name)
    page.get_by_label("Colour by").select_option("scope")
    expect(page.locator(".legend li").first).to_contain_text("/mira/home")
    page.get_by_role("button", name="List the memories in view").click()
    expect(page.locator(".line")).to_have_count(20)
    canvas.focus()
    for key in "+++":
        page.keyboard.press(key)
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="All of the map").click()
    found = hovered(page)
    assert found in {each.text for each in site.memory.list(limit=None)}
    page.mouse.down()
    page.mouse.up()
    expect(page.locator(".memory-text")).to_have_text(found)


def test_the_map_shows_what_may_still_hold_and_counts_what_it_leaves_out(open_at, site):
    ids = [remember(site, text) for text in ("The kiln is at 900 degrees", "The kiln is at 1000 degrees now")]
    supersede_by_rule(site.memory, remember(site, "The barn is locked"), remember(site, "The barn is open to guests"))
    points = MemoryMap(site.memory).points()
    assert ids[0] not in points.ids
    page = open_at("/map")
    side = page.locator(".map-main")
    expect(side).to_contain_text(f"{len(points.superseded)} superseded that may still hold: hollow points")
    told = "1 replaced memory is" if points.left_out == 1 else f"{points.left_out} replaced memories are"
    expect(side).to_contain_text(f"{told} left out")


def test_an_empty_memory_says_what_to_type_and_takes_the_first_memory(browser, tmp_path):
    with Memory(tmp_path / "new.db") as memory:
        tokens = Tokens(memory, temporary={FULL: Grant(), READER: Grant(read_only=True)})
        with serving(memory, tokens=tokens, tokens_required=True) as address:
            for token in (READER, FULL):
                tab = Tab(browser.new_context(), f"{address}/")
                page = tab.page
                page.goto(f"{address}/#token={token}&/search")
                expect(page.locator(".empty")).to_contain_text("This memory is empty")
                expect(page.locator(".empty")).to_contain_text("recallite connect claude-code")
                expect(page.get_by_label("Something to remember")).to_have_count(int(token == FULL))
            for view in ("timeline", "map"):
                show(page, f"#/{view}")
                page.get_by_role("link", name="Add the first memory").click()
            page.get_by_label("Something to remember").fill("The barn is locked at night")
            page.get_by_role("button", name="Remember").click()
            expect(page.locator(".line .text-link")).to_have_text("The barn is locked at night")
            page.get_by_label("Search the memory").press_sequentially("Is the barn locked?")
            expect(page.locator(".hit .text-link")).to_have_text("The barn is locked at night")
            assert [record.text for record in memory.list()] == ["The barn is locked at night"]
            assert tab.faults == []


def test_a_memory_has_one_confidence(open_at, site):
    question = "What is Mira allergic to?"
    page = open_at()
    page.get_by_label("Search the memory").press_sequentially(question)
    expect(page.locator("#announce")).to_contain_text("for What is Mira")
    answers = site.memory.recall(question, purpose="explain", relevant=True)
    page.locator(".weak summary").click()
    expect(page.locator(".weak .hit").first).to_be_visible()
    assert page.locator(".weak .confidence").count() == 0
    for id in (answers[0].id, site.memory.recall(question)[len(answers)].id):
        page.get_by_label("Id of the memory, or words of its text").fill(id)
        page.get_by_role("button", name="Explain").click()
        told = site.memory.review.explain(question, id, relevant=True)
        expect(page.locator(".explanation")).to_contain_text(f"confidence {round(100 * told.confidence)} %")
    assert told.confidence != answers[0].confidence
    explained = site.memory.review.explain(question, answers[0].id, relevant=True)
    assert explained.confidence == answers[0].confidence


def hovered(page):
    """Moves over the map until a point is under the pointer, and returns the text that is shown."""
    box = page.locator("canvas.map").bounding_box()
    chosen = random.Random(5)
    for _ in range(600):
        page.mouse.move(
            box["x"] + box["width"] * chosen.uniform(0.2, 0.7), box["y"] + box["height"] * chosen.uniform(0.1, 0.9)
        )
        if page.locator("canvas.map.over").count():
            expect(page.locator(".tip")).to_be_visible()
            return page.locator(".tip .stored").inner_text()
    raise AssertionError("no point was met")


@pytest.mark.slow
def test_a_map_of_100_000_points_draws_moves_and_finds(open_at, site):
    count, chosen = 100_000, random.Random(7)
    memories = site.memory.list(limit=50)
    answer = {
        "total": count, "sampled": False, "ids": [memories[i % 50].id for i in range(count)],
        "x": [min(max(chosen.gauss(0.5, 0.16), 0), 1) for _ in range(count)],
        "y": [min(max(chosen.gauss(0.5, 0.16), 0), 1) for _ in range(count)],
        "scope": [i % 30 for i in range(count)], "scopes": [f"/user/{i}" for i in range(30)],
        "source": [-1] * count, "sources": [], "kind": [0] * count, "kinds": ["memory"],
        "cluster": [-1] * count, "clusters": [], "superseded": [0, 7], "left_out": 0,
    }  # fmt: skip
    page = open_at("/search")
    page.route("**/v1/map", lambda route: route.fulfill(json=answer))
    page.get_by_role("link", name="Map", exact=True).click()
    expect(page.locator(".legend li")).to_have_count(11)
    expect(page.locator(".legend li").last).to_contain_text("20 others")
    canvas = page.locator("canvas.map")
    canvas.focus()
    for key in ("+", "+", "ArrowRight", "-", "0"):
        before = canvas.get_attribute("data-frames")
        page.keyboard.press(key)
        expect(canvas).not_to_have_attribute("data-frames", before)
    assert hovered(page) in {each.text for each in memories}


def test_stored_markup_and_scripts_are_shown_and_never_run(open_at, site):
    fields = {"scope": "/hostile", "source": "<i>source</i>", "context": HOSTILE["script"]}
    fields["metadata"] = {"<b>key</b>": HOSTILE["link"], "session": HOSTILE["script"]}
    with_markup = site.memory.sessions.open(HOSTILE["script"])
    with_markup.extend([{"role": "<b>user</b>", "content": HOSTILE["style"]}, {"type": HOSTILE["script"], "x": 1}])
    ids = {
        name: remember(site, text, **fields, tags=[f"<b>{name}</b>"], indexed=name != "long")
        for name, text in HOSTILE.items()
    }
    page = open_at("/search?scope=/hostile")
    expect(page.locator(".line")).to_have_count(len(HOSTILE))
    for name, text in HOSTILE.items():
        show(page, f"/memory/{ids[name]}")
        shown = page.locator(".memory-text .stored")
        if name == "long":
            expect(shown).to_have_text(text[:1600] + "…")
            page.get_by_role("button", name="Show all").first.click()
        page.wait_for_function("text => document.querySelector('.memory-text .stored')?.textContent === text", arg=text)
        expect(page.locator(".facts")).to_contain_text(["<i>source</i>"])
    assert page.get_by_text("invisible or turn").count() == 0  # the last is the long one
    show(page, f"/memory/{ids['bidi']}")
    expect(page.get_by_text("invisible or turn")).to_be_visible()
    expect(page.locator(".message")).to_have_count(2)
    assert page.locator(MARKUP).count() == 0
    show(page, "/sessions")
    page.get_by_role("link", name="<script>").click()
    expect(page.locator(".message .stored").first).to_have_text(HOSTILE["style"])
    assert page.locator(MARKUP).count() == 0
    show(page, "/search?scope=/hostile&q=click+here")
    expect(page.locator(".hit")).not_to_have_count(0)
    assert page.locator(MARKUP).count() == 0
    site.memory.forget(list(ids.values()))
    with_markup.end()


def test_a_token_for_reading_has_no_controls_that_write(open_at, site):
    page = open_at(f"/memory/{site.ids['run again']}", token=READER)
    expect(page.locator(".versions > li")).to_have_count(3)
    expect(page.get_by_text("Read-only")).to_be_visible()
    for name in ("Edit", "Forget", "Restore this text"):
        assert page.get_by_role("button", name=name).count() == 0
    show(page, "/review?check=stale")
    expect(page.locator(".finding").first).to_be_visible()
    for name in ("Keep this one", "Edit", "Forget", "Let it expire now"):
        assert page.get_by_role("button", name=name).count() == 0


def test_a_token_for_a_scope_shows_that_scope_only(open_at, site):
    page = open_at(token=WORKER)
    expect(page.locator(".list-head")).to_contain_text(f"{site.memory.count(scope='/mira/work')} memories")
    expect(page.get_by_role("banner")).to_contain_text("/mira/work")
    page.get_by_label("Search the memory").fill("What is Mira allergic to?")
    expect(page.locator(".hit").first).to_be_visible()
    assert "peanuts" not in page.locator("main").inner_text()
    show(page, "/map")
    expect(page.get_by_role("heading", name="Map")).to_be_visible()
    show(page, "/state")
    expect(page.get_by_text("the token is for a scope")).to_be_visible()


def test_without_a_token_the_page_asks_for_one(open_at):
    page = open_at(token=None)
    expect(page.get_by_role("dialog")).to_contain_text("asks for a token")
    page.get_by_role("textbox", name="Token").fill("wrong")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("dialog")).to_contain_text("does not accept")
    page.get_by_role("textbox", name="Token").fill(FULL)
    page.keyboard.press("Enter")
    expect(page.locator(".line").first).to_be_visible()


def test_keys_alone_search_open_edit_and_go_back(open_at, site):
    remember(site, "The spare fuse is in the drawer under the stairs.")
    page = open_at("/state")
    expect(page.locator(".tiles")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Search the memory")).to_be_focused()
    page.keyboard.type("where is the spare fuse?")
    expect(page.locator("#announce")).to_contain_text("for where is the spare fuse?")
    expect(page.locator(".hit").first).to_contain_text("The spare fuse")
    page.keyboard.press("ArrowDown")
    expect(page.locator(".hit .text-link").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.get_by_text("Weaker hits")).to_be_focused()
    expect(page.locator(".hit .text-link").nth(1)).to_be_visible()
    page.keyboard.press("j")
    expect(page.locator(".hit .text-link").nth(1)).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator(".memory-text")).to_contain_text("The spare fuse")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Edit")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("Text", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Edit")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next and previous in a list")
    page.keyboard.press("Escape")
    page.go_back()
    expect(page.get_by_label("Search the memory")).to_have_value("where is the spare fuse?")
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Single keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("button", name="Keys")).to_be_focused()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("bucket", ["month", "week", "day"])
def test_labels_of_the_timeline_do_not_meet(open_at, bucket, width):
    page = open_at(f"/timeline?bucket={bucket}", width=width)
    expect(page.locator(".tick:visible").nth(1)).to_be_attached()
    boxes = page.locator(".tick:visible").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect()).map(({left, right}) => [left, right])"
    )
    assert all(before[1] < after[0] for before, after in pairwise(sorted(boxes)))


def test_every_view_fits_in_360_pixels(open_at, site):
    long_word = remember(site, "unbroken" * 60, scope="/tests/" + "deep" * 20, tags=["tag" * 30], source="path/" * 40)
    page = open_at(width=360, height=700)
    views = {
        "/search": ".line", "/search?q=garden": ".hit", "/timeline": ".column-fill", "/sessions": ".line",
        "/documents": ".line", "/review?check=stale": ".finding", "/state": ".tiles", f"/memory/{long_word}": ".facts",
        f"/memory/{site.ids['run again']}": ".versions", "/session/evening-walk?agent=mira": ".message",
    }  # fmt: skip
    for view, awaited in views.items():
        show(page, view)
        expect(page.locator(awaited).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == 360, view
    show(page, "/search?q=unbroken")
    page.get_by_role("button", name="All scores").first.click()
    page.locator(".filters summary").click()
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    site.memory.forget(long_word)


def test_texts_have_the_contrast_of_wcag_aa_in_both_themes(open_at, site):
    page = open_at("/search?q=garden", color_scheme="dark")
    for view, awaited in (
        ("/search?q=garden", ".hit"), ("/review?check=stale&check=near-duplicates", ".finding"),
        (f"/memory/{site.ids['run again']}", ".versions del"), ("/state", ".tiles"),
    ):  # fmt: skip
        show(page, f"{view}")
        expect(page.locator(awaited).first).to_be_visible()
        for theme in ("Light", "Dark"):
            assert json.loads(page.evaluate(_CONTRAST)) == [], (view, theme)
            page.get_by_role("button", name="theme").click()


# Each text whose contrast with what lies behind it is below 4.5.
_CONTRAST = """() => {
  const channel = (value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
  const parsed = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    if (element.closest("svg, [hidden], noscript, .hidden-text, .skip, option") || element.disabled) continue;
    let behind = element;
    while (behind && parsed(getComputedStyle(behind).backgroundColor)[3] < 255) behind = behind.parentElement;
    const colours = [getComputedStyle(element).color, behind ? getComputedStyle(behind).backgroundColor : "white"];
    const [one, other] = colours.map((colour) => light(parsed(colour))).sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    if (ratio < 4.5) low.push([element.textContent.slice(0, 40), element.className, ratio.toFixed(2)]);
  }
  return JSON.stringify(low);
}"""
