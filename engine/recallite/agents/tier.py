"""A tier of memory: the records of one kind, with fields of its own in their metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, Unpack

from recallite.agents.service_base import AGENT_SCOPES, Service
from recallite.errors import InvalidInput, NotFound
from recallite.model import checks
from recallite.model.filters import Filter, FilterFields
from recallite.model.records import Hits, NewRecord, Record, RecordFields, as_seen
from recallite.model.settings import WritePolicy
from recallite.recall.request import RecallOptions
from recallite.remember.fields import check_ids
from recallite.remember.relations import row_id
from recallite.remember.write import remember_one
from recallite.store.transaction import Reader
from recallite.system.asynchrony import AsyncService, awaited
from recallite.system.messages import shown

Item = TypeVar("Item")
Check: TypeAlias = Callable[[Any, str], Any]


class Tier(Service, Generic[Item]):
    """Records of one kind: `_checks` are those of its own fields, `_items` shows its records."""

    _kind: ClassVar[str]
    _checks: ClassVar[Mapping[str, Check]]

    def recent(self, limit: int = 10, *, agent: str | None = None) -> list[Item]:
        """Return the newest, the newest first."""
        return self._list(agent, limit=limit)

    def search(
        self, /, query: str, limit: int = 10, *, agent: str | None = None, **options: Unpack[RecallOptions]
    ) -> Hits:
        """Return the records that answer `query`; options are those of `recall`."""
        return self._recall(agent, self._kind, query, limit, options)

    def get(self, id: str, *, agent: str | None = None) -> Item:
        """Return the record with this id; NotFound if there is none here. A procedure has a name as well."""
        with self._engine.store.read() as reader:
            return self._item(reader, self._row_id(reader, id, agent))

    def _row_id(self, reader: Reader, id: str, agent: str | None) -> int:
        return row_id(reader, id, self._scope(agent))

    def _items(self, reader: Reader, records: Iterable[Record]) -> list[Item]:
        raise NotImplementedError

    def _item(self, reader: Reader, record_id: int) -> Item:
        record = reader.records.get(record_id)
        if record.kind != self._kind:
            raise NotFound(f"{shown(record.id)} is no {self._kind}: its kind is {record.kind!r}")
        return self._items(reader, [record])[0]

    def _list(
        self, agent: str | None, *, limit: int | None, order: str = "newest", **fields: Unpack[FilterFields]
    ) -> list[Item]:
        """Return records in order, from the scope of an agent and below."""
        filter = Filter(**fields | {"kinds": self._kind}).within(self._scope(agent))
        count = None if limit is None else checks.check_count(limit, "limit")
        with self._engine.store.read() as reader:
            return self._items(reader, reader.records.find(filter, checks.now_us(), order=order, limit=count))

    def _new(self, agent: str | None, text: str, values: Mapping[str, Any], fields: RecordFields) -> NewRecord:
        """Return a record of an agent with the values of the tier's fields, which are checked, and of all others."""
        arguments: dict[str, Any] = {**fields}
        metadata = checks.check_metadata(arguments.pop("metadata", None))
        for name in values:
            if name in metadata:
                raise InvalidInput(f"metadata has the key {name!r}, which is an argument of its own: give {name}=...")
        checked = {name: self._checks[name](value, name) for name, value in values.items()}
        arguments["metadata"] = {**{name: value for name, value in checked.items() if value is not None}, **metadata}
        arguments["tags"] = checks.check_tags(arguments.get("tags", ()))
        arguments["supersedes"] = check_ids(arguments.get("supersedes"), "supersedes")
        scope = "/" if agent is None else AGENT_SCOPES + checks.check_agent(agent)
        return NewRecord(text=text, kind=self._kind, scope=scope, **arguments)


class RecordTier(Tier[Record]):
    """A tier whose items are its records."""

    def _items(self, reader: Reader, records: Iterable[Record]) -> list[Record]:
        return [as_seen(self._engine.counted(record), self._base) for record in records]

    def _remember(
        self, agent: str | None, text: str, values: Mapping[str, Any], fields: RecordFields, policy: WritePolicy
    ) -> Record:
        record = remember_one(self._engine, self._new(agent, text, values, fields), base=self._base, policy=policy)
        return as_seen(self._engine.counted(record), self._base)


T = TypeVar("T", bound=Tier[Any])


class AsyncTier(AsyncService[T]):
    """`Tier`, awaited."""

    recent = awaited(Tier.recent)
    search = awaited(Tier.search)
    get = awaited(Tier.get)


def optional(check: Check) -> Check:
    """Return a check that takes None as well."""
    return lambda value, name: None if value is None else check(value, name)


def check_str(value: object, name: str) -> str:
    """Return a str; InvalidInput if it is none."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {shown(value)}: give a str")
    return value


def check_amount(value: object, name: str) -> float:
    """Return a finite number of at least 0."""
    return checks.check_finite(value, name, minimum=0.0)
