"""From a trace to a program: an instruction for each node, then the passes that pay.

Limbs are put side by side first, then sines in blocks, then rows of contacts side by side.
"""

from __future__ import annotations

from delassus.compiler.ir.program import GATHER, WIDEST, Instruction, Program
from delassus.compiler.ir.trace import Trace
from delassus.compiler.passes.angles import turned
from delassus.compiler.passes.calls import Table, table_of
from delassus.compiler.passes.lanes import packed
from delassus.compiler.passes.limbs import Likeness, likeness_of, outer_limbs
from delassus.compiler.passes.widen import widened
from delassus.problem import Problem
from delassus.scalars.graph import CONSTANT, INPUT, NEG
from delassus.scalars.ports import Status

_FREE = {INPUT, CONSTANT, NEG}
_WORTHWHILE_SHARE = 0.95
"""Vectors are used if they need at most this share of the instructions without them."""


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


def vectorized(problem: Problem, trace: Trace, checked: list[int]) -> Program | Table:
    """Return the program for one configuration, with limb lanes and wide rows where they pay.

    Parameters
    ----------
    checked : positions in the output block whose sum must be finite.
    """
    if trace.graph.routines:
        return table_of(trace, checked, WIDEST)
    return vector_program(trace, checked, likeness_of(problem))


def vector_program(trace: Trace, checked: list[int], likeness: Likeness) -> Program:
    """Return the program of a trace without calls; see :func:`vectorized`."""
    scalars = scalars_of(trace, checked)
    groups = likeness.groups
    program = turned(packed(scalars, groups, likeness.outputs))
    if length(program) > _WORTHWHILE_SHARE * length(scalars):
        program = turned(scalars)
    return _cheaper(widened(program, likeness.rows, outer_limbs(groups)), program)


def batch_program(trace: Trace, checked: list[int]) -> Program | Table:
    """Return the program for vectors of configurations: without lanes, every sine a scalar."""
    if trace.graph.routines:
        return table_of(trace, checked, 1)
    return scalar_program(trace, checked, block=1)


def scalar_program(trace: Trace, checked: list[int], block: int = WIDEST) -> Program:
    """Return the program without lane vectors.

    Parameters
    ----------
    block : most angles in one vector; 1 leaves every sine and cosine a scalar.
    """
    return turned(scalars_of(trace, checked), block)


def _cheaper(changed: Program, program: Program) -> Program:
    """Return the changed program if it is clearly shorter, else the program as it was."""
    return changed if length(changed) <= _WORTHWHILE_SHARE * length(program) else program


def length(program: Program) -> int:
    """Return a rough number of machine instructions."""
    cost = 0
    for instruction in program.instructions:
        if instruction.kind == GATHER:
            cost += len(instruction.operands) - 1
        elif instruction.kind not in _FREE:
            cost += 1
    return cost
