"""``ros2 delassus ...``: the verbs of the command `delassus` in ros2cli."""

from __future__ import annotations

import argparse
from typing import Any

from delassus_ros.verbs.main import main as run


class DelassusCommand:
    """An extension of ros2cli, by the entry point ``ros2cli.command``.

    All arguments are passed on unchanged: verbs, help and errors are those of ``delassus``.
    """

    NAME = "delassus"
    EXTENSION_POINT_VERSION = "0.1"

    def add_arguments(self, parser: Any, cli_name: str, *, argv: Any = None) -> None:
        """Accept all further arguments."""
        parser.add_argument("words", nargs=argparse.REMAINDER, help="as of the command delassus")

    def main(self, *, parser: Any, args: Any) -> int:
        """Run the command."""
        return run(args.words)
