"""The methods of Memory that relate memories: succession, versions and links."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import structs

from recallite import checks
from recallite.lookups import Lookups, listed
from recallite.records import Link, Reached, Record
from recallite.remember import change
from recallite.remember import links as linking
from recallite.remember import supersession as superseding
from recallite.remember.supersession import row_id


class Relations(Lookups):
    """What relates the memories that a handle may see."""

    def supersede(
        self,
        old: str | Sequence[str],
        new: str | Sequence[str],
        *,
        reason: str | None = None,
        strength: float = 1.0,
        at: datetime | str | None = None,
    ) -> None:
        """Put memories in the place of others: what is new holds from then on, and nothing is lost.

        Plain recall, list and count show the superseded ones no longer; `history`, `as_of`, `held_at` and
        `include_superseded` do, and `restore` undoes it. `old` and `new` are an id or a list of ids: every one of the
        new stands in the place of every one of the old. `at` is the event time from which the new ones hold, by default
        when each begins (its event_at, else created_at). `reason` and `strength` are those of the links "supersedes"
        from the new to the old. Given again with another `reason` or `at`, these are corrected. All of it is done or
        nothing.

        When all that supersede a memory are forgotten or have expired, it is current again; if they were superseded
        themselves, what supersedes them follows.

        Raises NotFound for an unknown id, AlreadySuperseded if another memory supersedes an old one, and InvalidInput
        for a memory that would supersede itself, for a cycle, for memories of different scopes, for episodes,
        procedures and chunks of documents, and if a new one holds from before an old one began.
        """
        superseding.supersede(self._engine, old, new, reason=reason, strength=strength, at=at, base=self._scope)

    def restore(self, id: str, version: int | datetime | str | None = None) -> Record:
        """Make an earlier text, with its context and vectors, the newest version of a memory; nothing is lost.

        `version` is an index into `history(id, chain=False)` (-2 is the one before the current), or a time at which it
        was current, an aware datetime or ISO 8601 text. Tags, importance and the other fields do not change.

        Without `version`, make a superseded memory current again: every supersession of it is undone. Those that it
        supersedes itself stay superseded.

        Raises NotFound for an unknown id, and InvalidInput if there is no such version, if it is the current one, if
        there is nothing to undo, or for a procedure: use `procedures.save`.
        """
        return self._seen(change.restore(self._engine, id, version, base=self._scope))

    def history(self, id: str, *, chain: bool = True) -> list[Record]:
        """Every version of a memory, oldest first; the last is the current one.

        With `chain` they are those of the memories that it supersedes, its own, and those of the memories that
        supersede it, directly or through others.
        """
        with self._engine.store.read() as reader:
            row_id(reader, id, self._scope)
            return [*map(self._seen, reader.records.history(id, chain=checks.check_flag(chain, "chain")))]

    def neighbors(self, id: str, *, types: Sequence[str] = (), direction: str = "both") -> list[Link]:
        """The links of a memory, strongest first; direction "out", "in" or "both"."""
        return linking.neighbors(self._engine, id, listed(types, "types"), direction, base=self._scope)

    def backlinks(self, id: str, *, types: Sequence[str] = ()) -> list[Link]:
        """The links that lead to a memory, strongest first: `neighbors` with direction "in"."""
        return linking.neighbors(self._engine, id, listed(types, "types"), "in", base=self._scope)

    def traverse(
        self,
        id: str,
        *,
        depth: int = 2,
        types: Sequence[str] = (),
        direction: str = "both",
        limit: int | None = 100,
    ) -> list[Reached]:
        """The memories within `depth` links of one, breadth first: each once, nearest first, then strongest.

        It follows links of `types` (none: of all) in `direction` "out", "in" or "both", and returns at most `limit`
        (None: all). Each comes with its distance and its strength: the product of the strengths along the strongest
        of the shortest paths. No path passes through expired memories or leaves the scope of this handle.

        Raises NotFound for an id that is not visible here and InvalidInput for a bad option.
        """
        found = linking.traverse(self._engine, id, depth, listed(types, "types"), direction, limit, base=self._scope)
        return [structs.replace(each, record=self._seen(each.record)) for each in found]

    def link(self, source: str, target: str, *, type: str = "similar", strength: float = 1.0) -> None:
        """Link two memories; recall spreads along links in both directions."""
        linking.link(self._engine, source, target, type, strength, base=self._scope)

    def unlink(self, source: str, target: str, type: str | None = None) -> int:
        """Remove the links from one memory to another, of one type or all; returns how many there were.

        Links in the other direction stay. Raises NotFound for an id that is not visible here.
        """
        return linking.unlink(self._engine, source, target, type, base=self._scope)
