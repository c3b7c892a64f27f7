"""LLVM through llvmlite: IR to an object file for this processor, object file to addresses."""

from __future__ import annotations

import difflib
import os
import re
import resource
import subprocess
import sys
import threading
from functools import lru_cache

from delassus_ros.compiler.cache import disk as cache
from delassus_ros.compiler.runtime import child
from delassus_ros.errors import CompilerError, InputError

OLDEST_LLVMLITE = (0, 41)

try:
    import llvmlite
    import llvmlite.binding as llvm
except ImportError as error:
    raise ImportError(
        "delassus_ros needs llvmlite to compile kernels: pip install 'llvmlite>=0.41' "
        "(Debian and Ubuntu: sudo apt install python3-llvmlite)"
    ) from error

if tuple(int(part) for part in llvmlite.__version__.split(".")[:2]) < OLDEST_LLVMLITE:
    raise ImportError(
        f"delassus_ros needs llvmlite 0.41 or newer, found {llvmlite.__version__}: "
        "pip install --upgrade 'llvmlite>=0.41'"
    )

LLVM_VERSION: tuple[int, ...] = tuple(llvm.llvm_version_info)

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


@lru_cache(maxsize=1)
def host_features() -> str:
    """Return this processor's feature string; full-width vectors are allowed."""
    features = llvm.get_host_cpu_features().flatten()
    return str(features).replace("+prefer-256-bit", "-prefer-256-bit")


def host_triple() -> str:
    """Return LLVM's name of what this process runs on."""
    return str(llvm.get_process_triple())


def _host_machine() -> llvm.TargetMachine:
    """Return LLVM's picture of this processor."""
    _initialize()
    target = llvm.Target.from_triple(host_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
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


def host_identity() -> str:
    """Return what compiled code depends on besides its source: processor and LLVM."""
    version = ".".join(str(part) for part in LLVM_VERSION)
    return (
        f"llvmlite {llvmlite.__version__}; LLVM {version}; {host_triple()}; "
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
    return _emit(ir, _host_machine())


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
    may an architecture: :func:`~delassus_ros.compiler.runtime.jit.check_processor` and
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
        _initialize()
        with _lock:
            try:
                # The engine wants a module of its own, which stays empty.
                self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _host_machine())
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


ARCHITECTURES = (
    "aarch64", "arm", "ppc64le", "riscv32", "riscv64", "thumb", "wasm32", "x86", "x86-64",
)  # fmt: skip
"""Names by LLVM of architectures whose objects need only what they should. For others LLVM may
end the process, or make an object that no linker takes."""
_SYSTEM = re.compile(r"(linux|none|windows|freebsd|netbsd|openbsd|wasi)")


def is_x86(triple: str) -> bool:
    """Return whether a target is an x86 processor, of 32 or 64 bits."""
    return triple.startswith(("x86_64", "amd64", "i386", "i486", "i586", "i686"))


def has_few_registers(triple: str, features: str) -> bool:
    """Return whether a target has 16 vector registers at most: x86 below AVX-512.

    Parameters
    ----------
    features : as far as they are named; a processor's name may stand for more.
    """
    return is_x86(triple) and "+avx512f" not in features.split(",")


def check_architecture(triple: str, architecture: str) -> None:
    """Refuse an architecture that is not known to work.

    Parameters
    ----------
    triple : what was asked for.
    architecture : its name by LLVM.

    Raises
    ------
    InputError
        Names those that are.
    """
    if architecture not in ARCHITECTURES:
        raise InputError(
            f"target {triple!r}: kernels are not known to work on {architecture}; architectures: "
            f"{', '.join(ARCHITECTURES)}"
        )


def full_triple(triple: str) -> str:
    """Return a triple with its vendor, which may be left out.

    LLVM's library takes the second word for the vendor whatever it is. Without a system and its
    calling convention, ``arm-linux-gnueabihf`` would pass doubles in the wrong registers.
    """
    first, *others = triple.split("-")
    if others and _SYSTEM.match(others[0]):
        others.insert(0, "unknown")
    return "-".join([first, *others])


def oldest_features(triple: str) -> str:
    """Return what every processor of a target has, where LLVM assumes less.

    The calling convention of ``eabihf`` and of RISC-V with a system passes doubles in
    floating-point registers. On microcontrollers these may be of single precision. Without SSE2,
    arithmetic is not that of doubles.
    """
    architecture, _, rest = full_triple(triple).partition("-")
    bare = "-none-" in f"-{rest}-"
    if architecture.startswith(("arm", "thumb")) and rest.endswith("eabihf"):
        return "+vfp2sp" if bare else "+vfp2"
    if architecture.startswith("riscv") and _SYSTEM.search(rest) and not bare:
        return "+m,+a,+f,+d,+c"
    return "+sse2" if re.fullmatch(r"i[3-6]86", architecture) else ""


_FEATURE = r"[+-](?!help\b)[\w.-]+"
_FEATURES = re.compile(rf"({_FEATURE}(,{_FEATURE})*)?")
_LISTED = re.compile(r"^  (\S+) +- ", re.MULTILINE)
"""A line of the list that LLVM prints for the processor ``help``."""
_UNKNOWN_FEATURE = re.compile(r"'(\S+)' is not a recognized feature")
_EMPTY = "define void @empty() {\n  ret void\n}"


def check_processor(triple: str, cpu: str, features: str) -> None:
    """Refuse what LLVM cannot compile for.

    Parameters
    ----------
    triple, cpu, features : as LLVM has them; see :class:`~delassus_ros.compiler.export.Target`.

    Raises
    ------
    InputError
        If LLVM does not know the triple, or not the processor or a feature for it, if they do
        not go together, or if kernels are not known to work on its architecture.
    """
    check_triple(triple)
    if not re.fullmatch(r"[\w.+-]*", cpu):
        raise InputError(f"processor {cpu!r} is no name; LLVM has names like cortex-a76")
    if not _FEATURES.fullmatch(features):
        raise InputError(f"features {features!r} are not of the form '+avx2,-fma'")
    status, said = _ask(triple, cpu, features)
    if cpu == "help" or f"'{cpu}' is not a recognized processor" in said:
        names = _LISTED.findall(_ask(triple, "help", "")[1].partition("Available features")[0])
        near = ", ".join(difflib.get_close_matches(cpu, names, n=3, cutoff=0.0))
        raise InputError(
            f"processor {cpu!r} is unknown to LLVM for {triple}; e.g. {near}; leave cpu out for "
            "the oldest of the target, or this machine's where no target is named"
        )
    unknown = _UNKNOWN_FEATURE.search(said)
    if unknown is not None:
        raise InputError(f"feature {unknown[1]!r} is unknown to LLVM for {triple}")
    if status:
        last = said.strip().rpartition("\n")[2] or f"exit status {status}"
        raise InputError(
            f"LLVM cannot compile for {triple}, processor {cpu or 'generic'!r}, features "
            f"{features!r}: {last}"
        )


def _ask(triple: str, cpu: str, features: str) -> tuple[int, str]:
    """Return the exit status of a child that compiles for this, and what LLVM said there."""
    done = subprocess.run(
        child.command(__name__, triple, cpu, features),
        stdin=subprocess.DEVNULL, capture_output=True, check=False, **child.surroundings(),
    )  # fmt: skip
    return done.returncode, done.stderr.decode(errors="replace")


def main() -> None:
    """Compile an empty function for what the command line names."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    compile_for(_EMPTY, *sys.argv[1:])


if __name__ == "__main__":
    main()
