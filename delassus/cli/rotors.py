"""The verb `rotors`: a geared robot as an ordinary tree that any dynamics library accepts."""

from __future__ import annotations

import argparse

import numpy as np

from delassus.cli import report as text
from delassus.cli.options import add_contacts, add_robot, contacts_of, described
from delassus.cli.parsing import Verb
from delassus.cli.report import Report
from delassus.model.robot import JointKind
from delassus.rotor_report import RotorReport, rotor_report
from delassus.visible import visible


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_robot(parser)
    add_contacts(parser)


def report(options: argparse.Namespace) -> Report:
    """Return the inertias and armatures that replace the rotors, and the error of usual ones."""
    description = described(options)
    robot, contacts = description.robot, contacts_of(options, description)
    found = rotor_report(robot, keep=[contact.frame for contact in contacts])
    gone = len(robot.joints) - len(found.robot.joints)
    if not gone:
        said = f"{visible(robot.name)}: no joint turns a rotor; it is an ordinary tree as it is"
        return Report(said, {"robot": robot.name, "rotors": 0})
    parts = [
        f"{visible(robot.name)}: without its {gone} rotors an ordinary tree that moves exactly "
        "like it",
        "",
        text.table(_armatures(found), numeric=(1, 2)),
        "",
        "Inertia of bodies about the origin of their frame, along its axes:",
        text.table(_inertias(found), numeric=range(1, 11)),
        "",
        "Armatures in kg·m² (rotor inertia at the joint), mass in kg, mass × centre in kg·m,",
        "inertia in kg·m². They need not be those of real bodies; enter all of them together.",
    ]
    data: dict[str, object] = {
        "robot": robot.name,
        "rotors": gone,
        "armatures": {
            name: {"exact": exact, "usual": usual}
            for name, (exact, usual) in found.armatures.items()
        },
        "inertias": {
            name: {"mass": i.mass, "moment": i.moment, "rotational": i.rotational}
            for name, i in found.inertias.items()
        },
    }
    error = found.usual_error(contacts)
    data["usual_error"] = error
    names = ", ".join(contact.name for contact in contacts)
    parts += ["", f"With g²J and locked rotors instead, G of {names} is off by {error:.2%}",
              "(largest ‖ΔG‖/‖G‖ of 20 random configurations)."]  # fmt: skip
    return Report("\n".join(parts), data)


ROTORS = Verb(
    "rotors",
    "show how rotors become inertias and armatures of links",
    "docs/geared_leg.urdf --base fixed --contact sole",
    report,
    _add_options,
)


def _armatures(found: RotorReport) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [("joint", "armature", "usually g²J")]
    for name, (exact, usual) in found.armatures.items():
        rows.append((name, f"{exact:.9g}", f"{usual:.9g}"))
    return rows


def _inertias(found: RotorReport) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = [
        ("body moved by", "mass", "m·x", "m·y", "m·z", "xx", "yy", "zz", "xy", "xz", "yz")
    ]
    moved_by = {
        body.name: "the floating base" if joint.kind is JointKind.ROOT else joint.name
        for joint, body in zip(found.robot.joints, found.robot.bodies, strict=True)
    }
    for name, inertia in found.inertias.items():
        i = inertia.rotational
        numbers = [inertia.mass, *inertia.moment, *np.diag(i), i[0, 1], i[0, 2], i[1, 2]]
        rows.append((moved_by[name], *(f"{value:.9g}" for value in numbers)))
    return rows
