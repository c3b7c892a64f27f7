"""A subset of Python as LLVM IR: functions with loops over arrays of doubles and integers.

Formulas are traced (:mod:`~delassus.compiler.ir.trace`). An iteration whose number of steps
depends on its data cannot be traced; it is written in this subset, once, and runs as Python and as
machine code.

A module in the subset has functions and numbers. Each function annotates its parameters and its
result:

========== ==============================================================
``float``   a double
``int``     a 64-bit integer
``bool``    a truth value, of results and variables
``Doubles`` an array of doubles; ``a[i]`` and, for what begins at i, ``a[i:]``
``Ints``    an array of 64-bit integers, likewise
``None``    of results
========== ==============================================================

Statements: assignments, ``if``, ``while``, ``for … in range(…)``, ``break``, ``continue``,
``return``, calls. Expressions: arithmetic, comparisons, ``and``, ``or``, ``not``,
``x if c else y``, ``abs``, ``min`` and ``max`` of two, ``float``, ``int``, ``sqrt``, ``isfinite``,
:func:`doubles`, :func:`ints`, :func:`kernel` and :func:`call` at an address, :func:`seen` and
:func:`compare_exchange` of what threads share, calls of the modules' functions, numbers of the
module and members of its enumerations by name. A variable keeps the type of its first assignment.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import re
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import NoReturn, TypeAlias

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from delassus.errors import CompilerError

Doubles: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

_FARTHEST = 1 << 32
"""Number of entries of an array of which the address alone is known."""
_F64, _I64, _I32, _I1 = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(1)
_TYPES: dict[str, ir.Type] = {
    "float": _F64, "int": _I64, "bool": _I1, "None": ir.VoidType(),
    "Doubles": _F64.as_pointer(), "Ints": _I64.as_pointer(),
}  # fmt: skip
_KERNEL = ir.FunctionType(_I32, [_F64.as_pointer()] * 3)
"""``int32 kernel(const double *in, double *out, double *work)``."""
_FLAGS = ("reassoc", "contract")
"""Sums may be taken in another order and products fused with them; NaN and infinity stay."""
_WIDTH = '"prefer-vector-width"="256"'
"""Loops here run some 3 to 42 times: with vectors of 512 bits most of the turns are left over."""
_FLOAT = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_INTEGER = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul"}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def doubles(address: int) -> Doubles:
    """Return the doubles that begin at an address; their number is not known."""
    return np.ctypeslib.as_array((ctypes.c_double * _FARTHEST).from_address(int(address)))


def ints(address: int) -> Ints:
    """Return the 64-bit integers that begin at an address; their number is not known."""
    return np.ctypeslib.as_array((ctypes.c_int64 * _FARTHEST).from_address(int(address)))


def kernel(address: int, inputs: Doubles, results: Doubles) -> int:
    """Return the status of a call of the kernel at an address, one without a work area."""
    function = ctypes.PYFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(int(address))
    return int(function(inputs.ctypes.data, results.ctypes.data, None))


def call(address: int, *arguments: int) -> None:
    """Call the function of 64-bit integers at an address; it returns nothing."""
    ctypes.PYFUNCTYPE(None, *[ctypes.c_int64] * len(arguments))(int(address))(*arguments)


def seen(place: Ints) -> int:
    """Return the integer at a place, which other threads may change."""
    return int(place[0])


def compare_exchange(place: Ints, expected: int, new: int) -> int:
    """Return the integer at a place, and replace it by a new one if it is as expected.

    It is one atomic operation as machine code only: no other thread changes the integer between.
    What a thread wrote before it is there for a thread that sees the new integer.
    """
    before = int(place[0])
    if before == expected:
        place[0] = new
    return before


def modules_ir(modules: Sequence[ModuleType], public: Collection[str], prefix: str = "") -> str:
    """Return the text of the LLVM IR of all functions of modules in the subset.

    Parameters
    ----------
    modules : their functions call each other, and have different names.
    public : names of the functions that can be called from outside of the IR.
    prefix : begins the symbols of these functions.

    Raises
    ------
    CompilerError
        Names the line that is not in the subset.
    """
    code = ir.Module(modules[-1].__name__)
    definitions = [
        (module, part)
        for module in modules
        for part in ast.parse(inspect.getsource(module)).body
        if isinstance(part, ast.FunctionDef)
    ]
    functions: dict[str, ir.Function] = {}
    for _, definition in definitions:
        arguments = [_annotated(argument.annotation) for argument in definition.args.args]
        kind = ir.FunctionType(_annotated(definition.returns), arguments)
        is_public = definition.name in public
        symbol = prefix + definition.name if is_public else definition.name
        function = functions[definition.name] = ir.Function(code, kind, symbol)
        if not is_public:
            function.linkage = "internal"
        if any(isinstance(part, ast.For | ast.While) for part in ast.walk(definition)):
            # A copy of a loop at each call takes twice as long to compile, and is no faster.
            function.attributes.add("noinline")
    for module, definition in definitions:
        _Writer(module, functions, definition).write()
    # llvmlite knows no attributes with values; a definition's line ends with its attributes.
    return re.sub(r"^define [^{\n]*$", rf"\g<0> {_WIDTH}", str(code), flags=re.MULTILINE)


def _annotated(annotation: ast.expr | None) -> ir.Type:
    name = ast.unparse(annotation) if annotation is not None else "nothing"
    if name not in _TYPES:
        raise CompilerError(f"annotation {name!r}; expected one of {', '.join(_TYPES)}")
    return _TYPES[name]


class _Writer:
    """The IR of one function."""

    def __init__(
        self, module: ModuleType, functions: dict[str, ir.Function], definition: ast.FunctionDef
    ) -> None:
        self._module, self._functions, self._definition = module, functions, definition
        self._function = functions[definition.name]
        self._entry = self._function.append_basic_block("entry")
        self._b = ir.IRBuilder(self._function.append_basic_block("body"))
        self._variables: dict[str, ir.AllocaInstr] = {}
        self._loops: list[tuple[ir.Block, ir.Block]] = []
        """Per loop around: where ``continue`` and ``break`` go."""

    def write(self) -> None:
        for argument, value in zip(self._definition.args.args, self._function.args, strict=True):
            self._set(argument.arg, value)
        self._statements(self._definition.body)
        if not self._b.block.is_terminated:
            if isinstance(self._function.ftype.return_type, ir.VoidType):
                self._b.ret_void()
            else:
                self._b.unreachable()
        ir.IRBuilder(self._entry).branch(self._function.basic_blocks[1])

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        place = f"{self._module.__name__}, line {getattr(node, 'lineno', '?')}"
        raise CompilerError(f"{place}: {ast.unparse(node)!r}: {why}")

    # Statements

    def _statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if self._b.block.is_terminated:
                self._refuse(statement, "is never reached")
            self._statement(statement)

    def _statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Expr):
            if not isinstance(s.value, ast.Constant):  # a docstring
                self._value(s.value)
        elif isinstance(s, ast.Assign):
            self._assign(s)
        elif isinstance(s, ast.AugAssign):
            operation = ast.BinOp(s.target, s.op, s.value)
            self._store(s.target, self._value(ast.copy_location(operation, s)))
        elif isinstance(s, ast.If):
            self._if(s)
        elif isinstance(s, ast.While):
            self._while(s)
        elif isinstance(s, ast.For):
            self._for(s)
        elif isinstance(s, ast.Break):
            self._b.branch(self._loops[-1][1])
        elif isinstance(s, ast.Continue):
            self._b.branch(self._loops[-1][0])
        elif isinstance(s, ast.Return):
            if s.value is None:
                self._b.ret_void()
            else:
                expected = self._function.ftype.return_type
                self._b.ret(self._as(expected, self._value(s.value), s))
        else:
            self._refuse(s, "is no statement of the subset")

    def _assign(self, s: ast.Assign) -> None:
        names, values = s.targets, [s.value] * len(s.targets)
        if isinstance(s.targets[0], ast.Tuple) and isinstance(s.value, ast.Tuple):
            names, values = s.targets[0].elts, s.value.elts
        found = [self._value(value) for value in values]
        for name, value in zip(names, found, strict=True):
            self._store(name, value)

    def _store(self, target: ast.expr, value: ir.Value) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value, target)
        elif isinstance(target, ast.Subscript):
            place = self._place(target)
            self._b.store(self._as(place.type.pointee, value, target), place)
        else:
            self._refuse(target, "cannot be assigned to")

    def _set(self, name: str, value: ir.Value, node: ast.AST | None = None) -> None:
        if name not in self._variables:
            self._variables[name] = ir.IRBuilder(self._entry).alloca(value.type, name=name)
        place = self._variables[name]
        self._b.store(self._as(place.type.pointee, value, node), place)

    def _if(self, s: ast.If) -> None:
        then, other, after = self._blocks("then", "else", "after")
        self._b.cbranch(self._truth(s.test), then, other)
        for block, body in ((then, s.body), (other, s.orelse)):
            self._b.position_at_end(block)
            self._statements(body)
            if not self._b.block.is_terminated:
                self._b.branch(after)
        self._b.position_at_end(after)

    def _while(self, s: ast.While) -> None:
        test, body, after = self._blocks("test", "loop", "after")
        self._b.branch(test)
        self._b.position_at_end(test)
        self._b.cbranch(self._truth(s.test), body, after)
        self._loop(s.body, body, test, after)
        self._b.position_at_end(after)

    def _for(self, s: ast.For) -> None:
        if not (
            isinstance(s.iter, ast.Call)
            and ast.unparse(s.iter.func) == "range"
            and isinstance(s.target, ast.Name)
        ):
            self._refuse(s, "only ranges are iterated over")
        bounds = [self._value(bound) for bound in s.iter.args]
        first = bounds[0] if len(bounds) > 1 else ir.Constant(_I64, 0)
        end = bounds[min(len(bounds), 2) - 1]
        step = bounds[2] if len(bounds) > 2 else ir.Constant(_I64, 1)
        down = isinstance(step, ir.Constant) and step.constant < 0
        counter = ir.IRBuilder(self._entry).alloca(_I64, name=f"next_{s.target.id}")
        self._b.store(first, counter)
        test, body, on, after = self._blocks("test", "loop", "next", "after")
        self._b.branch(test)
        self._b.position_at_end(test)
        i = self._b.load(counter)
        self._b.cbranch(self._b.icmp_signed(">" if down else "<", i, end), body, after)
        self._b.position_at_end(body)
        self._set(s.target.id, i)
        self._loop(s.body, body, on, after)
        self._b.position_at_end(on)
        self._b.store(self._b.add(self._b.load(counter), step), counter)
        self._b.branch(test)
        self._b.position_at_end(after)

    def _loop(self, body: list[ast.stmt], start: ir.Block, on: ir.Block, after: ir.Block) -> None:
        self._b.position_at_end(start)
        self._loops.append((on, after))
        self._statements(body)
        self._loops.pop()
        if not self._b.block.is_terminated:
            self._b.branch(on)

    def _blocks(self, *names: str) -> list[ir.Block]:
        return [self._function.append_basic_block(name) for name in names]

    # Expressions

    def _value(self, e: ast.expr) -> ir.Value:
        if isinstance(e, ast.Constant):
            return self._number(e.value, e)
        if isinstance(e, ast.Name):
            if e.id in self._variables:
                return self._b.load(self._variables[e.id])
            return self._number(getattr(self._module, e.id, None), e)
        if isinstance(e, ast.Attribute) and isinstance(e.value, ast.Name):
            return self._number(getattr(getattr(self._module, e.value.id, None), e.attr, None), e)
        if isinstance(e, ast.Subscript):
            place = self._place(e)
            return place if isinstance(e.slice, ast.Slice) else self._b.load(place)
        if isinstance(e, ast.BinOp):
            return self._arithmetic(e)
        if isinstance(e, ast.UnaryOp):
            return self._unary(e)
        if isinstance(e, ast.Compare):
            return self._compared(e)
        if isinstance(e, ast.BoolOp):
            return self._decided(e)
        if isinstance(e, ast.IfExp):
            return self._chosen(e.test, lambda: self._value(e.body), lambda: self._value(e.orelse))
        if isinstance(e, ast.Call):
            return self._called(e)
        self._refuse(e, "is no expression of the subset")

    def _number(self, value: object, node: ast.AST) -> ir.Constant:
        if isinstance(value, bool):
            return ir.Constant(_I1, int(value))
        if isinstance(value, int):
            return ir.Constant(_I64, int(value))
        if isinstance(value, float):
            return ir.Constant(_F64, value)
        self._refuse(node, "is neither a variable that is set nor a number of the module")

    def _place(self, e: ast.Subscript) -> ir.Value:
        index = e.slice
        if isinstance(index, ast.Slice):
            if index.lower is None or index.upper is not None or index.step is not None:
                self._refuse(e, "a slice has a start and nothing else")
            index = index.lower
        return self._b.gep(self._value(e.value), [self._value(index)])

    def _arithmetic(self, e: ast.BinOp) -> ir.Value:
        left, right = self._value(e.left), self._value(e.right)
        if left.type == right.type == _I64 and type(e.op) in _INTEGER:
            return getattr(self._b, _INTEGER[type(e.op)])(left, right)
        if type(e.op) not in _FLOAT:
            self._refuse(e, "is no operation of the subset")
        left, right = self._as(_F64, left, e), self._as(_F64, right, e)
        return getattr(self._b, _FLOAT[type(e.op)])(left, right, flags=_FLAGS)

    def _unary(self, e: ast.UnaryOp) -> ir.Value:
        value = self._value(e.operand)
        if isinstance(e.op, ast.Not):
            return self._b.not_(value)
        if not isinstance(e.op, ast.USub):
            self._refuse(e, "is no operation of the subset")
        if isinstance(value, ir.Constant):
            return ir.Constant(value.type, -value.constant)
        return self._b.fneg(value) if value.type == _F64 else self._b.neg(value)

    def _compared(self, e: ast.Compare) -> ir.Value:
        values = [self._value(part) for part in (e.left, *e.comparators)]
        found: ir.Value | None = None
        for left, operator, right in zip(values, e.ops, values[1:], strict=False):
            sign = _COMPARE[type(operator)]
            if left.type == right.type == _I64:
                one = self._b.icmp_signed(sign, left, right)
            else:
                compare = self._b.fcmp_unordered if sign == "!=" else self._b.fcmp_ordered
                one = compare(sign, self._as(_F64, left, e), self._as(_F64, right, e))
            found = one if found is None else self._b.and_(found, one)
        assert found is not None
        return found

    def _decided(self, e: ast.BoolOp) -> ir.Value:
        """``and``, ``or``: what follows is looked at only where it decides."""
        first, *others = e.values
        rest = others[0] if len(others) == 1 else ast.BoolOp(e.op, others)
        constant = ir.Constant(_I1, int(isinstance(e.op, ast.Or)))
        if isinstance(e.op, ast.And):
            return self._chosen(first, lambda: self._truth(rest), lambda: constant)
        return self._chosen(first, lambda: constant, lambda: self._truth(rest))

    def _chosen(
        self, test: ast.expr, yes: Callable[[], ir.Value], no: Callable[[], ir.Value]
    ) -> ir.Value:
        then, other, after = self._blocks("yes", "no", "chosen")
        self._b.cbranch(self._truth(test), then, other)
        found = []
        for block, value in ((then, yes), (other, no)):
            self._b.position_at_end(block)
            found.append((value(), self._b.block))
            self._b.branch(after)
        self._b.position_at_end(after)
        phi = self._b.phi(found[0][0].type)
        for value, block in found:
            phi.add_incoming(value, block)
        return phi

    def _called(self, e: ast.Call) -> ir.Value:
        name = ast.unparse(e.func)
        values = [self._value(argument) for argument in e.args]
        if name in self._functions:
            function = self._functions[name]
            expected = function.ftype.args
            if len(expected) != len(values) or e.keywords:
                self._refuse(e, f"expected {len(expected)} arguments by position")
            return self._b.call(
                function, [self._as(t, v, e) for t, v in zip(expected, values, strict=True)]
            )
        if name in ("min", "max"):
            left, right = values
            sign = "<" if name == "min" else ">"
            if left.type == right.type == _I64:
                return self._b.select(self._b.icmp_signed(sign, right, left), right, left)
            left, right = self._as(_F64, left, e), self._as(_F64, right, e)
            # As Python has it: the first, unless the second is beyond it.
            return self._b.select(self._b.fcmp_ordered(sign, right, left), right, left)
        if name == "kernel":
            return self._kernel_status(*values)
        if name == "call":
            address, *arguments = values
            kind = ir.FunctionType(ir.VoidType(), [_I64] * len(arguments))
            return self._b.call(self._b.inttoptr(address, kind.as_pointer()), arguments)
        if name == "compare_exchange":
            return self._b.extract_value(self._b.cmpxchg(*values, "acq_rel", "acquire"), 0)
        (value,) = values
        if name == "float":
            return self._as(_F64, value, e)
        if name == "doubles" and value.type == _I64:
            return self._b.inttoptr(value, _TYPES["Doubles"])
        if name == "seen":
            return self._b.load_atomic(value, "acquire", align=8)
        if name == "ints" and value.type == _I64:
            return self._b.inttoptr(value, _TYPES["Ints"])
        if name == "int" and value.type == _F64:
            return self._b.fptosi(value, _I64)
        if name == "abs" and value.type == _F64:
            return self._intrinsic("llvm.fabs", value)
        if name == "sqrt":
            return self._intrinsic("llvm.sqrt", self._as(_F64, value, e))
        if name == "isfinite":
            size = self._intrinsic("llvm.fabs", value)
            return self._b.fcmp_ordered("<", size, ir.Constant(_F64, float("inf")))
        self._refuse(e, "is no function of the subset")

    def _kernel_status(self, address: ir.Value, inputs: ir.Value, results: ir.Value) -> ir.Value:
        function = self._b.inttoptr(address, _KERNEL.as_pointer())
        no_work_area = ir.Constant(_F64.as_pointer(), None)
        return self._b.sext(self._b.call(function, [inputs, results, no_work_area]), _I64)

    def _intrinsic(self, name: str, value: ir.Value) -> ir.Value:
        function = self._function.module.declare_intrinsic(name, [_F64])
        return self._b.call(function, [value])

    def _truth(self, e: ast.expr) -> ir.Value:
        value = self._value(e)
        if value.type != _I1:
            self._refuse(e, "is no truth value")
        return value

    def _as(self, kind: ir.Type, value: ir.Value, node: ast.AST | None) -> ir.Value:
        if value.type == kind:
            return value
        if kind == _F64 and value.type == _I64:
            if isinstance(value, ir.Constant):
                return ir.Constant(_F64, float(value.constant))
            return self._b.sitofp(value, _F64)
        self._refuse(node or self._definition, f"is {value.type}, expected {kind}")
