"""The table of outputs: names, shapes and needed inputs of quantities at one state.

Solutions, batches, the node's messages and the command line read this table. Formulas of
outputs that the kernel computes are in :data:`delassus.rbda.outputs.FORMULAS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from delassus.errors import InputError
from delassus.model.spatial import Array


@dataclass(frozen=True)
class Output:
    """A row of the table.

    Attributes
    ----------
    name : name of the port, and of the attribute of a solution.
    axes : one letter per axis of the array: ``"m"`` rows of the contacts, ``"n"`` independent
        velocities, ``"3"`` axes of a vector, ``"i"`` entries of the inputs.
    description : noun phrase with the symbol, for documentation and help texts.
    needs : inputs besides the configuration that the output depends on.
    field : field of the message ``ContactDynamics``; empty for G, which has a separate message.
    in_kernel : whether the kernel computes the output. Λ, J̄ and forces depend on the active
        contacts and are computed from G instead, and from the outputs `of`.
    of : outputs of the kernel besides G from which Λ, J̄ and forces are computed.
    """

    name: str
    axes: str
    description: str
    needs: tuple[str, ...] = ()
    field: str = ""
    in_kernel: bool = True
    of: tuple[str, ...] = ()

    @property
    def row_axes(self) -> tuple[int, ...]:
        """The axes along which rows of contacts lie."""
        return tuple(axis for axis, letter in enumerate(self.axes) if letter == "m")

    def shape(self, m: int, n: int, entries: int = 0) -> tuple[int, ...]:
        """Return the shape for m rows, n independent velocities and entries of the inputs."""
        return tuple({"m": m, "n": n, "3": 3, "i": entries}[axis] for axis in self.axes)


_FORCES = ("rates", "torques", "gravity", "wrenches")
OUTPUTS: dict[str, Output] = {
    output.name: output
    for output in (
        Output("G", "mm", "Delassus matrix J M⁻¹ Jᵀ"),
        Output("a0", "m", "free contact accelerations", _FORCES, "free_acceleration"),
        Output("JdotV", "m", "J̇ ẏ", ("rates",), "bias_acceleration"),
        Output("v", "m", "contact velocities J ẏ", ("rates",)),
        Output("turning", "m", "material accelerations less those of components", ("rates",)),
        Output("qdd0", "n", "free accelerations ÿ", _FORCES, "free_joint_acceleration"),
        Output("J", "mn", "contact Jacobian", (), "jacobian"),
        Output("MinvJT", "nm", "M⁻¹ Jᵀ", (), "response"),
        Output("h", "n", "bias forces C ẏ + g", ("rates", "gravity", "wrenches"), "bias_force"),
        Output("M", "nn", "mass matrix", (), "mass_matrix"),
        Output("dG", "nmm", "derivatives ∂G/∂y"),
        Output("Lambda", "mm", "inertia Λ = G⁻¹", (), "inertia", False),
        Output("Jbar", "nm", "J̄ = M⁻¹ Jᵀ Λ", (), "jbar", False, ("MinvJT",)),
        Output("forces", "m", "contact forces with friction", _FORCES, "forces", False, ("a0",)),
    )
}
"""All outputs by name, in the order of the message ``ContactDynamics``."""


def kernel_outputs() -> list[str]:
    """Return the names of the outputs that a kernel can compute, in the order of its ports."""
    return sorted(name for name, output in OUTPUTS.items() if output.in_kernel)


def needed_outputs(names: Iterable[str]) -> set[str]:
    """Return the outputs of the kernel from which some outputs are computed; unknown ones stay."""
    return {
        needed
        for name in names
        for needed in (
            OUTPUTS[name].of if name in OUTPUTS and not OUTPUTS[name].in_kernel else (name,)
        )
    }


def secondary_outputs() -> list[str]:
    """Return the names of the outputs that ``ContactDynamics`` can hold, in its order."""
    return [name for name, output in OUTPUTS.items() if output.field]


COMPUTED = {"G": "matrix", "Lambda": "inertia()", "Jbar": "jbar()"}
"""Attributes of solutions with the outputs that are not properties, for messages."""


DIRECTIONS: dict[str, str] = {"rates": "n", "torques": "n", "gravity": "3"}
"""Axes of the inputs, besides the configuration, in which outputs are differentiated."""


def _along(output: Output) -> Output:
    needs = [*output.needs, "along", *(f"{n}_along" for n in output.needs if n in DIRECTIONS)]
    words = f"change of {output.description} along a direction"
    return Output(f"{output.name}_dot", output.axes, words, tuple(needs))


SEEDED: dict[str, Output] = {
    output.name: output
    for output in (
        *(_along(OUTPUTS[name]) for name in kernel_outputs() if name != "dG"),
        *(
            Output(f"{name}_bar", axes, f"gradient with respect to {words}")
            for name, axes, words in (
                ("q", "n", "the configuration"),
                ("inputs", "i", "all entries of the inputs"),
                *((name, axes, name) for name, axes in DIRECTIONS.items()),
            )
        ),
    )
}
"""Products with derivatives, whose seeds are inputs: ``X_dot``, the change of an output X along a
direction (jvp), and ``q_bar``, ``rates_bar``, ``torques_bar`` and ``gravity_bar``, the gradients
of Σ X_bar · X over the problem's other outputs X (vjp). ``inputs_bar`` has the partial derivatives
with respect to each entry of the inputs of :attr:`Problem.unseeded
<delassus.problem.Problem.unseeded>`: of quaternions and of dependent joints, too."""


def row_of(name: str) -> Output:
    """Return the row of an output of a kernel, seeded or not."""
    return SEEDED[name] if name in SEEDED else OUTPUTS[name]


class OutputArrays:
    """Base of solutions: a matrix G, and the arrays of the problem's other outputs by name.

    Outputs of a kernel besides G are also read-only properties, which raise an
    :class:`~delassus.errors.InputError` where the problem lacks the output.
    """

    __slots__ = ()
    matrix: Array
    secondary: dict[str, Array]

    # Declarations for type checkers of the properties that are made below from the table.
    J: Array
    JdotV: Array
    M: Array
    MinvJT: Array
    a0: Array
    dG: Array
    h: Array
    qdd0: Array
    turning: Array
    v: Array

    def output(self, name: str) -> Array:
        """Return the array of an output of the kernel.

        Raises
        ------
        InputError
            If the problem does not have the output; shows the argument that adds the output.
        """
        array = self.matrix if name == "G" else self.secondary.get(name)
        if array is None:
            raise InputError(f"this needs the output {name!r}: Problem(…, outputs=[{name!r}, …])")
        return array

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        """Refuse the conversion to an array."""
        raise InputError("a solution is not an array; write solution.matrix")

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse an unknown attribute; for an output that is a method, the error names it."""
        computed = COMPUTED.get(name, "")
        there = computed.removesuffix("()") in (*dir(type(self)), "matrix")
        write = f"; write solution.{computed}" if computed and there else ""
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{write}")


def _property(output: Output) -> property:
    """Return the property of solutions for a row of the table."""
    shape = f"({', '.join(output.axes)}{',' * (len(output.axes) == 1)})"
    words = f"{output.description}, {shape.replace('m', 'k')}; the problem must have this output."

    def read(self: OutputArrays) -> Array:
        return self.output(output.name)

    return property(read, doc=words[0].upper() + words[1:])


for _name in kernel_outputs():
    if _name != "G":
        setattr(OutputArrays, _name, _property(OUTPUTS[_name]))
