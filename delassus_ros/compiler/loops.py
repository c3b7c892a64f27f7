"""Loops in LLVM IR: for code whose sizes are known only when it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delassus_ros.compiler.ir import Writer, pointer, vector_type


class LoopWriter(Writer):
    """Collects the instructions of one function with loops; sizes and places are i64 values."""

    def __init__(self) -> None:
        super().__init__()
        self._block = "entry"
        self._blocks = 0
        self.label("entry")

    def label(self, name: str) -> None:
        """Start the basic block `name`."""
        super().label(name)
        self._block = name

    def new_block(self) -> str:
        """Return a name for a block to come."""
        self._blocks += 1
        return f"b{self._blocks}"

    def loop(
        self,
        start: str | int,
        stop: str | int,
        step: int,
        carried: Sequence[tuple[str, str]],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """Write ``for i from start below stop by step``; return what is carried out of it.

        Parameters
        ----------
        carried : type and first value of each variable.
        body : writes one turn, given i and the variables; returns their next values.
        """
        head, inside, after = (self.new_block() for _ in range(3))
        before = self._block
        self.do(f"br label %{head}")
        self.label(head)
        place = len(self.lines)
        i, *variables = [self.let("") for _ in range(1 + len(carried))]
        more = self.let(f"icmp slt i64 {i}, {stop}")
        self.do(f"br i1 {more}, label %{inside}, label %{after}")
        self.label(inside)
        following = body(i, variables)
        step_on = self.let(f"add i64 {i}, {step}")
        last = self._block
        self.do(f"br label %{head}")
        names, kinds = [i, *variables], ["i64", *(kind for kind, _ in carried)]
        firsts = [start, *(first for _, first in carried)]
        for k, (name, kind, first, then) in enumerate(
            zip(names, kinds, firsts, [step_on, *following], strict=True)
        ):
            phi = f"phi {kind} [ {first}, %{before} ], [ {then}, %{last} ]"
            self.lines[place + k] = f"  {name} = {phi}"
        self.label(after)
        return variables

    def at(self, base: str, index: str, width: int = 1) -> str:
        """Return the typed address of `width` doubles at base[index]."""
        place = self.let(f"getelementptr inbounds double, {pointer()} {base}, i64 {index}")
        return self._cast(place, width)

    def read(self, base: str, index: str, width: int = 1) -> str:
        """Load `width` doubles at base[index]."""
        return self.let(f"load {vector_type(width)}, {self.at(base, index, width)}, align 8")

    def write(self, value: str, base: str, index: str, width: int = 1) -> None:
        """Store `width` doubles at base[index]."""
        self.do(f"store {vector_type(width)} {value}, {self.at(base, index, width)}, align 8")

    def spread(self, value: str, width: int) -> str:
        """Return a vector with a double in each lane."""
        kind = vector_type(width)
        one = self.let(f"insertelement {kind} undef, double {value}, i32 0")
        return self.let(
            f"shufflevector {kind} {one}, {kind} undef, <{width} x i32> zeroinitializer"
        )

    def total(self, vector: str, width: int) -> str:
        """Return the sum of the lanes of a vector."""
        kind = vector_type(width)
        return self.let(
            f"call reassoc double @llvm.vector.reduce.fadd.v{width}f64"
            f"(double -0.0, {kind} {vector})"
        )
