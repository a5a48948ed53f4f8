"""Records and hits as Arrow tables, and Arrow tables as records. Needs the extra `arrow` (pyarrow).

Times are timestamps in microseconds UTC, tags lists of texts, metadata a JSON text, vectors lists of parts of
`fixed_size_list<float>`: a text longer than the embedder's window has several parts, others have one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from recallite.embedding.handle import Identity
from recallite.errors import InvalidInput, RecalliteError
from recallite.model.checks import check_path, check_time, optional_datetime
from recallite.model.records import Hit, Hits, NewRecord, Record
from recallite.remember.embed import EmbeddedText
from recallite.remember.prepare import check_life
from recallite.system.messages import install_command, shown

__all__ = [
    "hit_schema",
    "hits_table",
    "new_records",
    "new_records_table",
    "questions",
    "record_schema",
    "records_table",
]

Table: TypeAlias = Any
"""A pyarrow.Table; pyarrow is imported when a function of this module is called."""

_ROWS = 4096
_TIMES = (
    "created_at", "valid_from", "valid_until", "updated_at", "accessed_at", "expires_at", "recorded_from",
    "recorded_until", "superseded_at", "held_until",
)  # fmt: skip
_LISTS = ("tags", "supersedes", "superseded_by", "contradicts", "match_reasons", "evidence_gaps")
_NUMBERS = ("position", "access_count", "occurrences")
_FLAGS = ("pinned", "valid_resolved", "indexed")
_REALS = ("importance", "base_importance", "score", "confidence")
# What a write reports of itself, and what has a column of another form.
_NO_COLUMN = ("outcome", "cosine", "links", "contradictions", "occurred_at", "source", "supersedes", "signals")
_RECORD_FIELDS = tuple(name for name in Record.__struct_fields__ if name not in _NO_COLUMN[:5])
_HIT_FIELDS = tuple(name for name in Hit.__struct_fields__ if name not in _NO_COLUMN)
_NEW_FIELDS = (*(name for name in NewRecord.__struct_fields__ if name != "vector"), "expires_after")
_VECTOR_COLUMNS = ("vector", "vectors", "token_codes", "embedder", "refused")
_encode = msgspec.json.Encoder().encode


def record_schema(dimension: int | None = None) -> Any:
    """The schema of `records_table`; with vectors of `dimension` components if it is given."""
    fields = [(name, _type(name)) for name in _RECORD_FIELDS]
    return _pyarrow().schema(fields if dimension is None else [*fields, ("vectors", _vectors(dimension))])


def hit_schema(question: Any = None) -> Any:
    """The schema of `hits_table`; `question` is the Arrow type of the numbers or names of questions, int64 if None."""
    pa = _pyarrow()
    return pa.schema(
        [
            ("question", pa.int64() if question is None else question), ("query", pa.string()), ("rank", pa.int32()),
            *((name, _type(name)) for name in _HIT_FIELDS),
            ("source", pa.string()), ("position", pa.int64()), ("path", pa.string()),
            ("supersedes", pa.list_(pa.string())), ("signals", pa.string()),
        ]
    )  # fmt: skip


def records_table(records: Iterable[Record], *, vectors: Mapping[str, NDArray[np.float32]] | None = None) -> Table:
    """Records as a table of `record_schema`, a row each.

    `vectors` are those that `Memory.vectors` gives, by id; a record that is not among them has null. What a write
    reports (outcome, links, contradictions) and the times of repetitions are left out.
    """
    pa = _pyarrow()
    listed = list(records)
    columns = {name: [_value(name, getattr(record, name)) for record in listed] for name in _RECORD_FIELDS}
    dimension = None
    if vectors is not None:
        dimension = next((parts.shape[1] for parts in vectors.values()), 0)
        columns["vectors"] = [[*vectors[record.id]] if record.id in vectors else None for record in listed]
    return pa.table(columns, schema=record_schema(dimension))


def hits_table(hits: Hits | Sequence[Hits], *, questions: Sequence[int | str] | None = None) -> Table:
    """Hits as a table of `hit_schema`, a row each: those of `recall`, or of several questions as of `recall_many`.

    `question` is the number of the question, from 0, or what `questions` calls it; `rank` is 1 for its best hit. A
    question without hits has no row. `signals` is a JSON text.
    """
    pa = _pyarrow()
    answers: Sequence[Hits] = [hits] if isinstance(hits, Hits) else hits
    names: Sequence[int | str] = range(len(answers)) if questions is None else questions
    if len(names) != len(answers):
        raise InvalidInput(f"questions has {len(names)} entries for the hits of {len(answers)}: give one for each")
    rows = [
        (name, answer.query, rank, hit)
        for name, answer in zip(names, answers, strict=True)
        for rank, hit in enumerate(answer, 1)
    ]
    all_hits = [hit for *_, hit in rows]
    sources = [hit.source for hit in all_hits]
    columns: dict[str, Any] = {
        "question": [row[0] for row in rows], "query": [row[1] for row in rows], "rank": [row[2] for row in rows],
        **{name: [_value(name, getattr(hit, name)) for hit in all_hits] for name in _HIT_FIELDS},
        **{
            column: [None if source is None else getattr(source, name) for source in sources]
            for column, name in (("source", "id"), ("position", "position"), ("path", "path"))
        },
        "supersedes": [[former.id for former in hit.supersedes] for hit in all_hits],
        "signals": [_encode(hit.signals).decode() for hit in all_hits],
    }  # fmt: skip
    named = any(isinstance(name, str) for name in names)
    return pa.table(columns, schema=hit_schema(pa.string() if named else None))


def new_records_table(records: Iterable[NewRecord]) -> Table:
    """New records as a table that `new_records` reads back; what an `EmbeddedText` holds is in columns of its own.

    These are `vectors`, `token_codes`, `refused` and `embedder` (the fingerprint, name and dimension as JSON). A record
    with another vector has it in `vectors`. All vectors of a table have one dimension.
    """
    pa = _pyarrow()
    listed = list(records)
    lives = [check_life(record.expires_at) for record in listed]  # where it is given as a length of time

    def column(name: str) -> list[Any]:
        if name == "expires_after":
            return lives
        values = [getattr(record, name) for record in listed]
        if name == "expires_at":
            values = [value if life is None else None for value, life in zip(values, lives, strict=True)]
        if name in _TIMES:
            return [optional_datetime(check_time(value, name)) for value in values]
        return [_value(name, value) for value in values]

    columns = {name: column(name) for name in _NEW_FIELDS}
    fields = [(name, _type(name)) for name in _NEW_FIELDS]
    if any(record.vector is not None for record in listed):
        embedded = [record.vector if isinstance(record.vector, EmbeddedText) else None for record in listed]
        vectors = [
            [np.frombuffer(part, "<f4") for part in record.vector.vectors]
            if isinstance(record.vector, EmbeddedText)
            else None if record.vector is None else [*np.atleast_2d(np.asarray(record.vector, np.float32))]
            for record in listed
        ]  # fmt: skip
        dimension = next((len(parts[0]) for parts in vectors if parts), 0)
        columns["vectors"] = vectors
        columns["token_codes"] = [None if text is None else [*text.codes] for text in embedded]
        columns["refused"] = [None if text is None else text.refused for text in embedded]
        columns["embedder"] = [None if text is None else _encode(text.embedder).decode() for text in embedded]
        fields += [
            ("vectors", _vectors(dimension)), ("token_codes", pa.list_(pa.binary())), ("refused", pa.string()),
            ("embedder", pa.string()),
        ]  # fmt: skip
    try:
        return pa.table(columns, schema=pa.schema(fields))
    except (TypeError, ValueError, OverflowError) as fault:
        raise InvalidInput(f"a field of a record does not fit its column: {fault}") from fault


def new_records(source: object, *, batch_rows: int = _ROWS) -> Iterator[NewRecord]:
    """The rows of Arrow data as items for `remember_many`, a batch in memory at a time.

    `source` is a Parquet file by its path, a pyarrow Table, RecordBatch or RecordBatchReader, an iterable of batches,
    or any object with `__arrow_c_stream__`, as those of Polars and DuckDB. Columns are the arguments of `remember`, of
    which `text` is required; null leaves one out. Of a `records_table` the columns that the store keeps for itself
    (access counts, times of updates) are passed over, and so are closed versions. A vector is in `vector`, or its parts
    in `vectors`. Metadata is a JSON text or a struct.

    Raises InvalidInput for another column, and for a value that cannot be read, with the number of its row.
    """
    row = 0
    for batch in _batches(source, batch_rows):
        yield from _rows(batch, row)
        row += batch.num_rows


def questions(source: object) -> tuple[list[int | str], list[str], list[Any] | None]:
    """Read questions from Arrow data: their names, the queries, and their vectors if it has any.

    They are in the columns `question` (ints or texts; without it their numbers), `query` and `vector`. Raises
    InvalidInput if there is no query, or a null.
    """
    names: list[int | str] = []
    queries: list[str] = []
    vectors: list[Any] = []
    for batch in _batches(source, _ROWS):
        if "query" not in batch.schema.names:
            raise InvalidInput(f"the table has no column query, only {', '.join(batch.schema.names)}")
        if "question" in batch.schema.names:
            names += batch.column("question").to_pylist()
        else:
            names += range(len(queries), len(queries) + batch.num_rows)
        queries += batch.column("query").to_pylist()
        if "vector" in batch.schema.names:
            vectors += map(_floats, batch.column("vector"))
    for i, (name, query) in enumerate(zip(names, queries, strict=True), 1):
        if name is None or not isinstance(query, str):
            raise InvalidInput(f"row {i}: its question or query is {shown(name if name is None else query)}")
    return names, queries, vectors or None


def _rows(batch: Any, first: int) -> Iterator[NewRecord]:
    known = {*_NEW_FIELDS, *_RECORD_FIELDS, *_VECTOR_COLUMNS}
    names = batch.schema.names
    unknown = [name for name in names if name not in known]
    if unknown or "text" not in names or len(set(names)) < len(names):
        wrong = (
            f"the column {shown(unknown[0])}" if unknown else "a column twice" if "text" in names else "no column text"
        )
        raise InvalidInput(f"the table has {wrong}: use {', '.join(_NEW_FIELDS)}, and vector or vectors")
    pa = _pyarrow()
    columns: dict[str, list[Any]] = {}
    for name in names:
        if name in _NEW_FIELDS or name == "recorded_until":
            column = batch.column(name)
            if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
                column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
            columns[name] = column.to_pylist()
    vectors = _given_vectors(batch)
    closed = columns.pop("recorded_until", None)
    for i in range(batch.num_rows):
        if closed is not None and closed[i] is not None:
            continue
        fields = {name: values[i] for name, values in columns.items() if values[i] is not None}
        if vectors is not None and (vector := vectors[i]) is not None:
            fields["vector"] = vector
        try:
            yield _new_record(fields)
        except RecalliteError as reason:
            raise InvalidInput(f"row {first + i + 1}: {reason}", reason.reason) from reason


def _new_record(fields: dict[str, Any]) -> NewRecord:
    if "text" not in fields:
        raise InvalidInput("the text is null")
    metadata = fields.get("metadata")
    if isinstance(metadata, str):
        try:
            fields["metadata"] = msgspec.json.decode(metadata, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as fault:
            raise InvalidInput(f"metadata is {shown(metadata)}: give a JSON object ({fault})") from None
    for name in ("tags", "supersedes"):
        if isinstance(fields.get(name), list):
            fields[name] = tuple(fields[name])
    if isinstance(life := fields.pop("expires_after", None), timedelta):
        fields["expires_at"] = life  # from when it is stored
    return NewRecord(**fields)


def _given_vectors(batch: Any) -> list[Any] | None:
    """Return for each row its vector, the parts of one, an EmbeddedText, or None."""
    names = batch.schema.names
    column = next((name for name in ("vectors", "vector") if name in names), None)
    nothing = [None] * batch.num_rows
    embedders, refused, codes = (
        batch.column(name).to_pylist() if name in names else nothing for name in ("embedder", "refused", "token_codes")
    )
    if column is None and not any(refused):
        return None
    values = nothing if column is None else [*map(_floats, batch.column(column))]
    identities: dict[str, Identity] = {}
    vectors: list[Any] = []
    for value, embedder, code, refusal in zip(values, embedders, codes, refused, strict=True):
        if embedder is None:
            vectors.append(value)
            continue
        if embedder not in identities:
            try:
                identities[embedder] = msgspec.json.decode(embedder, type=Identity)
            except msgspec.DecodeError as fault:
                raise InvalidInput(f"embedder is {shown(embedder)}: {fault}") from None
        parts = () if value is None else tuple(part.astype("<f4").tobytes() for part in np.atleast_2d(value))
        stored = parts or refusal is not None
        vectors.append(EmbeddedText(identities[embedder], parts, tuple(code or ()), refusal) if stored else None)
    return vectors


def _floats(value: Any) -> NDArray[np.float32] | None:
    """A list of numbers as float32 (dimension,), a list of lists as (parts, dimension)."""
    if not value.is_valid:
        return None
    types, array = _pyarrow().types, value.values
    try:
        if not types.is_fixed_size_list(array.type):
            return np.asarray(array.to_pylist() if types.is_list(array.type) else array, np.float32)
        return np.asarray(array.flatten(), np.float32).reshape(len(array), -1)
    except (TypeError, ValueError):
        raise InvalidInput("a vector is no list of numbers, or its parts have different lengths") from None


def _batches(source: object, batch_rows: int) -> Iterator[Any]:
    pa = _pyarrow()
    if isinstance(source, str | os.PathLike):
        import pyarrow.parquet

        path = check_path(source)
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                yield from file.iter_batches(batch_size=batch_rows)
        except (OSError, pa.ArrowException) as fault:
            raise InvalidInput(f"{path} cannot be read as Parquet: {fault}") from fault
    elif isinstance(source, pa.Table):
        yield from source.to_batches(max_chunksize=batch_rows)
    elif isinstance(source, pa.RecordBatch):
        yield from pa.Table.from_batches([source]).to_batches(max_chunksize=batch_rows)
    elif hasattr(source, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(source)
    elif isinstance(source, Iterable) and not isinstance(source, bytes | Mapping):
        for batch in source:
            if not isinstance(batch, pa.RecordBatch | pa.Table):
                raise InvalidInput(f"a batch is {shown(batch)}: give pyarrow record batches or tables")
            yield from _batches(batch, batch_rows)
    else:
        raise InvalidInput(f"source is {shown(source)}: give Arrow data, or the path of a Parquet file")


def _value(name: str, value: Any) -> Any:
    """A field of a record or hit as its column takes it."""
    if name == "metadata":
        return None if value is None else _encode(value).decode()
    if name == "supersedes" and isinstance(value, str):
        return [value]
    return value


def _type(name: str) -> Any:
    pa = _pyarrow()
    if name in _TIMES:
        return pa.timestamp("us", tz="UTC")
    if name in _LISTS:
        return pa.list_(pa.string())
    if name == "expires_after":
        return pa.duration("us")
    for names, kind in ((_NUMBERS, pa.int64()), (_FLAGS, pa.bool_()), (_REALS, pa.float64())):
        if name in names:
            return kind
    return pa.string()


def _vectors(dimension: int) -> Any:
    pa = _pyarrow()
    return pa.list_(pa.list_(pa.float32(), dimension))


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise InvalidInput(f"Arrow tables need pyarrow: {install_command('arrow')}") from None
    return pyarrow
