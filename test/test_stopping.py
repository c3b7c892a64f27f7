"""Signals that ask to stop are noted, and given back."""

from __future__ import annotations

import os
import signal

import pytest

from delassus_ros.stopping import StopRequest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_is_noted_and_interrupts_nothing(number: int) -> None:
    with StopRequest() as stop:
        assert not stop.requested
        os.kill(os.getpid(), number)
        assert stop.requested


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError, match="in the block"), StopRequest():
        assert signal.getsignal(signal.SIGINT) is not before
        raise RuntimeError("in the block")
    assert signal.getsignal(signal.SIGINT) is before
