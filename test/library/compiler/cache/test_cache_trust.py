"""What the cache must not trust: it says so, and the kernel works all the same."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from cache_support import stored, traced_again

from delassus.compiler.cache import disk as cache
from delassus.compiler.runtime import packing

ROOT = os.geteuid() == 0


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, logger="delassus")
    return caplog


def refused(log: pytest.LogCaptureFixture, *words: str) -> None:
    """Check that the kernel had to be traced, and that the log says what to do."""
    log.clear()
    assert traced_again()
    said = " | ".join(record.getMessage() for record in log.records)
    for word in words:
        assert word in said, said


def healed() -> None:
    """Check that what was refused has been replaced by something good."""
    assert not traced_again()


@pytest.mark.parametrize("where", [0.0, 0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0])
def test_a_flipped_bit_anywhere(own_kernels: Path, log, where: float) -> None:
    file = stored(own_kernels)
    content = bytearray(file.read_bytes())
    content[round(where * (len(content) - 1))] ^= 0x10
    file.write_bytes(content)
    refused(log, "is damaged; it will be replaced", str(file))
    healed()


@pytest.mark.parametrize("kept", [0, 5, 18, 49, 50, 51, 500, -1])
def test_a_truncated_file(own_kernels: Path, log, kept: int) -> None:
    file = stored(own_kernels)
    file.write_bytes(file.read_bytes()[:kept])
    refused(log, "is damaged")
    healed()


def test_a_symbolic_link_in_place_of_the_file(own_kernels: Path, log, tmp_path: Path) -> None:
    file = stored(own_kernels)
    elsewhere = tmp_path / "elsewhere"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    content = elsewhere.read_bytes()
    refused(log, "symbolic link", str(file))
    healed()
    assert not file.is_symlink()
    assert elsewhere.read_bytes() == content


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
def test_a_file_that_others_may_read_or_write(own_kernels: Path, log, mode: int) -> None:
    file = stored(own_kernels)
    file.chmod(mode)
    refused(log, "must belong to you with mode 0600", str(file))
    healed()


@pytest.mark.skipif(not ROOT, reason="only root can give files to another user")
def test_a_file_or_folder_of_another_user(own_kernels: Path, log) -> None:
    file = stored(own_kernels)
    os.chown(file, 12345, 12345)
    refused(log, "must belong to you with mode 0600")
    healed()
    os.chown(own_kernels, 12345, 12345)
    refused(log, "must belong to you with mode 0700, it belongs to uid 12345")
    os.chown(own_kernels, 0, 0)
    os.chown(own_kernels.parent, 12345, 12345)
    refused(log, "belongs to uid 12345", "set XDG_CACHE_HOME to a folder that only you can write")


def test_a_named_pipe_in_place_of_the_file(own_kernels: Path, log) -> None:
    file = stored(own_kernels)
    file.unlink()
    os.mkfifo(file, 0o600)
    refused(log, "is not a regular file; remove it")


def test_a_folder_in_place_of_the_file(own_kernels: Path, log) -> None:
    file = stored(own_kernels)
    file.unlink()
    file.mkdir(mode=0o700)
    refused(log, str(file))
    assert [path.name for path in own_kernels.iterdir()] == [file.name]


def test_an_oversized_file(own_kernels: Path, log, monkeypatch) -> None:
    file = stored(own_kernels)
    monkeypatch.setattr(cache, "_FILE_MAX_BYTES", file.stat().st_size - 1)
    refused(log, "is larger than", "it will be replaced")


@pytest.mark.parametrize("mode", [0o750, 0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_may_enter(own_kernels: Path, log, mode: int) -> None:
    stored(own_kernels)
    own_kernels.chmod(mode)
    refused(log, f"{own_kernels} must belong to you with mode 0700", f"{mode:04o}", "chmod 700")
    own_kernels.chmod(0o700)
    healed()


def test_a_symbolic_link_in_place_of_the_folder(own_kernels: Path, log, tmp_path: Path) -> None:
    stored(own_kernels)
    own_kernels.rename(tmp_path / "moved")
    own_kernels.symlink_to(tmp_path / "moved")
    refused(log, f"{own_kernels} is a symbolic link; remove it")
    (tmp_path / "moved").rename(tmp_path / "gone")
    refused(log, "kernel not cached")


@pytest.mark.parametrize("mode", [0o770, 0o702, 0o777])
def test_a_parent_in_which_others_may_rename(own_kernels: Path, log, mode: int) -> None:
    stored(own_kernels)
    own_kernels.parent.chmod(mode)
    refused(log, f"{own_kernels.parent} belongs to uid", "set XDG_CACHE_HOME")
    own_kernels.parent.chmod(0o700)
    healed()


def test_a_grandparent_in_which_others_may_rename(own_kernels: Path, log, tmp_path: Path) -> None:
    stored(own_kernels)
    tmp_path.chmod(0o777)
    refused(log, f"{tmp_path} belongs to uid", "mode 0777")


def test_a_sticky_parent_is_as_good_as_a_private_one(own_kernels: Path) -> None:
    stored(own_kernels)
    own_kernels.parent.chmod(0o1777)
    healed()


def test_a_link_on_the_way_is_checked_where_it_leads(own_kernels, log, tmp_path, monkeypatch):
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(real)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    assert traced_again()
    healed()
    assert (real / "delassus").is_dir()
    real.chmod(0o777)
    refused(log, f"{real} belongs to uid")


def test_stored_results_that_the_code_does_not_reproduce(own_kernels: Path, log) -> None:
    file = stored(own_kernels)
    key = file.name.removesuffix(".kernel")
    payload = cache.load(key)
    assert payload is not None
    digest, operations, code, *pairs = packing.unpack(payload)
    assert len(pairs) == 3
    for k in range(3):
        changed = list(pairs)
        changed[k] = pairs[k][:-1] + bytes([pairs[k][-1] ^ 1])
        cache.store(key, packing.pack(digest, operations, code, *changed))
        refused(log, "does not reproduce its stored results")
        healed()
    cache.store(key, packing.pack(digest, operations, code))
    refused(log, "0 stored results, expected 3")
    cache.store(key, packing.pack(digest, b"{}", code, *pairs))
    refused(log, "damaged")
    cache.store(key, packing.pack(digest, operations, b"not an object file", *pairs))
    refused(log, "compiled anew")
    cache.store(key, packing.pack(bytes(32), operations, code, *pairs))
    refused(log, "not the kernel of counting for this problem")
    cache.store(key, b"\x01")
    refused(log, "truncated length")
    healed()


@pytest.mark.skipif(ROOT, reason="root may write everywhere")
def test_a_home_that_cannot_be_written(own_kernels: Path, log) -> None:
    own_kernels.parent.parent.chmod(0o500)
    try:
        refused(log, "kernel not cached, it will be compiled at every start")
    finally:
        own_kernels.parent.parent.chmod(0o700)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux's /proc")
def test_a_file_system_that_nobody_can_write(log, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/cache")
    refused(log, "kernel not cached, it will be compiled at every start", "/proc/cache")


def test_a_cache_home_that_is_a_file(tmp_path: Path, log, monkeypatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    refused(log, "kernel not cached, it will be compiled at every start")


def test_a_cache_home_on_a_full_disk(own_kernels: Path, log, monkeypatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    refused(log, "kernel not cached", "No space left on device")
    assert list(own_kernels.iterdir()) == []


def test_no_home_at_all(log, monkeypatch) -> None:
    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    refused(log, "kernel not cached", "Could not determine home directory")


def test_nothing_is_made_below_a_folder_of_others(tmp_path: Path, monkeypatch, log) -> None:
    """Nor is the mode of anything changed there, whatever somebody has put in its place."""
    common = tmp_path / "common"
    common.mkdir()
    common.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(common / "mine" / "cache"))
    refused(log, str(common), "set XDG_CACHE_HOME to a folder that only you can write")
    assert not list(common.iterdir())
