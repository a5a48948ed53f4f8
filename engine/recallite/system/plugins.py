"""What packages add to Recallite, found by their entry points: Recallite's own parts register the same way."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, Literal

from recallite.errors import InvalidInput
from recallite.system.messages import fault_text, shown

Kind = Literal["stores", "embedders", "importers", "exporters", "services", "tools", "commands"]
_PREFIX = "recallite."
_OWN = "recallite"


class PluginWarning(RuntimeWarning):
    """Something that a package registers is left out; the message names the package and the reason."""


def names(kind: Kind) -> list[str]:
    """The names registered in the group `recallite.<kind>`: Recallite's own first."""
    return list(_registered().get(kind, {}))


def registered_name(kind: Kind, given: str) -> str | None:
    """The registered name that is equal to `given` but for the case of letters; None if there is none."""
    known = names(kind)
    return given if given in known else next((name for name in known if name.lower() == given.lower()), None)


def is_foreign(kind: Kind, name: str) -> bool:
    """Whether a registered name belongs to another package."""
    return _package(_registered()[kind][name][0]) != _OWN


def load(kind: Kind, name: str) -> Any:
    """The object that a name stands for, imported when it is first asked for.

    Raises InvalidInput for an unknown name, for one that two packages register, and for a package that cannot be
    imported.
    """
    entries = _registered().get(kind, {}).get(name)
    if entries is None:
        known = ", ".join(names(kind)) or "none is registered: reinstall Recallite, whose metadata is missing"
        raise InvalidInput(f"{kind.removesuffix('s')} {shown(name)} is not known: use one of {known}")
    return _load(kind, name)


def load_all(kind: Kind) -> dict[str, Any]:
    """Every object of a kind by its name; what `load` refuses is left out with a PluginWarning."""
    found = {}
    for name in names(kind):
        try:
            found[name] = load(kind, name)
        except InvalidInput as fault:
            _warn(str(fault))
    return found


@cache
def _load(kind: Kind, name: str) -> Any:
    entries = _registered()[kind][name]
    packages = [_package(entry) for entry in entries]
    what = f"the {kind.removesuffix('s')} {name!r}"
    if len(entries) > 1:
        raise InvalidInput(f"{what} is registered by {' and by '.join(packages)}: uninstall one of them")
    try:
        return entries[0].load()
    except Exception as fault:
        if packages[0] == _OWN and isinstance(fault, ImportError):
            raise  # an extra is missing, or this is a defect of ours: the module says which
        raise InvalidInput(
            f"{what} of {packages[0]} ({entries[0].value}) cannot be imported: {fault_text(fault)}; mend or uninstall "
            "the package"
        ) from fault


@cache
def _registered() -> dict[str, dict[str, list[Any]]]:
    """Entry points by kind and name. A name of Recallite's own belongs to it alone."""
    from importlib.metadata import entry_points  # here: it takes 20 ms, and most programs never ask

    own: dict[str, dict[str, list[Any]]] = {}
    others: dict[str, dict[str, list[Any]]] = {}
    found = entry_points()
    for group in found.groups:
        if group.startswith(_PREFIX):
            for entry in found.select(group=group):
                to = own if entry.dist is not None and entry.dist.name == _OWN else others
                to.setdefault(group.removeprefix(_PREFIX), {}).setdefault(entry.name, []).append(entry)
    for kind, by_name in others.items():
        for name in sorted(by_name):
            if own.setdefault(kind, {}).setdefault(name, by_name[name]) is not by_name[name]:
                packages = " and ".join(_package(entry) for entry in by_name[name])
                _warn(f"the {kind.removesuffix('s')} {name!r} of {packages}: Recallite has one of this name, rename it")
    return own


def _package(entry: Any) -> str:
    return entry.dist.name if entry.dist else "an unnamed package"


def _warn(reason: str) -> None:
    warnings.warn(f"left out: {reason}", PluginWarning, stacklevel=3)
