"""By which clock a run goes: that of the plant, and all nodes alike."""

from __future__ import annotations

from typing import Any

SLACK = 0.004
"""Time by which commands may be late in real time; the controllers bear 10 ms [s]."""
OF_OTHERS: dict[str, Any] = {"use_sim_time": True}
"""Parameters of every node but the plant."""


def of_plant(realtime: bool, slack: float = SLACK, answers: str = "commands") -> dict[str, Any]:
    """Return the parameters of delassus_plant.

    Parameters
    ----------
    realtime : it keeps to the machine's clock while answers are late by no more than `slack`;
        else it waits for the answer to each joint state.
    slack, answers : see ``delassus_plant --help``.
    """
    return {"lockstep": True, "slack": slack if realtime else 0.0, "answers": answers}
