"""Removes folders of the server's machine from results."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from msgspec import structs

from recallite.model.records import Hits
from recallite.model.reports import ErasureReceipt, Forgotten, Stats


def without_folders(value: Any) -> Any:
    """A result with the names of the store's files, and without their folders."""
    if isinstance(value, Hits):
        return value.fields()
    if isinstance(value, list):
        return [*map(without_folders, value)]
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
