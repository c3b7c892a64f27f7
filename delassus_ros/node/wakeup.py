"""How long idle processors may take to wake up: the kernel's PM QoS for latency.

A control loop sleeps most of the time, and so do the processors that run it; the deeper they
sleep, the later they answer: some 0.1 ms in the deepest states of common ones. Linux keeps the
whole machine from deeper states for as long as a file is open to which a limit was written.
"""

from __future__ import annotations

import errno
import os
import struct

from delassus_ros.node.outcome import Outcome

DEVICE = "/dev/cpu_dma_latency"


class WakeupLimit:
    """One request for a limit; of several, of whatever process, the kernel keeps the shortest."""

    def __init__(self) -> None:
        self._file: int | None = None

    def hold(self, microseconds: int) -> Outcome:
        """Keep processors from states that take longer to leave; 0 has them wait awake."""
        self.release()
        try:
            self._file = os.open(DEVICE, os.O_WRONLY)
            os.write(self._file, struct.pack("i", microseconds))
        except OSError as error:
            self.release()
            return Outcome(False, f"processors may sleep deeply: {_reason(error)}")
        return Outcome(True, f"idle processors wake up within {microseconds} µs")

    def release(self) -> Outcome:
        """Undo :meth:`hold`."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        return Outcome(True, "idle processors sleep as the system is set")


def _reason(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"not permitted, {DEVICE} cannot be written; allow it with a udev rule such as "
            'KERNEL=="cpu_dma_latency", GROUP="realtime", MODE="0660" (in a container: '
            f"--device={DEVICE})"
        )
    if error.errno == errno.ENOENT:
        return f"there is no {DEVICE} here (in a container: --device={DEVICE})"
    return f"{DEVICE}: {error.strerror}"
