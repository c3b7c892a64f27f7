"""Outputs of a problem as a function of JAX on the CPU: jit, grad, vmap.

The batch kernel is a target of XLA's foreign-function interface (``jax.ffi``): it reads and writes
XLA's own buffers. The target is a C function made by ctypes, so that no C++ compiler is needed;
its interface is version 0.1 of ``xla/ffi/api/c_api.h``.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from delassus.doors import needed
from delassus.doors.batch_function import BatchFunction, BlockFunction
from delassus.errors import InputError
from delassus.problem import Problem

jax: Any = needed("jax")
jnp: Any = needed("jax.numpy")
_EXECUTE, _F64, _METADATA = 3, 12, 1
"""Of ``c_api.h``: stage of execution, type of doubles, extension that asks for the version."""
_INVALID_ARGUMENT = 3
_BASE: tuple[Any, ...] = (("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p))


class _Version(ctypes.Structure):
    _fields_ = (*_BASE, ("major", ctypes.c_int), ("minor", ctypes.c_int))


class _Metadata(ctypes.Structure):
    _fields_ = (("struct_size", ctypes.c_size_t), ("version", _Version))


class _Extension(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t), ("kind", ctypes.c_int), ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    )  # fmt: skip


class _Buffer(ctypes.Structure):
    _fields_ = (
        *_BASE, ("dtype", ctypes.c_int), ("data", ctypes.c_void_p), ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    )  # fmt: skip


class _Buffers(ctypes.Structure):
    _fields_ = (
        *_BASE, ("size", ctypes.c_int64), ("types", ctypes.c_void_p),
        ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    )  # fmt: skip


class _Api(ctypes.Structure):
    _fields_ = (
        *_BASE, ("version", _Version), ("internal", ctypes.c_void_p),
        ("error_create", ctypes.c_void_p),
    )  # fmt: skip


class _ErrorArguments(ctypes.Structure):
    _fields_ = (*_BASE, ("message", ctypes.c_char_p), ("code", ctypes.c_int))


class _Frame(ctypes.Structure):
    _fields_ = (
        *_BASE, ("api", ctypes.POINTER(_Api)), ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int), ("arguments", _Buffers), ("results", _Buffers),
    )  # fmt: skip


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))
_CREATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorArguments))
_handlers: dict[str, Any] = {}
"""C functions by target; XLA calls them as long as the process lives."""
_lock = threading.Lock()


def _array(buffer: _Buffer) -> np.ndarray:
    """Return a buffer of doubles as an array (N, size) in its memory."""
    shape = [buffer.dims[k] for k in range(buffer.rank)]
    count = int(np.prod(shape[:-1], dtype=np.int64))
    doubles = (ctypes.c_double * (count * shape[-1])).from_address(buffer.data or 0)
    return np.frombuffer(doubles).reshape(count, shape[-1])


def _handler(function: Callable[[], BlockFunction]) -> Any:
    """Return the C function that runs a batch kernel on XLA's buffers."""

    def run(frame: Any) -> int | None:
        call = frame.contents
        if call.extension:
            extension = _Extension.from_address(call.extension)
            if extension.kind == _METADATA:
                version = extension.metadata.contents.version
                version.major, version.minor = 0, 1
                return None
        if call.stage != _EXECUTE:
            return None
        try:
            inputs, outputs = (part.buffers[0].contents for part in (call.arguments, call.results))
            if inputs.dims[inputs.rank - 1] and outputs.dims[outputs.rank - 1]:
                source, target = _array(inputs), _array(outputs)
                if len(source):
                    function()(source, target)
        except Exception as error:
            # An exception cannot pass through C code; XLA raises this message.
            message = f"{type(error).__name__}: {error}".encode()
            arguments = _ErrorArguments(
                ctypes.sizeof(_ErrorArguments), None, message, _INVALID_ARGUMENT
            )
            create = _CREATE(call.api.contents.error_create)
            created: int | None = create(ctypes.byref(arguments))
            return created
        return None

    return _HANDLER(run)


def _target(name: str, function: Callable[[], BlockFunction]) -> str:
    """Register a batch kernel as a target of XLA, once per process."""
    name = f"delassus_{name}"
    with _lock:
        if name not in _handlers:
            handler = _handler(function)
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")
            _handlers[name] = handler
    return name


def jax_function(problem: Problem, algorithm: str = "pv_osimr") -> Callable[..., Any]:
    """Return the outputs of a problem as a function of JAX arrays.

    The function takes the problem's inputs by position or name, with any equal leading axes, and
    returns G, or a dictionary of all outputs by name. ``jit``, ``vmap``, ``grad`` and ``vjp``
    work, forward mode (``jvp``) and second derivatives do not: those are of
    :func:`~delassus.doors.casadi.casadi_function` alone. Gradients are those of the entries
    of the inputs; kernels are compiled at the first call. Results that fail are NaN.

    Parameters
    ----------
    problem, algorithm : as for :class:`~delassus.doors.batch_function.BatchFunction`.

    Raises
    ------
    AlgorithmError, ProblemError
        As there.
    InputError
        At a call, if an input is missing, complex or of wrong shape, or JAX computes in single
        precision.
    """
    batch = BatchFunction(problem, algorithm)
    forward = _target(f"{batch.name}_forward", lambda: batch.forward)
    backward = _target(f"{batch.name}_backward", lambda: batch.backward)

    def call(target: str, block: Any, size: int) -> Any:
        shape = jax.ShapeDtypeStruct((*block.shape[:-1], size), jnp.float64)
        return jax.ffi.ffi_call(target, shape, vmap_method="broadcast_all")(block)

    @jax.custom_vjp
    def blocks(inputs: Any) -> Any:
        return call(forward, inputs, batch.size_out)

    def with_inputs(inputs: Any) -> tuple[Any, Any]:
        return blocks(inputs), inputs

    def pulled(inputs: Any, bars: Any) -> tuple[Any]:
        both = jnp.concatenate([inputs, bars], axis=-1)
        return (call(backward, both, batch.size_in),)

    blocks.defvjp(with_inputs, pulled)

    def outputs(*arguments: Any, **named: Any) -> Any:
        if not jax.config.jax_enable_x64:
            raise InputError(
                "JAX computes in single precision; set jax.config.update('jax_enable_x64', True)"
            )
        parts = batch.parts(jnp.asarray, jnp.broadcast_to, arguments, named)
        parts = [part.astype(jnp.float64) for part in parts]
        block = parts[0] if len(parts) == 1 else jnp.concatenate(parts, axis=-1)
        return batch.split(blocks(block))

    return outputs
