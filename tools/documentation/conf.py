"""Sphinx's settings; `build.py` passes the folder of pages. A warning of Sphinx ends the build."""

import importlib.metadata

project = "polyop"
author = "the polyop authors"
copyright = author  # noqa: A001 - Sphinx's name
version = release = importlib.metadata.version("polyop")

extensions = ["myst_nb", "sphinx_copybutton", "sphinx_design"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # links to headings, spelled as on GitHub
suppress_warnings = [
    "myst.header",
    "misc.highlighting_failure",
]  # a page may skip a level; code in fences may be cut

nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_in_temp = True  # tutorials write files where they run
nb_execution_timeout = 300
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # nothing is loaded from the network

html_theme = "furo"
html_title = f"polyop {release}"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True
