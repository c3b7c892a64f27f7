"""Programs of the compiler: made from a problem, and run one operation at a time."""

from __future__ import annotations

import math

import numpy as np

from delassus import Problem, algorithms
from delassus.compiler.ir.program import Instruction, Program
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes.vectorize import vectorized


def program(problem: Problem, name: str = "pv_osimr") -> Program:
    """Return the program of an algorithm for one configuration."""
    found = vectorized(problem, trace(problem, algorithms.get(name)), [0])
    assert isinstance(found, Program)
    return found


def run(program: Program, inputs: np.ndarray) -> np.ndarray:
    """Return the outputs of a program, one operation at a time."""
    values: list[np.ndarray] = []
    turned: list[tuple[np.ndarray, np.ndarray]] = []
    for instruction in program.instructions:
        if instruction.kind == "angles":
            angles = iter(instruction.operands)
            for size in instruction.lanes:
                block = [float(values[next(angles)][0]) for _ in range(size)]
                turned.append(
                    (
                        np.array([math.sin(a) for a in block]),
                        np.array([math.cos(a) for a in block]),
                    )
                )
        values.append(result(instruction, values, turned, inputs))
    return np.array([values[k][0] for k in program.outputs])


def result(
    instruction: Instruction,
    values: list[np.ndarray],
    turned: list[tuple[np.ndarray, np.ndarray]],
    inputs: np.ndarray,
) -> np.ndarray:
    arguments = [values[k] for k in instruction.operands]
    kind, lanes, width = instruction.kind, list(instruction.lanes), instruction.width
    if kind in ("sines", "cosines"):
        return filled(turned[lanes[0]][kind == "cosines"], width)
    simple = {
        "input": lambda: inputs[lanes],
        "constant": lambda: filled(np.array(instruction.constant), width),
        "angles": lambda: np.empty(0),
        "neg": lambda: -arguments[0],
        "add": lambda: arguments[0] + arguments[1],
        "sub": lambda: arguments[0] - arguments[1],
        "mul": lambda: arguments[0] * arguments[1],
        "div": lambda: arguments[0] / arguments[1],
        "sqrt": lambda: np.sqrt(arguments[0]),
        "sin": lambda: np.sin(arguments[0]),
        "cos": lambda: np.cos(arguments[0]),
        "splat": lambda: np.full(width, arguments[0][0]),
        "gather": lambda: filled(np.concatenate(arguments), width),
        "extract": lambda: arguments[0][lanes],
        "shuffle": lambda: taken(arguments[0], lanes, width),
        "join": lambda: taken(np.concatenate(arguments), lanes, width),
        "flip": lambda: np.where(filled(np.array(lanes), width) == 1, -arguments[0], arguments[0]),
    }
    value = simple[kind]()
    assert kind == "angles" or value.shape == (width,), instruction
    return value


def filled(values: np.ndarray, width: int) -> np.ndarray:
    return np.concatenate([values, np.repeat(values[-1:], width - len(values))])


def taken(values: np.ndarray, lanes: list[int], width: int) -> np.ndarray:
    """Return those lanes; where any value will do, one that would be noticed."""
    found = [math.nan if k < 0 else values[k] for k in lanes]
    return filled(np.array(found), width)
