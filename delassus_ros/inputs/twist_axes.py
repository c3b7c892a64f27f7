"""Detection of a twist along the axes of the world, by the motion of the pose.

A nav_msgs/Odometry has its twist along the axes of child_frame_id, a sensor_msgs/Imu along those
of header.frame_id. Several drivers publish it along the axes of the world instead. One message
does not show that; the motion of the pose from message to message does.

Displacements over steps of 0.1 s are compared with the integral of the twist as it is, and turned
by the orientation. After 20 steps, the twist counts as along the world's axes if both hold:

- The displacements differ from the turned twist by 0.05 m/s or rad/s or more (root mean square).
  Slower robots are not reported: a smaller difference is within the noise of velocities.
- The squared differences to the twist as it is are less than a quarter of those to the turned
  twist. Noise of pose or twist, a pose that stands still, wheels that slip (a displacement of any
  multiple of the turned twist), and jumps of the pose make both sums alike, or the first larger.

Knows no ROS. Stamps are integers, ns; quaternions are x, y, z, w.
"""

from __future__ import annotations

from collections.abc import Sequence

from delassus_ros.inputs.quaternions import (
    Quaternion,
    conjugate,
    rotation_vector,
    times,
    turned,
)

STEP_NS = 100_000_000
"""Shortest time of a step [ns]: errors of 1 cm of a pose are 0.14 m/s over a step."""
STEPS = 20
"""Number of steps of a comparison."""
SHORTEST_GAP_NS, LONGEST_GAP_NS = 5_000_000, 200_000_000
"""Shortest and longest time between two messages that are compared [ns]; messages in between are
left out, and a longer pause begins everything anew."""
LEAST_RATE = 0.05
"""Least difference of velocities that counts [m/s, rad/s]."""
SHARE = 0.25
"""Largest share of the squared differences for which the other axes are those of the twist."""
LINEAR, ANGULAR = "linear velocity", "angular velocity"
PARTS = (LINEAR, ANGULAR)
"""Parts of a twist, in words."""


class TwistAxes:
    """Compares the twist of a source with its pose, message by message.

    Attributes
    ----------
    along_world : names of the parts of the twist that are along the axes of the world.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first message."""
        self._last: tuple[int, Sequence[float] | None, Quaternion, list[float]] | None = None
        self._begin_comparison()
        self.along_world: tuple[str, ...] = ()

    def _begin_comparison(self) -> None:
        self._steps, self._floor = 0, 0.0
        self._errors = [[0.0, 0.0] for _ in PARTS]
        self._begin_step()

    def _begin_step(self) -> None:
        self._span = 0
        # By part: displacement less the integral of the twist, and of the turned twist.
        self._apart = [[0.0] * 3 for _ in range(2 * len(PARTS))]

    def note(
        self,
        stamp: int,
        position: Sequence[float] | None,
        orientation: Quaternion,
        linear: Sequence[float],
        angular: Sequence[float],
    ) -> None:
        """Note pose and twist of the next message.

        Parameters
        ----------
        position : of the frame of the source, along the axes of the world [m]; None if unknown.
        orientation : unit quaternion from the axes of the frame to those of the world.
        linear, angular : twist of the frame, finite [m/s, rad/s].
        """
        last = self._last
        if last is not None and 0 <= stamp - last[0] < SHORTEST_GAP_NS:
            return
        rates = [*linear, *turned(linear, orientation), *angular, *turned(angular, orientation)]
        self._last = stamp, position, orientation, rates
        if last is None:
            return
        passed = stamp - last[0]
        if not 0 < passed <= LONGEST_GAP_NS:
            self.reset()
            self._last = stamp, position, orientation, rates
            return
        half = 0.5e-9 * passed
        moved = [half * (a + b) for a, b in zip(last[3], rates, strict=True)]
        shift = [0.0] * 3
        if position is None or last[1] is None:
            moved[:6] = [0.0] * 6
        else:
            shift = [b - a for a, b in zip(last[1], position, strict=True)]
        spin = rotation_vector(times(orientation, conjugate(last[2])))
        for k, apart in enumerate(self._apart):
            measured = shift if k < 2 else spin
            for i in range(3):
                apart[i] += measured[i] - moved[3 * k + i]
        self._span += passed
        if self._span >= STEP_NS:
            self._end_step()

    def _end_step(self) -> None:
        for k, apart in enumerate(self._apart):
            x, y, z = apart
            self._errors[k // 2][k % 2] += x * x + y * y + z * z
        least = LEAST_RATE * 1e-9 * self._span
        self._floor += least * least
        self._steps += 1
        self._begin_step()
        if self._steps == STEPS:
            self._conclude()
            self._begin_comparison()

    def _conclude(self) -> None:
        found = []
        for part, (as_it_is, when_turned) in zip(PARTS, self._errors, strict=True):
            along_world = when_turned >= self._floor and as_it_is < SHARE * when_turned
            along_base = as_it_is >= self._floor and when_turned < SHARE * as_it_is
            # Without a difference that counts, the last conclusion stays.
            if along_world or (part in self.along_world and not along_base):
                found.append(part)
        self.along_world = tuple(found)
