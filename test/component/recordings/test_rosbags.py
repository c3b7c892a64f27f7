"""The package rosbags as a second reader: whole recordings have the same messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings_support import bag, walk
from rosbags.rosbag2 import CompressionMode, Reader, StoragePlugin

from delassus_ros.recordings.recording import Recording


@pytest.mark.parametrize("storage", StoragePlugin)
@pytest.mark.parametrize("mode", [m for m in CompressionMode if m is not CompressionMode.STORAGE])
def test_messages_equal_those_of_rosbags(tmp_path: Path, storage, mode) -> None:
    folder = bag(tmp_path / "run", list(walk(200)), storage, mode)
    recording = Recording(folder)
    found = [(message.time, message.topic, message.data) for message in recording.messages()]
    with Reader(folder) as reader:
        expected = [(time, topic.topic, bytes(data)) for topic, time, data in reader.messages()]
        kinds = {topic.topic: topic.msgtype for topic in reader.connections if topic.msgcount}
    assert found == expected and not recording.damage
    assert recording.topics == kinds
