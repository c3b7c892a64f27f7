"""docs/gradients.md and the page of the doors: their examples run."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from small import tiny

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str, mark: str = "") -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"{mark}```python\n(.*?)```", text, re.S)


def test_the_example_of_gradients() -> None:
    (code,) = blocks("gradients.md")
    names: dict = {}
    exec(code, names)
    assert names["dG"].shape == (18, 6, 6) and np.abs(names["dG"]).max() > 0.1


@pytest.mark.parametrize("package", ["casadi", "jax", "torch"])
def test_the_examples_of_the_doors(package: str) -> None:
    import_module(package)
    (code,) = blocks("howto/casadi_jax_torch.md", f"<!-- {package} -->\n")
    names: dict = {"problem": tiny()}
    exec(code, names)
    q = np.array([0.3] * names["problem"].robot.nq)
    if package == "casadi":
        assert np.allclose(names["G"](q), names["G_fast"](q))
    elif package == "jax":
        found = names["many"](np.stack([q, 2 * q]))
        assert found.shape == (2, len(q)) and np.isfinite(np.asarray(found)).all()
    else:
        assert bool(names["q"].grad.isfinite().all())
