"""Two nodes of a Ray cluster on this machine, without a dashboard and without usage statistics."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

__all__ = ["two_nodes"]

_ROOT = Path(__file__).resolve().parents[1]
_STORE_BYTES = 150_000_000


@contextmanager
def two_nodes(cpus: int = 2) -> Iterator[Any]:
    """A cluster of two raylets with `cpus` cores each, as Ray counts them, to which this process is connected.

    Give it two: the actors of a pool may take one of each node, and the tasks that read need one, too.
    """
    import ray
    import ray.data
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="rr")  # the path of a socket has at most 107 bytes
    paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(_ROOT)])
    with patch.dict(os.environ, RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=paths):
        first = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": _STORE_BYTES, "temp_dir": folder}
        cluster = Cluster(initialize_head=True, head_node_args=first)
        try:
            cluster.add_node(num_cpus=cpus, object_store_memory=_STORE_BYTES)
            ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
            context = ray.data.DataContext.get_current()
            context.enable_progress_bars = context.print_on_execution_start = False
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
