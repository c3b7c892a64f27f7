"""The table of outputs: one row is all that an output needs that a formula gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small import feed, problem

from delassus import BatchSolution, DelassusSolver, Solution
from delassus.errors import InputError, ProblemError
from delassus.outputs import OUTPUTS, Output, OutputArrays, kernel_outputs, secondary_outputs
from delassus.rbda.outputs import FORMULAS, OutputState, jacobian
from delassus.samples import random_inputs
from delassus.scalars.functions import dot, transpose

AXES = {
    "G": "mm", "a0": "m", "JdotV": "m", "v": "m", "turning": "m", "qdd0": "n", "J": "mn",
    "MinvJT": "nm", "h": "n",
    "M": "nn", "dG": "nmm", "Lambda": "mm", "Jbar": "nm", "forces": "m",
}  # fmt: skip
ALL_FORCES = ("rates", "torques", "gravity", "wrenches")
NEEDS = {
    "JdotV": ("rates",), "v": ("rates",), "turning": ("rates",),
    "h": ("rates", "gravity", "wrenches"), "a0": ALL_FORCES, "qdd0": ALL_FORCES,
    "forces": ALL_FORCES,
}  # fmt: skip


def test_the_table_is_what_kernels_and_recordings_rely_on() -> None:
    """Order, shapes and inputs are part of kernels' keys and of messages."""
    assert {name: output.axes for name, output in OUTPUTS.items()} == AXES
    assert list(OUTPUTS) == list(AXES)
    assert {name: output.needs for name, output in OUTPUTS.items() if output.needs} == NEEDS
    assert kernel_outputs() == [
        "G", "J", "JdotV", "M", "MinvJT", "a0", "dG", "h", "qdd0", "turning", "v",
    ]  # fmt: skip
    assert set(FORMULAS) == set(kernel_outputs()) - {"G"}


@pytest.mark.needs("delassus_msgs")
def test_the_message_has_the_fields_of_the_table() -> None:
    from delassus_msgs_py.dynamics import BLOCKS

    fields = {name: (OUTPUTS[name].field, OUTPUTS[name].axes) for name in secondary_outputs()}
    assert list(fields.items()) == list(BLOCKS.items())


@pytest.mark.parametrize("kind", [Solution, BatchSolution])
def test_solutions_have_a_documented_typed_property_per_output(kind: type[OutputArrays]) -> None:
    for name in kernel_outputs()[1:]:
        found = getattr(kind, name)
        assert isinstance(found, property) and found.__doc__
    # Type checkers go by the annotations.
    annotated = set(OutputArrays.__annotations__) - {"matrix", "secondary"}
    assert annotated == set(kernel_outputs()[1:])


def _contact_velocities(state: OutputState) -> list[Any]:
    J = jacobian(state.problem, state.tree, state.x)
    return [dot(row, list(state.x["rates"])) for row in J]


def _transposed(state: OutputState) -> list[list[Any]]:
    return transpose(jacobian(state.problem, state.tree, state.x))


@pytest.mark.parametrize(
    ("row", "formula", "expected"),
    [
        (
            Output("Jv", "m", "contact velocities J ẏ", ("rates",)),
            _contact_velocities,
            lambda s, rates: s.J @ rates,
        ),
        (Output("JT", "nm", "Jᵀ"), _transposed, lambda s, rates: s.J.T),
    ],
    ids=["with rates", "of positions"],
)
def test_a_row_and_its_formula_make_an_output(
    monkeypatch: pytest.MonkeyPatch,
    row: Output,
    formula: Callable[..., Any],
    expected: Callable[[Solution, np.ndarray], np.ndarray],
) -> None:
    with pytest.raises(ProblemError, match=f"unknown output '{row.name}'"):
        problem(outputs=["J", row.name])
    monkeypatch.setitem(OUTPUTS, row.name, row)
    monkeypatch.setitem(FORMULAS, row.name, formula)
    this = problem(outputs=["J", row.name])
    solver = DelassusSolver(this, cache=False)
    samples = [random_inputs(this, seed) for seed in range(3)]
    active = ("c0", "c2")
    single = []
    bound = solver.bind()
    for inputs in samples:
        for names in (None, active):
            s = solver.solve(active=names, **inputs)
            right = expected(s, inputs.get("rates", np.zeros(0)))
            assert np.allclose(s.output(row.name), right, rtol=1e-13, atol=1e-13)
            bound.activate(s.contacts)
            feed(bound, inputs)
            assert np.array_equal(bound.solve().output(row.name), s.output(row.name))
            kept = s.copy()
            s.output(row.name)[...] = 0.0
            assert kept.output(row.name).any(), "a copy has arrays of its own"
        single.append(kept)
    many = {name: np.array([inputs[name] for inputs in samples]) for name in samples[0]}
    batch = solver.solve_batch(many.pop("q"), active, **many)
    for k, s in enumerate(single):
        assert np.allclose(batch.output(row.name)[k], s.output(row.name), rtol=1e-12, atol=1e-12)


def test_an_output_that_the_problem_lacks_is_named() -> None:
    solution = DelassusSolver(problem(outputs=["J"]), cache=False).solve([0.1, 0.2, 0.3])
    assert solution.output("G") is solution.matrix
    for read in (lambda: solution.M, lambda: solution.output("M")):
        with pytest.raises(
            InputError, match=r"needs the output 'M': Problem\(…, outputs=\['M', …\]\)"
        ):
            read()
