"""The rooms of the engine and which may know of which: imports point one way, down."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import recallite
import recallite_kernels
from recallite import AsyncMemory, Memory, errors
from recallite.services import Mounted

ENGINE = Path(recallite.__file__).parent
KERNELS = Path(recallite_kernels.__file__).parent
FILES = sorted(ENGINE.rglob("*.py"))
NAMES = [str(file.relative_to(ENGINE)) for file in FILES]

# A room may import those of a lower floor, and itself.
FLOORS = {
    "errors": 0,
    "_version": 0,
    "extras": 0,
    "logs": 0,
    "tracing": 1,
    "text": 1,
    "checks": 1,
    "vector_checks": 2,
    "whose": 0,
    "folders": 2,
    "records": 1,
    "reports": 2,
    "numerics": 1,
    "asynchrony": 1,
    "cpus": 1,
    "locks": 1,
    "background": 2,
    "parallel": 2,
    "unfinished": 2,
    "remote": 2,
    "filters": 2,
    "settings_files": 3,
    "environment": 3,
    "configuration": 4,
    "policies": 5,
    "profiles": 5,
    "match_reasons": 6,
    "settings": 6,
    "store": 7,
    "index": 8,
    "embedding": 8,
    "llm": 8,
    "engine": 9,
    "remember": 10,
    "recall": 10,
    "audit": 11,
    "exchange": 11,
    "tiers": 11,
    "knowledge": 12,  # a Service as the tiers are
    "evaluation": 12,
    "lookups": 12,
    "relations": 13,
    "upkeep": 13,
    "services": 14,
    "memory": 15,
    "aio": 16,
    "projection": 16,
    "timeline": 16,
    "version_diffs": 2,
    "workspace": 16,  # writes the memories of a Memory as files
    "tools": 16,
    "arrow": 16,
    "tenants": 16,
    "batch": 17,
    "importers": 17,
    "exporters": 18,  # reads what the importers know of each form
    "mcp": 17,
    "server": 18,
    "client": 19,
    "integrations": 19,
    "compat": 17,
    "cli": 20,
}
PUBLIC = {
    "Memory": "memory", "AsyncMemory": "aio", "Filter": "filters", "Hit": "records", "Settings": "settings",
    "__version__": "_version",
}  # fmt: skip
SQL = re.compile(
    r"\b(SELECT\b.+\bFROM|SELECT value FROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|"
    r"(CREATE|DROP|ALTER) (VIRTUAL |TEMP )?(TABLE|INDEX|VIEW)|PRAGMA \w+|BEGIN IMMEDIATE|VACUUM INTO)",
    re.DOTALL,
)


def room_of(file: Path) -> str:
    first = file.relative_to(ENGINE).parts[0]
    return first.removesuffix(".py")


def imported(tree: ast.AST) -> list[tuple[str, int]]:
    """Every module that a file imports, wherever in it, with the line."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import in line {node.lineno}"
            found.append((str(node.module), node.lineno))
            if node.module == "recallite":
                found += [(f"recallite.{alias.name}", node.lineno) for alias in node.names]
    return found


def strings(tree: ast.AST) -> list[tuple[str, int]]:
    """Every string of a file that is no docstring."""
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        (node.value, node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
    ]


DRIVERS = {"apsw": "store/sqlite/", "psycopg": "store/postgres/", "psycopg_pool": "store/postgres/"}
DATABASES = ("recallite.store.sql.", "recallite.store.sqlite.", "recallite.store.postgres.")


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_imports_point_down(file):
    room = room_of(file)
    if room == "__init__":
        return
    wrong = []
    for name, line in imported(ast.parse(file.read_text(encoding="utf-8"))):
        if name.startswith("recallite."):
            other = name.split(".")[1]
            other = PUBLIC.get(other, other)
            if other != room and FLOORS[other] >= FLOORS[room]:
                wrong.append(f"line {line}: {room} imports {other}")
    assert wrong == []


def test_every_room_has_its_floor():
    assert {room_of(file) for file in FILES} - {"__init__"} <= set(FLOORS)


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_no_second_sqlite_in_the_process(file):
    assert [
        line for name, line in imported(ast.parse(file.read_text(encoding="utf-8"))) if name.split(".")[0] == "sqlite3"
    ] == []


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_sql_lives_in_the_store(file):
    if room_of(file) == "store":
        return
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert [(text, line) for text, line in strings(tree) if SQL.search(text)] == []
    built = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Condition"
    ]
    assert built == [], "conditions are written in store/conditions.py"


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_only_the_store_knows_its_database(file):
    """Elsewhere there is no driver of one, no statement, no file beside one and no module of one kind of store."""
    name = str(file.relative_to(ENGINE))
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = {module for module, _ in imported(tree)}
    for driver, room in DRIVERS.items():
        assert name.startswith(room) or driver not in {module.split(".")[0] for module in modules}
    if room_of(file) == "store":
        return
    assert not {module for module in modules if module.startswith(DATABASES)}
    called = [node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")]
    assert not {"execute", "executemany", "pragma"} & set(called)
    beside = re.compile(r"(?<!\bllama)-(journal|wal|shm|index)\b")  # llama-index is a framework
    assert [(text, line) for text, line in strings(tree) if beside.search(text)] == []


@pytest.mark.parametrize("file", sorted(KERNELS.rglob("*.py")), ids=lambda file: str(file.relative_to(KERNELS)))
def test_kernels_know_numpy_and_numba_only(file):
    allowed = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite", "recallite_kernels"}
    assert {name.split(".")[0] for name, _ in imported(ast.parse(file.read_text(encoding="utf-8")))} <= allowed


def test_all_names_what_is_public():
    code = "import recallite; print(*[name for name in dir(recallite)])"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted(recallite.__all__)
    for name in recallite.__all__:
        assert getattr(recallite, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        recallite.nothing_like_it  # noqa: B018


def test_import_recallite_loads_nothing_heavy():
    code = (
        "import sys, recallite; "
        "print(*sorted({'numpy', 'numba', 'apsw', 'msgspec', 'onnxruntime', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_tree_of_errors_is_drawn_as_it_stands():
    drawn: dict[str, str] = {}
    branch: list[str] = []
    for line in errors.__doc__.splitlines():
        match = re.match(r"([│├└─ ]*)([A-Z]\w+)", line)
        if match is None or line.startswith("Every"):
            continue
        depth = len(match[1]) // 4
        branch[depth:] = [match[2]]
        if depth:
            drawn[match[2]] = branch[depth - 1]
    classes = {name: getattr(errors, name) for name in errors.__all__}
    standing = {name: item.__bases__[0].__name__ for name, item in classes.items() if name != "RecalliteError"}
    assert drawn == standing
    public = {name for name, item in vars(errors).items() if inspect.isclass(item) and not name.startswith("_")}
    assert set(errors.__all__) == public


def promised() -> list[str]:
    """Class.method of everything that store/protocol/ states, and what databases implement of store/sql/."""
    return [
        f"{kind.name}.{method.name}"
        for file in [*sorted((ENGINE / "store/protocol").glob("*.py")), *sorted((ENGINE / "store/sql").glob("*.py"))]
        for kind in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    ]


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_what_is_public_is_documented(file):
    """A method that implements a promise of store/protocol/, or a part of store/sql/, is documented there."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    elsewhere = (
        {name.split(".")[1] for name in promised()}
        if str(file.relative_to(ENGINE)).startswith(("store/sql/", "store/sqlite/", "store/postgres/"))
        else set()
    )
    bare = [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                bare.append(node.name)
            bare += [
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
                and not inner.name.startswith("_")
                and inner.name not in elsewhere
                and not ast.get_docstring(inner)
            ]
    bare += [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert bare == []


def test_the_async_memory_has_every_verb():
    def verbs(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert verbs(AsyncMemory) - {"open"} == verbs(Memory)
    services = {name for name in verbs(Memory) if isinstance(getattr(Memory, name), Mounted | property)}
    assert inspect.signature(AsyncMemory) == inspect.signature(Memory)
    for name in verbs(Memory) - services - {"scoped", "close", "transaction"}:
        assert inspect.signature(getattr(AsyncMemory, name)) == inspect.signature(getattr(Memory, name)), name
        assert inspect.iscoroutinefunction(getattr(AsyncMemory, name)), name
