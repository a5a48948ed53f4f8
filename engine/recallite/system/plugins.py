"""Extensions that packages register by entry points: Recallite's own parts register the same way."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from recallite.errors import InvalidInput
from recallite.system.messages import fault_text, shown

Kind = Literal[
    "stores", "embedders", "importers", "exporters", "services", "commands", "operations", "profiles", "functions",
]  # fmt: skip
_PREFIX = "recallite."
_OWN = "recallite"


class PluginWarning(RuntimeWarning):
    """Something that a package registers is left out; the message names the package and the reason."""


class Registered(NamedTuple):
    """An entry point, and the name of the package that registers it."""

    entry: Any
    package: str


def names(kind: Kind) -> list[str]:
    """The names registered in the group `recallite.<kind>`: Recallite's own first."""
    return list(_registered().get(kind, {}))


def registered_name(kind: Kind, spelling: str) -> str | None:
    """The registered name that is equal to `spelling` but for the case of letters; None if there is none."""
    known = names(kind)
    return spelling if spelling in known else next((name for name in known if name.lower() == spelling.lower()), None)


def is_foreign(kind: Kind, name: str) -> bool:
    """Whether a registered name belongs to another package."""
    return _registered()[kind][name][0].package != _OWN


def imported(path: str) -> Any:
    """The object at "module:name" or "module:Class.name"."""
    module, _, name = path.partition(":")
    return attrgetter(name)(import_module(module))


@cache
def load(kind: Kind, name: str) -> Any:
    """Return the object that a name stands for, imported when it is first asked for.

    Raises InvalidInput for an unknown name, for one that two packages register, and for a package that cannot be
    imported.
    """
    registered = _registered().get(kind, {}).get(name)
    if registered is None:
        known = ", ".join(names(kind)) or "none is registered: reinstall Recallite, whose metadata is missing"
        raise InvalidInput(f"{kind.removesuffix('s')} {shown(name)} is not known: use one of {known}")
    packages, entry = [registration.package for registration in registered], registered[0].entry
    what = f"the {kind.removesuffix('s')} {name!r}"
    if len(packages) > 1:
        raise InvalidInput(f"{what} is registered by {' and by '.join(packages)}: uninstall one of them")
    try:
        return entry.load()
    except Exception as fault:
        if packages[0] == _OWN and isinstance(fault, ImportError):
            raise  # an extra is missing, or this is a defect of ours: the module says which
        raise InvalidInput(
            f"{what} of {packages[0]} ({entry.value}) cannot be imported: {fault_text(fault)}; mend or uninstall "
            "the package"
        ) from fault


def load_all(kind: Kind, taken: Collection[str] | None = None) -> dict[str, Any]:
    """Every object of a kind by its name; what `load` refuses is left out with a PluginWarning.

    With `taken` only objects of other packages, and none of these names.
    """
    objects = {}
    for name in names(kind):
        if taken is not None and not is_foreign(kind, name):
            continue
        if taken is not None and name in taken:
            _warn(f"the {kind.removesuffix('s')} {name!r}: Recallite has one of this name, rename it")
            continue
        try:
            objects[name] = load(kind, name)
        except InvalidInput as fault:
            _warn(str(fault))
    return objects


@cache
def _registered() -> dict[str, dict[str, list[Registered]]]:
    """Entry points by kind and name. A name of Recallite's own belongs to it alone."""
    from importlib.metadata import entry_points  # here: it takes 20 ms, and most programs never ask

    ours: dict[str, dict[str, list[Registered]]] = {}
    others: dict[str, dict[str, list[Registered]]] = {}
    packages: dict[int, str] = {}  # asking a package for its name parses its metadata each time: 1.5 ms
    entries = entry_points()
    for group in entries.groups:
        if group.startswith(_PREFIX):
            for entry in entries.select(group=group):
                if id(entry.dist) not in packages:
                    packages[id(entry.dist)] = entry.dist.name if entry.dist else "an unnamed package"
                package = packages[id(entry.dist)]
                by_name = (ours if package == _OWN else others).setdefault(group.removeprefix(_PREFIX), {})
                by_name.setdefault(entry.name, []).append(Registered(entry, package))
    for kind, by_name in others.items():
        for name in sorted(by_name):
            if ours.setdefault(kind, {}).setdefault(name, by_name[name]) is not by_name[name]:
                of = " and ".join(registration.package for registration in by_name[name])
                _warn(f"the {kind.removesuffix('s')} {name!r} of {of}: Recallite has one of this name, rename it")
    return ours


def _warn(reason: str) -> None:
    warnings.warn(f"left out: {reason}", PluginWarning, stacklevel=3)
