"""Sphinx: MyST pages, the furo theme, nothing from the network."""

from __future__ import annotations

import importlib.metadata

project = "mockbroker"
author = "the mockbroker developers"
release = importlib.metadata.version("mockbroker")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_data", "generate"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"mockbroker {release}"
