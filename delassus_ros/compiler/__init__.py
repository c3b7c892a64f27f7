"""From an algorithm to machine code: trace, emit, compile, cache."""

from delassus_ros.compiler.build import kernel_for
from delassus_ros.compiler.ir.trace import Trace, trace
from delassus_ros.compiler.runtime.kernel import BoundKernel, Kernel
from delassus_ros.scalars.counts import OperationCount

__all__ = ["BoundKernel", "Kernel", "OperationCount", "Trace", "kernel_for", "trace"]
