"""How long idle processors may take to wake up: a request that is held, or refused in words."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from delassus_ros.ros import realtime as wakeup
from delassus_ros.ros.realtime import RealtimeMode, RealtimeSettings


@pytest.fixture
def device(tmp_path, monkeypatch):
    """A file in place of the kernel's; the requests that are open are those of this process."""
    file = tmp_path / "cpu_dma_latency"
    file.write_bytes(b"")
    monkeypatch.setattr(wakeup, "DEVICE", str(file))
    return file


def requests(device) -> int:
    """Return how many times this process has the file open."""
    links = []
    for entry in os.listdir("/proc/self/fd"):
        # One of them was the folder itself.
        if os.path.exists(f"/proc/self/fd/{entry}"):
            links.append(os.readlink(f"/proc/self/fd/{entry}"))
    return links.count(str(device))


def test_the_limit_is_held_until_it_is_released(device) -> None:
    limit = wakeup.WakeupLimit()
    outcome = limit.hold(7)
    assert (outcome.done, outcome.text) == (True, "idle processors wake up within 7 µs")
    assert requests(device) == 1
    assert struct.unpack("i", device.read_bytes()) == (7,)
    # Another one takes its place.
    limit.hold(0)
    assert requests(device) == 1
    assert struct.unpack("i", device.read_bytes()) == (0,)
    assert limit.release().done
    assert requests(device) == 0
    assert limit.release().done


def test_no_such_device_is_said(device) -> None:
    device.unlink()
    outcome = wakeup.WakeupLimit().hold(0)
    assert not outcome.done
    assert f"processors may sleep deeply: there is no {device} here" in outcome.text


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM])
def test_no_permission_is_said_with_what_would_help(device, monkeypatch, number) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    outcome = wakeup.WakeupLimit().hold(0)
    assert not outcome.done
    assert "not permitted" in outcome.text
    assert "udev rule" in outcome.text


def test_a_limit_that_cannot_be_written_leaves_no_file_open(device, monkeypatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", refuse)
        outcome = wakeup.WakeupLimit().hold(0)
    assert not outcome.done
    assert "Invalid argument" in outcome.text
    assert requests(device) == 0


def test_each_node_of_a_process_has_a_request_of_its_own(device) -> None:
    first, second = RealtimeMode(), RealtimeMode()
    first.enter(RealtimeSettings(wakeup_latency=0, hold_garbage=False))
    second.enter(RealtimeSettings(wakeup_latency=5, hold_garbage=False))
    try:
        assert requests(device) == 2
    finally:
        first.leave()
        left = requests(device)
        second.leave()
    assert left == 1
    assert requests(device) == 0


def test_none_is_made_unless_it_is_asked_for(device) -> None:
    mode = RealtimeMode()
    mode.enter(RealtimeSettings(hold_garbage=False))
    try:
        assert requests(device) == 0
    finally:
        mode.leave()
