"""The site: Sphinx over the Markdown of docs/ and proofs/.

It is read from the root, so that links lead where a forge leads them:

    sphinx-build -W -n --keep-going -c docs . build/site

Nothing is fetched, not by the build nor by the pages. A warning is an error; a page that no toctree names is a warning.
"""

import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import resispec_core  # noqa: E402

project = "resispec-core"
author = project
version = release = resispec_core.__version__
copyright = "the authors of resispec-core, Apache-2.0"
html_title = f"{project} {version}"
html_show_copyright = False

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/api/*.rst",
    "proofs/**.md",
    "fuzz/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = [".*", "build", "dist", "fuzz/corpus", "resispec_core", "tests", "**/.venv"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode"]
templates_path = ["_templates"]
html_additional_pages = {"index": "forward.html"}
"""The first page is docs/index.html; the root forwards to it."""

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
highlight_language = "none"

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
maximum_signature_line_length = 160

nitpick_ignore_regex = [
    # Types of other projects: their inventories would have to be fetched.
    (r"py:.*", r"(?!resispec_core\b).*"),
]


def adapt(_: Sphinx, docname: str, source: list[str]) -> None:
    """What a page needs here and a forge would show as clutter.

    The named anchors of the ledger, in HTML for a forge, become targets that links are checked against. The pages of
    the rules hang below their table.
    """
    source[0] = re.sub(r'^<a id="([\w-]+)"></a>$', r"(\1)=", source[0], flags=re.MULTILINE)
    if docname == "docs/rules/README":
        source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


THEOREMS = set(
    re.findall(
        r"^Print Assumptions (\w+)\.", (ROOT / "proofs/formal/assumptions.v").read_text(), re.MULTILINE
    )
)
EXPLAINED = "proofs/formal/README"


def name_theorems(app: Sphinx, tree: nodes.document) -> None:
    """Every theorem's explanation gets an anchor."""
    if app.env.docname == EXPLAINED:
        for item in tree.findall(nodes.list_item):
            for literal in item[0].findall(nodes.literal):
                if literal.astext() in THEOREMS and literal.parent is item[0]:
                    literal["ids"].append(literal.astext().replace("_", "-"))


def link_theorems(app: Sphinx, tree: nodes.document, docname: str) -> None:
    """A theorem named in the text or in a docstring leads to its explanation."""
    for literal in list(tree.findall(nodes.literal)):
        name = literal.astext()
        if name in THEOREMS and not literal["ids"] and not isinstance(literal.parent, nodes.reference):
            page = "" if docname == EXPLAINED else app.builder.get_relative_uri(docname, EXPLAINED)
            link = nodes.reference("", "", internal=True, refuri=f"{page}#{name.replace('_', '-')}")
            literal.replace_self(link)
            link += literal


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", adapt)
    app.connect("doctree-read", name_theorems)
    app.connect("doctree-resolved", link_theorems)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
