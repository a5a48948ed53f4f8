"""Arguments that were raw errors, or nothing told of them: what a fuzz of every verb has found."""

from __future__ import annotations

import asyncio
import inspect
import io
from contextlib import suppress

import numpy as np
import pytest

from recallite import AsyncMemory, Memory, Settings, tools
from recallite.errors import InvalidInput, NotFound, RecalliteError
from recallite.model.records import NewRecord
from recallite.system import plugins
from recallite_notes.config import WorkspaceConfig
from recallite_notes.workspace import Workspace
from tests.raising import raises

ARRAY = np.array([1.0, 2.0])
NO_PATHS = ["~nosuchuser/x", "a\x00b", "\ud800", "", "x" * 5_000 + ".jsonl", ARRAY, None, 7, b"x"]


def test_forget_takes_no_list_of_lists(memory):
    with pytest.raises(NotFound, match=r"\[1\]"):
        memory.forget([[1]])


def test_a_half_life_of_401_digits_is_no_number(memory):
    with pytest.raises(InvalidInput, match="half_life_days is 1000"):
        memory.recall("x", profile={"half_life_days": 10**400})
    with pytest.raises(InvalidInput, match="importance"):
        memory.remember("x", importance=10**400)


@pytest.mark.parametrize(
    "call",
    [
        lambda memory, value: memory.remember("x", importance=value),
        lambda memory, value: memory.remember("x", kind=value),
        lambda memory, value: memory.remember("x", scope=value),
        lambda memory, value: memory.remember("x", tags=[value]),
        lambda memory, value: memory.remember(NewRecord("x", position=value)),
        lambda memory, value: memory.scoped(value),
        lambda memory, value: memory.recall("x", mode=value),
        lambda memory, value: memory.recall("x", diversify_by=value),
        lambda memory, value: memory.recall("x", limit=value),
        lambda memory, value: memory.recall("x", profile=value),
        lambda memory, value: memory.recall("x", profile={"fusion": value}),
        lambda memory, value: memory.list(order=value),
        lambda memory, value: memory.list(tags=value),
        lambda memory, value: memory.list(kinds=value),
        lambda memory, value: memory.episodes.list(order=value),
        lambda memory, value: memory.working.configure(policy=value),
        lambda memory, value: memory.transfer.export(io.StringIO(), format=value),
        lambda memory, value: Settings(durability=value),
    ],
)
def test_an_array_is_no_scalar(memory, call):
    with pytest.raises(InvalidInput):
        call(memory, ARRAY)
    assert memory.count() == 0


@pytest.mark.parametrize("path", NO_PATHS, ids=lambda path: repr(path)[:12])
@pytest.mark.parametrize(
    "take",
    [
        lambda memory, path: Memory(path if path is not None else ARRAY, settings=Settings(embedder="none")),
        lambda memory, path: memory.store.backup(path),
        lambda memory, path: memory.transfer.export(path, format="jsonl"),
        lambda memory, path: memory.transfer.import_(path, format="jsonl"),
        lambda memory, path: memory.transfer.export_folder(path),
        lambda memory, path: memory.transfer.import_folder(path),
        lambda memory, path: memory.knowledge.ingest(path),
        lambda memory, path: memory.knowledge.ingest("x.md", root=path if path is not None else ARRAY),
        lambda memory, path: Settings.load(path),
        lambda memory, path: WorkspaceConfig.load(path),
        lambda memory, path: Workspace(path if path is not None else ARRAY),
        lambda memory, path: WorkspaceConfig(extra_paths=[path]),
    ],
)
def test_what_is_no_path_is_told_as_such(memory, tmp_path, monkeypatch, take, path):
    monkeypatch.chdir(tmp_path)
    if isinstance(path, bytes) and "ingest" in inspect.getsource(take):
        return
    with suppress(RecalliteError):
        take(memory, path)
        # A name that is only too long is told when something is opened.
        assert len(path) > 1_000


def test_a_folder_is_no_file(memory, tmp_path):
    for take in (
        memory.store.backup,
        lambda path: memory.transfer.export(path, format="csv"),
        lambda path: Memory(path),
        Settings.load,
    ):
        with pytest.raises(RecalliteError):
            take(tmp_path)


def test_a_stream_that_is_none_is_told(memory):
    with pytest.raises(InvalidInput, match="source is"):
        memory.transfer.import_([None], format="jsonl")
    with pytest.raises(InvalidInput, match="target is"):
        memory.transfer.export(ARRAY, format="jsonl")


def test_filters_take_thousands_of_scopes_and_fields(memory):
    memory.remember("x", scope="/s7/below", metadata={"k": 1})
    memory.remember("y", scope="/elsewhere")
    assert memory.count(scope=[f"/s{place}" for place in range(2_000)]) == 1
    assert memory.count(where={f"metadata.k{place}": None for place in range(2_000)}) == 2
    assert memory.count(where={"or": [{"metadata.k": place} for place in range(2_000)]}) == 1
    with raises(InvalidInput, "filter", match=r"compares .* values"):
        memory.count(where={f"metadata.k{place}": None for place in range(6_000)})
    with raises(InvalidInput, "filter", match="lists 6,000 scopes"):
        memory.count(scope=[f"/s{place}" for place in range(6_000)])


def test_services_take_an_argument_called_name_when_awaited(path):
    async def run():
        async with AsyncMemory(path, settings=Settings(embedder="none")) as memory:
            await memory.procedures.save(name="deploy", description="push, then wait")
            found = await memory.knowledge.ingest(b"# Harbour\n\nIt is closed.", name="harbour.md")
            return (await memory.procedures.get("deploy")).name, found.documents[0].source

    assert asyncio.run(run()) == ("deploy", "harbour.md")


def test_every_awaited_method_takes_every_argument_of_its_twin(path):
    """Each argument is given under its name; what the engine says of it is no matter, that it arrives is."""

    async def run():
        async with AsyncMemory(path, settings=Settings(embedder="none")) as memory:
            for service in plugins.names("services"):
                for name, method in inspect.getmembers(plugins.load("services", service), inspect.isfunction):
                    if name.startswith("_"):
                        continue
                    named = {
                        each.name: None
                        for each in list(inspect.signature(method).parameters.values())[1:]
                        if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY)
                    }
                    with suppress(RecalliteError):
                        await getattr(getattr(memory, service), name)(**named)

    asyncio.run(run())


def test_a_password_in_a_url_is_not_shown(memory):
    for url in ("ftp://user:hunter2@host/x", "http://user:hunter2@host/x", "https://user:hunter2@host:99999999/x"):
        with pytest.raises(RecalliteError) as told:
            memory.knowledge.ingest(url)
        assert "hunter2" not in str(told.value)
        skipped = memory.knowledge.ingest([url, b"text"]).skipped
        assert "hunter2" not in repr(skipped)
    answer = tools.call(
        "knowledge", {"action": "ingest", "source": "http://user:hunter2@host/x"}, memory=memory, document_urls=True
    )
    assert "hunter2" not in repr(answer)


def test_settings_files_are_bounded(tmp_path):
    def refused(name, said, reason):
        (tmp_path / name).write_text(said)
        with pytest.raises(InvalidInput, match=reason):
            Settings.load(tmp_path / name)

    refused("a.toml", ".".join("a" * 40_000) + " = 1", "more than 32 parts")
    refused("b.toml", "x = { " + " . ".join(['"a b"'] * 40) + " = 1 }", "more than 32 parts")
    refused("c.toml", "# '''\n" + ".".join("a" * 40) + " = 1\n# '''", "more than 32 parts")
    refused("d.toml", "x = 1\n" * 60_000, "more than 262,144 bytes")
    refused("e.yaml", "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]", "line 1 is used again by an alias")
    refused("f.json", "[" * 50_000, "f.json cannot be parsed")
    refused("g.yaml", "[" * 2_000, "g.yaml cannot be parsed")
    (tmp_path / "good.toml").write_text("# a.b.c" + ".d" * 50 + '\nembedder = "' + "a." * 50 + '"\n')
    assert Settings.load(tmp_path / "good.toml").embedder == "a." * 50


def test_texts_of_other_classes_are_taken_by_tools(memory):
    class Text(str):
        __slots__ = ()

    assert "error" not in tools.call("memory", Text('{"action": "list"}'), memory=memory)
    written = tools.call(Text("memory"), {Text("action"): Text("write"), "text": Text("It rains.")}, memory=memory)
    assert "error" not in written
    assert type(memory.list()[0].text) is str


def test_a_list_has_at_most_a_million_items(memory):
    for call in (memory.forget, memory.knowledge.ingest, lambda items: memory.recall_many(items)):
        with pytest.raises(InvalidInput, match="more than 1,000,000 items"):
            call(iter("x" for _ in range(10**9)))


def test_what_a_run_of_calls_has_found(memory):
    empty = np.array([])
    for call in (
        lambda: memory.neighbors("x", direction=empty),
        lambda: memory.neighbors("x", depth=2, direction=empty),
        lambda: memory.forget(kinds=["memory"], tags=empty),
        lambda: memory.forget(kinds=iter(())),
        lambda: memory.transfer.import_(io.StringIO("a\udfffb"), format="jsonl"),
        lambda: memory.count(where={"\ud800": 1}),
        lambda: memory.store.backup("x" * 5_000),
        lambda: Settings.load("x" * 5_000),
    ):
        with pytest.raises(RecalliteError) as told:
            call()
        assert len(str(told.value).encode()) < 2_000
