"""The StorageBackend for CrewAI's memory, by itself, under its Memory, and in a crew with a scripted model."""

from __future__ import annotations

import asyncio
import copy
import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from tests.raising import raises

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"  # it is read at the import
crewai = pytest.importorskip("crewai", reason="crewai is not installed")

from crewai.llms.base_llm import BaseLLM  # noqa: E402
from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend  # noqa: E402
from crewai.memory.storage.factory import set_memory_storage_factory  # noqa: E402
from crewai.memory.types import MemoryRecord  # noqa: E402

from recallite import Memory  # noqa: E402
from recallite.errors import InvalidInput, InvalidItem, StoreClosed  # noqa: E402
from recallite_connect.crewai import RecalliteStorage  # noqa: E402

NOON = datetime(2026, 3, 1, 12)


@pytest.fixture(autouse=True)
def crewai_s_own_files(tmp_path, monkeypatch):
    """CrewAI writes a key and the outputs of tasks to the user's folders."""
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


@pytest.fixture
def storage(memory):
    """A storage that takes the vectors it is given."""
    return RecalliteStorage(memory)


def record(id, scope="/", *, at=0, vector=(1.0, 0.0), **fields):
    return MemoryRecord(
        id=id, content=f"content of {id}", scope=scope, created_at=NOON + timedelta(minutes=at),
        embedding=None if vector is None else [*vector], **fields,
    )  # fmt: skip


def ids(records):
    return [each.id for each in records]


def found(storage, vector=(1.0, 0.0), **options):
    return {each.id: score for each, score in storage.search([*vector], **options)}


def test_it_is_a_storage_backend(storage):
    assert isinstance(storage, StorageBackend)


def test_a_blank_content_is_kept_and_takes_nothing_else_with_it(storage):
    blank = record("blank").model_copy(update={"content": " "})
    storage.save([blank, record("other", vector=(0.0, 1.0))])
    assert storage.get_record("blank") == blank
    assert [*found(storage)] == ["blank", "other"]


def test_characters_that_no_text_has_are_replaced(storage):
    storage.save([record("a", metadata={"path": "x\0y"}).model_copy(update={"content": "list\0of\udc80files"})])
    kept = storage.get_record("a")
    assert (kept.content, kept.metadata) == ("list\ufffdof\ufffdfiles", {"path": "x\ufffdy"})


def test_a_record_is_given_back_as_it_was(storage):
    given = record(
        "a", "/team/ada", categories=["tea", "Morning"], metadata={"cups": 2, "kind": {"leaf": "green"}},
        importance=0.9, source="chat-1", private=True, last_accessed=NOON + timedelta(days=1),
    )  # fmt: skip
    storage.save([given])
    assert storage.get_record("a") == given
    assert storage.get_record("b") is None
    without = given.model_copy(update={"embedding": None})
    assert storage.list_records() == [without]
    assert storage.search([1.0, 0.0]) == [(without, 1.0)]


def test_an_aware_time_is_given_back_as_utc_without_a_zone(storage):
    storage.save([record("a").model_copy(update={"created_at": NOON.replace(tzinfo=UTC)})])
    assert storage.get_record("a").created_at == NOON


def test_search_goes_by_cosine_and_filters(storage):
    storage.save(
        [
            record("same", "/a", categories=["x"], metadata={"lang": "en"}),
            record("near", "/a/b", vector=(0.6, 0.8), categories=["y"], metadata={"lang": "de", "at.home": [1]}),
            record("away", "/ab", vector=(-1.0, 0.0), categories=["x", "y"]),
        ]
    )
    assert found(storage) == pytest.approx({"same": 1.0, "near": 0.6, "away": 0.0}, abs=1e-4)
    assert [*found(storage)] == ["same", "near", "away"]
    assert {*found(storage, scope_prefix="/a/")} == {"same", "near"}
    assert {*found(storage, categories=["y", "z"])} == {"near", "away"}
    assert {*found(storage, metadata_filter={"lang": "de"})} == {"near"}
    assert {*found(storage, metadata_filter={"at.home": [1]}, limit=1)} == {"near"}
    assert {*found(storage, metadata_filter={"lang": None})} == {"away"}
    assert {*found(storage, min_score=0.5)} == {"same", "near"}
    assert [*found(storage, limit=1)] == ["same"]
    assert found(storage, vector=(0.0, 0.0)) == {}


def test_a_search_in_more_records_than_a_recall_gives(storage, monkeypatch):
    storage.save([record(f"r{i}", vector=(1.0, i / 9), metadata={"list": [i % 2]}) for i in range(9)])
    monkeypatch.setattr("recallite.recall.request.MAX_LIMIT", 2)
    assert [*found(storage, metadata_filter={"list": [1]}, limit=2)] == ["r1", "r3"]
    monkeypatch.undo()
    assert len(found(storage, limit=20_000)) == 9


def test_a_search_goes_by_the_cosine_alone_in_a_long_list(storage):
    storage.save([record(f"r{i:03}", vector=(1.0, i / 100), importance=i / 300) for i in range(300)])
    assert [*found(storage, limit=40)] == [f"r{i:03}" for i in range(40)]


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        ({}, []),
        ({"scope_prefix": "/a"}, ["d"]),
        ({"categories": ["x"]}, ["d", "c"]),
        ({"record_ids": ["a", "c", "none"]}, ["d", "b"]),
        ({"record_ids": ["a", "d"], "scope_prefix": "/a"}, ["d", "c", "b"]),
        ({"record_ids": []}, ["d", "c", "b", "a"]),
        ({"older_than": NOON + timedelta(minutes=2)}, ["d", "c"]),
        ({"metadata_filter": {"n": 1}}, ["d", "c", "b"]),
        ({"metadata_filter": {"n": 1}, "categories": ["y"]}, ["d", "c", "b", "a"]),
        ({"metadata_filter": {"list": [1]}}, ["c", "b", "a"]),
    ],
)
def test_what_meets_every_condition_is_deleted(storage, conditions, left):
    storage.save(
        [
            record("a", "/a", at=0, categories=["x"], metadata={"n": 1}),
            record("b", "/a/b", at=1, categories=["x"]),
            record("c", "/a/c", at=2),
            record("d", "/d", at=3, metadata={"list": [1]}),
        ]
    )
    assert storage.delete(**conditions) == 4 - len(left)
    assert ids(storage.list_records()) == left


def test_the_latest_created_is_listed_first_whatever_was_saved_last(storage):
    storage.save([record("second", at=2), record("third", at=3), record("first", at=1)])
    assert ids(storage.list_records()) == ["third", "second", "first"]
    assert ids(storage.list_records(limit=1, offset=1)) == ["second"]
    assert storage.list_records(limit=0) == storage.list_records(offset=-1) == []


def test_scopes_and_categories_are_counted(storage):
    storage.save([record("a", "/"), record("b", "/x/y/z", at=1, categories=["k", "l"]), record("c", "/x", at=2)])
    storage.save([record("d", "/v", at=3, categories=["k"])])
    assert storage.list_scopes() == ["/v", "/x"]
    assert storage.list_scopes("/x/") == ["/x/y"]
    assert storage.list_categories() == {"k": 2, "l": 1}
    assert (storage.count(), storage.count("/x")) == (4, 2)
    info = storage.get_scope_info("/x")
    assert (info.path, info.record_count, info.categories, info.child_scopes) == ("/x", 2, ["k", "l"], ["/x/y"])
    assert (info.oldest_record, info.newest_record) == (NOON + timedelta(minutes=1), NOON + timedelta(minutes=2))
    empty = storage.get_scope_info("/none")
    assert (empty.record_count, empty.oldest_record, empty.newest_record) == (0, None, None)


def test_a_saved_id_and_an_update_take_the_place_of_the_record(storage):
    storage.save([record("a", "/x", categories=["old"])])
    storage.save([record("a", "/y")])
    changed = record("a", "/y").model_copy(update={"content": "new", "embedding": [0.0, 1.0]})
    storage.update(changed)
    assert storage.count() == 1
    assert storage.get_record("a") == changed
    storage.update(changed.model_copy(update={"importance": 1.0, "embedding": None}))
    assert storage.get_record("a").embedding == [0.0, 1.0]


def test_touched_records_were_accessed_now(storage):
    storage.save([record("a", metadata={"n": 1}, last_accessed=NOON), record("b", last_accessed=NOON)])
    storage.touch_records(["a", "gone"])
    assert storage.get_record("a").last_accessed > NOON
    assert storage.get_record("a").metadata == {"n": 1}
    assert storage.get_record("b").last_accessed == NOON


def test_similar_records_are_kept_apart(storage):
    for id, content in (("a", "Ada lives in Rome"), ("b", "Ada lives in Rome"), ("c", "Ada lives in Paris now")):
        storage.save([record(id).model_copy(update={"content": content})])
    assert storage.count() == 3
    assert {*found(storage)} == {"a", "b", "c"}


def test_vectors_of_another_dimension_are_refused_with_the_error_of_crewai(storage):
    assert found(storage, vector=(1.0, 0.0, 0.0)) == {}
    storage.save([record("a")])
    for call in (
        lambda: storage.save([record("b"), record("c", vector=(1.0, 0.0, 0.0))]),
        lambda: storage.search([1.0, 0.0, 0.0]),
    ):
        with pytest.raises(EmbeddingDimensionMismatchError, match="2-dimensional") as refused:
            call()
        assert "once none is left" in refused.value.__notes__[0]
    assert ids(storage.list_records()) == ["a"]


def test_after_a_reset_vectors_of_another_dimension_are_taken(storage):
    storage.save([record("a"), record("b")])
    storage.reset()
    assert found(storage, vector=(0.0, 1.0, 0.0)) == {}
    storage.save([record("c", vector=(0.0, 1.0, 0.0))])
    assert found(storage, vector=(0.0, 1.0, 0.0)) == {"c": 1.0}
    with pytest.raises(EmbeddingDimensionMismatchError, match="3-dimensional"):
        storage.save([record("d")])
    assert storage.memory.store.verify().problems == ()


def test_bad_records_are_refused_and_nothing_of_their_save_is_stored(storage):
    for wrong, error, message in (
        ({"scope": "/a/../b"}, InvalidItem, "item 1"),
        ({"metadata": {"at": object()}}, TypeError, "not JSON serializable"),
    ):
        with pytest.raises(error, match=message):
            storage.save([record("a"), record("b").model_copy(update=wrong)])
    assert storage.count() == 0
    with raises(InvalidInput, "filter", match="absolute"):
        RecalliteStorage(storage.memory, scope="crew")


def test_two_scopes_of_a_memory_know_nothing_of_each_other(memory):
    ada, bob = (RecalliteStorage(memory, scope=f"/crews/{name}") for name in ("ada", "bob"))
    memory.remember("a memory of someone else")
    ada.save([record("a", "/x")])
    assert (bob.list_records(), bob.list_scopes(), bob.get_record("a"), found(bob)) == ([], [], None, {})
    bob.reset()
    assert bob.delete() == 0
    ada.reset()
    assert (ada.count(), memory.count()) == (0, 1)


def test_it_is_awaited_too(storage):
    async def use():
        await storage.asave([record("a"), record("b", categories=["x"])])
        hits = await storage.asearch([1.0, 0.0], categories=["x"])
        return ids(each for each, _ in hits), await storage.adelete(record_ids=["a"]), storage.count()

    assert asyncio.run(use()) == (["b"], 1, 1)


def test_a_storage_of_a_path_is_there_again_after_reopening(path):
    given = record("a", "/x", categories=["k"], last_accessed=NOON)
    with RecalliteStorage(path, embedder="none") as storage:
        storage.save([given])
        assert copy.deepcopy(storage) is storage
    with pytest.raises(StoreClosed):
        storage.count()
    with RecalliteStorage(path, embedder="none") as again:
        assert again.get_record("a") == given
        assert found(again) == {"a": 1.0}


class Scripted(BaseLLM):
    """A model that answers by what the prompt asks for; `asked` are the prompts."""

    asked: list = []  # noqa: RUF012

    def call(self, messages, *args, **options):
        prompt = messages if isinstance(messages, str) else "\n".join(str(each["content"]) for each in messages)
        self.asked.append(prompt)
        if "Preserve exact names and numbers" in prompt:
            return json.dumps({"memories": ["Ada drinks green tea before nine"]})
        if "hierarchical memory system" in prompt:
            return json.dumps(
                {"suggested_scope": "/ada", "categories": ["drink"], "importance": 0.9, "extracted_metadata": {}}
            )
        return "Thought: I know.\nFinal Answer: Green tea, before nine."

    def supports_function_calling(self):
        return False


@pytest.fixture
def bundled(path, monkeypatch):
    monkeypatch.setenv("RECALLITE_COMPILE_KERNELS", "0")
    with Memory(path) as opened:
        yield opened


def test_a_crew_recalls_and_remembers(bundled):
    storage, model = RecalliteStorage(bundled), Scripted(model="scripted")
    memory = crewai.Memory(storage=storage, embedder=storage.embed, llm=model)
    memory.remember("Ada is allergic to milk", scope="/ada", categories=["health"], importance=0.8, metadata={})
    waiter = crewai.Agent(role="waiter", goal="serve", backstory="You know the guests.", llm=model)
    task = crewai.Task(description="What does Ada drink?", expected_output="a drink", agent=waiter)
    crew = crewai.Crew(agents=[waiter], tasks=[task], memory=memory, tracing=False)
    assert crew.kickoff().raw == "Green tea, before nine."
    memory.drain_writes()
    assert any("Ada is allergic to milk" in prompt for prompt in model.asked)
    (new,) = [each for each in storage.list_records() if each.content != "Ada is allergic to milk"]
    assert (new.content, new.scope, new.categories) == ("Ada drinks green tea before nine", "/ada", ["drink"])
    assert bundled.recall("Which tea does Ada like?", limit=1)[0].id == new.id
    assert memory.recall("milk", depth="shallow")[0].record.content == "Ada is allergic to milk"


def test_the_factory_gives_it_to_every_memory_of_the_process(bundled):
    storage = RecalliteStorage(bundled)
    set_memory_storage_factory(lambda spec: storage)
    try:
        memory = crewai.Memory(embedder=storage.embed, llm=Scripted(model="scripted"))
        kept = memory.remember("Ada drinks tea", scope="/ada", categories=["drink"], importance=0.5, metadata={})
    finally:
        set_memory_storage_factory(None)
    assert storage.get_record(kept.id).content == "Ada drinks tea"
