"""Times as people write them, at every door."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recallite import Filter, Memory, Settings, tools
from recallite.errors import InvalidInput
from recallite_server.main import main

TEXT = "The fence of the upper field was mended"


@pytest.fixture
def path(tmp_path):
    """A store with a memory of three days ago."""
    path = tmp_path / "farm.db"
    with Memory(path, settings=Settings(embedder="none")) as memory:
        memory.remember(TEXT, created_at="3d")
    return path


@pytest.mark.parametrize(
    ("since", "count"),
    [("7d", 1), ("1 week ago", 1), ("2000-01", 1), ("2000", 1), ("yesterday", 0), ("2 hours", 0), ("tomorrow", 0)],
)
def test_python_tools_and_the_command_line_read_them_alike(path, monkeypatch, capsys, since, count):
    monkeypatch.setenv("RECALLITE_EMBEDDER", "none")
    with Memory(path, settings=Settings(embedder="none")) as memory:
        assert memory.count(since=since) == count
        assert len(memory.recall("fence", filter=Filter(since=since))) == count
        assert len(memory.list(where={"created_at": {"gte": since}})) == count
        arguments = {"action": "recall", "query": "fence", "since": since}
        assert len(tools.call("memory", arguments, memory=memory)["results"]) == count
    main(["--db", str(path), "count", "--since", since])
    assert capsys.readouterr().out.split()[0] == str(count)


def test_until_a_day_holds_the_day_at_every_door(path, monkeypatch, capsys):
    monkeypatch.setenv("RECALLITE_EMBEDDER", "none")
    with Memory(path, settings=Settings(embedder="none")) as memory:
        memory.remember("The fence was painted", created_at="2024-03-05T18:00:00+00:00")
        for until, count in {"2024-03-05": 1, "2024-03": 1, "2024-03-04": 0}.items():
            assert memory.count(until=until) == count
            arguments = {"action": "recall", "query": "fence", "until": until}
            assert len(tools.call("memory", arguments, memory=memory)["results"]) == count
            main(["--db", str(path), "count", "--until", until])
            assert capsys.readouterr().out.split()[0] == str(count)


def test_the_server_reads_them(path):
    httpx2 = pytest.importorskip("httpx2")
    pytest.importorskip("starlette", reason="the extra server is not installed")
    from tests.system.http.serving import serving

    with Memory(path, settings=Settings(embedder="none")) as memory, serving(memory) as url:
        for since, count in (("7d", 1), ("yesterday", 0)):
            assert httpx2.get(f"{url}/v1/count", params={"since": since}).json() == count
            answer = httpx2.post(f"{url}/v1/recall", json={"query": "fence", "filter": {"since": since}})
            assert len(answer.json()["hits"]) == count
        assert httpx2.get(f"{url}/v1/count", params={"until": "3 days"}).json() == 1
        assert httpx2.get(f"{url}/v1/count", params={"until": str(memory.list()[0].created_at.date())}).json() == 1
        over = httpx2.post(f"{url}/v1/memories", json={"text": "Milk", "expires_at": "yesterday"})
        assert (over.status_code, "no read would ever show it" in over.text) == (422, True)
        stored = httpx2.post(f"{url}/v1/memories", json={"text": "Milk is in the fridge", "expires_at": "7d"}).json()
        assert datetime.fromisoformat(stored["expires_at"]) > datetime.now(UTC) + timedelta(6)


def test_a_length_of_life_is_from_now_and_any_other_length_ago(path):
    with Memory(path, settings=Settings(embedder="none")) as memory:
        record = memory.remember("Milk is in the fridge", expires_at="30d", valid_from="2h")
        assert record.expires_after == timedelta(30)
        assert timedelta(hours=2) <= datetime.now(UTC) - record.valid_from < timedelta(hours=3)
        for text in ("99999999999d", "0000-13", "2026-13", "7 parsecs", "last spring"):
            with pytest.raises(InvalidInput, match="is not a time: write"):
                memory.count(since=text)


def test_a_month_is_its_first_moment(path):
    with Memory(path, settings=Settings(embedder="none")) as memory:
        assert memory.remember("a", valid_from="2026-03").valid_from == datetime(2026, 3, 1, tzinfo=UTC)
        assert memory.remember("b", valid_from="2026").valid_from == datetime(2026, 1, 1, tzinfo=UTC)
