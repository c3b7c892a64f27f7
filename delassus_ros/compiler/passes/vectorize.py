"""From a trace to a program: limbs side by side, then rows of contacts, where that pays."""

from __future__ import annotations

from collections.abc import Sequence

from delassus_ros.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    GATHER,
    SHUFFLE,
    SINES,
    SPLAT,
    Instruction,
    Program,
    padded,
)
from delassus_ros.compiler.ir.trace import Trace
from delassus_ros.compiler.passes.calls import Table, table_of
from delassus_ros.compiler.passes.lanes import Lanes, find_lanes
from delassus_ros.compiler.passes.limbs import (
    LimbGroup,
    alike_outputs,
    limb_groups,
    matrix_rows,
    outer_limbs,
)
from delassus_ros.compiler.passes.widen import widened
from delassus_ros.problem import Problem
from delassus_ros.scalars.graph import CONSTANT, COS, INPUT, NEG, SIN
from delassus_ros.scalars.ports import Status

BLOCK = 8
"""Most angles whose sines and cosines are computed in one vector."""

_FREE = {INPUT, CONSTANT, NEG}
_WORTH = 0.95
"""Vectors are used if they need at most this share of the instructions without them."""


def vectorized(problem: Problem, trace: Trace, checked: list[int]) -> Program | Table:
    """Return the program for one configuration, with limb lanes and wide rows where they pay.

    Parameters
    ----------
    checked : positions in the output block whose sum must be finite.
    """
    if trace.graph.routines:
        return table_of(trace, checked, BLOCK)
    groups = limb_groups(problem)
    program = _limbs_packed(problem, trace, checked, groups) if groups else None
    if program is None:
        program = scalar_program(trace, checked)
    wide = widened(program, matrix_rows(problem), outer_limbs(groups))
    return wide if _cost(wide) <= _WORTH * _cost(program) else program


def batch_program(trace: Trace, checked: list[int]) -> Program | Table:
    """Return the program for vectors of configurations: without lanes, every sine a scalar."""
    if trace.graph.routines:
        return table_of(trace, checked, 1)
    return scalar_program(trace, checked, block=1)


def _limbs_packed(
    problem: Problem, trace: Trace, checked: list[int], groups: list[LimbGroup]
) -> Program | None:
    """Return the program with limb lanes, or None if they do not pay."""
    lanes = find_lanes(trace, groups, alike_outputs(problem, groups))
    packed = _Scheduler(trace, lanes, checked).run()
    return packed if _cost(packed) <= _WORTH * _scalar_cost(trace) else None


def scalar_program(trace: Trace, checked: list[int], block: int = BLOCK) -> Program:
    """Return the program without lane vectors.

    Parameters
    ----------
    block : most angles in one vector; 1 leaves every sine and cosine a scalar.
    """
    return _Scheduler(trace, None, checked, block).run()


def _cost(program: Program) -> int:
    """Return a rough number of machine instructions."""
    cost = 0
    for instruction in program.instructions:
        if instruction.kind == GATHER:
            cost += len(instruction.operands) - 1
        elif instruction.kind not in _FREE:
            cost += 1
    return cost


def _scalar_cost(trace: Trace) -> int:
    """Return the same of the program without lanes."""
    return sum(trace.graph.nodes[i][0] not in _FREE for i in trace.live)


class _Scheduler:
    """Puts scalars and packs in an order in which operands come first.

    Values are keyed by the node for scalars and by ~pack, which is negative, for vectors.
    """

    def __init__(
        self, trace: Trace, lanes: Lanes | None, checked: list[int], block: int = BLOCK
    ) -> None:
        self._trace = trace
        self._nodes, self._operands = trace.graph.nodes, trace.graph.operands
        self._lanes = lanes
        self._checked = checked
        self._block_size = block
        self._program = Program()
        self._position: dict[int, int] = {}
        self._extracted: dict[tuple[int, int], int] = {}
        # Per angle: block and lane of its sine and cosine.
        self._place: dict[int, tuple[int, int]] = {}
        self._blocks: dict[tuple[str, int], int] = {}

    def run(self) -> Program:
        """Return the program."""
        self._turn_angles()
        trace, program = self._trace, self._program
        home = self._lanes.home if self._lanes is not None else {}
        for i in trace.live:
            self._require(~home[i][0] if i in home else i)
        for i in [*trace.outputs, *(guard.index for guard in trace.guards)]:
            self._require(i)
        program.outputs = [self._position[n] for n in trace.outputs]
        for guard in trace.guards:
            singular = guard.status is Status.SINGULAR_LOOP
            positions = program.regular if singular else program.guards
            positions.append(self._position[guard.index])
        program.checked = [program.outputs[position] for position in self._checked]
        program.inputs = trace.inputs
        return program

    def _emit(self, instruction: Instruction) -> int:
        self._program.instructions.append(instruction)
        return len(self._program.instructions) - 1

    def _turn_angles(self) -> None:
        """Emit the angles, then one instruction for all their sines and cosines."""
        angles = self._trace.early_angles
        if not angles:
            return
        for i in self._trace.graph.live(angles):
            self._require(i)
        blocks: list[list[int]] = [[]]
        wanted = list(self._lanes.angles) if self._lanes is not None else []
        for group in [*wanted, *((angle,) for angle in angles)]:
            missing = [angle for angle in dict.fromkeys(group) if angle not in self._place]
            if len(blocks[-1]) + len(missing) > self._block_size:
                blocks.append([])
            for angle in missing:
                self._place[angle] = len(blocks) - 1, len(blocks[-1])
                blocks[-1].append(angle)
        self._sizes = [len(block) for block in blocks]
        self._emit(
            Instruction(
                ANGLES,
                1,
                tuple(self._position[angle] for block in blocks for angle in block),
                lanes=tuple(self._sizes),
            )
        )

    def _require(self, root: int) -> None:
        """Emit a value after everything it needs; iterative, since graphs are deep."""
        position = self._position
        stack = [root]
        while stack:
            value = stack[-1]
            if value in position:
                stack.pop()
                continue
            missing = [need for need in self._needs(value) if need not in position]
            if missing:
                stack += reversed(missing)
                continue
            stack.pop()
            position[value] = self._vector(~value) if value < 0 else self._scalar(value)

    def _needs(self, value: int) -> Sequence[int]:
        lanes = self._lanes
        if value >= 0:
            if lanes is not None and value in lanes.home:
                return (~lanes.home[value][0],)
            return () if self._is_turned(value) else self._operands[value]
        if lanes is None:
            return ()
        pack = lanes.packs[~value]
        if pack.kind == SPLAT:
            return pack.lanes[:1]
        if pack.kind == GATHER or (pack.kind in (SIN, COS) and not self._side_by_side(pack.lanes)):
            return list(dict.fromkeys(pack.lanes))
        return [~source for source in pack.sources]

    def _is_turned(self, node: int) -> bool:
        """Return True for a sine or cosine of an early angle."""
        kind = self._nodes[node][0]
        return kind in (SIN, COS) and self._nodes[node][1] in self._place

    def _side_by_side(self, nodes: tuple[int, ...]) -> bool:
        """Return True if the angles of sines (or cosines) are in one block."""
        return len({self._place[self._nodes[n][1]][0] for n in nodes}) == 1

    def _block(self, kind: str, block: int) -> int:
        name = SINES if kind == SIN else COSINES
        if (name, block) not in self._blocks:
            width = padded(self._sizes[block])
            self._blocks[name, block] = self._emit(Instruction(name, width, lanes=(block,)))
        return self._blocks[name, block]

    def _scalar(self, node: int) -> int:
        kind = self._nodes[node][0]
        if self._lanes is not None and node in self._lanes.home:
            pack, lane = self._lanes.home[node]
            return self._lane(self._position[~pack], lane)
        if self._is_turned(node):
            block, lane = self._place[self._nodes[node][1]]
            return self._lane(self._block(kind, block), lane)
        if kind == INPUT:
            return self._emit(Instruction(INPUT, 1, lanes=(self._nodes[node][1],)))
        if kind == CONSTANT:
            return self._emit(Instruction(CONSTANT, 1, constant=(self._nodes[node][1],)))
        arguments = tuple(self._position[n] for n in self._operands[node])
        return self._emit(Instruction(kind, 1, arguments))

    def _lane(self, vector: int, lane: int) -> int:
        if self._program.instructions[vector].width == 1:
            return vector
        key = vector, lane
        if key not in self._extracted:
            self._extracted[key] = self._emit(Instruction(EXTRACT, 1, (vector,), lanes=(lane,)))
        return self._extracted[key]

    def _vector(self, index: int) -> int:
        if self._lanes is None:
            raise ValueError("vectors exist only with lanes")
        pack = self._lanes.packs[index]
        width = padded(len(pack.lanes or pack.where))
        if pack.kind == CONSTANT:
            values = tuple(self._nodes[n][1] for n in pack.lanes)
            return self._emit(Instruction(CONSTANT, width, constant=values))
        if pack.kind == SPLAT:
            return self._emit(Instruction(SPLAT, width, (self._position[pack.lanes[0]],)))
        if pack.kind in (SIN, COS) and self._side_by_side(pack.lanes):
            places = [self._place[self._nodes[n][1]] for n in pack.lanes]
            block = self._block(pack.kind, places[0][0])
            return self._shuffled(block, width, tuple(lane for _, lane in places))
        if pack.kind in (GATHER, SIN, COS):
            scalars = tuple(self._position[n] for n in pack.lanes)
            return self._emit(Instruction(GATHER, width, scalars))
        sources = tuple(self._position[~source] for source in pack.sources)
        if pack.kind == SHUFFLE:
            return self._shuffled(sources[0], width, pack.where)
        return self._emit(Instruction(pack.kind, width, sources, lanes=pack.where))

    def _shuffled(self, vector: int, width: int, where: tuple[int, ...]) -> int:
        same_width = self._program.instructions[vector].width == width
        if same_width and where == tuple(range(len(where))):
            return vector
        return self._emit(Instruction(SHUFFLE, width, (vector,), lanes=where))
