"""Start delassus_node for a robot.

Usage: ros2 launch delassus_ros delassus.launch.py params_file:=... robot_description_file:=...
       ros2 launch delassus_ros delassus.launch.py robot:=go2 robot_description_file:=...

ros2 launch delassus_ros delassus.launch.py --show-args explains the arguments.
"""

from pathlib import Path

import yaml
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, and a function that makes the node from their values."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="Parameters of the node: base, axes, contacts; see config/. If empty, "
                "those of the robot, or of quadruped.yaml.",
            ),
            DeclareLaunchArgument(
                "robot",
                default_value="",
                description="Name of a file in config/robots, such as go2: its parameters, and an "
                "adapter for the messages of its maker.",
            ),
            DeclareLaunchArgument(
                "robot_description_file",
                default_value="",
                description="URDF, MJCF or, if it ends in .xacro, xacro file; if empty, the node "
                "takes the description from the topic.",
            ),
            DeclareLaunchArgument(
                "xacro_arguments",
                default_value="",
                description="Arguments of the xacro file: 'name:=value name:=value'.",
            ),
            DeclareLaunchArgument(
                "robot_description_topic",
                default_value="robot_description",
                description="Topic of the robot description, used if there is no file.",
            ),
            DeclareLaunchArgument(
                "name", default_value="delassus_node", description="Name of the node."
            ),
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of the node and of its topics.",
            ),
            DeclareLaunchArgument(
                "algorithm",
                default_value="",
                description="Algorithm; if empty, the algorithm of the parameter file. "
                "'delassus list' shows the choices.",
            ),
            DeclareLaunchArgument(
                "autostart",
                default_value="",
                description="true or false: the node configures and activates itself, without a "
                "lifecycle manager; if empty, the value of the parameter file, else false.",
            ),
            DeclareLaunchArgument(
                "use_sim_time",
                default_value="",
                description="true or false: the time comes from the topic /clock; if empty, the "
                "value of the parameter file, else false.",
            ),
            DeclareLaunchArgument(
                "enclave",
                default_value="/delassus/delassus_node",
                description="Security enclave; without effect unless ROS 2 security is enabled.",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                choices=["debug", "info", "warn", "error", "fatal"],
                description="Least severity of the log lines of the node.",
            ),
            OpaqueFunction(function=_node),
        ]
    )


def _node(context) -> list[Node]:
    """Return the node for the values of the arguments."""

    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    file = _parameters(value("params_file"), value("robot"))
    parameters = [str(file)]
    # Later parameters override those of the file, so that only arguments with a value are added.
    added = {
        name: _truth(name, value(name)) for name in ("autostart", "use_sim_time") if value(name)
    }
    if value("algorithm"):
        added["algorithm"] = value("algorithm")
    if value("robot_description_file"):
        source = _existing("robot_description_file", value("robot_description_file"))
        urdf = _urdf(source, value("xacro_arguments"))
        # As a string: launch would otherwise try to read the text as YAML.
        added["robot_description"] = ParameterValue(urdf, value_type=str)
    elif value("xacro_arguments"):
        raise RuntimeError("xacro_arguments are given, but no robot_description_file")
    if added:
        parameters.append(added)
    adapter = Node(
        package="delassus_ros",
        executable="delassus_adapter",
        name="delassus_adapter",
        namespace=value("namespace"),
        parameters=[str(file), *({"use_sim_time": t} for t in [added.get("use_sim_time")] if t)],
        ros_arguments=["--log-level", value("log_level")],
        output="screen",
    )
    return [
        *([adapter] if _has_adapter(file) else []),
        Node(
            package="delassus_ros",
            executable="delassus_node",
            name=value("name"),
            namespace=value("namespace"),
            parameters=parameters,
            remappings=[("robot_description", value("robot_description_topic"))],
            ros_arguments=["--log-level", value("log_level"), "--enclave", value("enclave")],
            output="screen",
        ),
    ]


def _parameters(params_file: str, robot: str) -> Path:
    """Return the parameter file: the given one, that of the robot, or that of the quadruped."""
    if params_file and robot:
        raise RuntimeError("params_file and robot exclude each other")
    if params_file:
        return _existing("params_file", params_file)
    config = Path(get_package_share_directory("delassus_ros")) / "config"
    if not robot:
        return config / "quadruped.yaml"
    found = config / "robots" / f"{robot}.yaml"
    if not found.is_file():
        known = ", ".join(sorted(file.stem for file in found.parent.glob("*.yaml")))
        raise RuntimeError(f"robot: there is no {robot!r}; robots: {known}")
    return found


def _has_adapter(file: Path) -> bool:
    """Return whether a parameter file has parameters of an adapter."""
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    names = content if isinstance(content, dict) else {}
    return any(str(name).rpartition("/")[2] == "delassus_adapter" for name in names)


def _truth(argument: str, text: str) -> bool:
    """Return an argument as a truth value; launch files that include this one may write True."""
    known = {"true": True, "1": True, "false": False, "0": False}
    if text.lower() not in known:
        raise RuntimeError(f"{argument}: {text!r} is neither true nor false")
    return known[text.lower()]


def _existing(argument: str, path: str) -> Path:
    """Return the file of an argument."""
    if not Path(path).is_file():
        raise RuntimeError(f"{argument}: there is no file {path}")
    return Path(path)


def _urdf(file: Path, arguments: str) -> str:
    """Return the URDF text of a file, after xacro if it is one."""
    if file.suffix != ".xacro":
        if arguments:
            raise RuntimeError(
                f"xacro_arguments are given, but robot_description_file {file} does not end in "
                ".xacro"
            )
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise RuntimeError(
                f"robot_description_file {file} is not UTF-8 text ({error.reason} at byte "
                f"{error.start}): convert it, as with 'iconv -t UTF-8'"
            ) from error
        if not text.strip():
            # With an empty text, the node would wait for the topic.
            raise RuntimeError(f"robot_description_file {file} is empty")
        return text
    try:
        import xacro
    except ImportError as error:
        raise RuntimeError(
            f"robot_description_file {file} needs xacro, which is not installed "
            "(apt install ros-$ROS_DISTRO-xacro); or give the URDF itself"
        ) from error
    mappings = {}
    for pair in arguments.split():
        name, separator, text = pair.partition(":=")
        if not (name and separator):
            raise RuntimeError(f"xacro_arguments: {pair!r} is not of the form name:=value")
        mappings[name] = text
    try:
        return xacro.process_file(str(file), mappings=mappings).toxml()
    except Exception as error:
        # xacro's error does not name the file; for an expression it is an error of Python.
        raise RuntimeError(
            f"robot_description_file {file}: xacro cannot expand it: "
            f"{type(error).__name__}: {' '.join(str(error).split())}"
        ) from error
