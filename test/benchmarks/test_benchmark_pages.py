"""Pages of benchmarks and papers: prose filled with the results beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import pages
from benchmarks.pages import DOCS, TEXTS, table

NAMES = sorted(str(file.relative_to(TEXTS).with_suffix("")) for file in TEXTS.rglob("*.md"))


@pytest.mark.parametrize("name", NAMES)
def test_page_is_its_prose_filled_with_its_results(name: str) -> None:
    """`python -m benchmarks.pages` fills all pages anew."""
    page = DOCS / f"{name}.md"
    assert page.read_text(encoding="utf-8") == pages.filled(name, pages.read(page))


def test_pages_are_all_listed() -> None:
    # docs/jupyter has the kernel that runs the blocks of pages.
    files = {file.relative_to(DOCS) for file in DOCS.rglob("*.json")}
    results = {str(file.with_suffix("")) for file in files if file.parts[0] != "jupyter"}
    assert results == set(NAMES) and len(NAMES) == 13


def test_results_are_read_back_equal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "TEXTS", tmp_path)
    (tmp_path / "text.md").write_text("# Title\n\n{none}\n\nOf {count}:\n\n{all}\n", "utf-8")
    times = table(["robot", "µs"], [("arm", 1), ("[leg]", "0.5 / 0.6")])
    places = {"none": "", "count": 2, "all": ["## Times", (times, ["- a\n- b"])]}
    pages.write(tmp_path / "new" / "page.md", "text", places)
    assert pages.read(tmp_path / "new" / "page.md") == {
        "none": [], "count": ["2"], "all": ["## Times", times, "- a\n- b"]
    }  # fmt: skip
    assert (tmp_path / "new" / "page.md").read_text("utf-8") == (
        "# Title\n\nOf 2:\n\n## Times\n\n"
        "| robot | µs |\n|---|---:|\n| arm | 1 |\n| [leg] | 0.5 / 0.6 |\n\n- a\n- b\n"
    )
    with pytest.raises(KeyError, match="count"):
        pages.write(tmp_path / "page.md", "text", {"none": "", "all": ""})
