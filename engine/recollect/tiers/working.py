"""Working memory: the few things an agent has in mind, in RAM, with the least worth keeping let go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec
from msgspec import Struct

from recollect import checks
from recollect.engine import Engine
from recollect.errors import InvalidInput, NotFound
from recollect.records import Record
from recollect.remember.prepare import check_flag, uuid7
from recollect.store import services
from recollect.tiers.episodes import Episodes
from recollect.tiers.semantic import Semantic
from recollect.tiers.service import Service, stored_json

__all__ = ["Added", "Evicted", "Working", "WorkingItem"]

Policy = Literal["fifo", "importance"]
Tier = Literal["semantic", "episode"]
CAPACITY = 7
MAX_ITEM_BYTES = 1_000_000


class WorkingItem(Struct, frozen=True, kw_only=True):
    """One thing in mind: any JSON value; `str` is its text."""

    id: str
    content: Any
    importance: float = 0.5
    added_at: datetime

    def __str__(self) -> str:
        """The content if it is a text, else as JSON."""
        return self.content if isinstance(self.content, str) else msgspec.json.encode(self.content).decode()


class Evicted(Struct, frozen=True, kw_only=True):
    """An item that was let go, and the record that it became if it was promoted."""

    item: WorkingItem
    promoted: Record | None = None


class Added(Struct, frozen=True, kw_only=True):
    """What `add` did: the new item, and what had to go for it."""

    item: WorkingItem
    evicted: Evicted | None = None


class Working(Service):
    """At most `capacity` items, oldest first when iterated. Each handle has its own, and each agent within it.

    Policy "fifo" lets the oldest go, "importance" the least important, of equal ones the oldest. In memory only,
    unless saved: by `save`, or after every change with `persist`.
    """

    def __init__(
        self, engine: Engine, base: str, semantic: Semantic, episodes: Episodes, agent: str | None = None
    ) -> None:
        super().__init__(engine, base)
        self._semantic = semantic
        self._episodes = episodes
        self._agent = agent
        self._lock = threading.RLock()
        self._items: list[WorkingItem] = []
        self._capacity = CAPACITY
        self._policy: Policy = "fifo"
        self._promote_above: float | None = None
        self._promote_to: Tier = "semantic"
        self._persist = False
        self._agents: dict[str, Working] = {}

    def agent(self, agent: str) -> Working:
        """The working memory of an agent, apart from this one."""
        self._scope(agent)
        with self._lock:
            if agent not in self._agents:
                self._agents[agent] = Working(self._engine, self._base, self._semantic, self._episodes, agent)
            return self._agents[agent]

    def configure(
        self,
        *,
        capacity: int | None = None,
        policy: Policy | None = None,
        promote_above: float | None = None,
        promote_to: Tier | None = None,
        persist: bool | None = None,
    ) -> list[Evicted]:
        """Change what is given; returns what a smaller capacity evicts.

        From the importance `promote_above` on an evicted item is stored for good, in the tier `promote_to`;
        1.1 or any number above 1 promotes nothing.
        """
        if capacity is not None:
            checks.check_count(capacity, "capacity")
        if policy is not None and policy not in ("fifo", "importance"):
            raise InvalidInput(f"policy is {checks.shown(policy)}: 'fifo' or 'importance'")
        if promote_above is not None:
            checks.check_finite(promote_above, "promote_above", minimum=0.0)
        if promote_to is not None:
            _check_tier(promote_to)
        if persist is not None:
            check_flag(persist, "persist")
        with self._lock:
            self._capacity = self._capacity if capacity is None else capacity
            self._policy = self._policy if policy is None else policy
            self._promote_above = self._promote_above if promote_above is None else promote_above
            self._promote_to = self._promote_to if promote_to is None else promote_to
            self._persist = self._persist if persist is None else persist
            evicted = []
            while len(self._items) > self._capacity:
                evicted.append(self._let_go())
            self._keep()
            return evicted

    def add(self, item: object, *, importance: float = 0.5) -> Added:
        """Take in an item, any JSON value; where there is no room, one is evicted first and handed back."""
        checks.check_json(item, "item", MAX_ITEM_BYTES)
        if isinstance(item, str) and not item.strip():
            raise InvalidInput(f"item is {checks.shown(item)}: there is nothing to keep in mind")
        checks.check_unit(importance, "importance")
        new = WorkingItem(
            id=uuid7(), content=item, importance=float(importance), added_at=checks.to_datetime(checks.now_us())
        )
        with self._lock:
            evicted = self._let_go() if len(self._items) >= self._capacity else None
            self._items.append(new)
            self._keep()
        return Added(item=new, evicted=evicted)

    def evict(self) -> Evicted | None:
        """Let one item go as the policy says; None when there is none."""
        with self._lock:
            if not self._items:
                return None
            evicted = self._let_go()
            self._keep()
        return evicted

    def items(self) -> list[WorkingItem]:
        """The items, oldest first."""
        with self._lock:
            return list(self._items)

    def clear(self) -> list[WorkingItem]:
        """Let all items go, none promoted; returns them."""
        with self._lock:
            items, self._items = self._items, []
            self._keep()
        return items

    def promote(self, item: WorkingItem | str, to: Tier = "semantic") -> Record:
        """Store an item for good, as semantic memory or as an episode; out of working memory it goes.

        `item` is one that was evicted, or one that is here, or the id of one that is here.
        """
        _check_tier(to)
        with self._lock:
            if not isinstance(item, WorkingItem):
                found = next((each for each in self._items if each.id == item), None)
                if found is None:
                    raise NotFound(f"no item {checks.shown(item)} in working memory: it was never added, or has gone")
                item = found
            record = self._store(item, to)
            self._items = [each for each in self._items if each.id != item.id]
            self._keep()
        return record

    def save(self) -> int:
        """Keep the items in the store, in place of what was kept; returns how many."""
        with self._lock:
            text = msgspec.json.encode(self._items).decode()
            with self._engine.atomic() as connection:
                scope = services.scope_id(connection, self._scope(self._agent))
                services.save_working(connection, scope, text, checks.now_us())
            return len(self._items)

    def load(self) -> list[WorkingItem]:
        """Take up the items that were saved, in place of those here; the oldest beyond the capacity are left out."""
        with self._lock:
            with self._engine.store.read() as connection:
                text = services.load_working(connection, self._scope(self._agent))
            saved = [] if text is None else stored_json(text, "the saved working memory", list[WorkingItem])
            self._items = saved[-self._capacity :]
            return list(self._items)

    def __iter__(self) -> Iterator[WorkingItem]:
        return iter(self.items())

    def __len__(self) -> int:
        return len(self._items)

    def _let_go(self) -> Evicted:
        """Take out the item that the policy names; its promotion comes first, so that a failed one loses nothing."""
        place = 0
        if self._policy == "importance":
            place = min(range(len(self._items)), key=lambda each: (self._items[each].importance, each))
        item = self._items[place]
        above = self._promote_above
        promoted = None if above is None or item.importance < above else self._store(item, self._promote_to)
        del self._items[place]
        return Evicted(item=item, promoted=promoted)

    def _store(self, item: WorkingItem, to: Tier) -> Record:
        if to == "semantic":
            return self._semantic.add(str(item), importance=item.importance, agent=self._agent)
        return self._episodes.log(str(item), importance=item.importance, agent=self._agent, event_at=item.added_at)

    def _keep(self) -> None:
        if self._persist:
            self.save()


def _check_tier(to: object) -> None:
    if to not in ("semantic", "episode"):
        raise InvalidInput(f"the tier is {checks.shown(to)}: 'semantic' or 'episode'")
