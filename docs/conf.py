"""Settings of the site that `make docs` builds from these pages."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx

project = "datasette-hybrid"
extensions = ["myst_parser"]
exclude_patterns = ["figures", "scripts"]
highlight_language = "none"
myst_enable_extensions = ["html_image"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = project
html_copy_source = False
html_show_copyright = False


def drop_comments(app: Sphinx, document: nodes.document) -> None:
    """Leave out marks of examples and programs of generated tables, which are HTML comments."""
    for node in list(document.findall(nodes.raw)):
        if node.astext().startswith("<!--"):
            node.parent.remove(node)


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", drop_comments)
