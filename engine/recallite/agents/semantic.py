"""Semantic memory: long-lived knowledge, with summaries, verification and links to similar memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

import msgspec
from msgspec import structs

from recallite.agents.service_base import Service, own_metadata
from recallite.errors import InvalidInput
from recallite.model import checks
from recallite.model.policies import WritePolicy
from recallite.model.records import Hits, Record
from recallite.recall.request import RecallOptions
from recallite.remember.fields import check_ids
from recallite.remember.supersession import row_id
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import shown

KIND = "memory"
# The lowest cosine at which a new memory is linked to a stored one, and the most links that it gets.
LINK_COSINE = 0.85
MOST_LINKS = 10


class Semantic(Service):
    """What `remember` writes, as a tier: records of kind "memory"."""

    def add(
        self,
        content: str,
        *,
        summary: str | None = None,
        importance: float = 0.5,
        verified: bool = False,
        tags: Sequence[str] = (),
        agent: str | None = None,
        auto_link: bool = True,
        context: str | None = None,
        topic: str | None = None,
        source: str | None = None,
        pinned: bool = False,
        metadata: Mapping[str, Any] | None = None,
        created_at: datetime | str | None = None,
        valid_from: datetime | str | None = None,
        valid_until: datetime | str | None = None,
        expires_at: datetime | str | None = None,
        vector: object = None,
        supersedes: str | Sequence[str] | None = None,
    ) -> Record:
        """Store a piece of knowledge; the summary and whether it is verified are kept in its metadata.

        What it makes out of date is superseded, as `remember` does; `supersedes` names more.

        With `auto_link` it is linked, as "similar", to at most 10 memories of its scope at cosine 0.85 or more
        (or as `Settings.write` says).
        """
        if summary is not None and not isinstance(summary, str):
            raise InvalidInput(f"summary is {shown(summary)}: give a str")
        known = own_metadata(metadata, summary=summary, verified=checks.check_flag(verified, "verified") or None)
        return self._remember(
            agent, self._policy(auto_link), kind=KIND, text=content, importance=importance,
            tags=checks.check_tags(tags), context=context, topic=topic, source=source, pinned=pinned, metadata=known,
            created_at=created_at, valid_from=valid_from, valid_until=valid_until, expires_at=expires_at, vector=vector,
            supersedes=check_ids(supersedes, "supersedes"),
        )  # fmt: skip

    def recent(self, limit: int = 10, *, agent: str | None = None) -> list[Record]:
        """The newest knowledge, the newest first."""
        return self._records(agent, KIND, limit=limit)

    def search(
        self, /, query: str, limit: int = 10, *, agent: str | None = None, **options: Unpack[RecallOptions]
    ) -> Hits:
        """The knowledge that answers `query`; options are those of `recall`."""
        return self._search(agent, KIND, query, limit, options)

    def get(self, id: str) -> Record:
        """The piece of knowledge with this id; NotFound if there is none here."""
        return self._find(id, KIND)

    def verify(self, id: str, verified: bool = True) -> Record:
        """Mark a piece of knowledge as checked, or as not checked."""
        checks.check_flag(verified, "verified")
        with self._engine.atomic() as writer:
            metadata = {**self._find(id, KIND).metadata, "verified": verified}
            columns = {"metadata": msgspec.json.encode(metadata).decode(), "updated_at": checks.now_us()}
            writer.records.change_columns(row_id(writer, id, self._base), columns, None)
        return self._find(id, KIND)

    def _policy(self, auto_link: bool) -> WritePolicy:
        policy = self._engine.settings.write_policy
        if not checks.check_flag(auto_link, "auto_link"):
            return structs.replace(policy, link_cosine=None)
        if policy.link_cosine is None:
            return structs.replace(policy, link_cosine=LINK_COSINE, most_links=MOST_LINKS)
        return policy


class AsyncSemantic(AsyncService[Semantic]):
    """`Semantic`, awaited."""

    add = awaited(Semantic.add)
    recent = awaited(Semantic.recent)
    search = awaited(Semantic.search)
    get = awaited(Semantic.get)
    verify = awaited(Semantic.verify)
