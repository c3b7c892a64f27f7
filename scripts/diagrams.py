"""Draws the diagrams of the documentation anew: ``python scripts/diagrams.py``.

They are written in Mermaid, which hosts of repositories draw by themselves; the site shows these
drawings. It needs the command ``mmdc``, of the npm package ``@mermaid-js/mermaid-cli``; the
variable ``PUPPETEER_EXECUTABLE_PATH`` names the Chromium that it uses.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


# Boxes are as wide as their words in the font of Mermaid. With the wider fonts of some readers
# smaller letters fit, and a text that is still too wide is not cut off.
FITTING = "<style>foreignObject{overflow:visible;}#my-svg .label div{font-size:13px;}"


def main() -> int:
    """Draw every diagram, with the digest of its text, by which a test knows whose it is."""
    for page in sorted(DOCS.glob("**/*.md")):
        blocks = re.findall(r"```mermaid\n(.*?)```", page.read_text(), re.DOTALL)
        for number, text in enumerate(blocks):
            drawing = DOCS / "pictures" / f"{page.stem}_{number}.svg"
            with tempfile.TemporaryDirectory() as folder:
                written, settings = Path(folder) / "diagram.mmd", Path(folder) / "settings.json"
                written.write_text(text)
                # Chromium's sandbox does not run in a container.
                settings.write_text(json.dumps({"args": ["--no-sandbox"]}))
                files = ["-p", settings, "-i", written, "-o", drawing]
                subprocess.run(["mmdc", "-q", *files, "-b", "white"], check=True)
            digest = hashlib.sha256(text.encode()).hexdigest()
            drawn = drawing.read_text().rstrip().replace("<style>", FITTING, 1)
            drawing.write_text(f"{drawn}\n<!-- {digest} -->\n")
            print(drawing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
