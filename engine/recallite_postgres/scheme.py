"""The schemes `postgresql` and `postgres`: addresses of memories on a server, and opening one.

An address is like `postgresql://ada@db.example/agents?schema=notes&pool_size=4`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, NamedTuple, Unpack
from urllib.parse import quote, unquote, urlencode

import msgspec

from recallite.errors import InvalidInput
from recallite.store.opening import StoreOptions
from recallite.store.store import Store
from recallite.system.messages import install_command
from recallite.system.messages import shown as shown_value

DEFAULT_SCHEMA = "recallite"
# An identifier that needs no quotes: PostgreSQL cuts longer ones to 63 bytes.
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_OF_THE_SERVER = ("information_schema", "public")
_FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME"
_HOW_TO_ENCODE = "write '@', ':', '/', '?', '#' and '%' of names and passwords as %40, %3A, %2F, %3F, %23 and %25"
# What libpq itself never prints, and what it takes for debugging only.
_HIDDEN = ("*", "D")


_Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a memory on a server: query parameters of its address.

    - pool_size: The most connections that a memory opens at a time.
    - statement_timeout_ms: How long a statement may take; 0 is no limit.
    - server_wait_ms: How long an operation waits for a free connection, also while the server restarts or its standby
      takes over.
    - standby_lag_ms: How far a standby may be behind to be read; 0 is no limit.
    """

    pool_size: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 8
    statement_timeout_ms: _Milliseconds = 60_000
    server_wait_ms: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 30_000
    standby_lag_ms: _Milliseconds = 10_000


OPTIONS = ServerOptions.__struct_fields__


@dataclass(frozen=True, repr=False)
class PostgresAddress:
    """The place of a memory: server and database, as libpq takes them, and the schema that holds the memory.

    `str` and `repr` show no secret and no option. `parameters` are keyword arguments of `psycopg.connect`, with the
    secrets.
    """

    schema: str
    shown: str
    parameters: Mapping[str, str] = field(compare=False)
    secrets: tuple[str, ...] = field(compare=False)
    options: ServerOptions = field(compare=False)

    def __str__(self) -> str:
        return self.shown

    def __repr__(self) -> str:
        return f"PostgresAddress({self.shown!r})"

    def without_secrets(self, text: str) -> str:
        """A text in which the secrets of the address are replaced."""
        for secret in self.secrets:
            text = text.replace(secret, "…")
        return text


def parse_address(address: str) -> PostgresAddress:
    """The parts of an address.

    Raises InvalidInput for one that is malformed or ambiguous, without repeating it: a password may be in any part of
    it. The query parameters `schema` (default "recallite") and those of `ServerOptions` are Recallite's, the others are
    libpq's.
    """
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise InvalidInput(f"a memory on a PostgreSQL server needs psycopg: {install_command('postgres')}")
    server_address, schema, options = _split(address)
    parameters, hidden = _understood(server_address)
    secrets = {parameters[name] for name in hidden if parameters.get(name)}
    if "," in parameters.get("host", "") and "target_session_attrs" not in parameters:
        # Of several hosts one is the primary.
        parameters["target_session_attrs"] = "read-write"
    shown_address = _shown({name: value for name, value in parameters.items() if name not in hidden}, schema)
    return PostgresAddress(schema, shown_address, parameters, tuple(sorted(secrets, key=len, reverse=True)), options)


def _split(address: str) -> tuple[str, str, ServerOptions]:
    """The address as libpq takes it, the schema, and the options."""
    if not address.lower().startswith(("postgresql://", "postgres://")):
        raise InvalidInput(f"path is no address of a PostgreSQL server: give {_FORM}")
    if not address.isprintable() or "#" in address or " " in address:
        raise InvalidInput(f"path is an address with a blank, a control character or '#': {_HOW_TO_ENCODE}")
    base, _, query = address.partition("://")[2].partition("?")
    # An unescaped character of a password would move a part of it into the host, the port or the database.
    authority, _, database = base.partition("/")
    if "@" in database or "/" in database or "@" in query or "?" in query or authority.count("@") > 1:
        raise InvalidInput(f"path is an address that can be read in two ways: {_HOW_TO_ENCODE}")
    hosts = authority.rpartition("@")[2]
    for host in hosts.split(","):
        if not re.fullmatch(r"([^:\[\]]*|\[[0-9A-Fa-f:.]+\])(:[0-9]*)?", host):
            raise InvalidInput(
                f"path is an address whose port is no number, or whose password is not: {_HOW_TO_ENCODE}"
            )
    parts, schema, options = [], DEFAULT_SCHEMA, dict[str, str]()
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidInput(f"path is an address with a query parameter without '=': give {_FORM}")
        if name == "schema":
            schema = _checked_schema(unquote(value))
        elif name in OPTIONS:
            options[name] = unquote(value)
        else:
            parts.append(part)
    return f"postgresql://{base}" + (f"?{'&'.join(parts)}" if parts else ""), schema, _checked_options(options)


def _checked_options(options: dict[str, str]) -> ServerOptions:
    """The options; an error names the parameter and what it takes, without its value."""
    try:
        return msgspec.convert(options, ServerOptions, strict=False)
    except msgspec.ValidationError as fault:
        expected, _, name = str(fault).partition(" - at `$.")
        name = name.rstrip("`")
        number = expected.partition(",")[0].replace("Expected `int`", "a whole number")
        raise InvalidInput(f"path is an address whose parameter {name} is wrong: give {number}") from None


def _checked_schema(name: str) -> str:
    if not _IDENTIFIER.fullmatch(name) or name.startswith("pg_") or name in _OF_THE_SERVER:
        raise InvalidInput(
            f"schema is {shown_value(name)}: give 1 to 63 of a-z, 0-9 and _, not first a digit, and no schema of "
            "PostgreSQL's"
        )
    return name


def _understood(address: str) -> tuple[dict[str, str], set[str]]:
    """The parameters that libpq reads in an address, and the names of its secrets."""
    from psycopg import ProgrammingError, pq
    from psycopg.conninfo import conninfo_to_dict

    known = {option.keyword.decode(): option.dispchar.decode() for option in pq.Conninfo.get_defaults()}
    hidden = {name for name, shown_as in known.items() if shown_as in _HIDDEN}
    parameters: dict[str, str] | None = None
    # Raised outside the handler: libpq's message may repeat a part of the password.
    with suppress(ProgrammingError, UnicodeError):
        parameters = {name: str(value) for name, value in conninfo_to_dict(address).items()}
    if parameters is None:
        names = [part.partition("=")[0] for part in address.partition("?")[2].split("&")]
        for number, name in enumerate(filter(None, names), 1):
            if name != "ssl" and name not in known:  # not repeated: a "&" may have cut a password
                raise InvalidInput(
                    f"path is an address whose query parameter {number}, without Recallite's, is neither libpq's nor "
                    f"one of {', '.join(OPTIONS)}"
                )
        raise InvalidInput(f"path is an address that cannot be read: give {_FORM}, and {_HOW_TO_ENCODE}")
    return parameters, hidden


def _shown(parameters: dict[str, str], schema: str) -> str:
    """The address without its secrets, in one spelling."""
    user = parameters.pop("user", None)
    hosts = parameters.get("host", "")
    sockets = "/" in hosts
    ports = parameters.get("port", "").split(",")
    authority = ""
    if not sockets and "host" in parameters:
        del parameters["host"]
        parameters.pop("port", None)
        names = hosts.split(",")
        ports = ports * len(names) if len(ports) == 1 else ports
        pairs = zip(names, ports, strict=False)
        authority = ",".join(
            (f"[{host}]" if ":" in host else quote(host, safe="")) + (f":{port}" if port else "")
            for host, port in pairs
        )
    name = parameters.pop("dbname", "")
    query = urlencode({**dict(sorted(parameters.items())), "schema": schema}, safe="/", quote_via=quote)
    whose = "" if user is None else f"{quote(user, safe='')}@"
    return f"postgresql://{whose}{authority}/{quote(name, safe='')}?{query}"


# What the entry points `postgresql` and `postgres` of `recallite.stores` give.


class TenantRow(NamedTuple):
    """A role of the server that is confined to a scope."""

    role: str
    scope: str
    created_at: int


def open(address: str, **options: Unpack[StoreOptions]) -> Store:
    """The store in the schema that an address names, created if it does not exist."""
    parse_address(address)  # says which package is missing
    from recallite_postgres.store import PostgresStore

    return PostgresStore(address, **options)


def exists(address: str) -> bool:
    """Whether the schema holds a memory."""
    parsed = parse_address(address)
    from recallite_postgres.server import holds_memory

    return holds_memory(parsed)


def shown(address: str) -> str:
    """The address without its password."""
    return str(parse_address(address))
