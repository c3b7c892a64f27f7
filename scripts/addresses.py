"""Write the addresses of ``packaging/addresses.ini`` into the manifests.

Manifests of colcon, pip and conda need addresses as text. The exit status is 1 as long as an
address is a placeholder.
"""

from __future__ import annotations

import configparser
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MANIFESTS = (
    "package.xml",
    "msg/package.xml",
    "msg/pyproject.toml",
    "packaging/library/pyproject.toml",
    "packaging/conda/recipe.yaml",
)
PLACEHOLDER = ".example"
"""Top-level domain of placeholders; it is reserved, so that no such host exists."""


def addressed(text: str, addresses: configparser.SectionProxy) -> str:
    """Return the text of a manifest with other values of the keys that it has."""
    for key, address in addresses.items():
        # <url type="website">…, maintainer email="…", Website = "…", homepage: …
        assigned = rf'(\b{key}(?:">| ?= ?"|: ))[^"<\n]*'
        text = re.sub(assigned, rf"\g<1>{address}", text, flags=re.IGNORECASE)
    return text


def main() -> int:
    """Write the addresses; return the exit status."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "packaging" / "addresses.ini", encoding="utf-8")
    addresses = settings["addresses"]
    for name in MANIFESTS:
        manifest = ROOT / name
        text = manifest.read_text(encoding="utf-8")
        manifest.write_text(addressed(text, addresses), encoding="utf-8")
    placeholders = [key for key, address in addresses.items() if PLACEHOLDER in address]
    if placeholders:
        names = ", ".join(placeholders)
        print(f"Placeholders in packaging/addresses.ini: {names}.", file=sys.stderr)
    return int(bool(placeholders))


if __name__ == "__main__":
    sys.exit(main())
