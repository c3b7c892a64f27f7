"""Thresholds and damping: what makes no sense is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from delassus_ros.conditioning.monitor import ConditionSettings
from delassus_ros.errors import InputError

DAMPINGS = "expected a Damping: write Damping.NONE or Damping.UNIFORM or Damping.SELECTIVE"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"characteristic_length": 0.0}, "characteristic_length is 0.0"),
        ({"weak": 1.0}, "weak is 1.0; expected more than 1"),
        ({"weak": np.nan}, "weak is nan"),
        ({"singular": 1e11}, "singular is"),
        ({"hysteresis": 0.5}, "hysteresis is 0.5; expected a factor of at least 1"),
        ({"damping_ratio": 1.0}, "damping_ratio is 1.0"),
        ({"weak": 1e6}, "thresholds out of order"),
        ({"weak": 6e5}, "thresholds out of order"),
        ({"weak": "1e4"}, "weak is '1e4'; expected a number"),
        ({"hysteresis": [2.0]}, r"hysteresis is \[2.0\]; expected a number"),
        ({"damping_ratio": None}, "damping_ratio is None; expected a number"),
        ({"damping": "selective"}, f"damping is 'selective'; {DAMPINGS}"),
        ({"damping": 2}, f"damping is 2; {DAMPINGS}"),
    ],
)
def test_settings_out_of_range_are_refused(change, words) -> None:
    with pytest.raises(InputError, match=words):
        ConditionSettings(**change)
