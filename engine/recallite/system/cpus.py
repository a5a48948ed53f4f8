"""The share of the machine that this process may use."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

if sys.platform != "win32":
    import resource


_MAX_THREADS = 16
_most = _MAX_THREADS


def limit_cpus(most: int) -> None:
    """Have this process use at most `most` cores, as one of several that share a machine; call it before the rest."""
    global _most
    _most = max(1, most)


def usable_cpus() -> int:
    """Cores for bulk work: the affinity mask, cut to the cgroup's quota and to `limit_cpus`, at most 16."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    quota = _cgroup_quota()
    return max(1, min(cores, _most, _MAX_THREADS, cores if quota is None else round(quota)))


def _cgroup_quota() -> float | None:
    """CPUs that the container may use, None where it is not limited (cgroup v2, then v1)."""
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
    except (OSError, ValueError):
        try:
            limit = Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").read_text("ascii").strip()
            period = Path("/sys/fs/cgroup/cpu/cpu.cfs_period_us").read_text("ascii").strip()
        except (OSError, ValueError):
            return None
    try:
        return float(limit) / float(period) if float(limit) > 0 else None
    except (ValueError, ZeroDivisionError):
        return None


def preemptions() -> int:
    """Count how often threads of this process lost a core that they still wanted; 0 if the system does not say."""
    if sys.platform != "win32":
        return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    return 0


def saturates_int8() -> bool:
    """Whether this CPU's 8-bit products may overflow 16 bits: x86 without VNNI, or x86 that does not say."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as stream:
            flags = next((line for line in stream if line.startswith("flags")), "").split()
    except OSError:
        return True
    return "avx512_vnni" not in flags and "avx_vnni" not in flags
