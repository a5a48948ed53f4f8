"""What the integrations share."""

from __future__ import annotations

import asyncio
import threading

import pytest

from recallite import Memory
from recallite.errors import InvalidInput, StoreClosed
from recallite_connect.common import OnMemory, in_thread, needed, scope_segment


def test_a_memory_that_was_given_stays_open(memory):
    with OnMemory(memory) as held:
        assert held.memory is memory
    assert memory.count() == 0


def test_any_name_is_a_segment_of_a_scope_of_its_own(memory):
    names = ["ada", " ada", "ada ", "a/b", "a%2Fb", "", " ", ".", "..", "%", "%..%", "%%"]
    for name in names:
        memory.remember("Ada drinks tea", scope=f"/users/{scope_segment(name)}")
    assert len(memory.scopes("/users")) == len(names)


def test_a_memory_that_was_opened_for_a_path_is_closed(path):
    with OnMemory(path) as held:
        held.memory.remember("Ada drinks tea")
    with pytest.raises(StoreClosed):
        held.memory.count()
    held.close()
    with Memory(path) as again:
        assert again.count() == 1


def test_something_else_is_refused():
    with pytest.raises(InvalidInput, match="memory is 7: give a Memory, or the path of one"):
        OnMemory(7)


def test_a_missing_package_says_what_to_install():
    with pytest.raises(ModuleNotFoundError) as raised, needed("crewai"):
        import no_such_framework  # noqa: F401
    assert raised.value.__notes__ == [
        "It is part of the extra crewai: pip install '.[crewai]' in a checkout of Recallite"
    ]


def test_a_cancelled_call_ends_before_its_await_does():
    entered, let_go, done = threading.Event(), threading.Event(), []

    def write():
        entered.set()
        let_go.wait(60)
        done.append("written")
        raise ValueError("lost with its await")

    async def cancel():
        task = asyncio.ensure_future(in_thread(write))
        await asyncio.to_thread(entered.wait, 60)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert done == ["written"]


def test_a_call_gives_its_result_or_its_fault():
    assert asyncio.run(in_thread(round, 2.345, ndigits=1)) == 2.3
    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_thread(lambda: 1 // 0))
