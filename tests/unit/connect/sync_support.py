"""Devices with a folder each, and what carries files between them."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

from recallite import Memory, Settings

PLAIN = Settings(embedder="none")
# What each device counts for itself.
_OWN = ("access_count", "accessed_at", "embedding_state")


def dump(memory: Memory) -> list[str]:
    """Every line of an export, in an order that is no store's own."""
    stream = io.StringIO()
    memory.transfer.export(stream, format="jsonl")
    lines = [json.loads(line) for line in stream.getvalue().splitlines()[1:]]
    return sorted(
        json.dumps({name: value for name, value in line.items() if name not in _OWN}, sort_keys=True) for line in lines
    )


class Device:
    """A memory and its copy of the folder."""

    def __init__(self, folder: Path, store: str | Path = ":memory:", settings: Settings = PLAIN) -> None:
        self.folder = folder
        folder.mkdir()
        self.memory = Memory(store, settings=settings)

    def sync(self):
        """Exchange with the own copy of the folder."""
        return self.memory.transfer.sync(self.folder)

    @property
    def name(self) -> str:
        """The name of the device in the folder."""
        return self.memory.transfer.sync(self.folder, status=True).device


def carry(source: Device, target: Device) -> None:
    """Make what a device has written in the target's copy of the folder what it is in its own."""
    if (name := source.name) is not None:
        shutil.rmtree(target.folder / name, ignore_errors=True)
        shutil.copytree(source.folder / name, target.folder / name)


def settle(devices: list[Device]) -> int:
    """Carry and sync until nothing is news; returns the number of rounds."""
    for rounds in range(12):
        news = 0
        for device in devices:
            for other in devices:
                if other is not device:
                    carry(other, device)
            report = device.sync()
            news += report.sent + report.merged
        if not news and rounds:
            assert not [problem for device in devices for problem in device.sync().problems]
            return rounds
    raise AssertionError("the devices do not come to an end")
