"""What the resident process answers, byte by byte as the full command line prints it."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.system.doors.warming import running

_TIMES = r'"stages":{[^}]*}'


@pytest.mark.parametrize(
    "words",
    [
        ["Which port does the API listen on?"],
        ["API port", "--json"],
        ["API port", "-n", "1", "--scope=/work", "--tag", "api", "--tag", "other", "--json"],
        ["office", "--kind", "fact", "--since", "2026-01-01", "--include-superseded"],
        ["API", "--since", "2026-02-01", "--until", "2026-12-31", "--scope", "/work", "--json"],
        ["API port", "--valid-at", "2026-02-01", "--mode", "keyword", "--profile", "reeve"],
        ["cake", "--token-budget", "5", "--diversify-by", "time"],
        ["--relevant", "--", "zebra"],
        ["--relevant", "--json", "zebra"],
        ["--relevant", "--json", "--all", "Which port does the API listen on?"],
        ["office", "--token-budget", "1"],
        ["API", "--explain", "--json"],
        ["API", "--where", '{"tags": "api"}', "--set", "hops=0", "--purpose", "inspect"],
        ["nothing of it", "--scope", "/nowhere", "--json"],
        ["nothing of it", "--scope", "/nowhere"],
    ],
)
def test_recall_prints_the_same_bytes(answering, words):
    (out, *rest), (full, *others) = (ask("recall", *words) for ask in (answering.asked, answering.full))
    assert ([re.sub(_TIMES, "", out), *rest]) == [re.sub(_TIMES, "", full), *others]
    assert out or rest[-1] == 1


def test_a_command_that_is_answered_loads_sockets_and_json(answering):
    ran = answering.command("recall", "Which port does the API listen on?")
    assert ran.light
    assert ran[:3] == answering.full("recall", "Which port does the API listen on?")
    assert not answering.command("--no-warm", "recall", "API").light
    assert len(running()) == 1


def test_remember_prints_the_same_bytes(answering, tmp_path):
    said = (
        ["Ada lives in Oslo", "--id", "home", "--created-at", "2026-01-02", "--tag", "a", "--importance", "0.8"],
        ["Ada lives in Rome now", "--id", "home2", "--created-at", "2026-02-03", "--pinned", "--position", "3"],
        ["Ada lives in Rome now", "--created-at", "2026-02-04", "--id", "home3"],
        ["Ada has a dog", "--id", "home", "--on-existing", "version", "--scope", "/", "--expires-at", "P30D"],
        ["--id", "last", "--", "-n is an option"],
    )
    for folder in ("asked", "full"):
        (tmp_path / folder).mkdir()
    printed = {}
    for folder, call in (("asked", answering.asked), ("full", answering.full)):
        answering.path, before = str(tmp_path / folder / "agent.db"), answering.path
        printed[folder] = [call("remember", *words) for words in said]
        answering.path = before
    assert printed["asked"] == printed["full"]
    assert all(code == 0 for _, _, code in printed["asked"])
    assert any("supersedes home" in err for _, err, _ in printed["asked"])


def test_remember_prints_the_same_json(answering, tmp_path):
    shutil.copytree(Path(answering.path).parent, tmp_path / "copy")
    words = ("remember", "Ada sings", "--id", "song", "--json")
    stored = answering.asked(*words)[0]
    answering.path, before = str(tmp_path / "copy" / "agent.db"), answering.path
    expected = answering.full(*words)[0]
    answering.path = before
    fixed = {name: value for name, value in json.loads(expected).items() if not str(value).startswith("20")}
    assert fixed.items() <= json.loads(stored).items()
    assert [*json.loads(stored)] == [*json.loads(expected)]
    assert stored == json.dumps(json.loads(stored), separators=(",", ":"), ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    "words",
    [
        ["recall", "API", "--limit", "many"],
        ["recall", "API", "--colour", "red"],
        ["recall", "API", "--scope", "a/b"],
        ["recall", "API", "--limit"],
        ["recall", "API", "port"],
        ["recall", "API", "--relevant=yes"],
        ["recall", "--help"],
        ["recall", "API", "--where", "["],
        ["recall"],
        ["remember", "--help"],
        ["remember", "--workers", "2", "a.jsonl"],
        ["remember", "x", "--supersedes", "nothing"],
        ["recall", "--file", "nowhere"],
        ["remember", " "],
        ["remember", "x", "--importance", "7", "--json"],
        ["remember", "-"],
        ["remember", "a", "b"],
        ["stats"],
        [],
    ],
)
def test_what_is_not_plain_and_every_mistake_is_for_the_full_command_line(answering, words):
    assert answering.asked(*words) == ("", "", None)


def test_stores_that_are_no_files_of_this_machine_are_for_the_full_command_line(answering, tmp_path):
    before = answering.path
    for path in (":memory:", "postgresql://ada@nowhere/agents", "", str(tmp_path / "missing.db"), str(tmp_path)):
        answering.path = path
        assert answering.asked("recall", "API") == ("", "", None)
    answering.path = before
    assert os.listdir(tmp_path) == []


def test_an_empty_store_says_so(answering, tmp_path):
    answering.path, before = str(tmp_path / "empty.db"), answering.path
    answering.asked("remember", "something to keep", "--id", "one")
    answering.full("forget", "one")
    assert answering.asked("recall", "x") == answering.full("recall", "x") == ("", "the store is empty\n", 1)
    answering.path = before
