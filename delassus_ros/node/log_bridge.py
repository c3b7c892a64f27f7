"""What the library logs with Python's logging, in the log of the node."""

from __future__ import annotations

import logging

from delassus_ros.node.loop_log import LoopLog


class LogBridge(logging.Handler):
    """Passes the records of ``delassus_ros`` on to a node's logger while it is installed.

    Several may be installed at a time, by several nodes; each gets all records.

    Parameters
    ----------
    logger : the node's log.
    """

    _SOURCE = logging.getLogger("delassus_ros")
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
