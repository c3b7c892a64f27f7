"""The lane pass: nodes of isomorphic limbs become 2-, 4- or 8-wide vectors.

The legs of a quadruped run the same recursion on other numbers, so their expressions have the
same shape. From values that leave the limbs, and from the blocks of G between them, the pass
walks down all limbs at once and packs what corresponds (superword-level parallelism with
known seeds). Packing never changes a rounding: each lane computes what its node computes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from delassus_ros.compiler.ir.program import FLIP, GATHER, SHUFFLE, SPLAT
from delassus_ros.compiler.ir.trace import Trace
from delassus_ros.compiler.passes.limbs import LimbGroup
from delassus_ros.scalars.graph import ADD, CONSTANT, COS, DIV, INPUT, MUL, NEG, SIN, SUB

WIDEST = 8


@dataclass
class Pack:
    """A vector value: what its lanes hold and how it comes about.

    Attributes
    ----------
    kind : an arithmetic kind of the graph, or splat, gather, shuffle, flip, constant.
    lanes : the node in each lane.
    sources : packs that are operands.
    where : for shuffle the lane of the source for each lane, for flip 1 where the sign changes.
    """

    kind: str
    lanes: tuple[int, ...]
    sources: tuple[int, ...] = ()
    where: tuple[int, ...] = ()


class Lanes:
    """The packs of a trace.

    Attributes
    ----------
    packs : all packs.
    home : per packed node, its pack and lane; such a node is computed there only.
    angles : groups of nodes whose sines and cosines are wanted side by side.
    """

    def __init__(self, trace: Trace) -> None:
        self.packs: list[Pack] = []
        self.home: dict[int, tuple[int, int]] = {}
        self.angles: list[tuple[int, ...]] = []
        self._nodes, self._operands = trace.graph.nodes, trace.graph.operands
        self._early = set(trace.early_angles)
        self._memo: dict[tuple[int, ...], int] = {}
        self._open: list[int] = []
        self._shape = _shapes(trace)

    def alike(self, nodes: Sequence[int]) -> bool:
        """Return True if the expressions of the nodes have one shape."""
        return len({self._shape[n] for n in nodes}) == 1

    def shape(self, node: int) -> int:
        """Return a number that is equal for expressions of one shape."""
        return self._shape[node]

    def pack(self, nodes: tuple[int, ...]) -> None:
        """Pack nodes of one shape and, below them, all that corresponds."""
        self._reference(nodes)
        while self._open:
            self._fill(self._open.pop())

    def _reference(self, nodes: tuple[int, ...]) -> int:
        """Return the pack whose lanes are `nodes`; its operands are filled in later."""
        index = self._memo.get(nodes)
        if index is None:
            index = self._memo[nodes] = self._new(nodes)
        return index

    def _add(self, pack: Pack) -> int:
        self.packs.append(pack)
        return len(self.packs) - 1

    def _new(self, nodes: tuple[int, ...]) -> int:
        kinds = {self._nodes[n][0] for n in nodes}
        if kinds == {CONSTANT}:
            return self._add(Pack(CONSTANT, nodes))
        if len(set(nodes)) == 1:
            return self._add(Pack(SPLAT, nodes))
        homes = [self.home.get(n) for n in nodes]
        found = {home[0] for home in homes if home is not None}
        if len(found) == 1 and None not in homes:
            where = tuple(home[1] for home in homes if home is not None)
            return self._add(Pack(SHUFFLE, nodes, (found.pop(),), where))
        if NEG in kinds:
            mask = tuple(int(self._nodes[n][0] == NEG) for n in nodes)
            plain = tuple(
                self._nodes[n][1] if flipped else n for n, flipped in zip(nodes, mask, strict=True)
            )
            return self._add(Pack(FLIP, nodes, (self._reference(plain),), mask))
        if kinds <= {SIN, COS} and len(kinds) == 1 and self._early >= self._arguments(nodes):
            self.angles.append(tuple(self._nodes[n][1] for n in nodes))
            return self._add(Pack(kinds.pop(), nodes))
        packable = (
            not found
            and len(set(nodes)) == len(nodes)
            and (len(kinds) == 1 or kinds == {ADD, SUB})
            and not kinds & {INPUT, CONSTANT, SIN, COS}
            and self.alike(nodes)
        )
        if not packable:
            return self._add(Pack(GATHER, nodes))
        index = self._add(Pack(min(kinds), nodes))
        for lane, n in enumerate(nodes):
            self.home[n] = (index, lane)
        self._open.append(index)
        return index

    def _arguments(self, nodes: tuple[int, ...]) -> set[int]:
        return {self._nodes[n][1] for n in nodes}

    def _fill(self, index: int) -> None:
        """Find the operands of an arithmetic pack."""
        pack = self.packs[index]
        arguments = [list(self._operands[n]) for n in pack.lanes]
        kinds = [self._nodes[n][0] for n in pack.lanes]
        if pack.kind in (ADD, SUB, MUL):
            self._orient(kinds, arguments)
        sources = [self._reference(tuple(column)) for column in zip(*arguments, strict=True)]
        if ADD in kinds and SUB in kinds:
            # a − b in some lanes: add, with the sign of b changed there.
            mask = tuple(int(kind == SUB) for kind in kinds)
            sources[1] = self._add(Pack(FLIP, (), (sources[1],), mask))
        pack.sources = tuple(sources)

    def _orient(self, kinds: list[str], arguments: list[list[int]]) -> None:
        """Swap operands of commutative nodes so that corresponding ones stand together."""
        shape = self._shape
        first, second = arguments[kinds.index(SUB) if SUB in kinds else 0]
        swapped = shape[second], shape[first]
        for kind, pair in zip(kinds, arguments, strict=True):
            if kind != SUB and (shape[pair[0]], shape[pair[1]]) == swapped:
                pair.reverse()


def _shapes(trace: Trace) -> list[int]:
    """Return per node a number for the shape of its expression; 0 if it is not live.

    Constants are alike whatever their value, a sign changes nothing, and sums and
    differences are alike: lanes can differ in them. Nodes of one shape are of one depth and do
    not depend on each other, so packs of one shape each cannot form a cycle.
    """
    nodes, operands = trace.graph.nodes, trace.graph.operands
    shape = [0] * len(nodes)
    numbers: dict[object, int] = {}
    for i in trace.live:
        kind, below = nodes[i][0], operands[i]
        if kind == NEG:
            shape[i] = shape[below[0]]
            continue
        key: object
        if len(below) == 2:
            a, b = shape[below[0]], shape[below[1]]
            if b < a and kind != DIV:
                a, b = b, a
            key = (ADD if kind == SUB else kind, a, b)
        else:
            key = (kind, *[shape[n] for n in below])
        shape[i] = numbers.setdefault(key, len(numbers))
    return shape


def find_lanes(trace: Trace, groups: list[LimbGroup], outputs: list[list[int]]) -> Lanes:
    """Return the packs for the limbs of `groups` and for the alike entries `outputs`."""
    lanes = Lanes(trace)
    support = _support(trace)
    # Only what depends on more than its operand can be outside of the operand's limb.
    operands = trace.graph.operands
    edges = [(i, n) for i in trace.live for n in operands[i] if support[n] != support[i]]
    for group in groups:
        for corresponding in _leaving(edges, lanes, support, group):
            _pack_in_chunks(lanes, corresponding)
    for positions in outputs:
        nodes = [trace.outputs[position] for position in positions]
        by_shape: dict[int, list[int]] = defaultdict(list)
        for n in dict.fromkeys(nodes):
            if trace.graph.nodes[n][0] not in (CONSTANT, INPUT):
                by_shape[lanes.shape(n)].append(n)
        for alike in by_shape.values():
            _pack_in_chunks(lanes, alike)
    return lanes


def _pack_in_chunks(lanes: Lanes, nodes: Sequence[int]) -> None:
    for start in range(0, len(nodes), WIDEST):
        chunk = nodes[start : start + WIDEST]
        if len(chunk) > 1 and lanes.alike(chunk):
            lanes.pack(tuple(chunk))


def _support(trace: Trace) -> list[int]:
    """Return per node the inputs it depends on, as a bit set; none if it is not live."""
    nodes, operands = trace.graph.nodes, trace.graph.operands
    support = [0] * len(nodes)
    for i in trace.live:
        bits = 1 << nodes[i][1] if nodes[i][0] == INPUT else 0
        for n in operands[i]:
            bits |= support[n]
        support[i] = bits
    return support


def _limb_of(bits: int, masks: list[int]) -> int | None:
    """Return the limb that has all of some inputs, if any; limbs share none."""
    found = (limb for limb, mask in enumerate(masks) if bits and not bits & ~mask)
    return next(found, None)


def _leaving(
    edges: list[tuple[int, int]], lanes: Lanes, support: list[int], group: LimbGroup
) -> list[tuple[int, ...]]:
    """Return tuples of corresponding nodes that depend on one limb and are used outside it.

    Parameters
    ----------
    edges : nodes, each with an operand.
    """
    masks = [sum(1 << position for position in inputs) for inputs in group.inputs]
    leaving: list[dict[int, None]] = [{} for _ in masks]
    inside = {bits: _limb_of(bits, masks) for bits in set(support)}
    for i, n in edges:
        limb = inside[support[n]]
        if limb is not None and support[i] & ~masks[limb]:
            leaving[limb][n] = None
    by_shape: dict[int, list[list[int]]] = defaultdict(lambda: [[] for _ in masks])
    for limb, found in enumerate(leaving):
        for n in sorted(found):
            by_shape[lanes.shape(n)][limb].append(n)
    tuples = []
    for per_limb in by_shape.values():
        for count in {len(nodes) for nodes in per_limb} - {0}:
            alike = [nodes for nodes in per_limb if len(nodes) == count]
            tuples += [nodes for nodes in zip(*alike, strict=True) if len(nodes) > 1]
    return tuples
