"""Changes to the pages for the site; the sources stay readable where no Sphinx shows them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_TABLE = re.compile(r"^\| name \| default \| \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)
_NOTEBOOK = re.compile(r"\A---\n.*?mystnb.*?\n---\n\s*# [^\n]+\n", re.DOTALL)


def drawn(page: str, text: str) -> str:
    """Return a page with the drawings of its Mermaid diagrams, see CONTRIBUTING."""
    numbers = iter(range(100))
    folder = "../" * page.count("/") + "pictures"
    return re.sub(
        r"```mermaid\n.*?```",
        lambda _: f"![diagram]({folder}/{Path(page).name}_{next(numbers)}.svg)",
        text,
        flags=re.DOTALL,
    )


def defined(text: str) -> str:
    """Return a page with tables of parameters as lists of definitions, which fit a phone."""
    return _TABLE.sub(lambda table: _definitions(table[1]), text)


def _definitions(rows: str) -> str:
    found = []
    for row in rows.splitlines():
        name, default, words = (cell.strip() for cell in row[1:].rstrip("| ").split("|", 2))
        shown = f" (default: {default})" if default else ""
        found.append(f"{name}{shown}\n: {words}\n")
    return "\n".join(found)


def downloadable(page: str, text: str) -> str:
    """Return a tutorial that is a notebook with a link to the notebook below its title."""
    if not page.startswith("tutorials/"):
        return text
    link = (
        f"{{nb-download}}`Download this page as a notebook <{Path(page).name}.ipynb>`, or run it "
        "[in a browser](installing.md#tutorials-as-notebooks)."
    )
    return _NOTEBOOK.sub(lambda head: f"{head[0]}\n{link}\n", text)


def remove_stale(app: Any) -> None:
    """Remove pages of the reference whose names are no longer listed."""
    source = Path(app.srcdir)
    listed = (source / "library.md").read_text(encoding="utf-8").split()
    for page in (source / "reference" / "api").glob("*.rst"):
        if f"~{page.stem}" not in listed:
            page.unlink()


def rewrite(_app: object, page: str, source: list[str]) -> None:
    """Rewrite the source of a page in place."""
    source[0] = downloadable(page, defined(drawn(page, source[0])))
