"""Plain text for terminals: aligned tables and matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delassus_ros.model.spatial import Array


def table(rows: Sequence[Sequence[object]], numeric: Sequence[int] = (), indent: str = "") -> str:
    """Return rows with aligned columns; the columns `numeric` are aligned to the right."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*texts, strict=True)]
    lines = []
    for row in texts:
        cells = [
            cell.rjust(width) if i in numeric else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(indent + "  ".join(cells).rstrip())
    return "\n".join(lines)


def matrix(values: Array, labels: Sequence[str]) -> str:
    """Return a square matrix, each row with its label before it."""
    # What is rounding noise beside the largest entry is shown as zero.
    noise = 1e-14 * float(np.abs(values).max(initial=0.0))
    rows = [
        [label, *(f"{0.0 if abs(value) <= noise else value:.6g}" for value in row)]
        for label, row in zip(labels, values, strict=True)
    ]
    return table(rows, numeric=range(1, len(labels) + 1), indent="  ")
