"""A biped with parallel ankles: two motors on each shin turn the foot by two rods."""

from __future__ import annotations

BASE = "torso"
ENDS = ("foot_left", "foot_right")
_BOX = "<collision><origin xyz='0.03 0 -0.045'/><geometry><box size='0.2 0.08 0.03'/></geometry>"


def parallel_ankles(foot: str = "foot_") -> tuple[str, str]:
    """Return the URDF and the loops file of the biped; all loops close where joints are at 0.

    Parameters
    ----------
    foot : beginning of the names of the feet.
    """
    parts, loops, kinds = [_link("torso", 15.0)], [], []
    for side, y in (("left", 0.1), ("right", -0.1)):
        parts += [
            _joint(f"hip_{side}", "torso", f"thigh_{side}", (0, y, 0), "0 1 0"),
            _link(f"thigh_{side}", 3.0, -0.2),
            _joint(f"knee_{side}", f"thigh_{side}", f"shin_{side}", (0, 0, -0.4), "0 1 0"),
            _link(f"shin_{side}", 1.2, -0.2),
            _joint(f"ankle_y_{side}", f"shin_{side}", f"cross_{side}", (0, 0, -0.4), "0 1 0"),
            _link(f"cross_{side}", 0.02),
            _joint(f"ankle_x_{side}", f"cross_{side}", f"plate_{side}", (0, 0, 0), "1 0 0"),
            _link(f"plate_{side}", 0.3, -0.04, f"{_BOX}</collision>"),
            _fixed(f"plate_{side}", f"{foot}{side}", (0.03, 0, -0.06)),
        ]
        for k, shift in ((1, 0.04), (2, -0.04)):
            end, rod = f"crank{k}_end_{side}", f"rod{k}_{side}"
            parts += [
                _joint(f"motor{k}_{side}", f"shin_{side}", f"crank{k}_{side}",
                       (0, shift, -0.15), "0 1 0"),
                _link(f"crank{k}_{side}", 0.03),
                _fixed(f"crank{k}_{side}", end, (-0.05, 0, 0)),
                _joint(f"ball{k}_{side}", f"plate_{side}", rod, (-0.05, shift, 0), "0 1 0"),
                _link(rod, 0.02, 0.125),
                _fixed(rod, f"closedloop{k}_{side}", (0, 0, 0.25)),
            ]  # fmt: skip
            loops.append(f"  - {{frames: [{end}, closedloop{k}_{side}], type: point}}")
            kinds.append(f"  ball{k}_{side}: universal_xy")
    text = "\n".join(["loops:", *loops, "joints:", *kinds])
    return f'<robot name="biped">{"".join(parts)}</robot>', text


def _link(name: str, mass: float, com: float = 0.0, more: str = "") -> str:
    size = 0.01 * mass
    return (
        f'<link name="{name}"><inertial><origin xyz="0.005 0.002 {com}"/><mass value="{mass}"/>'
        f'<inertia ixx="{size}" ixy="0" ixz="0" iyy="{size}" iyz="0" izz="{size}"/></inertial>'
        f"{more}</link>"
    )


def _joint(name: str, parent: str, child: str, at: tuple[float, ...], axis: str) -> str:
    place = " ".join(map(str, at))
    return (
        f'<joint name="{name}" type="continuous"><origin xyz="{place}"/><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="{axis}"/></joint>'
    )


def _fixed(parent: str, child: str, at: tuple[float, ...]) -> str:
    place = " ".join(map(str, at))
    return (
        f'<link name="{child}"/><joint name="{child}_weld" type="fixed"><origin xyz="{place}"/>'
        f'<parent link="{parent}"/><child link="{child}"/></joint>'
    )
