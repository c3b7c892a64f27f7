"""Every registered algorithm, third parties' included, runs the conformance suite."""

from __future__ import annotations

import pytest

from delassus_ros import algorithms
from delassus_ros.testing import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", algorithms.names())
def test_conformance(name, check):
    check(name)
