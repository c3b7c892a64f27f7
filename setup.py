"""The Python package: for colcon (ament_python), and for pip with or without ROS."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from setuptools import find_packages, setup

NAME = "delassus_ros"
ROOT = Path(__file__).resolve().parent
MANIFEST = ElementTree.parse(ROOT / "package.xml").getroot()

COMMANDS = {
    "delassus": "delassus_ros.commands:delassus",
    "delassus_adapter": "delassus_ros.commands:adapter",
    "delassus_compare": "delassus_ros.commands:compare",
    "delassus_demo": "delassus_ros.sim.demo:main",
    "delassus_estimator": "delassus_ros.commands:estimator",
    "delassus_markers": "delassus_ros.commands:markers",
    "delassus_monitor": "delassus_ros.commands:monitor",
    "delassus_node": "delassus_ros.commands:node",
    "delassus_plant": "delassus_ros.commands:plant",
    "delassus_simulator": "delassus_ros.commands:simulator",
}


def requirements(file: Path) -> list[str]:
    """Return the requirements that a file lists, without its comments."""
    lines = (line.partition("#")[0].strip() for line in file.read_text().splitlines())
    return [line for line in lines if line]


def files(pattern: str) -> list[str]:
    """Return the files that match a pattern, relative to this folder as setuptools wants."""
    return [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob(pattern))]


def launchers() -> list[str]:
    """Write a launcher for each command, which runs its namesake in bin/."""
    folder = ROOT / "build" / "launchers"
    folder.mkdir(parents=True, exist_ok=True)
    for command in COMMANDS:
        launcher = folder / command
        launcher.write_text(f'#!/bin/sh\nexec "${{0%/lib/{NAME}/*}}/bin/${{0##*/}}" "$@"\n')
        launcher.chmod(0o755)
    return [f"build/launchers/{command}" for command in COMMANDS]


data_files = [
    ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
    (f"share/{NAME}", ["package.xml"]),
    (f"share/{NAME}/launch", files("launch/*.py")),
    (f"share/{NAME}/config", files("config/*.yaml")),
    (f"share/{NAME}/config/estimator", files("config/estimator/*.yaml")),
    (f"share/{NAME}/config/robots", files("config/robots/*.yaml")),
    (f"share/{NAME}/config/security", files("config/security/*.xml")),
    (f"share/{NAME}/config/view", files("config/view/*")),
]
# `ros2 run` and `ros2 launch` look for executables in lib/delassus_ros. There colcon puts
# the commands, as setup.cfg says; pip does not read that and puts them in bin/.
if "bdist_wheel" in sys.argv:
    data_files.append((f"lib/{NAME}", launchers()))

setup(
    name=NAME,
    version=MANIFEST.findtext("version"),
    description=" ".join((MANIFEST.findtext("description") or "").split()),
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    url=MANIFEST.findtext("url"),
    project_urls={url.get("type", "").capitalize(): url.text for url in MANIFEST.iter("url")},
    keywords=["robotics", "ROS 2", "Delassus matrix", "operational-space inertia", "contact"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: BSD License",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3 :: Only",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)),
        "Topic :: Scientific/Engineering :: Physics",
        "Typing :: Typed",
    ],
    maintainer=MANIFEST.findtext("maintainer"),
    maintainer_email=MANIFEST.find("maintainer").attrib["email"],
    license=MANIFEST.findtext("license"),
    packages=find_packages(include=["delassus", "delassus.*", NAME, f"{NAME}.*"]),
    package_data={"": ["py.typed", "*.urdf", "*.xml", "*.yaml"]},
    data_files=data_files,
    entry_points={
        "console_scripts": [f"{name} = {target}" for name, target in COMMANDS.items()],
        "ros2cli.command": ["delassus = delassus_ros.verbs.ros2:DelassusCommand"],
    },
    python_requires=">=3.10",
    install_requires=[
        "defusedxml",
        "llvmlite>=0.41",
        "numpy>=1.22",
        "pyyaml",
        "threadpoolctl>=3.1",  # that of Ubuntu 24.04; limits the threads of numpy's BLAS
        "urdf-parser-py",
    ],
    extras_require={
        file.stem: requirements(file) for file in sorted(ROOT.glob("requirements/*.txt"))
    },
    zip_safe=False,
)
