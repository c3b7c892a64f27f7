"""Program that starts readers of the node's matrices and kills or stops them in turn.

Readers are forks of this program and start within some 0.03 s, so that as many readers start and
end within minutes as on a robot within days.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path

import rclpy
from delassus_msgs.msg import DelassusMatrix
from rclpy.qos import QoSProfile, ReliabilityPolicy

from delassus.programs.stopping import StopRequest

_TOPIC = "delassus_node/delassus"
_PATIENCE = 5.0  # s for a reader to get its first matrix
_STOPPED = 0.05  # s for which a reader is stopped before it is killed


def main() -> int:
    """Make and end readers until told to stop; the argument is the file that counts them."""
    counts = Path(sys.argv[1])
    killed = stopped = deaf = 0
    with StopRequest() as stop:
        while not stop.requested:
            reader, heard = _start(reliable=killed % 2 == 0)
            try:
                # A reader without a matrix is ended as well.
                deaf += not _is_heard(heard, stop)
                if killed % 3 == 2:
                    os.kill(reader, signal.SIGSTOP)
                    time.sleep(_STOPPED)
                    stopped += 1
            finally:
                os.kill(reader, signal.SIGKILL)
                os.waitpid(reader, 0)
                os.close(heard)
            killed += 1
            counts.write_text(f"{killed} {stopped} {deaf}")
    return 0


def _is_heard(heard: int, stop: StopRequest) -> bool:
    """Wait until a reader has got a matrix."""
    deadline = time.monotonic() + _PATIENCE
    while not stop.requested and time.monotonic() < deadline:
        if select.select([heard], [], [], 0.05)[0]:
            return True
    return False


def _start(reliable: bool) -> tuple[int, int]:
    """Return the process of a new reader, and a descriptor readable after its first matrix."""
    heard, say = os.pipe()
    process = os.fork()
    if process:
        os.close(say)
        return process, heard
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        _read(say, reliable)
    finally:
        os._exit(1)


def _read(say: int, reliable: bool) -> None:
    """Take matrices until killed."""
    rclpy.init(args=[])
    node = rclpy.create_node(
        f"reader_{os.getpid()}", start_parameter_services=False, enable_rosout=False
    )
    kind = ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT
    qos = QoSProfile(depth=10, reliability=kind)
    told = False

    def tell(_: bytes) -> None:
        nonlocal told
        if not told:
            told = True
            os.write(say, b".")

    node.create_subscription(DelassusMatrix, _TOPIC, tell, qos, raw=True)
    rclpy.spin(node)


if __name__ == "__main__":
    sys.exit(main())
