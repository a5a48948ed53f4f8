"""What the map of memories is and how far it is."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from recallite.model.records import Plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Method = Literal["umap", "pca"]
Status = Literal["absent", "computing", "ready", "failed"]
# Of coordinates in JSON: a ten thousandth of the plane is less than a pixel.
_DECIMALS = 4


class MapState(Plain, frozen=True, kw_only=True):
    """How far the map is.

    - status: "absent", "computing", "ready", or "failed" if the last attempt to compute it failed
    - stage, progress: what the computing is at ("reading", "starting", "components", "neighbours", "loading",
      "layout"), and about which share of it all is done
    - method: by which method the points were computed: "umap", or "pca" for two principal components; None without any
    - computed_at: when; placed: how many memories have a point; added: how many of them came later, and stand among
      their nearest neighbours
    - failure: why the last attempt failed
    """

    status: Status
    stage: str | None = None
    progress: float | None = None
    method: Method | None = None
    computed_at: datetime | None = None
    placed: int = 0
    added: int = 0
    failure: str | None = None


class MapPoints(Struct, frozen=True, kw_only=True, eq=False):
    """Memories on the plane. Point i is that of the memory ids[i]; x and y are float32 (n,) from 0 to 1.

    scope, kind and source are int32 (n,): places in the lists of names `scopes`, `kinds` and `sources`; a source of -1
    is none. Chunks of documents have the kind "chunk". `missing` counts memories that the filter matches and that have
    no point: without a vector, or not placed yet.
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
    missing: int = 0

    def __len__(self) -> int:
        return len(self.ids)

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values, column by column: 100,000 points take 6.1 MB, 3.9 MB of it ids."""
        return {
            "ids": self.ids,
            "x": _rounded(self.x),
            "y": _rounded(self.y),
            "scope": self.scope.tolist(),
            "scopes": self.scopes,
            "kind": self.kind.tolist(),
            "kinds": self.kinds,
            "source": self.source.tolist(),
            "sources": self.sources,
            "missing": self.missing,
        }


def _rounded(values: NDArray[np.float32]) -> list[float]:
    rounded: list[float] = values.astype("float64").round(_DECIMALS).tolist()
    return rounded
