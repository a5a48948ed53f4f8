"""Groups of arguments by reference: a pointer to one on the stack, of which an attribute is read when it is named.

Numba passes a named tuple as its parts, seven numbers an array. A recall's groups are a thousand: handing those from
function to function took twice as long to compile and 15 microseconds a call.
"""

from __future__ import annotations

from typing import Any

from numba import extending
from numba.core import cgutils, datamodel, types
from numba.core.typing import templates

from recallite_kernels.view import Stated, Terms, Vectors

# Parts of numba without types of their own.
_cgutils: Any = cgutils
_extending: Any = extending
_models: Any = datamodel.models
_templates: Any = templates
_types: Any = types
_WITHIN = (Terms, Vectors, Stated)  # parts of a view that are referred to as well


class Reference(_types.Type):  # type: ignore[misc]
    """A pointer to a group."""

    def __init__(self, group: Any) -> None:
        self.group = group
        super().__init__(name=f"Reference({group.instance_class.__name__})")  # one type a class: its own name is 4 KB

    def part(self, name: str) -> Any:
        """The type of an attribute, and whether it is referred to."""
        kind = self.group.types[self.group.fields.index(name)]
        within = getattr(kind, "instance_class", None) in _WITHIN
        return Reference(kind) if within else kind, within


@_extending.register_model(Reference)
class _ReferenceModel(_models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, manager.lookup(kind.group).get_value_type().as_pointer())


@_templates.infer_getattr
class _ReferenceAttributes(_templates.AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, reference: Any, name: str) -> Any:
        return reference.part(name)[0] if name in reference.group.fields else None


def _attribute(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    place = _cgutils.gep_inbounds(builder, value, 0, kind.group.fields.index(name))
    return place if kind.part(name)[1] else builder.load(place)


_extending.lower_getattr_generic(Reference)(_attribute)


def _referred(typing_context: Any, group: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _cgutils.alloca_once_value(builder, arguments[0])

    return Reference(group)(group), generate


referred: Any = _extending.intrinsic(_referred)
"""referred(group): a reference to a group, valid until the function that made it returns."""
