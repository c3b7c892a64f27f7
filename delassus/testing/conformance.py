"""The conformance suite: requirements of all registered algorithms, third-party ones included.

>>> from delassus.testing import CHECKS
>>> for check in CHECKS:
...     check("my_algorithm")  # doctest: +SKIP

A check raises :class:`ConformanceError` with the case that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache

import numpy as np

from delassus import algorithms
from delassus.algorithms.registry import Algorithm, TracedAlgorithm
from delassus.contacts import Contact
from delassus.errors import AlgorithmError, DelassusError, NumericalError
from delassus.model import Body, Frame, Inertia, Joint, JointKind, Robot, Transform
from delassus.model.robot import WORLD
from delassus.model.spatial import UNIT_QUATERNION_TOLERANCE, Array
from delassus.problem import Axes, Problem
from delassus.rbda.spatial import rotation_of_quaternion
from delassus.samples import random_inputs
from delassus.scalars.ports import Status
from delassus.solver.inputs import PLACEMENTS
from delassus.solver.solver import DelassusSolver
from delassus.testing.random_trees import (
    ALL,
    SIMPLE,
    kind_of,
    random_inertia,
    random_problem,
)

TOLERANCE = 1e-10
"""Largest relative error, by Frobenius norms, of G and of blocks of contact pairs."""


class ConformanceError(DelassusError):
    """An algorithm violates a requirement of the conformance suite."""


def _solver(problem: Problem, name: str) -> DelassusSolver:
    """Return a solver compiled in this process, not loaded from the cache; shared by checks."""
    return _compiled(problem, name, algorithms.get(name))


@lru_cache(maxsize=64)
def _compiled(problem: Problem, name: str, algorithm: Algorithm) -> DelassusSolver:
    # The algorithm is part of the key: another algorithm may take over the name.
    return DelassusSolver(problem, name, cache=False)


def agrees_with_the_definition(name: str) -> None:
    """Check that G equals the textbook J M⁻¹ Jᵀ, whole and per pair of contacts."""
    for problem, label in _problems(name):
        solver = _solver(problem, name)
        inputs = random_inputs(problem, seed=7)
        G = _solve(solver, inputs)
        expected = textbook(problem, inputs)
        error = relative_error(problem, G, expected)
        _require(error <= TOLERANCE, name, label, f"relative error {error:.1e}")


def moving_contacts_equal_fixed_ones(name: str) -> None:
    """Check that moving contacts give the same G as contacts fixed at the same placements."""
    for problem, label in _problems(name):
        if not problem.moving:
            continue
        inputs = random_inputs(problem, seed=5)
        fixed = fixed_there(problem, inputs)
        solver = _solver(problem, name)
        there = {k: v for k, v in inputs.items() if k not in PLACEMENTS}
        expected = _solve(_solver(fixed, name), there)
        error = relative_error(problem, _solve(solver, inputs), expected)
        _require(error <= TOLERANCE, name, label, f"relative error {error:.1e} to fixed ones")
        expected = _solve(_solver(fixed_there(problem, {}), name), there)
        error = relative_error(problem, _solve(solver, there), expected)
        _require(error <= TOLERANCE, name, label, f"relative error {error:.1e} before they move")


def is_symmetric_and_positive(name: str) -> None:
    """Check that G is symmetric to the last bit and positive semi-definite to rounding."""
    for problem, label in _problems(name):
        solver = _solver(problem, name)
        G = _solve(solver, random_inputs(problem, seed=8))
        _require(np.array_equal(G, G.T), name, label, "not exactly symmetric")
        smallest = float(np.linalg.eigvalsh(G)[0])
        limit = -1e-12 * float(np.linalg.norm(G))
        _require(smallest >= limit, name, label, f"eigenvalue {smallest:.1e}")


def active_contacts_are_blocks(name: str) -> None:
    """Check that the matrix of active contacts is the block of the matrix of all contacts."""
    for problem, label in _problems(name):
        bound = _solver(problem, name).bind()
        _fill(bound.inputs, random_inputs(problem, seed=9))
        full = bound.solve().matrix.copy()
        names, offsets = problem.contacts.names, problem.contacts.row_offsets
        for some in (names[1:], names[::-2], ()):
            bound.activate(some)
            solution = bound.solve()
            rows = [r for i, c in enumerate(names) if c in some
                    for r in range(offsets[i], offsets[i + 1])]  # fmt: skip
            same = np.array_equal(solution.matrix, full[np.ix_(rows, rows)])
            _require(same, name, label, f"matrix of {some} is not the block of the whole")


def is_repeatable(name: str) -> None:
    """Check that two bindings do not disturb each other, and equal inputs give equal bits."""
    problem, label = _problems(name)[0]
    solver = _solver(problem, name)
    one, other = solver.bind(), solver.bind()
    _fill(one.inputs, random_inputs(problem, seed=1))
    _fill(other.inputs, random_inputs(problem, seed=2))
    first = one.solve().matrix.copy()
    other.solve()
    same = np.array_equal(one.solve().matrix, first)
    _require(same, name, label, "a second binding changed the result of the first")


def reports_input_that_is_not_finite(name: str) -> None:
    """Check that any number of an input that is not finite gives a status and NaN, then recovers.

    The result may be valid otherwise: a matrix need not depend on all inputs.
    """
    for problem, label in _problems(name):
        bound = _solver(problem, name).bind()
        good = random_inputs(problem, seed=3)
        _fill(bound.inputs, good)
        for port, values in bound.inputs.items():
            numbers = values.reshape(-1)
            for k, number in enumerate(numbers.tolist()):
                for bad in (np.nan, np.inf, -np.inf):
                    numbers[k] = bad
                    solution = bound.solve()
                    numbers[k] = number
                    told = solution.status is not Status.OK and np.isnan(solution.matrix).all()
                    _require(bool(told), name, label, f"{bad} in input {port!r} was accepted")
        _require(bound.solve().status is Status.OK, name, label, "no recovery after bad input")


def quaternions_need_no_exact_norm(name: str) -> None:
    """Check that a norm within the accepted error changes nothing; others are refused."""
    for problem, label in _problems(name):
        inputs = random_inputs(problem, seed=4)
        solver = _solver(problem, name)
        expected = _solve(solver, inputs)
        for what, quaternions in quaternions_of(problem, inputs).items():
            for quaternion in quaternions:
                quaternion *= 1.0 + 0.9 * UNIT_QUATERNION_TOLERANCE
            error = relative_error(problem, _solve(solver, inputs), expected)
            _require(error <= TOLERANCE, name, label, f"{what}: the norm changes G: {error:.1e}")
            bound = solver.bind()
            for norm in (0.0, 2.0, 1e160):
                _fill(bound.inputs, inputs)
                for quaternion in quaternions_of(problem, bound.inputs)[what]:
                    quaternion *= norm
                status = bound.solve().status
                is_refused = status in (Status.NOT_UNIT, Status.TOO_FAR)
                _require(is_refused, name, label, f"{what} of norm {norm} gives {status.name}")


def reports_a_singular_mass_matrix(name: str) -> None:
    """Check that a joint without inertia is refused or gives a status."""
    robot = _massless_leaf()
    problem = Problem(robot, [Contact("tip", "f1", "surface")])
    if algorithms.get(name).supports(problem) is not None:
        return
    try:
        bound = _solver(problem, name).bind()
    except NumericalError:
        return
    bound.inputs["q"][:] = 0.3
    status = bound.solve().status
    _require(status is not Status.OK, name, "massless leaf", "a matrix came out")


def refuses_with_a_reason(name: str) -> None:
    """Check that a problem that is not supported is refused with the reason."""
    algorithm = algorithms.get(name)
    for problem, label in _all_problems():
        reason = algorithm.supports(problem)
        if reason is None:
            continue
        try:
            _solver(problem, name)
        except AlgorithmError as error:
            _require(reason in str(error), name, label, "the refusal hides the reason")
        else:
            raise ConformanceError(f"{name}: {label}: accepted what supports() refuses")


def floats_and_machine_code_agree(name: str) -> None:
    """Check that the kernel equals the algorithm on floats, and has an operation count."""
    algorithm = algorithms.get(name)
    if not isinstance(algorithm, TracedAlgorithm):
        return
    for problem, label in _problems(name):
        solver = _solver(problem, name)
        inputs = random_inputs(problem, seed=11)
        values = {port: array.ravel().tolist() for port, array in inputs.items()}
        floats = algorithm.evaluate(problem, values)["G"]
        error = relative_error(problem, _solve(solver, inputs), np.array(floats, dtype=float))
        _require(error <= TOLERANCE, name, label, f"kernel and floats differ by {error:.1e}")
        counted = solver.operations is not None and solver.operations.total > 0
        _require(counted, name, label, "operations are not counted")


CHECKS: tuple[Callable[[str], None], ...] = (
    agrees_with_the_definition,
    moving_contacts_equal_fixed_ones,
    is_symmetric_and_positive,
    active_contacts_are_blocks,
    is_repeatable,
    reports_input_that_is_not_finite,
    quaternions_need_no_exact_norm,
    reports_a_singular_mass_matrix,
    refuses_with_a_reason,
    floats_and_machine_code_agree,
)


def textbook(problem: Problem, inputs: dict[str, Array]) -> Array:
    """Return G by the definition, on floats.

    Raises
    ------
    ConformanceError
        If the robot has couplings or loops, which
        :func:`delassus.algorithms.dense.definition` supports.
    """
    dense = algorithms.get("dense")
    if not isinstance(dense, TracedAlgorithm):
        raise ConformanceError("the algorithm 'dense' is not the built-in one")
    reason = dense.supports(problem)
    if reason is not None:
        raise ConformanceError(f"the textbook: {reason}")
    values = {name: array.ravel().tolist() for name, array in inputs.items()}
    return np.array(dense.evaluate(problem, values)["G"], dtype=float)


def fixed_there(problem: Problem, inputs: Mapping[str, Array]) -> Problem:
    """Return the problem with its moving contacts fixed where `inputs` place them.

    Contacts without such an input stay at the placement of the contact set.
    """
    contacts = []
    for contact in problem.contacts:
        rotation, place = contact.placement.rotation, contact.placement.translation
        if contact.name in problem.moving and "contact_positions" in inputs:
            place = inputs["contact_positions"][problem.moving.index(contact.name)]
        if contact.name in problem.turning and "contact_orientations" in inputs:
            q = inputs["contact_orientations"][problem.turning.index(contact.name)]
            rotation = np.array(rotation_of_quaternion(q.tolist()))
        placement = Transform(rotation, place)
        contacts.append(Contact(contact.name, contact.frame, kind_of(contact), placement))
    return Problem(problem.robot, contacts, problem.axes, [p.name for p in problem.outputs])


def placements_of(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Return inputs for moving contacts by contact, as :meth:`DelassusSolver.solve` takes them."""
    return {
        port: dict(zip(names, inputs[port], strict=True))
        for port, names in problem.placed.items()
        if port in inputs
    }


def quaternions_of(problem: Problem, inputs: Mapping[str, Array]) -> dict[str, list[Array]]:
    """Return the quaternions (4,) among inputs by description; views of the inputs."""
    robot = problem.robot
    found = {
        f"joint {joint.name!r}": [inputs["q"][offset + 3 : offset + 7]]
        for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
        if joint.kind is JointKind.FLOATING
    }
    for port in ("base_orientation", "contact_orientations"):
        if port in inputs:
            found[port] = list(inputs[port].reshape(-1, 4))
    return found


def relative_error(problem: Problem, G: Array, expected: Array) -> float:
    """Return the largest of ‖ΔG‖/‖G‖ over all of G and over its contact pairs.

    A pair's error is relative to the geometric mean of its two diagonal blocks: coupling
    may be structurally zero.
    """
    offsets = problem.contacts.row_offsets
    blocks = [slice(a, b) for a, b in zip(offsets[:-1], offsets[1:], strict=True)]
    sizes = [np.linalg.norm(expected[b, b]) for b in blocks]
    errors = [np.linalg.norm(G - expected) / np.linalg.norm(expected)]
    for i, rows in enumerate(blocks):
        for j, columns in enumerate(blocks):
            difference = np.linalg.norm((G - expected)[rows, columns])
            errors.append(difference / np.sqrt(sizes[i] * sizes[j]))
    return float(np.max(errors))


@cache
def _all_problems() -> tuple[tuple[Problem, str], ...]:
    cases: tuple[tuple[int, tuple[JointKind, ...], Axes, bool], ...] = (
        (1, SIMPLE, "contact", False), (4, SIMPLE, "contact", False), (2, SIMPLE, "world", False),
        (9, ALL, "contact", False), (6, ALL, "world", False),
        (16, SIMPLE, "contact", True), (1, ALL, "world", True),
    )  # fmt: skip
    problems = []
    for seed, kinds, axes, moving in cases:
        problem = random_problem(seed, kinds, axes, 9, moving)
        contacts = ", moving contacts" if moving else ""
        label = f"random tree {seed}, {axes} axes, base {problem.robot.base}{contacts}"
        problems.append((problem, label))
    return tuple(problems)


def _problems(name: str) -> list[tuple[Problem, str]]:
    """Return the problems that the algorithm supports."""
    algorithm = algorithms.get(name)
    supported = [case for case in _all_problems() if algorithm.supports(case[0]) is None]
    if not supported:
        raise ConformanceError(f"{name}: supports none of the suite's problems")
    return supported


def _massless_leaf() -> Robot:
    inertia = random_inertia(np.random.default_rng(0))
    joints = [
        Joint("hip", JointKind.REVOLUTE, WORLD),
        Joint("knee", JointKind.REVOLUTE, 0, Transform(np.eye(3), np.array([0.3, 0.0, 0.0]))),
    ]
    frames = [Frame("f0", 0, Transform()), Frame("f1", 1, Transform())]
    return Robot("massless leaf", joints, [Body("b0", inertia), Body("b1", Inertia())], frames)


def _solve(solver: DelassusSolver, inputs: Mapping[str, Array]) -> Array:
    placements = placements_of(solver.problem, inputs)
    return solver.solve(
        inputs["q"],
        base_orientation=inputs.get("base_orientation"),
        contact_positions=placements.get("contact_positions"),
        contact_orientations=placements.get("contact_orientations"),
    ).matrix


def _fill(ports: Mapping[str, Array], values: dict[str, Array]) -> None:
    for name, array in values.items():
        ports[name][...] = array


def _require(condition: bool, name: str, label: str, what: str) -> None:
    if not condition:
        raise ConformanceError(f"{name}: {label}: {what}")
