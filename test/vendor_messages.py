"""Message types of robots' makers, built by rosidl from facts about them, as Python classes alone.

rosidl's generator writes the classes; type support, which needs a compiler, is left out, so that
these messages cannot be sent, but are otherwise those of an installed package.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rosidl_adapter.msg import convert_msg_to_idl
from rosidl_generator_py import generate_py

_UNITREE_IMU = """
float32[4] quaternion
float32[3] gyroscope
float32[3] accelerometer
float32[3] rpy
int8 temperature
"""
TYPES = {
    "unitree_go": {
        "IMUState": _UNITREE_IMU,
        "MotorState": "float32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est\nuint32 lost",
        "LowState": """
            IMUState imu_state
            MotorState[20] motor_state
            int16[4] foot_force
            int16[4] foot_force_est
            uint32 tick
        """,
    },
    "unitree_hg": {
        "IMUState": _UNITREE_IMU,
        "MotorState": "uint8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est",
        "LowState": """
            uint8 mode_pr
            uint8 mode_machine
            uint32 tick
            IMUState imu_state
            MotorState[35] motor_state
        """,
    },
    "booster_interface": {
        "ImuState": "float32[3] rpy\nfloat32[3] gyro\nfloat32[3] acc",
        "MotorState": "int8 mode\nfloat32 q\nfloat32 dq\nfloat32 ddq\nfloat32 tau_est",
        "LowState": """
            ImuState imu_state
            MotorState[] motor_state_parallel
            MotorState[] motor_state_serial
        """,
    },
    "spot_msgs": {
        "FootState": """
            uint8 CONTACT_UNKNOWN = 0
            uint8 CONTACT_MADE = 1
            uint8 CONTACT_LOST = 2
            geometry_msgs/Point foot_position_rt_body
            uint8 contact
        """,
        "FootStateArray": "FootState[] states",
    },
    "franka_msgs": {
        "FrankaRobotState": """
            std_msgs/Header header
            sensor_msgs/JointState measured_joint_state
            sensor_msgs/JointState desired_joint_state
        """,
    },
    "linear_feedback_controller_msgs": {
        "Contact": """
            bool active
            string name
            geometry_msgs/Wrench wrench
            geometry_msgs/Pose pose
        """,
        "Sensor": """
            std_msgs/Header header
            geometry_msgs/Pose base_pose
            geometry_msgs/Twist base_twist
            sensor_msgs/JointState joint_state
            Contact[] contacts
        """,
    },
    "whole_body_state_msgs": {
        "CentroidalState": """
            geometry_msgs/Vector3 com_position
            geometry_msgs/Vector3 com_velocity
            geometry_msgs/Quaternion base_orientation
            geometry_msgs/Vector3 base_angular_velocity
        """,
        "JointState": """
            string name
            float64 position
            float64 velocity
            float64 acceleration
            float64 effort
        """,
        "ContactState": """
            uint8 UNKNOWN = 0
            uint8 INACTIVE = 1
            uint8 ACTIVE = 2
            uint8 SLIPPING = 3
            string name
            uint8 type
            uint8 status
        """,
        "WholeBodyState": """
            std_msgs/Header header
            float64 time
            CentroidalState centroidal
            JointState[] joints
            ContactState[] contacts
        """,
    },
}
"""Texts of the messages of each package, as far as they matter."""


def generate(folder: Path) -> None:
    """Write the packages into a folder."""
    for package, messages in TYPES.items():
        source, idl = folder / "source" / package, folder / "idl" / package / "msg"
        (source / "msg").mkdir(parents=True)
        idl.mkdir(parents=True)
        target = folder / "python" / package
        (target / "msg").mkdir(parents=True)
        (target / "__init__.py").touch()
        for name, text in messages.items():
            lines = "\n".join(line.strip() for line in text.splitlines())
            (source / "msg" / f"{name}.msg").write_text(lines)
            convert_msg_to_idl(source, package, Path("msg") / f"{name}.msg", idl)
        arguments = folder / f"{package}.json"
        templates = Path(sys.prefix) / "share" / "rosidl_generator_py" / "resource"
        arguments.write_text(
            json.dumps(
                {
                    "package_name": package,
                    "output_dir": str(target),
                    "template_dir": str(templates),
                    "idl_tuples": [f"{idl.parent}:msg/{name}.idl" for name in messages],
                    "ros_interface_dependencies": [],
                    "target_dependencies": [],
                }
            )
        )
        generate_py(str(arguments), [])


@contextmanager
def installed(folder: Path) -> Iterator[None]:
    """Make the packages of :func:`generate` importable."""
    path = str(folder / "python")
    sys.path.insert(0, path)
    try:
        yield
    finally:
        sys.path.remove(path)
        for name in list(sys.modules):
            if name.partition(".")[0] in TYPES:
                del sys.modules[name]
