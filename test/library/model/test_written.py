"""Which texts are numbers."""

from __future__ import annotations

import math

import pytest

from delassus.model.reading.numbers import number, numbers_in


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1e-3", 0.001), (".5", 0.5), ("+2", 2.0), ("-0", 0.0), ("2.", 2.0), ("1.5E+2", 150.0),
        (" \t\r\n7 ", 7.0), ("inf", math.inf), ("-Infinity", -math.inf), ("1e400", math.inf),
    ],
)  # fmt: skip
def test_numbers(text: str, meant: float) -> None:
    assert number(text) == meant


def test_nan_is_a_number() -> None:
    assert math.isnan(number("NaN"))


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ".", "-", "e1", "1e", "1_0", "1_0.5", "1e1_0", "0x1", "1,5", "1 2", "1\xa0",
        "\u0661", "\uff11", "\u0967.5", "1\u0660", "\u0131nf", "in", "nanx", "1f", "1d0",
        "\u22121", "one", "1\n2", "1\x00", "1\v",
    ],
)  # fmt: skip
def test_text_that_is_no_number_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number$"):
        number(text)


def test_several() -> None:
    assert numbers_in(" 1 2\t3\n") == [1.0, 2.0, 3.0]
    assert numbers_in("") == numbers_in(" \n") == []
    with pytest.raises(ValueError, match="^'2_0' is not a number$"):
        numbers_in("1 2_0 3")
    with pytest.raises(ValueError, match="^'1\\\\xa02' is not a number$"):
        numbers_in("1\xa02")
    with pytest.raises(ValueError) as caught:
        numbers_in("x" * 10_000)
    assert len(str(caught.value)) < 80
