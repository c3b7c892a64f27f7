"""From a trace to a program of scalars: an instruction for each node."""

from __future__ import annotations

from delassus_ros.compiler.ir.program import Instruction, Program
from delassus_ros.compiler.ir.trace import Trace
from delassus_ros.scalars.ports import Status


def scalars_of(trace: Trace, checked: list[int]) -> Program:
    """Return the program of a trace without calls, its sines and cosines one by one.

    Parameters
    ----------
    checked : positions in the output block whose sum must be finite.
    """
    nodes, operands = trace.graph.nodes, trace.graph.operands
    at = {n: position for position, n in enumerate(trace.live)}
    program = Program(
        [Instruction.of(nodes[n], tuple([at[k] for k in operands[n]])) for n in trace.live],
        [at[n] for n in trace.outputs],
        inputs=trace.inputs,
    )
    for guard in trace.guards:
        singular = guard.status is Status.SINGULAR_LOOP
        (program.regular if singular else program.guards).append(at[guard.index])
    program.checked = [program.outputs[position] for position in checked]
    return program
