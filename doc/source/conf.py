# SPDX-License-Identifier: Apache-2.0
"""Sphinx's configuration; the documentation is built with warnings as errors."""

from nova_lite import __version__

project = "nova_lite"
author = "nova_lite's authors"
project_copyright = "nova_lite's authors, Apache-2.0"
release = version = __version__

extensions: list[str] = []
exclude_patterns: list[str] = []
nitpicky = True
html_theme = "alabaster"
html_theme_options = {"description": "A compact compute control plane", "page_width": "1100px"}
html_show_sphinx = False
