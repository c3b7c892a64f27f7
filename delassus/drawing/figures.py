"""Figures by matplotlib: robot and ellipsoids, matrix, condition numbers and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.proj3d import proj_transform
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from delassus.drawing.ellipsoids import Lengths
from delassus.drawing.force_cones import force_scale
from delassus.drawing.heat_map import DECADES, shares
from delassus.drawing.labels import above, raised
from delassus.drawing.scene import BLUE, BONE, GREEN, Placed, Scene
from delassus.drawing.skeleton import size_of
from delassus.errors import InputError
from delassus.model.spatial import Array

_INK = "#20242c"
_BONE, _BLUE, _GREEN = (f"#{bytes(colour).hex()}" for colour in (BONE, BLUE, GREEN))
SERIES = cycler(
    color=[_INK, "#e08a1e", _BLUE, "#b3362b", _GREEN, _BONE, "#7a3fb0", "#946312"],
    linestyle=[
        "-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)), (0, (3, 4)),
    ],
    marker=["o", "^", "s", "x", "D", "+", "v", "*"],
)  # fmt: skip
"""Styles of the series of a plot, which differ in grey as well."""
_SPHERE = 24
"""Number of meridians of an ellipsoid; the number of parallels is half of it."""
_FILLED = 0.9
"""Share of a panel that a robot fills, for names and perspective."""
_DECADES = 1.5
"""Largest number of decades that a linear axis shows."""
_PAGE_DPI, _PAGE_BYTES = 100, 60_000
"""Pixels per inch of a picture of a page, and the size from which it has fewer colours."""


def ellipsoid_surface(contact: Placed, lengths: Lengths) -> tuple[Array, Array, Array]:
    """Return the surface of a contact's ellipsoid as x, y, z (n, n / 2) in the root link [m]."""
    u = np.linspace(0.0, 2.0 * np.pi, _SPHERE)
    v = np.linspace(0.0, np.pi, _SPHERE // 2)
    sphere = np.stack([np.outer(np.cos(u), np.sin(v)), np.outer(np.sin(u), np.sin(v)),
                       np.outer(np.ones_like(u), np.cos(v))])  # fmt: skip
    axes = contact.directions * lengths.semi_axes(contact.mass)
    x, y, z = np.tensordot(axes, sphere, 1) + contact.centre[:, None, None]
    return x, y, z


def draw_robot(
    axes: Any, bones: Sequence[tuple[Array, Array]], scene: Scene, shapes: Sequence[Array] = ()
) -> None:
    """Draw a robot's skeleton with the ellipsoids of effective mass at its contacts.

    The title shows the scale of ellipsoids, see :class:`Lengths`, and the length of cuts.

    Parameters
    ----------
    shapes : points (n, 3) of visual shapes in the root link [m], whose hulls are drawn.
    """
    masses = [contact.mass for contact in scene.contacts]
    lengths = Lengths.fitting(size_of(bones), masses)
    _draw_body(axes, bones, shapes)
    for ends, share in scene.lines:
        line = {"color": _BLUE, "linewidth": 1.0 + 3.0 * share, "alpha": 0.6}
        axes.plot(*zip(*ends, strict=True), linestyle="--", **line)
    tags, drawn = [], []
    for contact in scene.contacts:
        surface = ellipsoid_surface(contact, lengths)
        axes.plot_surface(*surface, color=_GREEN, alpha=0.5, linewidth=0, rasterized=True)
        drawn.append(np.reshape(surface, (3, -1)).T)
        tags.append((contact.name, contact.centre, above(contact, lengths)))
    axes.add_artist(NameTags(tags))
    axes.view_init(elev=18, azim=-55)
    _fill(axes, [np.reshape(bones, (-1, 3)), *drawn, *shapes])
    cut = f", cut at {1e3 * lengths.longest:g} mm" if lengths.cuts(masses) else ""
    words = f"effective mass: 1 kg is {1e3 * lengths.scale:g} mm{cut}; dashes: couplings"
    axes.set_title(words, color=_INK)


class NameTags(Artist):
    """Names in a three-dimensional picture, laid out when the picture is drawn.

    A thin line leads from a name that is raised to its contact.

    Parameters
    ----------
    tags : name, contact (3,) and place of the name (3,) in the axes' units.

    Attributes
    ----------
    boxes : boxes of the names in the picture that was drawn last [pixels].
    """

    def __init__(self, tags: Sequence[tuple[str, Array, Array]]) -> None:
        super().__init__()
        self._tags = tags
        self.boxes: list[Bbox] = []
        self.set_zorder(1000.0)  # above the surfaces, which axes order by their distance
        self.set_in_layout(False)

    def draw(self, renderer: Any) -> None:
        """Draw the names."""
        self.boxes = []
        if not self._tags:
            return
        texts = [
            Text(0.0, 0.0, name, color=_INK, ha="center", va="bottom", fontsize="small",
                 bbox={"facecolor": "white", "alpha": 0.7, "edgecolor": "none", "pad": 1.0},
                 figure=self.figure)
            for name, _, _ in self._tags
        ]  # fmt: skip
        gap = renderer.points_to_pixels(3.0)
        sizes = [text.get_window_extent(renderer).size + gap for text in texts]
        places = np.array([self._pixels(place) for _, _, place in self._tags])
        lifts = raised(places, np.array(sizes))
        for text, (_, contact, _), place, lift in zip(
            texts, self._tags, places, lifts, strict=True
        ):
            text.set_position((place[0], place[1] + lift))
            if lift > 0.0:
                (x, y), below = self._pixels(contact), place[1] + lift
                Line2D([x, place[0]], [y, below], color=_INK, linewidth=0.5, alpha=0.6,
                       figure=self.figure).draw(renderer)  # fmt: skip
            text.draw(renderer)
            self.boxes.append(text.get_window_extent(renderer))

    def _pixels(self, point: Array) -> Array:
        axes: Any = self.axes
        x, y, _ = proj_transform(*point, axes.get_proj())
        return np.asarray(axes.transData.transform((x, y)))


def _draw_body(axes: Any, bones: Sequence[tuple[Array, Array]], shapes: Sequence[Array]) -> None:
    """Draw a skeleton and the hulls of shapes, as the points (n, 3) of each shape."""
    for points in shapes:
        faces = Poly3DCollection(hull(points), facecolor=_BONE, alpha=0.18, linewidth=0)
        faces.set_rasterized(True)
        axes.add_collection3d(faces)
    for start, end in bones:
        axes.plot(*zip(start, end, strict=True), color=_BONE, linewidth=2.5, zorder=1)
    if shapes:
        axes.auto_scale_xyz(*np.concatenate(shapes).T, had_data=True)


def _fill(axes: Any, points: Sequence[Array]) -> None:
    """Draw equal lengths alike in all directions, and the points (n, 3) as large as axes allow."""
    box = np.ptp([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()], axis=1)
    axes.set_box_aspect(box)
    axes.set_axis_off()
    x, y, _ = proj_transform(*np.concatenate(points).T, axes.get_proj())
    # The picture is projected to flat axes, with its middle at (0, 0).
    half = float(np.abs(axes.viewLim.get_points()).min())
    axes.set_box_aspect(box, zoom=_FILLED * half / float(np.abs([x, y]).max()))


def hull(points: Array) -> Array:
    """Return the triangles (n, 3, 3) of the convex hull of points (N, 3); none of flat ones."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(points[ConvexHull(points).simplices])
    except QhullError:
        return np.zeros((0, 3, 3))


def draw_friction(
    axes: Any,
    bones: Sequence[tuple[Array, Array]],
    points: Array,
    forces: Array,
    friction: float,
    shapes: Sequence[Array] = (),
) -> None:
    """Draw a robot's skeleton with contact forces in their friction cones.

    A cone is as high as the normal part of its force; the largest force has a fifth of the robot's
    size.

    Parameters
    ----------
    points, forces : (N, 3) in axes with z along the normals [m, N].
    friction : coefficient of all contacts.
    shapes : points (n, 3) of visual shapes, whose hulls are drawn.
    """
    scale = force_scale(size_of(bones), forces)
    _draw_body(axes, bones, shapes)
    around = np.linspace(0.0, 2.0 * np.pi, _SPHERE)
    drawn = []
    rim = np.stack([friction * np.cos(around), friction * np.sin(around), np.ones(_SPHERE)])
    for point, force in zip(points, scale * forces, strict=True):
        cone = point[:, None, None] + rim[:, None, :] * np.array([[0.0], [force[2]]])
        axes.plot_surface(*cone, color=_GREEN, alpha=0.25, linewidth=0, rasterized=True)
        drawn.append(np.reshape(cone, (3, -1)).T)
        axes.plot(*zip(point, point + force, strict=True), color=_BLUE, linewidth=2.0)
    axes.view_init(elev=12, azim=-60)
    _fill(axes, [np.reshape(bones, (-1, 3)), *drawn, *shapes])


def draw_matrix(axes: Any, G: Array, names: Sequence[str], row_offsets: Sequence[int]) -> None:
    """Draw the couplings between rows, without units; black is exactly zero."""
    values = np.where(G == 0.0, -np.inf, shares(G))
    colours = matplotlib.colormaps["inferno"].with_extremes(bad="black", under="black")
    image = axes.imshow(values, cmap=colours, vmin=-DECADES, vmax=0.0)
    for row in row_offsets[1:-1]:
        for line in (axes.axhline, axes.axvline):
            line(row - 0.5, color="white", linewidth=0.8)
    middles = [(a + b - 1) / 2 for a, b in zip(row_offsets, row_offsets[1:], strict=False)]
    axes.set_xticks(middles, names, rotation=45, ha="right")
    axes.set_yticks(middles, names)
    axes.set_title("how rows move with each other", color=_INK)
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label="log₁₀ |G_ij| / √(G_ii G_jj)")


def draw_condition(axes: Any, conditions: Array, along: str) -> None:
    """Draw condition numbers along a path, from 0 to 1, or sorted; infinite ones are left out."""
    singular = np.isinf(conditions)
    shown = np.where(singular, np.nan, conditions)
    axes.plot(np.linspace(0.0, 1.0, len(conditions)), shown, color=_BLUE)
    _fit_scale(axes, shown)
    if singular.all():
        axes.text(0.5, 0.5, "singular everywhere", ha="center", transform=axes.transAxes)
        axes.set_yticks([])
    axes.set_xlabel(along)
    axes.set_title("condition number", color=_INK)
    axes.grid(alpha=0.3, which="both")


def draw_active(axes: Any, seconds: Array, active: Array, names: Sequence[str]) -> None:
    """Draw the times of active contacts (N, k) as bars."""
    for number, row in enumerate(active.T):
        changes = np.flatnonzero(np.diff(row.astype(int), prepend=0, append=0))
        bars = [
            (seconds[start], seconds[min(end, len(seconds) - 1)] - seconds[start])
            for start, end in zip(changes[::2], changes[1::2], strict=True)
        ]
        axes.broken_barh(bars, (number - 0.35, 0.7), color=_GREEN)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("s")
    axes.set_title("active contacts", color=_INK)


def draw_over_time(axes: Any, seconds: Array, values: Mapping[str, Array], title: str) -> None:
    """Draw positive numbers over time, by name; logarithmic if they span decades."""
    axes.set_prop_cycle(SERIES)
    for name, numbers in values.items():
        axes.plot(seconds, numbers, linewidth=1.2, marker="", label=name or None)
    _fit_scale(axes, np.concatenate([np.ravel(each) for each in values.values()] or [np.ones(1)]))
    if any(values):
        axes.legend(frameon=False)
    axes.set_xlabel("s")
    axes.set_title(title, color=_INK)
    axes.grid(alpha=0.3, which="both")


def draw_times(axes: Any, times: Mapping[str, Sequence[tuple[int, float]]]) -> None:
    """Draw the time per call [s] over the number of contacts, by algorithm."""
    axes.set_prop_cycle(SERIES)
    for name, points in times.items():
        counts, seconds = zip(*points, strict=True)
        axes.plot(counts, [1e6 * s for s in seconds], label=name)
        axes.set_xticks(counts)
    axes.set_xlabel("contacts")
    axes.set_ylabel("µs per call")
    axes.set_ylim(bottom=0.0)
    axes.set_title("time of a call", color=_INK)
    axes.grid(alpha=0.3)
    # The axis begins at 0, so no line is at the bottom.
    axes.legend(frameon=False, loc="lower right")


def draw_bars(axes: Any, values: Mapping[str, float], title: str) -> None:
    """Draw numbers by name as bars with their values, the smallest at the top."""
    names = sorted(values, key=lambda name: values[name], reverse=True)
    bars = axes.barh(names, [values[name] for name in names], color=_BLUE)
    axes.bar_label(bars, fmt="%.4g", padding=3)
    axes.margins(x=0.15)  # room for the labels
    axes.set_title(title, color=_INK)
    axes.grid(alpha=0.3, axis="x")


def _fit_scale(axes: Any, values: Array) -> None:
    """Choose a logarithmic y axis for values that span more than :data:`_DECADES` decades.

    Over fewer decades ticks of a logarithmic axis are close, and their labels overlap.
    """
    known = values[np.isfinite(values) & (values > 0.0)]
    if known.size and np.log10(known.max() / known.min()) > _DECADES:
        axes.set_yscale("log")


def new_figure(panels: int, solid: bool = True) -> tuple[Figure, list[Any]]:
    """Return a figure with `panels` axes, the first three-dimensional if `solid`."""
    columns = min(panels, 2)
    rows = -(-panels // columns)
    figure = Figure(figsize=(6.4 * columns, 5.2 * rows), layout="constrained")
    places: list[Any] = [
        figure.add_subplot(rows, columns, k + 1, projection="3d" if solid and k == 0 else None)
        for k in range(panels)
    ]
    return figure, places


def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file name's suffix; equal figures give equal files.

    Raises
    ------
    InputError
        If the file cannot be written, or for a format that matplotlib does not support; names the
        supported formats.
    """
    metadata = {"Date": None} if path.suffix in (".svg", ".svgz") else None
    # Letters as text: files are smaller, and readers can search and copy words.
    settings: Any = {
        "svg.hashsalt": "delassus_ros", "svg.fonttype": "none",
        "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    }  # fmt: skip
    try:
        with matplotlib.rc_context(settings):
            figure.savefig(path, dpi=150, metadata=metadata)
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} cannot be written: {error}") from error


def save_for_page(figure: Figure, path: Path, comment: str = "") -> None:
    """Write a figure of a page of the documentation as PNG with a palette, which is small.

    Equal figures give equal files. The texts of the figure are the text "Description" of the
    file, a line each; the texts of legends are preceded by "legend: ".

    Parameters
    ----------
    path : other formats than PNG are written by :func:`save`.
    comment : text "Comment" of the file.
    """
    if path.suffix != ".png":
        save(figure, path)
        return
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=_PAGE_DPI)
    info = PngInfo()
    info.add_itxt("Description", "\n".join(_words(figure)))
    if comment:
        info.add_itxt("Comment", comment)
    image = Image.open(buffer).convert("RGB")
    for colours in (256, 64):
        image.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True, pnginfo=info)
        if path.stat().st_size < _PAGE_BYTES:
            break


def _words(figure: Figure) -> list[str]:
    """Return the different texts of a figure, without line breaks."""
    legends: Any = figure.findobj(Legend)
    explained = {id(text) for legend in legends for text in legend.get_texts()}
    texts: Any = figure.findobj(Text)
    shown = (
        ("legend: " if id(text) in explained else "") + " ".join(text.get_text().split())
        for text in texts
        if text.get_visible()
    )
    return list(dict.fromkeys(filter(None, shown)))
