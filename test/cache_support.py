"""For the tests of the cache: a kernel that works, and whether it had to be traced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from small import Counting, tiny

from delassus import Problem
from delassus.algorithms import TracedAlgorithm
from delassus.compiler import build, kernel_for
from delassus.compiler.cache.cached_code import stored_kernel
from delassus.compiler.runtime.kernel import Kernel
from delassus.samples import random_inputs


def key_of(problem: Problem, algorithm: TracedAlgorithm) -> str | None:
    """Return the key of a kernel in the cache; None: it is not kept."""
    return build._key(stored_kernel(problem, algorithm.name), algorithm)


def works(kernel: Kernel) -> bool:
    """Return True if the kernel computes."""
    bound = kernel.bind()
    for name, values in random_inputs(tiny(), 5).items():
        bound.inputs[name][...] = values
    return bound.run() == 0 and bool(np.isfinite(bound.outputs["G"]).all())


def traced_again() -> bool:
    """Return True if a kernel has to be traced; it has to work in any case."""
    algorithm = Counting()
    assert works(kernel_for(tiny(), algorithm))
    return algorithm.calls > 0


def stored(home: Path) -> Path:
    """Fill the cache and return its one file."""
    assert traced_again()
    (file,) = home.iterdir()
    return file
