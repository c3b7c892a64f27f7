"""What the monitor prints, on a terminal and elsewhere."""

from __future__ import annotations

import io

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from received_matrices import received_matrix

from delassus_ros.monitor import view
from delassus_ros.monitor.agreement import Agreement


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Claim so."""
        return True


def books(error: float = 0.0) -> Agreement:
    """Return books of one matrix of two contacts."""
    agreement = Agreement()
    matrix = np.diag([2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    reference = received_matrix(1, ("LF", "RH"), (0, 3, 6), matrix)
    agreement.add_reference(reference)
    scaled = matrix * (1 + error)
    agreement.add(received_matrix(1, ("LF", "RH"), (0, 3, 6), scaled, condition=2.0), 2.5e-4)
    return agreement


def test_rows_tell_all_figures() -> None:
    """Contacts, size, rate, latency, condition, agreement."""
    shown = dict(view.rows(books(), 998.7))
    assert shown["active contacts"] == "LF RH"
    assert shown["matrix"] == "6 x 6"
    assert shown["rate"] == "999 Hz"
    assert shown["latency"] == "p50 0.25 ms, p99 0.25 ms"
    assert shown["condition"] == "2"
    assert shown["agreement"] == "1 compared, worst error 0.0e+00"
    assert shown["missing"] == "0 unanswered, 0 skipped, 0 INVALID"


def test_unknown_condition_without_number() -> None:
    agreement = Agreement()
    agreement.add(received_matrix(1), 1e-4)
    assert dict(view.rows(agreement, 0.0))["condition"] == "-"


def test_rows_before_the_first_matrix() -> None:
    """Say what is waited for, and that INVALID messages came."""
    agreement = Agreement()
    agreement.add(received_matrix(1, validity=DelassusMatrix.VALIDITY_INVALID, reasons=32), 1e-4)
    assert view.rows(agreement, 0.0) == [("state", "waiting for the first matrix (1 INVALID)")]


def test_disagreement_is_loud() -> None:
    """The count and the size of the error."""
    assert view.describe_agreement(books(1e-3)) == "1 of 1 DISAGREE, worst 1.0e-03"
    assert view.describe_agreement(Agreement()) == "no reference yet"


def test_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line per period, without control characters."""
    stream = io.StringIO()
    now = [0.0]
    monkeypatch.setattr(view.time, "monotonic", lambda: now[0])
    with view.View(books(), stream) as shown:
        for tick in range(301):
            now[0] = 0.01 * tick
            shown.update()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 3
    assert all(line.startswith("active contacts: LF RH; matrix: 6 x 6") for line in lines)
    assert "\x1b" not in stream.getvalue()


@pytest.mark.needs("rich")
def test_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn in place, several times per second, the cursor given back."""
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    now = [0.0]
    monkeypatch.setattr(view.time, "monotonic", lambda: now[0])
    with view.View(books(1e-3), stream) as shown:
        for tick in range(101):
            now[0] = 0.01 * tick
            shown.update()
    text = stream.getvalue()
    assert text.count("Delassus matrix") >= 4
    assert "1 of 1 DISAGREE" in text
    assert text.rindex("\x1b[?25h") > text.rindex("Delassus matrix")
