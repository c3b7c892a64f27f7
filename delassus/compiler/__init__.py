"""From an algorithm to machine code: trace, emit, compile, cache."""

from delassus.compiler.build import kernel_for
from delassus.compiler.ir.trace import Trace, trace
from delassus.compiler.runtime.kernel import BoundKernel, Kernel
from delassus.scalars.counts import OperationCount

__all__ = ["BoundKernel", "Kernel", "OperationCount", "Trace", "kernel_for", "trace"]
