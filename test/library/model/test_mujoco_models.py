"""What a MuJoCo model says beyond a tree: the robot has it, or it is refused by name."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from on_floats import matrix
from oracles import relative
from oracles.mujoco_models import of_mujoco

from delassus import Robot
from delassus.errors import RobotError

ARM = """
<mujoco model="arm"><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" armature="0.02"/>
    <geom size="0.1" pos="0.1 0 0"/>
    <body name="lower" pos="0.3 0 0"><joint name="elbow" axis="0 0 1"/>
      <geom size="0.1" pos="0.1 0.05 0"/></body></body>
</worldbody>PARTS</mujoco>
"""


def arm(parts: str) -> object:
    return mujoco.MjModel.from_xml_string(ARM.replace("PARTS", parts))


def has_actuator_armature() -> bool:
    return hasattr(arm(""), "actuator_armature")


@pytest.mark.skipif(not has_actuator_armature(), reason="MuJoCo before 4")
def test_armatures_of_actuators_are_seen_at_their_joints() -> None:
    motors = (
        '<actuator><motor joint="shoulder" gear="10" armature="0.5"/>'
        '<position joint="shoulder" gear="-2" armature="0.1"/>'
        '<motor jointinparent="elbow" gear="3" armature="0.2"/></actuator>'
    )
    model = arm(motors)
    robot = Robot.from_mujoco(model)
    shoulder, elbow = (joint.armature for joint in robot.joints)
    assert shoulder == pytest.approx(0.02 + 0.5 * 100 + 0.1 * 4)
    assert elbow == pytest.approx(0.2 * 9)
    positions = {"shoulder": 0.4, "elbow": -0.7}
    expected = of_mujoco(model, ["lower"], positions)
    assert relative(matrix(robot, ["lower"], positions), expected) < 1e-12


@pytest.mark.skipif(not has_actuator_armature(), reason="MuJoCo before 4")
def test_armatures_of_other_actuators_are_refused() -> None:
    motors = (
        '<tendon><fixed name="cable"><joint joint="shoulder" coef="1"/></fixed></tendon>'
        '<actuator><motor joint="elbow"/><motor name="winch" tendon="cable" armature="0.5"/>'
        "</actuator>"
    )
    with pytest.raises(RobotError, match="actuator 'winch' has an armature and is a mjTRN_TENDON"):
        Robot.from_mujoco(arm(motors))
    assert Robot.from_mujoco(arm(motors.replace("0.5", "0"))).nq == 2


def test_an_armature_of_a_free_joint_is_refused() -> None:
    xml = (
        '<mujoco><default><joint armature="0.5"/></default><worldbody><body name="box">'
        '<joint name="float" type="free"/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    with pytest.raises(RobotError, match="'float' is a free joint with an armature of 0.5"):
        Robot.from_mujoco(mujoco.MjModel.from_xml_string(xml))
    own = xml.replace('<joint name="float" type="free"/>', '<freejoint name="float"/>')
    robot = Robot.from_mujoco(mujoco.MjModel.from_xml_string(own))
    assert robot.base == "floating" and np.isfinite(matrix(robot, ["box"], {})).all()


def test_a_site_with_the_name_of_a_body_is_a_frame_of_its_own() -> None:
    sites = '<site name="lower" pos="0.2 0.1 0" euler="0.3 0 0"/><site pos="0.1 0 0"/><geom'
    xml = ARM.replace("PARTS", "").replace("<geom", sites, 2).replace(sites, "<geom", 1)
    model = mujoco.MjModel.from_xml_string(xml)
    robot = Robot.from_mujoco(model)
    assert set(robot.frames) == {"upper", "lower", "lower/site", "site1"}
    other = mujoco.MjModel.from_xml_string(xml.replace('site name="lower"', 'site name="tip"'))
    positions = {"shoulder": 0.4, "elbow": -0.7}
    expected = of_mujoco(other, ["lower", "tip"], positions)
    assert relative(matrix(robot, ["lower", "lower/site"], positions), expected) < 1e-12


def test_a_robot_is_read_from_models_specifications_files_and_texts(tmp_path: Path) -> None:
    xml = ARM.replace("PARTS", "")
    path = tmp_path / "arm.xml"
    path.write_text(xml, encoding="utf-8")
    spec = mujoco.MjSpec.from_string(xml)
    # Longer than a file name may be.
    sources = [spec, path, str(path), xml, xml + " " * 5000]
    expected = Robot.from_mujoco(arm("")).to_bytes()
    assert all(Robot.from_mujoco(source).to_bytes() == expected for source in sources)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "is read from None; expected a mujoco.MjModel or MjSpec, the path of a file, or"),
        (3.0, "is read from 3.0; expected"),
        (mujoco.MjData(arm("")), "is read from <mujoco.*MjData.*; expected"),
        ("/no.xml", "there is no file '/no.xml'"),
        ("a" * 5000, "there is no file 'aaa"),
        ("/", "there is no file '/'"),
        ("<mujoco><nope/></mujoco>", "MuJoCo cannot compile '<mujoco><nope/></mujoco>': "),
        (b"<mujoco/>", "is read from b'<mujoco/>'; expected"),
    ],
)
def test_other_than_robot_of_mujoco_refused(source: object, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_mujoco(source)


def test_a_specification_that_does_not_compile_is_refused() -> None:
    spec = mujoco.MjSpec.from_string(ARM.replace("PARTS", ""))
    spec.worldbody.add_body(name="empty").add_joint(name="j")
    with pytest.raises(RobotError, match="MuJoCo cannot compile <mujoco.*MjSpec"):
        Robot.from_mujoco(spec)
