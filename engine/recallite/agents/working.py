"""Working memory: a few items in RAM, from which a policy evicts the oldest or the least important."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

import msgspec
from msgspec import Struct, structs

from recallite.agents.tiers import Check, Episodes, Semantic, check_amount
from recallite.errors import InvalidInput, NotFound
from recallite.model import checks
from recallite.model.records import DEFAULT_IMPORTANCE, Record
from recallite.plugin import EngineHandle, Service
from recallite.remember.prepare import uuid7
from recallite.store.sql.repository import stored_json
from recallite.system.asynchrony import AsyncService, awaited, awaited_service
from recallite.system.messages import shown

Policy = Literal["fifo", "importance"]
Destination = Literal["semantic", "episode"]
CAPACITY = 7
MAX_ITEM_BYTES = 1_000_000


_CHECKS: dict[str, Check] = {
    "capacity": checks.check_count,
    "policy": lambda value, name: checks.check_choice(value, name, get_args(Policy)),
    "promote_above": check_amount,
    "promote_to": lambda value, name: checks.check_choice(value, name, get_args(Destination)),
    "persist": checks.check_flag,
}


class WorkingItem(Struct, frozen=True, kw_only=True):
    """One item: any JSON value; `str` is its text."""

    id: str
    content: Any
    importance: float = DEFAULT_IMPORTANCE
    added_at: datetime

    def __str__(self) -> str:
        """The content if it is a text, else as JSON."""
        return self.content if isinstance(self.content, str) else msgspec.json.encode(self.content).decode()


class Evicted(Struct, frozen=True, kw_only=True):
    """An evicted item, and the record that it became if it was promoted."""

    item: WorkingItem
    promoted: Record | None = None


class Added(Struct, frozen=True, kw_only=True):
    """The new item, and the one evicted for it."""

    item: WorkingItem
    evicted: Evicted | None = None


class _State(NamedTuple):
    """The immutable state of a working memory; a change replaces it, after it has been saved if it is to be."""

    items: tuple[WorkingItem, ...] = ()
    capacity: int = CAPACITY
    policy: Policy = "fifo"
    promote_above: float | None = None
    promote_to: Destination = "semantic"
    persist: bool = False


class Working(Service):
    """A memory of at most `capacity` items, iterated oldest first. Each handle has its own, and each agent in it.

    Policy "fifo" evicts the oldest item, "importance" the least important, and the oldest of equally important ones.
    Items are in RAM only, unless saved: by `save`, or after every change with `persist`. A call that fails changes
    nothing; items that it had promoted by then stay stored, and are not stored again by the next call.
    """

    def __init__(self, handle: EngineHandle, agent: str | None = None) -> None:
        super().__init__(handle)
        self._semantic = Semantic(handle)
        self._episodes = Episodes(handle)
        self._agent = agent
        self._lock = threading.RLock()
        self._state = _State()
        # Records promoted by calls that failed afterwards, by item and tier.
        self._promoted: dict[tuple[str, Destination], Record] = {}
        self._agents: dict[str, Working] = {}

    def agent(self, agent: str) -> Working:
        """Return the working memory of an agent, separate from this one."""
        self._scope(agent)
        with self._lock:
            return self._agents.setdefault(agent, Working(self._handle, agent))

    def configure(
        self,
        *,
        capacity: int | None = None,
        policy: Policy | None = None,
        promote_above: float | None = None,
        promote_to: Destination | None = None,
        persist: bool | None = None,
    ) -> list[Evicted]:
        """Change the options given; returns the items that a smaller capacity evicts.

        Evicted items with at least the importance `promote_above` are stored in the tier `promote_to`; a number above
        1 promotes none.
        """
        options: dict[str, Any] = {
            "capacity": capacity, "policy": policy, "promote_above": promote_above, "promote_to": promote_to,
            "persist": persist,
        }  # fmt: skip
        changes = {name: value for name, value in options.items() if value is not None}
        for name, value in changes.items():
            _CHECKS[name](value, name)
        with self._lock:
            state = self._state._replace(**changes)
            evicted = []
            while len(state.items) > state.capacity:
                state, evicted_item = self._evict_from(state)
                evicted.append(evicted_item)
            self._replace_state(state)
            return evicted

    def add(self, item: object, *, importance: float = DEFAULT_IMPORTANCE) -> Added:
        """Add a copy of an item, any JSON value. At capacity one item is evicted first and returned."""
        self._engine.store.check_usable()
        content = checks.check_json_copy(item, "item", MAX_ITEM_BYTES)
        if isinstance(item, str) and not item.strip():
            raise InvalidInput(f"item is {shown(item)}: there is nothing to keep in mind")
        checks.check_unit(importance, "importance")
        new = WorkingItem(
            id=uuid7(), content=content, importance=float(importance), added_at=checks.to_datetime(checks.now_us())
        )
        with self._lock:
            state, evicted = self._state, None
            if len(state.items) >= state.capacity:
                state, evicted = self._evict_from(state)
            self._replace_state(state._replace(items=(*state.items, new)))
        return Added(item=new, evicted=evicted)

    def evict(self) -> Evicted | None:
        """Evict one item as the policy says; None if there is none."""
        self._engine.store.check_usable()
        with self._lock:
            if not self._state.items:
                return None
            state, evicted = self._evict_from(self._state)
            self._replace_state(state)
        return evicted

    def items(self) -> list[WorkingItem]:
        """Return the items, oldest first."""
        return list(self._state.items)

    def clear(self) -> list[WorkingItem]:
        """Remove all items without promoting any; returns them."""
        self._engine.store.check_usable()
        with self._lock:
            items = self._state.items
            self._replace_state(self._state._replace(items=()))
        return list(items)

    def promote(self, item: WorkingItem | str, to: Destination = "semantic") -> Record:
        """Store an item as a semantic memory or as an episode, and remove it from working memory.

        `item` is an evicted item, a current item, or the id of a current item.
        """
        checks.check_choice(to, "to", get_args(Destination))
        with self._lock:
            if not isinstance(item, WorkingItem):
                current = {one.id: one for one in self._state.items}
                if not isinstance(item, str) or item not in current:
                    raise NotFound(f"no item {shown(item)} in working memory: it was never added, or has gone")
                item = current[item]
            record = self._store(item, to)
            remaining = tuple(other for other in self._state.items if other.id != item.id)
            self._replace_state(self._state._replace(items=remaining))
        return record

    def save(self) -> int:
        """Save the items in the store, replacing those saved before, and return their number."""
        with self._lock:
            self._write(self._state.items)
            return len(self._state.items)

    def load(self) -> list[WorkingItem]:
        """Replace the items by the saved ones, the newest that fit the capacity; returns them."""
        with self._lock:
            with self._engine.store.read() as reader:
                text = reader.tiers.working(self._scope(self._agent))
            saved = [] if text is None else stored_json(text, "the saved working memory", list[WorkingItem])
            self._state = self._state._replace(items=tuple(saved[-self._state.capacity :]))
            return self.items()

    def __iter__(self) -> Iterator[WorkingItem]:
        return iter(self.items())

    def __len__(self) -> int:
        return len(self._state.items)

    def _evict_from(self, state: _State) -> tuple[_State, Evicted]:
        """Return the state without the item that the policy evicts; an important one is promoted first."""
        i = 0
        if state.policy == "importance":
            i = min(range(len(state.items)), key=lambda i: (state.items[i].importance, i))
        item = state.items[i]
        above = state.promote_above
        promoted = None if above is None or item.importance < above else self._store(item, state.promote_to)
        remaining = state.items[:i] + state.items[i + 1 :]
        return state._replace(items=remaining), Evicted(item=item, promoted=promoted)

    def _store(self, item: WorkingItem, to: Destination) -> Record:
        known = self._promoted.get((item.id, to))
        if known is not None:
            return known
        text = str(_validated(item))
        if to == "semantic":
            record = self._semantic.add(text, importance=item.importance, agent=self._agent)
        else:
            record = self._episodes.log(text, importance=item.importance, agent=self._agent, valid_from=item.added_at)
        self._promoted[item.id, to] = record
        return record

    def _replace_state(self, state: _State) -> None:
        """Make this the state, after saving it if `persist` is set."""
        if state.persist:
            self._write(state.items)
        self._state = state
        here = {item.id for item in state.items}
        self._promoted = {key: record for key, record in self._promoted.items() if key[0] in here}

    def _write(self, items: Sequence[WorkingItem]) -> None:
        policy = self._engine.write_policy
        valid = [structs.replace(item, content=policy.clean_json(item.content)) for item in map(_validated, items)]
        text = msgspec.json.encode(valid).decode()
        with self._engine.atomic() as writer:
            writer.tiers.save_working(self._scope(self._agent), text, checks.now_us())


class AsyncWorking(AsyncService[Working]):
    """`Working`, awaited."""

    agent = awaited_service(Working.agent, lambda handle, find: AsyncWorking(handle, find))
    configure = awaited(Working.configure)
    add = awaited(Working.add)
    evict = awaited(Working.evict)
    items = awaited(Working.items)
    clear = awaited(Working.clear)
    promote = awaited(Working.promote)
    save = awaited(Working.save)
    load = awaited(Working.load)

    async def __aiter__(self) -> AsyncIterator[WorkingItem]:
        for item in await self.items():
            yield item


def _validated(item: WorkingItem) -> WorkingItem:
    """Return the item as JSON stores it. InvalidInput if the caller has since put other values into it."""
    return structs.replace(item, content=checks.check_json_copy(item.content, "item", MAX_ITEM_BYTES))
