"""A memory names a file, a command or an error, or it does not."""

from __future__ import annotations

import pytest

from recallite_server.hooks.naming import (
    NamedFile,
    commands_of,
    names_command,
    names_error,
    names_file,
    sentences_naming,
)

FILE = NamedFile("src/billing.py", "/p/src/billing.py")


@pytest.mark.parametrize(
    ("text", "namesakes", "named"),
    [
        ("Never touch billing.py", 1, True), ("Never touch billing.py", 2, False), ("see src/billing.py:42", 2, True),
        ("`billing.py`'s total", 1, True), ("/p/src/billing.py.", 2, True), ("the p/src/billing.py file", 2, True),
        ("./src/billing.py", 2, True), ("billing.py.", 1, True), (r"src\billing.py", 2, True),
        ("old/billing.py", 1, False), ("billing.pyc", 1, False), ("my-billing.py", 1, False),
        ("  billing.py", 1, True), ("old/ billing.py", 1, True),
        ("https://x.org/billing.py", 1, False), ("billing is slow", 1, False),
    ],
)  # fmt: skip
def test_a_file_is_named_by_its_path_or_an_end_that_only_it_has(text, namesakes, named):
    assert names_file(text, FILE, lambda path: namesakes) is named


def test_a_name_that_is_a_word_is_one_only_where_it_is_written_as_a_name():
    file = NamedFile("build", "/p/build")
    assert not names_file("the build is slow", file, lambda path: 1)
    assert names_file("`build` is a script", file, lambda path: 1)
    outside = NamedFile("", "/etc/hosts")
    assert names_file("/etc/hosts is managed", outside, lambda path: 1)
    assert not names_file("hosts is managed", outside, lambda path: 1)


def test_a_shells_line_has_commands():
    assert commands_of("cd x && FOO=1 sudo git -C d push; npm run lint | tee a > b") == [
        ["cd", "x"], ["sudo", "git", "-C", "d", "push"], ["git", "-C", "d", "push"], ["npm", "run", "lint"], ["lint"],
        ["tee", "a"], ["b"],
    ]  # fmt: skip
    assert commands_of("git commit -m 'a && b'") == [["git", "commit", "-m", "a && b"]]
    assert commands_of('echo "unfinished') == [["echo", '"unfinished']]
    assert commands_of("cat > f <<EOF\nrm -rf /\nEOF") == [["cat"], ["f"]]
    assert commands_of("") == commands_of(" ;; ") == []


@pytest.mark.parametrize(
    ("text", "command", "named"),
    [
        ("git push fails without the VPN", "git push origin main", True),
        ("`git push` needs VPN", "git -C d push origin main", True),
        ("`git push --force` is forbidden", "git push origin f", False),
        ("`git push --force` is forbidden", "git push --force origin f", True),
        ("docker compose down -v wipes the database", "docker compose up -d", False),
        ("docker compose down -v wipes the database", "docker compose down -v", True),
        ("docker compose down loses data", "docker compose up -d", False),
        ("npm run build needs NODE_OPTIONS", "npm run lint", False),
        ("npm run build needs NODE_OPTIONS", "npm run build", True),
        ("pytest -n auto hangs here", "pytest -n auto tests", True),
        ("pytest -n auto hangs here", "pytest -x tests", False),
        ("Use `npm ci`, not `npm install`", "npm install lodash", True),
        ("make sure it works", "make deploy", False),
        ("`pytest` alone reads the wrong settings", "pytest tests/a.py -x", True),
        ("python 3.12 is the minimum", "python x.py", False),
        ("git is slow", "git status", False),
        ("gh pr merge needs approval", "gh pr create", False),
        ("git push schlägt ohne VPN fehl", "git push", True),
        ("pytest -n auto hangs", "uv run pytest -n auto", True),
        ("`git push <branch>` asks for a key", "git push main", True),
    ],
)
def test_a_command_is_named_by_program_and_subcommand_and_no_more_than_is_run(text, command, named):
    assert any(names_command(text, words) for words in commands_of(command)) is named


@pytest.mark.parametrize(
    ("text", "error", "named"),
    [
        ("OperationalError: database is locked: the worker runs", "x\nOperationalError: database is locked", True),
        ("If “database is locked” appears stop the worker", "sqlite3.OperationalError: database is locked", True),
        ("Could not resolve x.y means no token", "> Could not resolve x.y", True),
        ("ModuleNotFoundError: No module named 'bar': install it", "ModuleNotFoundError: No module named 'foo'", False),
        ("bar: command not found, brew install bar", "foo: command not found", False),
        ("foo: command not found means PATH lacks ~/bin", "bash: line 1: foo: command not found", True),
        ("ECONNREFUSED on 5432: start postgres", "connect ECONNREFUSED 127.0.0.1:5432", True),
        ("TS2345 in api.ts comes from stale types", "src/api.ts(3,1): error TS2345: Argument", True),
        ("the ERROR was there", "ERROR something else", False), ("that is it", "so: that is it", False),
    ],
)  # fmt: skip
def test_an_error_is_named_by_its_code_or_its_whole_message(text, error, named):
    assert names_error(text, error) is named


@pytest.mark.parametrize(
    ("text", "said_by", "kept"),
    [
        ("Fix the bug in billing.py", "user", False), ("Can you look at billing.py", "user", False),
        ("What does billing.py do?", "user", False), ("Add billing.py to the list", "user", False),
        ("Never edit billing.py by hand", "user", True), ("Don't touch billing.py without tests", "user", True),
        ("billing.py rounds half up", "user", True), ("we broke prod by editing billing.py", "user", True),
        ("Updated billing.py", "assistant", False), ("I fixed billing.py", "assistant", False),
        ("- `billing.py`: added a retry", "assistant", False), ("Done: billing.py is green", "assistant", False),
        ("The exporter in billing.py retries because the lock is held", "assistant", True),
        ("Add billing.py to the list", None, True),
    ],
)  # fmt: skip
def test_what_was_asked_for_once_or_done_says_nothing_of_a_thing(text, said_by, kept):
    assert bool(sentences_naming(text, lambda sentence: "billing.py" in sentence, said_by)) is kept


def test_of_a_turn_only_the_sentences_that_name_it_are_shown():
    text = "Rename the table. billing.py rounds half up. Then stop."
    assert sentences_naming(text, lambda sentence: "billing.py" in sentence, "user") == ["billing.py rounds half up."]
