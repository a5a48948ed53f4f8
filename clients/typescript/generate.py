"""Write `operations.js`, `index.d.ts` and the table of methods in `README.md` from the OpenAPI of the server.

Run it by `python clients/typescript/generate.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from recallite_server.http.requests import description

FOLDER = Path(__file__).parent
_TABLE = "## Methods\n"
_HEAD = "// Written by generate.py from the OpenAPI of the server: do not edit.\n"
_SCALARS = {
    "string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null",
    "object": "{ [name: string]: unknown }",
}  # fmt: skip
# TypeScript has a type of its own of this name.
_NAMES = {"Record": "MemoryRecord"}
_CLIENT = """
export interface ClientOptions {
  /** Sent as "Authorization: Bearer". */
  token?: string
  /** Narrows every request to this scope. */
  scope?: string
  /** In place of the global `fetch`. */
  fetch?: typeof fetch
  /** Milliseconds until a request is given up; 60,000 unless given. */
  timeout?: number
}

/** An answer that is an error: `type` and `reason` are those of the Python error, `status` is 0 without an answer. */
export class RecalliteError extends Error {
  readonly status: number
  readonly type: string
  readonly reason: string | null
  readonly field: string | null
}

export class Client {
  /** `url` is that of `recallite serve`, such as http://127.0.0.1:7333. */
  constructor(url: string, options?: ClientOptions)
"""


def files() -> dict[str, str]:
    """The text of each generated file, by its name."""
    specification = description()
    operations = [*_operations(specification)]
    rows = "".join(f"  {operation.name}: {json.dumps(operation.request)},\n" for operation in operations)
    schemas = specification["components"]["schemas"]
    interfaces = "".join(_interface(name, schema) for name, schema in schemas.items() if name != "Error")
    methods = "".join(operation.declaration for operation in operations)
    table = "".join(operation.table_row for operation in operations)
    before = (FOLDER / "README.md").read_text(encoding="utf-8").partition(_TABLE)[0]
    return {
        "README.md": f"{before}{_TABLE}\n| method | fields | what it does |\n|---|---|---|\n{table}",
        "operations.js": f"{_HEAD}// By method: verb, path, names of the query, and the kind of the body.\n"
        f"export const OPERATIONS = {{\n{rows}}}\n",
        "index.d.ts": f"{_HEAD}{interfaces}{_CLIENT}{methods}}}\n",
    }


class _Method(NamedTuple):
    """The method of an operation: its name, what it requests, its declaration, and its row in the table."""

    name: str
    request: list[Any]
    declaration: str
    table_row: str


def _operations(specification: dict[str, Any]) -> Iterator[_Method]:
    for path, verbs in specification["paths"].items():
        for verb, operation in verbs.items():
            name = re.sub(r"_(\w)", lambda match: match[1].upper(), operation["operationId"])
            query = [entry for entry in operation["parameters"] if entry["in"] == "query"]
            content = operation.get("requestBody", {}).get("content", {})
            body = "json" if "application/json" in content else "bytes" if content else ""
            fields = dict.fromkeys(re.findall(r"\{(\w+)\}", path), "string")
            fields |= {_optional(entry["name"], entry["required"]): _type(entry["schema"]) for entry in query}
            if body == "bytes":
                fields["data"] = "string | Blob | Uint8Array"
            names = [*fields]
            parts = [f"{{ {'; '.join(f'{field}: {kind}' for field, kind in fields.items())} }}"] if fields else []
            needed = any(not field.endswith("?") for field in fields)
            if body == "json":
                schema = content["application/json"]["schema"]
                (reference,) = [one["$ref"] for one in schema.get("anyOf", [schema]) if "$ref" in one]
                parts.append(_type({"$ref": reference}))
                model = specification["components"]["schemas"][parts[-1]]
                needed |= bool(model.get("required"))
                names += [_optional(field, field in model.get("required", ())) for field in model["properties"]]
            (success,) = [answer for status, answer in operation["responses"].items() if status != "default"]
            text = "*/*" in success["content"]
            result = "string" if text else _type(success["content"]["application/json"]["schema"])
            row = [verb.upper(), path, [entry["name"] for entry in query], "text" if text else body]
            fields_type = " & ".join(parts)
            argument = f"fields{'' if needed else '?'}: {fields_type}" if fields_type else ""
            yield _Method(
                name, row, f"  /** {operation['summary']} */\n  {name}({argument}): Promise<{result}>\n",
                f"| `{name}` | {', '.join(f'`{field}`' for field in names)} | {operation['summary']} |\n",
            )  # fmt: skip


def _interface(name: str, schema: dict[str, Any]) -> str:
    """A schema as a declaration. What is sent may leave out what has a default; answers have it."""
    needed = {*schema.get("required", ())}
    if not name.endswith("Request"):
        needed |= {field for field, kind in schema["properties"].items() if "default" in kind}
    lines = [f"  {_optional(field, field in needed)}: {_type(kind)}\n" for field, kind in schema["properties"].items()]
    return f"\nexport interface {_NAMES.get(name, name)} {{\n{''.join(lines)}}}\n"


def _optional(name: str, needed: bool) -> str:
    return name if needed else f"{name}?"


def _type(schema: dict[str, Any]) -> str:
    """A schema as a type."""
    if "$ref" in schema:
        name = str(schema["$ref"].rpartition("/")[2])
        return _NAMES.get(name, name)
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(map(_type, schema["anyOf"])))
    if "enum" in schema:
        return " | ".join(map(json.dumps, schema["enum"]))
    if isinstance(schema.get("type"), list):
        return " | ".join(_type({**schema, "type": kind}) for kind in schema["type"])
    if "contentSchema" in schema:
        return _type(schema["contentSchema"])
    if "prefixItems" in schema:
        return f"[{', '.join(map(_type, schema['prefixItems']))}]"
    if schema.get("type") == "array":
        return f"Array<{_type(schema.get('items', {}))}>"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"{{ [name: string]: {_type(schema['additionalProperties'])} }}"
    return _SCALARS.get(schema.get("type", ""), "unknown")


if __name__ == "__main__":
    for file_name, text in files().items():
        (FOLDER / file_name).write_text(text, encoding="utf-8")
