"""The order of instructions: each one only when the next needs it.

A trace computes whole matrices, of which the next step may need an entry now and most much later.
What waits is stored and loaded again: half of the work of vectors of configurations was that. On
demand, an instruction comes just before the first that uses it; of several operands the one with
the longest chain of operands comes first: fewer values are stored for a later part of a program,
of humanoids half as many, and somewhat more are loaded. The code becomes shorter, by a tenth for
a humanoid; what takes the time of a long program is to fetch its code.
"""

from __future__ import annotations

from collections.abc import Iterator

from delassus_ros.compiler.program import Program, needs


def on_demand(program: Program) -> Program:
    """Return a program that computes the same in that order."""
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
