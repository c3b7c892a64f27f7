"""What there is from configure to cleanup: a robot description to the pipeline of its matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from builtin_interfaces.msg import Time
from delassus_msgs.msg import Layout

from delassus_ros.closure import BoundClosure
from delassus_ros.node.inputs.closed_joints import BoundClosures
from delassus_ros.node.live.pipeline import Pipeline
from delassus_ros.node.outputs.dynamics import DynamicsOutput
from delassus_ros.node.outputs.matrix import make_layout
from delassus_ros.node.reasons import Limits
from delassus_ros.node.settings import Settings
from delassus_ros.node.system.background import BackgroundTask
from delassus_ros.problem import Problem
from delassus_ros.solver.solver import DelassusSolver


@dataclass(frozen=True)
class Computation:
    """All that follows from a robot description; another one has another.

    Attributes
    ----------
    description : the URDF text.
    problem : what is computed.
    solver : the one begun with.
    fallback : stands in for an algorithm that fails; None for nothing.
    layout : what the rows mean.
    pipeline : answers joint states.
    beside : names of what comes beside the matrices.
    gravity : (3,) in the axes of the world [m/s²].
    estimates : contacts are told by forces instead of by a topic.
    closures : find the joints that are not given, for questions; None for open chains.
    """

    description: str
    problem: Problem
    solver: DelassusSolver
    fallback: DelassusSolver | None
    layout: Layout
    pipeline: Pipeline
    beside: tuple[str, ...]
    gravity: tuple[float, ...]
    estimates: bool
    closures: BoundClosures | None

    @classmethod
    def make(
        cls,
        settings: Settings,
        description: str,
        solver: DelassusSolver,
        fallback: DelassusSolver | None,
        limits: Limits,
        now: Callable[[], int],
        warn: Callable[[str, str], object],
    ) -> Computation:
        """Put everything together for solvers of the described robot.

        Parameters
        ----------
        now : time of the node's clock [ns].
        warn : takes the kind of a warning and its text.

        Raises
        ------
        DelassusError
            If the parts do not fit together.
        """
        problem = solver.problem
        orientation = settings.orientation(problem)
        motion = settings.motion(problem, orientation)
        estimator = settings.estimator(problem, orientation)
        closure = settings.closure(problem)
        more = settings.besides_the_problem(problem)
        world_frame = settings.orientation_world_frame
        seconds, nanoseconds = divmod(now(), 1_000_000_000)
        stamp = Time(sec=seconds, nanosec=nanoseconds)
        layout = make_layout(problem, stamp, world_frame, more)
        pipeline = Pipeline(
            solver,
            layout,
            settings.rows == "all",
            now,
            warn,
            limits,
            closure,
            orientation,
            motion,
            DynamicsOutput(problem, layout, settings.outputs) if settings.outputs else None,
            estimator,
        )
        if fallback is not None:
            # Now, as there is no time for it, nor for a failure, when it is needed.
            pipeline.bindings.of(fallback)
        # Others than the pipeline's, which each start from their last result.
        closures = None if closure is None else BoundClosures(closure)
        return cls(
            description, problem, solver, fallback, layout, pipeline, settings.outputs,
            settings.gravity, estimator is not None, closures,
        )  # fmt: skip

    @property
    def tasks(self) -> list[BackgroundTask[BoundClosure]]:
        """What is being made beside the loop, for joint states and for questions."""
        of_questions = [] if self.closures is None else self.closures.tasks
        return self.pipeline.tasks + of_questions

    @property
    def words(self) -> str:
        """The robot, its size and the algorithm."""
        problem, solver = self.problem, self.solver
        algorithm = solver.algorithm
        # Where operations can be counted.
        if solver.operations is not None:
            algorithm += f", {solver.operations.total} operations"
        return (
            f"{problem.robot.name}: {len(problem.robot.joint_names)} joints, "
            f"{len(problem.contacts)} contacts ({problem.contacts.rows} rows), {algorithm}"
        )
