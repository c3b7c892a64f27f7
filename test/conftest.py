"""Fixtures and options of all tests."""

from __future__ import annotations

import importlib
import os
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Of two runs of `make test` both try the same examples, however slow the machine is; chance has
# its turn in `make test-all`.
settings.register_profile(
    "chance", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False
)
settings.register_profile("repeatable", settings.get_profile("chance"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

TESTS = Path(__file__).resolve().parent
# For benchmarks, examples and tools, which are not installed; behind the package, which is.
_FOLDERS = ("", "examples", "tools", "test/component/inputs")
sys.path += [str(TESTS.parent / folder) for folder in _FOLDERS]

_OPTIONAL = frozenset(
    """
    PIL builtin_interfaces casadi daqp delassus_msgs delassus_msgs_py diagnostic_msgs
    distributed geometry_msgs h5py jax launch launch_pytest launch_ros llvmlite matplotlib mcap
    mpmath mujoco nav_msgs pinocchio proxsuite pyarrow qpsolvers rclpy rich rosbag2_py rosbags
    rosidl_generator_py rosidl_runtime_py scipy sensor_msgs sphinx sros2 std_msgs sybil torch
    trajectory_msgs trimesh viser visualization_msgs websockets xacro yaml
    """.split()
)
"""Packages without which tests that import them, or that the marker needs names, are skipped."""

_OWN_CACHE = {"algorithms", "closure", "compiler", "rbda", "solver"}
"""Folders of tests whose kernels are mostly of robots that no other folder has."""
_FIRST = ("sim", "node", "estimator", "cli", "tools", "docs", "benchmarks", "compiler")
"""Folders whose tests start programs and wait, in this order before all other folders: a run ends
with short files, so that no worker is left alone with a long one, and waiting meets computing."""


def _folder(parts: Sequence[str]) -> str:
    """Return the folder of a test, given the parts of its path in this folder."""
    return parts[1] if parts[0] in ("library", "component") else parts[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort tests by their folders; see `_FIRST`. The Makefile keeps xdist from sorting again."""
    place = {name: k for k, name in enumerate(_FIRST)}

    def of(item: pytest.Item) -> int:
        parts = item.path.relative_to(TESTS.parent).parts
        return place.get(_folder(parts[1:]) if parts[0] == TESTS.name else "", len(place))

    items.sort(key=of)


def _skip_without(error: BaseException | None) -> None:
    """Skip the test or file if the error is that an optional package was not found."""
    name = (isinstance(error, ModuleNotFoundError) and error.name or "").partition(".")[0]
    if name in _OPTIONAL:
        pytest.skip(f"needs {name}", allow_module_level=True)


class _File(pytest.Module):
    """A file of tests, which is skipped where an optional package that it imports is missing."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        try:
            return super().collect()
        except self.CollectError as error:
            _skip_without(error.__cause__)
            raise


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return _File.from_parent(parent, path=module_path)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test without the packages of its marker needs."""
    for name in (name for marker in item.iter_markers("needs") for name in marker.args):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            _skip_without(error)
            raise


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Skip a test that imports an optional package which is missing."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        _skip_without(error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    """Skip tests whose fixture imports an optional package which is missing."""
    try:
        return (yield)
    except ModuleNotFoundError as error:
        _skip_without(error)
        raise


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report how many tests and files were not run, by the package that they need."""
    reasons = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    words = [reason[2] if isinstance(reason, tuple) else str(reason) for reason in reasons]
    names = Counter(text.rpartition("needs ")[2] for text in words if ": needs " in text)
    if names:
        counts = ", ".join(f"{name} {count}" for name, count in names.most_common())
        terminalreporter.write_line(f"tests and files not run, by the missing package: {counts}")


@pytest.fixture
def own_algorithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget with the test which algorithms it registers."""
    from delassus.algorithms import registry

    registry.names()  # which fills the tables
    for table in ("_registry", "_aliases", "_broken"):
        monkeypatch.setattr(registry, table, dict(getattr(registry, table)))


@pytest.fixture
def own_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder for kernels of this test alone, which the first of them makes."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "delassus"


@pytest.fixture(scope="module", autouse=True)
def one_cache_of_kernels(
    request: pytest.FixtureRequest, pytestconfig: pytest.Config
) -> Iterator[None]:
    """Build a kernel once for all processes of all runs, in pytest's cache, in no user's.

    Two thirds of the processor time of a run was the same machine code again. The cache is keyed
    by the sources, so code that has changed is built; `make clean` and `--cache-clear` empty it.
    Folders of tests that build many kernels have a cache of their own, as a cache that held the
    kernels of all tests, about 700, would come near the number of files from which on it removes
    the oldest; the other folders share what is mostly the quadruped of the demo.
    """
    kernels = pytestconfig.cache.mkdir("kernels")  # type: ignore[union-attr]
    first = _folder(request.path.relative_to(TESTS).parts)
    folder = kernels / (first if first in _OWN_CACHE else "shared")
    folder.mkdir(mode=0o700, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield
