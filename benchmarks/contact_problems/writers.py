"""Data sets of contact problems on disk: Parquet, and HDF5 as FCLib has it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.contact_problems.generator import ContactProblem
from benchmarks.contact_problems.solutions import LAWS, Checked, Solved
from delassus.model.spatial import Array

_STRING, _NUMBERS = pa.string(), pa.list_(pa.float64())
_SCHEMA = pa.schema([
    ("family", _STRING), ("mode", _STRING), ("contacts", pa.list_(_STRING)),
    ("sequence", pa.int32()), ("tick", pa.int32()), ("G", _NUMBERS), ("a0", _NUMBERS),
    ("mu", _NUMBERS),
    *((f"{what}_{law}", kind) for law in LAWS for what, kind in (
        ("forces", _NUMBERS), ("accelerations", _NUMBERS), ("residual", pa.float64()),
        ("status", _STRING),
    )),
])  # fmt: skip


def write_parquet(path: Path, solved: Iterable[Solved]) -> None:
    """Write one file with a row per problem; G row by row, rows of a contact x, y, z."""
    rows = []
    for item in solved:
        p = item.problem
        row = {
            "family": p.family, "mode": p.mode, "contacts": list(p.contacts),
            "sequence": p.sequence, "tick": p.tick, "G": p.G.ravel(), "a0": p.a0, "mu": p.mu,
        }  # fmt: skip
        for law, found in item.solutions.items():
            row |= {f"{what}_{law}": value for what, value in vars(found).items()}
        rows.append(row)
    pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), path)


def read_parquet(path: Path) -> list[Solved]:
    """Return what :func:`write_parquet` wrote."""
    found = []
    for row in pq.read_table(path).to_pylist():
        n = len(row["a0"])
        problem = ContactProblem(
            row["family"], row["mode"], tuple(row["contacts"]), np.reshape(row["G"], (n, n)),
            np.array(row["a0"]), np.array(row["mu"]), row["sequence"], row["tick"],
        )  # fmt: skip
        by_law = {
            law: Checked(
                np.array(row[f"forces_{law}"]), np.array(row[f"accelerations_{law}"]),
                row[f"residual_{law}"], row[f"status_{law}"],
            )
            for law in LAWS
        }  # fmt: skip
        found.append(Solved(problem, by_law))
    return found


def normal_first(contacts: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the places of rows normal, x, y among rows x, y, z; FCLib's order."""
    return np.add.outer(3 * np.arange(contacts), [2, 0, 1]).ravel()


def write_fclib(path: Path, item: Solved) -> None:
    """Write one problem and its solution under Coulomb's law as FCLib's HDF5.

    ``fclib_local`` has W in compressed columns (nz = -1), q and mu; ``solution`` has u and r and
    stands there only where the solution is SOLVED. Rows are normal, x, y.
    """
    import h5py

    p, found = item.problem, item.solutions["coulomb"]
    order = normal_first(len(p.mu))
    n = len(order)
    W = p.G[np.ix_(order, order)]
    integers = {
        "nzmax": [n * n], "m": [n], "n": [n], "nz": [-1], "p": n * np.arange(n + 1),
        "i": np.tile(np.arange(n), n),
    }  # fmt: skip
    with h5py.File(path, "w") as file:
        local = file.create_group("fclib_local")
        local["spacedim"] = np.array([3], np.int32)
        matrix = local.create_group("W")
        for name, values in integers.items():
            matrix[name] = np.asarray(values, np.int32)
        matrix["x"] = W.ravel(order="F")
        vectors = local.create_group("vectors")
        vectors["q"], vectors["mu"] = p.a0[order], p.mu
        info = local.create_group("info")
        for name, text in (
            ("title", path.stem),
            ("description", f"{p.family}, {p.mode}; contacts {', '.join(p.contacts)}"),
            ("math_info", "rows normal, x, y; accelerations in m/s^2, forces in N"),
        ):
            info[name] = np.bytes_(text)
        if found.status == "SOLVED":
            solution = file.create_group("solution")
            solution["u"], solution["r"] = found.accelerations[order], found.forces[order]


def read_fclib(path: Path) -> tuple[Array, Array, Array, Array | None, Array | None]:
    """Return G, a0, mu, accelerations and forces of a file, in rows x, y, z."""
    import h5py

    with h5py.File(path) as file:
        local = file["fclib_local"]
        W, n = local["W"], int(local["W/n"][0])
        G = np.zeros((n, n))
        columns = np.repeat(np.arange(n), np.diff(W["p"][:]))
        G[W["i"][:], columns] = W["x"][:]
        back = np.argsort(normal_first(n // 3))
        a0, mu = local["vectors/q"][:][back], local["vectors/mu"][:]
        u = r = None
        if "solution" in file:
            u, r = file["solution/u"][:][back], file["solution/r"][:][back]
    return G[np.ix_(back, back)], a0, mu, u, r
