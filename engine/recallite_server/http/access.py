"""Access: the grant of a request, and the memory that it may see."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.requests import HTTPConnection

from recallite.doors.operations import SCOPE_HEADER
from recallite.errors import AccessDenied
from recallite.memory import Memory
from recallite_server.http.access_tokens import Grant, Tokens
from recallite_server.http.failures import Refused

GRANT = "recallite.grant"
"""Key, in the scope of ASGI, of the grant of a request that was admitted."""
_BEARER = "bearer "


class Access:
    """Finds what a request may do. Without `tokens_required` one without a token may do everything."""

    def __init__(self, memory: Memory, tokens: Tokens, *, tokens_required: bool) -> None:
        self._memory, self._tokens, self._required = memory, tokens, tokens_required

    def grant(self, authorization: str | None) -> Grant:
        """The grant of a request with this header. Raises Refused (401) without a good token where one is needed."""
        if authorization is None:
            if self._required:
                raise Refused(401, "this server asks for a token: send Authorization: Bearer ...", error=AccessDenied)
            return Grant()
        if authorization[: len(_BEARER)].lower() != _BEARER:
            raise Refused(401, "Authorization is no bearer token: send Authorization: Bearer ...", error=AccessDenied)
        try:
            return self._tokens.grant(authorization[len(_BEARER) :].strip())
        except AccessDenied as fault:
            raise Refused(401, str(fault), error=AccessDenied) from None

    def memory(self, request: HTTPConnection) -> tuple[Memory, str, Grant]:
        """The memory that an admitted request may see, the scope that it is bound to, and what it may do there.

        Raises InvalidInput for a malformed scope in the header.
        """
        grant: Grant = request.scope[GRANT]
        memory = self._memory if grant.scope == "/" else self._memory.scoped(grant.scope)
        narrowed = request.headers.get(SCOPE_HEADER, "/")
        if not narrowed.isascii():
            raise Refused(422, f"{SCOPE_HEADER} is not ASCII: percent-encode it, as UTF-8")
        if narrowed != "/":
            memory = memory.scoped(unquote(narrowed, errors="surrogateescape"))
        return memory, memory.scope, grant


def may_write(request: HTTPConnection) -> None:
    """Raise Refused (403) for a request whose token is for reading."""
    if request.scope[GRANT].read_only:
        raise Refused(403, "the token is for reading: this changes something", error=AccessDenied)
