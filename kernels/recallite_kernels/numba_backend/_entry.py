"""The machine code of a kernel as an object file that can be called without numba.

Its one function takes the arguments as a Python tuple, and the type of arrays. It reads the addresses and shapes of
arrays, releases the interpreter's lock, and calls the kernel. Otherwise it calls only Python's stable ABI and the C
library.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, compiler_lock, types
from numba.np import arrayobj

from recallite_kernels.native import FAILED, NO_ARRAY

# Parts of numba without types of their own.
_arrays: Any = arrayobj
_cgutils: Any = cgutils
_lock: Any = compiler_lock.global_compiler_lock
_types: Any = types

_BYTE = ir.IntType(8).as_pointer()
_INT, _LONG = ir.IntType(32), ir.IntType(64)
# Offsets of a NumPy array's data, dimensions (int), shape and strides: behind the head of a Python object, which ends
# with its type. NumPy 1 and 2 have them at the same places.
_HEAD: int = object.__basicsize__
_TYPE, _DATA, _DIMENSIONS, _SHAPE, _STRIDES = _HEAD - 8, _HEAD, _HEAD + 8, _HEAD + 16, _HEAD + 24


def object_code(context: Any, result: Any, name: str) -> tuple[bytes, list[str]]:
    """Return the object file of a compiled kernel with all that it calls, and the functions that it lacks."""
    library = context.codegen().create_library(name)
    module = library.create_ir_module(name)
    entry = ir.Function(module, ir.FunctionType(_LONG, [_BYTE, _BYTE]), name)
    builder = ir.IRBuilder(entry.append_basic_block())
    emitter, signature = _Emitter(context, builder, entry.args[1]), result.signature
    arguments = [emitter.value(kind, emitter.item(entry.args[0], at)) for at, kind in enumerate(signature.args)]
    thread = emitter.call("PyEval_SaveThread", _BYTE)
    kernel = context.declare_function(module, result.fndesc)
    status, value = context.call_conv.call_function(builder, kernel, signature.return_type, signature.args, arguments)
    emitter.call("PyEval_RestoreThread", ir.VoidType(), thread)
    with builder.if_then(status.is_error):
        builder.ret(_LONG(FAILED))
    returns_nothing = signature.return_type in (_types.void, _types.none)
    builder.ret(_LONG(0) if returns_nothing else context.cast(builder, value, signature.return_type, _types.int64))
    library.add_ir_module(module)
    library.add_linking_library(result.library)
    library.enable_object_caching()
    with _lock:
        library.finalize()
    needs = [function.name for function in library._final_module.functions if function.is_declaration]
    return library._get_compiled_object(), sorted(name_ for name_ in needs if not name_.startswith("llvm."))


class _Emitter:
    """Writes the code that reads numba's values from objects of Python."""

    def __init__(self, context: Any, builder: Any, array_type: Any) -> None:
        self._context, self._builder, self._array_type = context, builder, array_type

    def call(self, name: str, returns: Any, *arguments: Any) -> Any:
        """Call a function of Python's."""
        kind = ir.FunctionType(returns, [argument.type for argument in arguments])
        return self._builder.call(_cgutils.get_or_insert_function(self._builder.module, kind, name), arguments)

    def item(self, group: Any, place: int) -> Any:
        """Read an item of a tuple."""
        return self.call("PyTuple_GetItem", _BYTE, group, _LONG(place))

    def value(self, kind: Any, of: Any) -> Any:
        """Read an object as a value of this type."""
        if isinstance(kind, _types.Array):
            return self._array(kind, of)
        if isinstance(kind, _types.NamedTuple):
            values = [self.value(part, self.item(of, at)) for at, part in enumerate(kind.types)]
            return self._context.make_tuple(self._builder, kind, values)
        if kind == _types.int64:
            return self.call("PyLong_AsLongLong", _LONG, of)
        assert kind == _types.float64, kind
        return self.call("PyFloat_AsDouble", ir.DoubleType(), of)

    def _array(self, kind: Any, of: Any) -> Any:
        builder, axes = self._builder, range(kind.ndim)
        fits = self.call("PyType_IsSubtype", _INT, self._load(of, _TYPE, _BYTE), self._array_type)
        self._refuse_if(builder.icmp_signed("==", fits, _INT(0)))
        self._refuse_if(builder.icmp_signed("!=", self._load(of, _DIMENSIONS, _INT), _INT(kind.ndim)))
        shape, strides = (self._load(of, place, _LONG.as_pointer()) for place in (_SHAPE, _STRIDES))
        array = _arrays.make_array(kind)(self._context, builder)
        _arrays.populate_array(
            array,
            data=self._load(of, _DATA, array.data.type),
            shape=[builder.load(builder.gep(shape, [_LONG(axis)])) for axis in axes],
            strides=[builder.load(builder.gep(strides, [_LONG(axis)])) for axis in axes],
            itemsize=self._context.get_abi_sizeof(self._context.get_data_type(kind.dtype)),
            meminfo=None,
        )
        return array._getvalue()

    def _refuse_if(self, wrong: Any) -> None:
        with self._builder.if_then(wrong, likely=False):
            self._builder.ret(_LONG(NO_ARRAY))

    def _load(self, of: Any, offset: int, kind: Any) -> Any:
        place = self._builder.gep(of, [_LONG(offset)])
        return self._builder.load(self._builder.bitcast(place, kind.as_pointer()))
