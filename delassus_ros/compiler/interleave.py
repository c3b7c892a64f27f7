"""The order of instructions: so that a processor always has something to do.

Limbs, rows and joints are computed one after the other in a trace. Much of that could be done at
the same time, but a processor looks some hundred instructions ahead only, and while it waits for
the chain of divisions at a root, say, all that it sees may depend on that. List scheduling takes
at each cycle, of the instructions whose operands are there, the one with the longest way to the
end behind it. It looks ahead not too far either: what is computed early occupies a register until
it is needed.
"""

from __future__ import annotations

import heapq

from delassus_ros.compiler.parts import Part
from delassus_ros.compiler.program import (
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
    needs,
)
from delassus_ros.scalars.graph import CONSTANT, COS, DIV, INPUT, NEG, SIN, SQRT

_WINDOW = 96
"""Instructions that one may overtake."""
_USUAL = 4  # cycles of an addition or a multiplication
_LATENCY = {
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


def _order(code: list[Instruction]) -> list[int]:
    """Return the positions of the instructions in their new order."""
    count = len(code)
    needed = needs(code)
    users: list[list[int]] = [[] for _ in code]
    for k, operands in enumerate(needed):
        for operand in operands:
            users[operand].append(k)
    latency = [_LATENCY.get(instruction.kind, _USUAL) for instruction in code]
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
            while ahead and ahead[0] < first + _WINDOW:
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
