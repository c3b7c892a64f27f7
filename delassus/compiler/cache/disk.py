"""The disk cache of compiled kernels: ``$XDG_CACHE_HOME/delassus``.

Machine code is executed from these files, so only the user may be able to write them:
the folder is private, it and its parents are checked, files are opened relative to the checked
folder, never through a symbolic link, and checked again once open. Without a safe, writable
place kernels are simply compiled at every start, and the log says so. The folder does not grow
for ever: the kernels that were not used for longest go first.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import secrets
import stat
from pathlib import Path

_MAGIC = b"DELASSUS KERNEL 1\n"
_FILE_MAX_BYTES = 256 * 1024 * 1024
"""Largest file that is read."""
_FOLDER_MAX_BYTES = 512 * 1024 * 1024
_FOLDER_MAX_FILES = 1000
"""What the folder may hold; a kernel of a large robot has a few MB."""
_SUFFIX = ".kernel"
_log = logging.getLogger(__name__)


class UnsafeCacheError(Exception):
    """The folder or a file in it cannot be trusted; internal, reported through the log."""


def folder() -> Path:
    """Return the cache folder: below $XDG_CACHE_HOME if that is absolute, else ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return root / "delassus"


def load(key: str) -> bytes | None:
    """Return what was stored under `key`, or None; anything suspicious counts as None."""
    try:
        directory = _open_folder(create=False)
        try:
            return _read(directory, key)
        finally:
            os.close(directory)
    except FileNotFoundError:
        return None
    except (OSError, RuntimeError, UnsafeCacheError) as error:
        _log.warning("kernel cache not used: %s", error)
        return None


def store(key: str, payload: bytes) -> None:
    """Store `payload` under `key`, replacing it atomically; failure is logged, not raised."""
    try:
        directory = _open_folder(create=True)
        try:
            _write(directory, key, payload)
            _remove_old(directory, _file_name(key))
        finally:
            os.close(directory)
    except (OSError, RuntimeError, UnsafeCacheError) as error:
        _log.warning("kernel not cached, it will be compiled at every start: %s", error)


def _open_folder(create: bool) -> int:
    """Return a descriptor of the checked cache folder."""
    path = folder()
    if create:
        missing = [p for p in (path, *path.parents) if not os.path.lexists(p)]
        if missing:
            # Before a folder is made or changed in a place of another user.
            _check_all(missing[-1].parent.resolve(strict=True))
        for parent in reversed(missing):
            _make_private(parent)
    resolved = path.parent.resolve(strict=True)
    _check_all(resolved)
    if path.is_symlink():
        raise UnsafeCacheError(
            f"{path} is a symbolic link; remove it, or set XDG_CACHE_HOME to where it points"
        )
    # By the path that was checked; O_NOFOLLOW in case it has become a link since.
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(resolved / path.name, flags)
    try:
        info = os.fstat(descriptor)
        if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
            raise UnsafeCacheError(
                f"{path} must belong to you with mode 0700, it belongs to uid {info.st_uid} "
                f"with mode {stat.S_IMODE(info.st_mode):04o}; chmod 700 or remove it"
            )
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _make_private(path: Path) -> None:
    """Make a folder of mode 0700, as the XDG specification says, whatever the umask."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        return  # made by another process at the same time, which gives it this mode, too
    # The umask may have taken rights of the user; it cannot have given rights to other users.
    path.chmod(0o700)


def _check_all(folder: Path) -> None:
    for parent in (folder, *folder.parents):
        _check_parent(parent, os.stat(parent))


def _check_parent(path: Path, info: os.stat_result) -> None:
    """Refuse a parent in which another user could replace the cache folder."""
    mode = stat.S_IMODE(info.st_mode)
    others_write = mode & 0o022 and not mode & stat.S_ISVTX
    if info.st_uid not in (0, os.geteuid()) or others_write:
        raise UnsafeCacheError(
            f"{path} belongs to uid {info.st_uid} with mode {mode:04o}: others could replace "
            "the cache below it; set XDG_CACHE_HOME to a folder that only you can write"
        )


def _read(directory: int, key: str) -> bytes:
    # O_NONBLOCK: opening a named pipe would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    path = folder() / _file_name(key)
    try:
        descriptor = os.open(_file_name(key), flags, dir_fd=directory)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise UnsafeCacheError(f"{path} is a symbolic link; it will be replaced") from error
    info = os.fstat(descriptor)
    if not stat.S_ISREG(info.st_mode):
        os.close(descriptor)
        raise UnsafeCacheError(f"{path} is not a regular file; remove it")
    with os.fdopen(descriptor, "rb") as file:
        if info.st_uid != os.geteuid() or stat.S_IMODE(info.st_mode) & 0o077:
            raise UnsafeCacheError(
                f"{path} must belong to you with mode 0600; it will be replaced"
            )
        if info.st_size > _FILE_MAX_BYTES:
            raise UnsafeCacheError(
                f"{path} is larger than {_FILE_MAX_BYTES} bytes; it will be replaced"
            )
        content = file.read()
        with contextlib.suppress(OSError):
            os.utime(descriptor)  # used now; a read-only file system keeps the old time
    head = len(_MAGIC)
    digest, payload = content[head : head + 32], content[head + 32 :]
    if content[:head] != _MAGIC or hashlib.sha256(payload).digest() != digest:
        raise UnsafeCacheError(f"{path} is damaged; it will be replaced")
    return payload


def _write(directory: int, key: str, payload: bytes) -> None:
    # Not the process id: threads share it, and so do containers that share a home.
    temporary = f".{_file_name(key)}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=directory), "wb") as file:
            os.fchmod(file.fileno(), 0o600)  # the umask may have taken rights of ours
            file.write(_MAGIC + hashlib.sha256(payload).digest() + payload)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, _file_name(key), src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _remove_old(directory: int, newest: str) -> None:
    """Remove the least recently used kernels of a folder that has grown too large."""
    try:
        found = []
        with os.scandir(directory) as entries:
            for entry in entries:
                # Also what a writer that was killed has left.
                if _SUFFIX not in entry.name or not entry.is_file(follow_symlinks=False):
                    continue
                with contextlib.suppress(FileNotFoundError):  # replaced or removed just now
                    info = entry.stat(follow_symlinks=False)
                    found.append((entry.name != newest, -info.st_mtime, info.st_size, entry.name))
        total = 0
        for count, (_, _, size, name) in enumerate(sorted(found), start=1):
            total += size
            if name != newest and (count > _FOLDER_MAX_FILES or total > _FOLDER_MAX_BYTES):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=directory)
    except OSError as error:
        _log.warning("old kernels not removed from the cache: %s", error)


def _file_name(key: str) -> str:
    return key + _SUFFIX
