"""ROS domains for tests: no two processes that run tests of one user share one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

from delassus_ros.ros.domains import own_domains


@lru_cache(maxsize=1)
def _own() -> Iterator[int]:
    return itertools.cycle(own_domains())


def new_domain() -> int:
    """Return a ROS domain id that no other such process has; this one had it five calls ago."""
    return next(_own())
