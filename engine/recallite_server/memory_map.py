"""The map of memories: their vectors on a plane, along the two directions in which they differ most."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Unpack

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from recallite.errors import InvalidInput
from recallite.memory import Memory
from recallite.model.checks import now_us
from recallite.model.filters import Filter, FilterFields
from recallite.plugin import EngineHandle, engine_of
from recallite.store.sql.meta import Commit
from recallite.store.sql.record_reading import Labels
from recallite.store.sql.vectors import EmbedderRow
from recallite.store.transaction import Reader
from recallite.text.words import STOP_WORDS

MAX_POINTS = 100_000
"""The most points of a scope: of more memories an even sample is placed."""
# The main directions, and the centres of clusters, of a sample are near those of all.
_SAMPLE = 5_000
_BLOCK_ROWS = 2_000
# The texts that name the clusters, and the part of each that is read.
_NAMING_SAMPLE, _NAMING_CHARS = 2_000, 400
# Power iteration on more columns than are needed converges in fewer rounds.
_COLUMNS = 8
_ROUNDS = 20
# Vectors that are all the same differ by this much after float32 products.
_MIN_EXTENT = 1e-5
_MAX_SCOPES = 16
# Of coordinates in JSON: a ten thousandth of the plane is less than a pixel.
_DECIMALS = 4
_LEAST_POINTS, _MOST_CLUSTERS, _NAME_WORDS = 12, 10, 3
_WORD = re.compile(r"[^\W\d_]{3,}")


class MapPoints(Struct, frozen=True, kw_only=True, eq=False):
    """Memories on the plane. Point i is that of the memory ids[i]; x and y are float32 (n,) from 0 to 1.

    scope, kind and source are int32 (n,): indices of the lists of names `scopes`, `kinds` and `sources`; a source of -1
    is none. Chunks of documents have the kind "chunk". `cluster` is an index of `clusters`, groups of points that lie
    together, which are named by the words that tell them apart; -1 if there are fewer than 12 points. `superseded` are
    the places of points that another supersedes though they may still hold. `total` counts the memories that the filter
    matches. Those without a vector have no point, nor have those outside the sample, if `sampled`. `left_out` counts
    the memories that others have surely replaced.
    """

    ids: list[str]
    x: NDArray[np.float32]
    y: NDArray[np.float32]
    scope: NDArray[np.int32]
    scopes: list[str]
    kind: NDArray[np.int32]
    kinds: list[str]
    source: NDArray[np.int32]
    sources: list[str]
    cluster: NDArray[np.int32]
    clusters: list[str]
    superseded: list[int]
    total: int
    left_out: int
    sampled: bool = False

    def __len__(self) -> int:
        return len(self.ids)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values, column by column: 100,000 points take 6.1 MB, 3.9 MB of it ids."""
        return {
            name: value.astype(np.float64).round(_DECIMALS).tolist() if isinstance(value, np.ndarray) else value
            for name, value in ((name, getattr(self, name)) for name in self.__struct_fields__)
        }


class _Plane(NamedTuple):
    """Coordinates (n, 2) of the records with these row ids, ascending, as of a commit."""

    commit: Commit
    ids: NDArray[np.int64]
    coordinates: NDArray[np.float32]
    sampled: bool
    clusters: NDArray[np.int32]
    names: list[str]


class MemoryMap:
    """The place of each memory of a store on a plane, near to those that are like it.

    One instance serves all handles of a store in a process, from any thread. A scope is placed when its points are
    asked for, and again when the store has changed since; coordinates are kept in memory only. The same memories always
    have the same places.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._store = engine_of(memory).store
        self._lock = threading.Lock()
        self._planes: dict[str, _Plane] = {}

    def points(
        self, handle: Memory | None = None, *, filter: Filter | None = None, **fields: Unpack[FilterFields]
    ) -> MapPoints:
        """The points of the memories that a filter (a `Filter`, or its fields) matches, in the order of storing.

        With a `handle` of the same store only those within its scope, whose names are relative to it; else those of the
        memory that the map was made with. The filter takes no `as_of`: there are no points of the past.
        """
        engine = engine_of(self._memory if handle is None else handle)
        if engine.store is not self._store:
            raise InvalidInput("handle is of another store: give a handle of the store whose map this is")
        bound = engine.within(filter, fields, takes_as_of=False)
        with engine.read() as reader:
            plane = self._plane(reader, engine)
            labels = reader.records.labels(bound, now_us())
            left_out = reader.records.count_replaced(bound, now_us())
        return _points(labels, plane, engine.scope, left_out)

    def _plane(self, reader: Reader, engine: EngineHandle) -> _Plane:
        commit = reader.changes.commit()
        with self._lock:
            plane = self._planes.get(engine.scope)
            if plane is None or plane.commit != commit or reader.uncommitted:
                everything = engine.within(Filter(include_superseded=True))
                plane = _make_plane(
                    reader, commit, np.array(reader.records.matching_ids(everything, now_us()), np.int64)
                )
                if not reader.uncommitted:  # it may be rolled back
                    self._planes.pop(engine.scope, None)
                    self._planes[engine.scope] = plane
                    if len(self._planes) > _MAX_SCOPES:
                        del self._planes[next(iter(self._planes))]
            return plane


def _make_plane(reader: Reader, commit: Commit, ids: NDArray[np.int64]) -> _Plane:
    sampled = len(ids) > MAX_POINTS
    ids = _every_nth(ids, MAX_POINTS)
    embedder = reader.vectors.active_embedder()
    if embedder is None:
        return _Plane(commit, ids[:0], np.empty((0, 2), np.float32), sampled, np.empty(0, np.int32), [])
    axes = principal_axes(_unit_vectors(reader, _every_nth(ids, _SAMPLE), embedder)[1])
    blocks = []
    for start in range(0, len(ids), _BLOCK_ROWS):
        placed_ids, vectors = _unit_vectors(reader, ids[start : start + _BLOCK_ROWS], embedder)
        blocks.append((placed_ids, vectors @ axes))
    all_ids = np.concatenate([ids[:0], *(block[0] for block in blocks)])
    coordinates = np.concatenate([np.empty((0, 2), dtype=np.float32), *(block[1] for block in blocks)])
    coordinates = _within_unit_square(coordinates)
    clusters = clusters_of(coordinates)
    naming = _every_nth(np.arange(len(all_ids)), _NAMING_SAMPLE)
    texts = [record.text[:_NAMING_CHARS] for record in reader.records.get_many(all_ids[naming].tolist())]
    return _Plane(commit, all_ids, coordinates, sampled, clusters, cluster_names(texts, clusters[naming]))


def _every_nth(ids: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    return ids[:: max(1, -(-len(ids) // limit))]


def _unit_vectors(
    reader: Reader, ids: NDArray[np.int64], embedder: EmbedderRow
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the ids of the records that have a vector, and a unit vector of each: of a long text its parts' mean."""
    values = reader.vectors.values_of(ids.tolist(), embedder)
    counts = np.fromiter(map(len, values.values()), dtype=np.int64, count=len(values))
    joined = b"".join(value for parts in values.values() for value in parts)
    vectors = np.nan_to_num(np.frombuffer(joined, dtype="<f4").reshape(-1, embedder.dimension))
    if len(vectors) > len(counts):
        vectors = np.add.reduceat(vectors, np.cumsum(counts) - counts, axis=0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float32] = vectors / np.maximum(lengths, np.finfo(np.float32).tiny)
    return np.fromiter(values, dtype=np.int64, count=len(values)), unit


def principal_axes(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the two unit directions (dimension, 2) in which vectors differ most; zeros for those that they lack.

    The largest loading of each is positive, so that its sign does not depend on the machine.
    """
    dimension = vectors.shape[1]
    axes = np.random.default_rng(0).standard_normal((dimension, min(_COLUMNS, dimension)), dtype=np.float32)
    if len(vectors):
        vectors = vectors - vectors.mean(axis=0)
    for _ in range(_ROUNDS):
        axes = np.linalg.qr(vectors.T @ (vectors @ axes)).Q
    axes = (axes @ np.linalg.svd(vectors @ axes, full_matrices=False).Vh.T)[:, :2]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    padded = np.zeros((dimension, 2), dtype=np.float32)
    padded[:, : axes.shape[1]] = axes * np.where(largest < 0, -1, 1)
    return padded


def _within_unit_square(coordinates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale by the same factor in both directions."""
    if not len(coordinates):
        return coordinates
    low, high = coordinates.min(axis=0), coordinates.max(axis=0)
    extent = float((high - low).max())
    if extent <= _MIN_EXTENT:
        return np.full_like(coordinates, 0.5)
    scaled: NDArray[np.float32] = ((coordinates - (low + high) / 2) / extent + 0.5).clip(0, 1)
    return scaled


def _points(labels: Labels, plane: _Plane, base: str, left_out: int) -> MapPoints:
    _, rows, indices = np.intersect1d(labels.ids, plane.ids, assume_unique=True, return_indices=True)
    scope, scopes = _numbered(labels.scopes[rows], labels.scope_names)
    source, sources = _numbered(labels.sources[rows], labels.source_names)
    kinds, kind = np.unique(np.array(labels.kinds, dtype=object)[rows].astype(str), return_inverse=True)
    prefix = "" if base == "/" else base
    return MapPoints(
        ids=[labels.public_ids[row] for row in rows.tolist()],
        x=plane.coordinates[indices, 0], y=plane.coordinates[indices, 1],
        scope=scope, scopes=[name.removeprefix(prefix) or "/" for name in scopes],
        kind=kind.astype(np.int32), kinds=kinds.tolist(), source=source, sources=sources,
        cluster=plane.clusters[indices], clusters=plane.names,
        superseded=np.flatnonzero(labels.superseded[rows]).tolist(), total=len(labels.ids), left_out=left_out,
        sampled=plane.sampled,
    )  # fmt: skip


def _numbered(ids: NDArray[np.int64], names: dict[int, str]) -> tuple[NDArray[np.int32], list[str]]:
    """Return ids as indices of the list of the names that occur; -1 stays."""
    occurring = np.unique(ids[ids >= 0])
    indices = np.where(ids < 0, -1, np.searchsorted(occurring, ids)).astype(np.int32)
    return indices, [names[number] for number in occurring.tolist()]


def clusters_of(points: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the cluster of each point (n, 2), found by k-means; the same points have the same clusters.

    -1 for all of fewer than 12 points. The centres are those of an even sample.
    """
    if len(points) < _LEAST_POINTS:
        return np.full(len(points), -1, dtype=np.int32)
    sample = points[:: -(-len(points) // _SAMPLE)]
    count = min(_MOST_CLUSTERS, round(math.sqrt(len(sample) / 3)))
    draw = np.random.default_rng(0)
    centres = sample[:1]
    while len(centres) < count:  # k-means++: what is far from all centres is a likely one
        weights = _squares(sample, centres).min(axis=1)
        if not (total := float(weights.sum())):
            break
        centres = np.vstack([centres, sample[draw.choice(len(sample), p=weights / total)]])
    for _ in range(_ROUNDS):
        nearest = _squares(sample, centres).argmin(axis=1)
        members = np.bincount(nearest, minlength=len(centres))[:, None]
        sums = np.stack([np.bincount(nearest, sample[:, axis], len(centres)) for axis in (0, 1)], axis=1)
        centres = np.where(members, sums / np.maximum(members, 1), centres)
    clusters: NDArray[np.int32] = _squares(points, centres).argmin(axis=1).astype(np.int32)
    return clusters


def cluster_names(texts: Sequence[str], clusters: NDArray[np.int32]) -> list[str]:
    """Return the three words that tell each cluster from the others: class TF-IDF (Grootendorst 2022).

    A text counts a word once. A word names the cluster with the greatest share of texts that have it, and no other. A
    cluster without such words has an empty name.
    """
    counts = [Counter[str]() for _ in range(int(clusters.max(initial=-1)) + 1)]
    for text, cluster in zip(texts, clusters.tolist(), strict=True):
        if cluster >= 0:
            counts[cluster].update(set(_WORD.findall(text.lower())) - STOP_WORDS)
    sizes: list[int] = np.bincount(clusters[clusters >= 0], minlength=len(counts)).tolist()
    everywhere = sum(counts, Counter[str]())
    average = everywhere.total() / max(len(counts), 1)
    owner: dict[str, tuple[float, int]] = {}
    for at, words in enumerate(counts):
        for word, count in words.items():
            owner[word] = max(owner.get(word, (0.0, 0)), (count / sizes[at], -at))

    def rank(words: Counter[str], word: str) -> tuple[float, str]:
        return -words[word] * math.log1p(average / everywhere[word]), word

    return [
        ", ".join(sorted((word for word in words if owner[word][1] == -at), key=partial(rank, words))[:_NAME_WORDS])
        for at, words in enumerate(counts)
    ]


def _squares(points: NDArray[np.float32], centres: NDArray[np.floating]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = ((points[:, None].astype(np.float64) - centres[None]) ** 2).sum(axis=2)
    return squares
