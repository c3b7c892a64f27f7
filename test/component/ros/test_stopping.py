"""Signals that ask to stop are noted, and given back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from delassus.programs.stopping import StopRequest


@pytest.fixture(autouse=True)
def not_under_nohup() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


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


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    """As under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with StopRequest() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert not stop.requested
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.requested
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
