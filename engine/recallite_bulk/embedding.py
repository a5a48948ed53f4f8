"""Embedding batches of records away from their store, as it would embed them itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

import msgspec
from msgspec import structs

from recallite.embedding.handle import EmbedderHandle, Identity
from recallite.embedding.protocol import Embedder
from recallite.errors import EmbedderError, InvalidInput, InvalidItem, RecalliteError
from recallite.model.checks import join_scopes
from recallite.model.environment import named_embedder
from recallite.model.policies import WritePolicy
from recallite.model.records import NewRecord
from recallite.model.settings import Settings
from recallite.remember.embed import embed_rows
from recallite.remember.embedded import EmbeddedText
from recallite.remember.identity import content_id
from recallite.remember.prepare import as_new_record, prepare
from recallite.remember.write import is_skipped
from recallite.store.values import Row
from recallite_bulk.arrow import Table, new_records, new_records_table

_FIELDS = NewRecord.__struct_fields__


class Embed:
    """Embeds batches of records for a store with these settings; loads the model once.

    - embedder: as for `Memory`; None takes that of the settings
    - policy: the write policy; None takes that of the settings. What it redacts is gone from what is returned
    - base: the scope of the handle by which the records will be written
    - known: returns those of some ids that are stored already; their records are left out
    """

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        embedder: Embedder | str | None = None,
        policy: WritePolicy | None = None,
        base: str = "/",
        known: Callable[[list[str]], Set[str]] | None = None,
    ) -> None:
        self._known = known
        self._settings = settings or Settings()
        self._policy = policy or self._settings.write_policy
        self._base = join_scopes("/", base) or "/"
        spec: object = self._settings.embedder_spec if embedder is None else embedder
        if isinstance(spec, str):
            spec = named_embedder(spec)
        self._embedder = EmbedderHandle(spec, query_cache_size=0, token_codes=self._settings.token_codes)

    def __call__(self, batch: object) -> Table:
        """New records as Arrow data, with ids and vectors: what `recallite_bulk.arrow.new_records_table` gives.

        `batch` is what `recallite_bulk.arrow.new_records` takes. Raises InvalidInput, with the number of the row.
        """
        try:
            return new_records_table(self.records(new_records(batch)))
        except InvalidItem as refused:
            raise InvalidInput(f"row {refused.position + 1}: {refused.error}") from refused.error

    def records(self, items: Iterable[object]) -> list[NewRecord]:
        """Items as `remember_many` takes them, as records with an id and an `EmbeddedText` for a vector.

        An item without an id gets its `content_id`. A text that the policy skips as junk stays as it is, and one that
        the embedder fails for has no vector: the store will leave it out, or embed it. Raises InvalidItem.
        """
        records, rows = [], []
        for place, item in enumerate(items):
            try:
                record = _plain(as_new_record(item))
                rows.append(self._row(record))
            except RecalliteError as reason:
                raise InvalidItem(place, 0, reason) from reason
            records.append(record)
        records = [self._named(record, row) for record, row in zip(records, rows, strict=True)]
        if self._known is not None:
            known = self._known([record.id for record in records if record.id is not None])
            fresh = [place for place, record in enumerate(records) if record.id not in known]
            records, rows = [records[place] for place in fresh], [rows[place] for place in fresh]
        wanted = [row for record, row in zip(records, rows, strict=True) if record.vector is None and row.indexed]
        identity = self._embed([row for row in wanted if row.named or not is_skipped(row, self._policy)])
        return [_embedded(record, row, identity) for record, row in zip(records, rows, strict=True)]

    def _row(self, record: NewRecord) -> Row:
        """The row that the store will make, for the text that it will embed."""
        limit = self._settings.max_text_chars
        if isinstance(record.vector, EmbeddedText):
            record = structs.replace(record, vector=None)
        return prepare(record, base=self._base, max_text_chars=limit, policy=self._policy)

    def _embed(self, rows: list[Row]) -> Identity | None:
        if not rows or not self._embedder.enabled:
            return None
        try:
            identity = self._embedder.identity()
        except EmbedderError:
            return None
        embed_rows(self._embedder, rows, [None] * len(rows), identity)
        return identity

    def _named(self, record: NewRecord, row: Row) -> NewRecord:
        """The record as it may leave this process: with an id, unless it is junk, and without what is redacted."""
        if self._policy.redact is not None:
            metadata = None if row.metadata is None else msgspec.json.decode(row.metadata)
            record = structs.replace(record, text=row.text, context=row.context, metadata=metadata)
        if record.id is not None or is_skipped(row, self._policy):
            return record
        return structs.replace(record, id=content_id(record, self._base))


def _embedded(record: NewRecord, row: Row, identity: Identity | None) -> NewRecord:
    if identity is None or record.vector is not None or not (row.vectors or row.refused is not None):
        return record
    return structs.replace(record, vector=EmbeddedText(identity, row.vectors, row.codes, row.refused))


def _plain(record: NewRecord) -> NewRecord:
    """The record without what a subclass has besides."""
    if type(record) is NewRecord:
        return record
    life = getattr(record, "expires_after", None)
    return NewRecord(**{name: getattr(record, name) for name in _FIELDS} | ({"expires_at": life} if life else {}))
