"""Kernels: ports, buffers, status, and what keeps the code alive."""

from __future__ import annotations

import ctypes
import gc
import weakref

import numpy as np
import pytest
from small import Counting, massless_problem, problem, tiny

from delassus import algorithms
from delassus.algorithms import NumericAlgorithm, Status
from delassus.compiler import kernel_for
from delassus.compiler.runtime.kernel import (
    CompiledKernel,
    Kernel,
    NumericKernel,
    aligned_zeros,
)
from delassus.errors import AlgorithmError


def world_kernel() -> Kernel:
    return kernel_for(problem(axes="world"), algorithms.get("pv_osimr"))


def filled(kernel: Kernel):
    bound = kernel.bind()
    bound.inputs["q"][:] = 0.3, -0.2, 0.9
    bound.inputs["base_orientation"][:] = 0.5, 0.5, -0.5, 0.5
    return bound


@pytest.mark.parametrize("size", [1, 7, 8, 1000])
def test_buffers_start_on_a_cache_line(size: int) -> None:
    for _ in range(20):
        buffer = aligned_zeros(size)
        assert buffer.ctypes.data % 64 == 0
        assert buffer.shape == (size,) and buffer.dtype == np.float64
        assert not buffer.any() and buffer.flags.writeable


def test_ports_are_views_of_one_block_each_in_order() -> None:
    bound = filled(world_kernel())
    q, orientation = bound.inputs["q"], bound.inputs["base_orientation"]
    assert list(bound.inputs) == ["q", "base_orientation"]
    assert orientation.ctypes.data - q.ctypes.data == 8 * q.size
    assert bound.outputs["G"].shape == (10, 10)
    assert bound.outputs["G"].flags.c_contiguous
    with pytest.raises(TypeError):
        bound.inputs["q"] = q


def test_bindings_have_buffers_of_their_own() -> None:
    kernel = world_kernel()
    one, two = filled(kernel), filled(kernel)
    assert one.run() == two.run() == 0
    expected = one.outputs["G"].copy()
    two.inputs["q"][:] = 1.0
    assert two.run() == 0
    assert np.array_equal(one.outputs["G"], expected)
    assert not np.array_equal(two.outputs["G"], expected)
    assert one.run() == 0 and np.array_equal(one.outputs["G"], expected)


def test_a_kernel_does_not_write_its_inputs() -> None:
    bound = filled(world_kernel())
    before = {name: values.copy() for name, values in bound.inputs.items()}
    bound.run()
    assert all(np.array_equal(bound.inputs[name], before[name]) for name in before)


def test_a_kernel_writes_its_output_block_and_nothing_beyond() -> None:
    """Called by address as a C program would, with a guard zone around the blocks."""
    kernel = world_kernel()
    assert isinstance(kernel, CompiledKernel)
    inputs, outputs = 3 + 4, 100
    block = np.full(8 + inputs + 8 + outputs + 8, 12345.0)
    block[8 : 8 + inputs] = 0.3, -0.2, 0.9, 0.5, 0.5, -0.5, 0.5
    start = 8 + inputs + 8
    before = block.copy()
    address = block.ctypes.data
    signature = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)
    call = signature(kernel._loaded.address("delassus_kernel"))
    # Eight bytes off the cache line: the C ABI asks for no more than a double's alignment.
    work = np.zeros(kernel.work_size)
    assert call(address + 8 * 8, address + 8 * start, work.ctypes.data) == 0
    assert np.array_equal(block[:start], before[:start])
    assert np.array_equal(block[start + outputs :], before[start + outputs :])
    bound = filled(kernel)
    bound.run()
    assert np.array_equal(block[start : start + outputs].reshape(10, 10), bound.outputs["G"])


def test_status_codes() -> None:
    bound = kernel_for(massless_problem(), algorithms.get("pv_osimr")).bind()
    for q, status in (
        ((0.3, 0.5), Status.OK),
        ((0.3, 0.0), Status.NOT_POSITIVE_DEFINITE),
        ((0.3, np.nan), Status.NOT_FINITE),
        ((0.3, np.inf), Status.NOT_FINITE),
        ((0.3, 0.5), Status.OK),
    ):
        bound.inputs["q"][:] = q
        assert bound.run() == status


def numeric_kernel() -> Kernel:
    """Return a kernel that computes the same as the compiled one, on arrays."""

    class Numeric(NumericAlgorithm):
        def prepare(self, problem):
            bound = kernel_for(problem, algorithms.get("pv_osimr"), use_cache=False).bind()

            def compute(inputs, outputs):
                bound.inputs["q"][:] = inputs["q"]
                status = bound.run()
                outputs["G"][...] = bound.outputs["G"]
                return Status(status)

            return compute

    return kernel_for(problem(), Numeric())


@pytest.mark.parametrize("compiled", [True, False])
def test_selected_rows_and_columns_stand_side_by_side(compiled: bool) -> None:
    plain = kernel_for(problem(), algorithms.get("pv_osimr"))
    bound = (plain if compiled else numeric_kernel()).bind()
    bound.inputs["q"][:] = 0.3, -0.2, 0.9
    assert bound.run() == 0
    full = bound.outputs["G"].copy()
    for rows in ([0, 2, 3], [9], [], list(range(10)), [1, 8, 9]):
        part = bound.select(rows)
        assert part.shape == (len(rows), len(rows))
        for q in (0.3, 0.3):
            bound.inputs["q"][0] = q
            part[...] = 7.0
            assert bound.run() == 0
            assert np.array_equal(part, full[np.ix_(rows, rows)])
            assert np.array_equal(bound.outputs["G"], full)


def test_rows_of_a_failed_run_are_left_alone() -> None:
    bound = kernel_for(problem(), algorithms.get("pv_osimr")).bind()
    part = bound.select([0, 4])
    part[...] = 7.0
    bound.inputs["q"][:] = np.nan
    assert bound.run() == Status.NOT_FINITE
    assert (part == 7.0).all()


def test_a_binding_keeps_the_code_and_nobody_else_does() -> None:
    kernel = kernel_for(tiny(), Counting(), use_cache=False)
    alive = weakref.ref(kernel._loaded)
    bound = kernel.bind()
    del kernel
    gc.collect()
    assert alive() is not None
    bound.inputs["q"][:] = 0.4
    assert bound.run() == 0
    del bound
    gc.collect()
    assert alive() is None


class Doubling(NumericAlgorithm):
    """Writes 2 q₀ on the diagonal, and counts how often it was prepared."""

    def __init__(self) -> None:
        self.prepared = 0

    def prepare(self, problem):
        self.prepared += 1

        def compute(inputs, outputs):
            outputs["G"][...] = 2 * inputs["q"][0] * np.eye(len(outputs["G"]))
            return Status.OK

        return compute


def test_a_back_end_that_cannot_be_prepared_is_named() -> None:
    class Unlicensed(NumericAlgorithm):
        name = "unlicensed"

        def prepare(self, problem):
            raise ValueError("licence missing")

    kernel = kernel_for(tiny(), Unlicensed())
    words = "'unlicensed' cannot be prepared for this problem: ValueError: licence missing"
    with pytest.raises(AlgorithmError, match=words):
        kernel.bind()


def test_numeric_kernels_prepare_once_per_binding() -> None:
    algorithm = Doubling()
    kernel = kernel_for(tiny(), algorithm)
    assert isinstance(kernel, NumericKernel)
    assert kernel.operations is None
    one, two = kernel.bind(), kernel.bind()
    assert algorithm.prepared == 2
    one.inputs["q"][:] = 1.5
    assert one.run() == 0
    assert np.array_equal(one.outputs["G"], 3 * np.eye(3))
    assert not two.outputs["G"].any()
    one.inputs["q"][1] = np.inf
    assert one.run() == Status.NOT_FINITE
