"""Any function over scalars as machine code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from delassus.compiler.cache import disk as cache
from delassus.compiler.function import CompiledFunction
from delassus.compiler.passes import partition as parts
from delassus.compiler.passes.partition import Lengths
from delassus.compiler.runtime import packing
from delassus.errors import CompilerError, InputError
from delassus.scalars.functions import Vector, positive, sincos, sqrt
from delassus.scalars.graph import Symbol
from delassus.scalars.ports import Inputs, Port, Status

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
    with pytest.raises(InputError, match=r"'vector' has shape \(3,\), expected \(2, 2\)"):
        compiled([0.1], [1.0, 2.0, 3.0])
    with pytest.raises(CompilerError, match="without results"):
        CompiledFunction(lambda x: [], PORTS)


def test_code_that_differs_from_its_function_is_refused() -> None:
    def fickle(x: Inputs) -> Vector:
        return [value * (1.0 if isinstance(value, float) else 1.001) for value in x["vector"]]

    def strict(x: Inputs) -> Vector:
        if isinstance(x["angle"][0], float):
            positive(-1.0, "nothing")
        return x["vector"]

    with pytest.raises(CompilerError, match="differs from itself on floats: "):
        CompiledFunction(fickle, PORTS)
    with pytest.raises(CompilerError, match="a compiled function succeeds where it fails on"):
        CompiledFunction(strict, PORTS)


def test_a_long_function_is_compiled_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def sums(x: Inputs) -> Vector:
        values = x["vector"]
        for k in range(200):
            turned = values[1:] + values[:1]
            values = [a * b + 0.1 * k for a, b in zip(values, turned, strict=True)]
            values = [a / (2.0 + a * a) for a in values]
        return values

    monkeypatch.setattr(parts, "SINGLE", Lengths(100, 100))
    vector = [0.3, -0.2, 0.9, 1.1]
    results, status = CompiledFunction(sums, PORTS)([0.0], vector)
    assert status is Status.OK
    np.testing.assert_allclose(results, sums({"vector": vector}), rtol=1e-13)


def test_a_damaged_file_in_the_cache_is_replaced(
    own_kernels: Path, caplog: pytest.LogCaptureFixture
) -> None:
    traces = []

    def counted(x: Inputs) -> Vector:
        if isinstance(x["angle"][0], Symbol):
            traces.append(1)
        return example(x)

    arguments = [0.6], [[0.3, -2.0], [1.7, 0.4]]
    expected, _ = CompiledFunction(counted, PORTS, b"example")(*arguments)
    np.testing.assert_array_equal(
        CompiledFunction(counted, PORTS, b"example")(*arguments)[0], expected
    )
    assert len(traces) == 1
    (file,) = own_kernels.iterdir()
    # Whole, but not what it says that it is.
    place = file.name.removesuffix(".kernel")
    digest, description, code, *results = packing.unpack(cache.load(place) or b"")
    for damaged, said in (
        ([digest, description, code, *results[:1]], "1 stored results"),
        ([digest, description, code, *results[::-1]], "does not reproduce"),
        ([digest, b"{", code, *results], "is damaged"),
    ):
        cache.store(place, packing.pack(*damaged))
        before = len(traces)
        found, status = CompiledFunction(counted, PORTS, b"example")(*arguments)
        assert status is Status.OK and len(traces) == before + 1
        np.testing.assert_array_equal(found, expected)
        assert said in caplog.text
    CompiledFunction(counted, PORTS, b"other")
    assert len(list(own_kernels.iterdir())) == 2


@pytest.mark.parametrize(
    "nowhere",
    [
        lambda x: [sqrt(-1.0 - x["angle"][0] * x["angle"][0])],
        lambda x: [1.0 / (x["angle"][0] - x["angle"][0])],
    ],
    ids=["root", "quotient"],
)
def test_a_function_that_fails_on_floats_can_be_compiled(nowhere) -> None:
    """It may have results elsewhere; the status says where it has none."""
    results, status = CompiledFunction(nowhere, PORTS[:1])([0.6])
    assert status is Status.NOT_FINITE
