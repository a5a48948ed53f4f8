"""Authority: whose word a memory is. What one authority said is changed by none that is lower.

A store keeps the rank of an authority: 0 for the user, one less for each that is lower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, TypeAlias, get_args

from msgspec import Meta

from recallite.errors import InvalidInput
from recallite.model.checks import check_choice
from recallite.system.messages import shown

Authority: TypeAlias = Literal["user", "agent", "tool", "document", "web"]
AUTHORITIES: tuple[Authority, ...] = get_args(Authority)
"""All authorities, from the highest to the lowest."""
LOWEST_RANK = 1 - len(AUTHORITIES)
Rank = Annotated[int, Meta(ge=LOWEST_RANK, le=0)]
SourceAuthorities: TypeAlias = tuple[tuple[str, Authority], ...]
"""Patterns of sources, such as "https://*", with the authority of what comes from there; the first that fits counts."""

_BY_CONTEXT: dict[str, Authority] = {
    "assistant": "agent", "ai": "agent", "model": "agent", "bot": "agent", "chatbot": "agent", "tool": "tool",
    "function": "tool",
}  # fmt: skip
_CONTEXT_RANKS = {context: -AUTHORITIES.index(authority) for context, authority in _BY_CONTEXT.items()}
_WEB_RANK, _DOCUMENT_RANK = (-AUTHORITIES.index(authority) for authority in ("web", "document"))
_URLS = ("http://", "https://", "ftp://")


# Who speaks, and whether that was declared.
_speaker: ContextVar[tuple[Authority, bool]] = ContextVar("recallite_speaker", default=("user", False))


@contextmanager
def speaking_as(authority: Authority, *, declared: bool = False) -> Iterator[None]:
    """Within it, what is written is the word of this authority at most.

    If it is `declared`, it is known who said it, and neither a source nor a context lowers it.
    """
    token = _speaker.set((lower(speaker(), authority), declared))
    try:
        yield
    finally:
        _speaker.reset(token)


def speaker() -> Authority:
    """The authority that what is written now has at most: set by the door that a call came through."""
    return _speaker.get()[0]


def authority_of_role(role: str | None) -> Authority:
    """Return the authority of a message by its role: the user's unless a model or a tool wrote it."""
    return "user" if role is None else _BY_CONTEXT.get(role.strip().lower(), "user")


def rank_of(authority: Authority) -> int:
    """The rank of an authority."""
    return -AUTHORITIES.index(authority)


def authority_of(rank: int) -> Authority:
    """The authority of a rank."""
    return AUTHORITIES[-rank]


def said_by(authority: Authority, source: str | None) -> str:
    """Name who said it, for people and models: "user", or with the source or its host, "web:evil.example"."""
    if authority == "user" or not source:
        return authority
    if source.lower().startswith(_URLS):
        source = re.split(r"[/?#]", source.partition("//")[2], maxsplit=1)[0].rpartition("@")[2]
    return f"{authority}:{source}"


def check_authority(value: object, name: str) -> Authority:
    """Check the name of an authority."""
    return check_choice(value, name, AUTHORITIES)


def check_authorities(value: object, name: str) -> Authority | SourceAuthorities:
    """Check an authority, or patterns of sources with one each."""
    if isinstance(value, str):
        return check_authority(value, name)
    pairs: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise InvalidInput(
                f"{name} is {shown(value)}: give one of {', '.join(AUTHORITIES)}, or pairs of a pattern of sources and "
                "one of these, such as (('https://*', 'web'),)"
            )
    return tuple((pattern, check_authority(authority, name)) for pattern, authority in pairs)


def at_most(authorities: Authority | SourceAuthorities, limit: Authority) -> Authority | SourceAuthorities:
    """The authorities with each that is higher than the limit lowered to it."""
    if limit == "user":  # the highest
        return authorities
    if isinstance(authorities, str):
        return lower(authorities, limit)
    return (*((pattern, lower(authority, limit)) for pattern, authority in authorities), ("*", limit))


def lower(one: Authority, other: Authority) -> Authority:
    """The lower of two authorities."""
    return max(one, other, key=AUTHORITIES.index)


def is_lower(authority: Authority, other: Authority) -> bool:
    """Whether an authority is lower than the other."""
    return AUTHORITIES.index(authority) > AUTHORITIES.index(other)


def ranks_of(
    authorities: Authority | SourceAuthorities,
    kinds: Sequence[str],
    sources: Sequence[str | None],
    contexts: Sequence[str | None],
) -> list[int]:
    """The rank of each new memory. A chunk, a source that is a URL and a context that names a role lower it.

    Of what a declared speaker says, only a chunk is lower.
    """
    general, declared = 0, _speaker.get()[1]
    ranks: list[int] = []
    if isinstance(authorities, str):
        general = rank_of(authorities)
        if "chunk" not in kinds and not any(sources) and not any(contexts):
            return [general] * len(kinds)
    for kind, source, context in zip(kinds, sources, contexts, strict=True):
        rank = general
        if not isinstance(authorities, str):
            rank = next((rank_of(word) for pattern, word in authorities if fnmatchcase(source or "", pattern)), 0)
        if kind == "chunk":
            rank = min(rank, _DOCUMENT_RANK)
        if source is not None and not declared and source.lower().startswith(_URLS):
            rank = min(rank, _WEB_RANK)
        if context is not None and not declared:
            rank = min(rank, _CONTEXT_RANKS.get(context.strip().lower(), 0))
        ranks.append(rank)
    return ranks
