"""The clock of a simulated run: all nodes use the clock of the plant."""

from __future__ import annotations

from typing import Any

SLACK = 0.004
"""Time by which commands may be late in real time [s]; the controllers tolerate 10 ms."""
SLACK_OF_ESTIMATES = 0.02
"""Time by which estimates may be late in real time [s]: no torque depends on estimates."""
USE_SIM_TIME: dict[str, Any] = {"use_sim_time": True}
"""Parameters of every node but the plant."""


def of_plant(realtime: bool, slack: float = SLACK, answers: str = "commands") -> dict[str, Any]:
    """Return the parameters of delassus_plant.

    Parameters
    ----------
    realtime : the plant follows the machine's clock while answers are late by no more than
        `slack`; if False, the plant waits for the answer to every joint state.
    slack, answers : see ``delassus_plant --help``.
    """
    return {"lockstep": True, "slack": slack if realtime else 0.0, "answers": answers}


def realtime_argument(answer: str = "answer") -> dict[str, Any]:
    """Return name, default, choices and description of the launch argument ``realtime``.

    Parameters
    ----------
    answer : name of the message that the plant waits for in lockstep.
    """
    return {
        "name": "realtime",
        "default_value": "false",
        "choices": ["true", "false"],
        "description": "Keep to the machine's clock, rather than wait for the "
        f"{answer} of each joint state.",
    }
