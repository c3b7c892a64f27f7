"""Files that node.c is compiled with, for a robot and a parameter file of delassus_node.

``python prepare.py CONFIG.yaml --urdf ROBOT.urdf FOLDER`` writes the exported kernel (``robot.o``,
``robot.h``) and ``node_data.h``: the serialized Layout, the limits, and the data of conditioning.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.serialization import serialize_message

from delassus.compiler.header import c_string
from delassus.conditioning.monitor import Damping
from delassus.contacts import row_scales
from delassus.errors import DelassusError, InputError
from delassus.model.ranges import PlausibleRanges
from delassus.solver.solver import DelassusSolver
from delassus.solver.structural_rank import generic_matrices, unit_scales
from delassus_ros.node.matrix import make_layout
from delassus_ros.node.parameters import Operation, Settings
from delassus_ros.verbs import main as command_line
from delassus_ros.verbs.parameter_files import parameters_of


def main(arguments: list[str] | None = None) -> int:
    """Read the arguments and write the files."""
    parser = argparse.ArgumentParser("prepare.py", description=__doc__)
    parser.add_argument("config", help="parameter file of delassus_node")
    parser.add_argument("folder", type=Path, help="folder of the written files")
    parser.add_argument("--urdf", required=True, type=Path, help="the robot description")
    options = parser.parse_args(arguments)
    try:
        text = node_data(parameters_of(options.config), options.urdf.read_bytes())
    except (DelassusError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    code = command_line.main(
        [
            "export",
            options.config,
            "--urdf",
            str(options.urdf),
            "-o",
            str(options.folder / "robot.o"),
        ]
    )
    if code == 0:
        (options.folder / "node_data.h").write_text(text)
    return code


def node_data(parameters: dict[str, Any], urdf: bytes) -> str:
    """Return the text of node_data.h.

    Raises
    ------
    InputError
        If the node in C lacks a part that the parameters ask for.
    """
    settings, operation = (
        Settings.from_parameters(parameters),
        Operation.from_parameters(parameters),
    )
    problem = settings.problem(urdf)
    solver = DelassusSolver(problem, settings.algorithm)
    limits = operation.limits
    lacks = {
        "a robot without loops or couplings": problem.robot.clustered.is_closed,
        "joint positions as the only input": [port.name for port in problem.inputs] != ["q"],
        "rows: active": settings.rows != "active",
        "contacts.source: topic": settings.scheduled or settings.observer is not None,
        "outputs: [G]": bool(settings.outputs),
        "damping.mode: none": limits.condition.damping is not Damping.NONE,
        "rate: 0.0 and deadline: 0.0": operation.rate > 0 or np.isfinite(operation.deadline),
        "an exact algorithm": solver.is_approximate,
    }
    for needed, is_lacking in lacks.items():
        if is_lacking:
            raise InputError(f"the node in C needs {needed}; use delassus_node instead")
    contacts, condition = problem.contacts, limits.condition
    layout = make_layout(problem, Time(), more=settings.layout_digest_text(problem))
    scales = unit_scales(contacts)
    generic = generic_matrices(solver) * np.outer(scales, scales)
    ranges = PlausibleRanges(problem.robot)
    lines = [
        "/* Made by prepare.py: data of node.c besides the kernel. */",
        "#include <math.h>",
        "#include <stdint.h>",
        f"#define NODE_LAYOUT_ID {c_string(layout.layout_id)}",
        f"#define NODE_FRAME_ID {c_string(layout.header.frame_id)}",
        f"#define NODE_ALGORITHM {c_string(solver.algorithm)}",
        f"#define NODE_AXES {layout.axes}",
        f"#define NODE_GENERIC {len(generic)}",
        f"#define NODE_MAX_SKEW_NS INT64_C({round(limits.max_skew * 1e9)})",
        f"#define NODE_INPUT_TIMEOUT_NS {_number(limits.input_timeout * 1e9)}",
        f"#define NODE_CONTACTS_TIMEOUT_NS {_number(limits.contacts_timeout * 1e9)}",
        f"#define NODE_PATIENCE_NS {_number(limits.patience * 1e9)}",
        f"#define NODE_WEAK {_number(condition.weak)}",
        f"#define NODE_SINGULAR {_number(condition.singular)}",
        f"#define NODE_HYSTERESIS {_number(condition.hysteresis)}",
        _array("unsigned char", "layout", serialize_message(layout)),
        "static const char *const node_kinds[] = {"
        + ", ".join(map(c_string, layout.kinds))
        + "};",
        _array("double", "lower", ranges.lower),
        _array("double", "upper", ranges.upper),
        _array("double", "scales", row_scales(contacts, condition.characteristic_length)),
        _array("double", "generic", generic.ravel()),
    ]
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    """Return a number in C, exact to the last bit."""
    return repr(float(value)) if np.isfinite(value) else "INFINITY" if value > 0 else "-INFINITY"


def _array(kind: str, name: str, values: Iterable[float]) -> str:
    numbers = (str(value) if kind == "unsigned char" else _number(value) for value in values)
    return f"static const {kind} node_{name}[] = {{{', '.join(numbers)}}};"


if __name__ == "__main__":
    sys.exit(main())
