"""How fast this machine is beside the one on which the cluster paper's library was timed.

That library is not run here. A peer was timed on both machines: Pinocchio in C++, on open chains.
What it takes now, divided by what it took there, turns times of there into times of here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks import cases, compilers, pinocchio_peer, timing
from benchmarks.cases import AbsentError
from benchmarks.pinocchio_peer import PinocchioProblem

THERE = {"panda": 0.86e-6, "solo12": 2.38e-6, "anymal": 2.34e-6, "talos": 3.77e-6,
         "talos24": 5.39e-6}  # fmt: skip
"""Minima of Pinocchio 4.1's best C++ route there (clang, -march=native), by case [s]."""
_POOL = 4
"""Configurations. Few, for samples as short as those of our kernels: a long one would hold more of
what else the machine does."""


@dataclass(frozen=True)
class MachineSpeed:
    """Times of the peer on this machine.

    Attributes
    ----------
    here : minima of its best route, by case [s]; empty if it could not be timed.
    reason : why not.
    """

    here: Mapping[str, float] = field(default_factory=dict)
    reason: str = ""

    @property
    def factor(self) -> float | None:
        """Return how many times longer the peer takes here, None if unknown.

        Times of there times this are those to be expected here. It is the least of all cases:
        a disturbed measurement of the peer must not flatter us.
        """
        return min((time / THERE[name] for name, time in self.here.items()), default=None)

    def least(self, other: MachineSpeed) -> MachineSpeed:
        """Return the smaller times of two runs: what disturbed one of them is left out."""
        if not (self.here and other.here):
            return self if self.here else other
        return MachineSpeed({n: min(self.here[n], other.here[n]) for n in self.here})


def measured(seconds: float) -> MachineSpeed:
    """Time the peer; `seconds` per case and route."""
    try:
        if not compilers.find().is_clang:
            return MachineSpeed(reason="there it was compiled by clang, which is not at hand here")
        library = pinocchio_peer.compilation().library()
        here = {}
        for case in cases.chosen(",".join(THERE)):
            problem = case.load()
            peer = PinocchioProblem(problem)
            inputs = peer.configurations(cases.pool(problem, _POOL))
            routines = pinocchio_peer.routines(library, peer, problem.contacts.rows, inputs)
            samplers = {name: timing.warm(routine) for name, routine in routines.items()}
            times = timing.measure(samplers, seconds)
            here[case.name] = min(each.minimum for each in times.values())
    except AbsentError as error:
        return MachineSpeed(reason=str(error))
    return MachineSpeed(here)
