"""Every rule has its page, and a page cites only theorems that are proved."""

import re
from pathlib import Path

import pytest

from resispec_core.rules import RULES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "rules"
PARTS = (
    "Precondition",
    "Pseudocode",
    "Postcondition",
    "Acceptance",
    "Cost",
    "When to use it",
    "Source",
)
PROVED = set(
    re.findall(r"^Print Assumptions (\w+)\.$", (ROOT / "proofs/formal/assumptions.v").read_text(), re.M)
)


def cited(text):
    """The names after "formal:"."""
    lists = re.findall(r"formal:((?:,?\s*`\w+`)+)", text)
    return {name for names in lists for name in re.findall(r"`(\w+)`", names)}


def faults(name, text):
    """What is wrong with the page of the rule called ``name``."""
    found = [f"no part {part}" for part in PARTS if f"\n**{part}.**" not in text]
    if not text.startswith(f"# {name}\n"):
        found.append("the title is not the rule's name")
    if not cited(text) and "no formal proof" not in text:
        found.append("neither a theorem nor the words that there is none")
    return found + [f"{theorem} is not proved" for theorem in sorted(cited(text) - PROVED)]


@pytest.mark.parametrize("name", RULES)
def test_every_rule_has_its_page(name):
    assert faults(name, (PAGES / f"{name}.md").read_text()) == []
    assert f"[{name}]({name}.md)" in (PAGES / "README.md").read_text()


def test_no_page_without_a_rule():
    assert {page.stem for page in PAGES.glob("*.md")} - {"README"} == set(RULES)


def test_the_pages_link_to_pages_that_exist():
    for page in PAGES.glob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (PAGES / link).exists(), f"{page.name}: {link}"


def test_a_wrong_page_is_noticed():
    text = (PAGES / "shaped.md").read_text()
    assert len(PROVED) > 40
    assert faults("k-seq", text) == ["the title is not the rule's name"]
    assert faults("shaped", text.replace("`shaped_exact`", "`shaped_exactly`")) == [
        "shaped_exactly is not proved"
    ]
    assert faults("shaped", text.replace("**Cost.**", "Cost:")) == ["no part Cost"]
    assert faults("shaped", text.replace("formal:", "see")) != []
