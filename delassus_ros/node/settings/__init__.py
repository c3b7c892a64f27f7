"""The node's parameters: their table, and the settings read from their values."""

from delassus_ros.node.settings.computed import Settings
from delassus_ros.node.settings.operation import Operation
from delassus_ros.node.settings.setting import Setting, by_joint, parse_all
from delassus_ros.node.settings.table import (
    AUTOSTART,
    CONTACT_PARAMETERS,
    OPERATION_PARAMETERS,
    PARAMETERS,
    RCLPY_PREFIXES,
    misspelt,
    setting_of,
)

__all__ = [
    "AUTOSTART",
    "CONTACT_PARAMETERS",
    "OPERATION_PARAMETERS",
    "PARAMETERS",
    "RCLPY_PREFIXES",
    "Operation",
    "Setting",
    "Settings",
    "by_joint",
    "misspelt",
    "parse_all",
    "setting_of",
]
