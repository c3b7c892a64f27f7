"""Passive elements of descriptions: springs, dampers and gravity compensation of MuJoCo models.

What acts on a robot besides them and the torques of motors does not count; a warning names it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus.errors import listed
from delassus.model.spatial import Array

_log = logging.getLogger(__name__)


def warn_of_uncounted(robot: str, found: Mapping[str, Sequence[str]]) -> None:
    """Warn of forces that act on a robot, but do not count.

    Parameters
    ----------
    found : phrases that end in a kind of thing, such as ``"dry friction of joint"``, with the
        names of these things; without names there is no such force.
    """
    parts = [listed(phrase, names) for phrase, names in found.items() if names]
    if parts:
        _log.warning(
            "robot %r: free accelerations and bias forces do not count %s", robot, "; ".join(parts)
        )


def of_joints(model: Any, what: str) -> tuple[Array, list[int]]:
    """Return armature or damping of each MuJoCo joint, and the actuators with one elsewhere.

    An actuator at a joint adds its own, times the square of its gear.

    Parameters
    ----------
    what : ``"armature"`` or ``"damping"``.
    """
    import mujoco

    types = mujoco.mjtTrn
    at_joints = (int(types.mjTRN_JOINT), int(types.mjTRN_JOINTINPARENT))
    found: Array = np.array(getattr(model, f"dof_{what}")[model.jnt_dofadr], dtype=float)
    elsewhere = []
    # Models of MuJoCo before 4 have none.
    for a in np.flatnonzero(getattr(model, f"actuator_{what}", ())):
        if int(model.actuator_trntype[a]) in at_joints:
            gear = float(model.actuator_gear[a, 0])
            added = float(getattr(model, f"actuator_{what}")[a]) * gear**2
            found[model.actuator_trnid[a, 0]] += added
        else:
            elsewhere.append(int(a))
    return found, elsewhere


@dataclass(frozen=True, eq=False)
class MujocoPassive:
    """Springs, dampers and gravity compensation of a compiled MuJoCo model.

    Attributes
    ----------
    stiffness, reference, damping : per joint, see :class:`~delassus.model.joint.Joint`; 0 for
        ball and free joints.
    compensation : per body the share of its weight that is compensated.
    """

    stiffness: Array
    reference: Array
    damping: Array
    compensation: Array

    @classmethod
    def of(cls, model: Any) -> MujocoPassive:
        """Return the elements of a model that its flags leave enabled."""
        import mujoco

        flags, disabled = mujoco.mjtDisableBit, int(model.opt.disableflags)
        # Older versions have one flag for both.
        springs, dampers = (
            not disabled & int(getattr(flags, f"mjDSBL_{each}", 0) or flags.mjDSBL_PASSIVE)
            for each in ("SPRING", "DAMPER")
        )
        single, (damping, _) = _are_single(model), of_joints(model, "damping")
        return cls(
            np.where(single, springs * model.jnt_stiffness, 0.0),
            np.where(single, model.qpos_spring[model.jnt_qposadr], 0.0),
            np.where(single, dampers * damping, 0.0),
            # MuJoCo compensates no weight if both are disabled.
            (springs or dampers) * np.array(model.body_gravcomp, dtype=float),
        )


def _are_single(model: Any) -> NDArray[np.bool_]:
    """Return per joint of a MuJoCo model whether it is a hinge or slide."""
    import mujoco

    types = mujoco.mjtJoint
    return np.isin(model.jnt_type, (int(types.mjJNT_HINGE), int(types.mjJNT_SLIDE)))


def uncounted(model: Any, joints: Sequence[str]) -> dict[str, list[str]]:
    """Return the forces of a MuJoCo model that do not count; see :func:`warn_of_uncounted`.

    Parameters
    ----------
    joints : names of the joints.
    """
    import mujoco

    def where(field: str) -> list[int]:
        """Return the rows of a field that are not zero; older versions lack some fields."""
        return sorted(set(np.nonzero(np.array(getattr(model, field, ())))[0].tolist()))

    def named(what: str, rows: Iterable[int]) -> list[str]:
        kind = getattr(mujoco.mjtObj, f"mjOBJ_{what.upper()}")
        return [mujoco.mj_id2name(model, kind, k) or f"{what}{k}" for k in rows]

    def of_dofs(field: str) -> list[str]:
        return list(dict.fromkeys(joints[int(model.dof_jntid[k])] for k in where(field)))

    single, (damping, elsewhere) = _are_single(model), of_joints(model, "damping")
    several = np.flatnonzero(~single & ((model.jnt_stiffness != 0.0) | (damping != 0.0))).tolist()
    tendons = {k for field in _OF_TENDONS for k in where(field)}
    bent = sorted({*where("jnt_stiffnesspoly"), *where("jnt_springyield")})
    servos = np.flatnonzero(model.actuator_biastype != int(mujoco.mjtBias.mjBIAS_NONE)).tolist()
    medium = [name for name in ("density", "viscosity") if getattr(model.opt, name)]
    return {
        "dry friction of joint": of_dofs("dof_frictionloss"),
        "stiffness and damping of ball or free joint": [joints[j] for j in several],
        "stiffness beyond the linear term, or yield, of joint": [joints[j] for j in bent],
        "damping beyond the linear term of joint": of_dofs("dof_dampingpoly"),
        "springs, dampers and friction of tendon": named("tendon", sorted(tendons)),
        "forces by position or rate (servo, muscle) of actuator": named("actuator", servos),
        "damping of actuator": named(
            "actuator", sorted({*elsewhere, *where("actuator_dampingpoly")})
        ),
        "forces of the surrounding medium by option": medium,
        "forces of flex": named("flex", range(model.nflex)),
        "forces of plugin": named("plugin", range(model.nplugin)),
    }


_OF_TENDONS = (
    "tendon_stiffness", "tendon_damping", "tendon_frictionloss", "tendon_stiffnesspoly",
    "tendon_dampingpoly",
)  # fmt: skip
"""Fields of tendons with forces that do not count."""
