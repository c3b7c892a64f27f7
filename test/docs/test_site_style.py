"""The style of the site: figures in dark mode and on phones, in a browser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import Page, browser
from processes import wait_until

DOCS = Path(__file__).resolve().parents[2] / "docs"
FIGURES = sorted(path for suffix in ("png", "svg") for path in DOCS.rglob(f"*.{suffix}"))
PAGE = """<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="{style}"><style>img {{ max-width: 100%; }}</style>
<body data-theme="auto"><div class="content">
{figures}
<div class="gallery"><figure><img src="{first}"></figure><figure><img src="{first}"></figure></div>
</div></body>"""


def look(page: Page, width: int, scheme: str) -> None:
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=width, height=900, deviceScaleFactor=1, mobile=width < 500,
    )  # fmt: skip
    page.call(
        "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
    )


def of_images(page: Page, value: str, selector: str = ".content p > img") -> list[object]:
    found = page.value(
        f"JSON.stringify([...document.querySelectorAll('{selector}')].map(e => {value}))"
    )
    return list(json.loads(found))


@pytest.mark.slow
def test_figures_lie_on_a_white_card_in_dark_mode_and_scroll_on_a_phone(tmp_path: Path) -> None:
    style = (DOCS / "static" / "site.css").as_uri()
    figures = "\n".join(f'<p><img src="{figure.as_uri()}"></p>' for figure in FIGURES)
    file = tmp_path / "page.html"
    file.write_text(PAGE.format(style=style, figures=figures, first=FIGURES[0].as_uri()), "utf-8")
    with browser() as page:
        page.open(file.as_uri())
        wait_until(lambda: page.value("document.readyState") == "complete", "loaded page")
        # Each figure can be read: it is an image with a size.
        assert all(of_images(page, "e.naturalWidth > 0")) and len(FIGURES) > 15
        for scheme, padding in (("dark", "4px"), ("light", "0px")):
            look(page, 1400, scheme)
            assert set(of_images(page, "getComputedStyle(e).padding")) == {padding}
            colour = set(of_images(page, "getComputedStyle(e).backgroundColor"))
            assert colour == {"rgb(255, 255, 255)"}
        columns = of_images(page, "e.getBoundingClientRect().top", ".gallery img")
        assert columns[0] == columns[1]
        look(page, 390, "light")
        assert page.value("document.documentElement.scrollWidth") <= 390
        # Plots have their own width in pixels; diagrams are as wide as the page.
        plots = '.content p > img:not([src*="architecture"]):not([src*="watch"])'
        widths = of_images(page, "[e.width, Math.min(e.naturalWidth, 672)]", plots)
        assert len(widths) > 10
        assert all(abs(shown - meant) <= 1 for shown, meant in widths), widths
        columns = of_images(page, "e.getBoundingClientRect().top", ".gallery img")
        assert columns[0] < columns[1]
