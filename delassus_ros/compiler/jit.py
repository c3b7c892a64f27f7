"""LLVM through llvmlite: IR to an object file for this processor, object file to addresses."""

from __future__ import annotations

import threading

from delassus_ros.compiler import cache
from delassus_ros.compiler.code_generator import (
    LLVM_VERSION,
    host_features,
    host_machine,
    initialize,
    llvm,
    llvmlite,
    object_file,
)
from delassus_ros.compiler.targets import check_architecture, full_triple
from delassus_ros.errors import CompilerError, InputError

_OBJECT_FILE = (b"\x7fELF", b"\xcf\xfa\xed\xfe")
"""First bytes of object files: ELF, and Mach-O of 64 bits."""

_lock = threading.Lock()


def host_identity() -> str:
    """Return what compiled code depends on besides its source: processor and LLVM."""
    version = ".".join(str(part) for part in LLVM_VERSION)
    return (
        f"llvmlite {llvmlite.__version__}; LLVM {version}; {llvm.get_process_triple()}; "
        f"{llvm.get_host_cpu_name()}; {host_features()}; "
        # Code that Python calls looks into its objects; builds of Python differ in them.
        f"objects of {object.__basicsize__} bytes"
    )


def compile_ir(ir: str) -> bytes:
    """Return the object file of an IR module for this processor.

    Raises
    ------
    CompilerError
        If LLVM refuses the module.
    """
    return _emit(ir, host_machine())


def check_triple(triple: str) -> None:
    """Refuse a target that LLVM does not know, or whose kernels are not known to work.

    Raises
    ------
    InputError
        If it does not, or they are not; names those that are.
    """
    check_architecture(triple, _target(triple).name)


def compile_for(ir: str, triple: str, cpu: str, features: str) -> bytes:
    """Return the object file of an IR module for a target that need not be this machine.

    A processor or feature that LLVM does not know ends the process, or gives another one, and so
    may an architecture: :func:`~delassus_ros.compiler.processors.check_processor` and
    :func:`check_triple` refuse these.

    Raises
    ------
    InputError
        If LLVM does not know the triple.
    CompilerError
        If LLVM refuses the module.
    """
    machine = _target(triple).create_target_machine(
        cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small"
    )
    return _emit(f'target triple = "{full_triple(triple)}"\n{ir}', machine)


def _target(triple: str) -> llvm.Target:
    initialize()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        return llvm.Target.from_triple(full_triple(triple))
    except RuntimeError as error:
        raise InputError(f"target {triple!r} is unknown to LLVM: {error}") from error


def _emit(ir: str, machine: llvm.TargetMachine) -> bytes:
    with _lock:
        try:
            return object_file(ir, machine)
        except RuntimeError as error:
            raise CompilerError(f"LLVM refused the generated code: {error}") from error


def provide(name: str, address: int) -> None:
    """Tell LLVM where a function is that code to be loaded calls."""
    llvm.add_symbol(name, address)


def joined(objects: list[bytes]) -> bytes:
    """Return object files that call each other as one piece of code."""
    return objects[0] if len(objects) == 1 else cache.pack(*objects)


def is_object(code: bytes) -> bool:
    """Return whether code is an object file: on anything else LLVM ends the process."""
    return code.startswith(_OBJECT_FILE)


def _objects(code: bytes) -> list[bytes]:
    """Return the object files of a piece of code."""
    try:
        objects = [code] if is_object(code) else cache.unpack(code)
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
        initialize()
        with _lock:
            try:
                # The engine wants a module of its own, which stays empty.
                self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host_machine())
                for each in _objects(code):
                    file = llvm.ObjectFileRef.from_data(each)
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
