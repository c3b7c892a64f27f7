"""``delassus export``: an object file, its C header, and a package file for CMake."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path

from delassus import algorithms
from delassus.cli.component import component_of
from delassus.cli.imports import add_import
from delassus.cli.options import (
    add_axes,
    add_base,
    add_contacts,
    length_and_width,
    problem_of,
)
from delassus.cli.parsing import Verb
from delassus.cli.report import Report, about, compiling, headline, table, waiting
from delassus.compiler.export import Export, Target, check_name, export
from delassus.contact_forces.export import export_contact_forces
from delassus.dynamics import FUNCTIONS, Dynamics
from delassus.errors import InputError
from delassus.outputs import OUTPUTS, kernel_outputs
from delassus.problem import Problem
from delassus.solver.friction import dimensions_of


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the problem and of the written files."""
    parser.add_argument(
        "robot",
        metavar="ROBOT.urdf | CONFIG.yaml",
        help="robot description; or, with --urdf, a parameter file of the node, "
        "whose base, axes, contacts, loops and algorithm are taken",
    )
    parser.add_argument("--urdf", metavar="ROBOT.urdf", help="robot description, for CONFIG.yaml")
    add_base(parser)
    add_contacts(parser)
    add_axes(parser, default=None)
    parser.add_argument(
        "-o",
        "--output",
        metavar="KERNEL.o",
        help="object file that is written (default: the name of the robot description, in the "
        "present folder)",
    )
    parser.add_argument(
        "--header", metavar="KERNEL.h", help="C header that is written (default: beside KERNEL.o)"
    )
    parser.add_argument(
        "--name",
        metavar="NAME",
        help="prefix of all symbols and name for CMake's find_package, a C identifier (default: "
        "that of the object file)",
    )
    parser.add_argument(
        "--algorithm",
        metavar="NAME",
        help="algorithm, a compiled one of `delassus list` (default: that of CONFIG, or auto)",
    )
    parser.add_argument(
        "--outputs",
        default="G",
        metavar="NAME,…",
        help="outputs of the kernel besides G, any of: "
        + "; ".join(f"{name}, {OUTPUTS[name].description}" for name in kernel_outputs()[1:])
        + " (default: G alone)",
    )
    parser.add_argument(
        "--target",
        default="",
        metavar="TRIPLE",
        help="LLVM target triple, e.g. aarch64-linux-gnu or arm-linux-gnueabihf (default: this "
        "machine)",
    )
    parser.add_argument(
        "--cpu",
        default="",
        metavar="CPU",
        help="name of the processor in LLVM, e.g. cortex-a76 (default: this processor; with "
        "--target the oldest processor of the target)",
    )
    parser.add_argument(
        "--friction",
        action="store_true",
        help="write the solver of contact forces with friction as well, NAME_forces.o and "
        "NAME_forces.h beside the object file; the solver takes G and a0 (--outputs a0)",
    )
    parser.add_argument(
        "--dynamics",
        metavar="FUNCTION[:METHOD],…",
        help="write functions of the robot's dynamics as well, NAME_dynamics.o and "
        "NAME_dynamics.h beside the object file: of " + ", ".join(FUNCTIONS),
    )
    parser.add_argument(
        "--dimensions",
        metavar="LENGTH,WIDTH",
        help="length along x and width along y [m] of surfaces for which the parameter file has "
        "no dimensions; for --friction",
    )
    add_import(parser)


def export_kernel(options: argparse.Namespace) -> Report:
    """Write the object file, the header and the package file of a kernel for C and C++."""
    description = options.urdf or options.robot
    output = options.output or f"{Path(description).stem}.o"
    if not Path(output).name:
        raise InputError(f"-o {output} is a folder; expected the name of a file, as KERNEL.o")
    header = options.header or str(Path(output).with_suffix(".h"))
    name = options.name or re.sub(r"\W", "_", Path(output).stem, flags=re.ASCII)
    if not (options.name or name.isidentifier()):
        raise InputError(f"-o {output} gives no prefix for names in C: add --name PREFIX")
    check_name(name)
    package = str(Path(output).with_name(f"{name}Config.cmake"))
    beside = {
        option: [str(Path(output).with_name(f"{name}_{what}.{end}")) for end in ("o", "h")]
        for option, what in (("friction", "forces"), ("dynamics", "dynamics"))
        if getattr(options, option) not in (None, False)
    }
    written = {"-o": output, "--header": header, f"{name}Config.cmake": package}
    written |= {Path(path).name: path for files in beside.values() for path in files}
    _check_files(options, written)
    problem, algorithm = _asked_for(options)
    target = Target(options.target, options.cpu)
    with waiting(compiling(problem)):
        exported = export(problem, algorithm, name, target)
    contents = {output: exported.object_file, header: exported.header.encode()}
    objects = [output]
    facts = [
        ("function", f"{name}_kernel"),
        ("algorithm", algorithms.spelling(algorithm)),
        ("outputs", ", ".join(port.name for port in problem.outputs)),
        ("object file", f"{output}, {len(exported.object_file)} bytes"),
        ("header", header),
        ("CMake", f"find_package({name}), with {name}_DIR={os.path.dirname(package) or '.'}"),
    ]
    data = {
        **about(problem),
        "function": f"{name}_kernel",
        "algorithm": algorithms.spelling(algorithm),
        "outputs": [port.name for port in problem.outputs],
        "files": {"object": output, "header": header, "cmake": package},
    }
    for option, more, words, functions in _exported_beside(options, problem, name, target):
        code, declarations = beside[option]
        contents |= {code: more.object_file, declarations: more.header.encode()}
        objects.append(code)
        facts.append((option, f"{words} in {declarations}, {code}"))
        data[option] = {**functions, "object": code, "header": declarations}
    _write({**contents, package: _cmake(name, package, objects, header).encode()})
    if problem.robot.clustered.is_closed:
        facts.append(("q", "of all joints: the kernel takes positions that close the loops"))
    return Report("\n".join([headline(problem), "", table(facts)]), data)


def _exported_beside(
    options: argparse.Namespace, problem: Problem, name: str, target: Target
) -> Iterator[tuple[str, Export, str, dict[str, object]]]:
    """Yield option, code and functions, as text and as data, of what goes with the kernel."""
    if options.friction:
        contacts = problem.contacts
        solver = export_contact_forces(
            [contact.kind_name for contact in contacts], name, target=target,
            dimensions=dimensions_of(contacts, length_and_width(options.dimensions)),
            normals=[contact.normal for contact in contacts],
        )  # fmt: skip
        function = f"{name}_contact_forces"
        yield "friction", solver, function, {"function": function}
    elif options.dimensions is not None:
        raise InputError("--dimensions are given without --friction, which they are for")
    if options.dynamics is not None:
        functions = options.dynamics.split(",")
        compiled = Dynamics(problem.robot.clustered).export(functions, name, target)
        yield "dynamics", compiled, options.dynamics, {"functions": functions}


EXPORT = Verb(
    "export",
    "compile the matrix for C and C++, with a package for CMake",
    "quadruped.urdf --contact LF_FOOT --contact RF_FOOT -o quadruped.o",
    export_kernel,
    _add_options,
)


def _asked_for(options: argparse.Namespace) -> tuple[Problem, str]:
    """Return the exported problem, and the name of its algorithm."""
    if options.urdf is None:
        if Path(options.robot).suffix in (".yaml", ".yml"):
            raise InputError(
                f"{options.robot} is a parameter file of the node; add --urdf ROBOT.urdf, or name "
                "a robot description in its place"
            )
        return problem_of(options), options.algorithm or "auto"
    return component_of(options, "a parameter file of the node").exported(options)


def _cmake(name: str, package: str, objects: list[str], header: str) -> str:
    """Return the package file; its paths are relative to its folder."""
    here = os.path.dirname(os.path.abspath(package))
    places = [os.path.relpath(path, here) for path in objects]
    code = ";".join(f"${{CMAKE_CURRENT_LIST_DIR}}/{place}" for place in places)
    include = os.path.relpath(os.path.dirname(os.path.abspath(header)), here)
    return f"""\
# Made by `delassus export`: find_package({name} REQUIRED) has the target {name}::{name}.
if(CMAKE_VERSION VERSION_LESS 3.12)
  message(FATAL_ERROR "{name}: object libraries are linked from CMake 3.12 on")
endif()
if(NOT TARGET {name}::{name})
  add_library({name}::{name} OBJECT IMPORTED)
  set_target_properties({name}::{name} PROPERTIES
    IMPORTED_OBJECTS "{code}"
    INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}/{include}"
    INTERFACE_LINK_LIBRARIES m)
endif()
"""


def _check_files(options: argparse.Namespace, written: dict[str, str]) -> None:
    """Refuse outputs that are the same file, or an input."""
    used = {
        os.path.realpath(path): what
        for what, path in (("CONFIG" if options.urdf else "ROBOT", options.robot),
                           ("--urdf", options.urdf), ("--loops", options.loops))
        if path
    }  # fmt: skip
    for what, path in written.items():
        other = used.setdefault(os.path.realpath(path), what)
        if other != what:
            raise InputError(f"{other} and {what} are one file, {path!r}; name two")


def _write(contents: dict[str, bytes]) -> None:
    """Write all files, or none if one cannot be written: object and header belong together."""
    created: list[str] = []
    for path in contents:
        is_new = not os.path.exists(path)
        try:
            # A pipe without a reader is refused instead of waited for.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK, 0o666))
        except OSError as error:
            for path in created:
                os.unlink(path)
            raise InputError(f"{path!r} cannot be written: {error.strerror}") from error
        if is_new:
            created.append(path)
    for path, content in contents.items():
        try:
            Path(path).write_bytes(content)
        except OSError as error:
            raise InputError(f"{path!r} cannot be written: {error.strerror}") from error
