"""Two nodes of a Ray cluster on this machine, without a dashboard and without usage statistics."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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

    paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(_ROOT)])
    first = {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    with ExitStack() as stack:
        # A short prefix: the path of a socket has at most 107 bytes. Not `temp_dir`: Ray would still write the
        # cluster's address to /tmp/ray, which is missing where Ray has never run.
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="rr", ignore_cleanup_errors=True))
        variables = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": folder, "PYTHONPATH": paths}
        stack.enter_context(patch.dict(os.environ, variables))
        cluster = Cluster(initialize_head=True, head_node_args=first)
        stack.callback(cluster.shutdown)
        cluster.add_node(num_cpus=cpus, object_store_memory=_STORE_BYTES)
        stack.callback(ray.shutdown)
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = context.print_on_execution_start = False
        yield cluster
