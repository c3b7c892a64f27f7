"""The batch kernel: a vector of configurations per instruction, and the loop around it.

Every scalar of the program becomes a vector of W configurations, W the processor's vector
width. A block of W rows is transposed into a scratch area, computed, and transposed back, so
that callers keep ordinary (N, nq) and (N, k, k) arrays. Each part of a long program is run for
two blocks before the next one: its code is then fetched half as often.

C ABI: ``void batch(const double *in, int64 in_stride, double *out, int64 out_stride,
int32 *status, int64 n, const int64 *pick, int64 picked, double *work)`` for n >= W.
Output j of a configuration is the value number pick[j] of the block. `work` holds
:attr:`BatchModule.work_size` doubles on a 64-byte boundary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from delassus.compiler.codegen.emit import stages
from delassus.compiler.codegen.llvm_text import Writer, pointer, vector_type
from delassus.compiler.codegen.writer import declarations
from delassus.compiler.ir.program import Program
from delassus.compiler.passes.calls import Table
from delassus.compiler.passes.partition import batch_parts

ROWS = "delassus_batch_rows"
"""in: (n, inputs), out: (n, picked); strides are row lengths."""
COLUMNS = "delassus_batch_columns"
"""in: (inputs, n), out: (picked, n), structure of arrays; strides are column lengths."""
_BLOCK = "delassus_block"
_BLOCKS = "delassus_blocks"
_BLOCKS_PER_PART = 2
"""Blocks for which a part of a long program is run before the next part; more need more of the
caches for what waits than they save in code."""


@dataclass(frozen=True)
class BatchModule:
    """IR of a batch kernel.

    Attributes
    ----------
    ir : the module.
    width : W, configurations per block; calls need n >= W.
    unique : per entry of the output block, the number of its value in the scratch area.
    work_size : doubles of scratch that a call needs.
    """

    ir: str
    width: int
    unique: tuple[int, ...]
    work_size: int


@dataclass(frozen=True)
class _Area:
    """The scratch area of a block: inputs, values, status, and what parts leave each other.

    Attributes
    ----------
    inputs, values, between : how many vectors each has.
    width : doubles per vector.
    """

    inputs: int
    values: int
    between: int
    width: int

    @property
    def size(self) -> int:
        """Doubles in all; status lanes are 32-bit integers, one vector has them."""
        return (self.inputs + self.values + 1 + self.between) * self.width

    def of(self, w: Writer, number: str) -> str:
        """Emit the address of the area of a block."""
        return _element(w, "%work", w.let(f"mul i64 {number}, {self.size}"))

    def outputs(self, w: Writer, start: str) -> str:
        """Emit the address of the values in the area that begins at `start`."""
        return w.address(start, self.inputs * self.width)

    def status(self, w: Writer, start: str) -> str:
        """Emit the address of the status."""
        address = w.address(start, (self.inputs + self.values) * self.width)
        return w.let(f"bitcast {pointer()} {address} to {pointer('i32')}")

    def shared(self, w: Writer, start: str) -> str:
        """Emit the address of what parts leave each other."""
        return w.address(start, (self.inputs + self.values + 1) * self.width)


def module(program: Program | Table, inputs: int, width: int) -> BatchModule:
    """Return the batch module of a scalar program.

    Parameters
    ----------
    inputs : size of the input block.
    width : configurations per vector.
    """
    values = list(dict.fromkeys(program.outputs))
    number = {value: k for k, value in enumerate(values)}
    once = replace(program, outputs=values)
    code = once if isinstance(once, Table) else batch_parts(once)
    texts, names, between = stages(code, _BLOCK, width)
    area = _Area(inputs, len(values), between, width)
    together = _BLOCKS_PER_PART if len(names) > 1 else 1
    text = [
        *texts,
        _blocks(names, area),
        _loop(ROWS, area, together, rows=True),
        _loop(COLUMNS, area, together, rows=False),
        declarations(),
        "",
    ]
    work = together * area.size
    return BatchModule("\n".join(text), width, tuple(number[v] for v in program.outputs), work)


def transpose(w: Writer, vectors: list[str]) -> list[str]:
    """Emit the transposition of W vectors of W doubles by butterflies."""
    width = len(vectors)
    v, vi = vector_type(width), vector_type(width, "i32")
    vectors = list(vectors)
    distance = width // 2
    while distance:
        low = [k if not k & distance else width + k - distance for k in range(width)]
        high = [k + distance if not k & distance else width + k for k in range(width)]
        for i in range(width):
            if i & distance:
                continue
            a, b = vectors[i], vectors[i + distance]
            for target, mask in ((i, low), (i + distance, high)):
                lanes = ", ".join(f"i32 {k}" for k in mask)
                vectors[target] = w.let(f"shufflevector {v} {a}, {v} {b}, {vi} <{lanes}>")
        distance //= 2
    return vectors


def _blocks(names: list[str], area: _Area) -> str:
    """Return ``void blocks(double *work, int64 count)``: each function in turn, for all blocks.

    Parameters
    ----------
    names : of the functions; the last one gives the status.
    """
    w, p, p32 = Writer(), pointer(), pointer("i32")
    w.do("br label %before0")
    for k, name in enumerate(names):
        w.label(f"before{k}")
        w.do(f"br label %function{k}")
        w.label(f"function{k}")
        w.do(f"%block{k} = phi i64 [ 0, %before{k} ], [ %next{k}, %function{k} ]")
        start = area.of(w, f"%block{k}")
        ports = [f"{p} {a}" for a in (start, area.outputs(w, start), area.shared(w, start))]
        if k == len(names) - 1:
            ports.append(f"{p32} {area.status(w, start)}")
        w.do(f"call void @{name}({', '.join(ports)})")
        w.do(f"%next{k} = add i64 %block{k}, 1")
        w.do(f"%more{k} = icmp slt i64 %next{k}, %count")
        w.do(f"br i1 %more{k}, label %function{k}, label %before{k + 1}")
    w.label(f"before{len(names)}")
    w.do("ret void")
    head = f"define internal void @{_BLOCKS}({p} noalias nocapture %work, i64 %count) noinline {{"
    return "\n".join([head, "entry:", *w.lines, "}"])


def _loop(name: str, area: _Area, together: int, rows: bool) -> str:
    """Return the function that walks over blocks of W configurations, some `together`.

    The last block starts at n − W: it repeats a few configurations rather than needing a path
    of its own, and so does the last group of outputs.
    """
    w, width = Writer(), area.width
    p, pi, p32 = pointer(), pointer("i64"), pointer("i32")
    w.do(f"%last_row = sub i64 %n, {width}")
    w.do(f"%last_group = sub i64 %picked, {width}")
    w.do(f"%few = icmp slt i64 %picked, {width}")
    _boundary(w, width)
    w.do("br label %some")
    w.label("some")
    w.do("%first_row = phi i64 [ 0, %entry ], [ %after, %written ]")
    w.do("br label %read")
    w.label("read")
    w.do("%number = phi i64 [ 0, %some ], [ %count, %read ]")
    w.do("%row_wanted = phi i64 [ %first_row, %some ], [ %after, %read ]")
    row = _row(w, "%row_wanted")
    _load_block(w, area, row, area.of(w, "%number"), rows)
    w.do("%count = add i64 %number, 1")
    w.do(f"%after = add i64 %row_wanted, {width if rows else _step(w, '%row_wanted', width)}")
    w.do("%left = icmp slt i64 %after, %n")
    w.do(f"%room = icmp slt i64 %count, {together}")
    w.do("%another = and i1 %left, %room")
    w.do("br i1 %another, label %read, label %compute")
    w.label("compute")
    w.do(f"call void @{_BLOCKS}({p} %work, i64 %count)")
    w.do("br label %block")
    w.label("block")
    w.do("%k = phi i64 [ 0, %compute ], [ %k1, %block_end ]")
    w.do("%wanted = phi i64 [ %first_row, %compute ], [ %next_row, %block_end ]")
    row, start = _row(w, "%wanted"), area.of(w, "%k")
    outputs = area.outputs(w, start)
    w.do("br i1 %few, label %single, label %group")
    _store_groups(w, outputs, row, width, rows)
    _store_singles(w, outputs, row, width, rows)
    w.label("block_end")
    vi = vector_type(width, "i32")
    typed = pointer(vi)
    source = w.let(f"bitcast {p32} {area.status(w, start)} to {typed}")
    found = w.let(f"load {vi}, {typed} {source}, align 8")
    target = w.let(f"getelementptr inbounds i32, {p32} %status, i64 {row}")
    w.do(f"store {vi} {found}, {typed} {w.let(f'bitcast {p32} {target} to {typed}')}, align 4")
    w.do(f"%next_row = add i64 %wanted, {width if rows else _step(w, '%wanted', width)}")
    w.do("%k1 = add i64 %k, 1")
    w.do("%more = icmp slt i64 %k1, %count")
    w.do("br i1 %more, label %block, label %written")
    w.label("written")
    w.do("br i1 %left, label %some, label %done")
    w.label("done")
    w.do("ret void")
    head = (
        f"define void @{name}({p} noalias nocapture readonly %in, i64 %in_stride, "
        f"{p} noalias nocapture %out, i64 %out_stride, {p32} noalias nocapture %status, "
        f"i64 %n, {pi} noalias nocapture readonly %pick, i64 %picked, "
        f"{p} noalias nocapture %work) {{"
    )
    return "\n".join([head, "entry:", *w.lines, "}"])


def _row(w: Writer, wanted: str) -> str:
    """Return where the block wanted at a row begins: the last one overlaps its neighbour."""
    over = w.let(f"icmp sgt i64 {wanted}, %last_row")
    return w.let(f"select i1 {over}, i64 %last_row, i64 {wanted}")


def _boundary(w: Writer, width: int) -> None:
    """Emit how many outputs there are before the first vector boundary in memory, W at most.

    Numpy aligns large arrays to 16 bytes only. Stores over the boundary of a cache line cost up
    to half of the time, so that the second one begins where a line does.
    """
    w.do(f"%address = ptrtoint {pointer()} %out to i64")
    passed = w.let(f"and i64 {w.let('lshr i64 %address, 3')}, {width - 1}")
    w.do(f"%boundary = sub i64 {width}, {passed}")


def _step(w: Writer, wanted: str, width: int) -> str:
    """Return how far after number `wanted` the next vector is stored."""
    first = w.let(f"icmp eq i64 {wanted}, 0")
    return w.let(f"select i1 {first}, i64 %boundary, i64 {width}")


def _row_pointer(w: Writer, base: str, stride: str, row: str, lane: int) -> str:
    """Return the address of row (row + lane)."""
    row = w.let(f"add i64 {row}, {lane}")
    return w.let(
        f"getelementptr inbounds double, {pointer()} {base}, i64 "
        + w.let(f"mul i64 {row}, {stride}")
    )


def _element(w: Writer, base: str, index: str) -> str:
    return w.let(f"getelementptr inbounds double, {pointer()} {base}, i64 {index}")


def _load_vector(w: Writer, address: str, width: int) -> str:
    v = vector_type(width)
    typed = pointer(v)
    cast = w.let(f"bitcast {pointer()} {address} to {typed}")
    return w.let(f"load {v}, {typed} {cast}, align 8")


def _store_vector(w: Writer, value: str, address: str, width: int) -> None:
    v = vector_type(width)
    typed = pointer(v)
    cast = w.let(f"bitcast {pointer()} {address} to {typed}")
    w.do(f"store {v} {value}, {typed} {cast}, align 8")


def _store_pieces(w: Writer, value: str, address: str, width: int) -> None:
    """Store a vector in pieces of 32 bytes: rows of 4 k outputs then never split a cache line."""
    size = min(width, 4)
    for first in range(0, width, size):
        lanes = ", ".join(f"i32 {k}" for k in range(first, first + size))
        v, vi = vector_type(width), vector_type(size, "i32")
        piece = w.let(f"shufflevector {v} {value}, {v} {value}, {vi} <{lanes}>")
        _store_vector(w, piece, _element(w, address, str(first)), size)


def _load_block(w: Writer, area: _Area, row: str, start: str, rows: bool) -> None:
    """Copy the W configurations from `row` on into a scratch area, one vector per input."""
    width = area.width
    lines = [_row_pointer(w, "%in", "%in_stride", row, k) for k in range(width)] if rows else []
    for j in range(area.inputs):
        if rows:
            scalars = [
                w.let(f"load double, {pointer()} {_element(w, line, str(j))}, align 8")
                for line in lines
            ]
            vector = w.pack(scalars, width)
        else:
            column = w.let(f"mul i64 %in_stride, {j}")
            vector = _load_vector(w, _element(w, "%in", w.let(f"add i64 {column}, {row}")), width)
        _store_vector(w, vector, _element(w, start, str(j * width)), width)


def _picked(w: Writer, outputs: str, index: str, width: int) -> str:
    """Return the vector of output number `index`."""
    pi = pointer("i64")
    slot = w.let(f"getelementptr inbounds i64, {pi} %pick, i64 {index}")
    value = w.let(f"load i64, {pi} {slot}, align 8")
    start = w.let(f"mul i64 {value}, {width}")
    return _load_vector(w, _element(w, outputs, start), width)


def _store_groups(w: Writer, outputs: str, row: str, width: int, rows: bool) -> None:
    """Write outputs, W at a time."""
    w.label("group")
    w.do("%group_wanted = phi i64 [ 0, %block ], [ %group_next, %group ]")
    w.do("%group_over = icmp sgt i64 %group_wanted, %last_group")
    w.do("%first = select i1 %group_over, i64 %last_group, i64 %group_wanted")
    indices = [w.let(f"add i64 %first, {k}") for k in range(width)]
    vectors = [_picked(w, outputs, index, width) for index in indices]
    if rows:
        for lane, vector in enumerate(transpose(w, vectors)):
            line = _row_pointer(w, "%out", "%out_stride", row, lane)
            _store_pieces(w, vector, _element(w, line, "%first"), width)
    else:
        for index, vector in zip(indices, vectors, strict=True):
            start = w.let(f"mul i64 {index}, %out_stride")
            address = _element(w, "%out", w.let(f"add i64 {start}, {row}"))
            _store_vector(w, vector, address, width)
    w.do(f"%group_next = add i64 %group_wanted, {_step(w, '%group_wanted', width)}")
    w.do("%group_more = icmp slt i64 %group_next, %picked")
    w.do("br i1 %group_more, label %group, label %block_end")


def _store_singles(w: Writer, outputs: str, row: str, width: int, rows: bool) -> None:
    """Write outputs one by one, where there are fewer than W."""
    w.label("single")
    w.do("%index = phi i64 [ 0, %block ], [ %index_next, %single ]")
    vector = _picked(w, outputs, "%index", width)
    if rows:
        for lane in range(width):
            line = _row_pointer(w, "%out", "%out_stride", row, lane)
            address = _element(w, line, "%index")
            w.do(f"store double {w.lane(vector, lane, width)}, {pointer()} {address}, align 8")
    else:
        start = w.let("mul i64 %index, %out_stride")
        address = _element(w, "%out", w.let(f"add i64 {start}, {row}"))
        _store_vector(w, vector, address, width)
    w.do("%index_next = add i64 %index, 1")
    w.do("%index_more = icmp slt i64 %index_next, %picked")
    w.do("br i1 %index_more, label %single, label %block_end")
