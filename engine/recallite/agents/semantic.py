"""Semantic memory: long-lived knowledge, with summaries, verification and links to similar memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Unpack

import msgspec
from msgspec import structs

from recallite.agents.tier import AsyncTier, Check, RecordTier, check_str, optional
from recallite.model import checks
from recallite.model.records import Record, RecordFields
from recallite.model.settings import WritePolicy
from recallite.system.asynchrony import awaited

# The lowest cosine at which a new memory is linked to a stored one, and the most links that it gets.
LINK_COSINE = 0.85
MOST_LINKS = 10


class Semantic(RecordTier):
    """The tier of what `remember` writes: records of kind "memory"."""

    _kind = "memory"
    _checks: ClassVar[Mapping[str, Check]] = {
        "summary": optional(check_str),
        "verified": lambda value, name: checks.check_flag(value, name) or None,
    }

    def add(
        self,
        content: str,
        *,
        summary: str | None = None,
        verified: bool = False,
        auto_link: bool = True,
        agent: str | None = None,
        **fields: Unpack[RecordFields],
    ) -> Record:
        """Store a piece of knowledge; the summary and whether it is verified are kept in its metadata.

        It supersedes what it makes out of date, as with `remember`; `supersedes` names more.

        With `auto_link` it is linked, as "similar", to at most 10 memories of its scope at cosine 0.85 or more
        (or as `Settings.write` says).
        """
        policy = self._policy(auto_link)
        return self._remember(agent, content, {"summary": summary, "verified": verified}, fields, policy)

    def verify(self, id: str, verified: bool = True) -> Record:
        """Mark a piece of knowledge as checked, or as not checked."""
        checks.check_flag(verified, "verified")
        with self._engine.atomic() as writer:
            record_id = self._row_id(writer, id, None)
            metadata = {**self._item(writer, record_id).metadata, "verified": verified}
            columns = {"metadata": msgspec.json.encode(metadata).decode(), "updated_at": checks.now_us()}
            writer.records.change_columns(record_id, columns, None)
            return self._item(writer, record_id)

    def _policy(self, auto_link: bool) -> WritePolicy:
        policy = self._engine.settings.write_policy
        if not checks.check_flag(auto_link, "auto_link"):
            return structs.replace(policy, link_cosine=None)
        if policy.link_cosine is None:
            return structs.replace(policy, link_cosine=LINK_COSINE, most_links=MOST_LINKS)
        return policy


class AsyncSemantic(AsyncTier[Semantic]):
    """`Semantic`, awaited."""

    add = awaited(Semantic.add)
    verify = awaited(Semantic.verify)
