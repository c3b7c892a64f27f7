"""The panel beside a robot in the browser: the matrix as a heat map, and its numbers as HTML."""

from __future__ import annotations

import html
import shlex
from collections.abc import Collection, Sequence

import numpy as np
import viser

from delassus.drawing.ellipsoids import EffectiveMass, Lengths
from delassus.drawing.force_cones import PlacedForce
from delassus.drawing.heat_map import DECADES, heat_map
from delassus.drawing.scene import BONE, GREEN, Placed, Scene, coupling_colour
from delassus.drawing.snapshot import Snapshot

_WIDTH, _HEIGHT = 360, 210
"""Least size of the heat map [pixels]; entries have whole pixels."""
_SCALE = (
    "rows as columns; |G<sub>ij</sub>| / √(G<sub>ii</sub> G<sub>jj</sub>): "
    f"light 1, dark up to 10<sup>−{DECADES}</sup>"
)
_BLOCK = "display:inline-block;width:1.6em"


class MatrixPicture:
    """A heat map of the matrix of a scene, below the names of the contacts of its columns.

    Attributes
    ----------
    folder : the folder of the panel; hidden without a matrix.
    image : the heat map; a new picture is sent when the matrix has changed.
    names : the names, as HTML.
    """

    def __init__(self, gui: viser.GuiApi) -> None:
        self.folder = gui.add_folder("matrix G", visible=False)
        with self.folder:
            self.names = gui.add_html("")
            # JPEG, which viser takes for pictures without transparency, blurs the entries.
            self.image = gui.add_image(np.zeros((1, 1, 3), dtype=np.uint8), format="png")
            gui.add_html(small(_SCALE))
        self._drawn = Scene()

    def show(self, scene: Scene) -> None:
        """Draw the matrix of a scene, unless it is drawn already."""
        size = len(scene.G)
        self.folder.visible = size > 0
        if not size:
            return
        drawn = self._drawn
        named = scene.names == drawn.names and scene.row_offsets == drawn.row_offsets
        if named and np.array_equal(scene.G, drawn.G, equal_nan=True):
            return
        self._drawn = scene
        high, wide = -(-_HEIGHT // size), -(-_WIDTH // size)
        self.image.image = heat_map(scene.G, scene.row_offsets, high, wide)
        self.names.content = small(_columns(scene))


def small(content: str) -> str:
    """Return HTML in the letters of the panel's numbers."""
    return f"<div style='font-size:0.8em;padding:0 0.75em'>{content}</div>"


def facts_table(snapshot: Snapshot, warning: str) -> str:
    """Return the facts about a matrix as HTML, below a warning."""
    rows = [row(html.escape(label), html.escape(words)) for label, words in snapshot.facts.items()]
    parts = [f"<p><b>{html.escape(warning)}</b></p>"] if warning else []
    return small("".join([*parts, f"<table>{''.join(rows)}</table>"]))


def numbers_table(snapshot: Snapshot, lengths: Lengths | None) -> str:
    """Return effective masses and contact forces as HTML.

    Parameters
    ----------
    lengths : scale of the drawn ellipsoids; None before the first ones.
    """
    parts = []
    placed = snapshot.scene.contacts
    if placed:
        parts.append(_masses_table(placed))
    if placed and lengths is not None:
        parts.append(f"<p>{_scale(placed, lengths)}</p>")
    if snapshot.forces:
        parts.append(_forces_table(snapshot.forces))
    return small("".join(parts))


def row(*cells: str) -> str:
    """Return a row of a table; its cells are at the right, but for the first one."""
    first, *others = cells
    values = "".join(
        f"<td style='text-align:right;padding-left:0.7em'>{cell}</td>" for cell in others
    )
    return f"<tr><td>{first}</td>{values}</tr>"


def pose_lines(snapshot: Snapshot, moved: Collection[str]) -> list[str]:
    """Return the positions of a snapshot as an option of ``delassus view``, and as Python.

    Parameters
    ----------
    moved : the joints that the option takes; there is no option without them.
    """
    positions = {
        name: value if isinstance(value, list) else round(value, 6) + 0.0
        for name, value in snapshot.positions.items()
    }
    taken = [f"{name}={value}" for name, value in positions.items() if name in moved]
    option = [f"--q {shlex.quote(','.join(taken))}"] if taken else []
    return [*option, f"q = robot.q({positions})"] if positions else []


def pose_text(lines: Sequence[str]) -> str:
    """Return lines as HTML; a click selects all of a line, to be copied."""
    style = "display:block;user-select:all;overflow-wrap:anywhere;margin-bottom:0.7em"
    return small("".join(f"<code style='{style}'>{html.escape(line)}</code>" for line in lines))


def legend(has_boxes: bool = False) -> str:
    """Return a line about each kind of drawn objects, and one about condition numbers, as HTML.

    Parameters
    ----------
    has_boxes : whether bodies are shown by boxes of inertia.
    """
    green, blue, pale = _css(GREEN), _css(coupling_colour(0.6)), _css(coupling_colour(0.2))
    lines = [
        (f"{_BLOCK};height:0.8em;border-radius:50%;background:{green}", "ellipsoid",
         "effective mass, long where a contact is heavy"),
        (f"{_BLOCK};height:3px;vertical-align:middle;background:{pale}", "pale line",
         "coupling, bluer where contacts move together"),
        (f"{_BLOCK};width:0;border:0.8em solid #0000;border-bottom:0;border-top-color:{blue}",
         "cone", "friction (--forces); a contact sticks with its force inside"),
        ("", "condition", "largest / smallest eigenvalue of G"),
    ]  # fmt: skip
    if has_boxes:
        style = f"{_BLOCK};height:0.8em;background:{_css(BONE)}"
        lines.append((style, "grey box", "inertia of a body whose shapes are missing"))
    rows = [
        f"<tr><td><span style='{style}'></span></td><td><b>{name}</b>: {text}</td></tr>"
        for style, name, text in lines
    ]
    return small(f"<table style='line-height:1.3'>{''.join(rows)}</table>")


def _css(colour: tuple[int, int, int]) -> str:
    return f"rgb{colour}"


def _columns(scene: Scene) -> str:
    """Return the names of contacts, each as wide as its columns of the heat map."""
    cells = []
    for name, count in zip(scene.names, np.diff(scene.row_offsets).tolist(), strict=True):
        text = html.escape(name)
        cells.append(
            f"<span title='{text}' style='flex:{count} 0 0;overflow:hidden;"
            f"text-overflow:ellipsis;white-space:nowrap;text-align:center'>{text}</span>"
        )
    return f"<div style='display:flex'>{''.join(cells)}</div>"


def _masses_table(placed: Sequence[Placed]) -> str:
    head = row("effective mass [kg]", "smallest", "middle", "largest")
    rows = [row(html.escape(contact.name), *_masses(contact.mass)) for contact in placed]
    return f"<table>{head}{''.join(rows)}</table>"


def _scale(placed: Sequence[Placed], lengths: Lengths) -> str:
    """Return a text about the lengths of ellipsoids, and whether some are cut."""
    words = f"semi-axis of an ellipsoid: {_short(1e3 * lengths.scale)} mm per kg"
    if lengths.cuts([contact.mass for contact in placed]):
        words += f", but at most {_short(1e3 * lengths.longest)} mm"
    return words


def _forces_table(forces: Sequence[PlacedForce]) -> str:
    head = row("contact force [N]", "x", "y", "z")
    rows = [
        row(html.escape(each.contact), *map(_newtons, each.force.tolist())) for each in forces
    ]
    return f"<table style='margin-top:0.5em'>{head}{''.join(rows)}</table>"


def _short(value: float) -> str:
    """Return a number with three digits, or all digits before the point."""
    return f"{value:.0f}" if value >= 100.0 else f"{value:.3g}"


def _masses(mass: EffectiveMass) -> list[str]:
    return [_short(m) if np.isfinite(m) else "∞" for m in mass.masses]


def _newtons(force: float) -> str:
    """Return a force [N] without the sign of zero."""
    return f"{round(force, 1) + 0.0:.1f}"
