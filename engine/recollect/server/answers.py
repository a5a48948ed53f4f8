"""Values as they leave the server: without paths of its machine."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from msgspec import structs

from recollect.records import Hits
from recollect.reports import ErasureReceipt, Forgotten, Stats


def outside(value: Any) -> Any:
    """A result as it is answered: files are named, and their folders are not."""
    if isinstance(value, Hits):
        return value.to_dict()
    if isinstance(value, list):
        return [*map(outside, value)]
    if isinstance(value, Stats):
        return structs.replace(value, path=_name(value.path))
    if isinstance(value, Forgotten) and value.receipt is not None:
        return structs.replace(value, receipt=_receipt(value.receipt))
    return value


def _receipt(receipt: ErasureReceipt) -> ErasureReceipt:
    files = {_name(path): size for path, size in receipt.files.items()}
    return structs.replace(receipt, path=_name(receipt.path), files=files)


def _name(path: str) -> str:
    return PurePath(path).name
