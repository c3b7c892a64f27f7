"""The program delassus_simulator: the plant with a gait, and MuJoCo's matrix as a reference."""

from __future__ import annotations

from functools import partial

from delassus_ros.ros.program import Program
from delassus_ros.sim.plant_node import PlantNode, run_plant

_HELP = """\
usage: delassus_simulator [--ros-args ...]

Simulates a small robot in MuJoCo, in real time, and publishes the topics of a robot.

publishes   joint_states        sensor_msgs/JointState
            active_contacts     delassus_msgs/ActiveContacts (latched)
            robot_description   std_msgs/String (latched)
            ~/reference         delassus_msgs/DelassusMatrix, computed by MuJoCo
            ~/odometry, ~/contact_force/<contact>: with the parameter truth
            /clock              rosgraph_msgs/Clock: in lockstep
subscribes  delassus_node/delassus
                                delassus_msgs/DelassusMatrix: in lockstep
parameters  robot               quadruped (the default) or geared
            rate                joint states per second, a divisor of 1000 (1000)
            reference           publish ~/reference (true)
            truth               publish quantities without a sensor on a robot (false)
            lockstep            publish /clock, which stands still until a matrix has answered
                                each joint state (false)
            slack, answers, view, record, push_every, push_force: see delassus_plant --help

example     delassus_simulator --ros-args -p robot:=geared
"""

_make = partial(PlantNode, "simulator", rate=1000, gait=True)
main = Program("delassus_simulator", _make, run_plant, _HELP, ("mujoco",))

if __name__ == "__main__":
    main.end_process()
