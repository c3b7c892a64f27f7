"""The registry: built-in algorithms, back ends that may be absent, third parties' entry points."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hanging import HANG_S
from small import problem

import delassus
from delassus import DelassusSolver, algorithms
from delassus.algorithms import Algorithm, TracedAlgorithm, registry
from delassus.algorithms.kjr import kjr
from delassus.compiler import build
from delassus.errors import AlgorithmError

PLUG_IN = """
from delassus.algorithms import register
from delassus.algorithms.dense import Dense
print("plug-ins may print")

@register("theirs")
class Theirs(Dense):
    '''Third party.'''
"""


def test_built_in_algorithms_are_there() -> None:
    names = algorithms.names()
    assert {"dense", "pv_osimr"} <= set(names)
    assert list(names) == sorted(names)
    for name in names:
        algorithm = algorithms.get(name)
        assert algorithm.name == name
        assert isinstance(algorithm, Algorithm)
        assert algorithm.version >= 1
        assert (algorithm.definition.__doc__ or "").strip(), "the CLI shows this line"
    assert not set(names) & set(algorithms.unavailable())


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(AlgorithmError) as caught:
        algorithms.get("pv_osimrr")
    said = str(caught.value)
    assert said.startswith("unknown algorithm 'pv_osimrr'; did you mean 'pv_osimr'? algorithms: ")
    assert all(name in said for name in algorithms.names())


def test_a_taken_name_is_refused_even_to_a_class_of_the_same_name(own_algorithms) -> None:
    source = "from delassus.algorithms import TracedAlgorithm\n"
    source += "class Dense(TracedAlgorithm):\n    def evaluate(self, problem, x): return {}\n"
    scope = {"__name__": "theirs"}
    exec(source, scope)
    with pytest.raises(AlgorithmError, match="'dense' is taken by delassus.algorithms.dense"):
        algorithms.register("dense")(scope["Dense"])
    assert type(algorithms.get("dense")).__module__ == "delassus.algorithms.dense"


def test_a_module_may_be_loaded_again(own_algorithms) -> None:
    again = type(algorithms.get("dense"))
    assert algorithms.register("dense")(again) is again
    assert algorithms.get("dense").name == "dense"


ALIASES = {
    "c_efpa": "efpa", "c_pv_osimr": "pv_osimr", "projection": "ltl", "ltl_osim": "ltl",
}  # fmt: skip


def test_the_papers_names_are_aliases() -> None:
    assert algorithms.aliases() == ALIASES
    for alias, name in ALIASES.items():
        assert algorithms.get(alias) is algorithms.get(name)
        assert algorithms.registered(alias) == algorithms.registered(name) == name
        assert alias not in algorithms.names()


@pytest.mark.parametrize("alias", ALIASES)
def test_a_solver_reports_the_algorithm_that_was_asked_for(alias: str) -> None:
    """Solver, bound solver, solution, error, and a copy of the solver."""
    solver = DelassusSolver(problem(), alias)
    q = problem().robot.neutral()
    bound = solver.bind()
    found = (
        solver.algorithm,
        solver.solve(q).algorithm,
        bound.solve(q).algorithm,
        pickle.loads(pickle.dumps(solver)).algorithm,
    )
    assert found == (alias,) * 4
    assert repr(alias) in repr(solver)


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_takes_the_kernel_that_its_algorithm_has_built(
    alias: str, monkeypatch, own_kernels: Path
) -> None:
    expected = DelassusSolver(problem(), ALIASES[alias])
    stored = sorted(own_kernels.iterdir())
    assert stored
    built: list[object] = []
    monkeypatch.setattr(build, "_build", lambda *given: built.append(given))
    again = DelassusSolver(problem(), alias)
    assert built == []
    assert sorted(own_kernels.iterdir()) == stored
    q = problem().robot.neutral() + 0.1
    assert np.array_equal(again.solve(q).matrix, expected.solve(q).matrix)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("PV-OSIMr", "pv_osimr"), ("PV-OSIM", "pv_osim"), ("EFPA", "efpa"), ("KJR", "kjr"),
        ("LTL-OSIM", "ltl_osim"), ("C-EFPA", "c_efpa"), ("Projection", "projection"),
    ],
)  # fmt: skip
def test_the_papers_spellings_are_taken(written: str, meant: str) -> None:
    assert algorithms.spelling(written) == meant
    assert algorithms.get(written) is algorithms.get(meant)
    assert DelassusSolver(problem(), written).algorithm == meant


def test_an_exact_name_comes_before_another_spelling(own_algorithms) -> None:
    @algorithms.register("EFPA")
    def theirs(tree, K, x):
        """Another one."""
        return kjr(tree, K, x)

    assert [algorithms.get(name).name for name in ("EFPA", "efpa")] == ["EFPA", "efpa"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("C-EFPAs", "c_efpa"), ("PV-OSIMrr", "pv_osimr"), ("C-PVOSIMr", "c_pv_osimr")],
)
def test_a_similar_name_is_hinted_at_whatever_its_case(written: str, meant: str) -> None:
    with pytest.raises(AlgorithmError, match=f"unknown .*'{written}'; did you mean '{meant}'?"):
        algorithms.get(written)


def test_a_function_of_the_tree_is_an_algorithm(own_algorithms) -> None:
    @algorithms.register("theirs", aliases=("mine",), version=3)
    def theirs(tree, K, x):
        """KJR again."""
        return kjr(tree, K, x)

    found = algorithms.get("mine")
    assert (found.name, found.version, found.clusters) == ("theirs", 3, False)
    q = problem().robot.neutral() + 0.1
    expected = DelassusSolver(problem(), "dense").solve(q).matrix
    G = DelassusSolver(problem(), "theirs", cache=False).solve(q).matrix
    assert np.abs(G - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("taken", ["efpa", "projection"])
def test_a_name_that_is_taken_is_refused_also_as_an_alias(own_algorithms, taken: str) -> None:
    with pytest.raises(AlgorithmError, match=f"{taken!r} is taken by delassus.algorithms"):
        algorithms.register("theirs", aliases=(taken,))(lambda tree, K, x: [])
    assert "theirs" not in algorithms.names()


def test_an_algorithm_that_refuses_gives_its_reason(own_algorithms) -> None:
    @algorithms.register("picky")
    class Picky(TracedAlgorithm):
        """Refuses everything."""

        def supports(self, problem):
            return f"robot {problem.robot.name!r} is not to its taste"

        def evaluate(self, problem, x):
            return {}

    with pytest.raises(AlgorithmError, match="'picky' cannot solve .* 'walker' is not to its ta"):
        DelassusSolver(problem(), "picky")


def test_an_algorithm_must_be_of_one_of_the_two_kinds(own_algorithms) -> None:
    @algorithms.register("neither")
    class Neither(Algorithm):
        """Is neither traced nor numeric."""

    with pytest.raises(AlgorithmError, match="'neither' must be a TracedAlgorithm or a Numeric"):
        DelassusSolver(problem(), "neither")


# Discovery happens once per process, so these run in processes of their own.


def plug_in(folder: Path, name: str, entry_points: dict[str, str], **modules: str) -> None:
    """Lay out an installed distribution with entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{key} = {value}" for key, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join(["[delassus.algorithms]", *lines, ""]))
    for module, source in modules.items():
        (folder / f"{module}.py").write_text(textwrap.dedent(source))


def run(folder: Path, code: str, block: str = "") -> str:
    """Run code in a Python that finds the distributions of a folder; return what it prints."""
    paths = [str(folder), str(Path(delassus.__file__).parents[1])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    blocked = f"import sys; sys.modules[{block!r}] = None\n" if block else ""
    result = subprocess.run(
        [sys.executable, "-c", blocked + textwrap.dedent(code)],
        env=environment, capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def test_third_parties_join_by_entry_point_and_broken_ones_do_no_harm(tmp_path: Path) -> None:
    plug_in(tmp_path, "good", {"theirs": "good_module"}, good_module=PLUG_IN)
    plug_in(
        tmp_path, "bad", {"crashing": "bad_module", "absent": "no_such_module:Name"},
        bad_module="raise ValueError('not today')",
    )  # fmt: skip
    plug_in(
        tmp_path, "greedy", {"greedy": "greedy_module"},
        greedy_module=PLUG_IN.replace("theirs", "pv_osimr"),
    )  # fmt: skip
    said = run(
        tmp_path,
        """
        from delassus import algorithms
        print(algorithms.names())
        print(algorithms.unavailable())
        print(algorithms.get("pv_osimr").definition.__module__)
        for name in ("crashing", "absent"):
            try:
                algorithms.get(name)
            except algorithms.registry.AlgorithmError as error:
                print(error)
        """,
    )
    assert "'dense', " in said and "'theirs'" in said
    assert "algorithm 'crashing' of bad_module cannot be loaded: not today" in said
    assert "'crashing' is not available: ValueError in bad_module: not today" in said
    assert "'absent' is not available: ModuleNotFoundError in no_such_module:Name" in said
    assert "algorithm name 'pv_osimr' is taken by delassus.algorithms.pv_osimr" in said
    assert "\ndelassus.algorithms.pv_osimr\n" in said


def test_a_third_party_algorithm_passes_the_conformance_suite(tmp_path: Path) -> None:
    plug_in(tmp_path, "good", {"theirs": "good_module"}, good_module=PLUG_IN)
    code = """
        from delassus.testing import CHECKS
        for check in (CHECKS[0], CHECKS[3]):
            check("theirs")
        print("conforms")
        """
    assert "conforms" in run(tmp_path, code)


def test_a_back_end_without_its_package_is_absent_with_the_reason(tmp_path: Path) -> None:
    code = """
        from delassus import algorithms
        assert "pinocchio" not in algorithms.names()
        print(algorithms.unavailable()["pinocchio"])
        try:
            algorithms.get("pinocchio")
        except algorithms.registry.AlgorithmError as error:
            print(error)
        """
    said = run(tmp_path, code, block="pinocchio")
    assert "'pinocchio' is not available: needs Pinocchio: pip install pin; ROS: ros-$ROS" in said


@pytest.mark.needs("pinocchio")
def test_a_back_end_is_not_loaded_before_it_is_used(tmp_path: Path) -> None:
    code = """
        import sys
        from delassus import algorithms
        assert "pinocchio" in algorithms.names() and algorithms.get("pinocchio").version
        print("loaded" if "pinocchio" in sys.modules else "not loaded")
        """
    assert "not loaded" in run(tmp_path, code)


def test_an_entry_point_that_registers_nothing_is_named(tmp_path: Path) -> None:
    plug_in(tmp_path, "empty", {"lazy": "lazy_module"}, lazy_module="x = 1\n")
    plug_in(tmp_path, "good", {"theirs": "good_module"}, good_module=PLUG_IN)
    plug_in(tmp_path, "early", {"first": "early_module"},
            early_module=PLUG_IN.replace("theirs", "first"))  # fmt: skip
    code = """
        import early_module
        from delassus import algorithms
        print(algorithms.names())
        absent = algorithms.unavailable()
        print({name: absent[name] for name in absent if name != "pinocchio"})
        """
    said = run(tmp_path, code)
    assert "'first'" in said and "'theirs'" in said
    assert "{'lazy': 'lazy_module registers no algorithm; use @register'}" in said


def test_a_plug_in_may_look_around_and_threads_find_everything(tmp_path: Path) -> None:
    curious = "from delassus import algorithms\nprint('saw', algorithms.names())\n"
    plug_in(tmp_path, "curious", {"curious": "curious"}, curious=curious + PLUG_IN)
    code = """
        from concurrent.futures import ThreadPoolExecutor
        from delassus import algorithms
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: algorithms.names(), range(8)))
        assert len(set(found)) == 1 and "theirs" in found[0], found
        print("same for all")
        """
    said = run(tmp_path, code)
    assert "saw (" in said and "same for all" in said


def test_an_interrupted_discovery_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(registry, "_discovered", False)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(registry, "_import_all", interrupted)
        registry.names()
    assert not registry._discovered
    assert "pv_osimr" in registry.names() and registry._discovered
