"""Files that are read whole: regular ones, and no more of them than is wanted."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from delassus.model.reading.xml import read_regular_file


def test_at_most_one_byte_more_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"0123456789")
    assert read_regular_file(file, 10) == b"0123456789"
    assert read_regular_file(str(file), 4) == b"01234"
    (tmp_path / "link").symlink_to(file)
    assert read_regular_file(tmp_path / "link", 10) == b"0123456789"


def test_other_than_regular_file_refused_and_left_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "socket"))
    paths = (tmp_path / "pipe", tmp_path / "socket", tmp_path, Path("/dev/zero"))
    for path in paths:
        with pytest.raises(OSError, match="Not a regular file|Is a directory|No such device"):
            read_regular_file(path, 10)
        with pytest.raises(OSError, match="Not a regular file|Is a directory|No such device"):
            read_regular_file(path, 10, inherited=True)
    # Others of this process open and close files of their own.
    open_files = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            open_files.append(link.readlink())
    assert open_files and not set(open_files) & set(paths)


def test_pipes_of_this_process_count_where_they_may() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"0123456789")
    os.close(writer)
    path = f"/dev/fd/{reader}"
    with pytest.raises(OSError, match="Not a regular file"):
        read_regular_file(path, 10)
    assert read_regular_file(path, 4, inherited=True) == b"01234"
    os.close(reader)
