"""From a robot description to the tick of its matrices; another process compiles kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from builtin_interfaces.msg import Time
from delassus_msgs.msg import Layout

from delassus import algorithms
from delassus.algorithms.registry import TracedAlgorithm
from delassus.compiler.build import cached_kernel
from delassus.compiler.cache.cached_code import stored_kernel
from delassus.compiler.runtime.kernel import CompiledKernel
from delassus.compiler.worker import BackgroundBuild
from delassus.problem import Problem
from delassus.solver.solver import DelassusSolver
from delassus_ros.inputs.closed_joints import BoundClosures
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.schedule import ScheduleInput
from delassus_ros.node.dynamics import DynamicsOutput
from delassus_ros.node.matrix import make_layout
from delassus_ros.node.parameters import Settings
from delassus_ros.node.tick import DelassusTick
from delassus_ros.ros.background import CancelledTaskError


@dataclass(frozen=True)
class Computation:
    """Everything that depends on the robot description, from the problem to the tick.

    Attributes
    ----------
    description : text of URDF or MJCF.
    solver : solver of the algorithm in the settings.
    fallback : solver that replaces an algorithm that fails; None for no replacement.
    secondary : names of the secondary outputs, published on ~/dynamics.
    gravity : (3,) along the axes of the world [m/s²].
    estimates : whether the active contacts are estimated from forces, not received.
    closures : closures that compute unmeasured joints for the service ``~/compute``; None for
        open chains.
    """

    description: str
    problem: Problem
    solver: DelassusSolver
    fallback: DelassusSolver | None
    layout: Layout
    tick: DelassusTick
    secondary: tuple[str, ...]
    gravity: tuple[float, ...]
    estimates: bool
    closures: BoundClosures | None

    @classmethod
    def make(
        cls,
        settings: Settings,
        description: str,
        limits: Limits,
        now: Callable[[], int],
        warn: Callable[[str, str], object],
        solver_of: Callable[[Problem, str], DelassusSolver] = DelassusSolver,
    ) -> Computation:
        """Read the robot, make the solvers and connect the tick.

        Parameters
        ----------
        description : text of URDF or MJCF.

        Raises
        ------
        DelassusError
            If the description cannot be used, or the settings do not fit the robot.
        """
        problem = settings.problem(description)
        solver = solver_of(problem, settings.algorithm)
        fallback = None
        if settings.fallback == settings.algorithm:
            fallback = solver
        elif settings.fallback:
            fallback = solver_of(problem, settings.fallback)
        orientation = settings.orientation(problem)
        motion = settings.motion(problem, orientation)
        estimator = settings.estimator(problem, orientation)
        closure = settings.closure(problem)
        more = settings.layout_digest_text(problem)
        world_frame = settings.orientation_world_frame
        seconds, nanoseconds = divmod(now(), 1_000_000_000)
        stamp = Time(sec=seconds, nanosec=nanoseconds)
        layout = make_layout(problem, stamp, world_frame, more)
        outputs = None
        if settings.outputs:
            is_moving = orientation is None or settings.orientation_source != "imu"
            outputs = DynamicsOutput(problem, layout, settings.outputs, is_moving)
        tick = DelassusTick(
            solver,
            layout,
            settings.rows == "all",
            now,
            warn,
            limits,
            closure,
            orientation,
            motion,
            outputs,
            estimator,
            ScheduleInput(limits.contacts_timeout) if settings.scheduled else None,
        )
        if fallback is not None:
            # A binding takes too long, and may fail, at the tick that needs it.
            tick.bindings.of(fallback)
        # The tick has separate closures: a closure starts from its last result.
        closures = None if closure is None else BoundClosures(closure)
        return cls(
            description, problem, solver, fallback, layout, tick, settings.outputs,
            settings.gravity, estimator is not None, closures,
        )  # fmt: skip

    @property
    def summary(self) -> str:
        """Name of the robot, its size and the algorithm, for the log."""
        problem, solver = self.problem, self.solver
        algorithm = solver.algorithm
        if solver.operations is not None:
            algorithm += f", {solver.operations.total} operations"
        return (
            f"{problem.robot.name}: {len(problem.robot.joint_names)} joints, "
            f"{len(problem.contacts)} contacts ({problem.contacts.rows} rows), {algorithm}"
        )


_POLL_CHILD_S = 0.02
"""Period of checks of the building process [s]."""


def make_solver(
    problem: Problem,
    algorithm: str,
    cancelled: threading.Event,
    warm: Callable[[Problem], object] | None = None,
) -> DelassusSolver:
    """Return a solver; its kernel is compiled in another process, unless it is cached.

    Parameters
    ----------
    cancelled : set by another thread to end the build.
    warm : called with the problem in the other process, to compile more into the disk cache;
        the kernel is then built there even if it is cached.

    Raises
    ------
    CancelledTaskError
        If the build was cancelled.
    CompilerError
        If the build failed.
    DelassusError
        If the algorithm is unknown or refuses the problem, or the kernel is damaged.
    Exception
        Any exception that a plug-in raises.
    """
    kernel: CompiledKernel | None = None
    found = algorithms.get(algorithm)
    if isinstance(found, TracedAlgorithm):
        kernel = cached_kernel(problem, found) if warm is None else None
        if kernel is None:
            built = _built(problem, algorithm, cancelled, warm)
            kernel = stored_kernel(problem, found.name).unpacked(built)
    return DelassusSolver(problem, algorithm, prebuilt=kernel)


def _built(
    problem: Problem,
    algorithm: str,
    cancelled: threading.Event,
    warm: Callable[[Problem], object] | None,
) -> bytes:
    """Return the kernel, built by another process."""
    build = BackgroundBuild(problem, algorithm, warm)
    try:
        while (kernel := build.poll()) is None:
            if cancelled.wait(_POLL_CHILD_S):
                raise CancelledTaskError(f"the kernel of {algorithm!r} was cancelled")
        return kernel
    finally:
        build.cancel()
