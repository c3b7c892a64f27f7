"""The command `delassus` on robots with couplings and loops."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from cli_support import LEG, ROOT, answer, output, printed_matrix, refusal
from linkages import COUPLER, CRANK, GROUND, ROCKER, assembled, four_bar_urdf

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.algorithms.dense import definition
from delassus.errors import InputError
from delassus.rotor_report import rotor_report
from delassus_ros.verbs.main import main

JOINTS = ("hip_roll", "hip_pitch", "knee", "ankle")
PIN = "loops:\n  - {name: pin, frames: [coupler_end, rocker_end], type: point}\n"
LOOPS = PIN + "independent: [crank]\n"
REFERENCE = f"--reference=crank=0.8,coupler={assembled(0.8)[0]},rocker={assembled(0.8)[1]}"


@pytest.fixture
def four_bar(tmp_path: Path) -> tuple[str, ...]:
    """Return the arguments that name a four-bar, its loop in a side file."""
    urdf, loops = tmp_path / "four_bar.urdf", tmp_path / "loops.yaml"
    urdf.write_text(four_bar_urdf())
    loops.write_text(LOOPS)
    return str(urdf), "--base", "fixed", "--loops", str(loops)


def four_bar_problem() -> Problem:
    robot = Robot.from_urdf(four_bar_urdf(), "fixed", loops=LOOPS)
    return Problem(robot, [Contact("coupler_end", "coupler_end")])


def test_inspect_shows_what_is_tied_and_no_rotor_as_a_place_for_contacts(capsys, four_bar):
    out = output(capsys, "inspect", *four_bar)
    assert re.search(r"independent +follow +tied by +ratios\n", out)
    assert re.search(r"\n  crank +coupler, rocker +pin +depend on q\n", out)
    out = output(capsys, "inspect", LEG, "--base", "fixed")
    assert re.search(r"\n  knee +knee_rotor +knee_gear +constant\n", out)
    assert out.endswith("candidates for --contact:\n  sole:surface  by its name\n")


def test_inspect_shows_the_same_however_loops_are_closed(capsys, four_bar):
    expected = output(capsys, "inspect", *four_bar)
    assert output(capsys, "inspect", *four_bar, "--loops-as", "rows") == expected


def test_inspect_of_an_open_chain_without_ties(capsys, four_bar):
    out = output(capsys, "inspect", *four_bar[:3])
    assert "tied" not in out


@pytest.mark.parametrize("how", ["rows", "cheapest"])
def test_loops_by_rows_have_the_matrix_of_clusters(capsys, four_bar, how) -> None:
    given = ("compute", *four_bar, "--contact", "coupler_end", REFERENCE, "--q", "crank=0.95")
    expected = output(capsys, *given, "--algorithm", "ltl")
    found = output(capsys, *given, "--algorithm", "kjr", "--loops-as", how)
    np.testing.assert_allclose(printed_matrix(found, 3), printed_matrix(expected, 3), atol=1e-6)
    loops = [line for line in found.splitlines() if line.startswith("loops")]
    assert loops == [line for line in expected.splitlines() if line.startswith("loops")]


def test_dynamics_are_exported_beside_a_kernel_with_loops_by_rows(capsys, four_bar, tmp_path):
    """Dynamics have no rows: their loops are closed by clusters."""
    said = output(
        capsys, "export", *four_bar, "--contact", "coupler_end", "-o", str(tmp_path / "bar.o"),
        "--loops-as", "rows", "--dynamics", "gravity_torques",
    )  # fmt: skip
    assert "gravity_torques in" in said
    header = (tmp_path / "bar_dynamics.h").read_text()
    assert 'bar_dynamics_velocities[1] = {"crank"}' in header


@pytest.mark.parametrize("given", [("--q", "crank=0.95"), ("--q=0.95,0,0",)])
def test_compute_reports_positions_that_close_the_loop(capsys, four_bar, given):
    out = output(capsys, "compute", *four_bar, "--contact", "coupler_end", REFERENCE, *given)
    line = next(line for line in out.splitlines() if line.startswith("loops"))
    found = {n: float(v) for n, v in re.findall(r"(\w+)=(-?[\d.]+)", line.partition("warning")[0])}
    assert set(found) == {"coupler", "rocker"}
    coupler, rocker = assembled(0.95)
    assert found["coupler"] == pytest.approx(coupler, 1e-5)
    assert found["rocker"] == pytest.approx(rocker, 1e-5)
    # All of q given, but not closed: a warning that names the loop.
    assert ("warning: loop 'pin'" in line) == (given[0] != "--q")
    q = np.array([0.95, coupler, rocker])
    expected = definition(four_bar_problem(), {"q": q})
    np.testing.assert_allclose(
        printed_matrix(out, 3), expected, atol=1e-5 * np.abs(expected).max()
    )
    assert re.search(r"algorithm +pv_osimr\n", out)


def test_compute_from_a_dependent_joint(capsys, four_bar):
    """Slow side first: the rocker is given, the crank follows."""
    rocker = assembled(0.9)[1]
    out = output(capsys, "compute", *four_bar, "--contact", "coupler_end", REFERENCE,
                 "--q", f"rocker={rocker}")  # fmt: skip
    assert float(re.search(r"crank=(-?[\d.]+)", out)[1]) == pytest.approx(0.9, abs=1e-5)


def test_compute_at_the_reference_without_q(capsys, four_bar):
    out = output(capsys, "compute", *four_bar, "--contact", "coupler_end", REFERENCE)
    assert re.search(r"loops +solved for coupler=.*, rocker=.*; residual", out)


def test_singular_reference_refused_with_the_loop(capsys, four_bar, tmp_path):
    """Crank and coupler in line: the rocker cannot lead."""
    loops = tmp_path / "rocker.yaml"
    loops.write_text(PIN + "independent: [rocker]\n")
    reach = CRANK + COUPLER
    crank = np.arccos((GROUND**2 + reach**2 - ROCKER**2) / (2 * GROUND * reach))
    rocker = np.arctan2(reach * np.sin(crank), reach * np.cos(crank) - GROUND)
    dead = ("compute", *four_bar[:4], str(loops), "--contact", "coupler_end",
            "--reference", f"crank={crank},coupler=0,rocker={rocker}")  # fmt: skip
    assert re.search(r"'pin' is singular.*--reference joint=position", refusal(capsys, *dead))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (f"{REFERENCE} --q rocker=1.0", "the loops cannot be closed.*pin"),
        (f"{REFERENCE} --q crnk=1", "unknown joint 'crnk'; did you mean 'crank'"),
        ("--reference crank", "--reference: 'crank' has no value; write crank=…"),
        ("--reference crank=1,crank=2", "--reference: joint 'crank' is given twice"),
        (
            f"{REFERENCE} --algorithm kjr",
            "open chains.*use auto, efpa, ltl or pv_osimr",
        ),
    ],
)
def test_compute_refused(capsys, four_bar, options: str, words: str) -> None:
    argv = ("compute", *four_bar, "--contact", "coupler_end", *options.split())
    assert re.search(words, refusal(capsys, *argv))


def test_compare_holds_the_cluster_algorithms_against_the_definition(capsys, four_bar):
    out = output(capsys, "compare", *four_bar, "--contact", "coupler_end", REFERENCE,
                 "--calls", "20")  # fmt: skip
    for name in ("auto", "efpa", "pv_osimr", "ltl"):
        line = next(line for line in out.splitlines() if line.startswith(name + " "))
        assert float(line.split()[-1]) < 1e-10
    assert "error to the definition" in out and "that close the loops" in out
    assert re.search(r"\n  kjr +it is for open chains", out)


def test_compare_shows_the_error_of_the_approximation(capsys):
    out = output(capsys, "compare", LEG, "--base", "fixed", "--contact", "sole", "--calls", "20")
    errors = {line.split()[0]: line.split()[-1] for line in out.splitlines()[3:14] if line}
    assert float(errors["pv_osimr"]) < 1e-10
    assert 1e-3 < float(errors["reflected_inertia"]) < 0.5


def test_rotors_prints_what_the_report_holds(capsys):
    out = output(capsys, "rotors", LEG, "--base", "fixed", "--contact", "sole")
    robot = Robot.from_urdf(LEG, "fixed")
    report = rotor_report(robot)
    for name, (exact, usual) in report.armatures.items():
        assert re.search(rf"\n{name} +{exact:.9g} +{usual:.9g}\n", out)
    words = [line.split() for line in out.splitlines()]
    rows = {w[0]: [float(v) for v in w[1:]] for w in words if len(w) == 11 and w[0] in JOINTS}
    for joint, body in zip(report.robot.joints, report.robot.bodies, strict=True):
        i = body.inertia.rotational
        off_diagonal = i[0, 1], i[0, 2], i[1, 2]
        expected = [body.inertia.mass, *body.inertia.moment, *np.diag(i), *off_diagonal]
        np.testing.assert_allclose(rows[joint.name], expected, rtol=1e-8, atol=1e-12)
    error = report.usual_error([Contact("sole", "sole")])
    with pytest.raises(InputError, match="samples is 0"):
        report.usual_error([Contact("sole", "sole")], samples=0)
    assert f"off by {error:.2%}" in out


def test_the_example_of_rotors_runs(capsys, monkeypatch):
    with pytest.raises(SystemExit):
        main(["rotors", "--help"])
    _, example = capsys.readouterr().out.split("example:\n  delassus ")
    monkeypatch.chdir(ROOT)
    assert "G of sole is off by" in output(capsys, *example.split())


def test_rotors_of_a_side_file(capsys, tmp_path):
    """The leg's ankle, its coupling said in the side file instead."""
    text = Path(LEG).read_text()
    start, end = text.index('<coupling name="ankle_gear">'), text.index('<link name="sole"/>')
    urdf, loops = tmp_path / "leg.urdf", tmp_path / "leg.yaml"
    urdf.write_text(text[:start] + text[end:])
    loops.write_text("couplings: [{name: ankle_gear, joints: {ankle_rotor: 1, ankle: -12}}]\n")
    whole = output(capsys, "rotors", LEG, "--base", "fixed")
    out = output(capsys, "rotors", str(urdf), "--base", "fixed", "--loops", str(loops))
    assert out == whole
    assert "instead, G of sole is off by 4.19%" in out


def test_rotors_of_other_robots(capsys, four_bar):
    end = ("--contact", "coupler_end")
    assert "no ordinary tree: joints 'crank', 'coupler', 'rocker'" in refusal(
        capsys, "rotors", *four_bar, *end
    )
    assert main(["rotors", *four_bar[:3]]) == 0
    assert "no joint turns a rotor" in capsys.readouterr().out


CONFIG = """
/**:
  ros__parameters:
    base: fixed
    algorithm: pv_osimr
    contacts: {{names: [end], end: {{frame: coupler_end, kind: point}}}}
{loops}
"""


@pytest.mark.parametrize("where", ["option", "file"])
def test_export_takes_the_loops(capsys, tmp_path, four_bar, where):
    urdf, loops = four_bar[0], four_bar[4]
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG.format(loops=f"    loops: {loops}" if where == "file" else ""))
    target, header = str(tmp_path / "k.o"), str(tmp_path / "k.h")
    extra = ("--loops", loops) if where == "option" else ()
    out = output(capsys, "export", str(config), "--urdf", urdf, "-o", target, "--header", header,
                 *extra)  # fmt: skip
    assert "positions that close the loops" in out
    count = DelassusSolver(four_bar_problem(), "pv_osimr").operations
    assert count is not None and Path(target).stat().st_size > 1000
    assert "pv_osimr" in out


@pytest.mark.needs("matplotlib")
def test_plot_is_on_the_branch_of_the_reference(capsys, four_bar, tmp_path: Path) -> None:
    way = ("--contact", "coupler_end", "--to", "crank=0.5", "-o", str(tmp_path / "bar.svg"))
    found = []
    for side in (1.0, -1.0):
        coupler, rocker = assembled(0.8, side)
        reference = f"--reference=crank=0.8,coupler={coupler},rocker={rocker}"
        found.append(answer(capsys, "plot", *four_bar, *way, reference))
        # Where the crank is drawn, on this branch; it is the only freedom.
        s = DelassusSolver(four_bar_problem()).solve([0.8, coupler, rocker])
        lightest = found[-1]["masses"]["coupler_end"][0]
        assert lightest == pytest.approx(1.0 / np.linalg.eigvalsh(s.matrix)[-1], rel=1e-6)
        assert len(found[-1]["conditions"]) == 200
    masses = [each["masses"]["coupler_end"][0] for each in found]
    assert abs(masses[0] - masses[1]) > 1e-3 * masses[0]
