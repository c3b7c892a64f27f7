"""The door to PyTorch: operator, autograd, batches, zero copies, errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from door_cases import MOVING, PLAIN, close, gradient, outputs, sample, weights

from delassus import InputError, Problem
from delassus.doors import torch as door


@pytest.mark.parametrize("problem", [PLAIN, MOVING], ids=["G", "h and a0 in world axes"])
def test_values_and_gradients(problem: Problem) -> None:
    function, inputs = door.torch_function(problem), sample(problem)
    tensors = {name: torch.tensor(values, requires_grad=True) for name, values in inputs.items()}
    found = function(**tensors)
    found = found if isinstance(found, dict) else {"G": found}
    for name, values in outputs(problem, inputs).items():
        assert close(found[name].detach(), values, 1e-9)
    bars = weights(problem)
    sum((torch.tensor(bars[name]) * found[name]).sum() for name in bars).backward()
    for name, values in gradient(problem, inputs).items():
        assert close(tensors[name].grad, values)


def test_batches_vmap_and_compiled_graphs() -> None:
    function = door.torch_function(PLAIN)
    Q = torch.rand((4096, 2), dtype=torch.float64)
    expected = function(Q)
    assert torch.equal(torch.vmap(function)(Q), expected)
    slopes = torch.func.vmap(torch.func.grad(lambda q: function(q).sum()))(Q)
    assert close(slopes[5], gradient_of_sum(Q[5].numpy()))
    # Without a C++ compiler: the graph of the operator, with the backend that runs it as it is.
    compiled = torch.compile(lambda q: 2.0 * function(q), backend="eager", fullgraph=False)
    assert torch.equal(compiled(Q), 2.0 * expected)
    assert torch.autograd.gradcheck(function, (Q[:3].clone().requires_grad_(),))


def gradient_of_sum(q: np.ndarray) -> np.ndarray:
    step, found = 1e-6, []
    for k in range(2):
        sides = [outputs(PLAIN, {"q": q + s * step * np.eye(2)[k]})["G"].sum() for s in (1, -1)]
        found.append((sides[0] - sides[1]) / (2 * step))
    return np.array(found)


def test_the_kernel_reads_the_memory_of_the_tensor(monkeypatch) -> None:
    seen = []

    def record(self, inputs, out):
        seen.append(inputs.ctypes.data)
        out[:] = 7.0

    monkeypatch.setattr(door.BlockFunction, "__call__", record)
    q = torch.rand((8, 2), dtype=torch.float64)
    assert (door.torch_function(PLAIN)(q) == 7.0).all() and seen == [q.data_ptr()]


def test_what_fails_is_nan_or_named() -> None:
    function = door.torch_function(PLAIN)
    q = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    found = function(torch.tensor([[0.1, 0.2], [float("nan"), 0.0]], dtype=torch.float64))
    assert found[0].isfinite().all() and found[1].isnan().all()
    with pytest.raises(InputError, match="input 'q' is torch.float32 on cpu; expected"):
        function(torch.zeros(2))
    with pytest.raises(InputError, match="missing"):
        function()
    (slope,) = torch.autograd.grad(function(q).sum(), q, create_graph=True)
    with pytest.raises(InputError, match="first derivatives only"):
        slope.sum().backward()
