"""Decompressing parts of recordings, bounded: a few compressed bytes may hold terabytes."""

from __future__ import annotations

from pathlib import Path

import lz4.frame
import zstandard

ZSTD_SUFFIX = ".zstd"
"""End of the names of files that rosbag2 compresses as a whole."""
_ZSTD_MAGIC = zstandard.FRAME_HEADER
_UNKNOWN_SIZE = zstandard.CONTENTSIZE_UNKNOWN
_PIECE = 1 << 12
"""Compressed bytes that are decompressed at once; they expand to 128 MiB at most."""
_USUAL_RATIO = 100
"""Largest content relative to its compressed form: joint states reach some 30."""
_SMALL = 1 << 27
"""Size up to which content may have any ratio [bytes]: images of one colour compress far better.
"""


def allowed(compressed: int) -> int:
    """Return the largest allowed size of the content of compressed data [bytes]."""
    return max(_SMALL, _USUAL_RATIO * compressed)


def expanded(data: bytes, compression: str, most: int) -> bytes:
    """Return the content of compressed data.

    Parameters
    ----------
    compression : ``"zstd"``, ``"lz4"``, or empty for data that is not compressed.
    most : largest size of the content [bytes]; no more memory is allocated.

    Raises
    ------
    ValueError
        If the content is larger, the data ends early or the compression is unknown.
    zstandard.ZstdError, RuntimeError
        If the data is damaged.
    """
    if not compression:
        return data
    if compression == "zstd":
        # The library bounds only content that does not state its size.
        size = zstandard.get_frame_parameters(data).content_size
        if size > most and size != _UNKNOWN_SIZE:
            raise ValueError(f"it holds {size} bytes, expected at most {most}")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=most)
    if compression == "lz4":
        decompressor = lz4.frame.LZ4FrameDecompressor()
        content: bytes = decompressor.decompress(data, max_length=most + 1)
        if len(content) > most:
            raise ValueError(f"it holds more than {most} bytes")
        if not decompressor.eof:
            raise ValueError("its compressed data ends early")
        return content
    raise ValueError(f"its compression {compression!r} is unknown; expected 'zstd' or 'lz4'")


def message_of(data: bytes, most: int) -> bytes:
    """Return a message that rosbag2 may have compressed individually.

    Serialized messages begin with a zero byte, compressed ones with the mark of zstd.

    Raises
    ------
    ValueError, zstandard.ZstdError
        As :func:`expanded`.
    """
    return expanded(data, "zstd", most) if data.startswith(_ZSTD_MAGIC) else data


def expand_file(source: Path, target: Path) -> str:
    """Write the content of a file that rosbag2 has compressed as a whole.

    If the file is damaged, ends early or holds more than :func:`allowed`, the content before that
    place is written, and a text about it is returned; else an empty text.

    Raises
    ------
    OSError
        If a file cannot be read or written, e.g. on a full disk.
    """
    room = allowed(source.stat().st_size)
    with source.open("rb") as compressed, target.open("wb") as file:
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof and (piece := compressed.read(_PIECE)):
            try:
                content = frame.decompress(piece)
            except zstandard.ZstdError as error:
                return f"its compressed data is damaged: {error}"
            if file.tell() + len(content) > room:
                return f"it holds more than {room} bytes, {_USUAL_RATIO} times its own"
            file.write(content)
        if frame.eof:
            return ""
        return f"its compressed data ends early, after {file.tell()} bytes of content"
