"""Programs and tests with ROS do not meet those of another process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from hanging import HANG_S

from delassus.errors import DelassusError
from delassus_ros.ros.domains import claimed


def domains_of_another_process(folder: Path) -> set[int]:
    program = (
        "import tempfile\n"
        f"tempfile.tempdir = {str(folder)!r}\n"
        "from ros_domains import new_domain\n"
        "print(*(new_domain() for _ in range(30)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2],
        capture_output=True, text=True,
        timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {int(number) for number in done.stdout.split()}


def test_a_block_belongs_to_one_process_until_it_ends(tmp_path: Path) -> None:
    one, first = claimed(tmp_path)
    other, second = claimed(tmp_path)
    with first, second:
        assert (one, other) == (range(1, 6), range(6, 11))
        # The second of these processes gets what the first one had.
        for _ in range(2):
            assert domains_of_another_process(tmp_path) == set(range(11, 16))
    assert domains_of_another_process(tmp_path) == set(range(1, 6))


def test_says_when_there_are_none_left(tmp_path: Path) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(claimed(tmp_path)[1])
        with pytest.raises(DelassusError, match="20 processes have claimed"):
            claimed(tmp_path)
