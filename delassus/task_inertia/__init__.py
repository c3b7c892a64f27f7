"""Inertia of tasks while contacts hold: projections of the outputs of a kernel."""

from delassus.task_inertia.held import HeldOutputs, TaskArrays, TaskCode

__all__ = ["HeldOutputs", "TaskArrays", "TaskCode"]
