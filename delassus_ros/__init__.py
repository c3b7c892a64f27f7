"""The ROS 2 component around the library :mod:`delassus`, whose names are handed on."""

from delassus import *  # noqa: F403
from delassus import __all__ as __all__
