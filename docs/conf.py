"""Sphinx: the documentation site. ``make docs`` builds it, and rosdoc2 by ``rosdoc2.yaml``."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import delassus

sys.path.insert(0, str(Path(__file__).parent))
import docstrings  # noqa: E402
import pages  # noqa: E402

project = "delassus_ros"
copyright = "the delassus_ros authors"
release = version = delassus.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
# The first one is that of the pages that autosummary writes.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
templates_path = ["templates"]
exclude_patterns = ["_build", "templates"]
# Links to files that are no pages, as the README has them, lead to the repository's own copies.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
# Kernels of jupyter/ log errors alone; nbclient logs each page at level INFO.
os.environ["JUPYTER_PATH"] = str(Path(__file__).parent / "jupyter")
logging.getLogger("traitlets").setLevel(logging.WARNING)

# Names are public where the package exports them, not where they are defined.
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Their definitions fill five lines of a signature.
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Given")}
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
# Types of attributes are in the signature of their class.
napoleon_attr_annotations = False

html_theme = "furo"
html_title = f"delassus_ros {release}"
html_static_path = ["pictures", "static"]
html_css_files = ["site.css"]
# rosdoc2 takes away what it does not know, unless it is asked not to, and has a theme and a reader
# of Markdown of its own.
rosdoc2_settings = {
    "allow_other_extensions": True,
    "override_theme": False,
    "support_markdown": False,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app: object) -> None:
    """Register what is above."""
    connect = app.connect  # type: ignore[attr-defined]
    connect("source-read", pages.rewrite)
    # Before autosummary, whose priority is 500.
    connect("builder-inited", pages.remove_stale, priority=400)
    # Before napoleon, whose priority is 500.
    connect("autodoc-process-docstring", docstrings.rewrite, priority=400)
    connect("autodoc-process-signature", docstrings.short_types)
