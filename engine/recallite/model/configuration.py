"""Settings, each declared once: checks, files, environment variables and the reference all come from the declaration.

    class Search(Section, frozen=True, kw_only=True):
        '''Options of a search.

        - limit: Most results.
        '''

        limit: Count = 10

The type of a field is its check, its line in the docstring the documentation. A value is what the call gives, else what
the file says, else the environment variable, else the default. A file is a table in TOML, JSON with comments, or YAML.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache, partial
from pathlib import PurePath
from types import UnionType
from typing import Annotated, Any, Literal, Self, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Struct, StructMeta, structs

from recallite.errors import InvalidInput
from recallite.model.checks import check_path, number_of, plain_str
from recallite.system.files import replacing
from recallite.system.messages import shown
from recallite.text.patterns import lazily

_MOST_BYTES = 262_144
_MOST_PARTS = 32
_DOTTED = lazily(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}")
# The strings and comments of a TOML file; every other dot is in a number, a time or a key.
_TOML_ASIDE = lazily(
    r'"{3}(?:[^"\\]|\\.|"(?!""))*+"{3}|"(?:[^"\\\n]|\\.)*+"'
    r"|'{3}(?:[^']|'(?!''))*+'{3}|'[^'\n]*+'|#[^\n]*+",
    re.DOTALL,
)


def read_table(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The table of a .toml, .json, .jsonc, .json5, .yaml or .yml file. Raises InvalidInput where there is none."""
    file = check_path(path)
    parse = _PARSERS.get(file.suffix.lower())
    if parse is None:
        raise InvalidInput(f"{file}: a settings file ends in one of {', '.join(_PARSERS)}")
    try:
        with file.open("rb") as stream:
            data = stream.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise InvalidInput(f"{file} has more than {_MOST_BYTES:,} bytes: is it a settings file?")
        text = data.decode("utf-8-sig")
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError as fault:
        raise InvalidInput(f"{file} is not UTF-8: byte {fault.start} is not part of a character") from None
    try:
        table = parse(text)
    except (ValueError, RecursionError) as fault:
        raise InvalidInput(f"{file} cannot be parsed: {' '.join(str(fault).split())}") from None
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise InvalidInput(f"{file} holds {shown(table)}: give a table of settings")
    return table


def with_path(path: object, fault: InvalidInput) -> InvalidInput:
    """The error with the path of the file before it, unless it is there already."""
    message, file = str(fault), str(path) if isinstance(path, str | PurePath) else ""
    if file in message or shown(file) in message:
        return InvalidInput(message)
    return InvalidInput(f"{file if file.isprintable() and len(file) <= 1_000 else shown(file)}: {message}")


def write_table(path: str | os.PathLike[str], table: Mapping[str, Any]) -> None:
    """Write a .toml, .json or .yaml file that `read_table` reads, atomically. Only its owner may read it."""
    file = check_path(path)
    form = _WRITERS.get(file.suffix.lower())
    if form is None:
        raise InvalidInput(f"{file}: a settings file is written as one of {', '.join(_WRITERS)}")
    try:
        with replacing(file) as descriptor, open(descriptor, "wb", closefd=False) as stream:
            stream.write(form(table))
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be written: {fault.strerror}") from fault


def _toml(text: str) -> Any:
    import tomllib

    # tomllib keeps every prefix of a dotted key: one with 40,000 parts took 1.7 GB.
    if _DOTTED.search(_TOML_ASIDE.sub("s", text)):
        raise ValueError(f"a key has more than {_MOST_PARTS} parts")
    return tomllib.loads(text)


def _json(text: str) -> Any:
    import json5

    return json5.loads(text, allow_duplicate_keys=False)


def _yaml(text: str) -> Any:
    import yaml

    try:
        check_keys_once(yaml.compose(text, yaml.SafeLoader), set())
        return yaml.safe_load(text)
    except yaml.YAMLError as fault:
        raise ValueError(str(fault)) from None


def check_keys_once(node: Any, seen: set[int]) -> None:
    """Refuse repeated keys, of which YAML would take the last, and aliases of mappings and lists: ten nested ones are
    a billion values.
    """
    if node is None or isinstance(node.value, str):
        return
    if id(node) in seen:
        raise ValueError(f"the value in line {node.start_mark.line + 1} is used again by an alias: write it out")
    seen.add(id(node))
    known: set[str] = set()
    for key in (item[0].value for item in node.value if isinstance(item, tuple)):
        if isinstance(key, str) and key in known:
            raise ValueError(
                f"the key {shown(key)} is given twice in the table from line {node.start_mark.line + 1} on"
            )
        known |= {key} if isinstance(key, str) else set()
    for item in node.value:
        for inner in item if isinstance(item, tuple) else (item,):
            check_keys_once(inner, seen)


def _without_none(value: Any) -> Any:
    """A table without what TOML cannot say."""
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return value


_PARSERS: dict[str, Callable[[str], Any]] = {
    ".toml": _toml, ".json": _json, ".jsonc": _json, ".json5": _json, ".yaml": _yaml, ".yml": _yaml,
}  # fmt: skip
_WRITERS: dict[str, Callable[[Mapping[str, Any]], bytes]] = {
    ".toml": lambda table: msgspec.toml.encode(_without_none(table)),
    **dict.fromkeys(
        (".json", ".jsonc", ".json5"), lambda table: msgspec.json.format(msgspec.json.encode(table)) + b"\n"
    ),
    **dict.fromkeys((".yaml", ".yml"), msgspec.yaml.encode),
}


Built = TypeVar("Built")
Check = Callable[[object, str], Any]


class Setting(Struct, frozen=True):
    """Annotation of a field, beside its type and its `msgspec.Meta`.

    `environment` names the variable that is used where the field is None. `check(value, name)` replaces the check by
    type: it returns the value to keep, or raises InvalidInput. A `secret` is left out of the repr.
    """

    environment: str | None = None
    check: Check | None = None
    secret: bool = False


Share = Annotated[float, Meta(ge=0, le=1)]
NonNegative = Annotated[float, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
_DOCUMENTED = re.compile(r"^ *- (\w+): (.*(?:\n ++(?!- ).+)*)", re.MULTILINE)


class SettingInfo(Struct, frozen=True):
    """One setting as a reference shows it: `name` is its key in a file, `allowed` what it may be, in words."""

    name: str
    allowed: str
    default: Any
    environment: str | None
    doc: str


class _Named(StructMeta):
    """Makes sections, and names the field that was meant where one is given that they do not have."""

    def __call__(self, *values: Any, **fields: Any) -> Any:
        names = self.__struct_fields__
        for name in fields.keys() - {*names}:
            near = get_close_matches(name, names, n=1)
            use = f"did you mean {near[0]}?" if near else f"use {', '.join(names)}"
            raise InvalidInput(f"{self.__name__} has no field {shown(name)}: {use}")
        return super().__call__(*values, **fields)


class Section(Struct, frozen=True, kw_only=True, metaclass=_Named):
    """Settings that belong together. Every field is checked when an object is made; InvalidInput names the field."""

    def __post_init__(self) -> None:
        names, defaults = self.__struct_fields__, self.__struct_defaults__
        required = (NODEFAULT,) * (len(names) - len(defaults))
        for name, default in zip(names, required + defaults, strict=True):
            value = getattr(self, name)
            if value is not default:  # the types of the fields take 1 ms to read: most sections have what is default
                field = declared(type(self))[name]
                structs.force_setattr(self, name, field.check(value, f"{type(self).__name__}.{name}"))

    def __repr__(self) -> str:
        values = [
            f"{name}={'…' if field.setting.secret else repr(getattr(self, name))}"
            for name, field in declared(type(self)).items()
            if getattr(self, name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(values)})"

    def to_dict(self) -> dict[str, Any]:
        """Every field, as `from_dict` and a file take it."""
        return to_table(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """The settings of a table; what it leaves out has its default. InvalidInput names the key that is wrong."""
        return from_table(cls, table)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a .toml, .json (with comments) or .yaml file. InvalidInput names the file, the key, the value and what
        is allowed.
        """
        try:
            return cls.from_dict(read_table(path))
        except InvalidInput as fault:
            raise with_path(path, fault) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a .toml, .json or .yaml file that `load` reads. Only its owner can read it: it may hold a key.

        Raises InvalidInput for what TOML cannot say: None where it is not the default.
        """
        if str(path).lower().endswith(".toml") and (name := next(_unsayable(self), None)) is not None:
            raise InvalidInput(f"{name} is None, which TOML cannot say: give the file the suffix .json or .yaml")
        write_table(path, self.to_dict())


class Field(Struct, frozen=True):
    """A declared field: what it allows in words, whether None is, its check, and the section it holds, if any."""

    setting: Setting
    doc: str
    allowed: str
    optional: bool
    default: Any
    check: Check
    section: type[Section] | None


@cache
def declared(section: type[Section]) -> dict[str, Field]:
    """The fields of a section by name."""
    docs = {name: " ".join(text.split()) for name, text in _DOCUMENTED.findall(section.__doc__ or "")}
    return {
        field.name: _field(
            field.type,
            field.default if field.default_factory is NODEFAULT else field.default_factory(),
            docs.get(field.name, ""),
        )
        for field in structs.fields(section)
    }


def from_table(
    section: Callable[..., Built], table: object, path: str = "", *, make: Callable[..., Built] | None = None
) -> Built:
    """The section that a table of a file says; `path` is the table's key there. `make` builds it from the checked
    fields instead of the section's class.

    Raises InvalidInput, which begins with the key that is wrong.
    """
    fields = declared(section)
    arguments = {}
    for key, value in check_keys(table, path, tuple(fields)).items():
        full_key, field = f"{path}.{key}".lstrip("."), fields[key]
        is_table = isinstance(value, Mapping) or not field.setting.check
        if field.section is None or not is_table or isinstance(value, Section) or (value is None and field.optional):
            arguments[key] = field.check(value, full_key)
        else:
            arguments[key] = from_table(field.section, value, full_key)
    try:
        return (make or section)(**arguments)
    except InvalidInput as fault:
        message, prefix = str(fault), f"{section.__name__}."
        joined = "." if message.startswith(prefix) or message.split(" ")[0] in fields else ": "
        raise InvalidInput(f"{path}{joined if path else ''}{message.removeprefix(prefix)}") from None


def to_table(value: Section, base: Section | None = None) -> dict[str, Any]:
    """Return the fields of a section as a file takes them; with `base`, only what differs from it."""
    table = {}
    for name, setting in structs.asdict(value).items():
        if base is None or setting != getattr(base, name):
            table[name] = to_table(setting) if isinstance(setting, Section) else setting
            if type(setting) is tuple:
                table[name] = list(setting)
    return table


def _unsayable(value: Section, path: str = "") -> Iterator[str]:
    """The fields that are None against their default."""
    for field in structs.fields(value):
        inner = getattr(value, field.name)
        if isinstance(inner, Section):
            yield from _unsayable(inner, f"{path}{field.name}.")
        elif inner is None and field.default is not None:
            yield f"{path}{field.name}"


def check_keys(table: object, path: str, allowed: tuple[str, ...]) -> Mapping[str, Any]:
    """A table that holds no other keys than these."""
    if not isinstance(table, Mapping):
        raise InvalidInput(f"{path or 'the file'} is {shown(table)}: give a table with {', '.join(allowed)}")
    for key in table:
        if key not in allowed:
            name = shown(f"{path}.{key}" if path else str(key))
            raise InvalidInput(f"{name} is no setting (its value is {shown(table[key])}): use {', '.join(allowed)}")
    return table


def list_settings(section: type[Section], path: str = "") -> list[SettingInfo]:
    """Return every setting of a section and of the sections in it, in order of declaration."""
    settings = []
    for name, field in declared(section).items():
        key = f"{path}.{name}".lstrip(".")
        if field.section is None or field.optional or not isinstance(field.default, Section):
            settings.append(SettingInfo(key, field.allowed, field.default, field.setting.environment, field.doc))
        if field.section is not None:
            settings += list_settings(field.section, key)
    return settings


_KINDS = {int: "a whole number", float: "a number", bool: "True or False", str: "a non-empty str"}
_ITEM = re.compile(r"`\$\[(\d+)\]`$")
_TEXT, _NAME = Annotated[str, Meta(pattern=r"\S")], Annotated[str, Meta(pattern=r"\A[^\0]+\Z")]


def _field(annotation: Any, default: Any, doc: str) -> Field:
    setting, optional = Setting(), False
    kinds, limits, waiting = list[Any](), dict[str, Any](), [annotation]
    while waiting:
        kind = waiting.pop(0)
        if get_origin(kind) is Annotated:
            kind, *notes = get_args(kind)
            waiting.insert(0, kind)
            for note in notes:
                setting = note if isinstance(note, Setting) else setting
                limits |= {name: getattr(note, name) for name in ("ge", "gt", "le") if isinstance(note, Meta)}
        elif get_origin(kind) in (Union, UnionType):
            waiting = [*get_args(kind), *waiting]
        elif kind is type(None):
            optional = True
        else:
            kinds.append(kind)
    kind, limits = kinds[0], {name: limit for name, limit in limits.items() if limit is not None}
    section = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)
    if kind is int:
        limits = {"ge": 0, "le": 2**62} | limits
    if get_origin(kind) is Literal:
        *first, last = [*map(repr, get_args(kind)), *["None"] * optional]
        allowed = " or ".join(filter(None, (", ".join(first), last)))
    elif get_origin(kind) in (list, tuple):
        allowed, kind = (
            "a list of non-empty str",
            get_origin(kind)[(_NAME, ...) if get_origin(kind) is tuple else _NAME],
        )
    elif section is not None:
        allowed = f"{'' if kind is section else 'a name, or '}{section.__name__}(...), a table in a file"
    else:
        allowed = _KINDS[kind]
        if "gt" in limits:
            allowed += f" above {limits['gt']:g}"
        elif limits.get("le", 2**62) < 2**62:
            allowed += f" from {limits['ge']:g} to {limits['le']:,}"
        elif limits:
            allowed = f"{allowed.replace('a number', 'a finite number')} of at least {limits['ge']:g}"
    if limits:
        kind = Annotated[kind, Meta(**limits)]
    if section is not None and section.__doc__ and not doc:
        doc = section.__doc__.partition("\n")[0]
    base = setting.check or partial(_check, _TEXT if kind is str else kind, allowed)

    def check(value: object, name: str) -> Any:
        return None if value is None and optional else base(value, name)

    if optional and not allowed.endswith("None"):
        allowed += " or None"
    return Field(setting, doc, allowed, optional, default, check, section)


def _check(kind: Any, allowed: str, value: Any, name: str) -> Any:
    """The value, if it is of a type: a number as it was given, since 30 stays 30 in what is printed and saved."""
    if (number := number_of(value)) is not None:  # msgspec takes none of NumPy
        value = number
    plain: Any = value
    if isinstance(value, str):
        plain = plain_str(value)
    elif isinstance(value, list | tuple):
        plain = [os.fspath(part) if isinstance(part, os.PathLike) else part for part in value]
    try:
        if not isinstance(kind, StructMeta):
            checked = msgspec.convert(plain, kind)
            if not isinstance(value, float) or math.isfinite(value):
                return checked if isinstance(value, str | list | tuple) else value
        elif isinstance(value, kind):
            return value
    except (msgspec.ValidationError, OverflowError, UnicodeError) as fault:
        if item := _ITEM.search(str(fault)):
            name, value, allowed = f"{name}[{item[1]}]", value[int(item[1])], "a non-empty str"
    raise InvalidInput(f"{name} is {shown(value)}: give {allowed}")
