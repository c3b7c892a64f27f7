"""The order of instructions: depth first at large, by list scheduling nearby.

At large. A trace computes whole matrices, of which the next step may
need an entry now and most much later. What waits is stored and loaded again: half of the work of
vectors of configurations was that. Depth first, an instruction comes just before the first that
uses it; of several operands the one with the longest chain of operands comes first: fewer values
are stored for a later part of a program, of humanoids half as many, and somewhat more are loaded.
The code becomes shorter, by a tenth for a humanoid. Which order is the faster one depends on
program and processor, see
:func:`~delassus.compiler.passes.partition.orders`.

Nearby. Limbs, rows and joints are computed one after the other in a trace.
Much of that could be done at the same time, but a processor looks some hundred instructions ahead
only, and while it waits for the chain of divisions at a root, say, all that it sees may depend
on that. List scheduling takes at each cycle, of the instructions whose operands are there, the
one with the longest way to the end behind it. It looks ahead not too far either: what is computed
early occupies a register until it is needed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from delassus.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    FLIP,
    JOIN,
    LOAD,
    SHUFFLE,
    SINES,
    SPLAT,
    Instruction,
    Part,
    Program,
    needs,
)
from delassus.scalars.graph import CONSTANT, COS, DIV, INPUT, NEG, SIN, SQRT

_WINDOW_INSTRUCTIONS = 96
"""Instructions that one may overtake."""
_USUAL_CYCLES = 4  # cycles of an addition or a multiplication
_LATENCY_CYCLES = {
    DIV: 14, SQRT: 18, SIN: 60, COS: 60, ANGLES: 60, INPUT: 5, LOAD: 5, SHUFFLE: 3, JOIN: 3,
    EXTRACT: 3, SPLAT: 3, FLIP: 1, CONSTANT: 0, SINES: 0, COSINES: 0,
}  # fmt: skip
"""Cycles until a result is there, on most processors; by kind, where it is not the usual."""
_FREE = {INPUT, CONSTANT, NEG, FLIP, SINES, COSINES}
"""What comes with another instruction, or takes no time to speak of."""


def interleaved(part: Part) -> Part:
    """Return a part that computes the same in another order."""
    program, at = part.program.in_order(_order(part.program.instructions))
    return Part(
        program,
        [(at[k], place) for k, place in part.stores],
        [(at[k], entry) for k, entry in part.outputs],
    )


def depth_first(program: Program) -> Program:
    """Return a program that computes the same, each instruction only when the next needs it."""
    needed = needs(program.instructions)
    depth = [0] * len(needed)
    for k, operands in enumerate(needed):
        depth[k] = 1 + max((depth[o] for o in operands), default=0)

    def deepest_first(k: int) -> Iterator[int]:
        return iter(sorted(needed[k], key=lambda o: (-depth[o], o)))

    order: list[int] = []
    begun = bytearray(len(needed))
    for root in (*program.outputs, *range(len(needed))):
        if begun[root]:
            continue
        begun[root] = True
        path = [(root, deepest_first(root))]
        while path:
            k, rest = path[-1]
            missing = next((o for o in rest if not begun[o]), None)
            if missing is None:
                order.append(k)
                path.pop()
            else:
                begun[missing] = True
                path.append((missing, deepest_first(missing)))
    return program.in_order(order)[0]


def _order(code: list[Instruction]) -> list[int]:
    """Return the positions of the instructions in their new order."""
    count = len(code)
    needed = needs(code)
    users: list[list[int]] = [[] for _ in code]
    for k, operands in enumerate(needed):
        for operand in operands:
            users[operand].append(k)
    latency = [_LATENCY_CYCLES.get(instruction.kind, _USUAL_CYCLES) for instruction in code]
    # Cycles from the beginning of an instruction to the end of all that depends on it.
    left = [0] * count
    for k in reversed(range(count)):
        left[k] = latency[k] + max([left[user] for user in users[k]], default=0)
    # Longest way first, then as before; the remainder is the instruction.
    rank = [k - count * left[k] for k in range(count)]
    missing = [len(operands) for operands in needed]
    there = [0] * count  # the cycle at which all operands are
    arriving: dict[int, list[int]] = {0: [k for k in range(count) if not missing[k]]}
    ready: list[int] = []  # ranks of what could be next
    ahead: list[int] = []  # what could be, but for the window
    order: list[int] = []
    done = bytearray(count)
    first = cycle = 0
    while len(order) < count:
        for k in arriving.pop(cycle, ()):
            heapq.heappush(ahead, k)
        takes_time = False
        while not takes_time:
            while first < count and done[first]:
                first += 1
            while ahead and ahead[0] < first + _WINDOW_INSTRUCTIONS:
                heapq.heappush(ready, rank[heapq.heappop(ahead)])
            if not ready:
                break
            k = heapq.heappop(ready) % count
            order.append(k)
            done[k] = True
            end = cycle + latency[k]
            for user in users[k]:
                missing[user] -= 1
                if there[user] < end:
                    there[user] = end
                if not missing[user]:
                    if there[user] <= cycle:
                        heapq.heappush(ahead, user)
                    else:
                        arriving.setdefault(there[user], []).append(user)
            takes_time = code[k].kind not in _FREE
        cycle += 1
    return order
