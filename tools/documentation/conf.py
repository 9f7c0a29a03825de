"""Sphinx's settings; `build.py` passes the folder of pages. A warning of Sphinx ends the build."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import navigation  # noqa: E402

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
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(HERE / "static" / "search.js")
highlight_language = "text"  # a fence without a language is a drawing
pygments_dark_style = "github-dark"  # Furo's own underlines the names of modules, as if they were links
html_title = f"polyop {release}"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True


def setup(app: Any) -> None:
    """Show in the sidebar what belongs to the page: the guides, or the inside of polyop."""

    def chosen(_app: Any, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
        context["furo_navigation_tree"] = navigation.part(context.get("furo_navigation_tree", ""), page)

    app.connect("html-page-context", chosen, priority=900)  # after Furo's
