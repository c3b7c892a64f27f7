"""Ankles whose messages have motors: adapter and node give what the joints themselves give.

An ankle with pitch and roll, moved by two cranks on the shank over rods.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import ActiveContacts, ContactDynamics, DelassusMatrix
from delassus_msgs_py import dynamics_to_numpy, matrix_to_numpy
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from test_presets import parameters
from tick_support import START, to_message

from delassus import Closure, DelassusSolver
from delassus_ros.adapter.conversion import Adapter
from delassus_ros.adapter.fields import message_type
from delassus_ros.inputs.limits import Limits
from delassus_ros.node.dynamics import DynamicsOutput
from delassus_ros.node.matrix import make_layout
from delassus_ros.node.parameters import Settings
from delassus_ros.node.tick import DelassusTick

JOINTS = ["ankle_pitch", "ankle_roll"]
MOTORS = ["crank_B", "crank_A"]


@dataclass(frozen=True)
class Maker:
    """A preset with an ankle whose messages have joints or motors.

    Attributes
    ----------
    preset : file of config/robots.
    joints, motors : names in the file, of pitch and roll and of the cranks.
    as_motors : changes of the parameters for motors; none where a field of the message tells.
    """

    preset: str
    joints: list[str]
    motors: list[str]
    as_motors: dict[str, Any]

    def adapter(self, mode: int) -> Adapter:
        return Adapter(parameters(self.preset, **(self.as_motors if mode else {})))

    def message(self, adapter: Adapter, mode: int, numbers: list[list[float]]) -> Any:
        """Return a message with position, velocity and torque of each of the two drives."""
        message = adapter.type()
        names = list(adapter.settings["joints.names"])
        places = [
            names.index(name) for name in (self.motors if self.as_motors and mode else self.joints)
        ]
        if self.preset == "g1":
            message.mode_pr = mode
            states = message.motor_state
        else:
            motor = message_type("booster_interface/msg/MotorState")
            message.motor_state_serial = [motor() for _ in names]
            message.motor_state_parallel = [motor() for _ in names]
            states = message.motor_state_parallel if mode else message.motor_state_serial
        for place, (q, dq, tau) in zip(places, numbers, strict=True):
            states[place].q, states[place].dq, states[place].tau_est = q, dq, tau
        return message


def _t1(names: list[str]) -> dict[str, Any]:
    """Return the changes that the file of T1 describes for the state of motors."""
    fields = (("position", "q"), ("velocity", "dq"), ("effort", "tau_est"))
    return {
        "joints__names": names,
        **{f"joints__{key}": f"motor_state_parallel[].{name}" for key, name in fields},
    }


T1 = parameters("t1")["joints.names"]
MAKERS = [
    Maker("g1", ["left_ankle_pitch_joint", "left_ankle_roll_joint"],
          ["left_ankle_B", "left_ankle_A"], {}),
    Maker("t1", ["Left_Ankle_Pitch", "Left_Ankle_Roll"], ["Crank_Up_Left", "Crank_Down_Left"],
          _t1([{"Left_Ankle_Pitch": "Crank_Up_Left", "Left_Ankle_Roll": "Crank_Down_Left"}.get(
              name, name) for name in T1])),
]  # fmt: skip


def ankle(maker: Maker) -> str:
    """Return the URDF with the maker's names.

    At zero each rod hangs straight from its crank to its pin on the foot.
    """
    inertial = (
        '<inertial><origin xyz="0.01 0.002 -0.01"/><mass value="0.4"/><inertia ixx="0.002" ixy="0"'
        ' ixz="0" iyy="0.003" iyz="0" izz="0.002"/></inertial>'
    )
    links = ["shank", "cross", "foot", "sole"]
    joints = [
        ("ankle_pitch", "shank", "cross", "0 0 0", "0 1 0"),
        ("ankle_roll", "cross", "foot", "0 0 0", "1 0 0"),
        ("tread", "foot", "sole", "0.03 0 -0.05", ""),
    ]
    for side, y in (("A", 0.04), ("B", -0.04)):
        links += [f"crank_{side}_link", f"rod_{side}", f"end_{side}", f"pin_{side}"]
        joints += [
            (f"crank_{side}", "shank", f"crank_{side}_link", f"0 {y} 0.2", "0 1 0"),
            (f"ball_{side}", f"crank_{side}_link", f"rod_{side}", "-0.05 0 0", "0 1 0"),
            (f"tip_{side}", f"rod_{side}", f"end_{side}", "0 0 -0.2", ""),
            (f"hold_{side}", "foot", f"pin_{side}", f"-0.05 {y} 0", ""),
        ]
    text = "".join(f'<link name="{each}">{inertial}</link>' for each in links)
    for name, parent, child, xyz, axis in joints:
        kind = "continuous" if axis else "fixed"
        text += (
            f'<joint name="{name}" type="{kind}"><origin xyz="{xyz}"/><parent link="{parent}"/>'
            f'<child link="{child}"/>{f"<axis xyz={chr(34)}{axis}{chr(34)}/>" if axis else ""}'
            "</joint>"
        )
    return renamed(f'<robot name="ankle">{text}</robot>', maker)


def renamed(text: str, maker: Maker) -> str:
    """Return a text with the names of the maker."""
    for own, name in zip([*JOINTS, *MOTORS], [*maker.joints, *maker.motors], strict=True):
        text = re.sub(rf"\b{own}\b", name, text)
    return text


LOOPS = (
    "{joints: {ball_A: universal_yx, ball_B: universal_yx},"
    " independent: [ankle_pitch, ankle_roll],"
    " loops: [{frames: [end_A, pin_A], type: point}, {frames: [end_B, pin_B], type: point}]}"
)


@pytest.mark.usefixtures("makers")
@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.preset)
def test_motors_give_the_matrices_and_the_dynamics_of_joints(maker: Maker) -> None:
    settings = Settings.from_parameters(
        {
            "base": "fixed", "loops": renamed(LOOPS, maker), "outputs": ["h", "qdd0"],
            "contacts.names": ["sole"], "contacts.sole.frame": "sole",
        }
    )  # fmt: skip
    problem = settings.problem(ankle(maker))
    closure = Closure(problem)
    rng = np.random.default_rng(1)
    joints, rates = rng.uniform(-0.25, 0.25, 2), rng.uniform(-1.0, 1.0, 2)
    order = [problem.velocities.index(name) for name in maker.joints]

    def motors(at: np.ndarray) -> np.ndarray:
        solved = closure.solve(dict(zip(maker.joints, at, strict=True)))
        names = list(problem.robot.joint_names)
        return np.array([solved.q[names.index(name)] for name in maker.motors])

    step = 1e-6
    # Rows: motors; columns: joints.
    E = np.array(
        [(motors(joints + step * d) - motors(joints - step * d)) / (2 * step) for d in np.eye(2)]
    ).T
    assert np.abs(E - np.eye(2)).max() > 0.05 and abs(np.linalg.det(E)) > 0.1
    motor_torques = rng.uniform(-3.0, 3.0, 2)
    # Virtual work.
    as_joints = _through(maker, settings, problem, 0, joints, rates, E.T @ motor_torques)
    as_motors = _through(maker, settings, problem, 1, motors(joints), E @ rates, motor_torques)
    G, h, qdd0 = as_joints
    expected = DelassusSolver(problem, "ltl").solve(
        closure.solve(dict(zip(maker.joints, joints, strict=True))).q,
        rates=rates[order], torques=(E.T @ motor_torques)[order], gravity=settings.gravity,
    )  # fmt: skip
    # Messages have single precision.
    for found, other, right in zip(
        as_motors, as_joints, (expected.matrix, expected.h, expected.qdd0), strict=True
    ):
        assert np.linalg.norm(other - right) < 1e-5 * np.linalg.norm(right)
        assert np.linalg.norm(found - right) < 1e-5 * np.linalg.norm(right)


def _through(
    maker: Maker, settings: Settings, problem: Any, mode: int, q: Any, v: Any, torques: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return G, h and qdd0 that adapter and node make of a message."""
    adapter = maker.adapter(mode)
    numbers = [[float(x) for x in each] for each in zip(q, v, torques, strict=True)]
    found = adapter.convert(maker.message(adapter, mode, numbers), START)
    assert found.joints is not None
    assert set(maker.motors if mode else maker.joints) <= set(found.joints.names)
    assert not set(maker.joints if mode else maker.motors) & set(found.joints.names)
    layout = make_layout(problem, to_message(START), "odom")
    tick = DelassusTick(
        DelassusSolver(problem), layout, False, lambda: START, lambda kind, text: None, Limits(),
        Closure(problem), None, settings.motion(problem, None),
        DynamicsOutput(problem, layout, settings.outputs),
    )  # fmt: skip
    active = ActiveContacts(names=["sole"], status=[ActiveContacts.ACTIVE])
    active.header.stamp = to_message(START)
    tick.read("active_contacts", serialize_message(active))
    state = JointState(
        name=found.joints.names, position=found.joints.position,
        velocity=found.joints.velocity, effort=found.joints.effort,
    )  # fmt: skip
    state.header.stamp = to_message(START)
    tick.read("joint_states", serialize_message(state))
    messages = dict(tick.answer())
    answer = deserialize_message(messages["~/delassus"], DelassusMatrix)
    assert answer.validity == DelassusMatrix.VALIDITY_OK, tick.last.text
    dynamics = deserialize_message(messages["~/dynamics"], ContactDynamics)
    numbers = dynamics_to_numpy(dynamics)
    assert numbers.h is not None and numbers.qdd0 is not None
    return matrix_to_numpy(answer), numbers.h, numbers.qdd0
