"""Heat maps of matrices: the couplings between rows as colours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from delassus.model.spatial import Array

DECADES = 4
"""Number of powers of ten of the colour scale; smaller couplings are black."""
_COLOURS = np.array(
    [[15, 17, 40], [48, 40, 120], [94, 42, 140], [160, 54, 122], [222, 90, 82], [250, 160, 60],
     [252, 236, 160]]
)  # fmt: skip
"""Colours from no coupling to full coupling, in even steps of lightness."""
_LINE = np.array([255, 255, 255], dtype=np.uint8)


def shares(G: Array) -> Array:
    """Return log₁₀ |G_ij| / √(G_ii G_jj) (m, m), without units, from -:data:`DECADES` to 0.

    NaN is drawn as no coupling.
    """
    diagonal = np.sqrt(np.abs(np.diag(G)))
    scale = np.outer(diagonal, diagonal)
    with np.errstate(invalid="ignore"):
        ratio = np.divide(np.abs(G), scale, out=np.zeros_like(scale), where=scale > 0.0)
    ratio = np.nan_to_num(ratio, nan=0.0, posinf=1.0)
    return np.asarray(np.log10(np.clip(ratio, 10.0**-DECADES, 1.0)))


def heat_map(
    G: Array, row_offsets: Sequence[int], cell: int = 8, width: int | None = None
) -> npt.NDArray[np.uint8]:
    """Return a picture (cell m, width m, 3) of :func:`shares`, with lines between contacts.

    Parameters
    ----------
    row_offsets : first rows of the contacts, then m.
    cell, width : height and width of an entry [pixels]; entries without a width are squares.
    """
    width = cell if width is None else width
    at = (shares(G) / DECADES + 1.0) * (len(_COLOURS) - 1)
    low = np.minimum(at.astype(int), len(_COLOURS) - 2)
    part = (at - low)[..., None]
    colours = (1.0 - part) * _COLOURS[low] + part * _COLOURS[low + 1]
    picture = np.repeat(np.repeat(colours.round().astype(np.uint8), cell, 0), width, 1)
    for row in row_offsets[1:-1]:
        picture[row * cell, :] = picture[:, row * width] = _LINE
    return np.ascontiguousarray(picture)
