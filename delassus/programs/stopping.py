"""The ordinary end of a program: Ctrl-C, SIGTERM, or a terminal that is closed."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopRequest:
    """Note stop signals during a block, instead of being interrupted by them.

    A SIGHUP that is ignored already, e.g. under nohup, stays ignored.

    The class is for loops that return to Python within milliseconds and check `requested`. Such
    loops switch rclpy's signal handlers off, which invalidate its context at any place of the
    loop, and raise KeyboardInterrupt inside message conversions that cannot pass it on.

    Parameters
    ----------
    last
        The process ends with the block: after the block it ignores these signals, so that they
        do not change its exit status.

    Attributes
    ----------
    requested
        Whether a signal has come.
    """

    def __init__(self, last: bool = False) -> None:
        self.requested = False
        self._last = last

    def __enter__(self) -> StopRequest:
        """Install the handlers; only the main thread can."""
        self._before = {
            number: signal.signal(number, self._note)
            for number in _SIGNALS
            # nohup ignores SIGHUP so that the program outlives its terminal.
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Restore the handlers."""
        for number, handler in self._before.items():
            if self._last:
                handler = signal.SIG_IGN
            signal.signal(number, handler)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
