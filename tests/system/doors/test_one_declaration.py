"""A new method, its declaration and the meaning of an argument, in a copy of the engine: it is at every door."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra server is not installed")
pytest.importorskip("mcp", reason="the extra mcp is not installed")

ROOT = Path(__file__).resolve().parents[3]
METHOD = '''
    def echo(self, text: str, *, times: int = 1, loud: bool = False) -> builtins.list[str]:
        """Repeat a text."""
        return [text.upper() if loud else text] * times

    def count('''
PURPOSE = '        purpose: Purpose = "use",\n    ) -> Hits:\n'
QUERY = "        return self._recall([query], None"
DECLARATION = """OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "echo", "Repeat a text.", group="memories", http="POST /echo", command=Command(show="# texts", json="texts"),
        tools=(Tool("memory"), Tool("server")),
    ),
"""
MEANING = 'ARGUMENTS: dict[str, Argument] = {\n    "loud": Argument("In capitals."),\n'
EVERY_DOOR = """
import asyncio, json, sys
from pathlib import Path
import httpx2
from recallite import AsyncMemory, Memory, Settings, tools
from recallite_server.main import main
from recallite_server.client import AsyncClient, Client
from recallite_tools.action import Call, DocumentAccess
from recallite_tools.calling import SERVER_TOOLS, execute
from recallite_server.warm import service
from tests.system.http.serving import serving

path, reference = sys.argv[1:]
with Memory(path, settings=Settings(embedder="none")) as memory:
    assert memory.echo("a", times=2, loud=True) == ["A", "A"]
    assert "echo" in tools.schemas()["memory"]["properties"]["action"]["enum"]
    asked = {"action": "echo", "text": "a", "times": 2, "loud": True}
    assert tools.call("memory", asked, memory=memory)["results"] == ["A", "A"]
    assert tools.schemas()["memory"]["properties"]["loud"] == {"type": "boolean", "description": "In capitals."}
    tool = SERVER_TOOLS["echo"]
    assert (tool.writes, tool.required, tool.properties["loud"]["default"]) == (False, ["text"], False)
    assert execute(tool, {"text": "a", "loud": True}, Call(memory, "/", DocumentAccess()))["results"] == ["A"]
    answer = service._carried_out(service._parsed("recall", b'["a", "--loud"]'), memory)  # without a list of its own
    assert json.loads(answer.partition(b"\\n")[2])["hits"][0]["query"] == "A"
    with serving(memory) as url:
        assert httpx2.post(f"{url}/v1/echo", json={"text": "a", "times": 3, "loud": True}).json() == ["A"] * 3
        described = httpx2.get(f"{url}/openapi.json").json()["paths"]["/v1/echo"]["post"]
        assert (described["operationId"], described["summary"]) == ("echo", "Repeat a text.")
        with Client(url) as client:
            assert client.echo("a", times=2, loud=True) == ["A", "A"]

        async def asked():
            async with AsyncClient(url) as client:
                return await client.echo("a")

        assert asyncio.run(asked()) == ["a"]

async def awaited():
    async with AsyncMemory(path, settings=Settings(embedder="none")) as memory:
        return await memory.echo("a")

assert asyncio.run(awaited()) == ["a"]
assert main(["--db", path, "echo", "a", "--times", "2", "--loud", "--json"]) == 0
sys.path.insert(0, str(Path(reference).parent))
import site_hooks
assert "`memory.echo`" in site_hooks.GENERATED["operations"]()
"""


def test_a_method_that_is_declared_once_is_at_every_door(tmp_path):
    engine = tmp_path / "engine"
    shutil.copytree(ROOT / "engine", engine, ignore=shutil.ignore_patterns("__pycache__"))
    for name, before, after in (
        ("memory.py", "\n    def count(", METHOD),
        ("memory.py", PURPOSE, PURPOSE.replace('"use",', '"use",\n        loud: bool = False,')),
        ("memory.py", QUERY, QUERY.replace("[query]", "[query.upper() if loud else query]")),
        ("recall/request.py", '"limit", "vector"}', '"limit", "vector", "loud"}'),
        ("doors/operations.py", "\nOPERATIONS: tuple[Operation, ...] = (\n", f"\n{DECLARATION}"),
        ("doors/operation.py", "ARGUMENTS: dict[str, Argument] = {\n", MEANING),
    ):
        file = engine / "recallite" / name
        text = file.read_text("utf-8")
        assert text.count(before) == 1
        file.write_text(text.replace(before, after), "utf-8")
    paths = os.pathsep.join(map(str, (engine, ROOT / "kernels", ROOT / "models", ROOT)))
    command = [sys.executable, "-c", EVERY_DOOR, str(tmp_path / "m.db"), str(ROOT / "docs" / "site_hooks.py")]
    environment = {**os.environ, "PYTHONPATH": paths, "RECALLITE_EMBEDDER": "none"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == '{"texts":["A","A"]}\n'
