"""links, unlink, restore and purge-expired on the command line."""


def test_links_reach_as_far_as_they_are_told(run, remember):
    ids = [remember(text) for text in ("one", "two", "three")]
    run("link", ids[0], ids[1], "--strength", "0.5", "--type", "causal")
    run("link", ids[1], ids[2], "--strength", "0.5")
    assert run("links", ids[0]).out == f"1\t0.50\t{ids[1]}\ttwo\n2\t0.25\t{ids[2]}\tthree\n"
    assert [each["record"]["id"] for each in run("links", ids[0], "--depth", "1", "--json").json] == [ids[1]]
    assert run("links", ids[0], "--type", "supports").code == 1
    assert run("links", ids[0], "--direction", "in").code == 1
    assert run("links", ids[0], "--limit", "1").out.count("\n") == 1
    assert run("links", ids[0], "--depth", "0").code == 2
    assert run("links", ids[0], "--type", "friend").code == 2
    assert run("links", "nobody").code == 1


def test_unlink(run, remember):
    first, second = remember("one"), remember("two")
    run("link", first, second)
    assert run("unlink", second, first).code == 1
    assert run("unlink", first, second, "--json").json == {"links": 1}
    assert run("links", first).code == 1


def test_restore_an_earlier_text(run, remember):
    id = remember("the first text")
    run("update", id, "--text", "the second")
    assert run("restore", id, "--to", "-2").out == f"{id}\tthe first text\n"
    assert run("restore", id, "--to", "1", "--json").json["text"] == "the second"
    assert [each["text"] for each in run("history", id, "--json").json] == [
        "the first text", "the second", "the first text", "the second",
    ]  # fmt: skip
    for wrong in ("9", "yesterday", "2001-01-01T00:00:00Z", "--1"):
        assert run("restore", id, "--to", wrong).code == 2, wrong


def test_purge_expired(run, remember):
    remember("gone", "--created-at", "2020-01-01T00:00:00Z", "--expires-at", "2021-01-01T00:00:00Z")
    remember("here")
    assert run("purge-expired").out == "1\tpurged\n"
    assert run("purge-expired", "--scope", "/a", "--json").json["records"] == 0
