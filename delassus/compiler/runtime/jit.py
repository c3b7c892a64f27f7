"""LLVM through llvmlite: IR to an object file for this processor, object file to addresses."""

from __future__ import annotations

import os
import threading
from functools import lru_cache

import llvmlite.binding as llvm

from delassus.compiler.codegen.target import (
    LLVM_VERSION,
    full_triple,
    host_cpu,
    host_features,
    host_triple,
)
from delassus.compiler.runtime import packing
from delassus.errors import CompilerError, InputError

_OBJECT_FILE = (b"\x7fELF", b"\xcf\xfa\xed\xfe")
"""First bytes of object files: ELF, and Mach-O of 64 bits."""

_lock = threading.RLock()
"""Held while code is compiled or loaded; reentrant, as a signal's handler may fork meanwhile."""
_llvm_lock = getattr(getattr(llvm.ffi, "lib", None), "_lock", None)
"""llvmlite's own, held during each call of LLVM (seen in 0.41 to 0.50; it has no public name)."""


def _before_fork() -> None:
    """Wait until no thread is inside LLVM.

    A child has the locks as they are at the fork, and none of the threads that would release them.
    """
    _lock.acquire()
    if _llvm_lock is not None:
        _llvm_lock.__enter__()


def _after_fork() -> None:
    """Let the threads of the parent go on; the child owns the locks as its parent did."""
    if _llvm_lock is not None:
        _llvm_lock.__exit__()
    _lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@lru_cache(maxsize=1)
def _initialize() -> None:
    """Initialise LLVM once; needed up to llvmlite 0.44, refused as obsolete afterwards."""
    if LLVM_VERSION[0] < 20:
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _host_machine() -> llvm.TargetMachine:
    """Return LLVM's picture of this processor."""
    _initialize()
    target = llvm.Target.from_triple(host_triple())
    return target.create_target_machine(
        cpu=host_cpu(),
        features=host_features(),
        opt=2,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


def _object_file(ir: str, machine: llvm.TargetMachine) -> bytes:
    """Return the object file of an IR module.

    The trace is already free of common sub-expressions and constants, so LLVM's middle end
    is skipped; its code generator selects, schedules and allocates.

    Raises
    ------
    RuntimeError
        If LLVM refuses the module.
    """
    module = llvm.parse_assembly(ir)
    module.verify()
    return bytes(machine.emit_object(module))


def compile_ir(ir: str) -> bytes:
    """Return the object file of an IR module for this processor.

    Raises
    ------
    CompilerError
        If LLVM refuses the module.
    """
    return _emit(ir, _host_machine())


def optimized(ir: str, machine: llvm.TargetMachine | None = None) -> str:
    """Return an IR module after LLVM's middle end.

    Code with loops and with variables in memory needs the middle end; traced code does not.

    Parameters
    ----------
    machine : the processor; this one if None.

    Raises
    ------
    CompilerError
        If LLVM refuses the module.
    """
    with _lock:
        try:
            module = llvm.parse_assembly(ir)
            machine = machine or _host_machine()
            module.triple, module.data_layout = machine.triple, str(machine.target_data)
            if not hasattr(llvm, "create_pass_builder"):  # up to llvmlite 0.43
                builder = llvm.create_pass_manager_builder()
                builder.opt_level, builder.loop_vectorize, builder.slp_vectorize = 2, True, True
                manager = llvm.create_module_pass_manager()
                builder.populate(manager)
                manager.run(module)
                return str(module)
            options = llvm.create_pipeline_tuning_options(speed_level=2)
            options.loop_vectorization = options.slp_vectorization = True
            passes = llvm.create_pass_builder(machine, options)
            passes.getModulePassManager().run(module, passes)
            return str(module)
        except RuntimeError as error:
            raise CompilerError(f"LLVM refused the generated code: {error}") from error


def compile_for(
    ir: str, triple: str, cpu: str, features: str, *, middle_end: bool = False
) -> bytes:
    """Return the object file of an IR module for a target that need not be this machine.

    A processor or feature that LLVM does not know ends the process, or gives another one, and so
    may an architecture: :func:`~delassus.compiler.runtime.processor.check_processor` and
    :func:`~delassus.compiler.runtime.processor.check_triple` refuse these.

    Parameters
    ----------
    middle_end : whether LLVM's middle end goes first, as in :func:`optimized`.

    Raises
    ------
    InputError
        If LLVM does not know the triple.
    CompilerError
        If LLVM refuses the module.
    """
    machine = target_of(triple).create_target_machine(
        cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small"
    )
    text = f'target triple = "{full_triple(triple)}"\n{ir}'
    return _emit(optimized(text, machine) if middle_end else text, machine)


def target_of(triple: str) -> llvm.Target:
    """Return LLVM's description of a target.

    Raises
    ------
    InputError
        If LLVM does not know the triple.
    """
    _initialize()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        return llvm.Target.from_triple(full_triple(triple))
    except RuntimeError as error:
        raise InputError(f"target {triple!r} is unknown to LLVM: {error}") from error


def _emit(ir: str, machine: llvm.TargetMachine) -> bytes:
    with _lock:
        try:
            return _object_file(ir, machine)
        except RuntimeError as error:
            raise CompilerError(f"LLVM refused the generated code: {error}") from error


def provide(name: str, address: int) -> None:
    """Tell LLVM where a function is that code to be loaded calls."""
    llvm.add_symbol(name, address)


def joined(objects: list[bytes]) -> bytes:
    """Return object files that call each other as one piece of code."""
    return objects[0] if len(objects) == 1 else packing.pack(*objects)


def is_object(code: bytes) -> bool:
    """Return whether code is an object file: on anything else LLVM ends the process."""
    return code.startswith(_OBJECT_FILE)


def _objects(code: bytes) -> list[bytes]:
    """Return the object files of a piece of code."""
    try:
        objects = [code] if is_object(code) else packing.unpack(code)
    except ValueError:
        objects = []
    if not objects or not all(map(is_object, objects)):
        raise CompilerError("compiled code cannot be loaded: not an object file")
    return objects


class LoadedCode:
    """Machine code in memory; freed when this object is, so keep it while calling into it.

    Parameters
    ----------
    code : an object file, or several :func:`joined`.
    """

    def __init__(self, code: bytes) -> None:
        _initialize()
        with _lock:
            try:
                # The engine needs a module, which stays empty.
                self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _host_machine())
                for content in _objects(code):
                    file = llvm.ObjectFileRef.from_data(content)
                    if not file._ptr:
                        raise CompilerError("compiled code cannot be loaded: it is damaged")
                    self._engine.add_object_file(file)
                self._engine.finalize_object()
            except RuntimeError as error:
                raise CompilerError(f"compiled code cannot be loaded: {error}") from error

    def address(self, function: str) -> int:
        """Return the address of a function.

        Raises
        ------
        CompilerError
            If the code does not define it.
        """
        address = int(self._engine.get_function_address(function))
        if not address:
            raise CompilerError(f"compiled code does not define {function!r}")
        return address
