"""ONNX Runtime, imported here and nowhere else."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["load_onnxruntime"]


def load_onnxruntime() -> Any:
    """The module `onnxruntime`, its telemetry off unless ORT_DISABLE_TELEMETRY says otherwise already.

    Raises ImportError where it is not installed.
    """
    # Since 1.31 it looks up a telemetry host and writes a device id and a database into the user's cache directory.
    # It reads this variable as it is imported; `disable_telemetry_events()` afterwards stops neither.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime
