"""Who asks: the grant of a request, and the memory that it may see."""

from __future__ import annotations

from fastapi import Request

from recollect.errors import AccessDenied
from recollect.memory import Memory
from recollect.server.failures import Refused
from recollect.server.tokens import Grant, Tokens

SCOPE_HEADER = "Recollect-Scope"
"""The header that narrows a request to a scope of what it may see."""
_BEARER = "bearer "


class Access:
    """Finds what a request may do. Without `tokens_required` one without a token may do everything."""

    def __init__(self, memory: Memory, tokens: Tokens, *, tokens_required: bool) -> None:
        self._memory, self._tokens, self._required = memory, tokens, tokens_required

    def grant(self, request: Request) -> Grant:
        """What a request may do. Raises Refused (401) without a good token where one is needed, or with a bad one."""
        given = request.headers.get("authorization")
        if given is None:
            if self._required:
                raise Refused(401, "this server asks for a token: send Authorization: Bearer ...", error="AccessDenied")
            return Grant()
        if given[: len(_BEARER)].lower() != _BEARER:
            raise Refused(401, "Authorization is no bearer token: send Authorization: Bearer ...", error="AccessDenied")
        try:
            return self._tokens.grant(given[len(_BEARER) :].strip())
        except AccessDenied as fault:
            raise Refused(401, str(fault), error="AccessDenied") from None

    def memory(self, request: Request, *, writes: bool) -> tuple[Memory, str, Grant]:
        """The memory that a request may see, the scope that it is bound to, and what it may do there.

        Raises Refused, and InvalidInput for a malformed scope in the header.
        """
        grant = self.grant(request)
        if writes and grant.read_only:
            raise Refused(403, "the token is for reading: this changes something", error="AccessDenied")
        memory = self._memory if grant.scope == "/" else self._memory.scoped(grant.scope)
        narrowed = request.headers.get(SCOPE_HEADER, "/")
        if narrowed != "/":
            memory = memory.scoped(narrowed)
        return memory, memory._scope, grant
