"""No code looks for a bare name anywhere in a path: a clone, a virtual environment or a user's home may be called so.

A test that counted the files with "recallite" in their path passed until somebody cloned into a folder of that name,
where NumPy's were below it too. What is meant is said relative to a folder: `path.is_relative_to(PACKAGE)`, a prefix
that ends with a separator, `path.name`, `path.relative_to(root).parts`.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("engine", "kernels", "models", "tests", "benchmarks", "examples", "plugins", ".ci")
PATHS = re.compile(r"(path|file|folder|filename|home|root|directory|checkout|repository)s?", re.IGNORECASE)
SEARCHES = ("split", "rsplit", "partition", "rpartition", "find", "rfind", "index", "rindex", "count", "replace")
MATCHES = ("search", "findall", "finditer", "sub", "subn", "fnmatch", "fnmatchcase")
# Only a file with one of these can have a path as a text: parsing all of them took seconds.
MAY_HAVE = re.compile(
    rf"co_filename|__file__|as_posix|\.parts\b|abspath|realpath|(str|fspath)\([\w.]*{PATHS.pattern}", re.I
)


class Search(ast.NodeVisitor):
    """Lines where a text with letters is looked for in a path; `names` and `paths` are variables that hold either."""

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self.names: set[str] = set()
        self.paths: set[str] = {"__file__"}

    def is_name(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=str(text)):
                return re.search(r"[^\W\d_]{2}", text) is not None
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                return any(map(self.is_name, items))
            case ast.Call(func=ast.Attribute(attr="compile"), args=[pattern, *_]):
                return self.is_name(pattern)
        return isinstance(node, ast.Name) and node.id in self.names

    def is_path(self, node: ast.expr) -> bool:
        """Whether this is the text, or are the parts, of a whole path."""
        match node:
            case ast.Name(id=name):
                return name in self.paths
            case ast.Attribute(attr="co_filename" | "__file__"):
                return True
            case ast.Attribute(attr="parts", value=value) | ast.Call(func=ast.Attribute(attr="as_posix", value=value)):
                return self.is_path_object(value)
            case ast.Call(
                func=ast.Name(id="str") | ast.Attribute(attr="fspath" | "abspath" | "realpath"), args=[value]
            ):
                return self.is_path(value) or self.is_path_object(value)
            case ast.Call(func=ast.Attribute(value=value, attr="lower" | "casefold" | "replace")):
                return self.is_path(value)
        return False

    def is_path_object(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return PATHS.fullmatch(name.rpartition("_")[2]) is not None
            case ast.Call(func=ast.Name(id="Path")):
                return True
            case ast.Call(func=ast.Attribute(value=value, attr="resolve" | "absolute" | "expanduser")):
                return self.is_path_object(value)
        return False

    def visit(self, node: ast.AST) -> None:
        outside = self.names, self.paths
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.names, self.paths = {*self.names}, {*self.paths}
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.bind(target, value)
            case ast.For(target=target, iter=value):
                self.bind(target, value)
            case ast.GeneratorExp(generators=generators) | ast.ListComp(generators=generators):
                for each in generators:
                    self.bind(each.target, each.iter)
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
                if self.is_name(left) and self.is_path(right):
                    self.lines.add(node.lineno)
            case ast.Call(func=ast.Attribute(attr=function, value=value), args=arguments):
                self.look(node.lineno, function, [value, *arguments])
            case ast.Call(func=ast.Name(id=function), args=arguments):
                self.look(node.lineno, function, arguments)
        self.generic_visit(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self.names, self.paths = outside

    def look(self, line: int, function: str, parts: list[ast.expr]) -> None:
        if function in SEARCHES + MATCHES and any(map(self.is_path, parts)) and any(map(self.is_name, parts)):
            self.lines.add(line)

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        """Note what a variable holds: a name, or one of several, or a path."""
        if isinstance(target, ast.Name):
            for known, holds in ((self.names, self.is_name(value)), (self.paths, self.is_path(value))):
                (known.add if holds else known.discard)(target.id)


def searches(code: str) -> set[int]:
    search = Search()
    search.visit(ast.parse(code))
    return search.lines


@pytest.mark.parametrize(
    "code",
    [
        'file = frame.f_code.co_filename\nours = "engine" in file',
        'def ours(path):\n    return "engine" not in str(path)',
        'any(name in str(each_file) for name in ("venv", "engine"))',
        'PACKAGE = "engine"\nfor file in files:\n    PACKAGE in file.resolve().parts',
        'str(path).lower().split("engine")[1]',
        '__file__.partition("kernels")',
        'os.path.abspath(path).index("kernels")',
        're.search(r"kernels/.*", path.as_posix())',
        'OURS = re.compile(r"kernels/\\w+")\ndef ours(file):\n    return OURS.search(str(file))',
        'fnmatch(str(path), "*kernels*")',
    ],
)
def test_a_name_that_is_looked_for_in_a_path_is_found(code):
    assert MAY_HAVE.search(code)
    assert searches(code)


@pytest.mark.parametrize(
    "code",
    [
        "ours = frame.f_code.co_filename.startswith(PACKAGE)",
        '"engine" in path.relative_to(root).parts',
        '"engine" in path.name',
        'str(path).endswith(".toml")',
        '".." in path.parts or "\\0" in str(path)',
        'str(path).split("/")',
        '"engine" in path.read_text()',
        '"no such file" in str(error)',
        'str(path).replace(str(home), "~")',
    ],
)
def test_what_says_where_is_let_through(code):
    assert not searches(code)


def test_no_code_looks_for_a_bare_name_in_a_path():
    found = []
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            script = file.is_file() and folder == ".ci" and file.read_bytes().startswith(b"#!/usr/bin/env python3")
            if file.suffix == ".py" or script:
                code = file.read_text(encoding="utf-8")
                lines = searches(code) if MAY_HAVE.search(code) else ()
                found += [f"{file.relative_to(ROOT)}:{line}" for line in sorted(lines)]
    assert not found, f"compare with a folder, or with the last part, in {', '.join(found)}"
