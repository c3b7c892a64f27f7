"""Kernels that leave Python: an object file and a C header, for this machine or another one.

A C++ controller links the object and has G in its own process, without Python and without
LLVM. The object needs only ``sin`` and ``cos`` of the C library, and where the processor has no
arithmetic of doubles, the compiler's own library for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delassus.algorithms.registry import Algorithm, TracedAlgorithm, get, spelling
from delassus.compiler.build import shortest
from delassus.compiler.codegen import emit
from delassus.compiler.codegen.target import (
    has_few_registers,
    host_cpu,
    host_features,
    host_triple,
    oldest_features,
)
from delassus.compiler.codegen.writer import declarations
from delassus.compiler.function import CompiledFunction
from delassus.compiler.header import (
    COMPILED_BY,
    comment,
    constants,
    framed,
    ports,
    statuses,
)
from delassus.compiler.ir.program import Part, Program
from delassus.compiler.passes.calls import Table
from delassus.compiler.passes.order import depth_first
from delassus.compiler.passes.partition import LONG, LONG_OF_FEW, single_parts
from delassus.compiler.runtime.jit import compile_for
from delassus.compiler.runtime.processor import check_processor, check_triple
from delassus.errors import AlgorithmError, InputError
from delassus.problem import Problem
from delassus.scalars.ports import Port

_KEYWORDS = frozenset(
    """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
    constinit continue decltype default delete do double dynamic_cast else enum explicit export
    extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
    return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
    virtual void volatile wchar_t while xor xor_eq
    """.split()
)
"""Keywords of C23 and C++20 without an underscore in front."""


@dataclass(frozen=True)
class Target:
    """What to compile for.

    Attributes
    ----------
    triple : LLVM target triple, e.g. ``aarch64-linux-gnu``; empty for this machine. Its
        architecture is one of :data:`~delassus.compiler.runtime.jit.ARCHITECTURES`.
    cpu : processor name as LLVM has it, e.g. ``cortex-a76`` or ``x86-64-v3``; empty for this
        processor with the empty triple, else the oldest of the target.
    features : LLVM feature string, e.g. ``+avx2,+fma``; with the oldest processor, besides those
        that the target's calling convention needs.
    """

    triple: str = ""
    cpu: str = ""
    features: str = ""

    def resolved(self) -> Target:
        """Return the target with this machine's values where they are meant."""
        if self.triple and self.cpu:
            return self
        if self.triple:
            features = (oldest_features(self.triple), self.features)
            return Target(self.triple, "", ",".join(filter(None, features)))
        native = not self.cpu
        return Target(
            host_triple(),
            host_cpu() if native else self.cpu,
            host_features() if native and not self.features else self.features,
        )

    def compiled(self, code: str, *, middle_end: bool = False) -> bytes:
        """Return the object file of LLVM IR for a resolved target; see :func:`compile_for`."""
        return compile_for(code, self.triple, self.cpu, self.features, middle_end=middle_end)

    @property
    def described(self) -> str:
        """Triple and processor for a comment in C."""
        return f"{comment(self.triple)}, processor {comment(self.cpu or 'generic')}"


@dataclass(frozen=True)
class Export:
    """A kernel for C and C++.

    Attributes
    ----------
    object_file : relocatable, position-independent machine code.
    header : text of the C header that describes it.
    """

    object_file: bytes
    header: str


def check_name(name: str) -> None:
    """Refuse a prefix that symbols of C cannot have.

    Raises
    ------
    InputError
        If it is not a C identifier, or a keyword or reserved name of C or C++.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InputError(
            f"name {name!r} is not a C identifier (letters, digits, underscores, no digit first)"
        )
    if name in _KEYWORDS or name == "main" or re.match(r"_[A-Z_]", name):
        raise InputError(
            f"name {name!r} is a keyword or reserved name of C or C++; expected another prefix of "
            f"the symbols, such as 'robot_{name.strip('_')}'"
        )


def checked_target(target: Target | None) -> Target:
    """Return a resolved target; this machine if None.

    Raises
    ------
    InputError
        If kernels are not known to work on the target, or LLVM does not know the target, its
        processor or a feature.
    """
    target = target or Target()
    resolved = target.resolved()
    if target.triple:
        check_triple(target.triple)
    if target.cpu or target.features:
        check_processor(resolved.triple, resolved.cpu, resolved.features)
    return resolved


def export(
    problem: Problem, algorithm: Algorithm | str, name: str, target: Target | None = None
) -> Export:
    """Return the kernel of a problem as an object file with its header.

    Parameters
    ----------
    algorithm : the algorithm, or its name or alias; the header reports what is given.
    name : prefix of all symbols; a C identifier.
    target : this machine if None.

    Raises
    ------
    InputError
        If `name` is not a C identifier, kernels are not known to work on the target, or LLVM
        does not know it, its processor or a feature.
    AlgorithmError
        If the algorithm is unknown, refuses the problem, or is a back end.
    """
    check_name(name)
    if isinstance(algorithm, str):
        reported, algorithm = spelling(algorithm), get(algorithm)
    else:
        reported = algorithm.name
    if not isinstance(algorithm, TracedAlgorithm):
        raise AlgorithmError(
            f"algorithm {algorithm.name!r} is a back end: there is no kernel to export; choose "
            "one that `delassus list` shows as compiled"
        )
    reason = algorithm.supports(problem)
    if reason is not None:
        raise AlgorithmError(f"algorithm {algorithm.name!r} cannot solve this problem: {reason}")
    resolved = checked_target(target)
    _, _, program = shortest(problem, algorithm)
    module = emit.bare_module(_code(program, resolved), f"{name}_kernel", f"{name}_slice")
    header = _header(problem, reported, name, resolved, module.work_size)
    return Export(resolved.compiled(module.ir), header)


def _code(program: Program | Table, target: Target) -> list[Part] | Table:
    """Return what is written of a program, in the order that suits the target."""
    if not isinstance(program, Program):
        return program
    few = has_few_registers(target.triple, target.features)
    return single_parts(depth_first(program), LONG_OF_FEW if few else LONG)


def export_functions(
    functions: Mapping[str, tuple[CompiledFunction, tuple[Port, ...]]],
    name: str,
    about: Sequence[str],
    names: Mapping[str, Sequence[str]],
    target: Target | None = None,
) -> Export:
    """Return compiled functions as one object file with its header ``NAME_dynamics.h``.

    Parameters
    ----------
    functions : by what follows ``NAME_`` in their symbols, each with its results in order.
    name : prefix of all symbols; a C identifier.
    about : lines of the comment at the top of the header.
    names : arrays of strings by what follows ``NAME_``: a sentence about each, then its values.
    target : this machine if None.

    Raises
    ------
    InputError
        As for :func:`export`.
    """
    check_name(name)
    resolved = checked_target(target)
    upper = name.upper()
    texts: list[str] = []
    enumerators: list[str] = []
    prototypes: list[str] = []
    for suffix, (function, results) in functions.items():
        code, size = emit.functions(_code(function.program(), resolved), f"{name}_{suffix}")
        texts += code
        prefix = f"{upper}_{suffix.upper()}"
        enumerators += ports(prefix, function.inputs, results, size)
        prototypes.append(f"int32_t {name}_{suffix}(const double *in, double *out, double *work);")
    first, *more = map(comment, about)
    words = [
        f"{first}, {COMPILED_BY}.",
        *more,
        f"Target {resolved.described}. Link with the C maths library.",
    ]
    lines = [
        "/* The blocks of the functions: offsets and sizes in doubles. */",
        "enum {",
        *enumerators,
        f"  {upper}_DYNAMICS_FUNCTIONS = {len(functions)}",
        "};",
        "",
        *statuses(f"{upper}_DYNAMICS"),
        "",
    ]
    for suffix, (meaning, *values) in names.items():
        lines.append(f"/* {meaning} */")
        lines.append(constants("char *const", f"{name}_{suffix}", values))
    lines += [
        "",
        "/* Re-entrant; each reads in[] and writes out[], row-major; work is scratch, one for",
        "   each thread, and may be null if WORK_SIZE is 0. */",
        *prototypes,
    ]
    header = framed(f"{upper}_DYNAMICS_H", words, lines)
    return Export(resolved.compiled("\n".join([*texts, declarations(), ""])), header)


def _header(problem: Problem, algorithm: str, name: str, target: Target, work_size: int) -> str:
    upper = name.upper()
    contacts, robot = problem.contacts, problem.robot
    velocities_size, velocities = _velocities(problem, name)
    joints = [joint.name for joint in robot.joints for _ in range(joint.kind.nq)]
    own = "the axes of the world" if problem.axes == "world" else "the contact's own axes"
    about = [
        f"Delassus matrix G = J inv(M) J^T of {comment(robot.name)}, {COMPILED_BY}.",
        f"Algorithm {algorithm}; target {target.described}; problem {problem.digest[:16]}.",
        f"Units: m, kg, rad. Rows of a contact: linear x, y, z, then angular, in {own}.",
        "Link with the C maths library.",
    ]
    lines = [
        "enum {",
        *ports(upper, problem.inputs, problem.outputs, work_size),
        f"  {upper}_ROWS = {contacts.rows}, /* of G with all contacts */",
        *velocities_size,
        f"  {upper}_CONTACTS = {len(contacts)}",
        "};",
        "",
        *statuses(upper),
        "",
        "/* The joint of each entry of q. */",
        constants("char *const", f"{name}_joints", joints),
        "/* The contacts, in the order of their rows, and the first row of each; then ROWS. */",
        constants("char *const", f"{name}_contacts", contacts.names),
        constants("int64_t", f"{name}_row_offsets", contacts.row_offsets),
        *_placements(problem, name),
        *velocities,
        "",
        "/* Compute all outputs. Re-entrant; reads in[], writes out[], row-major; work is",
        "   scratch, one for each thread, and may be null if WORK_SIZE is 0. */",
        f"int32_t {name}_kernel(const double *in, double *out, double *work);",
        "",
        "/* Copy the rows and columns rows[0..k-1] of the m x m matrix G to the k x k matrix",
        "   out: the matrix of the active contacts. */",
        f"void {name}_slice(const double *G, int64_t m, const int64_t *rows, int64_t k, "
        "double *out);",
    ]
    return framed(f"{upper}_DELASSUS_H", about, lines)


def _velocities(problem: Problem, name: str) -> tuple[list[str], list[str]]:
    """Return the enumerator and the names of what J is multiplied by; none with G alone."""
    if len(problem.outputs) == 1:
        return [], []
    size = f"  {name.upper()}_VELOCITIES = {len(problem.velocities)}, "
    return [size + "/* columns of J, rows of MinvJT and M */"], [
        "/* The joint of each velocity: of columns of J, rows of MinvJT, rows and columns of M,",
        "   entries of rates, torques and h. A floating base has the first six: the twist or the",
        "   wrench of its root link in its own axes, linear first. */",
        constants("char *const", f"{name}_velocities", problem.velocities),
    ]


def _placements(problem: Problem, name: str) -> list[str]:
    """Return what says which contact each row of the inputs for moving ones belongs to."""
    lines = []
    for what, port, contacts, meaning in (
        ("moving", "contact_positions", problem.moving, "x, y, z [m] in the contact's frame"),
        ("turning", "contact_orientations", problem.turning,
         "unit quaternion x, y, z, w from the contact's axes to its frame's"),
    ):  # fmt: skip
        if not contacts:
            continue
        values = problem.placements[port].ravel().tolist()
        lines += [
            f"/* The contact of each row of {port}: {meaning}.",
            "   Then the rows of the contacts' own places, to begin with. */",
            constants("char *const", f"{name}_{what}", contacts),
            constants("double", f"{name}_{port}", values),
        ]
    return lines
