"""Which parameter changes are refused at once, in the answer to the request.

A description is only checked for being XML here: a background thread reads it, and the parameter
is set back if it cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus import algorithms
from delassus.errors import AlgorithmError, DelassusError, InputError
from delassus.model.reading.xml import check_document
from delassus.problem import Problem
from delassus_ros.node.computation import Computation
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS
from delassus_ros.node.declared_parameters import values_of
from delassus_ros.node.parameters import (
    OPERATION_PARAMETERS,
    Operation,
    setting_of,
)
from delassus_ros.ros.description_topic import DescriptionTopic

DESCRIPTION, ALGORITHM = "robot_description", "algorithm"
"""Parameters whose change builds a part of the computation."""


def refusal(
    node: Node,
    changes: Sequence[Parameter],
    overrides: Mapping[str, Any],
    computation: Computation | None,
    topic: DescriptionTopic,
) -> str | None:
    """Return why parameters cannot be set together, or None if they can.

    Parameters
    ----------
    overrides : result of :func:`~delassus_ros.node.declared_parameters.declare_parameters`.
    computation : the present computation; None while the node is unconfigured.
    topic : topic with the description that counts where the parameter is empty.
    """
    configured = computation is not None
    for change in changes:
        # ROS would delete a parameter whose type is not fixed, and nothing could set it again.
        if change.type_ == Parameter.Type.NOT_SET and node.has_parameter(change.name):
            return f"{change.name!r} cannot be deleted; set it to the value that is wanted instead"
        reason = _refusal_of_value(change.name, change.value, configured)
        if reason is None and change.name == "contacts.names":
            reason = _refusal_of_overrides(change.value or (), overrides)
        if reason is not None:
            return reason
    wanted = {change.name: change.value for change in changes}
    reason = _refusal_of_operation(node, wanted)
    if reason is None and wanted.keys() & {ALGORITHM, DESCRIPTION}:
        reason = _refusal_of_computation(node, wanted, computation, topic)
    return reason


def refusal_of_algorithm(algorithm: str, problem: Problem | None) -> str | None:
    """Return why an algorithm cannot be used, or None if it can.

    Without a problem, any existing algorithm is accepted.
    """
    try:
        algorithms.get(algorithm)
        reason = None if problem is None else reason_against(algorithm, problem)
    except AlgorithmError as error:
        return str(error)
    if reason is None:
        return None
    return f"algorithm {algorithm!r} cannot solve this problem: {reason}"


def reason_against(name: str, problem: Problem) -> str | None:
    """Return why a registered algorithm cannot solve a problem, or None if it can.

    Raises
    ------
    AlgorithmError
        For an unknown algorithm.
    """
    algorithm = algorithms.get(name)
    try:
        return algorithm.supports(problem)
    except Exception as error:
        # A plug-in may raise any exception; the node goes on.
        return f"it cannot say: {type(error).__name__}: {error}"


def _refusal_of_value(name: str, value: Any, configured: bool) -> str | None:
    """Return why a parameter cannot have this value, or None if it can."""
    setting = setting_of(name)
    if setting is None:
        return None
    if configured and not setting.live:
        return (
            f"{name!r} can be set only while the node is unconfigured, as it is read when the "
            "node is configured; deactivate and clean up the node, set it, and configure again"
        )
    if value is not None:
        try:
            setting.parse(name, value)
            if name == "fallback" and value:
                algorithms.get(value)
        except (InputError, AlgorithmError) as error:
            return str(error)
    return None


def _refusal_of_overrides(contacts: Iterable[str], overrides: Mapping[str, Any]) -> str | None:
    """Return why contacts cannot be listed with the overrides of their parameters, or None.

    The declaration of these parameters raises the same error, after the request was answered.
    """
    for contact in contacts:
        for key in CONTACT_PARAMETERS:
            name = f"contacts.{contact}.{key}"
            reason = _refusal_of_value(name, overrides.get(name), configured=False)
            if reason is not None:
                return (
                    f"contact {contact!r} cannot be listed, as the node was started with a bad "
                    f"{name!r}: {reason}"
                )
    return None


def _refusal_of_operation(node: Node, wanted: Mapping[str, Any]) -> str | None:
    """Return why parameters of the operation are inconsistent, or None."""
    # Values are read only if the change needs them: hundreds of contacts are declared one by one,
    # and an algorithm is set between two ticks.
    if not wanted.keys() & OPERATION_PARAMETERS.keys():
        return None
    changed = {name: value for name, value in wanted.items() if value is not None}
    try:
        Operation.from_parameters({**values_of(node), **changed})
    except InputError as error:
        return str(error)
    return None


def _refusal_of_computation(
    node: Node,
    wanted: Mapping[str, Any],
    computation: Computation | None,
    topic: DescriptionTopic,
) -> str | None:
    """Return why an algorithm or a robot description cannot be used, or None."""
    problem = None if computation is None else computation.problem
    if DESCRIPTION in wanted:
        description = wanted[DESCRIPTION] or topic.text
        if not description and computation is not None:
            return f"'robot_description' is empty, and nothing has come on {topic.topic}"
        if description and (computation is None or description != computation.description):
            try:
                check_document(description)
            except DelassusError as error:
                return f"'robot_description' cannot be used: {error}"
            problem = None
    algorithm = wanted.get(ALGORITHM, node.get_parameter(ALGORITHM).value)
    return refusal_of_algorithm(algorithm, problem)
