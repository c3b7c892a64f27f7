"""Points on one flat foot: more rows than can be independent."""

from __future__ import annotations

from delassus_ros import Contact, Transform

_CORNERS = ((0.1, 0.05), (0.1, -0.05), (-0.1, 0.05), (-0.1, -0.05))


def flat_foot(points: int, frame: str = "foot1") -> list[Contact]:
    """Return up to four point contacts in the plane of a frame."""
    return [
        Contact(f"{frame}.{i}", frame, placement=Transform.from_xyz_rpy((x, y, 0), (0, 0, 0)))
        for i, (x, y) in enumerate(_CORNERS[:points])
    ]
