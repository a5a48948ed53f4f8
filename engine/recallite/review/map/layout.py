"""The plane: vectors to coordinates by UMAP, or by their first two principal components."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from recallite.review.map.neighbours import Neighbours, nearest_neighbours, principal_components

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Told = Callable[[str, float], object]
    """Is told the stage, and which share of it is done."""


# With fewer vectors there is no neighbourhood to keep: they are placed by their principal components.
LEAST_FOR_UMAP = 30
_NEIGHBOURS = 15
_LEAST_DISTANCE = 0.1
# A fixed seed has umap-learn lay out with one thread: the same store has the same map. It costs nothing: 20,000 vectors
# took 14 s, and with two threads and no seed 13 to 23 s.
_SEED = 42
# The spread of the coordinates from which UMAP starts, as in its own start from principal components.
_START_SPREAD = 10.0
_START_NOISE = 1e-4
# What vectors that are all the same differ by after float32 products.
_LEAST_EXTENT = 1e-5


def lay_out(vectors: NDArray[np.float32], method: str, told: Told) -> tuple[str, NDArray[np.float32]]:
    """The method used, and coordinates float32 (n, 2) from 0 to 1, with the same scale in both directions.

    vectors (n, dimension) have unit length. What is near another stays near it with "umap"; with "pca" only the two
    directions in which the vectors differ most are kept. Of 10,000 real vectors "umap" keeps 4.5 of the 10 nearest
    among the 10 nearest, "pca" 0.15; on 50 principal components in place of the vectors "umap" kept 3.7.
    """
    if method == "umap" and len(vectors) < LEAST_FOR_UMAP:
        method = "pca"
    told("components", 0.0)
    start = principal_components(vectors, 2)
    if method == "pca":
        return method, _within_unit_square(start)
    told("neighbours", 0.0)
    near = nearest_neighbours(vectors, _NEIGHBOURS, seed=_SEED, after=lambda share: told("neighbours", share))
    return method, _within_unit_square(_umap(start, near, told))


def _umap(start: NDArray[np.float32], near: Neighbours, told: Told) -> NDArray[np.float32]:
    told("loading", 0.0)
    umap, umap_, layouts = _umap_learn()
    # Compiled once and not in every process: 9 s, and 4 s.
    if os.environ.get("NUMBA_CACHE_DIR"):
        compiled = [umap_.smooth_knn_dist, umap_.compute_membership_strengths]
        compiled.append(layouts._get_optimize_layout_euclidean_single_epoch_fn(False))
        for function in compiled:
            function.enable_caching()
    layouts.tqdm = _reporting(told)
    told("layout", 0.0)
    spread = start * (_START_SPREAD / max(float(np.abs(start).max()), _LEAST_EXTENT))
    noise = np.random.default_rng(_SEED).normal(scale=_START_NOISE, size=spread.shape)
    begin = (spread + noise).astype(np.float32)
    # With neighbours and a start given, UMAP reads of the vectors only how many there are.
    mapper = umap.UMAP(
        n_neighbors=_NEIGHBOURS, min_dist=_LEAST_DISTANCE, metric="cosine", init=begin, random_state=_SEED, n_jobs=1,
        precomputed_knn=(near.places, np.maximum(0.0, 1.0 - near.cosines).astype(np.float32), None),
        force_approximation_algorithm=True,
    )  # fmt: skip
    found: NDArray[np.float32] = mapper.fit_transform(begin)
    lost = ~np.isfinite(found).all(axis=1)  # what is connected to nothing
    found[lost] = begin[lost]
    return found


def _umap_learn() -> tuple[Any, Any, Any]:
    """umap-learn and two of its modules, without the libraries that it imports and that are not used here.

    The import of pynndescent compiles for 34 s where no compiled code is kept yet. That of TensorFlow, where it is
    installed, takes seconds.
    """
    names: tuple[tuple[str, str, Any], ...] = (
        ("pynndescent", "NNDescent", type("NNDescent", (), {})),
        ("pynndescent.distances", "named_distances", {}),
        ("pynndescent.sparse", "sparse_named_distances", {}),
    )
    unused: dict[str, Any] = {"tensorflow": None}
    for module, attribute, value in names:
        unused[module] = ModuleType(module)
        setattr(unused[module], attribute, value)
    sys.modules.update(unused)
    try:
        import umap
        from umap import layouts, umap_
    except ImportError:  # a version that needs more of them
        for name in unused:
            del sys.modules[name]
        import umap
        from umap import layouts, umap_
    return umap, umap_, layouts


def _reporting(told: Told) -> Callable[..., Iterator[Any]]:
    """What umap-learn iterates over its epochs with, in place of a progress bar."""

    def each(epochs: Iterable[Any], **_: object) -> Iterator[Any]:
        every = list(epochs)
        for done, epoch in enumerate(every):
            told("layout", done / len(every))
            yield epoch

    return each


def _within_unit_square(points: NDArray[np.float32]) -> NDArray[np.float32]:
    low, high = points.min(axis=0), points.max(axis=0)
    extent = float((high - low).max())
    if extent <= _LEAST_EXTENT:
        return np.full(points.shape, 0.5, dtype=np.float32)
    scaled: NDArray[np.float32] = (points - (low + high) / 2) / extent + 0.5
    return np.clip(scaled, 0.0, 1.0).astype(np.float32)
