"""The node's parameters: their table, and the settings read from their values."""

from delassus_ros.node.settings.computed import Settings
from delassus_ros.node.settings.operation import Operation
from delassus_ros.node.settings.table import (
    AUTOSTART,
    CONTACT_PARAMETERS,
    OPERATION_PARAMETERS,
    PARAMETERS,
    known_parameters,
    misspelt,
    setting_of,
)
from delassus_ros.ros.setting import Setting, by_joint, parse_all

__all__ = [
    "AUTOSTART",
    "CONTACT_PARAMETERS",
    "OPERATION_PARAMETERS",
    "PARAMETERS",
    "Operation",
    "Setting",
    "Settings",
    "by_joint",
    "known_parameters",
    "misspelt",
    "parse_all",
    "setting_of",
]
