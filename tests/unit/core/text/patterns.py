"""Every regular expression of the packages, and how each is used."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from recallite.text.patterns import LazyPattern

PACKAGES = ("recallite", "recallite_kernels", "recallite_models")
METHODS = frozenset(("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"))
# One that is passed on is matched with a whole name of a file.
_PASSED = frozenset(("match", "fullmatch"))
_ANY = frozenset(("match", "sub", "fullmatch"))


class Used(NamedTuple):
    """A pattern, where it stands, and one method by which it is used."""

    where: str
    pattern: re.Pattern[Any]
    method: str

    def __str__(self) -> str:
        return f"{self.where} .{self.method} {self.pattern.pattern[:40]!r}"

    def __call__(self, text: str) -> object:
        given: Any = text.encode("latin-1", "replace") if isinstance(self.pattern.pattern, bytes) else text
        if self.method in ("sub", "subn"):
            return self.pattern.sub(given[:0], given)
        found = getattr(self.pattern, self.method)(given)
        return sum(1 for _ in found) if self.method == "finditer" else found


@cache
def modules() -> dict[str, tuple[ModuleType | None, ast.Module]]:
    """Every module of the packages and its syntax; the module is None where what it needs is not installed."""
    found: dict[str, tuple[ModuleType | None, ast.Module]] = {}
    for package in PACKAGES:
        root = importlib.import_module(package)
        for name in [package, *(each.name for each in pkgutil.walk_packages(root.__path__, f"{package}."))]:
            if name.endswith("__main__"):
                continue
            try:
                module: ModuleType | None = importlib.import_module(name)
            except ImportError:
                module = None
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.origin is not None
            found[name] = module, ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    return found


@cache
def used_patterns() -> tuple[Used, ...]:
    """Each pattern by each method that it is used by: those that modules and classes hold, and those given to `re`.

    A pattern of which no use is seen, such as one in a list, is taken by every method.
    """
    found: dict[tuple[str | bytes, int, str], Used] = {}
    for name, (module, tree) in modules().items():
        methods = _methods(tree)
        held = [] if module is None else list(_held(module))
        inline = [(f"{name}:{line}", pattern, method) for line, pattern, method in written(module, tree) if method]
        for where, pattern, method in held + inline:
            name_alone = where.rpartition(".")[2]
            unseen = _ANY if isinstance(getattr(module, name_alone, None), tuple) else _PASSED
            # Sorted: workers of pytest-xdist have to collect the same tests, and sets differ among processes.
            for each in sorted((method,) if method else methods.get(name_alone, unseen)):
                found.setdefault((pattern.pattern, pattern.flags, each), Used(where, pattern, each))
    return tuple(found.values())


def _methods(tree: ast.Module) -> dict[str, set[str]]:
    """The methods that each name of a module is asked for."""
    methods: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS and isinstance(node.value, ast.Name):
            methods.setdefault(node.value.id, set()).add(node.attr)
    return methods


def written(module: ModuleType | None, tree: ast.Module) -> Iterator[tuple[int, re.Pattern[Any], str | None]]:
    """The patterns that calls of `re` are given in a module's source: line, pattern, method (None for re.compile).

    Fails for one that cannot be told without running the function around it: such a pattern cannot be tested.
    """
    names = {} if module is None else dict(vars(module))
    names.setdefault("re", re)
    functions = [each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    kept = {
        id(node)
        for function in functions
        if any(ast.unparse(each) == "cached_property" for each in function.decorator_list)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re"):
            continue
        if node.func.attr not in METHODS | {"compile"} or _is_escaped(node.args[0]):
            continue
        flags = [word.value for word in node.keywords if word.arg == "flags"] + node.args[1:2] * (
            node.func.attr == "compile"
        )
        try:
            pattern, flag = (
                eval(compile(ast.Expression(part), "a pattern", "eval"), names)
                for part in (node.args[0], flags[0] if flags else ast.Constant(0, lineno=1, col_offset=0))
            )
        except NameError as fault:
            # A loop at the head of a module leaves what it compiles in a table, where `_held` finds it, and a property
            # that is kept leaves it in the object.
            if module is None or id(node) not in inside or id(node) in kept:
                continue
            raise AssertionError(f"{module.__name__}:{node.lineno}: make the pattern a constant: {fault}") from None
        yield node.lineno, re.compile(pattern, flag), None if node.func.attr == "compile" else node.func.attr


def _is_escaped(pattern: ast.expr) -> bool:
    """Whether a pattern is `re.escape(...)`: a literal, which nothing makes slow."""
    return isinstance(pattern, ast.Call) and ast.unparse(pattern.func) == "re.escape"


def _held(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any], str | None]]:
    """The patterns in a module's globals and in the attributes of its classes, also within containers of them."""
    owners: list[tuple[str, dict[str, Any]]] = [(module.__name__, vars(module))]
    owners += [
        (f"{module.__name__}.{name}", dict(vars(value)))
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    for where, names in owners:
        for name, value in names.items():
            if not name.startswith("__"):
                yield from _within(f"{where}.{name}", value, 0)


def _within(where: str, value: object, depth: int) -> Iterator[tuple[str, re.Pattern[Any], str | None]]:
    if isinstance(value, LazyPattern):
        value = value.compiled
    owner = getattr(value, "__self__", None)
    if isinstance(value, re.Pattern):
        yield where, value, None
    elif isinstance(owner, re.Pattern):
        yield where, owner, value.__name__  # type: ignore[attr-defined]
    elif depth < 4 and isinstance(value, dict | list | tuple | set | frozenset) and len(value) < 10_000:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _within(where, inner, depth + 1)
    elif depth < 2 and any(isinstance(each, cached_property) for each in vars(type(value)).values()):
        for name, made in vars(type(value)).items():
            if isinstance(made, cached_property):
                for place, pattern, _ in _within(f"{where}.{name}", getattr(value, name), 1):
                    yield place, pattern, "search"
        for name, held in vars(value).items():
            if not isinstance(held, dict | list | tuple | set | frozenset):
                yield from _within(f"{where}.{name}", held, depth + 1)
