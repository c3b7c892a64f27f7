"""Fast log lines, and the records of the library in the log of a node."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.impl.logging_severity import LoggingSeverity

from delassus.visible import visible


class LogBridge(logging.Handler):
    """Passes the records of the library on to a node's logger while it is installed.

    Several nodes may have one installed at a time; all of them get all records.
    """

    _SOURCE = logging.getLogger("delassus")
    _installed = 0
    _level_before = logging.NOTSET

    def __init__(self, logger: LoopLog) -> None:
        super().__init__()
        self._logger = logger

    def install(self) -> None:
        """Begin to pass records on."""
        if not LogBridge._installed:
            LogBridge._level_before = self._SOURCE.level
            self._SOURCE.setLevel(logging.INFO)
        LogBridge._installed += 1
        self._SOURCE.addHandler(self)

    def remove(self) -> None:
        """Stop passing records on."""
        if self not in self._SOURCE.handlers:
            return
        self._SOURCE.removeHandler(self)
        LogBridge._installed -= 1
        if not LogBridge._installed:
            self._SOURCE.setLevel(LogBridge._level_before)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        text = record.getMessage()
        if record.levelno >= logging.ERROR:
            self._logger.error(text)
        elif record.levelno >= logging.WARNING:
            self._logger.warning(text)
        else:
            self._logger.info(text)


# Work-around (slow log): https://github.com/ros2/rclpy/issues/775 mended lines below the level of
# the log alone; seen with rclpy 7.1.6. The function is not of rclpy's documented interface.
_write: Any = getattr(rclpy_implementation, "rclpy_logging_rcutils_log", None)


class LoopLog:
    """Writes lines to a logger in some microseconds.

    For every line, rclpy searches the source of the caller with Python's inspect module, which
    takes about 1 ms; this class reads the caller's frame. The lines are equal on the terminal, in
    files and on ``/rosout``: in both cases the source of a line from a throttle or from Python's
    logging is the place in the throttle or handler.

    Parameters
    ----------
    logger : logger of rclpy with the name and the level; writes the lines if this rclpy lacks the
        fast function.
    """

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def info(self, text: str) -> None:
        """Write a line of severity INFO."""
        if _write is None:
            self._logger.info(_shown(text))
        else:
            self._line(LoggingSeverity.INFO, text)

    def warning(self, text: str) -> None:
        """Write a line of severity WARN."""
        if _write is None:
            self._logger.warning(_shown(text))
        else:
            self._line(LoggingSeverity.WARN, text)

    def error(self, text: str) -> None:
        """Write a line of severity ERROR."""
        if _write is None:
            self._logger.error(_shown(text))
        else:
            self._line(LoggingSeverity.ERROR, text)

    def _line(self, severity: LoggingSeverity, text: str) -> None:
        if self._logger.is_enabled_for(severity):
            # The frame that has called info(), warning() or error().
            frame = sys._getframe(2)
            code, line = frame.f_code, frame.f_lineno
            name = self._logger.name
            _write(severity, name, _shown(text), code.co_name, code.co_filename, line)


def _shown(text: str) -> str:
    """Return a line without control characters, which parts from messages may contain."""
    return visible(text, "\n\t")


class Throttle:
    """Passes on one line per kind and period [s], with the number of omitted lines."""

    def __init__(
        self,
        write: Callable[[str], object],
        period: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._period = period
        self._clock = clock
        self._due: dict[str, float] = {}
        self._omitted: dict[str, int] = {}

    def __call__(self, kind: str, text: str) -> None:
        """Write `text`, unless a line of this kind was written less than a period ago."""
        now = self._clock()
        if now < self._due.get(kind, now):
            self._omitted[kind] = self._omitted.get(kind, 0) + 1
            return
        self._due[kind] = now + self._period
        omitted = self._omitted.pop(kind, 0)
        self._write(f"{text} ({omitted} more like this since the last)" if omitted else text)
