"""Counts how often something is done, for tests of work that must not be repeated."""

from __future__ import annotations

import difflib

import pytest

from delassus.model.loops import LoopClosure


def searches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names that a similar one is looked for from now on."""
    found: list[str] = []
    search = difflib.get_close_matches

    def counted(name, *arguments, **options):
        found.append(name)
        return search(name, *arguments, **options)

    monkeypatch.setattr(difflib, "get_close_matches", counted)
    return found


def loop_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by one each time the rows of a loop are computed."""
    found: list[int] = []
    plain = LoopClosure._loop_rows

    def counted(self, number, q):
        found.append(1)
        return plain(self, number, q)

    monkeypatch.setattr(LoopClosure, "_loop_rows", counted)
    return found
