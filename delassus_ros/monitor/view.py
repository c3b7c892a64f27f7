"""The monitor's display: a live table on a terminal, otherwise a line per second."""

from __future__ import annotations

import math
import sys
import time
from typing import TYPE_CHECKING, TextIO

from delassus.visible import visible
from delassus_ros.monitor.agreement import Agreement
from delassus_ros.monitor.latency import MessageRate

if TYPE_CHECKING:
    from rich.live import Live
    from rich.panel import Panel

_REFRESH = 0.25  # s between frames on a terminal
_LINE = 1.0  # s between lines elsewhere


def milliseconds(seconds: float) -> str:
    """Return a time in ms as text; "unknown" for NaN."""
    return "unknown" if math.isnan(seconds) else f"{1e3 * seconds:.2f} ms"


def describe_agreement(agreement: Agreement) -> str:
    """Return a text about the agreement so far."""
    if agreement.compared == 0:
        return "no reference yet"
    if agreement.disagreed:
        return (
            f"{agreement.disagreed} of {agreement.compared} DISAGREE, worst {agreement.worst:.1e}"
        )
    return f"{agreement.compared} compared, worst error {agreement.worst:.1e}"


def rows(agreement: Agreement, rate: float) -> list[tuple[str, str]]:
    """Return the rows of the view, as pairs of label and value."""
    last = agreement.last
    if last is None:
        return [("state", f"waiting for the first matrix ({agreement.invalid.total()} INVALID)")]
    latency = agreement.latency(recent=True)
    size = len(last.matrix)
    return [
        ("active contacts", visible(" ".join(last.contacts)) or "none"),
        ("matrix", f"{size} x {size}"),
        ("rate", f"{rate:.0f} Hz"),
        ("latency", f"p50 {milliseconds(latency.p50)}, p99 {milliseconds(latency.p99)}"),
        ("condition", "-" if last.condition < 0.0 else f"{last.condition:.3g}"),
        ("agreement", describe_agreement(agreement)),
        (
            "missing",
            f"{agreement.unanswered} unanswered, {agreement.skipped} skipped, "
            f"{agreement.invalid.total()} INVALID",
        ),
    ]


class View:
    """Context manager that shows an `Agreement`.

    Parameters
    ----------
    stream
        Output stream; a table is drawn on a terminal.
    """

    def __init__(self, agreement: Agreement, stream: TextIO | None = None) -> None:
        self._agreement = agreement
        self._stream = sys.stdout if stream is None else stream
        self._live = _live_display(self._stream) if self._stream.isatty() else None
        self._period = _LINE if self._live is None else _REFRESH
        self._due = time.monotonic() + self._period
        self._pace = MessageRate()
        self._pace.update(time.monotonic(), 0)

    def __enter__(self) -> View:
        """Begin to draw."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the last frame on the terminal."""
        if self._live is not None:
            self._live.stop()

    def update(self) -> None:
        """Draw if it is time; cheap otherwise."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + self._period
        self._pace.update(time.monotonic(), self._agreement.matrices)
        shown = rows(self._agreement, self._pace.rate)
        if self._live is not None:
            self._live.update(_panel(shown), refresh=True)
        else:
            print("; ".join(f"{label}: {value}" for label, value in shown), file=self._stream)
            self._stream.flush()


def _live_display(stream: TextIO) -> Live:
    from rich.console import Console
    from rich.live import Live

    return Live(console=Console(file=stream), auto_refresh=False)


def _panel(shown: list[tuple[str, str]]) -> Panel:
    """Return rows as a table in a frame."""
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for label, value in shown:
        style = "bold red" if "DISAGREE" in value else "bold"
        table.add_row(Text(label, style="cyan"), Text(value, style=style))
    return Panel(table, title="Delassus matrix", expand=False)
