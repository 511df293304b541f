"""The settings of Sphinx for the documentation site; scripts/site copies this file beside the pages.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(os.environ["USHER_ROOT"])
sys.path.insert(0, str(ROOT / "bindings" / "python" / "src"))

project = "libusher"
author = "the libusher authors"
copyright = author
version = release = os.environ["USHER_VERSION"]

extensions = [
    "myst_parser",
    "breathe",
    "sphinx.ext.autodoc",
    "sphinx.ext.graphviz",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# The headings of CHANGELOG.md and of the generated pages skip levels.
# All parts of usher.hpp declare the same namespace. Several Python classes have a member with the same name.
suppress_warnings = ["myst.header", "duplicate_declaration.cpp", "ref.python"]
copybutton_prompt_text = "$ "

breathe_projects = {"c": os.environ["USHER_XML_C"], "cpp": os.environ["USHER_XML_CPP"]}
breathe_default_project = "c"
breathe_domain_by_extension = {"h": "c", "hpp": "cpp"}
breathe_show_include = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True}

graphviz_output_format = "svg"

html_theme = "furo"
html_title = f"libusher {release}"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "default"
pygments_dark_style = "github-dark"


def plain_docstring(app: object, what: str, name: str, item: object, options: object, docstring: list[str]) -> None:
    """Makes reStructuredText of a docstring, which is plain text: `code` in single backquotes; "name: text", with
    indented further lines, for a field or an argument; an indented block after an empty line for a program."""
    out: list[str] = []
    in_section = in_field = in_program = False
    lines = list(docstring)
    for index, line in enumerate(lines):
        if heading := re.match(r"(Args|Attributes|Raises|Returns|Yields):$", line):
            in_section = True
            lines[index] = ""
            out += [f"**{heading[1]}**", ""]
            continue
        in_section = in_section and (line.startswith("    ") or not line)
        if in_section:
            lines[index] = line = line.removeprefix("    ")
        is_indented, follows_empty = line.startswith("    "), index == 0 or not lines[index - 1].strip()
        field = re.match(r"([A-Za-z_]\w*): (.+)" if in_section else r"([a-z_]\w*): (.+)", line)
        if line.strip() and not is_indented:
            in_program = False
            was_field, in_field = in_field, bool(field) and (in_field or in_section or follows_empty)
            if was_field and not in_field:
                out.append("")
        if is_indented and follows_empty and not in_field and not in_program:
            in_program = True
            out += ["::", ""]
        if not in_program:
            line = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", line).replace("**", "\\*\\*")
            line = re.sub(r"(\w)_(?=[^\w`]|$)", r"\1\\_", line)
            if in_field and field:
                line = f":{field[1]}: {line.partition(': ')[2]}"
        out.append(line)
    docstring[:] = out


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", plain_docstring)
