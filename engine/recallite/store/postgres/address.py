"""Addresses of memories on a PostgreSQL server: `postgresql://ada@db.example/agents?schema=notes`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from urllib.parse import quote, unquote, urlencode

from recallite.errors import InvalidInput
from recallite.system.extras import install_command
from recallite.system.messages import shown

DEFAULT_SCHEMA = "recallite"
# An identifier that needs no quotes: PostgreSQL cuts longer ones to 63 bytes.
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}", re.ASCII)
_OF_THE_SERVER = ("information_schema", "public")
_FORM = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME"
_HOW_TO_ENCODE = "write '@', ':', '/', '?', '#' and '%' of names and passwords as %40, %3A, %2F, %3F, %23 and %25"
# What libpq itself never prints, and what it takes for debugging only.
_HIDDEN = ("*", "D")


@dataclass(frozen=True, repr=False)
class PostgresAddress:
    """The place of a memory: server and database, as libpq takes them, and the schema that holds the memory.

    `str` and `repr` show no secret. `parameters` are keyword arguments of `psycopg.connect`, with the secrets.
    """

    schema: str
    shown: str
    parameters: Mapping[str, str] = field(compare=False)
    secrets: tuple[str, ...] = field(compare=False)

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
    it. The query parameter `schema` is Recallite's (default "recallite"), the others are libpq's.
    """
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise InvalidInput(f"a memory on a PostgreSQL server needs psycopg: {install_command('postgres')}")
    server_address, schema = _split(address)
    parameters, hidden = _understood(server_address)
    secrets = {parameters[name] for name in hidden if parameters.get(name)}
    if "," in parameters.get("host", "") and "target_session_attrs" not in parameters:
        # Of several hosts one is the primary.
        parameters["target_session_attrs"] = "read-write"
    shown_address = _shown({name: value for name, value in parameters.items() if name not in hidden}, schema)
    return PostgresAddress(schema, shown_address, parameters, tuple(sorted(secrets, key=len, reverse=True)))


def _split(address: str) -> tuple[str, str]:
    """The address as libpq takes it, and the schema."""
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
    parts, schema = [], DEFAULT_SCHEMA
    for part in query.split("&") if query else ():
        name, equals, value = part.partition("=")
        if not equals:
            raise InvalidInput(f"path is an address with a query parameter without '=': give {_FORM}")
        if name == "schema":
            schema = _checked_schema(unquote(value))
        else:
            parts.append(part)
    return f"postgresql://{base}" + (f"?{'&'.join(parts)}" if parts else ""), schema


def _checked_schema(name: str) -> str:
    if not _IDENTIFIER.fullmatch(name) or name.startswith("pg_") or name in _OF_THE_SERVER:
        raise InvalidInput(
            f"schema is {shown(name)}: give 1 to 63 of a-z, 0-9 and _, not first a digit, and no schema of PostgreSQL's"
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
                    f"path is an address whose query parameter {number}, without schema, is none of libpq's"
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
        authority = ",".join(_host(host) + (f":{port}" if port else "") for host, port in pairs)
    name = parameters.pop("dbname", "")
    query = urlencode({**dict(sorted(parameters.items())), "schema": schema}, safe="/", quote_via=quote)
    whose = "" if user is None else f"{quote(user, safe='')}@"
    return f"postgresql://{whose}{authority}/{quote(name, safe='')}?{query}"


def _host(name: str) -> str:
    return f"[{name}]" if ":" in name else quote(name, safe="")
