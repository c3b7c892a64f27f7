"""Any function over scalars as machine code."""

from __future__ import annotations

import numpy as np
import pytest

from delassus_ros.algorithms.base import Inputs, Status
from delassus_ros.algorithms.scalars import Vector, positive, sincos, sqrt
from delassus_ros.compiler.function import CompiledFunction
from delassus_ros.errors import CompilerError, InputError
from delassus_ros.problem import Port

PORTS = (Port("angle", (1,)), Port("vector", (2, 2)))


def example(x: Inputs) -> Vector:
    s, c = sincos(x["angle"][0])
    a, b, d, e = x["vector"]
    return [s * a + c * b, sqrt(positive(d, "d")) / e]


def test_it_computes_what_the_function_says() -> None:
    compiled = CompiledFunction(example, PORTS)
    vector = np.array([[0.3, -2.0], [1.7, 0.4]])
    results, status = compiled([0.6], vector)
    assert status is Status.OK
    expected = example({"angle": [0.6], "vector": vector.ravel().tolist()})
    np.testing.assert_allclose(results, expected, rtol=1e-15)
    counted = compiled.operations
    assert (counted.additions, counted.multiplications, counted.divisions) == (1, 2, 1)


def test_failure_is_a_status() -> None:
    compiled = CompiledFunction(example, PORTS)
    assert compiled([0.6], [1.0, 1.0, -1.0, 1.0])[1] is Status.NOT_POSITIVE_DEFINITE
    assert compiled([np.inf], [1.0, 1.0, 1.0, 1.0])[1] is Status.NOT_FINITE
    assert compiled([0.6], [1.0, 1.0, 1.0, 1.0])[1] is Status.OK


def test_results_of_a_call_stay() -> None:
    compiled = CompiledFunction(example, PORTS)
    first, _ = compiled([0.1], [1.0, 2.0, 3.0, 4.0])
    kept = first.copy()
    compiled([0.2], [5.0, 6.0, 7.0, 8.0])
    np.testing.assert_array_equal(first, kept)


def test_wrong_arguments_are_named() -> None:
    compiled = CompiledFunction(example, PORTS)
    with pytest.raises(InputError, match="got 1 arrays, expected one for each of: angle, vector"):
        compiled([0.1])
    with pytest.raises(InputError, match="'vector' has 3 numbers, expected 4"):
        compiled([0.1], [1.0, 2.0, 3.0])
    with pytest.raises(CompilerError, match="without results"):
        CompiledFunction(lambda x: [], PORTS)
