"""The client for TypeScript: it is what the OpenAPI says, and talks to a running server."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from recallite import __version__
from tests.limits import LAST_RESORT_SECONDS

FOLDER = Path(__file__).parents[3] / "clients" / "typescript"


def test_the_generated_files_are_those_of_the_openapi():
    specification = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    generate = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(generate)
    for name, text in generate.files().items():
        assert (FOLDER / name).read_text("utf-8") == text, f"{name} is old: python clients/typescript/generate.py"


def test_the_package_has_the_version_and_needs_no_other():
    package = json.loads((FOLDER / "package.json").read_text("utf-8"))
    assert package["version"] == __version__
    assert "dependencies" not in package
    assert all((FOLDER / name).is_file() for name in package["files"])


_RUN = """
import { Client, RecalliteError } from "CLIENT"
const [, , url] = process.argv
const memory = new Client(url + "/", { scope: "/käse" })
const stored = await memory.remember({ text: "Ada prefers green tea", id: "a/b", tags: ["tea"] })
await memory.rememberMany({ items: ["Bob likes coffee", { text: "Cleo likes water", tags: ["x", "y"] }] })
const { hits } = await memory.recall({ query: "What does Ada drink?", limit: 1 })
const listed = await memory.list({ tags: ["x", "y"], where: { text: { contains: "water" } }, limit: null })
const changed = await memory.update({ id: "a/b", importance: 0.9 })
const lines = (await memory.transferExport({ format: "jsonl" })).trim().split("\\n").length
const document = await memory.knowledgeIngest({ name: "a.md", data: "# Port\\n\\nThe port is 8080." })
const failed = async (call) => {
  try {
    await call()
  } catch (fault) {
    return [fault instanceof RecalliteError, fault.status, fault.type, fault.reason, fault.field]
  }
}
console.log(JSON.stringify({
  id: stored.id, scope: stored.scope, hit: hits[0].text, listed: listed.memories.map(({ text }) => text),
  importance: changed.importance, count: await memory.count(), lines, title: document.title,
  missing: await failed(() => memory.get({ id: "none" })),
  wrong: await failed(() => memory.recall({ query: "x", limit: 0 })),
  silent: await failed(() => new Client("http://127.0.0.1:1").count()),
  named: ["search", "explain", "remeber", "zebra", "toJSON", "then"].map((name) => {
    try {
      return typeof memory[name]
    } catch (fault) {
      return fault.message
    }
  }),
  unknown: await memory.count({ colour: "red" }).catch((fault) => fault.message),
}))
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_it_talks_to_a_running_server(url, tmp_path):
    script = tmp_path / "run.mjs"
    script.write_text(_RUN.replace("CLIENT", (FOLDER / "index.js").as_uri()), "utf-8")
    ran = subprocess.run(["node", str(script), url], capture_output=True, timeout=LAST_RESORT_SECONDS, encoding="utf-8")
    assert ran.stderr == ""
    answers = json.loads(ran.stdout)
    assert answers.pop("missing")[:3] == [True, 404, "NotFound"]
    assert answers.pop("wrong") == [True, 422, "InvalidInput", "value", "limit"]
    assert answers.pop("named") == [
        "no method is called search: use recall", "no method is called explain: use reviewExplain",
        "no method is called remeber: use remember", "undefined", "undefined", "undefined",
    ]  # fmt: skip
    assert answers.pop("silent") == [True, 0, "ServerError", "unreachable", None]
    assert answers == {
        "id": "a/b", "scope": "/", "hit": "Ada prefers green tea", "listed": ["Cleo likes water"], "importance": 0.9,
        "count": 4, "lines": 4, "title": "Port", "unknown": "no field is called colour",
    }  # fmt: skip
