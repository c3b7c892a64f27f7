"""Log lines that a control loop can afford."""

from __future__ import annotations

import sys
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.impl.logging_severity import LoggingSeverity

# What rclpy's loggers end in; not of its documented interface, so it may go.
_write: Any = getattr(rclpy_implementation, "rclpy_logging_rcutils_log", None)


class LoopLog:
    """Writes lines to a logger for some microseconds each.

    rclpy looks for the source of its caller with Python's inspect module at each line, which
    holds the loop up for a millisecond; here the caller's frame is asked. Who takes the line, on
    the terminal, in a file or from ``/rosout``, sees no difference: with rclpy, too, the source of
    a line that comes through a throttle or from Python's logging is where those pass it on.

    Parameters
    ----------
    logger : of rclpy; tells the name and which lines are wanted, and writes by itself where this
        rclpy has no other way.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def info(self, text: str) -> None:
        """Write what is of interest."""
        if _write is None:
            self._logger.info(text)
        else:
            self._line(LoggingSeverity.INFO, text)

    def warning(self, text: str) -> None:
        """Write what may be wrong."""
        if _write is None:
            self._logger.warning(text)
        else:
            self._line(LoggingSeverity.WARN, text)

    def error(self, text: str) -> None:
        """Write what is wrong."""
        if _write is None:
            self._logger.error(text)
        else:
            self._line(LoggingSeverity.ERROR, text)

    def _line(self, severity: LoggingSeverity, text: str) -> None:
        if self._logger.is_enabled_for(severity):
            # That of whoever has called info(), warning() or error().
            frame = sys._getframe(2)
            code, line = frame.f_code, frame.f_lineno
            _write(severity, self._logger.name, text, code.co_name, code.co_filename, line)
