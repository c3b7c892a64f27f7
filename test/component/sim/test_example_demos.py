"""The demos of the examples, as users start them: verdicts judge the robot, not the machine.

A node of the loop is stopped in the middle for longer than a machine holds anything up.
"""

from __future__ import annotations

import os
import pty
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hanging import HANG_S
from processes import ROOT, Program, children_of, ended
from ros_domains import new_domain

pytestmark = pytest.mark.needs("rclpy", "delassus_msgs", "pinocchio", "mujoco", "daqp")

EXAMPLES = ROOT / "examples"


class Demo(Program):
    """A demo on a terminal of its own; ended with the block.

    Parameters
    ----------
    example : its module.
    *options : of its command line.
    """

    def __init__(self, example: str, *options: str) -> None:
        self._terminal, theirs = pty.openpty()
        wide = {"COLUMNS": "200"}
        super().__init__(
            sys.executable, "-m", example, *options, domain=new_domain(), environment=wide,
            cwd=EXAMPLES, stdout=theirs, stderr=theirs,
        )  # fmt: skip
        os.close(theirs)
        self.text = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            # It stops what it has started, wherever that stands still.
            for pid in children_of(self.process.pid):
                os.kill(pid, signal.SIGCONT)
            self.stop()
        self.wait()
        os.close(self._terminal)
        super().__exit__(*error)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._terminal, 4096)
            except OSError:
                # Nobody has the other end any more.
                return
            self.text += data.decode("utf-8", "replace").replace("\r\n", "\n")

    def report(self) -> str:
        return self.text

    def wait(self) -> int:
        status = super().wait()
        self._reader.join(HANG_S)
        return status

    @property
    def seconds(self) -> float:
        """Time of the plant that the line shows last [s]."""
        shown = re.findall(r"\r\x1b\[K *([0-9.]+) of [0-9.]+ s  [0-9.]+ x real time  ", self.text)
        return float(shown[-1]) if shown else 0.0

    def hold(self, words: str) -> None:
        """Stop a child until the line says that the others wait."""
        pid, waits = self.child(words), re.compile(r"\x1b\[Kwaiting for \w+, \d+ s: nothing comes")
        os.kill(pid, signal.SIGSTOP)
        before = len(waits.findall(self.text))
        self.until(lambda: len(waits.findall(self.text)) > before, "line about waiting")
        os.kill(pid, signal.SIGCONT)


@pytest.fixture(name="start")
def make_start() -> Iterator[Callable[..., Demo]]:
    with ExitStack() as stack:
        yield lambda example, *options: stack.enter_context(Demo(example, *options))


HELD = {
    "whole_body_control": "whole_body_control.node", "balance": "delassus_ros.node.main",
    "operational_space": "operational_space.node", "estimation": "delassus_ros.estimator.node",
}  # fmt: skip
FIGURES = {
    "whole_body_control": "trunk off by [0-9.]+ mm rms",
    "balance": "centre of mass off by [0-9.]+ mm rms",
    "operational_space": "tool off by [0-9.]+ mm rms",
    "estimation": "forces of the feet [0-9.]+ % off",
}
SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("example", "seconds", "middle", "options"),
    [
        pytest.param("whole_body_control", 5.0, 3.0, [], id="walk"),
        pytest.param(
            "whole_body_control", 5.0, 3.0, ["--realtime"], id="walk in time", marks=SLOW
        ),
        pytest.param("estimation", 3.0, 1.5, [], id="estimate", marks=SLOW),
        # test_walk_ros.py has these as well, without anybody who is held up.
        pytest.param("estimation", 3.0, 1.5, ["--realtime"], id="the same in time", marks=SLOW),
        pytest.param("balance", 6.0, 3.0, [], id="balance", marks=SLOW),
        pytest.param("balance", 6.0, 3.0, ["--realtime"], id="balance in time", marks=SLOW),
        pytest.param("operational_space", 7.0, 5.0, [], id="arm", marks=SLOW),
        pytest.param("operational_space", 7.0, 5.0, ["--realtime"], id="arm in time", marks=SLOW),
    ],
)
def test_a_demo_passes_though_a_node_is_held_up(
    start: Callable[..., Demo], example: str, seconds: float, middle: float, options: list[str]
) -> None:
    demo = start(example, "--seconds", str(seconds), *options)
    demo.until(lambda: demo.seconds > middle, f"{middle} s")
    children = children_of(demo.process.pid)
    demo.hold(HELD[example])
    assert demo.wait() == 0, demo.text
    *_, last = demo.text.strip().splitlines()
    assert last == "OK" and "fault" not in demo.text
    assert re.search(FIGURES[example], demo.text), demo.text
    if example != "estimation":
        # A measurement, which decides no verdict. In lockstep, torques act at once, as predicted.
        (share,) = re.findall(r"predicted by G with friction off by ([0-9.]+) % rms", demo.text)
        assert options or float(share) < 10.0, demo.text
    measured = "this machine reaches [0-9]+ of" if options else "all [0-9]+ joint states answered"
    assert re.search(measured, demo.text), demo.text
    assert all(ended(pid) for pid in children)


def test_a_robot_that_falls_is_a_fault(start: Callable[..., Demo]) -> None:
    """Drives that give a tenth of their torque."""
    demo = start("whole_body_control", "--seconds", "20", "--plant", "torque_limit:=0.1")
    assert demo.wait() == 1, demo.text
    assert "fault: the robot fell" in demo.text and demo.text.rstrip().endswith("FAIL")


@pytest.mark.slow
def test_a_force_that_is_wrong_is_a_fault(start: Callable[..., Demo]) -> None:
    """Drives that give less than the arm needs to lift its own weight."""
    demo = start("operational_space", "--seconds", "5", "--plant", "torque_limit:=0.3")
    assert demo.wait() == 1, demo.text
    assert re.search("fault: (a force of|the tool)", demo.text), demo.text
