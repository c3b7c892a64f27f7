"""Machine code that is kept from one process to the next: its key, storing, loading, checking."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from delassus_ros.compiler import cache
from delassus_ros.compiler.jit import host_identity
from delassus_ros.compiler.sources import Source, package_source
from delassus_ros.errors import CompilerError

_REPLAYED = 3
"""Results kept with code."""
_log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True)
class CachedCode(Generic[T]):
    """How one piece of machine code becomes bytes and is taken from them.

    Attributes
    ----------
    what : what it is, for the log.
    origin : what it is compiled from.
    parts : the code and, in JSON's types, what else it takes to load it.
    load : makes it of both.
    result : what it returns at the sample inputs of a seed.
    """

    what: str
    origin: bytes
    parts: Callable[[T], tuple[bytes, dict[str, Any]]]
    load: Callable[[bytes, dict[str, Any]], T]
    result: Callable[[T, int], bytes]

    def key(self, *more: bytes, source: Source | None = None) -> str | None:
        """Return its cache key, or None if a source has changed since this process began.

        The process may run what the file held before, and would keep that as the new code.

        Parameters
        ----------
        more : what it depends on besides the origin, the processor and this package's source.
        source : a further source that it depends on.
        """
        sources = [package_source()] + ([] if source is None else [source])
        if not all(each.is_what_runs for each in sources):
            _log.info("%s not cached: its source has changed since this process began", self.what)
            return None
        digest = hashlib.sha256(self._digest)
        for part in (*more, *(each.digest for each in sources), host_identity().encode()):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()

    def kept(self, key: str | None, make: Callable[[], T]) -> T:
        """Return what the disk cache has, else what `make` returns, which is then stored."""
        made = self.found(key)
        if made is None:
            made = make()
            if key is not None:
                cache.store(key, self.packed(made))
        return made

    def found(self, key: str | None) -> T | None:
        """Return what the disk cache has, or None if it is to be made, or made anew."""
        payload = None if key is None else cache.load(key)
        if payload is None:
            return None
        try:
            return self.unpacked(payload)
        except CompilerError as error:
            _log.warning("cached %s compiled anew: %s", self.what, error)
            return None

    def packed(self, made: T) -> bytes:
        """Return it as bytes: hash of the origin, description, code, then results."""
        code, description = self.parts(made)
        results = (self.result(made, seed) for seed in range(1, 1 + _REPLAYED))
        return cache.pack(self._digest, json.dumps(description).encode(), code, *results)

    def unpacked(self, payload: bytes) -> T:
        """Return what was :meth:`packed`, once it has reproduced its results bit by bit.

        Raises
        ------
        CompilerError
            If the payload is damaged or of something else, or it does not reproduce them. It is
            machine code: load only what this user's own processes wrote.
        """
        try:
            digest, description, code, *results = cache.unpack(payload)
            if len(results) != _REPLAYED:
                raise ValueError(f"{len(results)} stored results, expected {_REPLAYED}")
            if digest != self._digest:
                raise CompilerError(f"the compiled code is not the {self.what} for this problem")
            loaded = self.load(code, json.loads(description))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CompilerError(f"the compiled code is damaged: {error}") from error
        for seed, result in enumerate(results, start=1):
            if self.result(loaded, seed) != result:
                raise CompilerError("the compiled code does not reproduce its stored results")
        return loaded

    @property
    def _digest(self) -> bytes:
        return hashlib.sha256(self.what.encode() + b"\0" + self.origin).digest()
