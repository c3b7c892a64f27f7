"""``delassus help``: long texts about options that most verbs share."""

from __future__ import annotations

import argparse
import textwrap

from delassus.cli.parsing import Verb
from delassus.cli.report import Report
from delassus.robots.base import BASE_RULE

TOPICS = {
    "base": (
        "--base floating: the root link moves freely; --base fixed: it is bolted to the world. "
        f"Without the option the base is {BASE_RULE}.",
    ),
    "lock": (
        "--lock JOINT=VALUE,… names joints that are fixed, by name or pattern, and their "
        "positions [rad, m], for example head=0,'*finger*'=0. --lock fingers locks the joints of "
        "fingers and grippers in the first posture. Locked joints change the matrix, so no joint "
        "is locked without the option.",
    ),
    "loops": (
        "--loops LOOPS.yaml names a file with loops, couplings and rotors that the robot "
        "description lacks; mimic joints and elements of URDF+ are read from the description.",
        "--loops-as clusters closes loops by clusters of joints, --loops-as rows by rows that are "
        "eliminated from the matrix, and --loops-as cheapest as needs fewest operations. The "
        "default is clusters.",
        "--reference JOINT=VALUE,… gives joint positions [rad, m] that select the branch on which "
        "loops close; by default all joints are at 0.",
    ),
    "poses": (
        "--q NAME takes a pose that the robot description names: a keyframe of MJCF, or a group "
        "state of an SRDF file. --srdf FILE names this file; without the option it is the file "
        "with the stem of the URDF, or the only .srdf, in the folder of the URDF or in ../srdf. "
        "Verbs start from the pose home, stand, standing or default, or the only one; --q pose "
        "is the posture without names.",
    ),
    "passive": (
        "Springs, dampers and gravity compensation of joints count in outputs of motion, such as "
        "a0 and h. --no-passive leaves them out.",
    ),
}
"""Paragraphs by topic."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the topic."""
    parser.add_argument(
        "topic", nargs="?", choices=(*TOPICS,), metavar="TOPIC",
        help=f"one of {', '.join(TOPICS)} (default: all)",
    )  # fmt: skip


def explain(options: argparse.Namespace) -> Report:
    """Return the text of a topic, or of all."""
    topics = [options.topic] if options.topic else [*TOPICS]
    paragraphs = [textwrap.fill(words, 79) for name in topics for words in TOPICS[name]]
    return Report("\n\n".join(paragraphs), {name: " ".join(TOPICS[name]) for name in topics})


HELP = Verb("help", "explain options that verbs share", "loops", explain, _add_options)
