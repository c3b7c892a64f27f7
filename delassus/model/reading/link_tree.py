"""Links and joints of a description as one tree, refused where they do not make one."""

from __future__ import annotations

from delassus.errors import RobotError, unknown
from delassus.model.reading.description import Description, JointDescription


class LinkTree:
    """The links and joints as a tree: the root link and the joints on each link.

    Raises
    ------
    RobotError
        If the joints do not make one tree of all links.
    """

    def __init__(self, description: Description) -> None:
        self._links = description.links
        self._parent_joint: dict[str, JointDescription] = {}
        self.joints_on: dict[str, list[JointDescription]] = {name: [] for name in self._links}
        if not self._links:
            raise RobotError(f"robot {description.name!r} has no links")
        for joint in description.joints.values():
            self._add(joint)
        self.root = self._root()
        self._check_reached()

    def _add(self, joint: JointDescription) -> None:
        for end, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in self._links:
                raise RobotError(
                    f"joint {joint.name!r}: {end}: {unknown('link', name, self._links)}"
                )
        if joint.parent == joint.child:
            raise RobotError(
                f"joint {joint.name!r}: parent and child are the same link {joint.child!r}"
            )
        other = self._parent_joint.setdefault(joint.child, joint)
        if other is not joint:
            raise RobotError(
                f"joint {joint.name!r} closes a loop: its child link {joint.child!r} would have "
                f"two parents, {other.parent!r} (by joint {other.name!r}) and "
                f"{joint.parent!r}; remove one of the joints and put a <loop> (URDF+) in its place"
            )
        self.joints_on[joint.parent].append(joint)

    def _root(self) -> str:
        roots = [name for name in self._links if name not in self._parent_joint]
        if len(roots) > 1:
            raise RobotError(
                f"{len(roots)} root links: {listed(roots)}; a robot is one tree: connect them "
                "with joints or remove all but one"
            )
        if not roots:
            raise RobotError(self._cycle(next(iter(self._links))))
        return roots[0]

    def _check_reached(self) -> None:
        reached, pending = set(), [self.root]
        while pending:
            link = pending.pop()
            reached.add(link)
            pending.extend(joint.child for joint in self.joints_on[link])
        for link in self._links:
            if link not in reached:
                raise RobotError(self._cycle(link))

    def _cycle(self, link: str) -> str:
        """Say which joints make the cycle that the parents of `link` lead to."""
        seen: dict[str, JointDescription] = {}
        while link not in seen:
            seen[link] = self._parent_joint[link]
            link = seen[link].parent
        names = list(seen)
        joints = [seen[name].name for name in names[names.index(link) :]]
        return (
            f"joints {listed(joints)} form a cycle, from which no root link is reached; a "
            "robot is one tree"
        )


def listed(names: list[str], most: int = 10) -> str:
    """Return the first names, quoted, for a message."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f", … ({len(names)} in all)" if len(names) > most else "")
