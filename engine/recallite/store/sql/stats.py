"""Figures about a store, for `memory.store.stats`."""

from __future__ import annotations

from typing import Any

from recallite.store.transaction import Writer


def figures(tx: Writer, scope: str) -> dict[str, Any]:
    """Counts, as `Stats` names them, of `scope` and its descendants; what a database tells of itself it adds."""
    embedder = tx.vectors.active_embedder()
    visible = tx.conditions.in_scopes([scope])
    seen = f"(SELECT r.id FROM record r WHERE {visible.sql})"

    def count(sql: str, *values: Any) -> int:
        number: int = tx.connection.execute(f"SELECT count(*) FROM {sql}", values).get
        return number

    def records(condition: str) -> int:
        return count(f"record r WHERE {condition} AND {visible.sql}", *visible.values)

    kinds: Any = tx.connection.execute(
        f"SELECT r.kind, count(*) FROM record r WHERE r.recorded_until IS NULL AND {visible.sql} GROUP BY r.kind",
        visible.values,
    )
    return {
        "path": tx.path,
        "records": records("r.recorded_until IS NULL"),
        "superseded": records("r.recorded_until IS NULL AND r.superseded_at IS NOT NULL"),
        "versions": records("r.recorded_until IS NOT NULL"),
        "to_compare": tx.uncompared.count() if scope == "/" else None,
        "pending": records("r.embedding_state = 'pending'"),
        "refused": tx.vectors.count_refused(scope),
        "vectors": count(f"vector WHERE record_id IN {seen}", *visible.values),
        **_codes(tx, seen, visible.values),
        "links": count(f"link WHERE source_id IN {seen}", *visible.values),
        "sources": count(
            f"(SELECT DISTINCT r.source_id FROM record r WHERE r.source_id IS NOT NULL AND {visible.sql})",
            *visible.values,
        ),
        "terms": tx.lexicon.size() if scope == "/" else None,
        "kinds": dict(kinds),
        "services": tx.scopes.service_counts(scope),
        "sequence": tx.changes.last() if scope == "/" else None,
        "embedder": None if embedder is None else embedder.name,
        "dimension": None if embedder is None else embedder.dimension,
        "vector_type": None if embedder is None else embedder.vector_type,
    }


def _codes(tx: Writer, seen: str, values: tuple[Any, ...]) -> dict[str, int]:
    """The number of vectors that have codes of their tokens, and the bytes of these."""
    everything = tx.connection.execute("SELECT count(*), sum(length(codes)) FROM token_code")
    if values:
        everything = tx.connection.execute(
            "SELECT count(*), sum(length(c.codes)) FROM token_code c JOIN vector v ON v.id = c.vector_id "
            f"WHERE v.record_id IN {seen}",
            values,
        )
    row: Any = everything.fetchone()
    return {"token_codes": row[0], "token_code_bytes": int(row[1] or 0)}
