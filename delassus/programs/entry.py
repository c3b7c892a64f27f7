"""The entry point of a command, which imports the modules of the command when it runs."""

from __future__ import annotations

import signal
from functools import partial
from importlib import import_module


def command(module: str) -> int:
    """Run the ``main`` of a module; return the exit status, that of shells for Ctrl-C."""
    try:
        status: int = import_module(module).main()
        return status
    except KeyboardInterrupt:
        # Also while the modules of the command are imported.
        return 128 + signal.SIGINT


delassus = partial(command, "delassus.cli.main")
"""Run ``delassus`` with the verbs of the library."""
