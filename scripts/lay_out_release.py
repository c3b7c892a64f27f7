"""Put what is released into a folder: ``python scripts/lay_out_release.py [--library] FOLDER``.

The package of the messages is inside the other one. colcon and bloom look for no package inside a
package, so a release, or a workspace without ``--base-paths``, has them as siblings. The library
is released alone as well, for machines without ROS.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MESSAGES = "msg"
_LEFT_OUT = ("colcon_defaults.yaml",)
"""Files that are of use for nested packages alone."""


def tracked() -> list[Path]:
    """Return the files of the repository, relative to its folder.

    Raises
    ------
    OSError, subprocess.CalledProcessError
        If git is not installed, or this is no repository.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [Path(name) for name in listed.stdout.split("\0") if name]


def lay_out(folder: Path) -> list[Path]:
    """Copy the packages to ``delassus_ros`` and ``delassus_msgs`` in a folder; return both."""
    packages = [folder / "delassus_ros", folder / "delassus_msgs"]
    for file in tracked():
        if not (ROOT / file).is_file() or str(file) in _LEFT_OUT:
            continue
        inner = file.is_relative_to(MESSAGES)
        target = packages[1] / file.relative_to(MESSAGES) if inner else packages[0] / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, target)
    return packages


def lay_out_library(folder: Path) -> None:
    """Copy the library, its licence, and its description for pip to a folder."""
    files = [file for file in tracked() if file.is_relative_to("delassus")]
    targets = {file: file for file in (*files, Path("LICENSE"))}
    described = ROOT / "packaging" / "library"
    targets |= {file.relative_to(ROOT): Path(file.name) for file in described.iterdir()}
    for file, target in targets.items():
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, folder / target)


def main() -> int:
    """Lay out a release; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    parser.add_argument("--library", action="store_true", help="the library alone, for pip")
    options = parser.parse_args()
    folder: Path = options.folder
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        parser.error(f"{folder} is not empty")
    try:
        if options.library:
            lay_out_library(folder)
            print(folder)
            return 0
        packages = lay_out(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"{folder} cannot be written: {error}", file=sys.stderr)
        return 1
    print("\n".join(map(str, packages)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
