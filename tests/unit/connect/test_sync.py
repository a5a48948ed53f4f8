"""One memory on several devices: what is sent, merged, kept in two versions, forgotten, waited for and compacted."""

from __future__ import annotations

import os
import shutil

import pytest
from msgspec import json, msgpack, structs

from recallite import Memory
from recallite.errors import InvalidInput
from recallite.model.checks import LATEST_US
from recallite_connect.sync import exchange
from recallite_connect.sync.states import Known, key_of
from tests.unit.connect.sync_support import PLAIN, Device, carry, dump, settle
from tests.unit.core.memory.support import WordEmbedder


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Spare the disk what only a loss of power needs."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def devices(tmp_path):
    """Two devices that have settled on one memory: `office`, a text of both."""
    pair = [Device(tmp_path / name) for name in ("one", "two")]
    pair[0].memory.remember("The office closes at six", id="office")
    settle(pair)
    yield pair
    for device in pair:
        device.memory.close()


def files_of(device, of):
    return sorted((device.folder / of.name).glob("*.sync"))


def texts(device, id="office"):
    return [version.text for version in device.memory.history(id, chain=False)]


def test_a_device_that_comes_later_has_everything(devices, tmp_path):
    one = devices[0].memory
    one.update("office", text="The office closes at seven")
    tea = one.remember("I live in Oslo", tags=["b", "a"], metadata={"x": [1]})
    moved = one.remember("I live in Bergen")
    one.supersede(tea.id, moved.id)
    asked = one.remember("Always answer in English", context="assistant")
    one.link(tea.id, "office", type="supports", strength=0.25)
    one.remember("I live in Bergen")
    assert one.get(tea.id).superseded_by == (moved.id,)
    settle(devices)
    third = Device(tmp_path / "three")
    settle([*devices, third])
    assert dump(third.memory) == dump(devices[1].memory) == dump(one)
    assert texts(third) == ["The office closes at six", "The office closes at seven"]
    assert third.memory.get(asked.id).authority == one.get(asked.id).authority == "agent"
    assert third.memory.get(moved.id).occurrences == 2


def test_a_memory_that_moved_shows_its_life_elsewhere_on_no_device(devices, tmp_path):
    one, two = (device.memory for device in devices)
    one.update("office", scope="/ben")
    one.update("office", text="The office closes at seven")
    settle(devices)
    two.update("office", scope="/ada")
    one.update("office", text="The office closes at eight")
    settle(devices)
    third = Device(tmp_path / "three")
    settle([*devices, third])
    assert dump(third.memory) == dump(two) == dump(one)
    for device in (*devices, third):
        assert len(texts(device)) == 3
        own = device.memory.scoped("/ada").history("office")
        assert [version.text for version in own] == ["The office closes at eight"]


def test_nothing_is_sent_twice(devices):
    for device in devices:
        report = device.sync()
        assert (report.sent, report.merged, report.problems) == (0, 0, ())
        assert {entry.confirmed for entry in report.devices} == {True}


def test_fields_that_two_devices_changed_are_merged_by_the_last_change_of_each(devices):
    one, two = (device.memory for device in devices)
    one.update("office", importance=0.1, pinned=True)
    two.update("office", importance=0.9, tags=["b"])
    settle(devices)
    record = one.get("office")
    assert (record.importance, record.pinned, record.tags) == (0.9, True, ("b",))


def test_a_change_of_yesterday_beats_none_of_today(devices):
    """However late it is synchronised: what counts is when it was made."""
    one, two = devices
    one.memory.update("office", importance=0.1)
    two.memory.update("office", importance=0.9)
    two.sync()
    settle([two, one])
    assert one.memory.get("office").importance == 0.9


def test_a_text_that_two_devices_changed_is_kept_in_both_versions(devices):
    one, two = devices
    one.memory.update("office", text="The office closes at five")
    two.memory.update("office", text="The office closes at eight")
    two.sync()
    carry(two, one)
    assert one.sync().diverged == ("office",)
    settle(devices)
    assert texts(one) == texts(two) == [
        "The office closes at six", "The office closes at five", "The office closes at eight",
    ]  # fmt: skip
    for memory in (one.memory, two.memory):
        (finding,) = memory.review.audit("diverged").findings
        assert (finding.id, finding.text) == ("office", "The office closes at eight")
        assert (finding.other_text, finding.verb) == ("The office closes at five", None)
        assert "restore --to 1" in finding.reason
    one.memory.restore("office", 1)
    settle(devices)
    assert two.memory.get("office").text == "The office closes at five"
    assert not one.memory.review.audit("diverged").findings
    assert not two.memory.review.audit("diverged").findings


def test_a_forgotten_memory_stays_forgotten(devices):
    one, two = devices
    one.memory.forget("office")
    two.memory.update("office", text="The office closes at nine", importance=1.0)
    settle(devices)
    assert not one.memory.count()
    assert not two.memory.count()


def test_a_memory_may_be_remembered_again_under_its_id(devices):
    one, two = devices
    one.memory.forget("office")
    one.sync()
    one.memory.remember("There is no office", id="office")
    settle(devices)
    assert texts(one) == texts(two) == ["There is no office"]


def test_who_has_confirmed_a_forgetting(devices):
    one, two = devices
    one.memory.forget("office")
    state = {entry.device: entry for entry in one.sync().devices}[two.name]
    assert (state.confirmed, state.forgettings) == (False, 1)
    settle(devices)
    state = {entry.device: entry for entry in one.sync().devices}[two.name]
    assert (state.confirmed, state.forgettings) == (True, 0)


def test_no_file_has_what_is_forgotten_once_all_have_confirmed(devices):
    one, two = devices
    one.memory.remember("The office has a garden", id="garden")
    settle(devices)

    def hold(word):
        return [file for device in devices for file in device.folder.rglob("*.sync") if word in file.read_bytes()]

    two.memory.forget("office")
    one.memory.remember("The office has no garden", id="garden", on_existing="replace")
    two.sync()
    assert hold(b"closes at six")
    settle(devices)
    assert not hold(b"closes at six")
    assert not hold(b"has a garden")
    assert hold(b"has no garden")
    assert texts(two, "garden") == ["The office has no garden"]


def test_the_receipt_of_a_forgetting_holds_in_a_store_that_is_synchronised(tmp_path):
    device = Device(tmp_path / "one", tmp_path / "one.db")
    stored = device.memory.remember("Zaphod lives in Xylophone Street", id="the-address-of-zaphod")
    other = device.memory.remember("The office closes at six")
    device.memory.link(stored.id, other.id)
    device.sync()
    assert device.memory.forget(stored.id, receipt=True).receipt.complete
    assert device.sync().sent == 2
    assert b"zaphod" not in (tmp_path / "one.db").read_bytes()


def test_a_cut_file_is_waited_for(devices):
    one, two = devices
    one.memory.update("office", text="The office closes at seven")
    one.sync()
    carry(one, two)
    file = files_of(two, one)[-2]
    whole = file.read_bytes()
    for size in (0, 1, len(whole) // 2, len(whole) - 2):
        file.write_bytes(whole[:size])
        report = two.sync()
        assert (size, report.merged) == (size, 0)
        assert "not whole" in report.problems[0]
    file.write_bytes(whole)
    assert two.sync().merged == 1
    assert two.sync().merged == 0


def test_files_behind_a_missing_one_are_merged_and_the_missing_one_later(devices):
    one, two = devices
    for number in range(3):
        one.memory.remember(f"Room {number} is blue", id=f"room-{number}")
        one.sync()
    carry(one, two)
    late = files_of(two, one)[2]
    content = late.read_bytes()
    late.unlink()
    assert two.sync().merged == 2
    assert not one.sync().devices[0].waiting
    late.write_bytes(content)
    assert two.sync().merged == 1
    settle(devices)
    assert dump(one.memory) == dump(two.memory)


def test_a_link_waits_for_a_memory_of_a_third_device(devices, tmp_path):
    one, two = devices
    third = Device(tmp_path / "three")
    one.memory.remember("Anna prefers tea", id="tea")
    one.sync()
    carry(one, two)
    two.sync()
    two.memory.link("tea", "office")
    two.sync()
    carry(two, third)
    report = third.sync()
    assert "not here yet" in report.problems[0]
    settle([one, two, third])
    assert [link.target for link in third.memory.neighbors("tea")] == ["office"]


def test_an_old_copy_put_back_gets_everything_again(tmp_path):
    pair = [Device(tmp_path / name, tmp_path / f"{name}.db") for name in ("one", "two")]
    one = pair[0]
    one.memory.remember("The office closes at six", id="office")
    settle(pair)
    old = one.memory.store.backup(tmp_path / "old.db")
    one.memory.update("office", text="The office closes at seven")
    one.memory.remember("Anna prefers tea", id="tea")
    settle(pair)
    former = one.name
    one.memory.close()
    one.memory = Memory(old, settings=PLAIN)
    settle(pair)
    assert one.name != former
    assert texts(one) == texts(pair[1]) == ["The office closes at six", "The office closes at seven"]
    assert one.memory.get("tea").text == "Anna prefers tea"


def test_a_machine_with_another_name_is_the_same_device(tmp_path, monkeypatch):
    one = Device(tmp_path / "one", tmp_path / "one.db")
    one.memory.remember("The office closes at six")
    former = one.sync().device
    monkeypatch.setattr(exchange.platform, "node", lambda: "laptop-2.local")
    report = one.sync()
    assert (report.device, report.devices[0].name) == (former, "laptop-2.local")
    one.memory.close()
    shutil.copy(tmp_path / "one.db", tmp_path / "copy.db")
    one.memory = Memory(tmp_path / "copy.db", settings=PLAIN)
    monkeypatch.setattr(exchange.platform, "node", lambda: "desktop")
    assert one.sync().device != former
    one.memory.close()


def test_a_copy_on_another_machine_is_another_device(devices, monkeypatch):
    one = devices[0]
    former = one.name
    monkeypatch.setattr(exchange.platform, "node", lambda: "laptop")
    assert one.sync().device != former
    settle(devices)
    assert texts(one) == texts(devices[1])


def test_a_copy_on_another_machine_gives_a_new_folder_everything(devices, tmp_path, monkeypatch):
    devices[0].memory.remember("Anna prefers tea", id="tea")
    settle(devices)
    monkeypatch.setattr(exchange.platform, "node", lambda: "another machine")
    copy = devices[1]  # it has sent nothing of its own
    copy.folder = tmp_path / "new"
    copy.folder.mkdir()
    later = Device(tmp_path / "later")
    settle([copy, later])
    assert dump(later.memory) == dump(copy.memory)
    assert later.memory.count() == 2


def test_many_files_become_few_when_all_have_confirmed(devices):
    one, two = devices
    for number in range(exchange._MOST_FILES + 3):
        one.memory.remember(f"Room {number} is blue", id=f"room-{number}")
        one.sync()
    assert len(files_of(one, one)) > exchange._MOST_FILES
    settle(devices)
    assert len(files_of(one, one)) == 2  # and the state
    assert dump(one.memory) == dump(two.memory)


def test_a_device_that_was_away_for_long(devices, tmp_path):
    one, two = devices
    third = Device(tmp_path / "three")
    settle([one, two, third])
    third.memory.update("office", importance=1.0)
    third.memory.remember("Written on the train", id="train")
    for number in range(exchange._MOST_FILES + 3):
        one.memory.update("office", text=f"The office closes at {number}")
        one.sync()
        carry(one, two)
        two.sync()
    one.memory.remember("Short", id="short")
    one.sync()
    one.memory.forget("short")
    # It has confirmed nothing of that, so everything is there for it.
    assert len(files_of(one, one)) > exchange._MOST_FILES
    settle([third, one, two])
    assert dump(one.memory) == dump(two.memory) == dump(third.memory)
    assert one.memory.get("office").importance == 1.0
    assert len(texts(third)) == exchange._MOST_FILES + 4


def test_circles_of_supersession_are_broken_at_the_last(devices):
    one, two = devices
    one.memory.remember("Anna prefers tea", id="tea")
    settle(devices)
    one.memory.supersede("office", "tea", at="2099-01-01")
    two.memory.supersede("tea", "office", at="2099-01-01")
    settle(devices)
    assert dump(one.memory) == dump(two.memory)
    assert one.memory.get("office").superseded_by == ("tea",)
    assert one.memory.get("tea").superseded_by == ()


def with_embedders(tmp_path, *embedders):
    """Two devices, each with an embedder."""
    pair = [Device(tmp_path / name) for name in ("one", "two")]
    for device, embedder in zip(pair, embedders, strict=True):
        device.memory.close()
        device.memory = Memory(":memory:", embedder=embedder)
    return pair


def test_vectors_travel_between_devices_with_the_same_model(tmp_path):
    second = WordEmbedder()
    pair = with_embedders(tmp_path, WordEmbedder(), second)
    stored = pair[0].memory.remember("Anna prefers tea")
    settle(pair)
    assert second.texts == []
    vectors = [device.memory.vectors([stored.id])[stored.id] for device in pair]
    assert (vectors[0][0] == vectors[1][0]).all()
    assert pair[1].memory.recall("tea")[0].id == stored.id


def test_texts_of_another_model_are_embedded_here(tmp_path):
    other = WordEmbedder("other")
    pair = with_embedders(tmp_path, WordEmbedder(), other)
    pair[0].memory.remember("Anna prefers tea")
    settle(pair)
    assert other.texts == ["Anna prefers tea"]
    assert pair[1].memory.list()[0].embedding_state == "embedded"


def test_texts_wait_for_a_model_that_fails(tmp_path):
    other = WordEmbedder("other")
    other.fail = "raises"
    pair = with_embedders(tmp_path, WordEmbedder(), other)
    pair[0].memory.remember("Anna prefers tea")
    settle(pair)
    assert pair[1].memory.list()[0].embedding_state == "pending"
    other.fail = None
    assert pair[1].memory.store.reembed() == 1


def rewritten(file, change):
    """Change a file as one who knows the format does."""
    from hashlib import sha256

    lines = [json.decode(line) for line in file.read_bytes().splitlines()[:-1]]
    change(lines)
    data = b"".join(json.encode(line) + b"\n" for line in lines)
    file.write_bytes(data + b'{"sha256":"%s"}\n' % sha256(data).hexdigest().encode())


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda lines: lines[0].update(version=99), "upgrade"),
        (lambda lines: lines[0].update(number=7), "copy of file 7"),
        (lambda lines: lines[1].update(key="0" * 32), "key"),
        (lambda lines: lines[1]["fields"].update(scope="no/scope"), "scope"),
        (lambda lines: lines[1]["fields"].update(importance=7), "importance"),
        (lambda lines: lines[1]["fields"].update(kind="chunk"), "chunk"),
        (lambda lines: lines[1].update(texts={}), "text"),
        (lambda lines: lines.insert(1, {"key": "0" * 32, "name": ["memory"]}), "gone"),
        (lambda lines: lines[1].update(name=["link", "a", "b", "supersedes"]), "key"),
        (lambda lines: lines.insert(1, [1]), "not what a device writes"),
    ],
)
def test_what_no_device_writes_is_refused_and_named(devices, tmp_path, change, what):
    third = Device(tmp_path / "three")
    carry(devices[0], third)
    rewritten(files_of(third, devices[0])[0], change)
    report = third.sync()
    assert (report.merged, third.memory.count()) == (0, 0)
    assert any(what in problem for problem in report.problems)


def test_a_link_in_the_folder_is_not_followed(devices, tmp_path):
    third = Device(tmp_path / "three")
    carry(devices[0], third)
    file = files_of(third, devices[0])[0]
    shutil.move(file, tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert third.sync().merged == 0


def test_status_changes_nothing(tmp_path):
    device = Device(tmp_path / "one")
    device.memory.remember("Anna prefers tea")
    report = device.memory.transfer.sync(device.folder, status=True)
    assert (report.device, report.sent, report.devices) == (None, 0, ())
    assert not [*device.folder.iterdir()]


def test_documents_stay_where_they_are(devices, tmp_path):
    one, two = devices
    file = tmp_path / "notes.md"
    file.write_text("# Rooms\n\nThe red room is on the left.\n")
    one.memory.knowledge.ingest(file)
    settle(devices)
    assert two.memory.count() == 1
    assert one.memory.count(kinds=["chunk"]) == 1


def test_what_cannot_be_synchronised(devices, tmp_path):
    memory = devices[0].memory
    with pytest.raises(InvalidInput, match="is no folder"):
        memory.transfer.sync(tmp_path / "unmounted")
    with pytest.raises(InvalidInput, match="whole file"):
        memory.scoped("/a").transfer.sync(tmp_path)


@pytest.mark.parametrize("id", ["memory", "link", "supports"])
def test_forgetting_an_id_that_is_a_word_of_names_forgets_no_other(devices, tmp_path, id):
    one = devices[0].memory
    one.remember("Plants need water", id=id)
    one.remember("Anna prefers tea", id="tea")
    one.link("tea", "office", type="supports")
    settle(devices)
    one.forget(id, receipt=True)
    settle(devices)
    third = Device(tmp_path / "three")
    settle([*devices, third])
    assert dump(third.memory) == dump(one)


def test_the_names_of_many_that_are_forgotten_go_and_others_stay(devices):
    one = devices[0].memory
    ids = [f"note{number}" for number in range(5)]
    for id in ids:
        one.remember(f"Note {id}", id=id)
    one.link("note0", "office")
    settle(devices)
    one.forget(ids, receipt=True)
    with one._engine.store.read() as reader:
        assert sorted(name for _, name, *_ in reader.synced.all() if name) == ['["memory","office"]']


def test_the_last_moment_that_there_is_can_still_be_changed(devices):
    one = devices[0].memory
    with one._engine.atomic() as writer:
        (row,) = writer.synced.all()
        known = structs.replace(msgpack.decode(row.state, type=Known), stamps={"": (LATEST_US, "f" * 12)})
        writer.synced.put([row._replace(state=msgpack.encode(known))])
    one.update("office", importance=0.9)
    devices[0].sync()
    carry(*devices)
    assert devices[1].sync().problems == ()
    lines = [json.decode(line) for line in files_of(devices[0], devices[0])[-2].read_bytes().splitlines()]
    assert LATEST_US in [stamp[0] for line in lines for stamp in line.get("stamps", {}).values()]


def test_a_tombstone_names_nothing(devices):
    one = devices[0]
    one.memory.remember("Secret", id="a-telling-id")
    one.memory.forget("a-telling-id")
    one.memory.remember("Secret", id="another-id")
    one.sync()
    one.memory.forget("another-id")
    one.sync()
    written = b"".join(file.read_bytes() for file in files_of(one, one)[-2:])
    assert key_of(("memory", "another-id")).encode() in written
