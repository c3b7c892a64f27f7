"""The batch kernel: a vector of configurations per instruction, and the loop around it.

Every scalar of the program becomes a vector of W configurations, W the processor's vector
width. A block of W rows is transposed into a scratch area, computed, and transposed back, so
that callers keep ordinary (N, nq) and (N, k, k) arrays.

C ABI: ``void batch(const double *in, int64 in_stride, double *out, int64 out_stride,
int32 *status, int64 n, const int64 *pick, int64 picked, double *work)`` for n >= W.
Output j of a configuration is the value number pick[j] of the block. `work` holds
:attr:`BatchModule.work_size` doubles on a 64-byte boundary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from delassus_ros.compiler.code_generator import host_features
from delassus_ros.compiler.emit import Elsewhere, functions
from delassus_ros.compiler.ir import Writer, pointer, vector_type
from delassus_ros.compiler.outline import Table
from delassus_ros.compiler.program import Program
from delassus_ros.compiler.writer import declarations

ROWS = "delassus_batch_rows"
"""in: (n, inputs), out: (n, picked); strides are row lengths."""
COLUMNS = "delassus_batch_columns"
"""in: (inputs, n), out: (picked, n), structure of arrays; strides are column lengths."""
_BLOCK = "delassus_block"


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


def host_width() -> int:
    """Return how many doubles a vector register of this processor holds."""
    features = host_features()
    if "+avx512f" in features:
        return 8
    return 4 if "+avx" in features else 2


def module(
    program: Program | Table, inputs: int, width: int, elsewhere: Elsewhere | None = None
) -> BatchModule:
    """Return the batch module of a scalar program.

    Parameters
    ----------
    inputs : size of the input block.
    width : configurations per vector.
    elsewhere : gets part of a long program.
    """
    values = list(dict.fromkeys(program.outputs))
    number = {value: k for k, value in enumerate(values)}
    texts, between = functions(replace(program, outputs=values), _BLOCK, width, elsewhere)
    text = [
        *texts,
        _loop(ROWS, inputs, len(values), width, rows=True),
        _loop(COLUMNS, inputs, len(values), width, rows=False),
        declarations(),
        "",
    ]
    # Status lanes are 32-bit integers behind the scratch of inputs and outputs.
    work = (inputs + len(values) + 1 + between) * width
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


def _loop(name: str, inputs: int, values: int, width: int, rows: bool) -> str:
    """Return the function that walks over blocks of `width` configurations.

    The last block starts at n − W: it repeats a few configurations rather than needing a path
    of its own, and so does the last group of outputs.
    """
    w = Writer()
    p, pi, p32 = pointer(), pointer("i64"), pointer("i32")
    results = inputs * width
    w.do(f"%scratch_out = getelementptr inbounds double, {p} %work, i64 {results}")
    status_at = (inputs + values) * width
    w.do(f"%status_slot = getelementptr inbounds double, {p} %work, i64 {status_at}")
    lanes = w.let(f"bitcast {p} %status_slot to {p32}")
    w.do(f"%between = getelementptr inbounds double, {p} %work, i64 {status_at + width}")
    w.do(f"%last_row = sub i64 %n, {width}")
    w.do(f"%last_group = sub i64 %picked, {width}")
    w.do(f"%few = icmp slt i64 %picked, {width}")
    _boundary(w, width)
    w.do("br label %block")
    w.label("block")
    w.do("%wanted = phi i64 [ 0, %entry ], [ %next_row, %block_end ]")
    w.do("%over = icmp sgt i64 %wanted, %last_row")
    w.do("%row = select i1 %over, i64 %last_row, i64 %wanted")
    _load_block(w, inputs, width, rows)
    w.do(f"call void @{_BLOCK}({p} %work, {p} %scratch_out, {p} %between, {p32} {lanes})")
    w.do("br i1 %few, label %single, label %group")
    _store_groups(w, width, rows)
    _store_singles(w, width, rows)
    w.label("block_end")
    vi = vector_type(width, "i32")
    typed = pointer(vi)
    source = w.let(f"bitcast {p32} {lanes} to {typed}")
    found = w.let(f"load {vi}, {typed} {source}, align 8")
    target = w.let(f"getelementptr inbounds i32, {p32} %status, i64 %row")
    w.do(f"store {vi} {found}, {typed} {w.let(f'bitcast {p32} {target} to {typed}')}, align 4")
    w.do(f"%next_row = add i64 %wanted, {width if rows else _step(w, '%wanted', width)}")
    w.do("%more = icmp slt i64 %next_row, %n")
    w.do("br i1 %more, label %block, label %done")
    w.label("done")
    w.do("ret void")
    head = (
        f"define void @{name}({p} noalias nocapture readonly %in, i64 %in_stride, "
        f"{p} noalias nocapture %out, i64 %out_stride, {p32} noalias nocapture %status, "
        f"i64 %n, {pi} noalias nocapture readonly %pick, i64 %picked, "
        f"{p} noalias nocapture %work) {{"
    )
    return "\n".join([head, "entry:", *w.lines, "}"])


def _boundary(w: Writer, width: int) -> None:
    """Emit how many outputs there are before the first vector boundary in memory, W at most.

    Numpy aligns large arrays to 16 bytes only. Stores over the boundary of a cache line cost up
    to half of the time, so that the second one begins where a line does.
    """
    w.do(f"%address = ptrtoint {pointer()} %out to i64")
    past = w.let(f"and i64 {w.let('lshr i64 %address, 3')}, {width - 1}")
    w.do(f"%boundary = sub i64 {width}, {past}")


def _step(w: Writer, wanted: str, width: int) -> str:
    """Return how far after number `wanted` the next vector is stored."""
    first = w.let(f"icmp eq i64 {wanted}, 0")
    return w.let(f"select i1 {first}, i64 %boundary, i64 {width}")


def _row_pointer(w: Writer, base: str, stride: str, lane: int) -> str:
    """Return the address of row (%row + lane)."""
    row = w.let(f"add i64 %row, {lane}")
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


def _load_block(w: Writer, inputs: int, width: int, rows: bool) -> None:
    """Copy W configurations into the scratch area, one vector per input."""
    starts = [_row_pointer(w, "%in", "%in_stride", k) for k in range(width)] if rows else []
    for j in range(inputs):
        if rows:
            scalars = [
                w.let(f"load double, {pointer()} {_element(w, start, str(j))}, align 8")
                for start in starts
            ]
            vector = w.pack(scalars, width)
        else:
            column = w.let(f"mul i64 %in_stride, {j}")
            vector = _load_vector(w, _element(w, "%in", w.let(f"add i64 {column}, %row")), width)
        _store_vector(w, vector, _element(w, "%work", str(j * width)), width)


def _picked(w: Writer, index: str, width: int) -> str:
    """Return the vector of output number `index`."""
    pi = pointer("i64")
    slot = w.let(f"getelementptr inbounds i64, {pi} %pick, i64 {index}")
    value = w.let(f"load i64, {pi} {slot}, align 8")
    start = w.let(f"mul i64 {value}, {width}")
    return _load_vector(w, _element(w, "%scratch_out", start), width)


def _store_groups(w: Writer, width: int, rows: bool) -> None:
    """Write outputs, W at a time."""
    w.label("group")
    w.do("%group_wanted = phi i64 [ 0, %block ], [ %group_next, %group ]")
    w.do("%group_over = icmp sgt i64 %group_wanted, %last_group")
    w.do("%first = select i1 %group_over, i64 %last_group, i64 %group_wanted")
    indices = [w.let(f"add i64 %first, {k}") for k in range(width)]
    vectors = [_picked(w, index, width) for index in indices]
    if rows:
        for lane, vector in enumerate(transpose(w, vectors)):
            row = _row_pointer(w, "%out", "%out_stride", lane)
            _store_pieces(w, vector, _element(w, row, "%first"), width)
    else:
        for index, vector in zip(indices, vectors, strict=True):
            start = w.let(f"mul i64 {index}, %out_stride")
            address = _element(w, "%out", w.let(f"add i64 {start}, %row"))
            _store_vector(w, vector, address, width)
    w.do(f"%group_next = add i64 %group_wanted, {_step(w, '%group_wanted', width)}")
    w.do("%group_more = icmp slt i64 %group_next, %picked")
    w.do("br i1 %group_more, label %group, label %block_end")


def _store_singles(w: Writer, width: int, rows: bool) -> None:
    """Write outputs one by one, where there are fewer than W."""
    w.label("single")
    w.do("%index = phi i64 [ 0, %block ], [ %index_next, %single ]")
    vector = _picked(w, "%index", width)
    if rows:
        for lane in range(width):
            row = _row_pointer(w, "%out", "%out_stride", lane)
            address = _element(w, row, "%index")
            w.do(f"store double {w.lane(vector, lane, width)}, {pointer()} {address}, align 8")
    else:
        start = w.let("mul i64 %index, %out_stride")
        address = _element(w, "%out", w.let(f"add i64 {start}, %row"))
        _store_vector(w, vector, address, width)
    w.do("%index_next = add i64 %index, 1")
    w.do("%index_more = icmp slt i64 %index_next, %picked")
    w.do("br i1 %index_more, label %single, label %block_end")
