"""Addresses of memories on a server: what is read from them, and that no secret is shown."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from recallite.errors import InvalidInput
from recallite.model.checks import is_address
from recallite.store.opening import open_store, store_exists
from recallite_postgres import scheme
from recallite_postgres.scheme import parse_address

pytest.importorskip("psycopg", reason="psycopg is not installed: the extra `postgres`")

SECRET = "s3cr3t-w0rd"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (
            f"postgresql://ada:{SECRET}@db.example/agents?schema=notes",
            "postgresql://ada@db.example/agents?schema=notes",
        ),
        ("postgres://db.example:5433", "postgresql://db.example:5433/?schema=recallite"),
        ("postgresql:///agents?host=/run/pg&port=1", "postgresql:///agents?host=/run/pg&port=1&schema=recallite"),
        (f"postgresql://ada@[::1]:5/a?password={SECRET}", "postgresql://ada@[::1]:5/a?schema=recallite"),
        (f"postgresql://x/a?sslpassword={SECRET}&sslcert=/a.crt", "postgresql://x/a?sslcert=/a.crt&schema=recallite"),
        ("postgresql://a%40b@x/a%20b", "postgresql://a%40b@x/a%20b?schema=recallite"),
    ],
)
def test_what_is_shown_is_the_address_without_secrets(given, shown):
    parsed = parse_address(given)
    assert str(parsed) == parsed.shown == shown
    assert repr(parsed) == f"PostgresAddress({shown!r})"
    assert (SECRET in str(dict(parsed.parameters))) == (SECRET in given)
    for other in (parse_address(shown), copy.copy(parsed), pickle.loads(pickle.dumps(parsed))):
        assert other == parsed


def test_the_password_is_decoded_and_removed_from_texts():
    parsed = parse_address("postgresql://ada:p%40s%2Fs%3A@h/a?sslpassword=second")
    assert parsed.parameters["password"] == "p@s/s:"
    assert parsed.without_secrets("p@s/s: and second") == "… and …"


def test_of_several_hosts_the_one_that_can_be_written_is_meant():
    parsed = parse_address("postgresql://ada@one:1,two:2/a")
    assert parsed.parameters["target_session_attrs"] == "read-write"
    assert parsed.shown.startswith("postgresql://ada@one:1,two:2/a?")
    given = parse_address("postgresql://one,two/a?target_session_attrs=any")
    assert given.parameters["target_session_attrs"] == "any"
    assert "target_session_attrs" not in parse_address("postgresql://one/a").parameters


@pytest.mark.parametrize(
    "password",
    ["s3cr3t@w0rd", "s3cr3t/w0rd", "s3cr3t?w0rd", "s3cr3t#w0rd", "s3cr3t%w0rd", "s3cr3t w0rd", "12/s3cr3t", "12?s3cr3t",
     "1@s3cr3t@", "s3cr3t&w0rd?", "s3cr3t\x00", "s3cr3t\n", "s3cr3t%00"],
)  # fmt: skip
def test_a_password_that_is_not_encoded_is_refused_and_not_repeated(password):
    with pytest.raises(InvalidInput, match=r"%40|USER:PASSWORD") as raised:
        parse_address(f"postgresql://ada:{password}@db.example/agents")
    assert "s3cr3t" not in "".join(traceback.format_exception(raised.value))
    fault: BaseException | None = raised.value
    while fault is not None:
        assert "s3cr3t" not in f"{fault!r} {fault}"
        fault = fault.__cause__ or fault.__context__


@pytest.mark.parametrize(
    "rest", ["h:port/a", "h/a?unknown=1", "h/a?schema", "h/a?password=one&s3cr3t=two", "h/a/b", "h/a?x=1?y=2"]
)
def test_what_libpq_would_not_take_is_refused(rest):
    with pytest.raises(InvalidInput, match="path is an address") as raised:
        parse_address(f"postgresql://ada:{SECRET}@{rest}")
    assert SECRET not in str(raised.value)
    assert "s3cr3t" not in str(raised.value)


@pytest.mark.parametrize(
    "schema", ["", "Notes", "1st", "a-b", 'a"b', "a%20b", "pg_notes", "public", "n" * 64, "%C3%A9"]
)
def test_a_schema_is_a_plain_identifier(schema):
    with pytest.raises(InvalidInput, match=r"^schema is"):
        parse_address(f"postgresql://h/a?schema={schema}")


def test_options_are_parameters_that_do_not_show():
    parsed = parse_address("postgresql://h/a?pool_size=4&application_name=x&statement_timeout_ms=0")
    assert parsed.options == scheme.ServerOptions(pool_size=4, statement_timeout_ms=0)
    assert parsed.shown == "postgresql://h/a?application_name=x&schema=recallite"
    assert parsed == parse_address(parsed.shown)
    assert parse_address("postgresql://h/a").options == scheme.ServerOptions()


@pytest.mark.parametrize(
    ("option", "remedy"),
    [
        ("pool_size=0", "pool_size is wrong: give a whole number >= 1"),
        (f"server_wait_ms={SECRET}", "server_wait_ms is wrong: give a whole number"),
        ("standby_lag_ms=2147483648", "standby_lag_ms is wrong: give a whole number <= 2147483647"),
        ("statement_timeout_ms=1.5", "statement_timeout_ms is wrong: give a whole number"),
    ],
)
def test_a_wrong_option_is_refused_and_not_repeated(option, remedy):
    with pytest.raises(InvalidInput, match=f"^path is an address whose parameter {remedy}$"):
        parse_address(f"postgresql://h/a?{option}")


@pytest.mark.parametrize("option", [*scheme.OPTIONS, "schema"])
def test_a_file_takes_no_option_of_a_server(option, tmp_path):
    for act in (open_store, store_exists):
        with pytest.raises(InvalidInput, match=f"^{option} is for the address of a server, and path is a file"):
            act(f"{tmp_path}/m.db?{option}=8")


def test_files_are_no_addresses():
    assert is_address("postgresql://h/a")
    assert is_address("POSTGRES://h/a")
    assert not any(map(is_address, ("agent.db", ":memory:", Path("postgresql:/h/a"), None, "http://h/a")))


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(scheme, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install '\.\[postgres\]'"):
        parse_address("postgresql://h/a")
    assert importlib.util.find_spec("psycopg")


def test_to_tell_an_address_from_a_file_loads_no_psycopg():
    code = (
        "import sys; from recallite.model.checks import is_address; import recallite.store.opening; "
        "assert is_address('postgresql://h/a'); print([name for name in sys.modules if name.startswith('psycopg')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
