"""Ids of one's own, scopes, tags, touch and the last message of a session on the command line."""

from recallite import Memory


def test_a_memory_is_stored_and_replaced_by_its_id(run):
    assert run("remember", "Ada lives in Oslo", "--id", "ada:home").out == "ada:home\n"
    again = run("remember", "Ada lives in Rome", "--id", "ada:home")
    assert again.code == 2
    assert "is there already" in again.err
    assert run("remember", "Ada lives in Rome", "--id", "ada:home", "--on-existing", "version").code == 0
    assert [each["text"] for each in run("history", "ada:home", "--json").json] == [
        "Ada lives in Oslo", "Ada lives in Rome",
    ]  # fmt: skip
    assert run("remember", "a", "b", "--id", "x").code == 2
    assert run("remember", "a", "--id", "x", "--on-existing", "upsert").code == 2


def test_several_are_shown_and_unknown_ones_passed_over(run, remember):
    first, second = remember("one"), remember("two")
    assert [each["text"] for each in run("get", first, second, "--json").json] == ["one", "two"]
    assert run("get", first, "--json").json["text"] == "one"
    assert "\n\n" in run("get", first, second).out
    assert run("get", first, "unknown").code == 1
    assert run("forget", first, "unknown", "--yes").code == 1
    assert run("forget", first, "unknown", "--yes", "--missing-ok").out == "1\tforgotten\n"


def test_scopes_and_tags_are_counted(run, remember):
    remember("one", "--scope", "/a/b", "--tag", "x")
    remember("two", "--scope", "/a", "--tag", "x", "--tag", "y")
    assert run("scopes").out == "/a\t1\n/a/b\t1\n"
    assert run("scopes", "/a", "--depth", "0", "--json").json == [{"scope": "/a", "memories": 2}]
    assert run("tags").out == "x\t2\ny\t1\n"
    assert run("tags", "/a/b", "--json").json == [{"tag": "x", "memories": 1}]
    nowhere = run("scopes", "/nowhere")
    assert (nowhere.code, nowhere.err) == (1, "nothing was found\n")
    assert run("list", "--order", "updated").code == 0


def test_touch(run, remember):
    id = remember("one", "--expires-at", "2100-01-01")
    assert run("touch", id, "--expires-at", "2101-01-01").out == "1\ttouched\n"
    assert run("get", id, "--json").json["expires_at"].startswith("2101-01-02")
    assert run("touch", id, "--never", "--json").json == {"touched": 1}
    assert run("get", id, "--json").json["expires_at"] is None
    assert run("touch", id).code == 0
    sliding = run("remember", "two", "--expires-at", "P30D", "--json").json
    assert sliding["expires_after"] == "P30D"
    assert run("touch", sliding["id"]).out == "1\ttouched\n"
    assert run("get", sliding["id"], "--json").json["expires_at"] > sliding["expires_at"]
    hidden = run("remember", "three is a crowd", "--not-indexed", "--json").json
    assert hidden["indexed"] is False
    assert run("recall", "crowd").code == 1
    assert run("remember", "x", "--expires-at=-P1D").code == 2
    assert run("touch", id, "--never", "--expires-at", "2101-01-01").code == 2
    assert run("touch", "unknown", "--never").code == 1


def test_the_last_message_is_popped_and_all_are_cleared(run, db):
    with Memory(db) as memory:
        memory.sessions.open("s").extend([{"role": "user", "content": "one"}, {"type": "call"}, {"role": "a"}])
    assert run("sessions", "pop", "s", "--json").json == {"role": "a"}
    assert run("sessions", "show", "s").code == 0
    assert run("sessions", "clear", "s").code == 2
    assert run("sessions", "clear", "s", "--yes").out == "2\tremoved\n"
    assert run("sessions", "pop", "s").code == 1
    assert run("sessions", "clear", "unknown", "--yes").code == 1
