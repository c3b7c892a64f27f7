"""A thin writer of LLVM IR text.

Text, because it is by far the fastest way into LLVM from Python. The only difference between
the LLVM versions in use is how a pointer type is written, see :func:`pointer`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from delassus.compiler.codegen.target import LLVM_VERSION


def pointer(pointee: str = "double") -> str:
    """Return the pointer type: opaque where LLVM knows nothing else, typed up to LLVM 15.

    LLVM 15 knows both, but llvmlite 0.44 switches opaque ones off.
    """
    return "ptr" if LLVM_VERSION[0] >= 16 else f"{pointee}*"


def literal(value: float) -> str:
    """Return a double constant, exact to the last bit."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def vector_type(width: int, element: str = "double") -> str:
    """Return the type of `width` elements; width 1 is the element itself."""
    return element if width == 1 else f"<{width} x {element}>"


def splat(value: str, width: int, element: str = "double") -> str:
    """Return a constant with `value` in every lane."""
    return value if width == 1 else "<" + ", ".join([f"{element} {value}"] * width) + ">"


class Writer:
    """Collects the instructions of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def let(self, instruction: str) -> str:
        """Append an instruction and return the name of its result."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def label(self, name: str) -> None:
        """Start the basic block `name`."""
        self.lines.append(f"{name}:")

    def load(self, base: str, index: int, width: int = 1) -> str:
        """Load `width` doubles at base[index]."""
        address = self.address(base, index)
        return self.let(f"load {vector_type(width)}, {self._cast(address, width)}, align 8")

    def store(self, value: str, base: str, index: int, width: int = 1) -> None:
        """Store `width` doubles at base[index]."""
        address = self.address(base, index)
        self.do(f"store {vector_type(width)} {value}, {self._cast(address, width)}, align 8")

    def store_bits(self, typed_value: str, address: str, pointer_type: str) -> None:
        """Store a typed value at a typed address that is cast to `pointer_type`."""
        cast = self.let(f"bitcast {address} to {pointer_type}")
        self.do(f"store {typed_value}, {pointer_type} {cast}, align 4")

    def address(self, base: str, index: int) -> str:
        """Return the address of base[index]."""
        return self.let(f"getelementptr inbounds double, {pointer()} {base}, i64 {index}")

    def _cast(self, address: str, width: int) -> str:
        typed = pointer(vector_type(width))
        if width == 1 or typed == "ptr":
            return f"{typed} {address}"
        return f"{typed} " + self.let(f"bitcast {pointer()} {address} to {typed}")

    def pack(self, values: list[str], width: int) -> str:
        """Return a vector of scalar values, the last one repeated in unused lanes.

        Width 1 returns the value itself, whatever its type.
        """
        if width == 1:
            return values[0]
        vector = "undef"
        for lane in range(width):
            value = values[min(lane, len(values) - 1)]
            vector = self.let(
                f"insertelement {vector_type(width)} {vector}, double {value}, i32 {lane}"
            )
        return vector

    def lane(self, vector: str, lane: int, width: int) -> str:
        """Return one lane of a vector."""
        if width == 1:
            return vector
        return self.let(f"extractelement {vector_type(width)} {vector}, i32 {lane}")

    def any(self, mask: str, width: int) -> str:
        """Return whether any lane of a mask is set, an i1."""
        if width == 1:
            return mask
        bits = self.let(f"bitcast {vector_type(width, 'i1')} {mask} to i{width}")
        return self.let(f"icmp ne i{width} {bits}, 0")


def pairwise(values: Sequence[str], combine: Callable[[str, str], str]) -> str:
    """Return all values combined pairwise, in a shallow tree; empty if there are none."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [combine(a, b) for a, b in pairs] + list(values[len(values) & ~1 :])
    return values[0] if values else ""
