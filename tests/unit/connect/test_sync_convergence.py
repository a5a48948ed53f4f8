"""Three devices that write, update, forget, link and synchronise in any order end with the same memory.

The files of each are cut, repeated, delayed and missing on the way to the others. `dev` draws a few interleavings and
`ci` thousands.
"""

from __future__ import annotations

import os
import random
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis
from hypothesis import given
from hypothesis import strategies as st

from recallite.errors import RecalliteError
from tests.unit.connect.sync_support import Device, carry, dump, settle

# The profile `ci` draws 100 of what others draw 20.
_EXAMPLES = {20: 15, 100: 100}.get(hypothesis.settings.default.max_examples, 2_000)
_TEXTS = (
    "I live in Oslo", "I live in Bergen", "I live in Tromso since May", "The office closes at six",
    "The office closes at seven", "Always answer in English", "Anna prefers tea",
)  # fmt: skip
_IDS = ("profile", "office")
_TYPES = ("supports", "contradicts")

_device = st.integers(0, 2)
_place = st.integers(0, 7)
_text = st.sampled_from(_TEXTS)
_step = st.one_of(
    st.tuples(st.just("remember"), _device, _text, st.sampled_from((None, None, *_IDS))),
    st.tuples(st.just("replace"), _device, _text, st.sampled_from(_IDS)),
    st.tuples(st.just("text"), _device, _place, _text),
    st.tuples(st.just("fields"), _device, _place, st.integers(0, 5)),
    st.tuples(st.just("forget"), _device, _place, st.none()),
    st.tuples(st.just("link"), _device, _place, _place),
    st.tuples(st.just("unlink"), _device, _place, _place),
    st.tuples(st.just("supersede"), _device, _place, _place),
    st.tuples(st.just("restore"), _device, _place, st.integers(-3, 0)),
    st.tuples(st.just("sync"), _device, st.none(), st.none()),
    st.tuples(st.just("sync"), _device, st.none(), st.none()),
    st.tuples(st.just("carry"), _device, _device, st.none()),
    st.tuples(st.just("damage"), _device, _device, st.integers(0, 2**16)),
)


def _ids(device: Device) -> list[str]:
    return sorted(record.id for record in device.memory.list(include_superseded=True))


def _change(device: Device, verb: str, one, other) -> None:
    memory, ids = device.memory, _ids(device)
    if verb == "remember":
        memory.remember(one, id=other, on_existing="version" if other else "error")
    elif verb == "replace":
        memory.remember(one, id=other, on_existing="replace")
    if not ids or verb in ("remember", "replace"):
        return
    first = ids[one % len(ids)]
    second = ids[other % len(ids)] if verb in ("link", "unlink", "supersede") else None
    if verb == "text":
        memory.update(first, text=other)
    elif verb == "fields":
        fields = [
            {"importance": 0.9, "tags": ["b", "a"]}, {"tags": []}, {"pinned": True}, {"metadata": {"a": [1, "b"]}},
            {"valid_from": "2026-01-01", "topic": "place"}, {"expires_at": "2099-01-01"},
        ]  # fmt: skip
        memory.update(first, **fields[other])
    elif verb == "forget":
        memory.forget(first)
    elif verb == "link":
        memory.link(first, second, type=_TYPES[one % 2], strength=0.5)
    elif verb == "unlink":
        memory.unlink(first, second)
    elif verb == "supersede":
        memory.supersede(first, second)
    elif verb == "restore":
        memory.restore(first, other or None)


def _carry_badly(source: Device, target: Device, seed: int) -> None:
    """Carry some of the files, some of them cut, some twice; some of those that are there go away."""
    choice = random.Random(seed)
    name = source.name
    if name is None:
        return
    into = target.folder / name
    into.mkdir(exist_ok=True)
    for file in sorted((source.folder / name).iterdir()):
        match choice.randrange(5):
            case 0:
                (into / file.name).write_bytes(file.read_bytes()[: choice.randrange(0, file.stat().st_size)])
            case 1:
                shutil.copy(file, into / f"{file.stem} (copy).sync")
            case 2:
                (into / file.name).unlink(missing_ok=True)
            case 3:
                shutil.copy(file, into / file.name)


def _run(folder: Path, steps) -> list[Device]:
    devices = [Device(folder / str(number)) for number in range(3)]
    for verb, number, one, other in steps:
        device = devices[number]
        if verb == "sync":
            device.sync()
        elif verb in ("carry", "damage") and number == one:
            continue
        elif verb == "carry":
            carry(devices[one], device)
        elif verb == "damage":
            _carry_badly(devices[one], device, other)
        else:
            with suppress(RecalliteError):
                _change(device, verb, one, other)
    return devices


@hypothesis.settings(max_examples=_EXAMPLES)
@given(steps=st.lists(_step, min_size=6, max_size=30))
def test_devices_end_with_the_same_memory(steps, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # what only a loss of power needs
    with TemporaryDirectory() as folder:
        devices = _run(Path(folder), steps)
        written = {record.id for device in devices for record in device.memory.list(include_superseded=True)}
        settle(devices)
        dumps = [dump(device.memory) for device in devices]
        assert dumps[0] == dumps[1] == dumps[2]
        assert {record.id for record in devices[0].memory.list(include_superseded=True)} <= written
        assert all(device.memory.store.verify().ok for device in devices)
        assert all(other.confirmed and not other.waiting for other in devices[0].sync().devices)
        for device in devices:
            device.memory.close()
