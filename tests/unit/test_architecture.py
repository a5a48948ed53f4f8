"""The wings of the engine and which may know of which: imports point one way, down."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from functools import cache, cached_property
from pathlib import Path

import pytest

import recallite
import recallite_kernels
from recallite import AsyncMemory, Memory, errors

ENGINE = Path(recallite.__file__).parents[1]
CORE = ENGINE / "recallite"
KERNELS = Path(recallite_kernels.__file__).parent
FILES = sorted(ENGINE.rglob("*.py"))

# The packages, and which of the others each may import. The core imports none: it finds what they add by entry points.
PACKAGES = {
    "recallite": set(), "recallite_bulk": {"recallite"}, "recallite_documents": {"recallite"},
    "recallite_tools": {"recallite"}, "recallite_cli": {"recallite", "recallite_tools"},
    "recallite_eval": {"recallite", "recallite_cli"},
    "recallite_postgres": {"recallite", "recallite_cli"},
    "recallite_notes": {"recallite", "recallite_cli", "recallite_documents"},
    "recallite_connect": {"recallite", "recallite_tools", "recallite_cli", "recallite_documents", "recallite_notes"},
    "recallite_server": {"recallite", "recallite_tools", "recallite_cli", "recallite_connect"},
}  # fmt: skip
# The wings of the core. A wing may import those after it, and itself. memory.py and aio.py name wings before them for
# types and inside methods: `Memory.bootstrap` imports the agents when it is called.
WINGS = (
    "doors", "compat", "review", "transfer", "documents", "agents", "upkeep", "plugin", "aio", "memory", "recall",
    "remember", "engine", "derivation", "index", "embedding", "store", "remote", "model", "text", "system", "errors",
    "_version",
)  # fmt: skip
FACADE = ("memory.py", "aio.py")
# What users name first, and `python -m recallite`: they reach all packages, each when it is named.
FACES = ("recallite/__init__.py", "recallite/__main__.py")
PUBLIC = {
    "Memory": "memory", "AsyncMemory": "aio", "Filter": "model", "Hit": "model", "Settings": "model",
    "__version__": "_version",
}  # fmt: skip
MODULES = {".".join(file.relative_to(ENGINE).with_suffix("").parts) for file in FILES}
SQL = re.compile(
    r"\b(SELECT\b.+\bFROM|SELECT value FROM|INSERT (OR \w+ )?INTO|UPDATE \w+ SET|DELETE FROM|"
    r"(CREATE|DROP|ALTER) (VIRTUAL |TEMP )?(TABLE|INDEX|VIEW)|PRAGMA \w+|BEGIN IMMEDIATE|VACUUM INTO)",
    re.DOTALL,
)


def wing_of(file: Path) -> str:
    """The wing of a file of the core, or the package of another one."""
    package, *rest = file.relative_to(ENGINE).parts
    return rest[0].removesuffix(".py") if package == "recallite" else package


@cache
def trees() -> dict[Path, ast.Module]:
    return {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    return [*ast.walk(tree)]


@cache
def imported(tree: ast.AST) -> list[tuple[str, int, bool]]:
    """Every module that a file imports, with the line and whether it is inside a function or for types.

    Also those that it names in a text: for `import_module`, `Deferred`, or as "module:function".
    """
    found = [(text.partition(":")[0], line, True) for text, line in strings(tree) if text.partition(":")[0] in MODULES]
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno, node.col_offset > 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import in line {node.lineno}"
            names = [f"recallite.{each.name}" for each in node.names] if node.module == "recallite" else [node.module]
            found += [(str(name), node.lineno, node.col_offset > 0) for name in names]
    return found


@cache
def strings(tree: ast.AST) -> list[tuple[str, int]]:
    """Every string of a file that is no docstring."""
    documented = {
        id(node.body[0].value)
        for node in nodes(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        (node.value, node.lineno)
        for node in nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
    ]


DRIVERS = {"apsw": "store/sqlite/", "psycopg": "recallite_postgres/", "psycopg_pool": "recallite_postgres/"}
DATABASES = ("recallite.store.sqlite.", "recallite_postgres.")
STORES = ("store", "recallite_postgres")


def test_imports_point_down():
    floors = {wing: number for number, wing in enumerate(WINGS)}
    wrong = []
    for file, tree in trees().items():
        package, wing, name = file.relative_to(ENGINE).parts[0], wing_of(file), file.relative_to(ENGINE).as_posix()
        for module, line, lazy in imported(tree):
            other, _, rest = module.partition(".")
            if other in PACKAGES and other != package and other not in PACKAGES[package] and name not in FACES:
                wrong.append(f"{name}:{line}: {package} imports {other}")
            if package == other == "recallite" and rest and name not in FACES:
                target = PUBLIC.get(rest.split(".")[0], rest.split(".")[0])
                above = target in floors and floors[target] < floors[wing]
                if above and not (file.name in FACADE and lazy):
                    wrong.append(f"{name}:{line}: {wing} imports {target}")
    assert wrong == []


def test_stores_read_no_text():
    """What is derived from texts comes to them: `recallite.derivation` makes it for writes, repair and checks."""
    assert not {
        f"{file.relative_to(ENGINE)}:{line}: {module}"
        for file, tree in trees().items()
        if wing_of(file) in STORES
        for module, line, _ in imported(tree)
        if module.startswith(("recallite.text", "recallite.derivation")) and file.name != "copy_store.py"
    }


def test_every_file_is_in_a_package_and_a_wing():
    assert {file.relative_to(ENGINE).parts[0] for file in FILES} == set(PACKAGES)
    assert {wing_of(file) for file in FILES} - {"__init__", "__main__"} == set(WINGS) | set(PACKAGES) - {"recallite"}


def test_a_wing_is_no_single_file():
    assert {folder.name for folder in ENGINE.rglob("*") if folder.is_dir() and len([*folder.glob("*.py")]) == 1} <= {
        "__pycache__", "page",
    }  # fmt: skip


def test_names_of_files_tell_them_apart():
    """Stores have files of the same names for the same things; others of the core have not."""
    names = [file.name for file in FILES if file.is_relative_to(CORE) and wing_of(file) != "store"]
    assert {name for name in names if names.count(name) > 1} == {"__init__.py"}


def test_no_second_sqlite_in_the_process():
    assert not {
        f"{file.relative_to(ENGINE)}:{line}"
        for file, tree in trees().items()
        for name, line, _ in imported(tree)
        if name.split(".")[0] == "sqlite3"
    }


def test_sql_lives_in_the_store():
    """Elsewhere there is no statement; conditions are written in store/sql/repository.py."""
    wrong = []
    for file, tree in trees().items():
        if wing_of(file) not in STORES:
            wrong += [f"{file.relative_to(ENGINE)}:{line}: {text}" for text, line in strings(tree) if SQL.search(text)]
            wrong += [
                f"{file.relative_to(ENGINE)}:{node.lineno}: Condition"
                for node in nodes(tree)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Condition"
            ]
    assert wrong == []


def test_only_the_store_knows_its_database():
    """Elsewhere there is no driver of one, no statement, no file beside one and no module of one kind of store."""
    wrong = []
    beside = re.compile(r"(?<!\bllama)-(journal|wal|shm|index)\b")  # llama-index is a framework
    for file, tree in trees().items():
        name = str(file.relative_to(ENGINE))
        modules = {module for module, _, _ in imported(tree)}
        packages = {module.split(".")[0] for module in modules}
        wrong += [f"{name}: {driver}" for driver, room in DRIVERS.items() if driver in packages and room not in name]
        if wing_of(file) in STORES:
            continue
        if name not in FACES:
            wrong += [f"{name}: {module}" for module in modules if module.startswith(DATABASES)]
        calls = [node for node in nodes(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")]
        wrong += [
            f"{name}:{node.lineno}: {node.func.attr}"
            for node in calls
            if node.func.attr in ("execute", "executemany", "pragma")
        ]
        wrong += [f"{name}:{line}: {text}" for text, line in strings(tree) if beside.search(text)]
    assert wrong == []


def of_one_system(tree: ast.AST) -> list[tuple[str, int]]:
    """What a file uses that not every system has: modules, parts of `os`, files that show what Linux is doing."""
    modules = {"fcntl", "resource", "signal", "mmap", "msvcrt", "winreg", "termios", "pwd", "grp", "_winapi"}
    in_os = re.compile(
        r"O_[A-Z]+|p?(read|write)v|p(read|write)|fork|forkpty|register_at_fork|nice|killp?g?|wait.*|W[A-Z]+|get[ePpSs]?[ugs]id"
        r"|getpgrp|set\w*[ug]id|setsid|sched_\w+|posix_\w+|f?chown|fchmod|umask|f?statvfs|mkfifo|mknod|copy_file_range"
        r"|sendfile|splice|memfd_create|pidfd_open|fdatasync|supports_(dir_)?fd|getloadavg|startfile"
    )
    shown = re.compile(r"/(proc|sys|dev)/")
    found = [(name, line) for name, line, _ in imported(tree) if name.split(".")[0] in modules]
    found += [(text, line) for text, line in strings(tree) if shown.match(text)]
    for node in nodes(tree):
        if isinstance(node, ast.Attribute):
            module, names = node.value, [node.attr]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            module, names = node.args[0], [getattr(node.args[1], "value", None)]
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            module, names = ast.Name("os"), [each.name for each in node.names]
        elif isinstance(node, ast.keyword) and str(node.arg).endswith("dir_fd"):
            found.append((f"{node.arg}=", node.value.lineno))
            continue
        else:
            continue
        if isinstance(module, ast.Name):
            of = {"os": in_os, "ctypes": re.compile("windll|WinDLL|CDLL"), "socket": re.compile("AF_UNIX|AF_NETLINK"),
                  "select": re.compile("e?poll|kqueue")}.get(module.id)  # fmt: skip
            found += [(f"{module.id}.{name}", node.lineno) for name in names if of and of.fullmatch(str(name))]
    return found


def test_what_not_every_system_has_lives_in_system():
    """`system/`, and one module of the kernels, have the other branch for it: for Windows, and for macOS."""
    kernels = {file: ast.parse(file.read_text(encoding="utf-8")) for file in KERNELS.rglob("*.py")}
    elsewhere = {file: tree for file, tree in trees().items() if wing_of(file) != "system"}
    elsewhere |= {file: tree for file, tree in kernels.items() if file != KERNELS / "_system.py"}
    wrong = [f"{file}:{line}: {what}" for file, tree in elsewhere.items() for what, line in of_one_system(tree)]
    assert not wrong, "\n".join(wrong)


def test_kernels_know_numpy_and_numba_only():
    allowed = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite", "recallite_kernels"}
    assert not {
        f"{file.name}: {name}"
        for file in KERNELS.rglob("*.py")
        for name, _, _ in imported(ast.parse(file.read_text(encoding="utf-8")))
        if name.split(".")[0] not in allowed
    }


def test_every_private_function_is_called():
    # One that replaces another's of its name is left over once that is gone. Of other libraries' we cannot tell.
    others = {ENGINE / "recallite_connect" / name for name in ("langchain.py", "llama_index.py")}
    named: set[str] = set()
    functions: set[tuple[str, str]] = set()
    for file in FILES:
        for node in nodes(trees()[file]):
            if isinstance(node, ast.Attribute):
                named.add(node.attr)
            elif isinstance(node, ast.Name):
                named.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and file not in others:
                functions.add((file.relative_to(ENGINE).as_posix(), node.name))
    private = {each for each in functions if each[1].startswith("_") and not each[1].startswith("__")}
    assert sorted(each for each in private if each[1] not in named) == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        recallite.nothing_like_it  # noqa: B018


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
    standing = {name: item.__bases__[0].__name__ for name, item in errors.CLASSES.items() if name != "RecalliteError"}
    assert drawn == standing
    public = {name for name, item in vars(errors).items() if inspect.isclass(item) and not name.startswith("_")}
    assert {*errors.CLASSES} == public


def promised() -> list[str]:
    """Class.method of everything that stores, transactions and repositories state."""
    return [
        f"{kind.name}.{method.name}"
        for file in [*sorted((CORE / "store").glob("*.py")), *sorted((CORE / "store/sql").glob("*.py"))]
        for kind in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(kind, ast.ClassDef)
        for method in kind.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    ]


def test_what_is_public_is_documented():
    """What a database has of its own of a store, a transaction or a repository is documented in the base class."""
    promises = {name.split(".")[1] for name in promised()}
    dialects = ("recallite/store/transaction.py", "recallite/store/sqlite/", "recallite_postgres/")
    bare = []
    for file, tree in trees().items():
        name = str(file.relative_to(ENGINE))
        bare += [f"{name}: {what}" for what in undocumented(tree, promises if name.startswith(dialects) else set())]
    assert bare == []


def undocumented(tree: ast.Module, elsewhere: set[str]) -> list[str]:
    """What is public in a file and has no docstring; methods named in `elsewhere` are documented there."""
    bare = [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    for node in nodes(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            if not ast.get_docstring(node):
                bare.append(node.name)
            bare += [
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
                and not inner.name.startswith("_")
                and not any(isinstance(each, ast.Name) and each.id == "overload" for each in inner.decorator_list)
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
    return bare


def test_the_async_memory_has_every_verb():
    def verbs(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert verbs(AsyncMemory) - {"open"} == verbs(Memory)
    services = {name for name in verbs(Memory) if isinstance(getattr(Memory, name), property | cached_property)}
    assert inspect.signature(AsyncMemory) == inspect.signature(Memory)
    for name in verbs(Memory) - services - {"scoped", "close", "transaction"}:
        assert inspect.signature(getattr(AsyncMemory, name)) == inspect.signature(getattr(Memory, name)), name
        assert inspect.iscoroutinefunction(getattr(AsyncMemory, name)), name
